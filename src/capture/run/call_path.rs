//! A path that a call passes, and where it leads in the caller's own view.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::call_listener::path_of;
use crate::error::IoError;
use crate::fs::{AbsPath, Dir, Entry, Reach, Stat};

/// A path as a thread passed it. What it starts from is held: the thread may be gone when it is followed.
#[derive(Debug)]
pub struct CallPath {
    thread: u32,
    /// The descriptor that it is relative to.
    directory: i32,
    start: OwnedFd,
    path: Vec<u8>,
}

impl CallPath {
    /// Reads the path at `address`, relative to the descriptor `directory` or to [`libc::AT_FDCWD`]. `None` if it cannot be read.
    pub fn read(thread: u32, directory: i32, address: u64) -> Option<Self> {
        Self::of(thread, directory, path_of(thread, address).ok()?)
    }

    /// A path that was read. `None` if what it starts from cannot be opened.
    pub fn of(thread: u32, directory: i32, path: Vec<u8>) -> Option<Self> {
        // Links of /proc that lead into the caller's own view.
        let start = match (path.first() == Some(&b'/'), directory) {
            (true, _) => format!("/proc/{thread}/root"),
            (false, libc::AT_FDCWD) => format!("/proc/{thread}/cwd"),
            (false, directory) => format!("/proc/{thread}/fd/{directory}"),
        };
        let start = rustix::fs::open(start, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        Some(Self { thread, directory, start, path })
    }

    /// The directory that it starts from.
    pub fn start(&self) -> BorrowedFd<'_> {
        self.start.as_fd()
    }

    /// The path from there.
    pub fn below(&self) -> &Path {
        below(&self.path)
    }

    /// The path of the directory that holds its last name, likewise.
    pub fn parent(&self) -> &Path {
        let end = self.path.iter().rposition(|byte| *byte != b'/').map_or(0, |end| end + 1);
        below(self.path[..end].iter().rposition(|byte| *byte == b'/').map_or(&b""[..], |cut| &self.path[..cut]))
    }

    /// True if both are names in one directory, as far as their text tells.
    pub fn is_beside(&self, other: &Self) -> bool {
        let above = |path: &Self| path.path.iter().rposition(|byte| *byte == b'/').map(|cut| path.path[..cut].to_vec());
        self.directory == other.directory && above(self) == above(other)
    }

    fn is_absolute(&self) -> bool {
        self.path.first() == Some(&b'/')
    }

    /// True for a directory, not for a link to one.
    pub fn is_directory(&self) -> bool {
        let stat = rustix::fs::statat(&self.start, self.below(), AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
    }

    /// The name that it leads to. `None` if it leads nowhere, or where this process cannot follow.
    pub fn place(&self) -> Option<Place> {
        let end = self.path.iter().rposition(|byte| *byte != b'/')?;
        let path = &self.path[..=end];
        let cut = path.iter().rposition(|byte| *byte == b'/');
        let (above, name) = cut.map_or((&b""[..], path), |cut| (&path[..cut], &path[cut + 1..]));
        if matches!(name, b"." | b"..") {
            return None;
        }
        let start = Dir::open(&Path::new("/proc/self/fd").join(self.start.as_raw_fd().to_string())).ok()?;
        let reach = match self.is_absolute() {
            true => Reach::FromRoot,
            false if has_another_root(self.thread) => Reach::Beneath,
            false => Reach::Everything,
        };
        let above = above.iter().position(|byte| *byte != b'/').map_or(&b""[..], |begin| &above[begin..]);
        let parent = start.open_as_another(above, reach).ok()?;
        Some(Place { parent, name: name.to_vec() })
    }
}

/// The path without slashes before it; `.` for none.
fn below(path: &[u8]) -> &Path {
    let begin = path.iter().position(|byte| *byte != b'/');
    Path::new(std::ffi::OsStr::from_bytes(begin.map_or(&b"."[..], |begin| &path[begin..])))
}

/// True if a thread has another root than this process: another directory, or that of another mount. One that is gone had this one's.
fn has_another_root(thread: u32) -> bool {
    let root = |path: String| Dir::open(Path::new(&path)).ok()?.stat().ok();
    let roots = root("/".into()).zip(root(format!("/proc/{thread}/root")));
    roots.is_some_and(|(ours, theirs)| (ours.inode(), ours.mount) != (theirs.inode(), theirs.mount))
}

/// A name in a directory that is held.
#[derive(Debug)]
pub struct Place {
    parent: Dir,
    name: Vec<u8>,
}

impl Place {
    /// The path in the run.
    pub fn path(&self) -> Option<AbsPath> {
        AbsPath::parse(self.parent.path().join(std::ffi::OsStr::from_bytes(&self.name)).into_os_string().into_vec()).ok()
    }

    pub fn at(&self) -> Entry<'_> {
        self.parent.at(&self.name)
    }

    pub fn stat(&self) -> Result<Option<Stat>, IoError> {
        self.at().stat()
    }

    /// True if both lie in one mount: between two, the kernel renames nothing.
    pub fn is_beside(&self, other: &Self) -> Result<bool, IoError> {
        Ok(self.parent.stat()?.mount == other.parent.stat()?.mount)
    }

    /// True if this lies in the directory `other`, at any depth.
    pub fn is_in(&self, other: &Stat) -> Result<bool, IoError> {
        let mut above = self.parent.again()?;
        loop {
            let here = above.stat()?;
            if here.inode() == other.inode() {
                return Ok(true);
            }
            let next = above.above()?;
            if next.stat()?.inode() == here.inode() || here.mount_root {
                return Ok(false);
            }
            above = next;
        }
    }
}
