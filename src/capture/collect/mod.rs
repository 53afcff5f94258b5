//! Reads the uppers of a run into changes: compares each object of an upper with the one below it, in a sealed upper or on the real tree.
//! That tree is the overlay's lowest layer again, now that the mounts are gone.
//!
//! Takes stored facts alone, so that what a killed recant left is read in the same way. No recursion, and paths only below held
//! directories: a path is limited by its length alone. Comparing decides, never overlayfs' notes: an upper holds files equal to
//! their originals (opened for writing, chmod and back), and `opaque` means only that a directory was renamed. Its notes are used where
//! there is no other sign: whiteouts, opaque directories, and `origin`.
//!
//! Files: `facts` is what is known of the run; `walk` goes through an upper; `judge` compares one name, `file` a mounted file; `gone` drops
//! changes in mounts whose directory the command removed; `laid` knows uppers made before the command; `below` is what a run's upper lies
//! over; `compose` adds the changes to those of earlier steps; `modes` opens up what the command closed; `foreign` finds what others changed
//! meanwhile; `needless` removes what is no change; `notes` reads overlayfs' notes; `same` compares content;
//! `originals` keeps what was there before.

pub(super) mod below;
pub mod compose;
pub mod facts;
mod file;
mod foreign;
mod gone;
mod judge;
mod laid;
pub(super) mod modes;
mod needless;
mod notes;
pub mod originals;
mod same;
mod walk;

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use super::redirect;
use super::run::Leaving;
use super::scratch;
use crate::error::Error;
use crate::fs::Fs;
use crate::fs::device_number::Dev;
use crate::fs::dir::Dir;
use crate::fs::path::AbsPath;
use crate::session::change::{Change, Changes, DirectoryTime};
use crate::session::run::Place;
use compose::Composed;
use facts::{Facts, tops};
use foreign::Gone;
use laid::LaidUpper;
use modes::Modes;

/// The changes that a run left.
#[derive(Debug, Default)]
pub struct Collected {
    /// Its changes, numbered, with the net ones.
    pub composed: Composed,
    /// Facts that no change can tell, one line each, for people.
    pub warnings: Vec<String>,
    /// The number of changes in scratch places that were dropped.
    pub dropped: u64,
    /// The scratch places whose part of the uppers is to be removed.
    scratch: Vec<AbsPath>,
    /// Uppers that hold nothing, below `held`, innermost first.
    left_alone: Vec<Vec<u8>>,
    /// Objects of the upper that are no change, as paths: written and again equal, or removed by somebody else too.
    needless: Vec<AbsPath>,
}

impl Collected {
    /// The run's own changes.
    pub fn own(&self) -> &Changes {
        &self.composed.added.own
    }

    /// True if the run left nothing at all.
    pub fn is_empty(&self) -> bool {
        self.own().list.is_empty() && self.own().directory_times.is_empty()
    }
}

/// Collects a run that ended under this recant: reads the uppers, removes from them what is no change. Syncs nothing.
pub fn finish(fs: &Fs, leaving: Leaving, facts: &Facts<'_>) -> Result<Collected, Error> {
    let found = read(facts, fs)?;
    // Reading needs no unmounted uppers, as they are still. What is changed below must belong to no overlay.
    leaving.wait()?;
    let collected = filled(found, facts, fs)?;
    // Else they are removed as a whole.
    if !collected.is_empty() {
        clear(fs, facts, &collected)?;
    }
    Ok(collected)
}

/// Removes from the run's uppers what is no change of it, so that a further command sees the tree there: what was dropped, uppers that hold
/// nothing, needless copies. Also what overlayfs left in the work directories. Done again after a crash.
pub fn clear(fs: &Fs, facts: &Facts<'_>, collected: &Collected) -> Result<(), Error> {
    scratch::clear(fs, facts.held, (facts.places, facts.step), &collected.scratch)?;
    needless::clear(fs, facts, &collected.needless)?;
    laid::clear(fs, facts.held, &collected.left_alone)?;
    clear_work(fs, facts.held, facts.places)
}

/// Removes what overlayfs left in the work directories; a volatile mount's mark there forbids the next mount.
pub fn clear_work(fs: &Fs, held: &Dir, places: &[Place]) -> Result<(), Error> {
    let works = match held.at(b"work").open_dir() {
        // A session that was committed whole has none any more.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        works => works?,
    };
    for place in places {
        let number = place.k.to_string();
        let work = works.at(number.as_bytes());
        fs.remove_all(work)?;
    }
    // Left by a fill that was cut off at its very end.
    let fill = held.at(b"fill");
    Ok(fs.remove_all(fill)?)
}

/// Reads the uppers into changes, after filling in renamed directories. Syncs nothing. May be cut off; a second call returns the same.
pub fn collect(facts: &Facts<'_>, fs: &Fs) -> Result<Collected, Error> {
    filled(read(facts, fs)?, facts, fs)
}

/// Reads the uppers of a command that still runs, as far as they can be read. Changes nothing.
pub fn read_so_far(fs: &Fs, facts: &Facts<'_>) -> Result<Collected, Error> {
    read(facts, fs)?.into_collected()
}

fn filled(found: Found<'_>, facts: &Facts<'_>, fs: &Fs) -> Result<Collected, Error> {
    if !found.redirected.get() {
        return found.into_collected();
    }
    let mut warnings = Vec::new();
    redirect::fill(facts, fs, &mut warnings)?;
    let mut found = read(facts, fs)?;
    found.warnings.append(&mut warnings);
    found.into_collected()
}

