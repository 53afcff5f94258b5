//! Where the user stands: which sessions are those of his project.

use std::cell::RefCell;
use std::collections::HashMap;

use super::Call;
use super::problem::Problem;
use crate::fs::path::AbsPath;
use crate::session::header::Header;
use crate::session::store::Store;
use crate::tree::project::project_of;

/// A project, or everywhere; and the projects of the directories that were looked up before.
pub struct Scope {
    /// The top directory of the project; `None` where every session counts.
    pub project: Option<AbsPath>,
    known: RefCell<HashMap<AbsPath, AbsPath>>,
}

impl Scope {
    /// The project of the working directory; everywhere for a call from another machine, which has no working directory here.
    ///
    /// Errors: the working directory is gone.
    pub fn of(call: &Call) -> Result<Self, Problem> {
        if call.is_far { Ok(Self::everywhere()) } else { Self::here() }
    }

    /// The project of the working directory. Errors: the directory is gone.
    pub fn here() -> Result<Self, Problem> {
        Ok(Self { project: Some(project(&super::working_directory()?)), ..Self::everywhere() })
    }

    /// Every session, whichever project it is of.
    pub fn everywhere() -> Self {
        Self { project: None, known: RefCell::default() }
    }

    /// Whether a session counts. One whose directory cannot be told is of no project.
    pub fn has(&self, store: &Store, header: &Header) -> bool {
        self.tells(store, header) == Some(true)
    }

    /// The same; `None` where the directory cannot be told.
    pub fn tells(&self, store: &Store, header: &Header) -> Option<bool> {
        let Some(here) = &self.project else { return Some(true) };
        self.project_of(store, header).map(|project| project == *here)
    }

    /// The project of a session; `None` where its directory cannot be told.
    pub fn project_of(&self, store: &Store, header: &Header) -> Option<AbsPath> {
        let dir = begun_in(store, header)?;
        Some(self.known.borrow_mut().entry(dir).or_insert_with_key(project).clone())
    }
}

fn project(dir: &AbsPath) -> AbsPath {
    project_of(dir, dirs::home_dir().as_deref())
}

/// The directory in which a session was begun. Of one that does not record it: that of its command, else that of its first path.
pub fn begun_in(store: &Store, header: &Header) -> Option<AbsPath> {
    if let Some(dir) = &header.cwd {
        return Some(dir.clone());
    }
    // What cannot be read is of no project; whoever names it by its id is told why.
    let session = store.session(&header.id).ok()?;
    if let Some(run) = session.run().ok()? {
        return Some(run.cwd);
    }
    session.read_changes().ok()?.next().ok()??.path.parent()
}
