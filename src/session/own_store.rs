//! The store that a run has inside, in the place of the one that is hidden: for snapshots and undos of what is held.
//!
//! It is the directory `inner` of the session. It goes with what the session holds: nothing in it is of use without that.

use super::open_session::Session;
use super::store::Store;
use crate::error::{Error, IoError};
use crate::fs::{AbsPath, Dir, Fs};

/// Its name in the session's directory.
pub const DIRECTORY: &[u8] = b"inner";

/// The path of the directory, if the session has one.
///
/// # Errors
/// The session's directory cannot be read.
pub fn of(store: &Store, session: &Session) -> Result<Option<AbsPath>, Error> {
    Ok(session.dir.at(DIRECTORY).stat()?.map(|_| path(store, session)))
}

/// The result of [`make`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreState {
    Ready,
    /// It was there, was none any more, and was made anew: a command inside may do with it what it likes.
    Anew,
}

/// Makes the store, if it is not there yet.
///
/// # Errors
/// It cannot be made.
pub fn make(fs: &Fs, store: &Store, session: &Session) -> Result<StoreState, Error> {
    let is_there = session.dir.at(DIRECTORY).stat()?.is_some();
    if is_there && Store::create(fs, &path(store, session)).is_ok() {
        return Ok(StoreState::Ready);
    }
    fs.remove_all(session.dir.at(DIRECTORY))?;
    fs.mkdir(session.dir.at(DIRECTORY), 0o700)?;
    Store::create(fs, &path(store, session))?;
    Ok(if is_there { StoreState::Anew } else { StoreState::Ready })
}

fn path(store: &Store, session: &Session) -> AbsPath {
    let names = [&b"sessions"[..], session.id().as_str().as_bytes(), DIRECTORY];
    names.into_iter().fold(store.path.clone(), |path, name| path.join(name).expect("a name of the store is a name"))
}

/// Removes it with all in it.
///
/// # Errors
/// Something in it cannot be removed.
pub fn remove(fs: &Fs, session: &Dir) -> Result<(), IoError> {
    if session.at(DIRECTORY).stat()?.is_some() { fs.remove_all(session.at(DIRECTORY)) } else { Ok(()) }
}
