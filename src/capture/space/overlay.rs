//! Makes overlays, not mounted yet.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, UnmountFlags};

use super::attach::{attach, directory_at};
use super::refusals::acts;
use crate::capture::place::layout::{Route, Target};
use crate::capture::place::mount_plan::Plan;
use crate::capture::run::is_inside::MARK;
use crate::error::{At, IoError};
use crate::fs::{AbsPath, Dir, stat_of};

/// A place that could not be captured, and the reason.
pub type Uncovered = (AbsPath, String);

/// The directories of an overlay.
pub struct Layers {
    pub lowers: Vec<OwnedFd>,
    pub upper: OwnedFd,
    pub work: OwnedFd,
}

/// A directory of the store, opened by its path in this namespace's mounts.
pub fn opened_here(held: &Dir) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(held.path(), flags, Mode::empty())?;
    let (a, b) = (stat_of(held)?, stat_of(&fd)?);
    if (a.dev, a.ino) == (b.dev, b.ino) { Ok(fd) } else { Err(Errno::STALE.into()) }
}

/// An overlay of `path`, which is the target's or lies in it, not mounted yet.
pub fn overlay_of(plan: &Plan, target: &Target, path: &AbsPath, layers: &Layers) -> Result<OwnedFd, IoError> {
    if !overlap(plan, path, &layers.lowers)? {
        return overlay_on(plan, target, path, (&layers.lowers, layers));
    }
    // The kernel takes no lower that lies in another one (ovl_check_layer in fs/overlayfs/super.c), as the sealed uppers do in a directory
    // that holds the store. So the real directory is shown by a read-only overlay of its own, which nothing lies in. Only a mount of this
    // namespace can be a lower: for a moment it is on the store.
    let (Some(store), Some((real, sealed))) = (plan.hidden.first(), layers.lowers.split_last()) else {
        return Err(Errno::LOOP).at(acts::MAKE, path);
    };
    let empty = closed_tmpfs(store, &plan.request.tag)?;
    let view = on_store(&empty, store, |empty| view_of(plan, path, real, &empty))?;
    on_store(&view, store, |view| {
        let mut lowers = Vec::with_capacity(layers.lowers.len());
        for sealed in sealed {
            lowers.push(sealed.try_clone().at("take a sealed upper of", path)?);
        }
        lowers.push(view);
        overlay_on(plan, target, path, (&lowers, layers))
    })
}

/// Tells whether the kernel takes these lowers for one that lies in another. Tried without an upper: the work directory of an overlay that
/// was not made may not be used again.
pub fn overlap(plan: &Plan, path: &AbsPath, lowers: &[OwnedFd]) -> Result<bool, IoError> {
    if lowers.len() < 2 {
        return Ok(false);
    }
    if plan.hidden.first().is_some_and(|store| store.is_under(path)) {
        return Ok(true);
    }
    // The store may lie in it by another path.
    let making = Making::begin(plan, path)?;
    making.lower(lowers)?;
    match rustix::mount::fsconfig_create(&making.fd) {
        Err(Errno::LOOP) => Ok(true),
        // Another error comes again, with a name.
        _ => Ok(false),
    }
}

/// Calls `act` with the top of a mount while that is on the store.
pub fn on_store<T>(mount: &OwnedFd, store: &AbsPath, act: impl FnOnce(OwnedFd) -> Result<T, IoError>) -> Result<T, IoError> {
    attach(mount, store).at("put a mount on", store)?;
    let done = directory_at(store).at("open the mount on", store).and_then(act);
    rustix::mount::unmount(store.as_path(), UnmountFlags::DETACH).at("unmount what was put on", store)?;
    done
}

/// A read-only overlay that shows a directory as it is, not mounted yet. It takes two lowers at least, so the other one is empty.
pub fn view_of(plan: &Plan, path: &AbsPath, real: &OwnedFd, empty: &OwnedFd) -> Result<OwnedFd, IoError> {
    let making = Making::begin(plan, path)?;
    making.set("lowerdir", &format!("{}:{}", real.as_raw_fd(), empty.as_raw_fd()), "take the directory as lower of a view")?;
    making.set("redirect_dir", "nofollow", "set an option of the view")?;
    making.finish(MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_RDONLY)
}

