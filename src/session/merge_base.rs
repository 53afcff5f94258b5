//! Contents that a session keeps beside its changes, for a merge to begin with: `before/<hash>` is what a file had when the run found it, or
//! what a commit put there.
//!
//! The hash of a `before` names its content. So steps, rewinds and forks need no account of it, and one that a crash cut short is none:
//! whoever opens it compares the hash. A missing one is no damage.

use std::fs::File;
use std::io::Seek;

use super::change::{Change, Changes};
use super::open_session::{Session, mkdir_if_missing};
use crate::error::{At, Error, IoError};
use crate::fs::{AbsPath, Dir, Entry, Fs, Sort, stat_of};
use crate::tree::{Hash, State};

/// The most files of the tree that a run may have changed for any to be kept.
pub const FILES: usize = 500;

/// The most files that a commit may have changed for what it put there to be kept: each costs half as many calls as its commit.
pub const COMMITTED: usize = 100;

/// The most bytes of one file.
pub const EACH: u64 = 1 << 20;

/// The most bytes of all files of a run. In path order, what fits is kept.
pub const ALL: u64 = 16 << 20;

/// The directory, in a session's.
pub(super) const DIRECTORY: &[u8] = b"before";

impl Session {
    /// Opens the content that a file had before the change, if it was kept and is whole.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn original(&self, change: &Change) -> Result<Option<File>, Error> {
        match change.before.object.as_ref().and_then(State::hash) {
            Some(hash) => open_kept(&self.dir, hash),
            None => Ok(None),
        }
    }
}

impl Session {
    /// Opens the content that a commit of the change put on the tree, if it was kept and is whole.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn committed(&self, change: &Change) -> Result<Option<File>, Error> {
        change.after.as_ref().and_then(State::hash).map_or(Ok(None), |hash| open_kept(&self.dir, hash))
    }
}

/// Opens a file on the tree, without following links. `None` if it is not there, or cannot be opened.
pub fn on_tree(root: &Dir, path: &AbsPath) -> Option<File> {
    let (parent, name) = path.split()?;
    let dir = root.open_across(parent.strip_prefix(b"/")?).ok()?;
    dir.at(name).open_file().ok()
}

/// Keeps the content of a file, which has that hash, in the session's directory `session`. Syncs nothing.
///
/// # Errors
/// A system call failed; it is not kept.
pub fn keep(fs: &Fs, session: &Dir, from: &File, hash: Hash) -> Result<(), Error> {
    kept_by(fs, session, hash, |to, at| fs.copy(from, to, at).map(drop))
}

/// Keeps bytes that a change of the session is to be made of, in the session's directory `session`. Syncs nothing.
///
/// # Errors
/// A system call failed; they are not kept.
pub fn keep_bytes(fs: &Fs, session: &Dir, bytes: &[u8]) -> Result<(), Error> {
    kept_by(fs, session, Hash::of(bytes), |to, at| fs.write(to, bytes, at))
}

/// Keeps a content of that hash, unless it is kept already. `fill` writes it to the file, which is empty.
fn kept_by(fs: &Fs, session: &Dir, hash: Hash, fill: impl FnOnce(&File, Entry<'_>) -> Result<(), IoError>) -> Result<(), Error> {
    if open_kept(session, hash)?.is_some() {
        return Ok(());
    }
    mkdir_if_missing(fs, session.at(DIRECTORY))?;
    let (directory, name) = (session.at(DIRECTORY).open_dir()?, hash.to_string());
    let at = directory.at(name.as_bytes());
    // Left by a recant that was killed.
    fs.unlink_if_there(at)?;
    let to = fs.create(at, 0o600)?;
    fill(&to, at).map_err(|error| {
        // What is there is not whole; the disk may be full.
        drop(fs.unlink(at));
        error.into()
    })
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
fn open_kept(session: &Dir, hash: Hash) -> Result<Option<File>, Error> {
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
