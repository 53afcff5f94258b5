//! Compares one name of the upper with the real object, and records what became of it.

use std::io;
use std::rc::Rc;

use super::below::{Below, HELD, Old};
use super::facts::full_path;
use super::foreign::marks_of;
use super::found::{Found, Gone, Linked};
use super::same::same_content;
use crate::capture::place::layout::Route;
use crate::error::{At, Error, IoError, shell_word};
use crate::fs::dir::{Dir, Entry, Sort, Stat, Time};
use crate::fs::path::AbsPath;
use crate::session::change::{Before, Change, DirectoryTime, Marks};
use crate::session::run::Place;
use crate::tree::hash::Hash;
use crate::tree::observe;
use crate::tree::observe::Seen;
use crate::tree::state::{Meta, State};
use crate::tree::walk::Walk;

/// The way to go on in a directory: with one below it or not, and the directory that hid its names in the run, if one did.
pub struct Down {
    pub is_merged: bool,
    pub hider: Option<Stat>,
    /// True if its upper was made before the command started, for an overlay of its own.
    pub laid: bool,
}

/// Tells whether the object of a stat has lost its name: nothing has it, or something else by now.
fn has_gone(at: Entry<'_>, old: &Stat) -> bool {
    at.stat().is_ok_and(|now| now.is_none_or(|now| observe::identity(&now) != observe::identity(old) || now.sort != old.sort))
}

/// The parts of the upper that hide the real object of a name that the upper does not have.
#[derive(Clone, Copy)]
pub struct Hiding {
    pub whiteout: Option<Stat>,
    /// The opaque directory that it lies in, or under.
    pub above: Option<Stat>,
}