/// An overlay with these lowers, not mounted yet.
pub fn overlay_on(
    plan: &Plan,
    target: &Target,
    path: &AbsPath,
    (lowers, Layers { upper, work, .. }): (&[OwnedFd], &Layers),
) -> Result<OwnedFd, IoError> {
    let making = Making::begin(plan, path)?;
    making.lower(lowers)?;
    making.set("upperdir", &upper.as_raw_fd().to_string(), acts::UPPER)?;
    making.set("workdir", &work.as_raw_fd().to_string(), "take the directory as work directory of an overlay of")?;
    // Renaming a directory that existed before: root's overlay can, a user's fails with EXDEV whatever is set.
    let redirect = if plan.route == Route::Root { "on" } else { "nofollow" };
    making.set("redirect_dir", redirect, "set redirect_dir of the overlay")?;
    // Over a view there are two file systems, and xino would set the highest bit of inode numbers, which JavaScript rounds then.
    making.set("xino", "off", "set xino=off of the overlay")?;
    // Saves a flush for each copied-up file; recant syncs the upper itself before it calls the session complete.
    rustix::mount::fsconfig_set_flag(&making.fd, "volatile").at("set volatile of the overlay", path)?;
    let mut attributes = MountAttrFlags::MOUNT_ATTR_NODEV;
    attributes.set(MountAttrFlags::MOUNT_ATTR_NOSUID, target.nosuid);
    attributes.set(MountAttrFlags::MOUNT_ATTR_NOEXEC, target.noexec);
    making.finish(attributes)
}

/// An overlay that is being made. Options are explicit, since their defaults depend on the distribution. Paths go in as numbers in
/// /proc/self/fd: no escaping, and all lowers in the 255 bytes that an option may have.
pub struct Making<'a> {
    pub fd: OwnedFd,
    pub path: &'a AbsPath,
}

impl<'a> Making<'a> {
    fn begin(plan: &Plan, path: &'a AbsPath) -> Result<Self, IoError> {
        let fd = rustix::mount::fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC).at(acts::OVERLAY, path)?;
        let making = Self { fd, path };
        making.set("source", &format!("{MARK}{}", plan.request.tag), "name the overlay")?;
        for key in ["index", "metacopy"] {
            making.set(key, "off", "set an option of the overlay")?;
        }
        if plan.route == Route::User {
            // Without it the mount succeeds, but renaming any directory fails with EXDEV.
            rustix::mount::fsconfig_set_flag(&making.fd, "userxattr").at("set userxattr of the overlay", path)?;
        }
        Ok(making)
    }

    fn set(&self, key: &str, value: &str, act: &'static str) -> Result<(), IoError> {
        rustix::mount::fsconfig_set_string(&self.fd, key, value).at(act, self.path)
    }

    fn lower(&self, lowers: &[OwnedFd]) -> Result<(), IoError> {
        let numbers: Vec<String> = lowers.iter().map(|held| held.as_raw_fd().to_string()).collect();
        self.set("lowerdir", &numbers.join(":"), acts::LOWER)
    }

    fn finish(self, attributes: MountAttrFlags) -> Result<OwnedFd, IoError> {
        rustix::mount::fsconfig_create(&self.fd).at(acts::MAKE, self.path)?;
        rustix::mount::fsmount(&self.fd, FsMountFlags::FSMOUNT_CLOEXEC, attributes).at("mount the overlay", self.path)
    }
}

/// A writable tmpfs for `path` whose top directory is closed (mode 0), not mounted yet.
pub fn closed_tmpfs(path: &AbsPath, tag: &str) -> Result<OwnedFd, IoError> {
    tmpfs_of_mode(path, tag, 0)
}

/// A writable tmpfs for `path` that its owner may look into, not mounted yet.
pub fn readable_tmpfs(path: &AbsPath, tag: &str) -> Result<OwnedFd, IoError> {
    tmpfs_of_mode(path, tag, 0o500)
}

fn tmpfs_of_mode(path: &AbsPath, tag: &str, mode: u32) -> Result<OwnedFd, IoError> {
    let making = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).at("open a tmpfs", path)?;
    for (key, value) in [("source", format!("{MARK}{tag}")), ("size", "4k".into()), ("mode", format!("{mode:o}"))] {
        rustix::mount::fsconfig_set_string(&making, key, &value).at("set an option of a tmpfs", path)?;
    }
    rustix::mount::fsconfig_create(&making).at("make a tmpfs", path)?;
    let closed = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    rustix::mount::fsmount(&making, FsMountFlags::FSMOUNT_CLOEXEC, closed).at("mount a tmpfs", path)
}
