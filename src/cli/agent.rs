//! An agent that calls recant without a terminal: it may look, hold and drop what is held. What becomes real, and what is taken back of
//! what is real, a person decides. A guard rail, not a jail: whoever has a shell can type what a person can.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use super::Call;
use super::args::{SnapshotVerb, Verb};
use super::problem::Problem;
use super::which::{self, Want};
use crate::config::AgentCommit;
use crate::error::shell_word;

/// What agents set for the commands that they run; RECANT_AGENT is for those that set nothing of their own.
const VARIABLES: [&str; 9] = [
    "RECANT_AGENT",
    "AI_AGENT",
    "CLAUDECODE",
    "CODEX_THREAD_ID",
    "CODEX_SANDBOX",
    "GEMINI_CLI",
    "CURSOR_AGENT",
    "OPENCODE",
    "CLINE_ACTIVE",
];

/// Refuses what only a person may decide, where an agent calls and nobody can be asked. `words` are those of the call, without the
/// program's name.
pub fn refuse(call: &Call, verb: &Verb, words: &[OsString]) -> Result<(), Problem> {
    let Some(variable) = VARIABLES.into_iter().find(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())) else {
        return Ok(());
    };
    let Some(want) = decided(verb) else { return Ok(()) };
    let allowed = call.config.agent_commit.value == AgentCommit::Allow;
    // Inside a run nothing is real.
    if call.can_ask || allowed || crate::capture::inside::inside().is_some() {
        return Ok(());
    }
    let message = format!("an agent calls ({variable} is set) without a terminal: a person decides what becomes real");
    Err(Problem::refused(message).remedy(format!("for the person to type: {}", typed(call, words, want))))
}

/// What is wanted of a session by a verb that changes what is real; `None` of any other verb.
fn decided(verb: &Verb) -> Option<Option<Want>> {
    match verb {
        Verb::Commit(args) if !args.what.dry_run => Some(Some(Want::Commit)),
        Verb::Rollback(args) if !args.what.dry_run => Some(Some(Want::RollBack)),
        Verb::Undo(args) if !args.0.what.dry_run => Some(Some(Want::RollBack)),
        Verb::Redo(args) if !args.back.what.dry_run => Some(Some(Want::Redo)),
        Verb::Snapshot { verb: SnapshotVerb::Restore(args) } if !args.dry_run => Some(None),
        Verb::Run(args) if args.commit => Some(None),
        _ => None,
    }
}

/// The call as a person would type it. `last` may be another session by then: it is named.
fn typed(call: &Call, words: &[OsString], want: Option<Want>) -> String {
    let mut words: Vec<OsString> = words.to_vec();
    // What the far side is told of the near one is no word of the person's.
    if let Some(at) = words.iter().position(|word| word == "--far") {
        words.drain(at..words.len().min(at + 2));
    }
    let id = want.and_then(|want| which::newest_here(call, want));
    if let (Some(id), Some(word)) = (id, words.iter_mut().find(|word| *word == "last")) {
        *word = id.tail().into();
    }
    let line: Vec<_> = words.iter().map(|word| shell_word(word.as_bytes())).collect();
    format!("recant {}", line.join(" "))
}
