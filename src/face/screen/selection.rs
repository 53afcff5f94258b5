//! The choice of a person so far.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::sheet::{Line, Sheet};
use crate::compare::blocks::choice::Part;
use crate::compare::{Choice, Taken};
use crate::session::Change;

/// How much of something is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    None,
    Some,
    All,
}

impl Extent {
    /// The sign in front of a line.
    pub fn sign(self) -> &'static str {
        match self {
            Extent::None => "[ ]",
            Extent::Some => "[~]",
            Extent::All => "[x]",
        }
    }

    fn of(chosen: usize, partly: usize, all: usize) -> Self {
        match (chosen, partly) {
            (0, 0) => Extent::None,
            (chosen, _) if chosen == all => Extent::All,
            _ => Extent::Some,
        }
    }
}

/// The part of a change that is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ChosenPart {
    Whole,
    /// Blocks by number, each whole or by lines, and the metadata.
    Part {
        blocks: BTreeMap<usize, BTreeSet<usize>>,
        meta: bool,
    },
}

/// The chosen parts of all changes, by index.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    parts: BTreeMap<usize, ChosenPart>,
    /// For each change 0, 1 for a part, 2 for all of it: directories are counted by it.
    much: Vec<u8>,
}

impl Selection {
    /// Nothing is chosen of so many changes.
    pub fn none(count: usize) -> Self {
        Self { parts: BTreeMap::new(), much: vec![0; count] }
    }

    /// True if nothing is chosen.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The number of changes of which something is chosen.
    pub fn count(&self) -> usize {
        self.parts.len()
    }

    /// How much is chosen of these changes.
    pub fn of(&self, range: Range<usize>) -> Extent {
        let (mut whole, mut partly, all) = (0, 0, range.len());
        for much in &self.much[range] {
            whole += usize::from(*much == 2);
            partly += usize::from(*much == 1);
        }
        Extent::of(whole, partly, all)
    }

    /// How much is chosen of a block.
    pub fn of_block(&self, i: usize, block: usize, lines: usize) -> Extent {
        match self.parts.get(&i) {
            None => Extent::None,
            Some(ChosenPart::Whole) => Extent::All,
            Some(ChosenPart::Part { blocks, .. }) => Extent::of(blocks.get(&block).map_or(0, BTreeSet::len), 0, lines),
        }
    }

    /// True if a line of a block is chosen.
    pub fn has_line(&self, i: usize, line: &Line) -> bool {
        match self.parts.get(&i) {
            None => false,
            Some(ChosenPart::Whole) => true,
            Some(ChosenPart::Part { blocks, .. }) => blocks.get(&line.block).is_some_and(|lines| lines.contains(&line.at)),
        }
    }

    /// How much is chosen of a file's metadata.
    pub fn of_meta(&self, i: usize) -> Extent {
        match self.parts.get(&i) {
            Some(ChosenPart::Whole) | Some(ChosenPart::Part { meta: true, .. }) => Extent::All,
            _ => Extent::None,
        }
    }

    /// Chooses all of these changes, or nothing of them if all is chosen.
    pub fn turn(&mut self, indexes: impl IntoIterator<Item = usize> + Clone) {
        let all = indexes.clone().into_iter().all(|i| self.much[i] == 2);
        for i in indexes {
            self.set(i, (!all).then_some(ChosenPart::Whole));
        }
    }

    /// Chooses these lines of a block, or leaves them out if all of them are chosen.
    pub fn turn_lines(&mut self, i: usize, sheet: &Sheet, lines: &[(usize, usize)]) {
        let (mut blocks, meta) = self.taken_apart(i, sheet);
        let has = |blocks: &BTreeMap<usize, BTreeSet<usize>>, (block, at): &(usize, usize)| {
            blocks.get(block).is_some_and(|lines| lines.contains(at))
        };
        let all = lines.iter().all(|line| has(&blocks, line));
        for (block, at) in lines {
            let chosen = blocks.entry(*block).or_default();
            if all {
                chosen.remove(at)
            } else {
                chosen.insert(*at)
            };
        }
        blocks.retain(|_, lines| !lines.is_empty());
        self.put_together(i, sheet, blocks, meta);
    }

