//! The agent that calls, by its environment.

use crate::fs::dir::Dir;
use crate::session::by::{By, MOST, Pointer};

/// Variables that agents set for the commands they run, each with the agent's word; `None`: the value is the word. RECANT_AGENT is for
/// agents that set none of their own.
const VARIABLES: [(&str, Option<&str>); 15] = [
    ("RECANT_AGENT", None),
    ("CLAUDECODE", Some("claude")),
    ("CODEX_THREAD_ID", Some("codex")),
    ("CODEX_SANDBOX", Some("codex")),
    ("GEMINI_CLI", Some("gemini")),
    ("COPILOT_CLI", Some("copilot")),
    ("COPILOT_AGENT", Some("copilot")),
    ("OPENCODE", Some("opencode")),
    ("PI_CODING_AGENT", Some("pi")),
    ("CURSOR_AGENT", Some("cursor")),
    ("CLINE_ACTIVE", Some("cline")),
    ("AUGMENT_AGENT", Some("augment")),
    ("ANTIGRAVITY_AGENT", Some("antigravity")),
    ("GOOSE_TERMINAL", Some("goose")),
    ("AI_AGENT", None),
];

/// The variables in which agents give the id of their session.
const SESSIONS: [(&str, &str); 3] =
    [("claude", "CLAUDE_CODE_SESSION_ID"), ("codex", "CODEX_THREAD_ID"), ("gemini", "GEMINI_SESSION_ID")];

/// The variable that tells of an agent, with the agent's word; `None` if none is set.
pub fn variable() -> Option<(&'static str, String)> {
    VARIABLES.into_iter().find_map(|(name, word)| {
        let value = value(name)?;
        Some((name, word.map_or(value, str::to_owned)))
    })
}

/// The agent that calls; `None` for a person. Its turn is what RECANT_TURN says; else it is looked up in the store by the agent's session.
pub fn caller(store: &Dir) -> Option<By> {
    let (_, agent) = variable()?;
    let own = SESSIONS.into_iter().find(|(word, _)| *word == agent);
    let session = value("RECANT_AGENT_SESSION").or_else(|| value(own?.1));
    let told = value("RECANT_TURN").and_then(|turn| turn.parse().ok());
    let turn = told.or_else(|| Some(Pointer::read(store, &agent, session.as_deref()?)?.turn));
    Some(By { agent, session, turn })
}

/// A variable's value in one line; `None` if it is empty or missing.
fn value(name: &str) -> Option<String> {
    let value = std::env::var_os(name)?;
    let value = value.to_string_lossy();
    let line: String = value.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(MOST).collect();
    (!line.is_empty()).then_some(line)
}
