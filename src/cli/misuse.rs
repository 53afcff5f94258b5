//! What clap says of words that are no call of recant: reports like any other, with what was meant where other programs call it so.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};

use super::args::Cli;
use super::out::{Form, Out};
use super::problem::Problem;
use super::{Effects, Ended, finish};
use crate::config::Color;
use crate::error::Kind;

/// clap's own answers: help and version to standard output; a misuse as a report of three lines at most.
pub fn misused(error: &clap::Error, args: &[OsString]) -> Ended {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    if matches!(error.kind(), DisplayHelp | DisplayVersion) {
        let never =
            args.windows(2).any(|two| two[0] == "--color" && two[1] == "never") || args.iter().any(|arg| arg == "--color=never");
        let out = Out::new(Form::Text, if never { Color::Never } else { Color::Auto }, false, false);
        out.rich(&error.render().ansi());
        return finish(&out, Ok(Ended::Done), Effects::None);
    }
    let words = || args.iter().skip(1).take_while(|arg| *arg != "--");
    let form = if words().any(|arg| arg == "--json" || arg == "--jsonl") { Form::Json } else { Form::Text };
    if error.kind() == DisplayHelpOnMissingArgumentOrSubcommand {
        if form == Form::Text {
            drop(error.print());
        } else {
            let problem = Problem::new(Kind::Usage, "a verb is missing").remedy(where_it_is_told(args));
            Out::new(form, Color::Auto, false, false).problem(&problem);
        }
        return Ended::With(Kind::Usage);
    }
    let text = error.render().to_string();
    let mut parts = text.split("\n\n").map(str::trim);
    let message = parts.next().unwrap_or_default().trim_start_matches("error: ");
    let message: Vec<&str> = message.lines().map(str::trim).collect();
    let (mut tip, mut usage) = (None, None);
    for part in parts {
        if let Some(words) = part.strip_prefix("tip: ") {
            tip = tip.or(Some(words.lines().next().unwrap_or_default().to_owned()));
        }
        if let Some(words) = part.strip_prefix("Usage: ") {
            usage = Some(format!("usage: {}", words.lines().next().unwrap_or_default()));
        }
    }
    // What begins with a dash was meant as an option, and which ones there are a usage does not tell.
    if tip.as_ref().is_some_and(|tip| tip.starts_with("to pass '-")) {
        (tip, usage) = (None, None);
    }
    let mut problem = Problem::new(Kind::Usage, message.join(" "));
    match meant(error, args) {
        Some(meant) => problem.remedy = Some(meant.into()),
        None => {
            problem.state = tip;
            problem.remedy = usage.or_else(|| Some(where_it_is_told(args)));
        }
    }
    Out::new(form, Color::Auto, false, false).problem(&problem);
    Ended::With(Kind::Usage)
}

/// Where the help of the verb is that these words begin with.
fn where_it_is_told(args: &[OsString]) -> String {
    let (mut command, mut words) = (<Cli as clap::CommandFactory>::command(), "recant".to_owned());
    for word in args.iter().skip(1).filter_map(|word| word.to_str()).filter(|word| !word.starts_with('-')) {
        let Some(verb) = command.find_subcommand(word).cloned() else { break };
        words = format!("{words} {word}");
        command = verb;
    }
    let what = if command.has_subcommands() { "the verbs" } else { "what it takes" };
    format!("{words} --help shows {what}")
}

/// What a verb is called here that other programs have under this name.
fn meant(error: &clap::Error, args: &[OsString]) -> Option<&'static str> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let is_of = |verb: &str| args.iter().skip(1).take_while(|arg| **arg != **word).any(|arg| arg == verb);
    match &**word {
        "delete" | "rm" | "remove" | "drop" if is_of("snapshot") => {
            Some("recant snapshot prune --number N takes one away, --keep N all but the newest, DIR --all all of a folder")
        }
        "rollback" | "revert" | "undo" | "reset" if is_of("snapshot") => {
            Some("recant snapshot restore N makes the folder as it was; recant rollback takes that back")
        }
        "delete" | "rm" | "remove" | "drop" if is_of("session") => Some(
            "recant session delete ID PATH stages a deletion; recant discard ID drops what is held, session prune ID the session",
        ),
        _ if is_of("snapshot") || is_of("session") || is_of("checkpoint") => None,
        "revert" | "reset" => Some("recant undo takes back what was committed; recant discard ID drops what is held"),
        "restore" => Some("recant rollback ID takes back what was committed; recant snapshot restore N makes a folder as it was"),
        _ => None,
    }
}
