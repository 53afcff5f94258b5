//! The times of directories: names that come and go change them, and an undo restores them.

use std::rc::Rc;

use super::journal::Journal;
use super::reach::{Reach, open};
use super::step::FolderTime;
use crate::error::{At, Error};
use crate::fs::Fs;
use crate::fs::dir::{Dir, Sort, leads_nowhere};
use crate::fs::roots::Roots;
use crate::tree::look;

pub(super) fn restore_times(fs: &Fs, reach: &mut Reach, journal: &Journal) -> Result<(), Error> {
    for time in &journal.head.times {
        put_back_time(fs, &mut reach.roots, time)?;
    }
    // Directories that went and are back: their children's steps have changed their times.
    for item in journal.items.iter().filter(|item| item.moves() && item.was_folder()) {
        let Some(from) = &item.from else { continue };
        let Some(named) = open(reach.path(&item.path), "open the folder of", &item.path)? else { continue };
        if named
            .at()
            .stat()
            .at("look at", &item.path)?
            .is_some_and(|stat| from.print.identity.is(look::identity(&stat)) && stat.sort == Sort::Folder)
        {
            ignore_not_mine(fs.set_mtime(named.at(), from.state.meta.mtime)).at("set the time of", &item.path)?;
        }
    }
    Ok(())
}

pub(super) fn put_back_time(fs: &Fs, roots: &mut Roots, time: &FolderTime) -> Result<(), Error> {
    let Some(dir) = folder_of(roots, time)? else { return Ok(()) };
    if dir.stat().at("look at", &time.path)?.mtime == time.old {
        return Ok(());
    }
    ignore_not_mine(fs.set_mtime(dir.at(b"."), time.old)).at("set the time of", &time.path)?;
    Ok(())
}

/// Opens the directory of a time, if it is still the same one.
fn folder_of(roots: &mut Roots, time: &FolderTime) -> Result<Option<Rc<Dir>>, Error> {
    let dir = match roots.folder(&time.path) {
        Ok(dir) => dir,
        Err(error) if leads_nowhere(&error) => return Ok(None),
        Err(error) => return Err(error).at("open the folder", &time.path).map_err(Error::from),
    };
    let stat = dir.stat().at("look at", &time.path)?;
    Ok(time.identity.is(look::identity(&stat)).then_some(dir))
}

/// Ignores errors from setting the time of somebody else's directory (`/tmp`), or on a file system without the call (FUSE): the time of
/// this operation stays.
pub(super) fn ignore_not_mine(result: std::io::Result<()>) -> std::io::Result<()> {
    match result {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS | libc::EOPNOTSUPP)) => Ok(()),
        other => other,
    }
}
