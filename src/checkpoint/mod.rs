//! Checkpoints: what commit took off the tree. A manifest says what was at each path and where it lies; blobs are the
//! originals themselves, named by the digest of their content.
//!
//! In: what the engine moved out. Out: where an original lies, and whether it is whole. What always holds:
//! - **C1** A blob's name is the SHA-256 of its content when it was taken, or that and `.<n>`; it is re-hashed before use.
//! - **C2** A line of the manifest names its blob by digest and number, never by a path from the file (docs/ARCHITECTURE.md, I14).

pub mod limits;
pub mod made;
pub mod manifest;
pub mod verify;

use crate::error::{Failure, IoError, Kind};
use crate::tree::sealed;

/// What can go wrong in this room.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The session cannot be read.
    #[error(transparent)]
    Session(#[from] crate::error::Error),
    /// The manifest cannot be believed.
    #[error("{path}: the checkpoint's manifest is damaged: {why}")]
    Manifest {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
}

impl From<sealed::Error> for Error {
    fn from(error: sealed::Error) -> Self {
        match error {
            sealed::Error::Io(error) => Error::Io(error),
            sealed::Error::Damaged { path, why } => Error::Manifest { path, why },
        }
    }
}

impl Failure for Error {
    fn kind(&self) -> Kind {
        match self {
            Error::Io(_) => Kind::Refused,
            Error::Session(error) => error.kind(),
            Error::Manifest { .. } => Kind::Damaged,
        }
    }

    fn state(&self) -> Option<String> {
        Some("nothing was changed".into())
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Error::Session(error) => Failure::remedy(error),
            Error::Manifest { .. } => Some("docs/store-format.md says where the originals lie, to put them back by hand".into()),
            Error::Io(_) => None,
        }
    }

    fn path(&self) -> Option<String> {
        match self {
            Error::Io(error) => Some(error.path.clone()),
            Error::Session(error) => Failure::path(error),
            Error::Manifest { path, .. } => Some(path.clone()),
        }
    }
}
