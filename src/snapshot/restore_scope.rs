//! Narrows all differences to what was asked for: what a restore takes, and what it leaves.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::differences::{Compared, Difference, OLDER, Shared};
use super::manifest::Merged;
use super::paths::whole;
use super::series::Series;
use crate::error::Error;
use crate::fs::{AbsPath, Dev, Shown};
use crate::tree::{Likeness, State};

/// The reason why an edited path stays.
const EDITED: &str = "it was edited since";

impl Compared {
    /// Drops all that is not under one of these paths, except the directories that the restored objects need.
    pub fn only(&mut self, paths: &[AbsPath]) {
        let asked = |path: &AbsPath| paths.iter().any(|asked| path.is_under(asked));
        let made: Vec<AbsPath> =
            self.differences.iter().filter(|d| asked(&d.path) && d.then.is_some()).map(|d| d.path.clone()).collect();
        let needed = |d: &Difference| {
            let becomes_directory = d.then.as_ref().is_some_and(State::is_dir) && !d.now.as_ref().is_some_and(State::is_dir);
            becomes_directory && first_in(&d.path, &made, |made| made).is_some()
        };
        self.differences.retain(|d| asked(&d.path) || needed(d));
        self.times.retain(|times| asked(&times.path));
        self.touched.retain(|d| asked(&d.path));
        self.left.retain(|(path, _)| asked(path));
    }

    /// Calls each file of several names by the first of those that are here, before differences from another snapshot join them: that may know
    /// the same first name of another file.
    pub fn name_groups_by_their_own(&mut self) {
        let mut firsts: HashMap<AbsPath, AbsPath> = HashMap::new();
        for d in &mut self.differences {
            let first = d.link.take().map(|link| firsts.entry(link).or_insert_with(|| d.path.clone()).clone());
            d.link = first;
        }
    }

    /// Leaves the paths that were created since.
    pub fn keep_new(&mut self) {
        let mut kept = Vec::new();
        self.differences.retain(|d| {
            let is_new = d.then.is_none();
            if is_new {
                kept.push((d.path.clone(), "it was created since"));
            }
            !is_new
        });
        self.keep(kept);
    }

    /// Leaves these differences, which are already taken out, each for its reason. The time of a directory goes back if something in it does, or if it `goes_back`, and nothing in it stays.
    pub fn leave(&mut self, stay: Vec<(Difference, String)>, goes_back: impl Fn(&AbsPath) -> bool) {
        self.leave_moved(stay.iter().map(|(d, _)| d));
        self.keep(stay.iter().map(|(d, _)| (d.path.clone(), "others have changed it, too")).collect());
        // A directory's time goes back only if all that happened in it does.
        let mixed: HashSet<AbsPath> = stay.iter().filter_map(|(d, _)| d.path.parent()).collect();
        let changed: HashSet<AbsPath> = self.differences.iter().filter_map(|d| d.path.parent()).collect();
        self.times.retain(|times| !mixed.contains(&times.path) && (changed.contains(&times.path) || goes_back(&times.path)));
        self.touched.clear();
        self.left.extend(stay.into_iter().map(|(d, why)| (d.path, why)));
    }

