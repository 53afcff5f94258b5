//! Hides paths in a run. A directory is there, empty and closed (mode 0), on a read-only mount. A file is there as a link that leads nowhere:
//! a user may not follow it (EACCES), and root, whom modes do not stop, finds nothing (ENOENT), so that a program takes it for a file that
//! it may do without. Neither can be removed, renamed or made anew, as something is mounted there (EBUSY).
//!
//! Whoever follows the link leaves its time of access: so the run knows that the file was asked for.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Timespec, Timestamps};

use super::attach::{at_path, attach, attach_as, clone_at};
use super::overlay::{closed_tmpfs, readable_tmpfs};
use crate::capture::place::mount_plan::Plan;
use crate::capture::run::door::Door;
use crate::capture::run::raw_calls;
use crate::error::{At, IoError};
use crate::fs::{AbsPath, Sort, stat_of};
use crate::tree::STAND_IN;

/// Hides the paths of a plan. Where the store is hidden, the door is opened.
pub fn hide(plan: &Plan, door: Option<&Door>) -> Result<(), IoError> {
    let (mut directories, mut others) = (Vec::new(), Vec::new());
    for path in &plan.hidden {
        let target = at_path(path).at("find the path to hide", path)?;
        let is_directory = stat_of(&target).at("look at the path to hide", path)?.sort == Sort::Directory;
        if is_directory { directories.push(path) } else { others.push(path) }
    }
    // First, as it uses the store, which is among the directories.
    if let (Some(store), false) = (plan.hidden.first(), others.is_empty()) {
        hide_files(&others, store, &plan.request.tag)?;
    }
    for path in directories {
        let door = door.filter(|_| Some(path) == plan.hidden.first());
        let make = if door.is_some() { readable_tmpfs } else { closed_tmpfs };
        let empty = make(path, &plan.request.tag)?;
        // One that cannot be opened stays closed.
        let _closed = door.map(|door| door.open_in(empty.as_fd()));
        raw_calls::set_read_only_held(empty.as_fd()).at("make it read-only", path)?;
        attach_as(Sort::Directory, &empty, path).at("hide the directory", path)?;
    }
    Ok(())
}

/// Puts a link over each of `paths`. Only what is mounted can be cloned (before Linux 6.15): for a moment the tmpfs with the links is on the
/// store, which is about to be hidden.
fn hide_files(paths: &[&AbsPath], store: &AbsPath, tag: &str) -> Result<(), IoError> {
    let tmpfs = closed_tmpfs(store, tag)?;
    attach(&tmpfs, store).at("mount a tmpfs on", store)?;
    for (n, path) in paths.iter().enumerate() {
        let name = n.to_string();
        rustix::fs::symlinkat(STAND_IN, &tmpfs, &name).at("make the link that hides", path)?;
        let never = Timestamps { last_access: NEVER, last_modification: NEVER };
        rustix::fs::utimensat(&tmpfs, &name, &never, AtFlags::SYMLINK_NOFOLLOW)
            .at("set the time of the link that hides", path)?;
        let link = store.join(name.as_bytes()).map_err(io::Error::other).at("name the link that hides", path)?;
        let link = clone_at(link.as_path(), false).at("clone the link that hides", path)?;
        attach(&link, path).at("hide the file", path)?;
    }
    rustix::mount::unmount(store.as_path(), rustix::mount::UnmountFlags::DETACH).at("unmount the tmpfs from", store)
}

/// The time of access of a link that nobody has followed.
const NEVER: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The hidden files that somebody in the run has asked for; of directories it is not known.
pub fn asked_for(plan: &Plan) -> impl Iterator<Item = &AbsPath> {
    let is_followed = |path: &&AbsPath| {
        let link = at_path(path).and_then(|link| Ok(rustix::fs::fstat(&link)?));
        link.is_ok_and(|link| rustix::fs::FileType::from_raw_mode(link.st_mode).is_symlink() && link.st_atime != NEVER.tv_sec)
    };
    plan.hidden.iter().filter(is_followed)
}
