//! A session of a run whose commit was undone is open again: what the rollback took off the tree lies where a command sees it.
//!
//! **X3** It has both names while the header says `reopening`; whoever locks the session next takes away those that its status has no use for.
//!
//! ```text
//!   reopening, rolled back -> names in uppers -> reopening, pending -> names in held/objects go -> pending
//!   |-- killed here: rolled back, as it was ---|-- killed here: open again ------------------------------|
//! ```

use std::collections::BTreeMap;

use super::change::{Change, object_name};
use super::header::{Checkpoint, Counts, Header, Origin, Status};
use super::opened::{Locked, Session};
use super::sides::{Side, from_text};
use crate::error::Error;
use crate::fs::Fs;
use crate::fs::dir::{Dir, Sort};

impl Header {
    /// True for a session of a run, made here, whose commit was undone with nothing left or lost.
    pub fn may_reopen(&self) -> bool {
        let has_all = || from_text(&self.sides, self.sides_count()).is_some_and(|sides| !sides.contains(&Side::Lost));
        self.status() == Status::RolledBack
            && self.origin == Origin::Captured
            && self.imported.is_none()
            && self.left.is_empty()
            && has_all()
    }

    fn sides_count(&self) -> usize {
        usize::try_from(self.counts.changes).unwrap_or(usize::MAX)
    }
}

/// A name of what a rollback took off the tree, and the one that a command sees.
struct Names {
    held: Vec<u8>,
    seen: Vec<u8>,
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
            let (sides, checkpoint) = (String::new(), Checkpoint::Kept);
            self.save(fs, Header { counts, sides, checkpoint, ..self.header.clone() })
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
        for change in &self.changes()?.list {
            let Some(Names { held, seen }) = self.names(change)? else { continue };
            let (objects, name) = self.split(&held)?;
            let held = objects.at(name);
            if is_open {
                fs.remove_all(held)?;
                continue;
            }
            let inode = |stat: crate::fs::dir::Stat| (stat.dev, stat.ino);
            let (uppers, name) = self.split(&seen)?;
            let seen = uppers.at(name);
            if seen.stat()?.is_some_and(|given| held.stat().is_ok_and(|kept| kept.map(inode) == Some(inode(given)))) {
                let mtime = uppers.stat()?.mtime;
                fs.unlink(seen)?;
                fs.set_mtime(uppers.at(b"."), mtime)?;
            }
        }
        self.save(fs, Header { reopening: false, ..self.header.clone() })
    }

    /// Gives what the rollback took off the tree the names by which commands see it, durably.
    fn give_names(&self, fs: &Fs) -> Result<(), Error> {
        let mut given: BTreeMap<Vec<u8>, Dir> = BTreeMap::new();
        for change in &self.changes()?.list {
            let Some(Names { held, seen }) = self.names(change)? else { continue };
            let (objects, name) = self.split(&held)?;
            // A directory stayed there.
            let is_kept = objects.at(name).stat()?.is_some_and(|stat| stat.sort != Sort::Directory);
            if is_kept {
                let (uppers, last) = self.split(&seen)?;
                let mtime = uppers.stat()?.mtime;
                fs.link(objects.at(name), uppers.at(last))?;
                fs.set_mtime(uppers.at(b"."), mtime)?;
                given.insert(seen[..seen.len() - last.len()].to_vec(), uppers);
            }
        }
        given.values().try_for_each(|uppers| Ok(fs.sync_dir(uppers)?)) // D2: the other names go
    }

    /// The two names of what a change led to; `None` where the upper kept it.
    fn names(&self, change: &Change) -> Result<Option<Names>, Error> {
        let seen = Session::held_at(change, Side::Never, self.run()?.as_ref());
        let held = object_name(change.n);
        Ok(seen.filter(|seen| *seen != held).map(|seen| Names { held, seen }))
    }
}
