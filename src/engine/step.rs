//! Steps: one change to one path each, and where the two objects of a step lie.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::held::is_place;
use crate::fs::dir::Time;
use crate::fs::path::{self, AbsPath};
use crate::session::id::Id;
use crate::tree::look::Seen;
use crate::tree::state::Identity;

/// What a step does. A new folder is made in Prepare and placed; one that goes is emptied by its children's steps, and taken away as any
/// object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// `to` is renamed to a path where nothing is.
    Place,
    /// `to` and `from` swap their names.
    Replace,
    /// `from` is renamed out of the tree.
    Remove,
    /// Mode, owner, times and xattrs of the inode are set.
    SetMeta,
    /// Nothing: the path holds `to` already.
    Stay,
}

/// Where an object lies while it is not at its path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spot {
    /// Below the session's folder.
    Session(#[serde(with = "path::bytes")] Vec<u8>),
    /// Beside the target, on its file system.
    Tree(AbsPath),
}

impl Spot {
    /// Whether it is below that folder of the session.
    pub(super) fn is_in(&self, folder: &[u8]) -> bool {
        let Spot::Session(below) = self else { return false };
        below.strip_prefix(folder).is_some_and(|rest| rest.starts_with(b"/"))
    }

    /// Whether it is a place that an operation of the session gives to objects while it is under way.
    pub(super) fn is_own(&self, session: &Id) -> bool {
        match self {
            Spot::Session(below) => is_place(below),
            Spot::Tree(path) => path.name().starts_with(format!(".recant-{session}-").as_bytes()),
        }
    }
}

/// One step: what follows from an [`Item`](super::item::Item) of the journal, with all its places.
#[derive(Debug)]
pub struct Step<'i> {
    /// What it does.
    pub act: Act,
    /// To which path.
    pub path: &'i AbsPath,
    /// What the path holds before.
    pub from: Option<Cow<'i, Seen>>,
    /// What it holds after.
    pub to: Option<Cow<'i, Seen>>,
    /// Where its objects lie while they are not at the path.
    pub at: Places,
    /// `from` is a folder that is moved out with all that is in it, by `--force`.
    pub whole: bool,
    /// `from` is a folder that is removed where it is, and made again by an undo.
    pub again: bool,
}

/// Where the objects of a step lie while they are not at its path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Places {
    /// `to`, before the step.
    pub to: Option<Spot>,
    /// `from`, right after the step.
    pub out: Option<Spot>,
    /// `from` at last, below the session's folder; none where it is let go by policy.
    pub home: Option<Spot>,
    /// `from` is copied to its home before the step; what comes out is let go.
    pub copied: bool,
    /// The store's own copy of `to`, which goes once it is settled; what is written into an inode is read from it.
    pub spare: Option<Spot>,
}

impl Places {
    /// Where the step puts what came out, if that is neither where it comes out nor copied there before.
    pub fn put_away(&self) -> Option<&Spot> {
        self.home.as_ref().filter(|home| !self.copied && self.out.as_ref() != Some(home))
    }

    /// Whether what comes out is let go at last: it was copied before, or is not kept by policy.
    pub fn lets_go(&self) -> bool {
        self.copied || self.home.is_none()
    }
}

/// A folder in which names change and that stays: its mtime before, and the one to set. Where names are copied beside a
/// target it changes once more when the temporary ones go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderTime {
    /// The folder.
    pub path: AbsPath,
    /// Which object it is.
    pub identity: Identity,
    /// Its mtime when it was planned.
    #[serde(with = "crate::tree::time")]
    pub old: Time,
    /// The one that it gets; none where the caller may not set it.
    #[serde(with = "crate::tree::time::option", default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Time>,
    /// What the manifest is to remember as its mtime before recant came.
    #[serde(with = "crate::tree::time")]
    pub original: Time,
    /// It is a change itself, of its metadata: the manifest has its mtime there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}

/// A mount that paths of the operation lie in, so that recovery can tell whether it is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootRecord {
    /// The mount point.
    pub point: AbsPath,
    /// The file system's type.
    pub fs_type: String,
    /// The device then: major, minor. Changes over a reboot.
    pub device: (u32, u32),
    /// Which object the root folder is.
    pub identity: Identity,
}

impl Step<'_> {
    /// Whether the step's `from` is a folder.
    pub fn was_folder(&self) -> bool {
        self.from.as_ref().is_some_and(|seen| seen.state.is_folder())
    }
}
