//! Finds the names that belong to one file, on both sides of a comparison.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use crate::fs::AbsPath;

/// Names by their file, whatever identifies it: those of each file in the order of paths.
pub(super) struct Names<F>(HashMap<F, Vec<AbsPath>>);

impl<F> Default for Names<F> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<F: Eq + Hash> Names<F> {
    /// Adds a name; in the order of paths.
    pub fn add(&mut self, file: F, path: AbsPath) {
        self.0.entry(file).or_default().push(path);
    }

    /// The names of each file that has several. For a file with one name here, others lie elsewhere, where nothing is looked at.
    fn groups(&self) -> HashSet<&[AbsPath]> {
        self.0.values().map(Vec::as_slice).filter(|names| names.len() > 1).collect()
    }
}

/// The names of each file that had others before or has others now, as far as both sides know all of them.
pub(super) fn regrouped<A: Eq + Hash, B: Eq + Hash>(
    then: &Names<A>,
    now: &Names<B>,
    is_known: impl Fn(&AbsPath) -> bool,
) -> HashSet<AbsPath> {
    let (then, now) = (then.groups(), now.groups());
    let others: Vec<&[AbsPath]> = then.symmetric_difference(&now).copied().collect();
    let (known, unknown): (Vec<_>, Vec<_>) = others.into_iter().partition(|names| names.iter().all(&is_known));
    let unknown: HashSet<&AbsPath> = unknown.into_iter().flatten().collect();
    known.into_iter().flatten().filter(|name| !unknown.contains(name)).cloned().collect()
}