    /// Leaves what was moved from one of these paths, which stay as they are: it cannot go back, and may be all that there is of it.
    fn leave_moved<'d>(&mut self, stay: impl Iterator<Item = &'d Difference>) {
        let without: HashMap<u64, &AbsPath> =
            stay.filter(|d| d.ino != d.former).filter_map(|d| Some((d.former?, &d.path))).collect();
        let from = |d: &Difference| d.ino.filter(|_| d.older).and_then(|ino| without.get(&ino).copied());
        let moved: Vec<Difference> = self.differences.extract_if(.., |d| from(d).is_some()).collect();
        self.keep(moved.iter().map(|d| (d.path.clone(), OLDER)).collect());
        let why = |from: &AbsPath| format!("it was at {} before, which is not restored", Shown(&from.as_bytes()[1..]));
        self.left.extend(moved.iter().filter_map(|d| Some((d.path.clone(), why(from(d)?)))));
    }

    /// Leaves what cannot be taken back: `why` gives the path that prevents it, at a path or above it, with the reason. False if that is all
    /// there is, or nothing.
    pub fn give_up(&mut self, directory: &AbsPath, why: impl Fn(&AbsPath) -> Option<(AbsPath, String)>) -> bool {
        let why = |path: &AbsPath| why(&whole(directory, path).ok()?);
        let mut named = BTreeMap::new();
        let given_up = self.differences.extract_if(.., |d| why(&d.path).map(|(path, why)| named.insert(path, why)).is_some());
        let given_up: Vec<Difference> = given_up.collect();
        self.leave_moved(given_up.iter());
        if given_up.is_empty() || self.differences.is_empty() {
            return false;
        }
        self.keep(given_up.iter().map(|d| (d.path.clone(), "it cannot be taken back")).collect());
        let inner = |path: &AbsPath| AbsPath::parse([b"/", path.below(directory)?].concat()).ok();
        self.left.extend(named.into_iter().filter_map(|(path, why)| Some((inner(&path)?, why))));
        self.times.retain(|times| why(&times.path).is_none());
        self.settle(directory);
        true
    }

    /// Records paths that stay; each is the reason why its directory has another time.
    fn keep(&mut self, kept: Vec<(AbsPath, &'static str)>) {
        let directories: HashSet<AbsPath> = kept.iter().filter_map(|(path, _)| path.parent()).collect();
        self.touched.retain(|d| !directories.contains(&d.path));
        self.kept.extend(kept);
    }

    /// Leaves paths that differ from all these snapshots: somebody has edited them since. `later` are those after the one that is restored.
    pub fn keep_edited(&mut self, series: &Series, later: &[u64]) -> Result<(), Error> {
        let mut written = vec![false; self.differences.len()];
        for m in later {
            let mut there = Merged::open(&series.dir, *m)?;
            let mut next = there.next()?;
            for (d, written) in self.differences.iter().zip(&mut written) {
                while next.as_ref().is_some_and(|entry| entry.path < d.path) {
                    next = there.next()?;
                }
                let entry = next.as_ref().filter(|entry| entry.path == d.path);
                *written |= match (entry.and_then(|entry| entry.state.as_ref()), &d.now) {
                    (Some(a), Some(b)) => a.content_likeness(b) == Likeness::Same,
                    (None, None) => entry.is_none(),
                    _ => false,
                };
            }
        }
        let mut written = written.into_iter();
        let (mut kept, mut left) = (Vec::new(), Vec::new());
        self.differences.retain(|d| {
            let is_written = written.next().unwrap_or(false);
            if !is_written {
                left.push((d.path.clone(), format!("{EDITED}: no later snapshot has it as it is")));
                kept.push((d.path.clone(), EDITED));
            }
            is_written
        });
        self.keep(kept);
        self.left.extend(left);
        Ok(())
    }

    /// Adjusts the differences to each other, once all that was not asked for is dropped: last of all. `directory` is that of the
    /// snapshots.
    pub fn settle(&mut self, directory: &AbsPath) {
        while self.leave_homeless(directory) {}
        self.keep_directories(directory);
        self.part_from_other_names();
        self.only_times_that_change();
        let me = rustix::process::geteuid();
        self.times_alone(|directory| me.is_root() || directory.meta.uid == me.as_raw());
    }

    /// Marks a file as a new one if it has names besides those that change: setting it in place would change those too.
    fn part_from_other_names(&mut self) {
        let change = self.names_that_change();
        let keeps_others = |shared: Shared| change.get(&shared.inode).is_none_or(|names| *names < shared.names);
        self.differences.iter_mut().for_each(|d| d.regrouped |= d.shared.is_some_and(keeps_others));
    }

    /// The paths that lose a file of which another name stays: a write to that name changes what a rollback restores.
    pub fn leaving_names(&self) -> impl Iterator<Item = &AbsPath> {
        let change = self.names_that_change();
        let keeps_others = move |shared: Shared| change.get(&shared.inode).is_none_or(|names| *names < shared.names);
        let goes = |d: &&Difference| d.now.as_ref().is_some_and(State::is_file) && !d.is_metadata();
        self.differences.iter().filter(goes).filter(move |d| d.shared.is_some_and(&keeps_others)).map(|d| &d.path)
    }

    /// The number of names that change, for each file.
    fn names_that_change(&self) -> HashMap<(Dev, u64), u32> {
        let mut change = HashMap::new();
        for shared in self.differences.iter().filter_map(|d| d.shared) {
            *change.entry(shared.inode).or_default() += 1;
        }
        change
    }

    /// Drops the times of directories that are right, and in which no name will change.
    pub fn only_times_that_change(&mut self) {
        let touched: HashSet<AbsPath> = self.differences.iter().filter_map(|d| d.path.parent()).collect();
        self.times.retain(|times| times.then != times.now || touched.contains(&times.path));
    }

    /// Turns the times of directories into differences if there is no other: they are set along with other changes, and there are none.
    /// `may_set` tells whose directories' times can be set.
    fn times_alone(&mut self, may_set: impl Fn(&State) -> bool) {
        if self.differences.is_empty() {
            self.times.clear();
            self.differences = std::mem::take(&mut self.touched);
            self.differences.retain(|d| d.now.as_ref().is_some_and(&may_set));
        }
    }

    /// Leaves what would lie in a directory that is not there then, as something else stays in its place, or nothing. True if there was
    /// something, from which others may have been moved.
    fn leave_homeless(&mut self, directory: &AbsPath) -> bool {
        let is_directory = |path: &AbsPath| {
            let real = whole(directory, path).ok().and_then(|path| path.as_path().symlink_metadata().ok());
            real.is_some_and(|real| real.is_dir())
        };
        self.differences.sort_by(|a, b| a.path.cmp(&b.path));
        let has_some = |path: &AbsPath| first_in(path, &self.differences, |d| &d.path).is_some();
        let kept = self.kept.iter().map(|(path, _)| path);
        let in_the_way: HashSet<AbsPath> = kept.filter(|path| has_some(path) && !is_directory(path)).cloned().collect();
        let is_homeless = |d: &mut Difference| d.then.is_some() && d.path.ancestors().any(|above| in_the_way.contains(&above));
        let homeless: Vec<Difference> = match in_the_way.is_empty() {
            true => return false,
            false => self.differences.extract_if(.., is_homeless).collect(),
        };
        const WHY: &str = "its directory is gone, and is not restored";
        self.leave_moved(homeless.iter());
        self.keep(homeless.iter().map(|d| (d.path.clone(), WHY)).collect());
        self.left.extend(homeless.iter().map(|d| (d.path.clone(), WHY.to_owned())));
        !homeless.is_empty()
    }

    /// Keeps a directory that is to go, but holds something that stays.
    fn keep_directories(&mut self, directory: &AbsPath) {
        let (kept, left) = (&mut self.kept, &mut self.left);
        kept.sort();
        self.differences.retain(|d| {
            let held = if d.leaves_directory() { first_in(&d.path, kept, |(path, _)| path) } else { None };
            if let Some((path, why)) = held {
                let path = whole(directory, path).unwrap_or_else(|_| path.clone());
                left.push((d.path.clone(), format!("the directory stays, because {path} stays: {why}")));
            }
            held.is_none()
        });
        left.sort();
        left.dedup();
    }
}

/// The first of these that lies in `directory`. They are in the order of paths, so a directory's content follows it at once.
fn first_in<'a, T>(directory: &AbsPath, sorted: &'a [T], path: impl Fn(&T) -> &AbsPath) -> Option<&'a T> {
    let behind = sorted.partition_point(|one| path(one) <= directory);
    sorted.get(behind).filter(|one| path(one).is_under(directory))
}
