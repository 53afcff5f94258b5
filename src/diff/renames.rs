//! Finds deleted files that were created again under another name, by their content. Underneath both stay a deletion and a creation: this
//! is for people.

use std::collections::{BTreeSet, HashMap};

use super::sources::{Content, Sources};
use crate::error::At;
use crate::error::Error;
use crate::fs::path::AbsPath;
use crate::session::change::Change;
use crate::session::sides::Side;
use crate::tree::hash::Hash;
use crate::tree::look;
use crate::tree::state::{Object, State};

/// The most bytes that are read to find renames. If it takes more, the two files are listed as they are.
const READ: u64 = 64 << 20;

/// Pairs of changes, by index.
#[derive(Debug, Default)]
pub struct Renames {
    from: HashMap<usize, usize>,
    to: HashMap<usize, usize>,
}

/// An end of a change.
#[derive(Debug, Clone, Copy)]
pub enum End {
    /// The object that was there.
    Before,
    /// The object that is there after it.
    After,
}

/// Opens the content at an end of a change, which is named by its index.
type Open<'o> = dyn FnMut(usize, End) -> Result<Content, Error> + 'o;

impl Renames {
    /// Finds the renames among the changes of a session. Reads content only if a created and a deleted file have the same size, and no
    /// hash is recorded.
    pub fn find(changes: &[Change], sides: &[Side], sources: &mut Sources<'_>) -> Result<Self, Error> {
        Self::find_by(changes, &mut |i, end| {
            let (change, side) = (&changes[i], sides[i]);
            let on_tree = sources.on_tree(change, side);
            match end {
                End::Before => sources.before(change, side, &on_tree),
                End::After => sources.after(change, side, &on_tree),
            }
        })
    }

    /// Finds the renames among any changes. `open` opens their contents.
    pub fn find_by(changes: &[Change], open: &mut Open<'_>) -> Result<Self, Error> {
        let mut of_size: HashMap<u64, (Vec<usize>, Vec<usize>)> = HashMap::new();
        // The name of a hard link is a further name of its file, not a new one for another.
        for (i, change) in changes.iter().enumerate().filter(|(_, change)| !change.marks.linked) {
            match (file(&change.before.object), file(&change.after)) {
                (Some(old), _) if change.after.is_none() => of_size.entry(old.size()).or_default().0.push(i),
                (_, Some(new)) if change.before.object.is_none() => of_size.entry(new.size()).or_default().1.push(i),
                _ => {}
            }
        }
        let mut found = Self::default();
        let mut left = READ;
        // All empty files have the same content.
        let mut sizes: Vec<_> =
            of_size.into_iter().filter(|(size, (old, new))| *size > 0 && !old.is_empty() && !new.is_empty()).collect();
        sizes.sort_unstable();
        for (size, (old, new)) in sizes {
            let cost = size * (old.len() + new.len()) as u64;
            if cost > left {
                continue;
            }
            left -= cost;
            found.pair(changes, open, &old, &new)?;
        }
        Ok(found)
    }

    /// Pairs files of one size by their content. If several are equal, those with the same time or the same last name go first.
    fn pair(&mut self, changes: &[Change], open: &mut Open<'_>, old: &[usize], new: &[usize]) -> Result<(), Error> {
        let mut originals: HashMap<Hash, BTreeSet<usize>> = HashMap::new();
        for i in old {
            if let Some(hash) = hash(changes, *i, End::Before, open)? {
                originals.entry(hash).or_default().insert(*i);
            }
        }
        for i in new {
            let Some(hash) = hash(changes, *i, End::After, open)? else { continue };
            let Some(alike) = originals.get_mut(&hash) else { continue };
            let likeness = |old: &usize| {
                let (old, new) = (&changes[*old], &changes[*i]);
                let mtime = |object: &Object| object.as_ref().map(|state| state.meta.mtime);
                (mtime(&old.before.object) == mtime(&new.after), old.path.name() == new.path.name())
            };
            if let Some(best) = alike.iter().copied().max_by_key(likeness) {
                alike.remove(&best);
                self.from.insert(*i, best);
                self.to.insert(best, *i);
            }
        }
        Ok(())
    }

    /// The earlier path of a created file.
    pub fn from<'c>(&self, changes: &'c [Change], new: usize) -> Option<&'c AbsPath> {
        self.from.get(&new).map(|old| &changes[*old].path)
    }

    /// The later path of a deleted file.
    pub fn to<'c>(&self, changes: &'c [Change], old: usize) -> Option<&'c AbsPath> {
        self.to.get(&old).map(|new| &changes[*new].path)
    }
}

fn file(object: &Object) -> Option<&State> {
    object.as_ref().filter(|state| matches!(state.what, crate::tree::state::What::File { .. }))
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
        Content::File(file) => Ok(Some(look::hash_of(&file).at("read", &change.path)?.0)),
        Content::Gone(_) => Ok(None),
    }
}
