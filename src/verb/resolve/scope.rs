//! The user's project, and the sessions that belong to it.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Header, Store};
use crate::tree::project_of;
use crate::verb::desk::Desk;
use crate::verb::error::no_project;

/// A project, or everywhere. Keeps the projects of directories that were looked up before.
pub struct Scope {
    /// The top directory of the project; `None` if every session counts.
    pub project: Option<AbsPath>,
    known: RefCell<HashMap<AbsPath, AbsPath>>,
}

impl Scope {
    /// The scope of a call: the project of the working directory; everywhere if it comes from another machine, with no such directory here.
    ///
    /// Errors: the working directory is gone.
    pub fn of(desk: &Desk) -> Result<Self, Error> {
        if desk.is_far() { Ok(Self::everywhere()) } else { Self::here() }
    }

    /// The project of the working directory. Errors: the directory is gone.
    pub fn here() -> Result<Self, Error> {
        let dir = crate::capture::working_directory().map_err(|_| no_project())?;
        Ok(Self::of_directory(&dir))
    }

    /// The project of a directory.
    pub fn of_directory(dir: &AbsPath) -> Self {
        let project = project(dir);
        Self { project: Some(project.clone()), known: RefCell::new(HashMap::from([(dir.clone(), project)])) }
    }

    /// The scope of every session, whichever project it belongs to.
    pub fn everywhere() -> Self {
        Self { project: None, known: RefCell::default() }
    }

    /// Tells whether a session belongs to the scope. One of an unknown directory belongs to no project.
    pub fn has(&self, store: &Store, header: &Header) -> bool {
        self.tells(store, header) == Some(true)
    }

    /// Tells whether a session belongs to the scope; `None` if its directory is unknown.
    pub fn tells(&self, store: &Store, header: &Header) -> Option<bool> {
        let Some(here) = &self.project else { return Some(true) };
        self.project_of(store, header).map(|project| project == *here)
    }

    /// Tells whether a directory belongs to the scope.
    pub fn has_directory(&self, dir: &AbsPath) -> bool {
        let known = || self.known.borrow_mut().entry(dir.clone()).or_insert_with_key(project).clone();
        self.project.as_ref().is_none_or(|here| known() == *here)
    }

    /// The project of a session; `None` if its directory is unknown.
    pub fn project_of(&self, store: &Store, header: &Header) -> Option<AbsPath> {
        let dir = begun_in(store, header)?;
        Some(self.known.borrow_mut().entry(dir).or_insert_with_key(project).clone())
    }
}

fn project(dir: &AbsPath) -> AbsPath {
    project_of(dir, dirs::home_dir().as_deref())
}

/// The directory in which a session was begun. If it is not recorded: that of its command, else that of its first path.
pub fn begun_in(store: &Store, header: &Header) -> Option<AbsPath> {
    if let Some(dir) = &header.cwd {
        return Some(dir.clone());
    }
    // An unreadable session is of no project; whoever names it by its id is told why.
    let session = store.session(&header.id).ok()?;
    if let Some(run) = session.run().ok()? {
        return Some(run.command.cwd);
    }
    session.read_changes().ok()?.next().ok()??.path.parent()
}
