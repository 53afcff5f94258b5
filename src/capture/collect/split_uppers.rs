//! Uppers that were made before the command started, for the directories of a split one (`place::lay_pieces`, H7).

use super::upper_reader::UpperReader;
use crate::capture::place::pieces::{LAID, laid_time, parted};
use crate::error::{Error, IoError};
use crate::fs::{AbsPath, Dir, Entry, Fs, Sort, Stat, Time};
use crate::tree::Meta;

impl UpperReader<'_> {
    /// The time that the upper was given, if it was made before the command started.
    pub fn laid_time(&self, meta: &Meta) -> Option<Time> {
        meta.xattr(&self.note(LAID)).and_then(laid_time)
    }

    /// Tells whether the command left such an upper alone, whose directory is gone: it holds nothing but others like it.
    pub fn is_left_alone(&self, at: Entry<'_>, stat: &Stat) -> Result<bool, IoError> {
        if stat.sort != Sort::Directory {
            return Ok(false);
        }
        let note = self.note(LAID);
        let mut queue = vec![at.open_dir()?];
        while let Some(dir) = queue.pop() {
            let laid = dir.xattrs()?.iter().find(|(name, _)| *name == note).and_then(|(_, value)| laid_time(value));
            if laid != Some(dir.stat()?.mtime) {
                return Ok(false);
            }
            for name in dir.names()? {
                match dir.at(&name).stat()? {
                    Some(stat) if stat.sort == Sort::Directory => queue.push(dir.at(&name).open_dir()?),
                    _ => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    /// The uppers without a change, innermost first.
    pub fn left_alone(&mut self) -> Vec<Vec<u8>> {
        let mut laid = std::mem::take(&mut self.laid);
        let is_timed = |path: &AbsPath| self.times.iter().any(|time| time.path == *path && time.before != time.after);
        laid.retain(|laid| self.index(&laid.path).is_none() && !is_timed(&laid.path));
        laid.into_iter().rev().map(|laid| laid.upper).collect()
    }
}

/// Removes the uppers that hold nothing: a further run in the session makes them anew if it needs them. Their directory keeps its time.
pub fn clear(fs: &Fs, held: &Dir, uppers: &[Vec<u8>]) -> Result<(), Error> {
    for upper in uppers {
        let (above, name) = parted(upper);
        let above = match held.open_below(above) {
            Err(error) if error.leads_nowhere() => continue,
            above => above?,
        };
        let at = above.at(name);
        let mtime = above.stat()?.mtime;
        match fs.rmdir(at) {
            // Something is held in it; or it was removed before this was cut off last time.
            Err(error) if matches!(error.errno(), Some(libc::ENOTEMPTY | libc::ENOENT)) => continue,
            done => done?,
        }
        fs.set_mtime(above.at(b"."), mtime)?;
    }
    Ok(())
}
