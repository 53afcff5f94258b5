//! Which sessions belong to the project that the user is in.

use std::collections::HashMap;

use super::Call;
use super::problem::Problem;
use super::which::begun_in;
use crate::fs::path::AbsPath;
use crate::session::header::Header;
use crate::session::store::Store;
use crate::tree::project::project_of;

/// The project that the user is in, and those of the directories that were looked at before.
pub struct Whose {
    /// The project; `None` for a reader at another machine, who has no working directory here.
    pub here: Option<AbsPath>,
    known: HashMap<AbsPath, AbsPath>,
}

impl Whose {
    /// From the working directory. Errors: there is none any more.
    pub fn here(call: &Call) -> Result<Self, Problem> {
        let here = if call.is_far { None } else { Some(project(&super::working_directory()?)) };
        Ok(Self { here, known: HashMap::new() })
    }

    /// Every session, whichever project it is of.
    pub fn any() -> Self {
        Self { here: None, known: HashMap::new() }
    }

    /// Whether a session belongs to the project that the user is in; every one does where there is none. `None` where its record
    /// cannot be read.
    pub fn is_here(&mut self, store: &Store, header: &Header) -> Option<bool> {
        let Some(here) = self.here.clone() else { return Some(true) };
        self.of(store, header).map(|project| project == here)
    }

    /// The project of a session; `None` where its record cannot be read.
    pub fn of(&mut self, store: &Store, header: &Header) -> Option<AbsPath> {
        let dir = begun_in(store, header)?;
        Some(self.known.entry(dir).or_insert_with_key(project).clone())
    }
}

fn project(dir: &AbsPath) -> AbsPath {
    project_of(dir, dirs::home_dir().as_deref())
}
