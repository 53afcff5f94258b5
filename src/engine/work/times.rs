//! The times of directories: names that come and go change them, and an undo restores them.

use std::rc::Rc;

use crate::engine::journal::Journal;
use crate::engine::reach::{Reach, open};
use crate::engine::step::DirectoryTime;
use crate::error::{Error, IoError};
use crate::fs::{Dir, Fs, Roots, Sort};
use crate::tree::observe;

pub fn restore_times(fs: &Fs, reach: &mut Reach, journal: &Journal) -> Result<(), Error> {
    for time in &journal.head.times {
        put_back_time(fs, &mut reach.roots, time)?;
    }
    // Directories that went and are back: their children's steps have changed their times.
    for item in journal.items.iter().filter(|item| item.moves() && item.was_dir()) {
        let Some(from) = &item.from else { continue };
        let Some(named) = open(reach.path(&item.path))? else { continue };
        if named.at().stat()?.is_some_and(|stat| from.print.identity.is(observe::identity(&stat)) && stat.sort == Sort::Directory)
        {
            ignore_not_mine(fs.set_mtime(named.at(), from.state.meta.mtime))?;
        }
    }
    Ok(())
}

pub fn put_back_time(fs: &Fs, roots: &mut Roots, time: &DirectoryTime) -> Result<(), Error> {
    let Some(dir) = directory_of(roots, time)? else { return Ok(()) };
    if dir.stat()?.mtime == time.old {
        return Ok(());
    }
    ignore_not_mine(fs.set_mtime(dir.at(b"."), time.old))?;
    Ok(())
}

/// Opens the directory of a time, if it is still the same one.
fn directory_of(roots: &mut Roots, time: &DirectoryTime) -> Result<Option<Rc<Dir>>, Error> {
    let dir = match roots.directory(&time.path) {
        Ok(dir) => dir,
        Err(error) if error.leads_nowhere() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let stat = dir.stat()?;
    Ok(time.identity.is(observe::identity(&stat)).then_some(dir))
}

/// Ignores errors from setting the time of somebody else's directory (`/tmp`), or on a file system without the call (FUSE): the time of
/// this operation stays.
pub fn ignore_not_mine(result: Result<(), IoError>) -> Result<(), IoError> {
    match result {
        Err(error) if matches!(error.errno(), Some(libc::EPERM | libc::ENOSYS | libc::EOPNOTSUPP)) => Ok(()),
        other => other,
    }
}
