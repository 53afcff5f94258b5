//! The end of a staging: its lines are written and counted.

use std::collections::BTreeMap;

use super::staging::{Staging, holds_content, refuse};
use crate::error::{Error, Kind, command};
use crate::fs::{AbsPath, Dir};
use crate::session::change::{Change, Changes, Line, object_name};
use crate::session::open_session::part;
use crate::tree::State;

impl Staging<'_> {
    /// Checks that all `before`s fit each other. Each is of the moment of its first staging; if somebody else has been at work in
    /// between, no tree may match them all.
    fn check_together(&self) -> Result<(), Error> {
        let mut all: BTreeMap<&AbsPath, &Change> = self.changes.list.iter().map(|change| (&change.path, change)).collect();
        all.extend(self.staged.iter());
        let list = all.into_values().filter(|change| !change.is_none()).cloned().collect();
        let together = Changes { list, directory_times: Vec::new() };
        together.contradiction().map_or(Ok(()), |(path, _)| {
            let why = "the tree has changed since other changes of this session were staged, and does not fit them";
            Err(refuse("stage", path, why, Some("begin another session with " + command("session new"))))
        })
    }

    /// Stages nothing and removes content that was put. The next staging removes what cannot be removed now.
    pub fn give_up(self) {
        self.remove_made();
    }

    fn remove_made(&self) {
        for n in &self.made {
            let n = *n;
            drop(self.session.split(&object_name(n)).map(|(objects, name)| self.fs.unlink_if_there(objects.at(name))));
        }
    }

    /// Writes the lines of all that was staged, counts them, and removes objects that no change needs: what was replaced, and what an
    /// interrupted staging left. Returns the errors of that: those objects stay until the next staging.
    ///
    /// # Errors
    /// With `Kind::LeftOut` it is staged, with others nothing is.
    pub fn finish(mut self) -> Result<Vec<Error>, Error> {
        let staged = self.write_lines();
        if staged.as_ref().is_err_and(|error| error.kind() != Kind::LeftOut) {
            self.remove_made();
        }
        let gone = staged?;
        let objects = part(&self.session.dir, b"held/objects")?;
        let removed = gone.iter().map(|name| self.fs.unlink_if_there(objects.at(name)));
        Ok(removed.filter_map(Result::err).map(Error::from).collect())
    }

    /// Writes the lines. Returns the names of objects that no change needs then.
    fn write_lines(&mut self) -> Result<Vec<Vec<u8>>, Error> {
        self.check_together()?;
        let size = |change: &Change| change.after.as_ref().map_or(0, State::size);
        let mut needed: BTreeMap<u32, u64> =
            self.changes.list.iter().filter(|change| holds_content(change)).map(|change| (change.n, size(change))).collect();
        let staged = std::mem::take(&mut self.staged);
        let mut lines = Vec::with_capacity(staged.len());
        let mut count = self.changes.list.len() as u64;
        for (path, change) in staged {
            let old = self.changes.at(&path);
            if let Some(old) = old {
                needed.remove(&old.n);
            }
            // A link of a run's own puts its object even where the same one is there.
            let same = if self.taken.contains(&path) { change.before.object == change.after } else { change.is_none() };
            let none = same && !change.marks.linked;
            match (old.is_some(), none) {
                (true, true) => count -= 1,
                (false, false) => count += 1,
                (false, true) => continue,
                (true, false) => {}
            }
            lines.push(if none {
                Line::None { n: change.n, path }
            } else {
                if holds_content(&change) {
                    needed.insert(change.n, size(&change));
                }
                Line::Change(Box::new(change))
            });
        }
        let objects = part(&self.session.dir, b"held/objects")?;
        let kept = needed.values().sum();
        let gone = not_needed(&objects, &needed)?;
        if !lines.is_empty() {
            self.session.append(self.fs, &lines, (count, kept), &self.unsynced, &objects)?;
        }
        Ok(gone)
    }
}

/// The names of objects that no change needs.
fn not_needed(objects: &Dir, needed: &BTreeMap<u32, u64>) -> Result<Vec<Vec<u8>>, Error> {
    let mut names = objects.names()?;
    let number = |name: &[u8]| std::str::from_utf8(name).ok()?.parse().ok();
    names.retain(|name| !number(name).is_some_and(|n| needed.contains_key(&n)));
    Ok(names)
}
