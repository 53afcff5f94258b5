//! `hook`: the face of an agent's hook. An error of recant's is noted and told, but never an agent's: the exit status is always 0.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use anyhow::Context as _;

use super::uncovered;
use crate::agent::{Answers, When};
use crate::error::{At, Error};
use crate::face::args::Hook;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures;
use crate::face::find_store::{absolute, own_program, whole};
use crate::face::out::Out;
use crate::fs::AbsPath;
use crate::verb::agent::hook::{self as verb, Notice, Start};
use crate::verb::agent::take_snapshots::take;
use crate::verb::{Taking, Told, Untaken};

/// The most bytes of an event that are read. A tool may write a large file.
const MOST: u64 = 64 << 20;

pub fn hook(call: &Call, args: &Hook) -> Result<Ended, Error> {
    if let (Some(when), Some(directory)) = (args.take, &args.dir) {
        take(call, when, &absolute(directory)?, args.turn)?;
        return Ok(Ended::Done);
    }
    let began = crate::fs::now();
    let text = event()?;
    if let Some(file) = &args.record {
        verb::record(call, &absolute(&whole(file)?)?, &text)?;
    }
    let told = Told {
        agent: args.agent,
        text: &text,
        began,
        variable: &|name| std::env::var_os(name),
        start: &|when, directory, turn| start(call, args, when, directory, turn),
    };
    let notice = verb::hook(call, &told).unwrap_or_else(|problem| {
        call.out.warn(problem.message());
        None
    });
    answer(&call.out, args.agent.answers, notice.as_ref());
    Ok(Ended::Done)
}

/// Reads the event. The rest is of no use, but an agent whose pipe breaks takes that for a failure.
fn event() -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    let mut input = std::io::stdin().lock();
    let read = input.by_ref().take(MOST).read_to_end(&mut text);
    let read = read.and_then(|_| std::io::copy(&mut input, &mut std::io::sink()));
    read.at("read the event from", "standard input")?;
    Ok(text)
}

/// Starts the process that takes a snapshot, apart from the hook's pipes and process group.
fn start(call: &Call, args: &Hook, when: When, directory: &AbsPath, turn: u64) -> Result<Taking, Error> {
    let mut command = crate::fs::command(own_program()?);
    command.arg("--store").arg(call.store_path()?.as_path());
    command.args(["hook", args.agent.word(), "--take", when.word(), "--turn"]).arg(turn.to_string());
    command.arg("--dir").arg(directory.as_path()).process_group(0).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    Ok(Taking(command.spawn().context("cannot start recant hook --take")?))
}

/// Says what the agent shows its person, or reads itself, in the form that it reads: documentation of hooks of Claude Code, Codex, Gemini CLI.
fn answer(out: &Out, how: Answers, notice: Option<&Notice>) {
    let said = notice.map(|notice| (notice, words(out, notice)));
    match (said, how) {
        // It reads no context.
        (Some((Notice::Starts(_), _)), Answers::Text) => {}
        (Some((Notice::Starts(_), said)), _) => {
            let context = serde_json::json!({ "hookEventName": "SessionStart", "additionalContext": format!("recant: {said}") });
            out.line(serde_json::json!({ "hookSpecificOutput": context }));
        }
        (Some((_, said)), Answers::Text) => out.warn(said),
        (Some((_, said)), _) => out.line(serde_json::json!({ "systemMessage": format!("recant: {said}") })),
        (None, Answers::AlwaysJson) => out.line("{}"),
        (None, _) => {}
    }
}

fn words(out: &Out, notice: &Notice) -> String {
    match notice {
        Notice::Starts(Start::Held { id }) => {
            let tail = id.rsplit('-').next().unwrap_or(id);
            format!("held: what you change in files lies in session {tail} until a person commits it; recant shows it")
        }
        Notice::Starts(Start::Covered { directory, sessions: 0, .. }) => {
            format!("your turns in {directory} can be taken back")
        }
        Notice::Starts(Start::Covered { directory, sessions, changes }) => {
            let pending = format!("{} in {}", figures::count(*changes, "change"), figures::count(*sessions, "session"));
            format!("your turns in {directory} can be taken back; pending: {pending}; recant shows it")
        }
        Notice::NoTurns(problem) => format!("no turn can be undone here: {}", problem.message()),
        Notice::NoTurn(problem) => format!("this turn cannot be undone: {}", problem.message()),
        Notice::Untaken { n, why } => {
            let why = match why {
                Untaken::Failed(why) => why.clone(),
                Untaken::Ended => "the process that takes its snapshot was ended".into(),
                Untaken::Unfinished(directory) => format!("{directory} is large, and its snapshot is not complete yet"),
            };
            format!("turn {n} cannot be undone: {why}")
        }
        Notice::Lost { n, things } => format!("turn {n}: {}", uncovered::lines(out, things, false).join("\n")),
    }
}
