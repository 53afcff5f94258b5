//! The looks of an upper: an overlay's top shows its own owner, mode, times and xattrs.

use super::ids::Ids;
use super::layout::{Route, is_overlay_xattr};
use crate::error::{At, IoError};
use crate::fs::Fs;
use crate::fs::dir::{Dir, Entry, Time};

/// Gives an upper the looks of the directory that it covers; tells the mtime that it gave.
pub(super) fn dress(fs: &Fs, route: Route, ids: &Ids, upper: Entry<'_>, dir: &Dir) -> Result<Time, IoError> {
    let covered = dir.path().display();
    let stat = dir.stat().at("look at the folder to capture", &covered)?;
    if route == Route::Root {
        fs.set_owner(upper, stat.uid, stat.gid).at("set the owner of the upper folder", upper)?;
    } else if ids.groups.contains(&stat.gid) {
        // What is made in a setgid directory gets its group.
        fs.set_owner(upper, ids.uid, stat.gid).at("set the group of the upper directory", upper)?;
    }
    for (name, value) in dir.xattrs().at("read the extended attributes", &covered)? {
        if is_overlay_xattr(&name) {
            continue;
        }
        match fs.set_xattr(upper, &name, &value) {
            // A user can't set what is the system's; the store's file system need not have what the folder's has.
            Err(error) if route == Route::User || matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EPERM)) => {}
            other => other.at("set an extended attribute of the upper folder", upper)?,
        }
    }
    fs.set_mode(upper, stat.mode).at("set the mode of the upper folder", upper)?;
    fs.set_mtime(upper, stat.mtime).at("set the time of the upper folder", upper)?;
    Ok(stat.mtime)
}
