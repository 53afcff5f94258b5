//! Reads a call that renames: its arguments, and where its paths lead in the caller's own view.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::call_listener::{WaitingCall, path_of};
use super::seccomp_filter::AskedCall;
use crate::error::IoError;
use crate::fs::{Dir, Entry, Reach, Sort, Stat, sort_at};

/// A call of rename(2), renameat(2) or renameat2(2).
#[derive(Debug)]
pub struct Rename {
    old: Named,
    new: Named,
    flags: u32,
}

/// A path as a thread passed it.
#[derive(Debug)]
struct Named {
    thread: u32,
    /// The descriptor that it is relative to.
    directory: i32,
    path: Vec<u8>,
}

impl Rename {
    /// Reads the arguments of a call. `None` if they cannot be read.
    pub fn of(asked: AskedCall, call: &WaitingCall) -> Option<Self> {
        let [a, b, c, d, e, _] = call.arguments;
        let thread = call.thread;
        let named = |directory: i32, address| Some(Named { thread, directory, path: path_of(thread, address).ok()? });
        #[expect(clippy::cast_possible_truncation, reason = "the kernel reads these arguments as int and unsigned int")]
        let (first, third, flags) = (a as i32, c as i32, e as u32);
        Some(match asked {
            AskedCall::Rename => Self { old: named(libc::AT_FDCWD, a)?, new: named(libc::AT_FDCWD, b)?, flags: 0 },
            AskedCall::Renameat => Self { old: named(first, b)?, new: named(third, d)?, flags: 0 },
            AskedCall::Renameat2 => Self { old: named(first, b)?, new: named(third, d)?, flags },
            AskedCall::Link => return None,
        })
    }

    /// A quick look: true if a directory is renamed.
    pub fn may_need_help(&self) -> bool {
        self.old.is_directory() || self.exchanges() && self.new.is_directory()
    }

    /// True if the two swap their names.
    pub fn exchanges(&self) -> bool {
        self.flags & libc::RENAME_EXCHANGE != 0
    }

    /// True if nothing may be there already.
    pub fn keeps_what_is_there(&self) -> bool {
        self.flags & libc::RENAME_NOREPLACE != 0
    }

    /// The old and the new place. `None` if a path leads nowhere, or where this process cannot follow.
    pub fn places(&self) -> Option<(Place, Place)> {
        Some((self.old.place()?, self.new.place()?))
    }
}

impl Named {
    fn is_absolute(&self) -> bool {
        self.path.first() == Some(&b'/')
    }

    /// The directory that the path starts from, by a link of /proc that leads into the caller's own view.
    fn start(&self) -> String {
        match (self.is_absolute(), self.directory) {
            (true, _) => format!("/proc/{}/root", self.thread),
            (false, libc::AT_FDCWD) => format!("/proc/{}/cwd", self.thread),
            (false, directory) => format!("/proc/{}/fd/{directory}", self.thread),
        }
    }

    fn is_directory(&self) -> bool {
        let path = [self.start().as_bytes(), b"/", &self.path].concat();
        sort_at(Path::new(std::ffi::OsStr::from_bytes(&path))) == Some(Sort::Directory)
    }

    fn place(&self) -> Option<Place> {
        let end = self.path.iter().rposition(|byte| *byte != b'/')?;
        let path = &self.path[..=end];
        let cut = path.iter().rposition(|byte| *byte == b'/');
        let (above, name) = cut.map_or((&b""[..], path), |cut| (&path[..cut], &path[cut + 1..]));
        if matches!(name, b"." | b"..") {
            return None;
        }
        let start = Dir::open(Path::new(&self.start())).ok()?;
        let reach = match self.is_absolute() {
            true => Reach::FromRoot,
            false if has_our_root(self.thread)? => Reach::Everything,
            false => Reach::Beneath,
        };
        let above = above.iter().position(|byte| *byte != b'/').map_or(&b""[..], |begin| &above[begin..]);
        let parent = start.open_as_another(above, reach).ok()?;
        Some(Place { parent, name: name.to_vec() })
    }
}

/// True if a thread has the same root as this process: the same directory, of the same mount.
fn has_our_root(thread: u32) -> Option<bool> {
    let root = |path: String| Dir::open(Path::new(&path)).ok()?.stat().ok();
    let (ours, theirs) = (root("/".into())?, root(format!("/proc/{thread}/root"))?);
    Some((ours.inode(), ours.mount) == (theirs.inode(), theirs.mount))
}

/// A name in a directory that is held.
#[derive(Debug)]
pub struct Place {
    parent: Dir,
    name: Vec<u8>,
}

impl Place {
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
