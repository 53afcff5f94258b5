//! The agent that calls, by its environment.

use crate::agent::{Agent, known};
use crate::fs::Dir;
use crate::session::{ActingAgent, MOST, Pointer};

/// The variable that tells of an agent, with the agent's word; `None` if none is set.
pub fn variable() -> Option<(&'static str, String)> {
    known::variables().find_map(|(name, word)| {
        let value = value(name)?;
        Some((name, word.map_or(value, str::to_owned)))
    })
}

/// The agent that calls; `None` for a person. Its turn is what RECANT_TURN says; else it is looked up in the store by the agent's session.
pub fn caller(store: &Dir) -> Option<ActingAgent> {
    let (_, agent) = variable()?;
    let session = value("RECANT_AGENT_SESSION").or_else(|| value(Agent::of(&agent)?.session?));
    let told = value("RECANT_TURN").and_then(|turn| turn.parse().ok());
    let turn = told.or_else(|| Some(Pointer::read(store, &agent, session.as_deref()?)?.turn));
    Some(ActingAgent { agent, session, turn })
}

/// A variable's value in one line; `None` if it is empty or missing.
fn value(name: &str) -> Option<String> {
    let value = std::env::var_os(name)?;
    let value = value.to_string_lossy();
    let line: String = value.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(MOST).collect();
    (!line.is_empty()).then_some(line)
}
