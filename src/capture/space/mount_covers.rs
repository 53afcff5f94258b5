//! Mounts the covers over directories with sockets and FIFOs of processes outside: see [`place::covers`](crate::capture::place::covers).

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, StatVfsMountFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, OpenTreeFlags, UnmountFlags};

use super::attach::{attach_as, directory_at, make_file};
use super::overlay::Uncovered;
use super::refusals::acts;
use crate::capture::collect::facts::full_path;
use crate::capture::place::covers::{Cover, Lid, Part};
use crate::capture::run::raw_calls;
use crate::error::{At, IoError, reason};
use crate::fs::{AbsPath, Sort, leads_nowhere, stat_of};

/// An empty directory of the run's own: the second lower that an overlay without an upper has to have.
const EMPTY: &str = "/dev/mqueue";

/// Covers the directories, in path order. Returns the mounts in which sockets are dead, and the places that could not be covered and are
/// read-only: sockets known there by name are masked later.
pub fn cover_all(covers: &[Cover]) -> Result<(Vec<u64>, Vec<Uncovered>), IoError> {
    let (mut dead, mut uncovered) = (Vec::new(), Vec::new());
    if covers.is_empty() {
        return Ok((dead, uncovered));
    }
    let empty = rustix::fs::open(EMPTY, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).at("open", EMPTY)?;
    for Cover { path, parts } in covers {
        let real = match directory_at(path) {
            Err(error) if leads_nowhere(&error) => continue,
            real => real.at("open the directory to cover", path)?,
        };
        let done = match parts {
            None => overlay(&real, &empty, path).map(|id| dead.push(id)),
            Some(parts) => put_together(&real, &empty, path, parts, &mut dead),
        };
        if let Err(error) = done {
            let why = format!(
                "cannot {}: {}: sockets and FIFOs of processes outside may be open there",
                error.act,
                reason(&error.source)
            );
            uncovered.push((path.clone(), why));
        }
    }
    Ok((dead, uncovered))
}

/// Puts a read-only overlay of a directory at its path. Returns its mount.
fn overlay(real: &OwnedFd, empty: &OwnedFd, path: &AbsPath) -> Result<u64, IoError> {
    let making = rustix::mount::fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC).at(acts::OVERLAY, path)?;
    let lowers = format!("{}:{}", raw_calls::held_path(real), raw_calls::held_path(empty));
    rustix::mount::fsconfig_set_string(&making, "lowerdir", &lowers).at("take it as lower of an overlay", path)?;
    rustix::mount::fsconfig_set_flag(&making, "userxattr").at("set userxattr of the overlay", path)?;
    rustix::mount::fsconfig_create(&making).at("make a read-only overlay", path)?;
    let mut attributes = MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOSUID;
    let options = rustix::fs::fstatvfs(real).at("look at the mount options", path)?.f_flag;
    attributes.set(MountAttrFlags::MOUNT_ATTR_NOEXEC, options.contains(StatVfsMountFlags::NOEXEC));
    let made = rustix::mount::fsmount(&making, FsMountFlags::FSMOUNT_CLOEXEC, attributes).at("mount the overlay", path)?;
    attach_as(Sort::Directory, &made, path).at("put the overlay", path)?;
    Ok(stat_of(&made).at("look at the overlay", path)?.mount)
}

/// Puts a tmpfs at the path of a directory, with the parts made from its names.
fn put_together(real: &OwnedFd, empty: &OwnedFd, top: &AbsPath, parts: &[Part], dead: &mut Vec<u64>) -> Result<(), IoError> {
    let made = tmpfs(top, stat_of(real).at("look at", top)?.mode)?;
    attach_as(Sort::Directory, &made, top).at("put a tmpfs", top)?;
    dead.push(stat_of(&made).at("look at the tmpfs", top)?.mount);
    for part in parts {
        let path = full_path(top, &part.below)?;
        match put(real, empty, part, &path, dead) {
            // It is gone by now.
            Err(error) if leads_nowhere(&error.source) => {}
            Err(error) => {
                rustix::mount::unmount(top.as_path(), UnmountFlags::DETACH).at("unmount the tmpfs from", top)?;
                return Err(error);
            }
            Ok(()) => {}
        }
    }
    raw_calls::set_read_only_held(made.as_fd()).at("make it read-only", top)
}

fn put(real: &OwnedFd, empty: &OwnedFd, part: &Part, path: &AbsPath, dead: &mut Vec<u64>) -> Result<(), IoError> {
    let below = OsStr::from_bytes(&part.below);
    let directory = |mode: u32| rustix::fs::mkdir(path.as_path(), Mode::from_raw_mode(mode)).at("make the directory", path);
    match part.as_what {
        Lid::Closed => directory(0),
        Lid::Made => {
            directory(0o700)?;
            // Programs check that their XDG_RUNTIME_DIR is closed to others.
            let mode = opened(real, below).and_then(stat_of).at("look at", path)?.mode;
            rustix::fs::chmod(path.as_path(), Mode::from_raw_mode(mode)).at("set the mode of", path)
        }
        Lid::Overlay => {
            directory(0o755)?;
            let real = opened(real, below).at("open the directory to cover", path)?;
            match overlay(&real, empty, path) {
                Ok(id) => dead.push(id),
                // The file system can't be a lower; sockets known there by name are masked.
                Err(_) => show(&real, OsStr::new(""), Sort::Directory, path)?,
            }
            Ok(())
        }
        Lid::Real { directory: true } => {
            directory(0o755)?;
            show(real, below, Sort::Directory, path)
        }
        Lid::Real { directory: false } => {
            make_file(path.as_path()).at("make the mount point", path)?;
            show(real, below, Sort::File, path)
        }
        Lid::Link => {
            let target = rustix::fs::readlinkat(real, below, Vec::new()).at("read the link", path)?;
            rustix::fs::symlink(target, path.as_path()).at("make the link", path)
        }
        Lid::Dead { fifo } => {
            let sort = if fifo { FileType::Fifo } else { FileType::Socket };
            rustix::fs::mknodat(CWD, path.as_path(), sort, Mode::from_raw_mode(0o600), 0).at("make a dead one of", path)
        }
    }
}

/// Opens a directory some way below: enters mounts, follows no link.
fn opened(dir: &OwnedFd, below: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(dir, below, flags, Mode::empty(), resolve)?)
}

/// Shows the real object, with all that is mounted in it, read-only as everything is by now.
fn show(real: &OwnedFd, below: &OsStr, sort: Sort, path: &AbsPath) -> Result<(), IoError> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_NO_AUTOMOUNT
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    flags.set(OpenTreeFlags::AT_EMPTY_PATH, below.is_empty());
    let shown = rustix::mount::open_tree(real, below, flags).at("clone the mount", path)?;
    attach_as(sort, &shown, path).at("show what is there", path)
}

/// A writable tmpfs, not mounted yet.
fn tmpfs(path: &AbsPath, mode: u32) -> Result<OwnedFd, IoError> {
    let making = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).at("open a tmpfs", path)?;
    for (key, value) in [("size", "1m".to_owned()), ("mode", format!("{mode:o}"))] {
        rustix::mount::fsconfig_set_string(&making, key, &value).at("set an option of a tmpfs", path)?;
    }
    rustix::mount::fsconfig_create(&making).at("make a tmpfs", path)?;
    let closed = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    rustix::mount::fsmount(&making, FsMountFlags::FSMOUNT_CLOEXEC, closed).at("mount a tmpfs", path)
}
