//! Puts a mount in its place, and says why the namespace could not be built.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MoveMountFlags, OpenTreeFlags};

use crate::capture::run::messages::{Failed, Word};
use crate::error::{At, IoError};
use crate::fs::{AbsPath, Sort, stat_of};

/// The reasons why the namespace could not be built.
pub enum Unbuilt {
    Call(IoError),
    /// The mounts differ from the plan.
    NotAsPlanned(AbsPath, String),
    /// The kernel gives this user no /proc for a PID namespace, since parts of the present one are covered.
    NoProc,
}

impl From<IoError> for Unbuilt {
    fn from(error: IoError) -> Self {
        Self::Call(error)
    }
}

impl From<Unbuilt> for Word {
    fn from(unbuilt: Unbuilt) -> Self {
        match unbuilt {
            Unbuilt::Call(error) => Word::Failed(error.into()),
            Unbuilt::NotAsPlanned(path, text) => {
                Word::Failed(Failed { path: path.to_string(), act: String::new(), errno: 0, text })
            }
            Unbuilt::NoProc => Word::NoProc,
        }
    }
}

/// Opens the object at `path` to mount on it; follows no link on the way.
pub fn at_path(path: &AbsPath) -> io::Result<OwnedFd> {
    open_at(path, OFlags::empty())
}

/// Opens the directory at `path` to mount on it: ENOTDIR if it has become something else.
pub fn directory_at(path: &AbsPath) -> io::Result<OwnedFd> {
    open_at(path, OFlags::DIRECTORY)
}

fn open_at(path: &AbsPath, more: OFlags) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC | more;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(CWD, path.as_path(), flags, Mode::empty(), resolve)?)
}

/// A clone of the mount at `path`, with all mounts below, not mounted yet.
pub fn clone_of(path: &AbsPath) -> Result<OwnedFd, IoError> {
    clone_at(path.as_path(), true).at("clone the mount", path)
}

pub fn clone_at(path: &Path, recursive: bool) -> io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_NO_AUTOMOUNT
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    flags.set(OpenTreeFlags::AT_RECURSIVE, recursive);
    Ok(rustix::mount::open_tree(CWD, path, flags)?)
}

/// Puts a mount at `path`: a directory's mount only on a directory, as move_mount(2) fails with EINVAL for anything else.
pub fn attach(mount: &OwnedFd, path: &AbsPath) -> io::Result<()> {
    attach_as(stat_of(mount)?.sort, mount, path)
}

/// Puts a mount of a known sort at `path`, without a look at the mounted object, which may not answer.
pub fn attach_as(sort: Sort, mount: &OwnedFd, path: &AbsPath) -> io::Result<()> {
    let target = if sort == Sort::Directory { directory_at(path)? } else { at_path(path)? };
    let both = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(rustix::mount::move_mount(mount, "", &target, "", both)?)
}

/// Puts a mount on /proc, or in a mount of the run's own, where nobody makes a link on the way. The kernel follows none at the end.
pub fn attach_to(mount: &OwnedFd, path: &str) -> Result<(), IoError> {
    rustix::mount::move_mount(mount, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH).at("put a mount", path)
}

pub fn mount_tmpfs(path: &str, options: &str, flags: MountFlags) -> Result<(), IoError> {
    let options = CString::new(options).map_err(|_| Errno::INVAL).at("mount a tmpfs", path)?;
    rustix::mount::mount("recant", path, "tmpfs", flags, options.as_c_str()).at("mount a tmpfs", path)
}

/// Makes a mount point in the private /dev or /dev/shm, which have nothing of the real ones. Anywhere else it is there already.
pub fn make_in_dev(path: &AbsPath, sort: Sort) -> io::Result<()> {
    let Some(below) = path.as_bytes().strip_prefix(b"/dev/") else { return Ok(()) };
    let mut at = PathBuf::from("/dev");
    let mut names = below.split(|b| *b == b'/').peekable();
    while let Some(name) = names.next() {
        at.push(OsStr::from_bytes(name));
        let made = if names.peek().is_some() || sort == Sort::Directory {
            rustix::fs::mkdir(&at, Mode::from_raw_mode(0o755)).map_err(io::Error::from)
        } else {
            make_file(&at)
        };
        match made {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Makes an empty file, as a mount point.
pub fn make_file(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::mknodat(CWD, path, FileType::RegularFile, Mode::from_raw_mode(0o600), 0)?)
}
