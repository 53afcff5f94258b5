//! From the uppers of a run that ended to its changes.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use super::facts::{Facts, tops};
use super::net_with_step::Composed;
use super::open_up::Modes;
use super::renamed_directories;
use super::upper_reader::UpperReader;
use super::{net_with_step, split_uppers, unchanged_objects};
use crate::capture::place::scratch;
use crate::capture::run::supervise::EndingInit;
use crate::error::Error;
use crate::fs::{AbsPath, Dir, Fs};
use crate::session::{Changes, Place};

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
pub fn finish(fs: &Fs, leaving: EndingInit, facts: &Facts<'_>) -> Result<Collected, Error> {
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
    unchanged_objects::clear(fs, facts, &collected.needless)?;
    split_uppers::clear(fs, facts.held, &collected.left_alone)?;
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

fn filled(found: UpperReader<'_>, facts: &Facts<'_>, fs: &Fs) -> Result<Collected, Error> {
    if !found.redirected.get() {
        return found.into_collected();
    }
    let mut warnings = Vec::new();
    renamed_directories::fill(facts, fs, &mut warnings)?;
    let mut found = read(facts, fs)?;
    found.warnings.append(&mut warnings);
    found.into_collected()
}

fn read<'a>(facts: &'a Facts<'a>, fs: &'a Fs) -> Result<UpperReader<'a>, Error> {
    let mut found = UpperReader {
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
        programs: Vec::new(),
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

impl UpperReader<'_> {
    fn into_collected(mut self) -> Result<Collected, Error> {
        for mut group in std::mem::take(&mut self.groups).into_values() {
            self.take_out_linked_program(&mut group)?;
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
        self.find_originals()?;
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
        let composed = net_with_step::compose(self.facts, own, &self.held_times)?;
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

    pub fn index(&self, path: &AbsPath) -> Option<usize> {
        self.list.binary_search_by(|change| change.path.cmp(path)).ok()
    }
}
