//! Which sessions belong to the project that the user is in.

use std::collections::HashMap;

use super::Call;
use super::place::absolute;
use super::problem::Problem;
use crate::capture::places::project_of;
use crate::fs::path::AbsPath;
use crate::session::header::Header;
use crate::session::store::Store;

/// The project that the user is in, and those of the directories that were looked at before.
pub struct Whose {
    /// The project; `None` for a reader at another machine, who has no working directory here.
    pub here: Option<AbsPath>,
    known: HashMap<AbsPath, AbsPath>,
}

impl Whose {
    /// From the working directory. Errors: there is none any more.
    pub fn here(call: &Call) -> Result<Self, Problem> {
        let here = if call.is_far { None } else { Some(project_of(&absolute(&super::cwd()?)?)) };
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
        let dir = directory(store, header)?;
        Some(self.known.entry(dir).or_insert_with_key(project_of).clone())
    }
}

/// The directory in which a session was begun: that of its command, else that of its first path.
fn directory(store: &Store, header: &Header) -> Option<AbsPath> {
    let session = store.session(&header.id).ok()?;
    if let Some(run) = session.run().ok()? {
        return Some(run.cwd);
    }
    let first = session.read_changes().ok()?.next().ok()??;
    first.path.parent()
}
