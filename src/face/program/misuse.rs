//! clap's errors, with hints where a word is another program's, and as a JSON object where JSON is wanted.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::error::{Error, Kind, command, set_call, shell_word};
use crate::face::call_end::Ended;
use crate::face::finish::finish;
use crate::face::out::{Form, Out};
use crate::fs::program;
use crate::settings::Color;
use crate::verb::Effect;

/// Prints clap's own answers: help and version to standard output, a misuse to standard error.
pub fn misused(mut error: clap::Error, args: &[OsString]) -> Ended {
    let is_never = |word: &OsString| word == "--color=never";
    let never = args.iter().any(is_never) || args.windows(2).any(|two| two[0] == "--color" && two[1] == "never");
    let color = if never { Color::Never } else { Color::Auto };
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let out = Out::new(Form::Text, color, false, false);
        out.rich(&error.render().ansi());
        return finish(&out, Ok(Ended::Done), Effect::None);
    }
    let tips = tips(&error, args);
    if !tips.is_empty() {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips.iter().map(Into::into).collect()));
    }
    let mut before_command = args.iter().skip(1).take_while(|arg| *arg != "--");
    if before_command.any(|arg| arg == "--json") {
        let text = error.render().to_string();
        let message = text.trim_start_matches("error: ").split("\n\n").next().unwrap_or_default();
        let problem = Error::usage(message.split_whitespace().collect::<Vec<_>>().join(" "));
        let problem = problem.with_remedy_if((!tips.is_empty()).then(|| tips.join("; ")));
        Out::new(Form::Json, color, false, false).problem(&problem);
    } else {
        // An error that nobody can read changes nothing.
        drop(error.print());
    }
    Ended::With(Kind::Usage)
}

/// Names recant's way to what an unknown verb means elsewhere, and where to find a number that is missing.
fn tips(error: &clap::Error, args: &[OsString]) -> Vec<String> {
    const IS_REAL: &str = "undo takes back what was committed";
    const HELD: &str = "discard ID drops what is held";
    if let Some(run) = held_program(error, args) {
        return vec![run];
    }
    if lacks_snapshot(error, args) {
        set_call(call_options(args));
        return vec![format!("{} shows the numbers", command("snapshot list"))];
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return Vec::new() };
    let before: Vec<&OsString> = args.iter().skip(1).take_while(|arg| **arg != **word).collect();
    let is_below = |verb: &str| before.iter().any(|word| *word == verb);
    let tips: &[&str] = match &**word {
        "delete" | "rm" | "remove" | "drop" if is_below("snapshot") => &["prune --snapshots --number N drops one"],
        "delete" | "rm" | "remove" | "drop" if is_below("session") => {
            &["session delete ID PATH stages a deletion", HELD, "prune --sessions ID removes the session"]
        }
        "rollback" | "revert" | "undo" | "reset" if is_below("snapshot") => &["snapshot restore N restores the directory"],
        _ if is_below("snapshot") || is_below("session") || is_below("checkpoint") => &[],
        "apply" | "accept" | "keep" => &["commit ID makes real what is held"],
        "drop" | "reject" | "abort" | "rm" => &[HELD],
        "revert" | "reset" => &[IS_REAL, HELD],
        "restore" => &[IS_REAL, "snapshot restore N restores a directory"],
        name if program::find(name).is_some() => {
            let quoted = |word: &OsString| shell_word(word.as_bytes()).into_owned();
            let (own, theirs) = args[1..].split_at(before.len());
            let words = own.iter().map(quoted).chain(["run".into(), "--".into()]).chain(theirs.iter().map(quoted));
            return vec![format!("recant {}", words.collect::<Vec<_>>().join(" "))];
        }
        _ => &[],
    };
    set_call(call_options(args));
    tips.iter().map(|tip| command(tip).into()).collect()
}

/// The command that holds a program which `agent run` does not know as an agent.
fn held_program(error: &clap::Error, args: &[OsString]) -> Option<String> {
    let value = |kind| match error.get(kind) {
        Some(ContextValue::String(value)) => Some(&**value),
        _ => None,
    };
    if error.kind() != ErrorKind::InvalidValue || value(ContextKind::InvalidArg) != Some("<AGENT>") {
        return None;
    }
    let run = args.windows(2).position(|two| two[0] == "agent" && two[1] == "run")? + 2;
    let program = value(ContextKind::InvalidValue)?;
    let at = args[run..].iter().position(|word| word == program)? + run;
    let words: Vec<_> = args[at..].iter().map(|word| shell_word(word.as_bytes())).collect();
    set_call(call_options(args));
    Some(command(format_args!("run --session NAME -- {}", words.join(" "))).into())
}

/// True if the number of a snapshot is missing.
fn lacks_snapshot(error: &clap::Error, args: &[OsString]) -> bool {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return false };
    let is_missing = error.kind() == ErrorKind::MissingRequiredArgument && missing.iter().any(|name| name == "<N>");
    is_missing && args.iter().skip(1).take_while(|word| *word != "--").any(|word| word == "snapshot")
}

/// The options without which a tip would be of another machine or store: `-H web1 --store DIR`.
fn call_options(args: &[OsString]) -> String {
    const OPTIONS: [(&str, &str); 3] = [("-H", "-H"), ("--host", "-H"), ("--store", "--store")];
    let value = |(i, word): (usize, &OsString)| {
        OPTIONS.iter().find_map(|(option, name)| {
            let value = match word.as_bytes().strip_prefix(option.as_bytes())? {
                [] => args.get(i + 1)?.as_bytes(),
                [b'=', value @ ..] => value,
                value if !option.starts_with("--") => value,
                _ => return None,
            };
            Some(format!("{name} {}", shell_word(value)))
        })
    };
    args.iter().enumerate().skip(1).filter_map(value).collect::<Vec<_>>().join(" ")
}
