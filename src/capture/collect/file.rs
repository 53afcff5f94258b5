//! Compares the copy of a mounted file with the original.

use super::Found;
use super::facts::upper_of;
use super::judge::{change, with_hash};
use super::same::same_content;
use crate::capture::file::is;
use crate::error::{At, Error};
use crate::fs::dir::{Dir, Sort, Stat};
use crate::session::change::Marks;
use crate::session::run::{FileCopy, Place};
use crate::tree::look;

impl Found<'_> {
    /// Reads the copy of a mounted file. Only the command could reach it.
    pub(super) fn file(&mut self, place: &Place) -> Result<(), Error> {
        let (Some(file), Some((directory, name))) = (&place.file, place.path.split()) else { return Ok(()) };
        let path = &place.path;
        let Some(upper) = upper_of(self.facts, place)? else { return Ok(()) };
        let at = upper.at(name);
        // Cleared with a scratch place, or lost before it was ever synced.
        let Some(new) = at.stat().at("look at the upper of", path)? else { return Ok(()) };
        if self.is_as_copied(file, &new) {
            return Ok(());
        }
        let new = self.modes.open_up(new)?;
        let root = Dir::open("/".as_ref())?;
        let parent = match root.open_across(&directory[1..]) {
            Err(error) if error.leads_nowhere() => None,
            parent => Some(parent?),
        };
        let old = match &parent {
            Some(parent) => parent.at(name).stat()?.map(|stat| (parent.at(name), stat)),
            None => None,
        };
        let mut after = self.upper_state(look::seen(at, &new).at("look at the upper of", path)?.state);
        // The path has another file, or this one was written to, since the copy was made: perhaps one run of the session after the first.
        let foreign = old.is_none_or(|(_, stat)| !is(&file.original, &stat));
        let mut marks = Marks { foreign, ..Marks::default() };
        let mut equal = false;
        let before = match old {
            None => None,
            Some((real, stat)) => {
                let before = self.real(real, &stat)?;
                self.keep_unseen(&before.state, &mut after);
                marks.same_content = stat.sort == Sort::File && same_content(&before.state, &after, real, at);
                equal = marks.same_content
                    && before.state.meta_difference(&after).is_none()
                    && before.state.meta.mtime == after.meta.mtime;
                Some(with_hash(before, real)?)
            }
        };
        if !equal {
            self.list.push(change(path, before, Some(after), marks));
        }
        Ok(())
    }

    /// Tells whether the command left the copy alone. If the machine went down, an older state than the noted one may be there.
    fn is_as_copied(&self, file: &FileCopy, new: &Stat) -> bool {
        is(&file.copy, new) || self.facts.cut_off && new.ctime <= file.copy.ctime
    }
}
