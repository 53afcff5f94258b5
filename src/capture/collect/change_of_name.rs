//! Compares one name of the upper with the real object, and records what became of it.

use std::io;
use std::rc::Rc;

use super::capabilities::may_stay;
use super::deletions::has_gone;
use super::foreign_changes::marks_of;
use super::same_content::same_content;
use super::tree_below::{LowerObject, TreeBelow};
use super::upper_reader::{LinkedChange, RemovedOriginal, UpperReader, change, hash, is_equal, with_hash};
use crate::error::{At, Error};
use crate::fs::{AbsPath, Dir, Entry, Sort, Stat};
use crate::session::{DirectoryTime, Marks};
use crate::tree::{Seen, State, observe};

/// The way to go on in a directory: with one below it or not, and the directory that hid its names in the run, if one did.
pub struct Descent {
    pub is_merged: bool,
    pub hider: Option<Stat>,
    /// True if its upper was made before the command started, for an overlay of its own.
    pub laid: bool,
}

/// The parts of the upper that hide the real object of a name that the upper does not have.
#[derive(Clone, Copy)]
pub struct Hiding {
    pub whiteout: Option<Stat>,
    /// The opaque directory that it lies in, or under.
    pub above: Option<Stat>,
}

impl UpperReader<'_> {
    /// Looks at one name: `new` is the upper's object, whiteouts aside. For a directory, returns how to go on in it.
    pub fn name(
        &mut self,
        at: Entry<'_>,
        path: &AbsPath,
        new: Option<Stat>,
        below: &TreeBelow,
        hiding: Hiding,
    ) -> Result<Option<Descent>, Error> {
        let old = match below.at(at.name) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return self.unseen(at, path, new),
            old => old?,
        };
        // A mount in a captured place has a place of its own, or was read-only in the run.
        if old.as_ref().is_some_and(|old| old.stat.mount_root) {
            if new.is_some() {
                let text = format!("{path}: it is a mount point: the command's replacement for it is not held");
                self.warnings.push(text);
            }
            return Ok(None);
        }
        if let Some(old) = &old {
            self.fs.between_readings(old.at(at.name))?;
        }
        match self.judge(at, path, (new, old.as_ref()), below, hiding) {
            // It has gone since the first look, or something else has come: look once more. Nothing was noted yet: all reading comes before.
            Err(error) if error.io().is_some() && old.is_some_and(|old| !old.is_held && has_gone(old.at(at.name), &old.stat)) => {
                self.name(at, path, new, below, hiding)
            }
            judged => judged,
        }
    }

    /// Records what became of a name: `old` is the object below.
    fn judge(
        &mut self,
        at: Entry<'_>,
        path: &AbsPath,
        (new, old): (Option<Stat>, Option<&LowerObject>),
        below: &TreeBelow,
        hiding: Hiding,
    ) -> Result<Option<Descent>, Error> {
        match (new, old) {
            (None, None) => {
                self.needless.extend(hiding.whiteout.map(|_| path.clone()));
                Ok(None)
            }
            (None, Some(old)) => {
                self.delete_one(path, old.at(at.name), old)?;
                if old.stat.sort == Sort::Directory {
                    self.deleted_below(path, below, at.name, old)?;
                }
                Ok(None)
            }
            (Some(new), None) => {
                if self.is_left_alone(at, &new).at("look at the upper of", path)? {
                    return Ok(Some(Descent { is_merged: false, hider: None, laid: true }));
                }
                self.appeared(path, at, &new, below.real())?;
                Ok((new.sort == Sort::Directory).then_some(Descent { is_merged: false, hider: None, laid: false }))
            }
            (Some(new), Some(old)) => match (new.sort == Sort::Directory, old.stat.sort == Sort::Directory) {
                (true, true) => {
                    let down = self.directory_in_both(path, (at, &new), old, below)?;
                    Ok(Some(Descent { hider: hiding.above.or(down.hider), ..down }))
                }
                // Somebody has put something else where the run's own upper covered a directory.
                (true, false) if self.is_left_alone(at, &new).at("look at the upper of", path)? => {
                    Ok(Some(Descent { is_merged: false, hider: None, laid: true }))
                }
                (true, false) => {
                    self.put(path, at, &new, Some(old), false)?;
                    Ok(Some(Descent { is_merged: false, hider: None, laid: false }))
                }
                (false, was_dir) => {
                    self.put(path, at, &new, Some(old), hiding.above.is_some())?;
                    if was_dir {
                        self.deleted_below(path, below, at.name, old)?;
                    }
                    Ok(None)
                }
            },
        }
    }

    /// Records a name in the user's own directory that is closed to that user, and was not in the run. A commit refuses it as long as that
    /// is so, and then finds what is there.
    fn unseen(&mut self, at: Entry<'_>, path: &AbsPath, new: Option<Stat>) -> Result<Option<Descent>, Error> {
        const CLOSED: &str = "you may not enter its directory on the tree";
        let Some(new) = new else {
            self.warnings.push(format!("{path}: {CLOSED}: its removal by the command is not held"));
            return Ok(None);
        };
        self.warnings.push(format!("{path}: {CLOSED}: what is there is unknown, so it can't be committed"));
        self.put(path, at, &new, None, false)?;
        Ok((new.sort == Sort::Directory).then_some(Descent { is_merged: false, hider: None, laid: false }))
    }

    /// Records an object of the upper where the tree has none.
    fn appeared(&mut self, path: &AbsPath, at: Entry<'_>, new: &Stat, real: Option<&Rc<Dir>>) -> Result<(), Error> {
        let removed = real.map(|dir| self.was_removed_meanwhile(at, dir)).transpose();
        if removed.at("look at the upper of", path)?.unwrap_or(false) {
            let state = observe::object_of(at, new).at("look at the upper of", path)?.state;
            let hash = if new.sort == Sort::File { hash(at).at("read the upper of", path)? } else { None };
            self.gone.push(RemovedOriginal { path: path.clone(), state, hash });
        }
        self.put(path, at, new, None, false)
    }

    /// Compares a directory of the upper with the one below.
    fn directory_in_both(
        &mut self,
        path: &AbsPath,
        (at, new): (Entry<'_>, &Stat),
        old: &LowerObject,
        below: &TreeBelow,
    ) -> Result<Descent, Error> {
        let before = self.old_state(path, old.at(at.name), old)?;
        let seen = observe::object_of(at, new).at("look at the upper of", path)?;
        let laid = self.laid_time(&seen.state.meta);
        if laid.is_some() {
            let upper = at.open_dir()?;
            let before = self.as_covered(&below.enter(at.name)?, before, old.is_held)?;
            self.covered(path, laid, (before, &old.stat, old.is_held), (seen.state, new, &upper))?;
            return Ok(Descent { is_merged: true, hider: None, laid: true });
        }
        self.warn_of_flags(path, &seen.state);
        let (opaque, lost) = (self.is_opaque_state(&seen.state), self.lost(&seen.state));
        let made_afresh = seen.state.meta.xattr(&self.note("origin")).is_none();
        let by_both = made_afresh && !old.is_held && old.stat.btime.is_some_and(|made| self.since(made).is_some());
        let mut after = self.upper_state(seen.state);
        if !made_afresh {
            self.keep_unseen(&before.state, &mut after);
        }
        if lost || by_both {
            let marks = Marks { foreign: true, ..Marks::default() };
            self.list.push(change(path, Some(before), Some(after), marks, old.is_held));
        } else {
            self.directory(path, (before, &old.stat, old.is_held), after);
        }
        Ok(Descent { is_merged: true, hider: (opaque || lost).then_some(*new), laid: false })
    }

    /// Records a directory that was there and is: a change of its metadata, or its time (many of these are dropped at the end).
    pub fn directory(&mut self, path: &AbsPath, (before, old, is_held): (Seen, &Stat, bool), after: State) {
        if before.state.meta_difference(&after).is_some() {
            // A directory that was copied up, say to hold a new name, hides later changes of its metadata by somebody else. Equal times
            // prove nothing here: a chmod followed by a new name leaves them equal.
            let sign = if is_held { None } else { self.since(old.ctime) };
            self.list.push(change(path, Some(before), Some(after), marks_of(sign), is_held));
        } else if is_held || self.since(old.mtime).is_none() {
            let (before, after) = (before.state.meta.mtime, after.meta.mtime);
            self.times.push(DirectoryTime { path: path.clone(), before, after });
            if is_held {
                self.held_times.insert(path.clone());
            }
        }
    }

    /// Records an object of the upper where nothing or another object lies below; drops it if they are equal. One that is `hidden` below by an
    /// opaque directory of the upper stays there: nothing would show in its place.
    fn put(&mut self, path: &AbsPath, at: Entry<'_>, new: &Stat, old: Option<&LowerObject>, hidden: bool) -> Result<(), Error> {
        let seen = observe::object_of(at, new).at("look at the upper of", path)?;
        let lost = self.lost(&seen.state);
        let is_copied_up = seen.state.meta.xattr(&self.note("origin")).is_some();
        let before = old.map(|old| self.before(path, old.at(at.name), old)).transpose()?;
        self.warn_of_flags(path, &seen.state);
        let mut after = self.upper_state(seen.state);
        observe::learn_meaning(at, path, &mut after).at("read the upper of", path)?;
        let is_held = old.is_some_and(|old| old.is_held);
        let mut marks = old.map(|old| self.marks(old)).unwrap_or_default();
        if lost {
            (marks.foreign, marks.by_clock) = (true, false);
        }
        // The real names of one file; those in a sealed upper part.
        let links = old.filter(|old| !old.is_held && old.stat.sort == Sort::File && old.stat.nlink > 1).map(|old| old.stat);
        let (mut equal, mut same) = (false, false);
        if let (Some(before), Some(old)) = (&before, old) {
            // The copy of one of several names has no such note.
            if before.state.sort() == after.sort() && (is_copied_up || old.stat.nlink > 1) {
                self.keep_unseen(&before.state, &mut after);
            }
            marks.replaced = !may_stay(self.facts.route, &before.state, &after);
            same = before.state.sort() == after.sort()
                && !marks.replaced
                && same_content(&before.state, &after, old.at(at.name), at);
            if same && new.nlink == 1 {
                self.keep_capability_of_same(path, is_held, &before.state, &mut after)?;
            }
            equal = same && is_equal(&before.state, &after);
            marks.link_broken = links.is_some() && !same;
            // For symlinks and the like the states themselves show it.
            marks.same_content = same && after.sort() == Sort::File;
            if let Some(stat) = links {
                self.names.entry((stat.dev, stat.ino)).or_default().push(path.clone());
            }
        }
        if !equal {
            self.note_program(path, at, &after)?;
        }
        let is_linked = new.nlink > 1 && new.sort != Sort::Directory;
        if is_linked {
            let change = change(path, before, Some(after), marks, is_held);
            self.groups.entry((new.dev, new.ino)).or_default().push(LinkedChange {
                change,
                moves: !same,
                counts: !equal,
                hidden,
                has_others: links.is_some(),
            });
        } else if equal {
            self.needless.extend((!hidden).then(|| path.clone()));
        } else {
            self.list.push(change(path, before, Some(after), marks, is_held));
        }
        Ok(())
    }

    /// The full state of an object below.
    pub fn before(&self, path: &AbsPath, at: Entry<'_>, old: &LowerObject) -> Result<Seen, Error> {
        let mut before = self.old_state(path, at, old)?;
        observe::learn_meaning(at, path, &mut before.state)?;
        Ok(if old.is_held { before } else { with_hash(before, at)? })
    }

    pub fn old_state(&self, path: &AbsPath, at: Entry<'_>, old: &LowerObject) -> Result<Seen, Error> {
        match old.is_held {
            true => self.held_state(path, observe::object_of(at, &old.stat).at("look at the sealed upper of", path)?, &old.stat),
            false => Ok(self.real(at, &old.stat)?),
        }
    }

    /// The state of an object of a sealed upper, as the command saw it.
    pub fn held_state(&self, path: &AbsPath, mut seen: Seen, stat: &Stat) -> Result<Seen, Error> {
        seen.state = self.upper_state(seen.state);
        seen.state.meta.mode = self.modes.as_left(stat);
        if let Some(Some(known)) = self.facts.net.at(path)?.map(|change| change.after) {
            self.keep_unseen(&known, &mut seen.state);
            self.keep_capability(&known, &mut seen.state);
        }
        Ok(seen)
    }
}
