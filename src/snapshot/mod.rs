//! Snapshots: numbered copies of a folder, and the way back to any of them.
//!
//! In: a folder and rules. Out: a manifest and the content that no earlier one has; and, on the way back, a session whose
//! `after`s are a snapshot's states. Reads the tree, never changes it: what a restore changes the engine changes, by a commit
//! of that session. docs/ARCHITECTURE.md, Snapshots, has the way of the data. What always holds:
//! - **N1** A snapshot is complete or absent. Its manifest gets its name after all content that it names and itself were synced, and
//!   its folder is synced before the number is printed.
//! - **N2** A number is never given again: the next one is above every number whose name is there, and prune never takes the newest,
//!   unless it takes the whole series.
//! - **N3** Content that a manifest names is never written to again. A pack is of one number and written before its manifest has a
//!   name; a blob that is already there is read and compared before it stands for the content.
//! - **N4** Prune takes names away first, durably, then the content that no manifest file names any more, a base that lost its own
//!   name included. One file that cannot be read keeps all content where it is.
//! - **N5** The index is a hint: it counts only where it is whole, and of the newest manifest. A file is believed unchanged only where
//!   its mtime and ctime were older than the beginning of the snapshot that read it by more than the clock's granularity, and nobody
//!   had it open for writing then: a mapped file can be changed without another time (git's racy-git note has the first half).
//! - **N6** This room never changes the tree. A restore is a session: what is there is `before`, the snapshot's state is `after`,
//!   content is held as by staging. The engine commits it, so that its checkpoint, conflicts, journal and recovery are those of any
//!   commit, and `rollback` takes it back.
//! - **N7** What a snapshot left out is not touched by a restore of it: what its own rules exclude, mounts in the folder (it may be one
//!   itself), recant's store, what could not be read, other names of a file that it has. A folder that is to go but holds such a thing
//!   stays, and is named. Version control's own (`.git`, `.hg`, `.svn`, `.jj`, a bare repository) is not touched without `--with-vcs`,
//!   whatever the snapshot has of it, and a folder below the top that became a repository since stays whole, and is named
//!   (`compare::Comparing::leave_came`). What `run --in` takes leaves nothing of it out.
//! - **N8** Who creates, prunes or restores holds the series' lock, taken before the session's and the store's. Readers take none.
//! - **N9** A new snapshot rests on nothing that is damaged: the newest manifest and its base are read to their ends before, else an
//!   older one is what the tree is compared with, and the new one is whole; content that it refers to has to be there in its length,
//!   or with its digest where there is no index, else it is stored anew. `snapshot verify` reads all content, and takes the index away
//!   where some is damaged.

mod before;
pub mod committed;
pub mod compare;
pub mod content;
pub mod create;
mod digesting;
pub mod index;
mod indexes;
pub mod manifest;
mod names;
mod narrow;
pub mod place;
pub mod prune;
pub mod restore;
pub mod rules;
pub mod series;
pub mod sound;
pub mod verify;
pub mod walk;

use std::io;

use crate::config::grouped;
use crate::error::{Failure, IoError, Kind, reason, recant, shell_word};
use crate::fs::path::AbsPath;
use crate::tree::sealed;

/// What can go wrong in this room.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The store or a session of it cannot be read or written.
    #[error(transparent)]
    Session(#[from] crate::error::Error),
    /// No snapshot of that number or label.
    #[error("{folder}: no snapshot {key:?}; there are {}", .there.join(", "))]
    Unknown {
        /// What was asked for.
        key: String,
        /// Of which folder.
        folder: String,
        /// The numbers that there are, with their labels.
        there: Vec<String>,
    },
    /// None of this folder at all.
    #[error("{folder}: there are no snapshots of it")]
    None {
        /// The folder.
        folder: String,
    },
    /// A file of a snapshot cannot be believed.
    #[error("{path}: the snapshot is damaged: {why}")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// Far more than anybody means by a folder.
    #[error("{path}: {why}")]
    TooBroad {
        /// The folder.
        path: String,
        /// Why.
        why: String,
    },
    /// More objects than the limit.
    #[error("{path}: it holds {} files and folders, more than the limit of {}{}", grouped(*count), grouped(*limit), named(.biggest))]
    TooMany {
        /// The folder.
        path: String,
        /// How many objects are in it.
        count: u64,
        /// The limit.
        limit: u64,
        /// The subfolders with the most, and how many.
        biggest: Vec<(String, u64)>,
    },
    /// A glob that is none.
    #[error("{glob:?} is no glob: {why}")]
    Glob {
        /// As given.
        glob: String,
        /// Why not.
        why: String,
    },
    /// It cannot be done as things are.
    #[error("{path}: {why}")]
    Refused {
        /// What it is about.
        path: String,
        /// Why not.
        why: String,
        /// What to do.
        remedy: Option<String>,
    },
    /// A snapshot failed, and what was stored for it could not be taken away again.
    #[error("{error}")]
    Unswept {
        /// Why it failed.
        error: Box<Error>,
        /// What stood against taking it away.
        left: String,
        /// Of which folder.
        folder: String,
    },
    /// Another recant holds the series.
    #[error("the snapshots of {folder} are held by another recant")]
    Busy {
        /// The folder.
        folder: String,
    },
}

