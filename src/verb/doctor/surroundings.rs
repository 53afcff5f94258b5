//! The facts that `doctor` has from its face.

use crate::agent::Surroundings as OfAgents;
use crate::capture::Pass;
use crate::error::Error;
use crate::fs::in_path;

/// Facts about this process.
pub struct Surroundings<'a> {
    /// The places of agents' settings.
    pub agents: OfAgents<'a>,
    /// The paths that stay real in a run by default.
    pub usual: Vec<Pass>,
    /// Adds the remedy that all verbs have for a file system that cannot be written to.
    pub with_remedy: &'a dyn Fn(Error) -> Error,
}

impl Surroundings<'_> {
    /// True for the name of a program in PATH.
    pub fn has_program(&self, name: &str) -> bool {
        (self.agents.variable)("PATH").is_some_and(|path| in_path(&path, name).is_some())
    }
}
