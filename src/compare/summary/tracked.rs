//! The paths that git tracks, before the changes or after them: what is tracked is a source, whatever its directory is called.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::rc::Rc;

use super::super::renames::Open;
use super::super::sources::{Content, End};
use crate::error::Error;
use crate::fs::{AbsPath, Roots};
use crate::session::Change;
use crate::tree::git_index;

/// The paths of one repository, relative to its directory.
type Paths = HashSet<Vec<u8>>;

pub struct Tracked<'c> {
    changes: &'c [Change],
    roots: Option<Roots>,
    /// Of each directory that was asked for, the repository that it lies in.
    known: HashMap<AbsPath, Option<Rc<Repository>>>,
}

struct Repository {
    top: AbsPath,
    paths: Paths,
}

impl<'c> Tracked<'c> {
    pub fn of(changes: &'c [Change]) -> Self {
        Self { changes, roots: None, known: HashMap::new() }
    }

    /// True if git tracks `path` in the repository that `below`, at or above it, lies in.
    pub fn has(&mut self, below: &AbsPath, path: &AbsPath, open: &mut Open<'_>) -> Result<bool, Error> {
        let Some(directory) = below.parent() else { return Ok(false) };
        let repository = self.repository(&directory, open)?;
        Ok(repository.is_some_and(|found| path.below(&found.top).is_some_and(|below| found.paths.contains(below))))
    }

    fn repository(&mut self, directory: &AbsPath, open: &mut Open<'_>) -> Result<Option<Rc<Repository>>, Error> {
        if let Some(known) = self.known.get(directory) {
            return Ok(known.clone());
        }
        let found = match (self.paths(directory, open)?, directory.parent()) {
            (Some(paths), _) => Some(Rc::new(Repository { top: directory.clone(), paths })),
            (None, Some(above)) => self.repository(&above, open)?,
            (None, None) => None,
        };
        self.known.insert(directory.clone(), found.clone());
        Ok(found)
    }

    /// The paths that the index of a repository in this directory has; `None` if there is none.
    fn paths(&mut self, directory: &AbsPath, open: &mut Open<'_>) -> Result<Option<Paths>, Error> {
        let Ok(index) = directory.join(b".git").and_then(|git| git.join(b"index")) else { return Ok(None) };
        let contents = match self.changes.binary_search_by(|change| change.path.cmp(&index)) {
            Ok(i) => vec![open(i, End::Before)?, open(i, End::After)?],
            Err(_) => self.on_tree(&index).into_iter().collect(),
        };
        let read = |content: Content| {
            let Content::File(file) = content else { return None };
            let mut bytes = Vec::new();
            file.take(git_index::MOST).read_to_end(&mut bytes).ok()?;
            git_index::paths(&bytes)
        };
        let read: Vec<_> = contents.into_iter().filter_map(read).collect();
        Ok((!read.is_empty()).then(|| read.into_iter().flatten().collect()))
    }

    fn on_tree(&mut self, path: &AbsPath) -> Option<Content> {
        if self.roots.is_none() {
            self.roots = Roots::read().ok();
        }
        let directory = self.roots.as_mut()?.directory(&path.parent()?).ok()?;
        directory.at(path.name()).open_file().ok().map(Content::File)
    }
}
