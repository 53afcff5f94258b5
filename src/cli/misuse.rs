//! clap's errors as reports like any other. Suggests recant's verb if other programs use the word that was typed.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory};

use super::args::Cli;
use super::out::{Form, Out};
use super::problem::Problem;
use super::{Effects, Ended, finish};
use crate::config::Color;
use crate::config::edits;
use crate::error::{Kind, command, recant, set_call, shell_word};

/// Prints clap's own answers: help and version to standard output, a misuse as a report of three lines at most.
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
    let form = if words().any(|arg| arg == "--json" || arg == "--brief") { Form::Json } else { Form::Text };
    if error.kind() == DisplayHelpOnMissingArgumentOrSubcommand {
        if form == Form::Text {
            drop(error.print());
        } else {
            let problem = Problem::new(Kind::Usage, "a verb is missing").remedy(where_it_is_told(args));
            Out::new(form, Color::Auto, false, false).problem(&problem);
        }
        return Ended::With(Kind::Usage);
    }
    set_call(call_options(args));
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
    // A word with a dash was meant as an option, and the usage does not list the options.
    if tip.as_ref().is_some_and(|tip| tip.starts_with("to pass '-")) {
        (tip, usage) = (None, None);
    }
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) {
        tip = similar(word, args);
    }
    let mut problem = Problem::new(Kind::Usage, message.join(" "));
    if let Some(meant) = meant(error, args) {
        problem.remedy = Some(meant);
    } else if let Some(last) = last(error, args).or_else(|| which_step(error, args)) {
        (problem.state, problem.remedy) = (usage, Some(last));
    } else {
        problem.state = tip;
        problem.remedy = usage.or_else(|| Some(where_it_is_told(args)));
    }
    Out::new(form, Color::Auto, false, false).problem(&problem);
    Ended::With(Kind::Usage)
}

/// The options that commands in messages repeat: `-H web1 --store DIR`. Words after `run` may be the command's.
fn call_options(args: &[OsString]) -> String {
    const OPTIONS: [(&str, &[&str]); 2] = [("-H", &["-H", "--host"]), ("--store", &["--store"])];
    let words: Vec<&[u8]> =
        args.iter().skip(1).map(|word| word.as_bytes()).take_while(|word| ![&b"--"[..], b"run"].contains(word)).collect();
    let value = |names: &[&str]| {
        words.iter().enumerate().find_map(|(n, word)| {
            names.iter().find_map(|name| match word.strip_prefix(name.as_bytes())? {
                [] => words.get(n + 1).copied(),
                [b'=', value @ ..] => Some(value),
                value if !name.starts_with("--") => Some(value),
                _ => None,
            })
        })
    };
    let given = OPTIONS.iter().filter_map(|(option, names)| Some(format!("{option} {}", shell_word(value(names)?))));
    given.collect::<Vec<_>>().join(" ")
}

/// The verb that these words begin with, and its whole name: `session write`.
fn verb(args: &[OsString]) -> (Command, String) {
    let (mut command, mut name) = (Cli::command(), String::new());
    for word in args.iter().skip(1).filter_map(|word| word.to_str()).filter(|word| !word.starts_with('-')) {
        // The value of an option before the verb is no verb.
        let Some(verb) = command.find_subcommand(word).cloned() else { continue };
        let blank = if name.is_empty() { "" } else { " " };
        name = format!("{name}{blank}{word}");
        command = verb;
    }
    (command, name)
}

/// The remedy for a mistyped verb: those nearest to it, by at most two letters and at most half of it.
fn similar(word: &str, args: &[OsString]) -> Option<String> {
    let most = (word.chars().count() / 2).min(2);
    let (above, _) = verb(&args[..args.iter().position(|arg| **arg == *word).unwrap_or(args.len())]);
    let seen = above.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name);
    let near: Vec<(usize, &str)> = seen.map(|verb| (edits(verb, word), verb)).filter(|(n, _)| *n <= most).collect();
    let least = near.iter().map(|(n, _)| *n).min()?;
    let nearest: Vec<String> = near.iter().filter(|(n, _)| *n == least).map(|(_, verb)| format!("'{verb}'")).collect();
    Some(match &nearest[..] {
        [one] => format!("a similar subcommand exists: {one}"),
        many => format!("similar subcommands exist: {}", many.join(", ")),
    })
}

/// The command with `last`, for a verb that lacks its session.
fn last(error: &clap::Error, args: &[OsString]) -> Option<String> {
    const OF_SESSIONS: [&str; 5] = ["commit", "rollback", "redo", "confirm", "discard"];
    let (_, name) = verb(args);
    let lacks = match error.get(ContextKind::InvalidArg)? {
        ContextValue::Strings(lacks) => lacks.iter().any(|lacks| lacks.contains("ID")),
        ContextValue::String(lacks) => lacks.contains("ID"),
        _ => false,
    };
    let is_missing = error.kind() == clap::error::ErrorKind::MissingRequiredArgument && lacks;
    (is_missing && OF_SESSIONS.contains(&&*name)).then(|| command(format_args!("{name} last")))
}

/// The command that lists the steps, for a rewind that lacks one.
fn which_step(error: &clap::Error, args: &[OsString]) -> Option<String> {
    let Some(ContextValue::Strings(lacks)) = error.get(ContextKind::InvalidArg) else { return None };
    let matches = Cli::command().ignore_errors(true).try_get_matches_from(args).ok()?;
    let (verb, below) = matches.subcommand()?;
    let id = below.try_get_one::<String>("id").ok().flatten()?;
    let lacks_step = verb == "rewind" && matches!(&lacks[..], [lacks] if lacks.contains("STEP"));
    lacks_step.then(|| format!("{} lists the steps", command(format_args!("steps {}", shell_word(id.as_bytes())))))
}

/// Names the help of the verb that these words begin with.
fn where_it_is_told(args: &[OsString]) -> String {
    let (verb, name) = verb(args);
    let words = if name.is_empty() { "recant".to_owned() } else { format!("recant {name}") };
    let what = if verb.has_subcommands() { "the verbs" } else { "what it takes" };
    format!("{words} --help shows {what}")
}

/// The verb here for a word that other programs use.
fn meant(error: &clap::Error, args: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let is_of = |verb: &str| args.iter().skip(1).take_while(|arg| **arg != **word).any(|arg| arg == verb);
    let recant = recant();
    match &**word {
        "delete" | "rm" | "remove" | "drop" if is_of("snapshot") => Some(format!(
            "{recant} prune --snapshots --number N takes one away, --keep N all but the newest, --all DIR all of a directory"
        )),
        "rollback" | "revert" | "undo" | "reset" if is_of("snapshot") => {
            Some(format!("{recant} snapshot restore N makes the directory as it was; {recant} rollback takes that back"))
        }
        "delete" | "rm" | "remove" | "drop" if is_of("session") => Some(format!(
            "{recant} session delete ID PATH stages a deletion; {recant} discard ID drops what is held, prune --sessions ID the session"
        )),
        _ if is_of("snapshot") || is_of("session") || is_of("checkpoint") => None,
        "revert" | "reset" => {
            Some(format!("{recant} undo takes back what was committed; {recant} discard ID drops what is held"))
        }
        "restore" => Some(format!(
            "{recant} rollback ID takes back what was committed; {recant} snapshot restore N makes a directory as it was"
        )),
        _ => None,
    }
}
