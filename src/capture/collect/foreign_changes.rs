//! Finds what somebody else changed on the tree during the run: a conflict at commit, whatever the run did there.

use super::tree_below::LowerObject;
use super::upper_reader::{RemovedOriginal, UpperReader};
use crate::error::IoError;
use crate::fs::{Dir, Entry, Sign, Sort, Time};
use crate::session::{Change, Marks};
use crate::tree::{State, observe};

impl UpperReader<'_> {
    /// Marks copied-up objects that somebody removed from the tree. If the original is gone, either the run renamed it, which leaves a
    /// deletion of that very object somewhere, or somebody removed it. (Renamed and then edited looks like a removal. It comes here only if
    /// somebody changed the directory during the run; a conflict is the safe side.)
    pub fn mark_removed(&mut self) {
        for gone in std::mem::take(&mut self.gone) {
            let deleted = self.list.iter().filter(|change| change.after.is_none());
            let renamed =
                deleted.into_iter().any(|change| change.before.object.as_ref().is_some_and(|old| gone.was(change, old)));
            if !renamed && let Some(i) = self.index(&gone.path) {
                self.list[i].marks.foreign = true;
            }
        }
    }

    /// Marks whether a real object changed since the command started. A directory's ctime moves with its mtime when names in it change,
    /// which is no change of the directory itself.
    pub fn marks(&self, old: &LowerObject) -> Marks {
        if old.is_held {
            return Marks::default();
        }
        let real = &old.stat;
        let since = |time: Time| self.since(time);
        let sign = match real.sort {
            Sort::Directory => real.btime.and_then(since).or_else(|| since(real.ctime).filter(|_| real.ctime != real.mtime)),
            _ => since(real.ctime),
        };
        marks_of(sign)
    }

    /// The sign that a time on the tree gives of somebody's change since the command started.
    pub fn since(&self, time: Time) -> Option<Sign> {
        let sign = Some(Sign::During).filter(|_| time > self.facts.started)?;
        self.facts.span.map_or(Some(sign), |span| span.sign(time))
    }

    /// Tells whether an object of the upper was copied up from a real one that is gone, in a directory whose names changed during the run.
    pub fn was_removed_meanwhile(&self, at: Entry<'_>, real: &Dir) -> Result<bool, IoError> {
        if self.since(real.stat()?.mtime).is_none() {
            return Ok(false);
        }
        Ok(at.xattrs()?.iter().any(|(name, _)| name.as_slice() == self.note("origin")))
    }
}

pub fn marks_of(sign: Option<Sign>) -> Marks {
    Marks { foreign: sign.is_some(), by_clock: sign == Some(Sign::Perhaps), ..Marks::default() }
}

impl RemovedOriginal {
    /// Tells whether this is the deleted object, now under another name.
    fn was(&self, deleted: &Change, old: &State) -> bool {
        let alike = old.sort() == self.state.sort() && old.size() == self.state.size() && old.meta.mtime == self.state.meta.mtime;
        // If it can't be read, it is not known to be the same: the path becomes a conflict, which is the safe side.
        let same = || {
            let (parent, name) = deleted.path.split()?;
            let root = Dir::open("/".as_ref()).ok()?;
            let parent = root.open_across(parent.strip_prefix(b"/")?).ok()?;
            Some(observe::hash(parent.at(name)).ok()?.0 == self.hash?)
        };
        alike && (self.state.sort() != Sort::File || deleted.from.is_some() || same().unwrap_or(false))
    }
}
