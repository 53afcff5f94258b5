//! Steps: one change to one path each, and where the two objects of a step lie.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::place_in_session::is_place;
use crate::fs::{AbsPath, Time, path};
use crate::session::Id;
use crate::tree::{Identity, Seen};

/// The act of a step. A new directory is made in Prepare and placed; one that goes is emptied by its children's steps, then removed as
/// any object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Renames `to` to a path where nothing is.
    Place,
    /// Swaps the names of `to` and `from`.
    Replace,
    /// Renames `from` out of the tree.
    Remove,
    /// Sets mode, owner, times and xattrs of the inode.
    SetMeta,
    /// Does nothing: the path holds `to` already.
    Stay,
}

/// The place of an object while it is not at its path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spot {
    /// Below the session's directory.
    Session(#[serde(with = "path::bytes")] Vec<u8>),
    /// Beside the target, on its file system.
    Tree(AbsPath),
}

impl Spot {
    /// True if it is below that directory of the session.
    pub fn is_in(&self, directory: &[u8]) -> bool {
        let Spot::Session(below) = self else { return false };
        below.strip_prefix(directory).is_some_and(|rest| rest.starts_with(b"/"))
    }

    /// True if it is a place for objects of an operation of the session while it is under way.
    pub fn is_own(&self, session: &Id) -> bool {
        match self {
            Spot::Session(below) => is_place(below),
            Spot::Tree(path) => path.name().starts_with(format!(".recant-{session}-").as_bytes()),
        }
    }
}

/// One step: what follows from an [`Item`](super::item::Item) of the journal, with all its places.
#[derive(Debug)]
pub struct Step<'i> {
    pub act: Act,
    pub path: &'i AbsPath,
    pub from: Option<Cow<'i, Seen>>,
    pub to: Option<Cow<'i, Seen>>,
    /// The places of its objects while they are not at the path.
    pub at: Places,
    /// True if `from` is a directory that `--force` moves out with all that is in it.
    pub whole: bool,
    /// True if `from` is removed in place, and made again by an undo.
    pub again: bool,
    /// True if `to` is made in the path's own directory by the step, and removed there by an undo.
    pub in_place: bool,
}

/// The places of a step's objects while they are not at its path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Places {
    pub to: Option<Spot>,
    pub out: Option<Spot>,
    /// Of `from` at last, below the session's directory; `None` where it is let go by policy.
    pub home: Option<Spot>,
    /// True if `from` is copied to its home before the step; what comes out is let go.
    pub copied: bool,
    /// Of the store's own copy of `to`, which goes at Settle. What is written into an inode is read from it.
    pub spare: Option<Spot>,
}

impl Places {
    /// The place to move what came out to, unless it comes out there or was copied there before.
    pub fn put_away(&self) -> Option<&Spot> {
        self.home.as_ref().filter(|home| !self.copied && self.out.as_ref() != Some(home))
    }

    /// True if what comes out is let go at last: it was copied before, or is not kept by policy.
    pub fn lets_go(&self) -> bool {
        self.copied || self.home.is_none()
    }
}

/// A directory that stays and in which names change: its mtime before, and the one to set. Where copies lie beside a target, the mtime
/// changes once more when the temporary names go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryTime {
    pub path: AbsPath,
    pub identity: Identity,
    #[serde(with = "crate::tree::time")]
    pub old: Time,
    /// The mtime to set; `None` where the caller may not set it.
    #[serde(with = "crate::tree::option", default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Time>,
    /// The mtime before recant came, for the manifest.
    #[serde(with = "crate::tree::time")]
    pub original: Time,
    /// True if its metadata is a change itself: the manifest has its mtime there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}

/// A mount that paths of the operation lie in, so that recovery can tell whether it is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootRecord {
    pub point: AbsPath,
    pub fs_type: String,
    /// The device at that time: major, minor. Changes over a reboot.
    pub device: (u32, u32),
    /// The identity of its root directory.
    pub identity: Identity,
}

impl Step<'_> {
    /// True if the step's `from` is a directory.
    pub fn was_dir(&self) -> bool {
        self.from.as_ref().is_some_and(|seen| seen.state.is_dir())
    }
}
