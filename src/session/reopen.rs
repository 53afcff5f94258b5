//! A session of a run whose commit was undone is open again: what the rollback took off the tree lies where a command sees it.
//!
//! **X3** It has both names while the header says `reopening`; whoever locks the session next takes away those that its status has no use for.
//!
//! ```text
//!   reopening, rolled back -> names in uppers -> reopening, pending -> names in held/objects go -> pending
//!   |-- killed here: rolled back, as it was ---|-- killed here: open again ------------------------------|
//! ```

use std::collections::BTreeSet;

use super::change::{Change, object_name};
use super::header::{Checkpoint, Counts, Header, Origin, Status};
use super::opened::{Locked, Opener, Session};
use super::sides::{Side, from_text};
use crate::error::Error;
use crate::fs::Fs;
use crate::fs::dir::{Sort, Stat};

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
        let (mut objects, mut uppers) = (Opener::new(self), Opener::new(self));
        for Names { held, seen } in self.names()? {
            let held = objects.at(&held)?;
            if is_open {
                fs.remove_all(held)?;
                continue;
            }
            let inode = |stat: Stat| (stat.dev, stat.ino);
            let seen = uppers.at(&seen)?;
            if seen.stat()?.is_some_and(|given| held.stat().is_ok_and(|kept| kept.map(inode) == Some(inode(given)))) {
                let mtime = seen.dir.stat()?.mtime;
                fs.unlink(seen)?;
                fs.set_mtime(seen.dir.at(b"."), mtime)?;
            }
        }
        self.save(fs, Header { reopening: false, ..self.header.clone() })
    }

    /// Gives what the rollback took off the tree the names by which commands see it, durably.
    fn give_names(&self, fs: &Fs) -> Result<(), Error> {
        let (mut objects, mut uppers, mut given) = (Opener::new(self), Opener::new(self), BTreeSet::new());
        for Names { held, seen } in self.names()? {
            let held = objects.at(&held)?;
            // A directory stayed there.
            if held.stat()?.is_some_and(|stat| stat.sort != Sort::Directory) {
                let at = uppers.at(&seen)?;
                let mtime = at.dir.stat()?.mtime;
                fs.link(held, at)?;
                fs.set_mtime(at.dir.at(b"."), mtime)?;
                let last = at.name.len();
                given.insert(seen[..seen.len() - last].to_vec());
            }
        }
        given.iter().try_for_each(|upper| Ok(fs.sync_dir(uppers.at(upper)?.dir)?)) // D2: the other names go
    }

    /// The two names of what each change led to, but for what its upper kept.
    fn names(&self) -> Result<Vec<Names>, Error> {
        let run = self.run()?;
        let names = |change: &Change| {
            let (held, seen) = (object_name(change.n), Session::held_at(change, Side::Never, run.as_ref())?);
            (seen != held).then_some(Names { held, seen })
        };
        Ok(self.changes()?.list.iter().filter_map(names).collect())
    }
}
