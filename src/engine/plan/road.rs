//! The roads of objects to their paths, and what rename(2) asks of the directories on both ends.

use crate::error::{At, IoError};
use crate::fs::{Dev, Dir, Entry, Mount, Sort, Stat, mounts};
use crate::tree::Seen;

/// A way for objects to come to a path and leave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Road {
    /// Renames objects between the session and the path; names swap.
    Native,
    /// Swaps names with copies that lie ready near the path, as the session lies elsewhere.
    Copied,
    /// Removes what is there and makes a copy in the path's own directory, each by its step: nothing can be renamed from anywhere to there,
    /// or what is there to anywhere else.
    InPlace,
    /// Takes away what is there, and places a copy: names cannot swap there, or an object gets another number when moved, so that content
    /// tells it apart. The name is absent for a moment.
    Portable,
}

/// The file systems known to swap names, and to keep an object's identity wherever it is renamed to.
const NATIVE: [&str; 8] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "f2fs", "bcachefs"];

/// The facts that the type of a mount's file system tells.
#[derive(Debug, Clone, Copy)]
pub struct FileSystem {
    pub mount: u64,
    pub is_native: bool,
    /// True if it may count by project numbers.
    pub has_projects: bool,
    pub has_subvolumes: bool,
}

impl FileSystem {
    pub fn of(mount: &Mount) -> Self {
        let has_projects = ["ext4", "xfs", "f2fs"].contains(&&*mount.fs_type);
        let (is_native, has_subvolumes) = (NATIVE.contains(&&*mount.fs_type), mount.fs_type == "btrfs");
        Self { mount: mount.id, is_native, has_projects, has_subvolumes }
    }
}

/// The traits by which rename(2) tells directories apart within a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ground {
    /// Each subvolume of btrfs has a device number of its own.
    pub volume: Dev,
    pub encrypted: bool,
    /// The project number of all that comes in, if the directory demands one.
    pub binds: Option<u32>,
}

impl Ground {
    pub fn of(at: Entry<'_>, stat: &Stat, file_system: FileSystem) -> Self {
        let project = if file_system.has_projects { at.project() } else { None };
        let binds = project.filter(|project| project.binds).map(|project| project.number);
        Self { volume: stat.dev, encrypted: stat.encrypted, binds }
    }

    /// An object that is made there.
    pub fn made(&self) -> Mover {
        let project = Some(self.binds.unwrap_or(0));
        Mover { volume: self.volume, encrypted: self.encrypted, project, range: Range::Volume }
    }

    /// True if rename(2) lets that object in.
    pub fn lets_in(&self, object: &Mover) -> bool {
        let is_near = match object.range {
            Range::Nowhere => false,
            Range::Volume => self.volume == object.volume && self.encrypted == object.encrypted,
            Range::Mount => true,
        };
        is_near && self.binds.is_none_or(|number| object.project == Some(number))
    }
}

/// How far an object can be renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    Nowhere,
    Volume,
    /// A subvolume of btrfs itself.
    Mount,
}

impl Range {
    pub fn of(object: &Seen, file_system: FileSystem) -> Self {
        /// BTRFS_FIRST_FREE_OBJECTID and BTRFS_EMPTY_SUBVOL_DIR_OBJECTID of linux/btrfs_tree.h: a subvolume, and the empty directory that a
        /// snapshot has in place of one.
        const SUBVOLUME: u64 = 256;
        const IN_PLACE_OF_ONE: u64 = 2;
        let may_be_one = file_system.has_subvolumes && object.state.sort() == Sort::Directory;
        match object.print.identity.ino {
            SUBVOLUME if may_be_one => Range::Mount,
            IN_PLACE_OF_ONE if may_be_one => Range::Nowhere,
            _ => Range::Volume,
        }
    }
}

/// The traits by which rename(2) tells objects apart.
#[derive(Debug, Clone, Copy)]
pub struct Mover {
    pub volume: Dev,
    pub encrypted: bool,
    /// `None` if not known: no directory that demands a number lets it in.
    pub project: Option<u32>,
    pub range: Range,
}

/// The mount of the session, and the directories in it that objects come to.
pub struct Roads {
    pub mount: u64,
    /// The ground of the session's directories for what comes off the tree, each once.
    pub homes: Vec<Ground>,
    /// The ground of what is made from the record.
    pub made_in: Ground,
}

impl Roads {
    pub fn from(session: &Dir, all: &[Mount]) -> Result<Self, IoError> {
        let path = || session.path().display().to_string();
        let mount = mounts::id_of(session).at("look at", path())?;
        let stat = session.stat()?;
        let of_session = Ground { volume: stat.dev, encrypted: stat.encrypted, binds: None };
        let mut roads = Self { mount, homes: vec![of_session], made_in: of_session };
        let file_system = all.iter().find(|other| other.id == mount).map(FileSystem::of);
        let Some(file_system) = file_system.filter(|file_system| file_system.has_projects) else { return Ok(roads) };
        roads.homes.clear();
        for below in ["displaced", "checkpoint/blobs", "checkpoint/objects", "held/objects"] {
            let dir = match session.open_below(below.as_bytes()) {
                Err(error) if error.leads_nowhere() => session.again()?,
                dir => dir?,
            };
            roads.made_in = Ground::of(dir.at(b"."), &dir.stat()?, file_system);
            if !roads.homes.contains(&roads.made_in) {
                roads.homes.push(roads.made_in);
            }
        }
        Ok(roads)
    }
}
