//! `session new`, `write`, `delete`, `mkdir`, `symlink`, `chmod`, `rename`: sessions of changes that are staged by hand.

use std::io::Read;
use std::path::Path;

use serde::Serialize;

use super::desk::Desk;
use super::fact::Fact;
use super::resolve::wanted_act::Want;
use super::signals;
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Id, Origin, Sort, Staging as Stage, Write};

/// A session that was begun, or has another name. JSON: docs/json.md.
#[derive(Debug, Serialize)]
pub struct Named {
    pub(crate) id: Id,
    pub(crate) name: Option<String>,
}

/// A change that was staged. JSON: docs/json.md.
#[derive(Debug, Serialize)]
pub struct Staged {
    pub(crate) session: Id,
    pub(crate) path: AbsPath,
    /// `None` if the path is back to what it was before.
    pub(crate) change: Option<Sort>,
}

impl Named {
    /// The id of the session: `YYYYMMDD-HHMMSS-xxxx`, by local time.
    pub fn id(&self) -> &str {
        self.id.as_str()
    }
}

/// A change to stage. A missing directory above the path has to be staged first.
pub enum Edit<'a> {
    /// A file.
    Write {
        /// The content, which is read to its end.
        content: &'a mut dyn Read,
        /// The name of the content, for an error.
        source: &'a str,
        /// The permission bits; else those of what is replaced, or 0666 less the umask.
        mode: Option<u32>,
        /// True to put it in place of a directory with all that is in it, too.
        over_directory: bool,
    },
    /// A deletion.
    Delete {
        /// True to delete a directory with all that is in it.
        recursive: bool,
    },
    /// A new directory, with these permission bits; else 0777 less the umask.
    Mkdir(Option<u32>),
    /// A symbolic link.
    Symlink {
        /// The text of the link.
        target: &'a [u8],
        /// True to put it in place of a directory with all that is in it, too.
        over_directory: bool,
    },
    /// Other permission bits for an existing object, with set-user-ID, set-group-ID and sticky bit.
    Chmod(u32),
}

impl Edit<'_> {
    /// Stages it at a path, which is relative to `cwd`.
    fn stage(self, stage: &mut Stage<'_>, path: &Path, cwd: &Path) -> Result<AbsPath, Error> {
        match self {
            Self::Write { content, source, mode, over_directory } => {
                stage.write(path, cwd, Write { content, source, mode, over_directory })
            }
            Self::Delete { recursive } => stage.delete(path, cwd, recursive),
            Self::Mkdir(mode) => stage.mkdir(path, cwd, mode),
            Self::Symlink { target, over_directory } => stage.symlink(target, path, cwd, over_directory),
            Self::Chmod(mode) => stage.chmod(mode, path, cwd),
        }
    }
}

/// Begins a session of staged changes. `name`: letters, digits, `.`, `_` and `-`, a letter first, 64 at most.
///
/// # Errors
/// [`Kind::Refused`](crate::Kind::Refused): the name is invalid, or a session of this project that is held has it.
pub fn begin(desk: &Desk, name: Option<&str>) -> Result<Named, Error> {
    let store = desk.made_store()?;
    desk.prepare_to_change(&store)?;
    signals::finished(desk, || {
        let session = store.begin(&desk.fs, Origin::Staged, name, None)?;
        desk.clear_away(&store);
        Ok(Named { id: session.id().clone(), name: name.map(Into::into) })
    })
}

/// Gives a session another name, or none.
///
/// # Errors
/// Another one has the name, or it is none; a person began the session, and an agent calls.
pub fn rename(desk: &Desk, key: &str, name: Option<&str>) -> Result<Named, Error> {
    let (store, mut session) = desk.locked(key, Want::Tend)?;
    signals::finished(desk, || {
        store.rename(&desk.fs, &mut session, name)?;
        desk.clear_away(store);
        Ok(Named { id: session.id().clone(), name: name.map(Into::into) })
    })
}

/// Stages changes, each at its path, which is relative to `cwd`: all of them, or none. A later one sees what an earlier one staged. The tree is
/// only read. `make_parents`: missing directories are staged, too.
///
/// # Errors
/// [`Kind::Refused`](crate::Kind::Refused): the session is not one of staged changes, or not pending; a path cannot be changed so. `Busy`:
/// another works in the session. `LeftOut`: the changes are staged, but a power cut may undo that.
pub fn stage<'p, 'e>(
    desk: &Desk,
    key: &str,
    cwd: &Path,
    edits: impl IntoIterator<Item = (&'p Path, Edit<'e>)>,
    make_parents: bool,
) -> Result<Vec<Staged>, Error> {
    let (store, mut session) = desk.locked(key, Want::Stage)?;
    let id = session.id().clone();
    signals::finished(desk, || {
        let mut stage = Stage::open(&desk.fs, store, &mut session, make_parents)?;
        let mut staged = Vec::new();
        for (path, edit) in edits {
            match edit.stage(&mut stage, path, cwd) {
                Ok(path) => staged.push(Staged { session: id.clone(), change: stage.sort_at(&path), path }),
                Err(why) => {
                    stage.give_up();
                    return Err(why);
                }
            }
        }
        stage.finish()?.iter().for_each(|error| desk.caller.tell(Fact::ObjectStays(error)));
        Ok(staged)
    })
}
