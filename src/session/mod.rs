//! Sessions: pending writes and deletions, recorded on disk; the store's layout, ids, locks, staging by hand.
//!
//! In: what somebody stages, or what a capture collected. Out: numbered changes with their `before` and `after`, one a
//! path. The tree is only looked at here, never changed. What always holds:
//! - **S1** A status is computed from the header's counts; nothing sets it.
//! - **S2** A line of `changes.jsonl` counts once the header counts it; its content was durable before (docs/ARCHITECTURE.md, D1).
//! - **S3** Nothing read from the store is used as a path before it was parsed as an [`Id`](id::Id), a digest, a number or
//!   an [`AbsPath`](crate::fs::path::AbsPath) (docs/ARCHITECTURE.md, I14).

mod arrive;
mod begun;
pub mod change;
pub mod confirm;
pub mod header;
pub mod id;
pub mod inherit;
pub mod lines;
pub mod log;
mod opened;
pub mod prune;
pub mod remains;
pub mod run;
pub mod running;
pub mod sides;
pub mod stage;
pub mod store;
mod told;

use crate::error::{Failure, IoError, Kind, command, recant};

/// What can go wrong in this room.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The store is of a format that this program does not know.
    #[error("{path}: the store's format is {found:?}; this recant knows recant-store 1")]
    Format {
        /// The store.
        path: String,
        /// The first line of `format`.
        found: String,
    },
    /// A folder with something in it, but no store.
    #[error("{path}: this folder is no store of recant's, and not empty")]
    NoStore {
        /// The folder.
        path: String,
    },
    /// The store's folder belongs to somebody else, or others may write to it.
    #[error("{path}: {why}")]
    Unsafe {
        /// The store or a folder of it.
        path: String,
        /// What is wrong with it.
        why: String,
        /// How to mend it.
        remedy: String,
    },
    /// A stored file cannot be believed.
    #[error("{path}: the store is damaged: {why}")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// A session's header cannot be believed.
    #[error("{path}: the store is damaged: {why}")]
    Garbled {
        /// The header's file.
        path: String,
        /// What is wrong with it.
        why: String,
        /// The session.
        id: String,
    },
    /// No session of that id or name.
    #[error("no session {key:?}{}", nearest(.near))]
    Unknown {
        /// What was asked for.
        key: String,
        /// Ids that look like it.
        near: Vec<String>,
    },
    /// A prefix of several ids.
    #[error("{key:?} fits {} sessions: {}", .fits.len(), .fits.join(", "))]
    Ambiguous {
        /// What was asked for.
        key: String,
        /// What it fits.
        fits: Vec<String>,
    },
    /// A key that cannot be an id or a name.
    #[error("{key:?} can be no session's id or name: {why}")]
    BadKey {
        /// What was asked for.
        key: String,
        /// Why not.
        why: &'static str,
    },
    /// A name that another session has.
    #[error("the name {name:?} is taken by session {by}")]
    NameTaken {
        /// The name.
        name: String,
        /// Who has it.
        by: String,
    },
    /// A name that would hide a session from its short id.
    #[error("the name {name:?} is the last part of session {id}")]
    NameIsId {
        /// The name.
        name: String,
        /// Whose last part it is.
        id: String,
    },
    /// Another recant holds it.
    #[error("{what} is held by another recant")]
    Busy {
        /// "session …" or "the store …".
        what: String,
    },
    /// The session is not in a state for this.
    #[error("session {id}: {why}")]
    NotNow {
        /// The session.
        id: String,
        /// Why not.
        why: String,
        /// What to do.
        remedy: Option<String>,
    },
    /// A session gave something up, and not all of it could be removed.
    #[error("{why}")]
    NotEmptied {
        /// Which is given up.
        given_up: String,
        /// What could not be removed.
        why: IoError,
        /// What removes the rest.
        remedy: String,
    },
    /// A session was changed, and whether that lasts is not known.
    #[error("{why}")]
    NotLasting {
        /// Which.
        id: String,
        /// What failed after its header had its name.
        why: IoError,
    },
    /// A path that cannot be staged.
    #[error("cannot {act} {path}: {why}")]
    NotStaged {
        /// What was asked for.
        act: &'static str,
        /// The path.
        path: String,
        /// Why not.
        why: String,
        /// What to do.
        remedy: Option<String>,
    },
}

fn nearest(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; the nearest: {}", near.join(", ")) }
}

impl Failure for Error {
    fn kind(&self) -> Kind {
        match self {
            Error::Io(_)
            | Error::NoStore { .. }
            | Error::Format { .. }
            | Error::Unsafe { .. }
            | Error::Unknown { .. }
            | Error::Ambiguous { .. } => Kind::Refused,
            Error::BadKey { .. } | Error::NameTaken { .. } | Error::NameIsId { .. } | Error::NotNow { .. } => Kind::Refused,
            Error::NotStaged { .. } => Kind::Refused,
            Error::NotEmptied { .. } | Error::NotLasting { .. } => Kind::LeftOut,
            Error::Damaged { .. } | Error::Garbled { .. } => Kind::Damaged,
            Error::Busy { .. } => Kind::Busy,
        }
    }

    fn state(&self) -> Option<String> {
        match self {
            Error::Busy { .. } => Some("nothing was changed; try again when it has ended".into()),
            Error::NotEmptied { given_up, .. } => Some(format!("{given_up}; not all that it held is removed")),
            Error::NotLasting { id, .. } => {
                Some(format!("session {id} is as you asked, and may not be so any more after a power cut"))
            }
            _ => Some("nothing was changed".into()),
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Error::Unsafe { remedy, .. } | Error::NotEmptied { remedy, .. } => Some(remedy.clone()),
            Error::NoStore { .. } => Some("name a folder that is a store, empty, or not there: --store DIR, RECANT_STORE".into()),
            Error::Format { .. } => Some("take the recant that made it, or another store: --store DIR, RECANT_STORE".into()),
            Error::NotNow { remedy, .. } | Error::NotStaged { remedy, .. } => remedy.clone(),
            Error::Garbled { id, .. } => Some(format!(
                "{recant} session prune {id} drops it with all that it holds; with --dry-run it tells what that is",
                recant = recant()
            )),
            Error::NameTaken { by, .. } => {
                let rename = command(format_args!("session rename {by}"));
                Some(format!("take another one, or {rename} takes it away there"))
            }
            Error::NameIsId { .. } => Some("take another one".into()),
            Error::BadKey { .. } => Some(format!(
                "ids and names have letters, digits, '.', '_' and '-'; {recant} list --all shows all sessions",
                recant = recant()
            )),
            Error::Unknown { .. } | Error::Ambiguous { .. } => {
                Some(format!("{recant} list --all shows all sessions", recant = recant()))
            }
            _ => None,
        }
    }

    fn path(&self) -> Option<String> {
        match self {
            Error::Io(error) | Error::NotEmptied { why: error, .. } | Error::NotLasting { why: error, .. } => {
                Some(error.path.clone())
            }
            Error::Format { path, .. }
            | Error::Unsafe { path, .. }
            | Error::NoStore { path }
            | Error::Damaged { path, .. }
            | Error::Garbled { path, .. }
            | Error::NotStaged { path, .. } => Some(path.clone()),
            _ => None,
        }
    }
}
