//! `completions` and `man`, from the same definition as the parser.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::CommandFactory;
use clap_complete::Shell;

use super::args::{self, Cli};
use super::help::{self, GROUPS};
use super::problem::Problem;
use super::{Call, Ended};
use crate::error::{At, Kind, shell_word};
use crate::fs::dir::Dir;

/// Prints a shell's completions: for bash, zsh and fish a stub that asks recant (`complete`), for others what is known beforehand.
pub fn completions(call: &Call, args: &args::Completions) -> Result<Ended, Problem> {
    match args.shell {
        Shell::Bash => call.out.bytes(include_bytes!("completions/recant.bash")),
        Shell::Zsh => call.out.bytes(include_bytes!("completions/_recant")),
        Shell::Fish => call.out.bytes(include_bytes!("completions/recant.fish")),
        shell => {
            let mut bytes = Vec::new();
            clap_complete::generate(shell, &mut visible(&Cli::command()), "recant", &mut bytes);
            call.out.bytes(&bytes);
        }
    }
    Ok(Ended::Done)
}

/// A command without its hidden parts.
fn visible(command: &clap::Command) -> clap::Command {
    let shown = clap::Command::new(command.get_name().to_owned())
        .disable_help_flag(true)
        .disable_version_flag(true)
        .about(command.get_about().cloned().unwrap_or_default())
        .args(command.get_arguments().filter(|arg| !arg.is_hide_set()).cloned())
        .subcommands(command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(visible));
    if command.get_version().is_some() { shown.version(env!("CARGO_PKG_VERSION")) } else { shown }
}

/// Shows one manual page on a terminal, else prints it as roff; or writes all of them.
pub fn man(call: &Call, args: &args::Man) -> Result<Ended, Problem> {
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
            Problem::new(Kind::Usage, format!("there is no verb {:?}", args.verb.join(" ")))
                .remedy("recant --help shows the verbs")
        };
        command = command.find_subcommand(verb).filter(|verb| !verb.is_hide_set()).ok_or_else(unknown)?;
    }
    let page = page(command)?;
    if !(call.out.is_text() && std::io::stdout().is_terminal() && is_shown(call, &page)) {
        call.out.bytes(&page);
    }
    Ok(Ended::Done)
}

/// Has man(1) show a page. False if there is none, or it cannot.
fn is_shown(call: &Call, page: &[u8]) -> bool {
    let mut man = Command::new("man");
    // What it says of an option that it does not know is of no use.
    man.args(["-l", "-"]).stdin(Stdio::piped()).stderr(Stdio::null());
    if let Some(pager) = &call.config.pager.value {
        man.env("MANPAGER", if pager.trim().is_empty() { "cat" } else { pager });
    }
    let Ok(mut child) = man.spawn() else { return false };
    if let Some(mut input) = child.stdin.take() {
        // It may end without having read all.
        drop(input.write_all(page));
    }
    // man(1): 3 if a program that it started failed, as one whose pager was left.
    child.wait().is_ok_and(|status| matches!(status.code(), Some(0 | 3) | None))
}

/// Makes a page from clap_mangen's sections, and from our own where it leaves out the values of options, fills examples like prose, or
/// has no groups of verbs. Plain ASCII, so that it looks the same in any locale.
fn page(command: &clap::Command) -> Result<Vec<u8>, Problem> {
    let man = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    let is_root = command.get_name() == "recant";
    let has_options = command.get_arguments().any(|arg| !arg.is_hide_set());
    let rendered = man.render_title(&mut page).and_then(|()| man.render_name_section(&mut page));
    rendered.at("write", "the manual page")?;
    page.extend(format!(".SH SYNOPSIS\n{}\n", synopsis(command)).bytes());
    man.render_description_section(&mut page).at("write", "the manual page")?;
    if has_options {
        man.render_options_section(&mut page).at("write", "the manual page")?;
    }
    if is_root {
        page.extend(groups(command).bytes());
    } else {
        let heading = if has_options { ".PP\n" } else { ".SH OPTIONS\n" };
        page.extend(format!("{heading}\\fBrecant\\fR(1) has the options of all verbs.\n").bytes());
        if command.has_subcommands() {
            man.render_subcommands_section(&mut page).at("write", "the manual page")?;
        }
    }
    let after = command.get_after_long_help().or_else(|| command.get_after_help());
    page.extend(after.map(|after| sections(&after.to_string())).unwrap_or_default().bytes());
    if is_root {
        man.render_version_section(&mut page).at("write", "the manual page")?;
    }
    Ok(plain(&String::from_utf8_lossy(&page)).into_bytes())
}

