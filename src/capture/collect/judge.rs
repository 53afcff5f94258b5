//! Compares one name of the upper with the real object, and records what became of it.

use std::io;
use std::rc::Rc;

use serde_json::Map;

use super::facts::full_path;
use super::foreign::{Gone, marks_of};
use super::same::same_content;
use super::{Found, Linked};
use crate::capture::layout::Route;
use crate::error::{At, Error, IoError, shell_word};
use crate::fs::dir::{Dir, Entry, Sort, Stat, Time, leads_nowhere};
use crate::fs::path::AbsPath;
use crate::session::change::{Before, Change, DirectoryTime, Marks};
use crate::session::run::Place;
use crate::tree::hash::Hash;
use crate::tree::look::{self, Seen};
use crate::tree::state::{Meta, State};
use crate::tree::walk::Walk;

/// The way to go on in a directory: with a real one or not, and the directory that hid its names in the run, if one did.
pub(super) struct Down {
    pub has_real: bool,
    pub hider: Option<Stat>,
    /// True if its upper was made before the command started, for an overlay of its own.
    pub laid: bool,
}

/// Tells whether the object of a stat has lost its name: nothing has it, or something else by now.
fn has_gone(at: Entry<'_>, old: &Stat) -> bool {
    at.stat().is_ok_and(|now| now.is_none_or(|now| look::identity(&now) != look::identity(old) || now.sort != old.sort))
}

/// The parts of the upper that hide the real object of a name that the upper does not have.
#[derive(Clone, Copy)]
pub(super) struct Hiding {
    /// The name's own whiteout.
    pub whiteout: Option<Stat>,
    /// The opaque directory that it lies in, or under.
    pub above: Option<Stat>,
}

