//! Reaches spots and paths: keeps directories open by descriptor, the last ones through all phases.

use std::collections::HashMap;
use std::rc::Rc;

use super::journal::Journal;
use super::step::Spot;
use crate::error::IoError;
use crate::fs::{AbsPath, Dir, Entry, Roots, Shown, deep};

/// The open directories through which spots and paths are reached.
pub struct Reach {
    pub roots: Roots,
    session: Rc<Dir>,
    held: HashMap<Vec<u8>, Rc<Dir>>,
    /// The directory that was asked for last: names that follow each other mostly share it.
    last: Option<(Vec<u8>, Rc<Dir>)>,
    /// Directories of the tree as Prepare had them.
    before: HashMap<AbsPath, Rc<Dir>>,
}

/// A directory and the last name in it.
pub struct Named<'p> {
    pub dir: Rc<Dir>,
    pub name: &'p [u8],
}

impl Named<'_> {
    pub fn at(&self) -> Entry<'_> {
        self.dir.at(self.name)
    }
}

impl Reach {
    /// Makes one for the session whose directory is `session`.
    pub fn new(session: &Dir) -> Result<Self, IoError> {
        let roots = Roots::read()?;
        let session = session.open_below(b"")?;
        Ok(Self { roots, session: Rc::new(session), held: HashMap::new(), last: None, before: HashMap::new() })
    }

    /// Makes one for the paths of a journal.
    pub fn of(session: &Dir, journal: &Journal) -> Result<Self, IoError> {
        let mut reach = Self::new(session)?;
        reach.roots.lose(&journal.head.lost);
        Ok(reach)
    }

    pub fn session(&self) -> Rc<Dir> {
        self.session.clone()
    }

    pub fn path<'p>(&mut self, path: &'p AbsPath) -> Result<Named<'p>, IoError> {
        let Some((parent, name)) = path.split() else { return Err(no_name(path)) };
        if let Some((_, dir)) = self.last.as_ref().filter(|(last, _)| last == parent) {
            return Ok(Named { dir: dir.clone(), name });
        }
        let dir = self.roots.directory(&parent_of(path)?)?;
        self.last = Some((parent.to_vec(), dir.clone()));
        Ok(Named { dir, name })
    }

    pub fn spot<'p>(&mut self, spot: &'p Spot) -> Result<Named<'p>, IoError> {
        match spot {
            Spot::Tree(path) => self.path(path),
            Spot::Session(below) => self.below(below),
        }
    }

    /// Opens the directory of a name below the session's directory.
    pub fn below<'p>(&mut self, below: &'p [u8]) -> Result<Named<'p>, IoError> {
        let (parent, name) = split(below);
        Ok(Named { dir: self.held(parent)?, name })
    }

    pub fn held(&mut self, below: &[u8]) -> Result<Rc<Dir>, IoError> {
        if let Some(dir) = self.held.get(below) {
            return Ok(dir.clone());
        }
        let dir = Rc::new(match deep(below) {
            None => self.session.open_below(below)?,
            Some((above, rest)) => self.held(above)?.open_below(rest)?,
        });
        if self.held.len() >= self.roots.most_open() {
            self.held.clear();
        }
        self.held.insert(below.to_vec(), dir.clone());
        Ok(dir)
    }

    /// Opens directories of the tree anew from here on: what was planned is done where the paths lead now.
    pub fn reopen(&mut self) {
        self.last = None;
        self.before = self.roots.forget_all();
    }

    /// For the undo: works in the directories that the steps worked in, even if somebody has moved them since.
    pub fn going_back(mut self) -> Self {
        self.last = None;
        self.held.clear();
        match self.roots.most_open() {
            // It opens its own directories, even if descriptors were too few for the steps.
            ..16 => {
                self.before.clear();
                self.roots.close_all();
            }
            _ => self.roots.know(self.before.clone()),
        }
        self
    }

    /// Reaches what Prepare made: where it was made, as long as that directory is held.
    pub fn prepared<'p>(&mut self, spot: &'p Spot) -> Result<Named<'p>, IoError> {
        let held = |path: &'p AbsPath| Some(Named { dir: self.before.get(&path.parent()?)?.clone(), name: path.name() });
        match spot {
            Spot::Tree(path) => held(path).map_or_else(|| self.path(path), Ok),
            Spot::Session(below) => self.below(below),
        }
    }

    /// Forgets what was opened at and under the directory `path`: it names another object now.
    pub fn forget(&mut self, path: &AbsPath) {
        self.last = None;
        self.roots.forget(path);
    }
}

/// The directory of a path, or an I/O error if there is none.
pub fn parent_of(path: &AbsPath) -> Result<AbsPath, IoError> {
    path.parent().ok_or_else(|| no_name(path))
}

fn no_name(path: &AbsPath) -> IoError {
    let source = std::io::Error::other("the root directory has no name");
    IoError { path: path.to_string(), act: "find the directory of", source }
}

/// Splits what lies below the session's directory into its directory and last name.
pub fn split(below: &[u8]) -> (&[u8], &[u8]) {
    below.iter().rposition(|b| *b == b'/').map_or((&b""[..], below), |cut| (&below[..cut], &below[cut + 1..]))
}

impl std::fmt::Display for Spot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Spot::Session(below) => write!(f, "{} in the session", Shown(below)),
            Spot::Tree(path) => path.fmt(f),
        }
    }
}

/// Turns a missing directory on the way into `None`: a name that it would hold is not there.
pub fn open(opened: Result<Named<'_>, IoError>) -> Result<Option<Named<'_>>, IoError> {
    match opened {
        Ok(named) => Ok(Some(named)),
        Err(error) if error.leads_nowhere() => Ok(None),
        Err(error) => Err(error),
    }
}
