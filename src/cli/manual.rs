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
    for verb in &args.verb {
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
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.replacen(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n", 1).into_bytes())
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
