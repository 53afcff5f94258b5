//! Compares the copy of a mounted file with the original.

use super::facts::upper_of;
use super::same_content::same_content;
use super::tree_below::LowerObject;
use super::upper_reader::{UpperReader, change, is_equal, with_hash};
use crate::capture::place::copy_mounted_file::is;
use crate::error::{At, Error};
use crate::fs::{Dir, Sort, Stat};
use crate::session::{FileCopy, Marks, Place};
use crate::tree::observe;

impl UpperReader<'_> {
    /// Reads the copy of a mounted file. Only the command could reach it.
    pub fn file(&mut self, place: &Place) -> Result<(), Error> {
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
        let sealed = self.facts.sealed.below(self.facts.held, place, self.facts.route)?;
        let mut after = self.upper_state(observe::object_of(at, &new).at("look at the upper of", path)?.state);
        let root = Dir::open("/".as_ref())?;
        let held = sealed.into_iter().find(|dir| dir.at(name).stat().is_ok_and(|stat| stat.is_some()));
        let (old, is_held) = match held {
            Some(sealed) => (Some(sealed), true),
            None => match root.open_across(&directory[1..]) {
                Err(error) if error.leads_nowhere() => (None, false),
                parent => (Some(parent?), false),
            },
        };
        let old = old.map(|dir| dir.at(name).stat().map(|stat| stat.map(|stat| (dir, stat)))).transpose()?.flatten();
        // The path has another file, or this one was written to, since the copy was made.
        let foreign = !is_held && old.as_ref().is_none_or(|(_, stat)| !is(&file.original, stat));
        let mut marks = Marks { foreign, ..Marks::default() };
        let mut equal = false;
        let before = match &old {
            None => None,
            Some((dir, stat)) => {
                let below = dir.at(name);
                let before = self.old_state(path, below, &LowerObject { dir: dir.again()?.into(), stat: *stat, is_held })?;
                self.keep_unseen(&before.state, &mut after);
                marks.same_content = stat.sort == Sort::File && same_content(&before.state, &after, below, at);
                equal = marks.same_content && is_equal(&before.state, &after);
                Some(if is_held { before } else { with_hash(before, below)? })
            }
        };
        if !equal {
            self.list.push(change(path, before, Some(after), marks, is_held));
        }
        Ok(())
    }

    /// Tells whether the command left the copy alone. If the machine went down, an older state than the noted one may be there.
    fn is_as_copied(&self, file: &FileCopy, new: &Stat) -> bool {
        is(&file.copy, new) || self.facts.cut_off && new.ctime <= file.copy.ctime
    }
}
