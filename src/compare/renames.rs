//! Finds deleted files that were created again under another name, by their content. Underneath both stay a deletion and a creation: this
//! is for people.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::likeness::{Contents, most, percent};
use super::sources::{Content, End, Sources};
use crate::error::{At, Error};
use crate::fs::AbsPath;
use crate::session::{Change, Side};
use crate::tree::{Hash, Object, State, observe};

/// The most bytes that are read to find renames. If it takes more, the two files are listed as they are.
const READ: u64 = 64 << 20;

/// The most pairs of files that are compared to find those that are alike, as in git.
const PAIRS: usize = 1_000_000;

/// Pairs of changes, by index.
#[derive(Debug, Default)]
pub struct Renames {
    /// Of a created file the deleted one, and their likeness in percent.
    from: HashMap<usize, (usize, u8)>,
    to: HashMap<usize, usize>,
    /// Files of one size that are not compared yet.
    waiting: HashMap<u64, Group>,
}

#[derive(Debug, Default)]
struct Group {
    old: Vec<usize>,
    new: Vec<usize>,
}

/// Opens the content at an end of a change, which is named by its index.
pub type Open<'o> = dyn FnMut(usize, End) -> Result<Content, Error> + 'o;

impl Renames {
    /// Finds the renames among the changes of a session. Reads content only if a created and a deleted file have the same size, and no
    /// hash is recorded.
    pub fn find(changes: &[Change], sides: &[Side], sources: &mut Sources<'_>) -> Result<Self, Error> {
        Self::find_by(changes, &mut |i, end| sources.open(&changes[i], sides[i], end))
    }

    /// Finds the renames among any changes. `open` opens their contents.
    pub fn find_by(changes: &[Change], open: &mut Open<'_>) -> Result<Self, Error> {
        let mut found = Self::of(changes);
        let waiting: BTreeMap<u64, Group> = std::mem::take(&mut found.waiting).into_iter().collect();
        for group in waiting.into_values() {
            found.pair(changes, open, group)?;
        }
        Ok(found)
    }

    /// The files that may be renamed, by the list of changes alone: [`Self::learn`] reads their contents. Small files go first.
    pub fn of(changes: &[Change]) -> Self {
        let mut of_size: BTreeMap<u64, Group> = BTreeMap::new();
        for (i, old, size) in candidates(changes) {
            let group = of_size.entry(size).or_default();
            if old { group.old.push(i) } else { group.new.push(i) }
        }
        let mut left = READ;
        let fits = |(size, group): &(u64, Group)| {
            let count = group.old.len() + group.new.len();
            let cost = size * count as u64;
            let fits = !group.old.is_empty() && !group.new.is_empty() && cost <= left;
            left -= if fits { cost } else { 0 };
            fits
        };
        Self { waiting: of_size.into_iter().filter(fits).collect(), ..Self::default() }
    }

    /// Finds the rename of one change, if it is one: reads the files that could be its other end.
    pub fn learn(&mut self, changes: &[Change], i: usize, open: &mut Open<'_>) -> Result<(), Error> {
        let group = candidate(&changes[i]).and_then(|(_, size)| self.waiting.remove(&size));
        group.map_or(Ok(()), |group| self.pair(changes, open, group))
    }

    /// Pairs files of one size by their content. If several are equal, those with the same time or the same last name go first.
    fn pair(&mut self, changes: &[Change], open: &mut Open<'_>, group: Group) -> Result<(), Error> {
        let mut originals: HashMap<Hash, BTreeSet<usize>> = HashMap::new();
        for i in group.old {
            if let Some(hash) = hash(changes, i, End::Before, open)? {
                originals.entry(hash).or_default().insert(i);
            }
        }
        for i in group.new {
            let Some(hash) = hash(changes, i, End::After, open)? else { continue };
            let Some(alike) = originals.get_mut(&hash) else { continue };
            let likeness = |old: &usize| {
                let (old, new) = (&changes[*old], &changes[i]);
                let mtime = |object: &Object| object.as_ref().map(|state| state.meta.mtime);
                (mtime(&old.before.object) == mtime(&new.after), old.path.name() == new.path.name())
            };
            if let Some(best) = alike.iter().copied().max_by_key(likeness) {
                alike.remove(&best);
                self.join(best, i, 100);
            }
        }
        Ok(())
    }