fn read<'a>(facts: &'a Facts<'a>, fs: &'a Fs) -> Result<Found<'a>, Error> {
    let mut found = Found {
        facts,
        fs,
        modes: Modes::new(fs, facts)?,
        list: Vec::new(),
        times: Vec::new(),
        warnings: Vec::new(),
        groups: HashMap::new(),
        gone: Vec::new(),
        needless: Vec::new(),
        held_times: HashSet::new(),
        laid: Vec::new(),
        names: HashMap::new(),
        redirected: Cell::new(false),
    };
    for place in facts.places {
        if place.file.is_some() {
            found.file(place)?;
            continue;
        }
        if !facts.looks {
            found.open_top(place)?;
        }
        if let Some((upper, below)) = tops(facts, place)? {
            found.place(place, &upper, &below)?;
        }
    }
    Ok(found)
}

struct Found<'a> {
    facts: &'a Facts<'a>,
    fs: &'a Fs,
    modes: Modes<'a>,
    list: Vec<Change>,
    times: Vec<DirectoryTime>,
    warnings: Vec<String>,
    /// Objects of the uppers with several names, with the change for each name.
    groups: HashMap<(Dev, u64), Vec<Linked>>,
    /// Copied-up objects whose original is gone: see [`Found::mark_removed`].
    gone: Vec<Gone>,
    needless: Vec<AbsPath>,
    /// The directories whose time before is that of a sealed upper.
    held_times: HashSet<AbsPath>,
    /// Uppers that were made before the command, each directory before its content.
    laid: Vec<LaidUpper>,
    /// Real files with several names: the names that changed.
    names: HashMap<(Dev, u64), Vec<AbsPath>>,
    /// True if a directory was renamed.
    redirected: Cell<bool>,
}

struct Linked {
    change: Change,
    /// True if this name gets another object, so that the others must get it too.
    moves: bool,
    /// True if it is a change even without the link.
    counts: bool,
    /// True if an opaque directory of the upper hides what lies below.
    hidden: bool,
    /// True if the original has further names, from which this one parts if it gets another object.
    has_others: bool,
}

impl Found<'_> {
    fn into_collected(mut self) -> Result<Collected, Error> {
        for mut group in std::mem::take(&mut self.groups).into_values() {
            // A link made in the run: each name of the object is put, so that they share it on the tree too.
            if group.iter().any(|linked| linked.moves) {
                for linked in &mut group {
                    linked.change.marks.same_content = false;
                    linked.change.marks.linked = true;
                    linked.change.marks.link_broken |= linked.has_others;
                }
                self.list.extend(group.into_iter().map(|linked| linked.change));
            } else {
                let (changed, equal): (Vec<_>, Vec<_>) = group.into_iter().partition(|linked| linked.counts);
                self.list.extend(changed.into_iter().map(|linked| linked.change));
                self.needless.extend(equal.into_iter().filter(|linked| !linked.hidden).map(|linked| linked.change.path));
            }
        }
        self.list.sort_by(|a, b| a.path.cmp(&b.path));
        self.settle_links();
        self.mark_removed();
        self.drop_below_gone();
        // A directory whose names change keeps a time that was put back. One with nothing different is left out.
        let parents: HashSet<AbsPath> = self.list.iter().filter_map(|change| change.path.parent()).collect();
        self.times.retain(|time| time.before != time.after || parents.contains(&time.path));
        self.times.sort_by(|a, b| a.path.cmp(&b.path));
        let left_alone = self.left_alone();
        let mut own = Changes { list: self.list, directory_times: self.times };
        let dropped = scratch::take_out(&mut own, &mut self.needless, self.facts.scratch);
        self.warnings.extend(dropped.kept);
        let composed = compose::compose(self.facts, own, &self.held_times)?;
        let (needless, warnings) = (self.needless, self.warnings);
        Ok(Collected { composed, needless, warnings, dropped: dropped.changes, scratch: dropped.places, left_alone })
    }

    /// Reduces the changes of a file with several names. Such a file has one metadata: if all names got the same, one name's change is
    /// enough, and the others follow. If the names went apart, each gets an object of its own.
    fn settle_links(&mut self) {
        let mut follow: Vec<usize> = Vec::new();
        for names in std::mem::take(&mut self.names).into_values() {
            let mut at: Vec<usize> = names.iter().filter_map(|path| self.index(path)).collect();
            let [first, .., _] = *at else { continue };
            let alike = |i: &usize| {
                let (a, b) = (&self.list[first], &self.list[*i]);
                b.marks.same_content && a.after.as_ref().map(|state| &state.meta) == b.after.as_ref().map(|state| &state.meta)
            };
            if at.iter().all(alike) {
                at.sort_unstable();
                follow.extend(at.drain(1..));
            } else {
                at.into_iter().for_each(|i| (self.list[i].marks.same_content, self.list[i].marks.link_broken) = (false, true));
            }
        }
        follow.sort_unstable();
        let mut i = 0..;
        self.list.retain(|_| i.next().is_none_or(|i| follow.binary_search(&i).is_err()));
    }

    fn index(&self, path: &AbsPath) -> Option<usize> {
        self.list.binary_search_by(|change| change.path.cmp(path)).ok()
    }
}
