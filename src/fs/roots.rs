//! Roots: the mount points that paths are reached from. A path's parent is opened from the held descriptor of its root
//! below it (`beneath`), so that no link and no other mount can come in between (docs/ARCHITECTURE.md, How a path is reached).

use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use rustix::io::Errno;

use super::dir::{Dir, OPEN_DIR};
use super::mounts::{self, Mount};
use super::path::AbsPath;
use crate::error::{At, IoError};

#[derive(Debug)]
pub struct Root {
    pub mount: Mount,
    pub dir: Dir,
}

/// The roots in use, and the directories that were opened last.
pub struct Roots {
    mounts: Vec<Mount>,
    held: HashMap<u64, Rc<Root>>,
    directories: HashMap<AbsPath, Rc<Dir>>,
    kept: usize,
    lost: Vec<AbsPath>,
}

/// The number of directories that are kept open: a small part of the descriptors that the process may have, as several of these are in use
/// at once.
fn most_open() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit / 8).unwrap_or(usize::MAX).clamp(2, 2048)
}

/// The bytes of path after which a directory on the way is opened and kept, for the paths below it.
const STRETCH: usize = 1000;

/// Splits a deep path into the directory on the way that its parent is opened from, and the rest. So each directory of a deep tree is
/// opened by one short call, in any order, and not by all the names above it.
pub fn deep(below: &[u8]) -> Option<(&[u8], &[u8])> {
    let stretches = below.len().saturating_sub(1) / STRETCH;
    let cut = below[..stretches * STRETCH].iter().rposition(|byte| *byte == b'/')?;
    Some((&below[..cut], &below[cut + 1..]))
}

const FIND: &str = "find the mount of";

impl Roots {
    /// Reads the mounts as they are now.
    pub fn read() -> Result<Self, IoError> {
        Ok(Self {
            mounts: mounts::read()?,
            held: HashMap::new(),
            directories: HashMap::new(),
            kept: most_open(),
            lost: Vec::new(),
        })
    }

    /// Treats everything at and under these mount points as missing from here on: the expected file systems are gone.
    pub fn lose(&mut self, points: &[AbsPath]) {
        self.lost = points.to_vec();
    }

    /// True if the expected file system of a path is gone.
    pub fn is_lost(&self, path: &AbsPath) -> bool {
        self.lost.iter().any(|point| path.is_under(point))
    }

    /// The number of directories that are kept open.
    pub fn most_open(&self) -> usize {
        self.kept
    }

    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// The root of the mount in which the directory `path` lies.
    pub fn root_of(&mut self, path: &AbsPath) -> Result<Rc<Root>, IoError> {
        let mount = mounts::containing(&self.mounts, path).ok_or(Errno::NOENT).at(FIND, path)?;
        if let Some(root) = self.held.get(&mount.id) {
            return Ok(root.clone());
        }
        let dir = Dir::open(mount.point.as_path())?;
        if mounts::id_of(&dir).at(FIND, path)? != mount.id {
            return Err(io::Error::other(format!("the mount at {} has changed meanwhile", mount.point))).at(FIND, path);
        }
        let root = Rc::new(Root { mount: mount.clone(), dir });
        self.held.insert(mount.id, root.clone());
        Ok(root)
    }

    /// The mount in which the directory `path` lies.
    pub fn mount_of(&self, path: &AbsPath) -> Result<&Mount, IoError> {
        mounts::containing(&self.mounts, path).ok_or(Errno::NOENT).at(FIND, path)
    }

    /// The directory `path`, opened from its root.
    pub fn directory(&mut self, path: &AbsPath) -> Result<Rc<Dir>, IoError> {
        if let Some(dir) = self.directories.get(path) {
            return Ok(dir.clone());
        }
        if self.is_lost(path) {
            return Err(Errno::NOENT).at(OPEN_DIR, path);
        }
        let root = self.root_of(path)?;
        let below = path.below(&root.mount.point).ok_or(Errno::NOENT).at(OPEN_DIR, path)?;
        let dir = match deep(below) {
            None => root.dir.open_below(below)?,
            // It lies in the same mount, as a longer mount point above it would be above `path` too.
            Some((_, rest)) => self.directory(&path.above(rest))?.open_below(rest)?,
        };
        let dir = Rc::new(dir);
        if self.directories.len() >= self.kept {
            self.directories.clear();
        }
        self.directories.insert(path.clone(), dir.clone());
        Ok(dir)
    }

    /// Forgets all directories that were opened, and returns them.
    pub fn forget_all(&mut self) -> HashMap<AbsPath, Rc<Dir>> {
        std::mem::take(&mut self.directories)
    }

    pub fn close_all(&mut self) {
        self.directories.clear();
        self.held.clear();
    }

    /// Adds these directories, except where it has one of the same path.
    pub fn know(&mut self, directories: HashMap<AbsPath, Rc<Dir>>) {
        for (path, dir) in directories {
            self.directories.entry(path).or_insert(dir);
        }
    }

    /// Forgets the directories at and under `path`: it names another object now.
    pub fn forget(&mut self, path: &AbsPath) {
        self.directories.retain(|held, _| !held.is_under(path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deep_path_is_parted_at_the_same_directories_for_all_that_lies_under_them() {
        let path = ["name"; 700].join("/").into_bytes();
        let mut ends: Vec<usize> = Vec::new();
        for length in 1..path.len() {
            let Some((above, rest)) = deep(&path[..length]) else {
                assert!(length <= STRETCH);
                continue;
            };
            assert!(rest.len() <= STRETCH + 255 && above.len() + 1 + rest.len() == length, "{length}");
            ends.push(above.len());
        }
        ends.dedup();
        assert_eq!(ends, [999, 1999, 2999]);
        assert_eq!(deep(b"short"), None);
    }
}