    /// Chooses a file's metadata, or leaves it out.
    pub fn turn_meta(&mut self, i: usize, sheet: &Sheet) {
        let (blocks, meta) = self.taken_apart(i, sheet);
        self.put_together(i, sheet, blocks, !meta);
    }

    fn taken_apart(&self, i: usize, sheet: &Sheet) -> (BTreeMap<usize, BTreeSet<usize>>, bool) {
        match self.parts.get(&i) {
            None => (BTreeMap::new(), false),
            Some(ChosenPart::Part { blocks, meta, .. }) => (blocks.clone(), *meta),
            Some(ChosenPart::Whole) => (all_blocks(sheet), !sheet.meta.is_empty()),
        }
    }

    fn put_together(&mut self, i: usize, sheet: &Sheet, blocks: BTreeMap<usize, BTreeSet<usize>>, meta: bool) {
        let all_meta = sheet.meta.is_empty() || meta;
        let chosen = match () {
            () if blocks.is_empty() && !meta => None,
            () if all_meta && blocks == all_blocks(sheet) => Some(ChosenPart::Whole),
            () => Some(ChosenPart::Part { blocks, meta }),
        };
        self.set(i, chosen);
    }

    /// Leaves out what is chosen of a part of a change.
    pub fn leave_part(&mut self, i: usize) {
        if matches!(self.parts.get(&i), Some(ChosenPart::Part { .. })) {
            self.set(i, None);
        }
    }

    fn set(&mut self, i: usize, chosen: Option<ChosenPart>) {
        self.much[i] = match &chosen {
            None => 0,
            Some(ChosenPart::Part { .. }) => 1,
            Some(ChosenPart::Whole) => 2,
        };
        match chosen {
            Some(chosen) => self.parts.insert(i, chosen),
            None => self.parts.remove(&i),
        };
    }

    /// Leaves out what `may` does not hold for.
    pub fn retain(&mut self, may: impl Fn(usize) -> bool) {
        for i in self.parts.keys().copied().filter(|i| !may(*i)).collect::<Vec<_>>() {
            self.set(i, None);
        }
    }

    /// The chosen parts, as verbs take them.
    pub fn taken(&self) -> Vec<(usize, Taken)> {
        let part = |chosen: &ChosenPart| match chosen {
            ChosenPart::Whole => Taken::Whole,
            ChosenPart::Part { blocks, meta } => {
                let parts = blocks.iter().map(|(block, lines)| (*block, Part::Lines(lines.clone())));
                Taken::Part { blocks: Choice::from_iter(parts), meta: *meta }
            }
        };
        self.parts.iter().map(|(i, chosen)| (*i, part(chosen))).collect()
    }

    /// The indexes of the changes of which something is chosen.
    pub fn indexes(&self) -> impl Iterator<Item = usize> + '_ {
        self.parts.keys().copied()
    }

    /// The number of changes that are chosen whole, of blocks of others, and of files whose metadata is chosen beside blocks.
    pub fn counts(&self) -> (usize, usize, usize) {
        let mut counts = (0, 0, 0);
        for chosen in self.parts.values() {
            match chosen {
                ChosenPart::Whole => counts.0 += 1,
                ChosenPart::Part { blocks, .. } => {
                    counts.1 += blocks.len();
                    counts.2 += 1;
                }
            }
        }
        counts
    }

    /// This choice among changes that were looked at again, and the number of those that were let go: what was chosen is there no more,
    /// or is another change.
    pub fn carried(&self, old: &[Change], new: &[Change]) -> (Self, usize) {
        let mut carried = Self::none(new.len());
        let mut lost = 0;
        for (i, chosen) in &self.parts {
            let change = &old[*i];
            match new.binary_search_by(|other| other.path.cmp(&change.path)) {
                Ok(k) if is_same(change, &new[k]) => carried.set(k, Some(chosen.clone())),
                _ => lost += 1,
            }
        }
        (carried, lost)
    }
}

/// True if two changes are the same one, whatever is known of their content by now.
fn is_same(a: &Change, b: &Change) -> bool {
    a.before.object == b.before.object && a.after == b.after
}

fn all_blocks(sheet: &Sheet) -> BTreeMap<usize, BTreeSet<usize>> {
    let mut blocks: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for line in sheet.lines.iter().filter(|line| line.block > 0) {
        blocks.entry(line.block).or_default().insert(line.at);
    }
    blocks
}
