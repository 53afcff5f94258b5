//! An agent whose shell commands are held one by one: `agent.NAME.hold = 'shell'`.
//!
//! A mark in the store stands for each command that is to be held: made before the command is handed to the agent changed, removed by the run
//! that holds it. If it still is there afterwards, the agent has run something else.

use serde_json::Value;

use super::settings::name_of;
use crate::agent::by_command::{OFFERED, Use, answer_changed, answer_denied, answer_not_held, held};
use crate::agent::event::{Effect, Event, What};
use crate::agent::known::Agent;
use crate::agent::mark;
use crate::cli::Call;
use crate::cli::problem::Problem;
use crate::config::Hold;
use crate::error::command;

/// True if the settings have this agent's commands held one by one.
pub fn is_on(call: &Call, agent: Agent) -> bool {
    OFFERED.contains(&agent) && call.config.agents.get(agent.word()).is_some_and(|set| set.hold == Some(Hold::Shell))
}

/// The answer to an event; `None` if there is nothing to say. A tool that would write by itself, or of which it is not sure that it would be
/// held, is not used.
pub fn answer(call: &Call, agent: Agent, event: &Event, text: &[u8]) -> Option<Value> {
    match &event.what {
        What::Before(tool) => match Use::of(text, tool.effect != Effect::None) {
            Use::Command { call: id, input } => Some(
                changed(call, agent, event, &id, &input)
                    .unwrap_or_else(|problem| answer_denied(&format!("recant cannot hold it: {}", problem.message))),
            ),
            Use::Writes => Some(answer_denied(
                "recant holds shell commands here (agent.claude.hold): what is written goes through the shell, as by cat > FILE <<'EOF'",
            )),
            Use::Own | Use::Other => None,
        },
        What::After { tool, .. } => {
            let id = tool.call.as_deref()?;
            // Of one that goes on in the background it is not known yet.
            let is_background =
                || serde_json::from_slice::<Value>(text).is_ok_and(|event| event["tool_input"]["run_in_background"] == true);
            let why = "NOT held: recant did not run this command, and what it changed, if it ran, is real";
            (take_mark(call, id) && !is_background()).then(|| answer_not_held(&event.name, why))
        }
        What::TurnEnd => {
            held_so_far(call, agent, event).map(|said| serde_json::json!({ "systemMessage": format!("recant: {said}") }))
        }
        _ => None,
    }
}

fn changed(call: &Call, agent: Agent, event: &Event, id: &str, input: &Value) -> Result<Value, Problem> {
    let store = call.made_store()?;
    let own = std::env::current_exe().map_err(|error| Problem::refused(crate::error::reason(&error)))?;
    mark::make(&call.fs, &store, id)?;
    Ok(answer_changed(&held(input, &own.to_string_lossy(), &session(agent, event)?, id)))
}

/// The name of the session that an agent's commands are steps of.
fn session(agent: Agent, event: &Event) -> Result<String, Problem> {
    let short: String = event.session.chars().filter(char::is_ascii_alphanumeric).take(6).collect();
    Ok(if short.is_empty() { name_of(agent)? } else { format!("{}-{short}", name_of(agent)?) })
}

/// Removes the mark of a command; true if it was there, or if that cannot be told.
fn take_mark(call: &Call, id: &str) -> bool {
    call.store().map_or(true, |store| store.is_some_and(|store| mark::take(&call.fs, store, id)))
}

/// The count of changes held at the end of a turn, and how a person looks at them.
fn held_so_far(call: &Call, agent: Agent, event: &Event) -> Option<String> {
    let (store, name) = (call.store().ok()??, session(agent, event).ok()?);
    let (headers, _) = store.headers().ok()?;
    let header = headers.into_iter().rev().find(|header| header.name.as_deref() == Some(&name))?;
    let count = header.counts.changes - header.counts.inside;
    let changes = crate::cli::text::count(count, "change");
    (count > 0).then(|| format!("{changes} held: {}", command(format_args!("review {}", header.id.tail()))))
}
