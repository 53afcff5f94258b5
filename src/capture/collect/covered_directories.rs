//! Compares a directory that an overlay covered: mode, owner, xattrs and times.

use super::tree_below::TreeBelow;
use super::upper_reader::UpperReader;
use crate::capture::place::layout::Route;
use crate::error::{At, Error};
use crate::fs::{AbsPath, Dir, Stat, Time};
use crate::session::Place;
use crate::tree::{Meta, Seen, State, observe};

impl UpperReader<'_> {
    /// Opens up an upper whose directory the command closed, before it is opened to be read.
    pub fn open_top(&mut self, place: &Place) -> Result<(), Error> {
        let uppers = self.facts.held.at(b"upper").open_dir()?;
        let name = place.upper_name(self.facts.step);
        let at = uppers.at(&name);
        if let Some(stat) = at.stat().at("look at the upper of", &place.path)? {
            self.modes.open_up(stat)?;
        }
        Ok(())
    }

    pub fn top(&mut self, place: &Place, upper: &Dir, tops: &TreeBelow) -> Result<(), Error> {
        let Some((old, is_held)) = tops.top() else { return Ok(()) };
        let path = &place.path;
        let stat = old.stat()?;
        // A mount has come or gone since: what its directory looked like is no change of what is there now.
        let is_another = place.inode.is_some_and(|inode| inode != (stat.dev.0, stat.dev.1, stat.ino));
        if is_another && !is_held && !self.facts.cut_off && upper.is_empty()? {
            return Ok(());
        }
        let before = match is_held {
            true => self.held_state(path, observe::directory(old).at("look at a sealed upper of", path)?, &stat)?,
            false => observe::directory(old)?,
        };
        let before = self.as_covered(tops, before, is_held)?;
        let after = observe::directory(upper).at("look at the upper of", path)?.state;
        let new = self.modes.open_up(upper.stat().at("look at the upper of", path)?)?;
        self.covered(path, place.mtime, (before, &stat, is_held), (after, &new, upper))
    }

    /// The state of a covered directory's sealed upper: a user's has only what the user may set, so the rest is the real one's.
    pub fn as_covered(&self, below: &TreeBelow, mut before: Seen, is_held: bool) -> Result<Seen, Error> {
        if let (true, Route::User, Some(real)) = (is_held, self.facts.route, below.real()) {
            let real = observe::directory(real)?.state.meta;
            let Meta { mode, mtime, .. } = before.state.meta;
            let mode = if real.uid == rustix::process::geteuid().as_raw() { mode } else { real.mode };
            before.state.meta = Meta { mode, mtime, ..real };
        }
        Ok(before)
    }

    /// Compares a directory that an overlay covered: mode, owner, xattrs and times. Its upper was made to look like it, with the mtime
    /// `laid`. A user's upper has only what the user may set, so only mode and time count there.
    pub fn covered(
        &mut self,
        path: &AbsPath,
        laid: Option<Time>,
        (before, stat, is_held): (Seen, &Stat, bool),
        (after, new, upper): (State, &Stat, &Dir),
    ) -> Result<(), Error> {
        let mut after = self.upper_state(after);
        after.meta.mode = new.mode;
        if self.facts.route == Route::User {
            let meta = before.state.meta.clone();
            after.meta = Meta { mode: after.meta.mode, mtime: after.meta.mtime, ..meta };
            if before.state.meta.uid != new.uid {
                // This user can set only the time of another's directory (/tmp).
                after.meta.mode = before.state.meta.mode;
            }
        }
        self.keep_unseen(&before.state, &mut after);
        let differs = before.state.meta_difference(&after).is_some();
        // Nothing was done in it. Its time may differ, if somebody made a name while the upper was made.
        if !differs && upper.is_empty()? {
            return Ok(());
        }
        // The upper was made to look like it, so it is unknown who changed which.
        if differs && !is_held && self.since(stat.ctime).is_some() {
            let text = format!(
                "{path}: its metadata was also changed outside the run meanwhile: the command's changes to it are not held"
            );
            self.warnings.push(text);
            return Ok(());
        }
        // The command did not change its time either: somebody else set the tree's.
        if !differs && laid == Some(after.meta.mtime) {
            after.meta.mtime = before.state.meta.mtime;
        }
        self.directory(path, (before, stat, is_held), after);
        Ok(())
    }
}