impl Found<'_> {
    /// Opens up an upper whose directory the command closed, before it is opened to be read.
    pub(super) fn open_top(&mut self, place: &Place) -> Result<(), Error> {
        let uppers = self.facts.held.at(b"upper").open_dir()?;
        let number = place.k.to_string();
        let at = uppers.at(number.as_bytes());
        if let Some(stat) = at.stat().at("look at the upper of", &place.path)? {
            self.modes.open_up(stat)?;
        }
        Ok(())
    }

    /// Compares the captured directory itself.
    pub(super) fn top(&mut self, place: &Place, upper: &Dir, real: Option<&Rc<Dir>>) -> Result<(), Error> {
        let Some(real) = real else { return Ok(()) };
        let path = &place.path;
        let before = look::directory(real)?;
        let after = look::directory(upper).at("look at the upper of", path)?.state;
        let new = self.modes.open_up(upper.stat().at("look at the upper of", path)?)?;
        let stat = real.stat()?;
        self.covered(path, place.mtime, (before, &stat), (after, &new, upper))
    }

    /// Compares a directory that an overlay covered: mode, owner, xattrs and times. Its upper was made to look like it, with the mtime
    /// `laid`. A user's upper has only what the user may set, so only mode and time count there.
    fn covered(
        &mut self,
        path: &AbsPath,
        laid: Option<Time>,
        (before, stat): (Seen, &Stat),
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
        if differs && self.since(stat.ctime, self.start_for(path, None)).is_some() {
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
        self.directory(path, before, stat, new, after);
        Ok(())
    }

    /// Looks at one name: `new` is the upper's object, whiteouts aside. For a directory, returns how to go on in it.
    pub(super) fn name(
        &mut self,
        at: Entry<'_>,
        path: &AbsPath,
        new: Option<Stat>,
        real: Option<&Rc<Dir>>,
        hiding: Hiding,
    ) -> Result<Option<Down>, Error> {
        let old = match real.map(|dir| dir.at(at.name).stat()).transpose() {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return self.unseen(at, path, new, hiding),
            old => old?.flatten(),
        };
        // A mount in a captured place has a place of its own, or was read-only in the run.
        if old.is_some_and(|stat| stat.mount_root) {
            if new.is_some() {
                let text = format!("{path}: it is a mount point: the command's replacement for it is not held");
                self.warnings.push(text);
            }
            return Ok(None);
        }
        let old = old.and_then(|stat| Some((real?, stat)));
        if let Some((dir, _)) = old {
            self.fs.between_readings(dir.at(at.name))?;
        }
        match self.judge(at, path, (new, old), real, hiding) {
            // It has gone since the first look: look once more. Nothing was noted yet: all reading comes before.
            Err(error)
                if error.io().is_some_and(leads_nowhere) && old.is_some_and(|(dir, stat)| has_gone(dir.at(at.name), &stat)) =>
            {
                self.name(at, path, new, real, hiding)
            }
            judged => judged,
        }
    }

    /// Records what became of a name: `old` is the tree's object.
    fn judge(
        &mut self,
        at: Entry<'_>,
        path: &AbsPath,
        (new, old): (Option<Stat>, Option<(&Rc<Dir>, Stat)>),
        real: Option<&Rc<Dir>>,
        hiding: Hiding,
    ) -> Result<Option<Down>, Error> {
        match (new, old) {
            (None, None) => {
                self.hides.extend(hiding.whiteout.map(|_| path.clone()));
                Ok(None)
            }
            (None, Some((dir, stat))) => {
                self.deleted(path, dir, at.name, &stat, hiding.whiteout.or(hiding.above))?;
                Ok(None)
            }
            (Some(new), None) => {
                if self.is_left_alone(at, &new).at("look at the upper of", path)? {
                    return Ok(Some(Down { has_real: false, hider: None, laid: true }));
                }
                self.appeared(path, at, &new, real)?;
                Ok((new.sort == Sort::Directory).then_some(Down { has_real: false, hider: None, laid: false }))
            }
            (Some(new), Some((dir, old))) => match (new.sort == Sort::Directory, old.sort == Sort::Directory) {
                (true, true) => {
                    let down = self.directory_in_both(path, (at, &new), (dir.at(at.name), &old))?;
                    Ok(Some(Down { hider: hiding.above.or(down.hider), ..down }))
                }
                // Somebody has put something else where the run's own upper covered a directory.
                (true, false) if self.is_left_alone(at, &new).at("look at the upper of", path)? => {
                    Ok(Some(Down { has_real: false, hider: None, laid: true }))
                }
                (true, false) => {
                    self.put(path, at, &new, Some((dir.at(at.name), &old)))?;
                    Ok(Some(Down { has_real: false, hider: None, laid: false }))
                }
                (false, was_dir) => {
                    self.put(path, at, &new, Some((dir.at(at.name), &old)))?;
                    if was_dir {
                        self.deleted_below(path, dir, at.name, Some(new))?;
                    }
                    Ok(None)
                }
            },
        }
    }

    /// Records a name in the user's own directory that is closed to that user, and was not in the run. A commit refuses it as long as that
    /// is so, and then finds what is there.
    fn unseen(&mut self, at: Entry<'_>, path: &AbsPath, new: Option<Stat>, hiding: Hiding) -> Result<Option<Down>, Error> {
        const CLOSED: &str = "you may not enter its directory on the tree";
        let Some(new) = new else {
            self.warnings.push(format!("{path}: {CLOSED}: its removal by the command is not held"));
            self.hides.extend(hiding.whiteout.map(|_| path.clone()));
            return Ok(None);
        };
        self.warnings.push(format!("{path}: {CLOSED}: what is there is unknown, so it can't be committed"));
        self.put(path, at, &new, None)?;
        Ok((new.sort == Sort::Directory).then_some(Down { has_real: false, hider: None, laid: false }))
    }

    /// Records an object of the upper where the tree has none.
    fn appeared(&mut self, path: &AbsPath, at: Entry<'_>, new: &Stat, real: Option<&Rc<Dir>>) -> Result<(), Error> {
        let removed = real.map(|dir| self.was_removed_meanwhile(path, at, new, dir)).transpose();
        if removed.at("look at the upper of", path)?.unwrap_or(false) {
            let state = look::seen(at, new).at("look at the upper of", path)?.state;
            let hash = if new.sort == Sort::File { hash(at).at("read the upper of", path)? } else { None };
            self.gone.push(Gone { path: path.clone(), state, hash });
        }
        self.put(path, at, new, None)
    }

    /// Compares a directory of the upper with the tree's.
    fn directory_in_both(
        &mut self,
        path: &AbsPath,
        (at, new): (Entry<'_>, &Stat),
        (real, old): (Entry<'_>, &Stat),
    ) -> Result<Down, Error> {
        let before = self.real(real, old)?;
        let seen = look::seen(at, new).at("look at the upper of", path)?;
        let laid = self.laid_time(&seen.state.meta);
        if laid.is_some() {
            let upper = at.open_dir()?;
            self.covered(path, laid, (before, old), (seen.state, new, &upper))?;
            return Ok(Down { has_real: true, hider: None, laid: true });
        }
        self.warn_of_flags(path, &seen.state);
        let (opaque, lost) = (self.is_opaque_state(&seen.state), self.lost(&seen.state));
        let made_afresh = seen.state.meta.xattr(&self.note("origin")).is_none();
        let by_both = made_afresh && old.btime.is_some_and(|made| self.since(made, self.start_for(path, Some(new))).is_some());
        let mut after = self.upper_state(seen.state);
        if !made_afresh {
            self.keep_unseen(&before.state, &mut after);
        }
        if lost || by_both {
            let marks = Marks { foreign: true, ..Marks::default() };
            self.list.push(change(path, Some(before), Some(after), marks));
        } else {
            self.directory(path, before, old, new, after);
        }
        let hides = opaque || lost;
        if hides {
            self.hides.push(path.clone());
        }
        Ok(Down { has_real: true, hider: hides.then_some(*new), laid: false })
    }

    /// Records a directory that was there and is: a change of its metadata, or its time (many of these are dropped at the end).
    fn directory(&mut self, path: &AbsPath, before: Seen, old: &Stat, new: &Stat, after: State) {
        if before.state.meta_difference(&after).is_some() {
            // A directory that was copied up, say to hold a new name, hides later changes of its metadata by somebody else. Equal times
            // prove nothing here: a chmod followed by a new name leaves them equal.
            let marks = marks_of(self.since(old.ctime, self.start_for(path, Some(new))));
            self.list.push(change(path, Some(before), Some(after), marks));
        } else if self.since(old.mtime, self.facts.started).is_none() {
            let (before, after) = (before.state.meta.mtime, after.meta.mtime);
            self.times.push(DirectoryTime { path: path.clone(), before, after });
        }
    }

    /// Records an object of the upper where the tree has nothing or another object; drops it if they are equal.
    fn put(&mut self, path: &AbsPath, at: Entry<'_>, new: &Stat, old: Option<(Entry<'_>, &Stat)>) -> Result<(), Error> {
        let seen = look::seen(at, new).at("look at the upper of", path)?;
        let lost = self.lost(&seen.state);
        let is_copied_up = seen.state.meta.xattr(&self.note("origin")).is_some();
        let before = match old {
            Some((real, stat)) => Some(self.before(path, real, stat)?),
            None => None,
        };
        self.warn_of_flags(path, &seen.state);
        let mut after = self.upper_state(seen.state);
        look::learn_meaning(at, path, &mut after).at("read the upper of", path)?;
        let mut marks = old.map(|(_, stat)| self.marks(path, stat, Some(new))).unwrap_or_default();
        if lost {
            (marks.foreign, marks.by_clock) = (true, false);
        }
        let (mut equal, mut same) = (false, false);
        if let (Some(before), Some((real, stat))) = (&before, old) {
            // The copy of one of several names has no such note.
            if before.state.sort() == after.sort() && (is_copied_up || stat.nlink > 1) {
                self.keep_unseen(&before.state, &mut after);
            }
            same = before.state.sort() == after.sort() && same_content(&before.state, &after, real, at);
            let same_meta = before.state.meta_difference(&after).is_none();
            // git rewrites its index to remember what it has seen: that is no difference, and neither is its time.
            let same_time = before.state.meta.mtime == after.meta.mtime || before.state.means_same(&after);
            equal = same && same_meta && same_time;
            marks.link_broken = stat.sort == Sort::File && stat.nlink > 1 && !same;
            // For symlinks and the like the states themselves show it.
            marks.same_content = same && after.sort() == Sort::File;
            if stat.sort == Sort::File && stat.nlink > 1 {
                self.names.entry((stat.dev, stat.ino)).or_default().push(path.clone());
            }
        }
        let is_linked = new.nlink > 1 && new.sort != Sort::Directory;
        if is_linked {
            let change = change(path, before, Some(after), marks);
            let has_others = old.is_some_and(|(_, stat)| stat.sort == Sort::File && stat.nlink > 1);
            self.groups.entry((new.dev, new.ino)).or_default().push(Linked { change, moves: !same, counts: !equal, has_others });
        } else if equal {
            self.hides.push(path.clone());
        } else {
            self.list.push(change(path, before, Some(after), marks));
        }
        Ok(())
    }

    /// Records a name that is gone, hidden by `hider`: every path under it is a change of its own.
    fn deleted(&mut self, path: &AbsPath, dir: &Rc<Dir>, name: &[u8], stat: &Stat, hider: Option<Stat>) -> Result<(), Error> {
        self.delete_one(path, dir.at(name), stat, hider)?;
        if stat.sort == Sort::Directory {
            self.deleted_below(path, dir, name, hider)?;
        }
        Ok(())
    }

    fn deleted_below(&mut self, path: &AbsPath, dir: &Rc<Dir>, name: &[u8], hider: Option<Stat>) -> Result<(), Error> {
        if dir.at(name).is_closed() {
            self.warn_of_closed(path);
            return Ok(());
        }
        let top = match dir.open_below(name) {
            // Its deletion is noted already: a commit finds that somebody else has removed it.
            Err(error) if error.leads_nowhere() => return Ok(()),
            top => Rc::new(top?),
        };
        let walk = Walk::under(top)?.past_closed();
        let mount = walk.mount();
        for found in walk {
            let found = found?;
            let full = full_path(path, &found.below);
            if found.stat.mount != mount || full.is_under(self.facts.store) {
                continue;
            }
            match self.delete_one(&full, found.dir.at(found.name()), &found.stat, hider) {
                // Somebody else has removed it since: nothing was left for the command to remove.
                Err(error) if error.io().is_some_and(leads_nowhere) => continue,
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

    fn delete_one(&mut self, path: &AbsPath, at: Entry<'_>, stat: &Stat, hider: Option<Stat>) -> Result<(), Error> {
        let before = self.before(path, at, stat)?;
        let marks = self.marks(path, stat, hider.as_ref());
        self.list.push(change(path, Some(before), None, marks));
        Ok(())
    }

    /// The full state of an object of the tree.
    fn before(&self, path: &AbsPath, at: Entry<'_>, stat: &Stat) -> Result<Seen, Error> {
        let mut before = self.real(at, stat)?;
        look::learn_meaning(at, path, &mut before.state)?;
        Ok(with_hash(before, at)?)
    }
}

pub(super) fn change(path: &AbsPath, before: Option<Seen>, after: Option<State>, marks: Marks) -> Change {
    let (object, print) = before.map_or((None, None), |seen| (Some(seen.state), Some(seen.print)));
    Change { n: 0, path: path.clone(), before: Before { object, print }, after, marks, extra: Map::new() }
}

/// Adds the content's hash where the fingerprint proves nothing: its ctime is too young, or the file lies on overlayfs, where any change of
/// metadata makes another inode of it. A file that can't be read keeps the doubt, which is a conflict at commit.
pub(super) fn with_hash(mut seen: Seen, at: Entry<'_>) -> Result<Seen, IoError> {
    if seen.state.sort() == Sort::File
        && (seen.print.racy || at.is_on_overlay()?)
        && let Some(hash) = hash(at)?
    {
        seen.set_hash(hash);
    }
    Ok(seen)
}

/// The hash of a file. `None` if its reader may not read it: the doubt remains, and that is a conflict.
fn hash(at: Entry<'_>) -> Result<Option<Hash>, IoError> {
    match look::hash(at) {
        Ok((hash, _)) => Ok(Some(hash)),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        Err(error) => Err(error),
    }
}
