//! The files of agents' settings as they are now.

use super::facts::{Agent, Form, Scope};
use super::settings;
use super::settings::edit::{Found, Wrong};
use super::settings::files::{read, real};
use super::surroundings::{Surroundings, below};
use crate::error::Error;
use crate::fs::AbsPath;

/// A file in which an agent's hooks can stand.
pub struct File {
    /// The path as the agent finds it; the file need not exist.
    pub named: AbsPath,
    /// The path without links: that of the file itself.
    pub path: AbsPath,
    pub form: Form,
    /// Its text; `None` if there is none.
    pub text: Option<String>,
    /// The hooks of recant in it.
    pub hooks: Vec<Found>,
}

/// Reads the files in which an agent's hooks can stand. The first is the one that an installation makes.
///
/// # Errors
/// A file cannot be read or parsed.
pub fn files(of: &Surroundings<'_>, agent: Agent, scope: Scope) -> Result<Vec<File>, Error> {
    let directory = match scope {
        Scope::User => agent.home(of),
        Scope::Project => below(&of.project, agent.settings.project),
    };
    let names = agent.settings.project_files.filter(|_| scope == Scope::Project).unwrap_or(agent.settings.files);
    names.iter().map(|(name, form)| file(agent, below(&directory, name), *form)).collect()
}

fn file(agent: Agent, named: AbsPath, form: Form) -> Result<File, Error> {
    let path = real(&named)?;
    let text = read(&path)?;
    let hooks = text.as_deref().map_or(Ok(Vec::new()), |text| settings::find(agent, form, text));
    let hooks = hooks.map_err(|wrong| unparsed(&named, &wrong))?;
    Ok(File { named, path, form, text, hooks })
}

/// The error for a file that cannot be edited as it is.
pub fn unparsed(path: &AbsPath, wrong: &Wrong) -> Error {
    Error::refused(format!("{path}: {wrong}"))
        .with_path(path)
        .with_remedy("correct it first; recant edits only what it understands")
}

/// The index of the file in which hooks are put. Of several, the first that has recant's; else the first that is there with hooks of
/// others, where the first is not there; else the first. Codex CLI warns where hooks stand in both of its files.
pub fn chosen(files: &[File]) -> usize {
    let holds_others = |file: &File| file.form == Form::Toml && file.text.as_deref().is_some_and(settings::toml::has_hooks);
    let others = || files.iter().position(holds_others).filter(|_| files[0].text.is_none());
    files.iter().position(|file| !file.hooks.is_empty()).or_else(others).unwrap_or(0)
}