/// The section of the verbs, grouped by purpose.
fn groups(command: &clap::Command) -> String {
    let mut text = ".SH VERBS\n".to_owned();
    for group in &GROUPS {
        text.push_str(&format!(".SS {}\n", group.title));
        for verb in group.verbs {
            let about = command.find_subcommand(verb).and_then(clap::Command::get_about).cloned().unwrap_or_default();
            text.push_str(&format!(".TP\n\\fBrecant\\-{verb}\\fR(1)\n{}\n", escaped(&about.to_string())));
        }
        for (call, what) in group.calls {
            text.push_str(&format!(".TP\n\\fBrecant {}\\fR\n{}\n", escaped(call), escaped(what)));
        }
    }
    text
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
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

/// A page in plain ASCII, with roff's names for what a terminal would show as another character (man-pages(7), Generating optimal glyphs).
fn plain(page: &str) -> String {
    let mut plain = String::with_capacity(page.len());
    for c in page.chars() {
        match c {
            '~' => plain.push_str("\\(ti"),
            '^' => plain.push_str("\\(ha"),
            '`' => plain.push_str("\\(ga"),
            '\u{2026}' => plain.push_str("..."),
            '\u{2019}' => plain.push_str("\\(aq"),
            c if c.is_ascii() => plain.push(c),
            c => plain.push_str(&format!("\\[u{:04X}]", u32::from(c))),
        }
    }
    plain
}

/// The synopsis: the verb, its options with their values, and its other arguments.
fn synopsis(command: &clap::Command) -> String {
    let values = |arg: &clap::Arg| {
        let names: Vec<String> =
            arg.get_value_names().unwrap_or_default().iter().map(|name| format!("\\fI{}\\fR", escaped(name))).collect();
        names.join(" ")
    };
    let many = |arg: &clap::Arg| if matches!(arg.get_action(), clap::ArgAction::Append) { "..." } else { "" };
    let is_shown = |arg: &&clap::Arg| !arg.is_hide_set();
    let mut words = vec![format!("\\fB{}\\fR", escaped(command.get_bin_name().unwrap_or("recant")))];
    for arg in command.get_arguments().filter(is_shown).filter(|arg| !arg.is_positional()) {
        let names = [arg.get_short().map(|short| format!("-{short}")), arg.get_long().map(|long| format!("--{long}"))];
        let name = names.into_iter().flatten().map(|name| format!("\\fB{}\\fR", escaped(&name))).collect::<Vec<_>>().join("|");
        let value = if arg.get_action().takes_values() { format!(" {}", values(arg)) } else { String::new() };
        words.push(format!("[{name}{value}]{}", many(arg)));
    }
    for arg in command.get_positionals().filter(is_shown) {
        let value = if arg.is_last_set() { format!("\\fB\\-\\-\\fR {}", values(arg)) } else { values(arg) };
        let value = if arg.is_required_set() { value } else { format!("[{value}]") };
        words.push(format!("{value}{}", many(arg)));
    }
    if command.has_subcommands() {
        words.push("\\fICOMMAND\\fR".into());
    }
    words.join(" ")
}

/// Writes `recant.1`, `recant-diff.1`, …: a page a verb, in place of those that are there.
fn write_all(call: &Call, recant: &clap::Command, dir: &Path) -> Result<Ended, Problem> {
    let directory = Dir::open(dir).map_err(|error| {
        let make = format!("mkdir -p {}", shell_word(dir.as_os_str().as_bytes()));
        let problem = Problem::from(error);
        if dir.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            problem.remedy(make)
        } else {
            problem
        }
    })?;
    let mut todo = vec![recant];
    while let Some(command) = todo.pop() {
        todo.extend(command.get_subcommands().filter(|command| !command.is_hide_set()));
        let name = format!("{}.1", command.get_display_name().unwrap_or("recant"));
        let at = directory.at(name.as_bytes());
        let bytes = page(command)?;
        call.fs.unlink_if_there(at).at("replace", at)?;
        let file = call.fs.create(at, 0o666)?;
        call.fs.write(&file, &bytes, at)?;
        call.out.detail(at);
    }
    Ok(Ended::Done)
}
