//! The look of an upper: an overlay's top shows the upper's owner, mode, times and xattrs.

use super::sealed_uppers::Sealed;
use crate::capture::place::layout::{Route, is_overlay_xattr};
use crate::capture::run::ids::Ids;
use crate::error::{At, IoError};
use crate::fs::{Dir, Entry, Fs, Time};

/// Makes an upper look like the directory that it covers, which may lie in a sealed upper; returns the mtime that it set.
pub fn dress(fs: &Fs, route: Route, ids: &Ids, upper: Entry<'_>, (dir, sealed): (&Dir, &Sealed)) -> Result<Time, IoError> {
    let covered = dir.path().display();
    let stat = dir.stat().at("look at the directory to capture", &covered)?;
    if route == Route::Root {
        fs.set_owner(upper, stat.uid, stat.gid)?;
    } else if ids.groups.contains(&stat.gid) {
        // New names in a setgid directory get its group.
        fs.set_owner(upper, ids.uid, stat.gid)?;
    }
    for (name, value) in dir.xattrs()? {
        if is_overlay_xattr(&name) {
            continue;
        }
        match fs.set_xattr(upper, &name, &value) {
            // A user can't set the system's xattrs, and the store's file system need not support those of the directory's.
            Err(error) if route == Route::User || matches!(error.errno(), Some(libc::EOPNOTSUPP | libc::EPERM)) => {}
            other => other?,
        }
    }
    fs.set_mode(upper, sealed.as_left(&stat))?;
    fs.set_mtime(upper, stat.mtime)?;
    Ok(stat.mtime)
}
