//! A session of a run whose commit was undone is open again: what the rollback took off the tree lies where a command sees it.
//!
//! **I25** It has both names while the header says `reopening`; whoever locks the session next takes away those that its status has no use for.
//!
//! ```text
//!   reopening, rolled back -> names in uppers -> reopening, pending -> names in held/objects go -> pending
//!   |-- killed here: rolled back, as it was ---|-- killed here: open again ------------------------------|
//! ```

use std::collections::BTreeMap;

use super::change::{Change, Changes, object_name};
use super::header::{Checkpoint, Counts, Header, Status};
use super::open_session::{Locked, Opener, Session, with_own_rights};
use super::run_record::Run;
use super::sides::{Side, from_text};
use crate::error::Error;
use crate::fs::{AbsPath, Dir, Fs, Sort, Stat, Time};

impl Header {
    /// True for a session made here whose commit was undone with nothing left or lost.
    pub fn may_reopen(&self) -> bool {
        let has_all = || from_text(&self.sides, self.sides_count()).is_some_and(|sides| !sides.contains(&Side::Lost));
        self.status() == Status::RolledBack && self.imported.is_none() && self.left.is_empty() && has_all()
    }

    fn sides_count(&self) -> usize {
        usize::try_from(self.counts.changes).unwrap_or(usize::MAX)
    }
}

impl Locked {
    /// Opens a session again that was rolled back: it is pending, as if nothing of it had been committed.
    ///
    /// # Errors
    /// A system call failed: it is rolled back, as it was; or it is open already.
    pub fn reopen(&mut self, fs: &Fs) -> Result<(), Error> {
        self.save(fs, Header { reopening: true, ..self.header.clone() })?;
        let done = self.give_names(fs).and_then(|()| {
            let counts = Counts { inside: 0, ever_in: 0, ..self.header.counts };
            let (sides, checkpoint, reopened) = (String::new(), Checkpoint::Kept, true);
            self.save(fs, Header { counts, sides, checkpoint, reopened, ..self.header.clone() })
        });
        let ended = self.end_reopening(fs);
        done.and(ended)
    }

    /// Takes away the names that were given, or left, when that was cut off.
    ///
    /// # Errors
    /// A system call failed: the next lock tries again.
    pub fn end_reopening(&mut self, fs: &Fs) -> Result<(), Error> {
        if !self.header.reopening {
            return Ok(());
        }
        let is_open = self.header.status() == Status::Pending;
        let (changes, run) = (self.changes()?, self.run()?);
        let (mut objects, mut uppers) = (Opener::new(self), Opener::new(self));
        for change in &changes.list {
            let (held, seen) = names(change, run.as_ref());
            if seen.as_ref() == Some(&held) {
                continue;
            }
            let held = objects.at(&held)?;
            if is_open {
                fs.remove_all(held)?;
                continue;
            }
            let Some(seen) = seen else { continue };
            let inode = |stat: Stat| (stat.dev, stat.ino);
            let seen = uppers.at(&seen)?;
            if seen.stat()?.is_some_and(|given| held.stat().is_ok_and(|kept| kept.map(inode) == Some(inode(given)))) {
                with_own_rights(fs, seen.dir, || Ok(fs.unlink(seen)?))?;
            }
        }
        self.save(fs, Header { reopening: false, ..self.header.clone() })
    }

    /// Gives what the rollback took off the tree the names by which commands see it, durably.
    fn give_names(&self, fs: &Fs) -> Result<(), Error> {
        let (changes, run) = (self.changes()?, self.run()?);
        let (mut objects, mut uppers, mut given) = (Opener::new(self), Opener::new(self), BTreeMap::new());
        for change in &changes.list {
            let (held, Some(seen)) = names(change, run.as_ref()) else { continue };
            if seen == held {
                continue;
            }
            let held = objects.at(&held)?;
            // A directory stayed there.
            if held.stat()?.is_some_and(|stat| stat.sort != Sort::Directory) {
                let at = uppers.at(&seen)?;
                with_own_rights(fs, at.dir, || Ok(fs.link(held, at)?))?;
                let last = at.name.len();
                given.insert(seen[..seen.len() - last].to_vec(), change.path.parent());
            }
        }
        // D2: the other names go. The commit had opened the directories, and changed their times: the deepest first, as some are closed again.
        for (upper, path) in given.iter().rev() {
            let dir = uppers.at(upper)?.dir;
            fs.sync_dir(dir)?;
            if let Some((mode, mtime)) = path.as_ref().and_then(|path| look_of(&changes, path)) {
                fs.set_mode(dir.at(b"."), mode)?;
                fs.set_mtime(dir.at(b"."), mtime)?;
            }
        }
        Ok(())
    }
}

/// The mode and mtime that a command sees of a directory; `None` where nobody knows.
fn look_of(changes: &Changes, path: &AbsPath) -> Option<(u32, Time)> {
    if let Some(after) = changes.at(path).and_then(|change| change.after.as_ref()) {
        return Some((after.meta.mode, after.meta.mtime));
    }
    let on_tree = Dir::open(path.as_path()).ok()?.stat().ok()?;
    let times = &changes.directory_times;
    let noted = times.binary_search_by(|time| time.path.cmp(path)).ok().map(|i| times[i].after);
    Some((on_tree.mode, noted.unwrap_or(on_tree.mtime)))
}

/// The name of what a rollback took off the tree, and the one that a command sees; `None` where the upper kept it, or there is none.
fn names(change: &Change, run: Option<&Run>) -> (Vec<u8>, Option<Vec<u8>>) {
    (object_name(change.n), Session::held_at(change, Side::Never, run))
}
