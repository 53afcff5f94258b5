//! Steps: one change to one path each, and where the two objects of a step lie.

use serde::{Deserialize, Serialize};

use crate::fs::dir::{Dev, Time};
use crate::fs::path::{self, AbsPath};
use crate::tree::look::Seen;
use crate::tree::state::Identity;

/// What a step does. There is no mkdir and no rmdir: a new folder is made in Prepare and placed; one that goes is emptied
/// by its children's steps and removed.
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

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What it does.
    pub act: Act,
    /// To which path.
    pub path: AbsPath,
    /// The change's number; 0 for a folder that is no change.
    pub n: u32,
    /// What the path holds before, as planning saw it.
    pub from: Option<Seen>,
    /// What it holds after.
    pub to: Option<Seen>,
    /// Where `to` lies before the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_at: Option<Spot>,
    /// Where `from` lies right after the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out: Option<Spot>,
    /// Where `from` lies at last, below the session's folder; none where it is let go by policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<Spot>,
    /// `from` was copied to its home before; what came out is let go.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copied: bool,
    /// The store's own copy of `to`, which goes once it is settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare: Option<Spot>,
    /// `to` lies in the store with just the metadata that is recorded: nothing is to be set.
    #[serde(skip)]
    pub as_recorded: bool,
    /// `from` is a folder that is moved out with all that is in it, by `--force`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
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

impl RootRecord {
    /// The device as a number pair.
    pub fn dev(&self) -> Dev {
        Dev(self.device.0, self.device.1)
    }
}

impl Step {
    /// Whether the step's `from` is a folder.
    pub fn was_folder(&self) -> bool {
        self.from.as_ref().is_some_and(|seen| seen.state.is_folder())
    }

    /// Whether the step's `to` is a folder.
    pub fn becomes_folder(&self) -> bool {
        self.to.as_ref().is_some_and(|seen| seen.state.is_folder())
    }
}