/// What stood against looking at `path`, where that is no matter of the object but of this process or its machine: nothing is left out for it.
fn of_ours(path: &AbsPath, error: &io::Error) -> Option<Error> {
    let remedy = match error.raw_os_error()? {
        libc::EMFILE => "let it open more files: ulimit -n 1024",
        libc::ENFILE => "all processes together have too many files open: try again when some have ended",
        libc::EINTR => "a signal came in between: try again",
        libc::ENOMEM => "there is too little memory: try again when there is more",
        _ => return None,
    };
    let why = format!("cannot look at it: {}", reason(error));
    Some(Error::Refused { path: path.to_string(), why, remedy: Some(remedy.into()) })
}

/// What is to be done about damage: nobody knows by one file alone which snapshots need it.
pub fn heal() -> String {
    format!(
        "{recant} snapshot verify names the snapshots that are hit; {recant} snapshot create takes one that needs nothing of what is \
         damaged, then {recant} snapshot prune --number N drops them",
        recant = recant()
    )
}

fn named(rows: &[(String, u64)]) -> String {
    let shown: Vec<String> = rows.iter().map(|(path, n)| format!("{path} ({})", grouped(*n))).collect();
    if shown.is_empty() { String::new() } else { format!("; the biggest in it: {}", shown.join(", ")) }
}

impl From<sealed::Error> for Error {
    fn from(error: sealed::Error) -> Self {
        match error {
            sealed::Error::Io(error) => Error::Io(error),
            sealed::Error::Damaged { path, why } => Error::Damaged { path, why },
        }
    }
}

impl Failure for Error {
    fn kind(&self) -> Kind {
        match self {
            Error::Session(error) => error.kind(),
            Error::Unswept { error, .. } => error.kind(),
            Error::Damaged { .. } => Kind::Damaged,
            Error::Busy { .. } => Kind::Busy,
            Error::Glob { .. } => Kind::Usage,
            Error::Io(_)
            | Error::Unknown { .. }
            | Error::None { .. }
            | Error::TooBroad { .. }
            | Error::TooMany { .. }
            | Error::Refused { .. } => Kind::Refused,
        }
    }

    fn state(&self) -> Option<String> {
        match self {
            Error::Session(error) => Failure::state(error),
            Error::Busy { .. } => Some("nothing was changed; try again when it has ended".into()),
            Error::TooBroad { .. } | Error::TooMany { .. } => Some("no snapshot was taken".into()),
            Error::Unswept { left, .. } => {
                Some(format!("no snapshot was taken; what was stored for it stays in the store: {left}"))
            }
            _ => Some("nothing was changed".into()),
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Error::Session(error) => Failure::remedy(error),
            Error::Unknown { folder, .. } => Some(format!("{recant} snapshot list {folder} shows them", recant = recant())),
            Error::None { folder } => Some(format!(
                "{recant} snapshot create {folder} takes the first one; --dir names another folder",
                recant = recant()
            )),
            Error::Damaged { .. } => Some(heal()),
            Error::TooBroad { .. } => {
                Some(format!("name a folder further down: {recant} snapshot create DIR", recant = recant()))
            }
            Error::TooMany { .. } => Some(
                "--all takes it all the same, --max-files N sets the limit, --exclude GLOB or --preset dev leave things out"
                    .into(),
            ),
            Error::Refused { remedy, .. } => remedy.clone(),
            Error::Unswept { error, folder, .. } => {
                let folder = shell_word(folder.as_bytes());
                let prune = format!("{recant} snapshot prune {folder} takes it away", recant = recant());
                Some(error.remedy().into_iter().chain([prune]).collect::<Vec<_>>().join("; "))
            }
            Error::Io(_) | Error::Glob { .. } | Error::Busy { .. } => None,
        }
    }

    fn path(&self) -> Option<String> {
        match self {
            Error::Io(error) => Some(error.path.clone()),
            Error::Session(error) => Failure::path(error),
            Error::Unswept { error, .. } => error.path(),
            Error::Unknown { folder, .. } | Error::None { folder } | Error::Busy { folder } => Some(folder.clone()),
            Error::Damaged { path, .. }
            | Error::TooBroad { path, .. }
            | Error::TooMany { path, .. }
            | Error::Refused { path, .. } => Some(path.clone()),
            Error::Glob { .. } => None,
        }
    }
}

/// The real path of a path in a snapshot of `folder`.
///
/// # Errors
/// A path that is none.
pub fn whole(folder: &AbsPath, path: &AbsPath) -> Result<AbsPath, Error> {
    if path.depth() == 0 {
        return Ok(folder.clone());
    }
    let bytes = [folder.as_bytes(), path.as_bytes()].concat();
    AbsPath::parse(bytes).map_err(|error| Error::Refused { path: path.to_string(), why: error.to_string(), remedy: None })
}
