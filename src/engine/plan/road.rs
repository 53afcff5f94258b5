//! The road that an operation takes on a mount, chosen by what its file system is known to do.

use std::collections::BTreeMap;

use crate::error::{At, IoError};
use crate::fs::{AbsPath, Dir, Mount, Stat, mounts};

/// A way for objects to come to a path and leave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Road {
    /// Renames objects between the session and the path; names swap.
    Native,
    /// Swaps names with copies that lie ready near the path, as the session lies elsewhere.
    Copied,
    /// Takes away what is there, and places a copy: names cannot swap there, or an object gets another number when moved, so that content
    /// tells it apart. The name is absent for a moment.
    Portable,
}

/// The file systems known to swap names, and to keep an object's identity wherever it is renamed to.
const NATIVE: [&str; 8] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "f2fs", "bcachefs"];

/// The mount and directory of the session.
pub struct Roads {
    mount: u64,
    directory: Stat,
}

impl Roads {
    pub fn from(session: &Dir) -> Result<Self, IoError> {
        let path = || session.path().display().to_string();
        let (mount, directory) = (mounts::id_of(session).at("look at", path())?, session.stat()?);
        Ok(Self { mount, directory })
    }

    /// Chooses the road to `path`, which lies in `mount`. `directories` are the existing ones in which names change: to rename(2),
    /// subvolumes of btrfs and what is encrypted by itself are file systems of their own.
    pub fn to(&self, path: &AbsPath, mount: &Mount, directories: &BTreeMap<AbsPath, Stat>) -> Road {
        if !NATIVE.contains(&&*mount.fs_type) {
            return Road::Portable;
        }
        let above = path.ancestors().find_map(|directory| directories.get(&directory));
        let is_elsewhere = |stat: &Stat| stat.dev != self.directory.dev || stat.encrypted != self.directory.encrypted;
        if mount.id != self.mount || above.is_some_and(is_elsewhere) { Road::Copied } else { Road::Native }
    }
}
