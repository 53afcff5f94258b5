//! `completions` and `man`, from the same definition as the parser.

use std::path::Path;

use clap::CommandFactory;

use super::args::{self, Cli};
use super::problem::Problem;
use super::{Call, Ended};
use crate::error::{At, Kind};
use crate::fs::dir::Dir;

/// Prints a shell's completions.
pub fn completions(call: &Call, args: &args::Completions) -> Result<Ended, Problem> {
    let mut bytes = Vec::new();
    clap_complete::generate(args.shell, &mut visible(&Cli::command()), "recant", &mut bytes);
    call.out.bytes(&bytes);
    Ok(Ended::Done)
}

/// A command without what is recant's own.
fn visible(command: &clap::Command) -> clap::Command {
    let shown = clap::Command::new(command.get_name().to_owned())
        .about(command.get_about().cloned().unwrap_or_default())
        .args(command.get_arguments().filter(|arg| !arg.is_hide_set()).cloned())
        .subcommands(command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(visible));
    if command.get_version().is_some() { shown.version(env!("CARGO_PKG_VERSION")) } else { shown }
}

/// Prints one manual page, or writes all of them.
pub fn man(call: &Call, args: &args::Man) -> Result<Ended, Problem> {
    let mut recant = Cli::command();
    recant.build();
    if let Some(dir) = &args.dir {
        return write_all(call, &recant, dir);
    }
    let mut command = &recant;
    // As the pages are called: snapshot-restore, recant-snapshot-restore.
    let words = args.verb.iter().flat_map(|word| word.split('-')).enumerate();
    for (_, verb) in words.filter(|(i, word)| *i > 0 || *word != "recant") {
        let unknown = || {
            Problem::new(Kind::Usage, format!("there is no verb {:?}", args.verb.join(" ")))
                .remedy("recant --help shows the verbs")
        };
        command = command.find_subcommand(verb).filter(|verb| !verb.is_hide_set()).ok_or_else(unknown)?;
    }
    call.out.bytes(&page(command)?);
    Ok(Ended::Done)
}

fn page(command: &clap::Command) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut bytes).at("write", "the manual page")?;
    // What comes after the options begins with examples everywhere: man-pages(7) has a name for that section.
    let text = String::from_utf8_lossy(&bytes).replacen(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n", 1);
    // clap_mangen leaves out the values of options, and that a word may be given several times.
    let Some((before, after)) = text.split_once(".SH SYNOPSIS\n") else { return Ok(text.into_bytes()) };
    let rest = after.split_once('\n').map_or("", |(_, rest)| rest);
    Ok(format!("{before}.SH SYNOPSIS\n{}\n{rest}", synopsis(command)).into_bytes())
}

/// A line: the verb, its options with their values, and what else it takes.
fn synopsis(command: &clap::Command) -> String {
    let escaped = |text: &str| text.replace('\\', "\\e").replace('-', "\\-");
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

/// `recant.1`, `recant-diff.1`, …: a page a verb, replaced where they are there.
fn write_all(call: &Call, recant: &clap::Command, dir: &Path) -> Result<Ended, Problem> {
    let folder = Dir::open(dir).at("open the folder", dir.display())?;
    let mut todo = vec![recant];
    while let Some(command) = todo.pop() {
        todo.extend(command.get_subcommands().filter(|command| !command.is_hide_set()));
        let name = format!("{}.1", command.get_display_name().unwrap_or("recant"));
        let at = folder.at(name.as_bytes());
        let bytes = page(command)?;
        call.fs.unlink_if_there(at).at("replace", at)?;
        let file = call.fs.create(at, 0o666).at("make", at)?;
        call.fs.write(&file, &bytes, &dir.join(&name)).at("write", at)?;
        call.out.detail(at);
    }
    Ok(Ended::Done)
}
