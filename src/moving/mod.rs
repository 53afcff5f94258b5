//! Sessions that move: one stream out of a store, and into another one, on this machine or elsewhere.
//!
//! In: a session of which nothing is on the tree, or a stream. Out: the stream, or a pending session with the same id. With its
//! checkpoint a committed session moves to where the tree is, too: the originals travel, and it is committed there. The tree is only looked at. What always holds:
//! - **M1** A session appears only once the digest at the stream's end has proved all of it, and it is durable: until then its
//!   folder is `.new-<id>`, which nobody reads and the next sweep takes.
//! - **M2** Nothing of a stream is used as a path but below the folder that was made for it, where content is named by a number;
//!   every path, id, name and size is checked before it is used (docs/ARCHITECTURE.md, I14).
//! - **M3** A `before` travels as a state with its digest, never as a fingerprint. Of a captured change it is taken at the
//!   export, from an original whose fingerprint still holds; another is a conflict of the export. At the import all are compared
//!   with the tree there, and said.

mod export;
mod import;
mod mark;
mod originals;
mod stream;

use crate::engine::conflict::{self, Conflict};
use crate::error::{Failure, IoError, Kind, recant};

pub use export::{With, export};
pub use import::{Arrived, Mapping, conflicts, import};
pub use mark::mark;

/// What can go wrong in this room.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The session or its checkpoint cannot be read or written.
    #[error(transparent)]
    Session(#[from] crate::error::Error),
    /// The tree does not hold what the session found there, so that its `before` cannot be told any more.
    #[error("{}", conflict::summary(.0))]
    Conflicts(Vec<Conflict>),
    /// What is read is no stream, or not a whole one.
    #[error("the stream cannot be believed: {0}")]
    Stream(String),
    /// It is the stream of another version.
    #[error("the stream is of version {0:?}; this recant knows recant-export 1")]
    Version(String),
    /// A path that a session must not have here.
    #[error("{path}: {why}")]
    Path {
        /// The path.
        path: String,
        /// Why not.
        why: String,
    },
    /// The session that it holds is here already, and another one by now.
    #[error("session {0} is here already")]
    Here(String),
    /// The session is in no state to be moved.
    #[error("session {id}: {why}")]
    NotNow {
        /// The session.
        id: String,
        /// Why not.
        why: String,
        /// What to do.
        remedy: String,
    },
    /// Held content is not what it was.
    #[error("{path}: {why}")]
    Damaged {
        /// Of the change.
        path: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Failure for Error {
    fn kind(&self) -> Kind {
        match self {
            Error::Session(error) => error.kind(),
            Error::Conflicts(_) => Kind::Conflict,
            Error::Damaged { .. } => Kind::Damaged,
            Error::Io(_) | Error::Stream(_) | Error::Version(_) | Error::Path { .. } | Error::Here(_) | Error::NotNow { .. } => {
                Kind::Refused
            }
        }
    }

    fn state(&self) -> Option<String> {
        Some("nothing was changed".into())
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Error::Session(error) => Failure::remedy(error),
            Error::Stream(_) => {
                Some(format!("export the session once more: {recant} session export ID > FILE", recant = recant()))
            }
            Error::Version(_) => Some("take the recant that wrote it, on either side".into()),
            Error::Path { .. } => Some("--map FROM=TO gives paths another place".into()),
            Error::Here(id) => {
                Some(format!("{recant} show {id} shows it; {recant} session prune {id} drops it", recant = recant()))
            }
            Error::NotNow { remedy, .. } => Some(remedy.clone()),
            _ => None,
        }
    }

    fn path(&self) -> Option<String> {
        match self {
            Error::Io(error) => Some(error.path.clone()),
            Error::Session(error) => Failure::path(error),
            Error::Conflicts(conflicts) => conflicts.first().map(|conflict| conflict.path.to_string()),
            Error::Path { path, .. } | Error::Damaged { path, .. } => Some(path.clone()),
            _ => None,
        }
    }
}
