//! The road that an operation takes on a mount, chosen by what its file system is known to do.

use std::collections::BTreeMap;

use crate::error::{At, IoError};
use crate::fs::dir::{Dir, Stat};
use crate::fs::mounts::{self, Mount};
use crate::fs::path::AbsPath;

/// How objects come to a path and leave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Road {
    /// They are renamed between the session and the path, and names swap.
    Native,
    /// The same, but with copies that lie ready near the path, as the session lies elsewhere.
    Copied,
    /// What is there is taken away, and a copy placed: names cannot swap there, or an object has another number once it is moved, so that it is told by
    /// what it holds. The name is absent for a moment.
    Portable,
}

/// The file systems of which it is known that they swap names, and that an object stays the one that it is wherever it is renamed to.
const NATIVE: [&str; 8] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "f2fs", "bcachefs"];

/// Where the session lies.
pub(super) struct Roads {
    mount: u64,
    folder: Stat,
}

impl Roads {
    /// From where the session's folder is.
    pub fn from(session: &Dir) -> Result<Self, IoError> {
        let path = || session.path().display().to_string();
        let (mount, folder) = (mounts::id_of(session).at("look at", path())?, session.stat().at("look at", path())?);
        Ok(Self { mount, folder })
    }

    /// The one to `path`, which lies in `mount`. `folders` are those that are there, and in which names change: subvolumes of btrfs, and what
    /// is encrypted by itself, are file systems of their own to rename(2).
    pub fn to(&self, path: &AbsPath, mount: &Mount, folders: &BTreeMap<AbsPath, Stat>) -> Road {
        if !NATIVE.contains(&&*mount.fs_type) {
            return Road::Portable;
        }
        let above = std::iter::successors(path.parent(), AbsPath::parent).find_map(|folder| folders.get(&folder));
        let is_elsewhere = |stat: &Stat| stat.dev != self.folder.dev || stat.encrypted != self.folder.encrypted;
        if mount.id != self.mount || above.is_some_and(is_elsewhere) { Road::Copied } else { Road::Native }
    }
}
