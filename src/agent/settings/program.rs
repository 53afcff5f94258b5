//! The plugins of agents without hooks in their settings: a file of their own.

use super::super::known::Agent;
use super::command::Command;
use super::edit::{Edit, Wrong, line_of};
use super::form::Found;
use super::render::quoted;

const OPENCODE: &str = include_str!("../plugins/opencode.js");
const PI: &str = include_str!("../plugins/pi.ts");
/// The line of a plugin that names the program, up to its value.
const NAMES: &str = "const RECANT = ";

pub fn text(agent: Agent, command: &Command) -> String {
    let plain = if agent == Agent::Pi { PI } else { OPENCODE };
    plain.replacen(&format!("{NAMES}\"recant\""), &format!("{NAMES}{}", quoted(command.program())), 1)
}

/// The plugin's call of recant, if the text is the plugin, also of another version.
pub fn find(agent: Agent, text: &str) -> Option<Found> {
    let at = text.find(NAMES)?;
    let value = text[at + NAMES.len()..].lines().next()?.trim_end_matches(';');
    let is_ours = text.contains(&format!("\"hook\", \"{}\"", agent.word()));
    let program = serde_json::from_str(value).ok().filter(|_| is_ours)?;
    Some(Found { event: String::new(), program, line: line_of(text, at) })
}

pub fn add(agent: Agent, text: Option<&str>, command: &Command) -> Result<Edit, Wrong> {
    match text {
        Some(text) if !text.trim().is_empty() => Err(Wrong { line: 0, why: "it is another plugin, and not recant's".into() }),
        _ => Ok(Edit::whole(self::text(agent, command))),
    }
}

pub fn remove(agent: Agent, text: &str) -> String {
    if find(agent, text).is_some() { String::new() } else { text.to_owned() }
}