impl Found<'_> {
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

    pub fn top(&mut self, place: &Place, upper: &Dir, tops: &Below) -> Result<(), Error> {
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
    fn as_covered(&self, below: &Below, mut before: Seen, is_held: bool) -> Result<Seen, Error> {
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
    fn covered(
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

    /// Looks at one name: `new` is the upper's object, whiteouts aside. For a directory, returns how to go on in it.
    pub fn name(
        &mut self,
        at: Entry<'_>,
        path: &AbsPath,
        new: Option<Stat>,
        below: &Below,
        hiding: Hiding,
    ) -> Result<Option<Down>, Error> {
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
        (new, old): (Option<Stat>, Option<&Old>),
        below: &Below,
        hiding: Hiding,
    ) -> Result<Option<Down>, Error> {
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
                    return Ok(Some(Down { is_merged: false, hider: None, laid: true }));
                }
                self.appeared(path, at, &new, below.real())?;
                Ok((new.sort == Sort::Directory).then_some(Down { is_merged: false, hider: None, laid: false }))
            }
            (Some(new), Some(old)) => match (new.sort == Sort::Directory, old.stat.sort == Sort::Directory) {
                (true, true) => {
                    let down = self.directory_in_both(path, (at, &new), old, below)?;
                    Ok(Some(Down { hider: hiding.above.or(down.hider), ..down }))
                }
                // Somebody has put something else where the run's own upper covered a directory.
                (true, false) if self.is_left_alone(at, &new).at("look at the upper of", path)? => {
                    Ok(Some(Down { is_merged: false, hider: None, laid: true }))
                }
                (true, false) => {
                    self.put(path, at, &new, Some(old), false)?;
                    Ok(Some(Down { is_merged: false, hider: None, laid: false }))
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
    fn unseen(&mut self, at: Entry<'_>, path: &AbsPath, new: Option<Stat>) -> Result<Option<Down>, Error> {
        const CLOSED: &str = "you may not enter its directory on the tree";
        let Some(new) = new else {
            self.warnings.push(format!("{path}: {CLOSED}: its removal by the command is not held"));
            return Ok(None);
        };
        self.warnings.push(format!("{path}: {CLOSED}: what is there is unknown, so it can't be committed"));
        self.put(path, at, &new, None, false)?;
        Ok((new.sort == Sort::Directory).then_some(Down { is_merged: false, hider: None, laid: false }))
    }

    /// Records an object of the upper where the tree has none.
    fn appeared(&mut self, path: &AbsPath, at: Entry<'_>, new: &Stat, real: Option<&Rc<Dir>>) -> Result<(), Error> {
        let removed = real.map(|dir| self.was_removed_meanwhile(at, dir)).transpose();
        if removed.at("look at the upper of", path)?.unwrap_or(false) {
            let state = observe::seen(at, new).at("look at the upper of", path)?.state;
            let hash = if new.sort == Sort::File { hash(at).at("read the upper of", path)? } else { None };
            self.gone.push(Gone { path: path.clone(), state, hash });
        }
        self.put(path, at, new, None, false)
    }

    /// Compares a directory of the upper with the one below.
    fn directory_in_both(
        &mut self,
        path: &AbsPath,
        (at, new): (Entry<'_>, &Stat),
        old: &Old,
        below: &Below,
    ) -> Result<Down, Error> {
        let before = self.old_state(path, old.at(at.name), old)?;
        let seen = observe::seen(at, new).at("look at the upper of", path)?;
        let laid = self.laid_time(&seen.state.meta);
        if laid.is_some() {
            let upper = at.open_dir()?;
            let before = self.as_covered(&below.enter(at.name)?, before, old.is_held)?;
            self.covered(path, laid, (before, &old.stat, old.is_held), (seen.state, new, &upper))?;
            return Ok(Down { is_merged: true, hider: None, laid: true });
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
        Ok(Down { is_merged: true, hider: (opaque || lost).then_some(*new), laid: false })
    }

    /// Records a directory that was there and is: a change of its metadata, or its time (many of these are dropped at the end).
    fn directory(&mut self, path: &AbsPath, (before, old, is_held): (Seen, &Stat, bool), after: State) {
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
    fn put(&mut self, path: &AbsPath, at: Entry<'_>, new: &Stat, old: Option<&Old>, hidden: bool) -> Result<(), Error> {
        let seen = observe::seen(at, new).at("look at the upper of", path)?;
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
            same = before.state.sort() == after.sort() && same_content(&before.state, &after, old.at(at.name), at);
            equal = same && is_equal(&before.state, &after);
            marks.link_broken = links.is_some() && !same;
            // For symlinks and the like the states themselves show it.
            marks.same_content = same && after.sort() == Sort::File;
            if let Some(stat) = links {
                self.names.entry((stat.dev, stat.ino)).or_default().push(path.clone());
            }
        }
        let is_linked = new.nlink > 1 && new.sort != Sort::Directory;
        if is_linked {
            let change = change(path, before, Some(after), marks, is_held);
            self.groups.entry((new.dev, new.ino)).or_default().push(Linked {
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

    /// Records all under a name that is gone: every path is a change of its own.
    fn deleted_below(&mut self, path: &AbsPath, below: &Below, name: &[u8], old: &Old) -> Result<(), Error> {
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
            let old = Old { dir: found.dir.clone(), stat: found.stat, is_held: false };
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

    fn delete_one(&mut self, path: &AbsPath, at: Entry<'_>, old: &Old) -> Result<(), Error> {
        let before = self.before(path, at, old)?;
        let marks = self.marks(old);
        self.list.push(change(path, Some(before), None, marks, old.is_held));
        Ok(())
    }

    /// The full state of an object below.
    fn before(&self, path: &AbsPath, at: Entry<'_>, old: &Old) -> Result<Seen, Error> {
        let mut before = self.old_state(path, at, old)?;
        observe::learn_meaning(at, path, &mut before.state)?;
        Ok(if old.is_held { before } else { with_hash(before, at)? })
    }

    pub fn old_state(&self, path: &AbsPath, at: Entry<'_>, old: &Old) -> Result<Seen, Error> {
        match old.is_held {
            true => self.held_state(path, observe::seen(at, &old.stat).at("look at the sealed upper of", path)?, &old.stat),
            false => Ok(self.real(at, &old.stat)?),
        }
    }

    /// The state of an object of a sealed upper, as the command saw it.
    fn held_state(&self, path: &AbsPath, mut seen: Seen, stat: &Stat) -> Result<Seen, Error> {
        seen.state = self.upper_state(seen.state);
        seen.state.meta.mode = self.modes.as_left(stat);
        if let Some(Some(known)) = self.facts.net.at(path)?.map(|change| change.after) {
            self.keep_unseen(&known, &mut seen.state);
        }
        Ok(seen)
    }
}

/// Tells whether two states of one content are equal. git rewrites its index to remember what it has seen: that is no difference, and
/// neither is its time.
pub fn is_equal(before: &State, after: &State) -> bool {
    let same_time = before.meta.mtime == after.meta.mtime || before.means_same(after);
    before.meta_difference(after).is_none() && same_time
}

pub fn change(path: &AbsPath, before: Option<Seen>, after: Option<State>, marks: Marks, is_held: bool) -> Change {
    let (object, print) = before.map_or((None, None), |seen| (Some(seen.state), Some(seen.print)));
    let (print, from) = if is_held { (None, Some(HELD)) } else { (print, None) };
    Change { n: 0, path: path.clone(), before: Before { object, print }, after, marks, step: None, from }
}

/// Adds the content's hash where the fingerprint proves nothing: its ctime is too young, or the file lies on overlayfs, where any change of
/// metadata makes another inode of it. A file that can't be read keeps the doubt, which is a conflict at commit.
pub fn with_hash(mut seen: Seen, at: Entry<'_>) -> Result<Seen, IoError> {
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
    match observe::hash(at) {
        Ok((hash, _)) => Ok(Some(hash)),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        Err(error) => Err(error),
    }
}
