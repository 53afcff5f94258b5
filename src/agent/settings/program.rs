//! The plugins of agents without hooks in their settings: a file of their own.

use super::super::facts::Agent;
use super::command::Command;
use super::edit::{Edit, Found, Wrong, line_of};
use super::render::quoted;

/// The line of a plugin that names the program, up to its value.
const NAMES: &str = "const RECANT = ";

/// The plugin, with the program that it calls put in.
pub fn text(plain: &str, command: &Command) -> String {
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

pub fn add(plain: &str, text: Option<&str>, command: &Command) -> Result<Edit, Wrong> {
    match text {
        Some(text) if !text.trim().is_empty() => Err(Wrong { line: 0, why: "it is another plugin, not recant's".into() }),
        _ => Ok(Edit::whole(self::text(plain, command))),
    }
}

pub fn remove(agent: Agent, text: &str) -> String {
    if find(agent, text).is_some() { String::new() } else { text.to_owned() }
}
