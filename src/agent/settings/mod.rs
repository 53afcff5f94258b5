//! The settings of agents in which hooks stand: where they lie, and their text with and without recant's hooks. Text in, text out, but for
//! [`files`]: they are read there.
//!
//! All that an edit does not add stays byte for byte: comments, foreign keys, order, indentation, the end of the file. What cannot be parsed is
//! not edited.

pub mod command;
pub mod edit;
pub mod files;
mod groups;
mod json;
pub mod jsonc;
mod program;
mod render;
pub mod toml;

use command::Command;
use edit::{Edit, Found, Wrong};

use super::facts::{Agent, Form};

/// The hooks of recant in a text.
///
/// # Errors
/// The text cannot be parsed.
pub fn find(agent: Agent, form: Form, text: &str) -> Result<Vec<Found>, Wrong> {
    match form {
        Form::Groups | Form::Flat => json::find(agent, form, text),
        Form::Toml => toml::find(agent, text),
        Form::Program(_) => Ok(program::find(agent, text).into_iter().collect()),
    }
}

/// True if the text has all hooks as an installation writes them, and no others of recant.
///
/// # Errors
/// The text cannot be parsed.
pub fn is_installed(agent: Agent, form: Form, text: &str, command: &Command) -> Result<bool, Wrong> {
    match form {
        Form::Groups | Form::Flat => json::is_installed(agent, form, text, command),
        Form::Toml => toml::is_installed(agent, text, command),
        Form::Program(plain) => Ok(text == program::text(plain, command)),
    }
}

/// Adds the hooks to a text without any of recant's; `None`: there is no file yet.
///
/// # Errors
/// The text cannot be parsed, or holds something else where hooks belong.
pub fn add(agent: Agent, form: Form, text: Option<&str>, command: &Command) -> Result<Edit, Wrong> {
    match form {
        Form::Groups | Form::Flat => json::add(agent, form, text, command),
        Form::Toml => toml::add(agent, text.unwrap_or_default(), command),
        Form::Program(plain) => program::add(plain, text, command),
    }
}

/// Removes the hooks of recant, and what holds nothing else then. What is left of a plugin is empty.
///
/// # Errors
/// The text cannot be parsed.
pub fn remove(agent: Agent, form: Form, text: &str) -> Result<String, Wrong> {
    match form {
        Form::Groups | Form::Flat => json::remove(agent, form, text),
        Form::Toml => toml::remove(agent, text),
        Form::Program(_) => Ok(program::remove(agent, text)),
    }
}

#[cfg(test)]
mod tests;
