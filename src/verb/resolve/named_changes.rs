//! The changes of a session that a call means if it names paths.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Changes, Id};
use crate::verb::error::not_in_session;

/// A path as somebody gave it, below the working directory: absolute, with links and `..` as they were typed.
#[derive(Debug, Clone)]
pub struct TypedPath {
    typed: PathBuf,
    path: PathBuf,
}

impl TypedPath {
    /// Puts `path` below `cwd`, unless it is absolute.
    pub fn below(cwd: &Path, path: &Path) -> Self {
        Self { typed: path.to_path_buf(), path: cwd.join(path) }
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The word that was typed.
    pub fn typed(&self) -> &Path {
        &self.typed
    }
}

/// The indexes of the changes at and under `paths`, of all changes if `paths` is empty. In path order, each once.
pub fn chosen(id: &Id, changes: &Changes, paths: &[TypedPath]) -> Result<Vec<usize>, Error> {
    chosen_among(id, (changes, &[]), paths)
}

/// Chooses like [`chosen`]; a path in which nothing has changed may be in the other lists.
pub fn chosen_among(id: &Id, (changes, others): (&Changes, &[&Changes]), paths: &[TypedPath]) -> Result<Vec<usize>, Error> {
    if paths.is_empty() {
        return Ok((0..changes.list.len()).collect());
    }
    Ok(at_and_under(changes, &all_named(id, (changes, others), paths)?))
}

/// The paths, as the lists have them.
pub fn all_named(id: &Id, (changes, others): (&Changes, &[&Changes]), paths: &[TypedPath]) -> Result<Vec<AbsPath>, Error> {
    paths.iter().map(|path| named(id, changes, others, path)).collect()
}

/// The indexes of the changes at and under paths, each once, in path order.
fn at_and_under(changes: &Changes, paths: &[AbsPath]) -> Vec<usize> {
    let mut chosen: Vec<usize> = paths.iter().flat_map(|path| changes.under(path)).collect();
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

/// A path as the first list has it that holds something there.
fn named(id: &Id, list: &Changes, others: &[&Changes], path: &TypedPath) -> Result<AbsPath, Error> {
    let named_here = list.named(path.path())?;
    match others {
        _ if !list.under(&named_here).is_empty() => Ok(named_here),
        [] => Err(not_in_session(id, list, &named_here)),
        [next, others @ ..] => named(id, next, others, path),
    }
}
