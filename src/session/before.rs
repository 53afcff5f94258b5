//! Originals that a run keeps beside its changes: `before/<hash>` is the content that a file had when the run found it, for a merge to
//! begin with.
//!
//! The hash of a `before` names its content. So steps, rewinds and forks need no account of it, and one that a crash cut short is none:
//! whoever opens it compares the hash. A missing one is no damage.

use std::fs::File;
use std::io::Seek;

use super::change::{Change, Changes};
use super::opened::{Session, mkdir_if_missing};
use crate::error::{At, Error};
use crate::fs::Fs;
use crate::fs::dir::{Dir, Sort, stat_of};
use crate::tree::hash::Hash;
use crate::tree::state::State;

/// The directory, in a session's.
pub(super) const DIRECTORY: &[u8] = b"before";

impl Session {
    /// Opens the content that a file had before the change, if it was kept and is whole.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn original(&self, change: &Change) -> Result<Option<File>, Error> {
        match change.before.object.as_ref().and_then(State::hash) {
            Some(hash) => kept(&self.dir, hash),
            None => Ok(None),
        }
    }
}

/// Keeps the content of a file, which has that hash, in the session's directory `session`. Syncs nothing.
///
/// # Errors
/// A system call failed; it is not kept.
pub fn keep(fs: &Fs, session: &Dir, from: &File, hash: Hash) -> Result<(), Error> {
    if kept(session, hash)?.is_some() {
        return Ok(());
    }
    mkdir_if_missing(fs, session.at(DIRECTORY))?;
    let (directory, name) = (session.at(DIRECTORY).open_dir()?, hash.to_string());
    let at = directory.at(name.as_bytes());
    // Left by a recant that was killed.
    fs.unlink_if_there(at)?;
    let to = fs.create(at, 0o600)?;
    fs.copy(from, &to, at).map(drop).map_err(|error| {
        // What is there is not whole; the disk may be full.
        drop(fs.unlink(at));
        error.into()
    })
}

/// Keeps bytes that a change of the session is to be made of, in the session's directory `session`. Syncs nothing.
///
/// # Errors
/// A system call failed; what was written until then counts as none.
pub fn keep_bytes(fs: &Fs, session: &Dir, bytes: &[u8]) -> Result<(), Error> {
    let hash = Hash::of(bytes);
    if kept(session, hash)?.is_some() {
        return Ok(());
    }
    mkdir_if_missing(fs, session.at(DIRECTORY))?;
    let (directory, name) = (session.at(DIRECTORY).open_dir()?, hash.to_string());
    let at = directory.at(name.as_bytes());
    fs.unlink_if_there(at)?;
    let to = fs.create(at, 0o600)?;
    Ok(fs.write(&to, bytes, at)?)
}

/// Copies the originals of these changes to another session's directory. Syncs nothing.
///
/// # Errors
/// A system call failed.
pub fn copy(fs: &Fs, from: &Session, changes: &Changes, to: &Dir) -> Result<(), Error> {
    for change in &changes.list {
        if let (Some(file), Some(hash)) = (from.original(change)?, change.before.object.as_ref().and_then(State::hash)) {
            keep(fs, to, &file, hash)?;
        }
    }
    Ok(())
}

/// The file of that content, to be read from its start.
fn kept(session: &Dir, hash: Hash) -> Result<Option<File>, Error> {
    let name = [DIRECTORY, b"/", hash.to_string().as_bytes()].concat();
    let mut file = match session.open_file_below(&name) {
        Err(error) if error.leads_nowhere() => return Ok(None),
        file => file?,
    };
    let shown = session.path().join("before").join(hash.to_string());
    let stat = stat_of(&file).at("look at", shown.display())?;
    if stat.sort != Sort::File || Hash::of_file(&file, stat.size).at("read", shown.display())? != hash {
        return Ok(None);
    }
    file.rewind().at("read", shown.display())?;
    Ok(Some(file))
}
