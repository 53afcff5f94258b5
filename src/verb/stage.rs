//! `session new`, `write`, `delete`, `mkdir`, `symlink`, `chmod`, `rename`: sessions of changes that are staged by hand.

use std::path::Path;

use serde::Serialize;

use super::desk::Desk;
use super::fact::Fact;
use super::resolve::want::Want;
use super::signals;
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Id, Origin, Sort, Staging as Stage, Write};

/// A session that was begun, or has another name. JSON: docs/json.md.
#[derive(Debug, Serialize)]
pub struct Named {
    pub id: Id,
    pub name: Option<String>,
}

/// A change that was staged. JSON: docs/json.md.
#[derive(Debug, Serialize)]
pub struct Staged {
    pub session: Id,
    pub path: AbsPath,
    /// `None` if the path is back to what it was before.
    pub change: Option<Sort>,
}

/// A change to stage.
pub enum Edit<'a> {
    /// A file with this content.
    Write(Write<'a>),
    /// `recursive`: a directory with all that is in it, too.
    Delete { recursive: bool },
    /// A new directory, with these permission bits; else 0777 less the umask.
    Mkdir(Option<u32>),
    /// A link. `over_directory`: in place of a directory with all that is in it, too.
    Symlink { target: &'a [u8], over_directory: bool },
    /// Other permission bits.
    Chmod(u32),
}

/// Begins a session.
///
/// # Errors
/// Another one has the name, or it is none.
pub fn new(desk: &Desk, name: Option<&str>) -> Result<Named, Error> {
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

/// Stages a change at a path, which is relative to `cwd`. `make_parents`: its missing directories are staged, too.
///
/// # Errors
/// The session is not one of staged changes, or not pending; the path cannot be changed so. With `Kind::LeftOut` the change is staged.
pub fn stage(desk: &Desk, key: &str, (path, cwd): (&Path, &Path), edit: Edit<'_>, make_parents: bool) -> Result<Staged, Error> {
    let (store, mut session) = desk.locked(key, Want::Stage)?;
    let id = session.id().clone();
    signals::finished(desk, || {
        let mut stage = Stage::open(&desk.fs, store, &mut session, make_parents)?;
        let staged = match edit {
            Edit::Write(write) => stage.write(path, cwd, write),
            Edit::Delete { recursive } => stage.delete(path, cwd, recursive),
            Edit::Mkdir(mode) => stage.mkdir(path, cwd, mode),
            Edit::Symlink { target, over_directory } => stage.symlink(target, path, cwd, over_directory),
            Edit::Chmod(mode) => stage.chmod(mode, path, cwd),
        };
        let path = match staged {
            Ok(path) => path,
            Err(why) => {
                stage.give_up();
                return Err(why);
            }
        };
        let change = stage.sort_at(&path);
        stage.finish()?.iter().for_each(|error| desk.caller.tell(Fact::ObjectStays(error)));
        Ok(Staged { session: id, path, change })
    })
}
