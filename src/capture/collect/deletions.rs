//! Records what is gone: a whiteout is the deletion of the object below, and of all under it.

use std::rc::Rc;

use super::facts::full_path;
use super::tree_below::{LowerObject, TreeBelow};
use super::upper_reader::UpperReader;
use crate::error::{Error, shell_word};
use crate::fs::{AbsPath, Dir, Entry, Sort, Stat};
use crate::tree::{Walk, observe};

use super::upper_reader::change;

impl UpperReader<'_> {
    /// Records all under a name that is gone: every path is a change of its own.
    pub fn deleted_below(&mut self, path: &AbsPath, below: &TreeBelow, name: &[u8], old: &LowerObject) -> Result<(), Error> {
        if !old.is_held && old.at(name).is_closed() {
            self.warn_of_closed(path);
            return Ok(());
        }
        // A real one that leads nowhere by now: its deletion is noted already, and a commit finds that somebody else has removed it.
        let mut todo = vec![(path.clone(), below.enter(name)?)];
        while let Some((path, below)) = todo.pop() {
            if !below.is_held() {
                if let Some(real) = below.real() {
                    self.deleted_below_real(&path, real)?;
                }
                continue;
            }
            let warnings = &mut self.warnings;
            let names = below.names(|error| {
                warnings.push(format!("{path}: cannot list its original content: {}", error.why()));
            })?;
            for name in names {
                let full = full_path(&path, &name)?;
                let Some(old) = below.at(&name)? else { continue };
                if old.stat.mount_root || full.is_under(self.facts.store) {
                    continue;
                }
                self.delete_one(&full, old.at(&name), &old)?;
                if old.stat.sort == Sort::Directory {
                    todo.push((full, below.enter(&name)?));
                }
            }
        }
        Ok(())
    }

    fn deleted_below_real(&mut self, path: &AbsPath, top: &Rc<Dir>) -> Result<(), Error> {
        let walk = Walk::under(top.clone())?.past_closed();
        let mount = walk.mount();
        for found in walk {
            let found = found?;
            let full = full_path(path, &found.below)?;
            if found.stat.mount != mount || full.is_under(self.facts.store) {
                continue;
            }
            let old = LowerObject { dir: found.dir.clone(), stat: found.stat, is_held: false };
            match self.delete_one(&full, old.at(found.name()), &old) {
                // Somebody else has removed or replaced it since: nothing was left for the command to remove.
                Err(error) if error.io().is_some() && has_gone(old.at(found.name()), &old.stat) => continue,
                done => done?,
            }
            if found.closed {
                self.warn_of_closed(&full);
            }
        }
        Ok(())
    }

    /// Warns of a removed directory whose content was open to the command alone.
    fn warn_of_closed(&mut self, path: &AbsPath) {
        self.warnings.push(format!(
            "{path}: you may not list it on the tree, so its removal can't be committed; chmod u+rx {} and run the command again",
            shell_word(path.as_bytes())
        ));
    }

    pub fn delete_one(&mut self, path: &AbsPath, at: Entry<'_>, old: &LowerObject) -> Result<(), Error> {
        let before = self.before(path, at, old)?;
        let marks = self.marks(old);
        self.list.push(change(path, Some(before), None, marks, old.is_held));
        Ok(())
    }
}

/// Tells whether the object of a stat has lost its name: nothing has it, or something else by now.
pub fn has_gone(at: Entry<'_>, old: &Stat) -> bool {
    at.stat().is_ok_and(|now| now.is_none_or(|now| observe::identity(&now) != observe::identity(old) || now.sort != old.sort))
}
