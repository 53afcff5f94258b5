//! `man`: manual pages, from the same definition as the parser.

use std::borrow::Cow;
use std::path::Path;

use anyhow::Context as _;

use crate::error::{At, Error};
use crate::face::args;
use crate::face::args::help;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::fs::Dir;
use crate::remedy::shell;

/// Prints one manual page as roff, or writes all of them.
pub fn man(call: &Call, args: &args::Man) -> Result<Ended, Error> {
    let mut recant = help::definition();
    recant.build();
    if let Some(dir) = &args.dir {
        return write_all(call, &recant, dir);
    }
    let mut command = &recant;
    // Split as page names are: snapshot-restore, recant-snapshot-restore.
    let words = args.verb.iter().flat_map(|word| word.split('-')).enumerate();
    for (_, verb) in words.filter(|(i, word)| *i > 0 || *word != "recant") {
        let unknown = || {
            Error::usage(format!("there is no verb {:?}", args.verb.join(" ")))
                .with_remedy(shell("recant --help") + " shows the verbs")
        };
        command = command.find_subcommand(verb).filter(|verb| !verb.is_hide_set()).ok_or_else(unknown)?;
    }
    call.out.bytes(&page(command).context("cannot make the manual page")?);
    Ok(Ended::Done)
}

/// Makes a page of clap_mangen's sections, and of our own for what stands behind the options: clap_mangen fills examples like prose.
fn page(command: &clap::Command) -> anyhow::Result<Vec<u8>> {
    let man = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_arguments().any(|arg| !arg.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let after = command.get_after_help();
    page.extend(after.map(|after| sections(&after.to_string())).unwrap_or_default().bytes());
    // A terminal shows these as other characters (man-pages(7), Generating optimal glyphs).
    Ok(String::from_utf8_lossy(&page).replace('~', "\\(ti").replace('^', "\\(ha").replace('`', "\\(ga").into_bytes())
}

/// The text after the options in help: examples and exit statuses under headings of their own (man-pages(7)), indented lines as they
/// are.
fn sections(text: &str) -> String {
    let (mut page, mut is_example) = (String::new(), false);
    let mut has_notes = false;
    for line in text.lines() {
        let indented = line.strip_prefix("  ");
        if is_example && indented.is_none() {
            page.push_str(".EE\n.PP\n");
        }
        match indented {
            Some(line) => {
                page.push_str(if is_example { "" } else { ".PP\n.EX\n" });
                in_two(line).for_each(|line| page.push_str(&format!("{}\n", escaped(&line))));
            }
            None if line == "Examples:" => page.push_str(".SH EXAMPLES\n"),
            None if line == "Exit status:" => page.push_str(".SH \"EXIT STATUS\"\n"),
            None if line.is_empty() => page.push_str(".PP\n"),
            None => {
                if !has_notes {
                    page.push_str(".SH NOTES\n");
                    has_notes = true;
                }
                page.push_str(&format!("{}\n", escaped(line)));
            }
        }
        is_example = indented.is_some();
    }
    page.push_str(if is_example { ".EE\n" } else { "" });
    page
}

/// An example as it is, if it fits into a page of 80 columns: man indents by 7. Else what it does, two blanks apart, is on a line of its
/// own.
fn in_two(line: &str) -> impl Iterator<Item = Cow<'_, str>> {
    const WIDTH: usize = 73;
    let parts = line.split_once("  ").filter(|(call, _)| line.chars().count() > WIDTH && !call.is_empty());
    let (call, what) = parts.map_or((line, None), |(call, what)| (call, Some(format!("        {}", what.trim_start()))));
    [Cow::Borrowed(call)].into_iter().chain(what.map(Cow::Owned))
}

/// The text of a line, escaped for roff.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

/// Writes `recant.1`, `recant-diff.1`, …: a page a verb, in place of those that are there.
fn write_all(call: &Call, recant: &clap::Command, dir: &Path) -> Result<Ended, Error> {
    let directory = Dir::open(dir)?;
    let mut todo = vec![recant];
    while let Some(command) = todo.pop() {
        todo.extend(command.get_subcommands().filter(|command| !command.is_hide_set()));
        let name = format!("{}.1", command.get_display_name().unwrap_or("recant"));
        let at = directory.at(name.as_bytes());
        let bytes = page(command).context("cannot make the manual page")?;
        call.fs.unlink_if_there(at).at("replace", at)?;
        let file = call.fs.create(at, 0o666)?;
        call.fs.write(&file, &bytes, at)?;
        call.out.detail(at);
    }
    Ok(Ended::Done)
}