    fn join(&mut self, old: usize, new: usize, percent: u8) {
        self.from.insert(new, (old, percent));
        self.to.insert(old, new);
    }

    /// Pairs the other files of which at least `least` percent stayed, those that are most alike first. False, and nothing is read, if they
    /// are too many or too large.
    pub fn find_alike(&mut self, changes: &[Change], least: u8, open: &mut Open<'_>) -> Result<bool, Error> {
        let is_left = |(i, ..): &(usize, bool, u64)| !self.from.contains_key(i) && !self.to.contains_key(i);
        let (old, new): (Vec<_>, Vec<_>) = candidates(changes).filter(is_left).partition(|(_, old, _)| *old);
        if old.is_empty() || new.is_empty() {
            return Ok(true);
        }
        let bytes: u64 = old.iter().chain(&new).map(|(_, _, size)| size).sum();
        if bytes > READ || old.len() * new.len() > PAIRS {
            return Ok(false);
        }
        let mut read = |files: Vec<(usize, bool, u64)>| -> Result<Vec<(usize, Contents)>, Error> {
            let mut found = Vec::new();
            for (i, old, _) in files {
                if let Content::File(file) = open(i, if old { End::Before } else { End::After })? {
                    found.push((i, Contents::of(&file).at("read", &changes[i].path)?));
                }
            }
            Ok(found)
        };
        let (old, new) = (read(old)?, read(new)?);
        let mut pairs = Vec::new();
        for (i, created) in &new {
            for (j, deleted) in &old {
                if most(deleted, created) < u64::from(least) {
                    continue;
                }
                let percent = percent(deleted, created);
                if percent >= least {
                    let same_name = changes[*j].path.name() == changes[*i].path.name();
                    pairs.push((Reverse((percent, same_name)), *j, *i));
                }
            }
        }
        pairs.sort_unstable();
        for (Reverse((percent, _)), old, new) in pairs {
            if !self.to.contains_key(&old) && !self.from.contains_key(&new) {
                self.join(old, new, percent);
            }
        }
        Ok(true)
    }

    /// The earlier path of a created file.
    pub fn from<'c>(&self, changes: &'c [Change], new: usize) -> Option<&'c AbsPath> {
        self.from.get(&new).map(|(old, _)| &changes[*old].path)
    }

    /// The later path of a deleted file.
    pub fn to<'c>(&self, changes: &'c [Change], old: usize) -> Option<&'c AbsPath> {
        self.to.get(&old).map(|new| &changes[*new].path)
    }

    /// The deletion that a creation is the other end of, and the part of the content that stayed, in percent.
    pub fn deleted(&self, new: usize) -> Option<(usize, u8)> {
        self.from.get(&new).copied()
    }

    /// The creation that a deletion is the other end of.
    pub fn created(&self, old: usize) -> Option<usize> {
        self.to.get(&old).copied()
    }
}

/// The files that may be an end of a rename: the index of the change, whether it is the deleted one, bytes.
fn candidates(changes: &[Change]) -> impl Iterator<Item = (usize, bool, u64)> + '_ {
    changes.iter().enumerate().filter_map(|(i, change)| candidate(change).map(|(old, size)| (i, old, size)))
}

/// All empty files have the same content, and the name of a hard link is a further name of its file, not a new one for another.
fn candidate(change: &Change) -> Option<(bool, u64)> {
    let found = match (file(&change.before.object), file(&change.after)) {
        (Some(old), _) if change.after.is_none() => (true, old.size()),
        (_, Some(new)) if change.before.object.is_none() => (false, new.size()),
        _ => return None,
    };
    Some(found).filter(|(_, size)| *size > 0 && !change.marks.linked)
}

fn file(object: &Object) -> Option<&State> {
    object.as_ref().filter(|state| matches!(state.what, crate::tree::What::File { .. }))
}

/// The hash of an end of a change, recorded or computed. `None` if the content is not available.
fn hash(changes: &[Change], i: usize, end: End, open: &mut Open<'_>) -> Result<Option<Hash>, Error> {
    let change = &changes[i];
    let object = match end {
        End::Before => &change.before.object,
        End::After => &change.after,
    };
    if let Some(hash) = object.as_ref().and_then(State::hash) {
        return Ok(Some(hash));
    }
    match open(i, end)? {
        Content::File(file) => Ok(Some(observe::hash_of(&file).at("read", &change.path)?.0)),
        Content::Gone(_) => Ok(None),
    }
}
