//! A difference, and the result of a comparison.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::Hash;

use crate::fs::{AbsPath, Dev, Time};
use crate::snapshot::hard_links;
use crate::snapshot::hard_links::Names;
use crate::snapshot::manifest::{At, Entry};
use crate::tree::{Fingerprint, Likeness, Object as There, Seen, State};

/// A path that differs. Paths have the directory as `/`.
#[derive(Debug, Clone)]
pub struct Difference {
    pub path: AbsPath,
    pub then: There,
    pub at: Option<At>,
    /// The first name of the file, if this was one of several.
    pub link: Option<AbsPath>,
    /// Its content if no snapshot has it: a merge's.
    pub merged: Option<Vec<u8>>,
    /// The object now, or in the other snapshot.
    pub now: There,
    /// The fingerprint of the object on the tree.
    pub print: Option<Fingerprint>,
    /// The place of the other snapshot's content.
    pub now_at: Option<At>,
    /// The file on the tree, if it has several names.
    pub shared: Option<Shared>,
    /// The inode number of the object now.
    pub ino: Option<u64>,
    /// That of the snapshot's object, if it is known.
    pub former: Option<u64>,
    /// True if the object now existed at the snapshot, but not here.
    pub older: bool,
    /// True if it is to become another file than the present one, even if the states are equal: its names were grouped otherwise, or not
    /// all of them are to change.
    pub regrouped: bool,
}

/// A file with several names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shared {
    pub inode: (Dev, u64),
    pub names: u32,
}

impl Difference {
    /// True if both sides are files with the same content, or other objects that differ in metadata alone.
    pub fn is_metadata(&self) -> bool {
        match (&self.now, &self.then) {
            (Some(now), Some(then)) => now.content_likeness(then) == Likeness::Same && !self.regrouped,
            _ => false,
        }
    }

    pub fn leaves_directory(&self) -> bool {
        let is_dir = |object: &There| object.as_ref().is_some_and(State::is_dir);
        is_dir(&self.now) && !is_dir(&self.then)
    }
}

/// The mtime of a directory that is there on both sides, and no difference itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Times {
    pub path: AbsPath,
    pub then: Time,
    pub now: Time,
}

#[derive(Debug, Default)]
pub struct Compared {
    /// The differences, in the order of paths.
    pub differences: Vec<Difference>,
    /// The times of directories on both sides, in the order of paths.
    pub times: Vec<Times>,
    /// The directories on the tree whose time differs now, as differences.
    pub touched: Vec<Difference>,
    /// The paths that are not compared, as one side is unknown, with the reason.
    pub left: Vec<(AbsPath, String)>,
    /// Those among them that rights keep recant from, with all below.
    pub closed: BTreeSet<AbsPath>,
    /// The paths on the tree that stay whatever the snapshot says: a directory that holds one of these stays too.
    pub kept: Vec<(AbsPath, &'static str)>,
    /// One flag for each asked path: true if either side has it.
    pub found: Vec<bool>,
    /// Version control's own that both sides have, and that is not compared.
    pub repositories: Vec<AbsPath>,
}

/// The reason why a repository's own stays, and is not compared.
pub const VCS_STAYS: &str = "it is version control's own, and stays as it is without --with-vcs";

impl Compared {
    /// Marks names that must become one file again, or separate files: also where one of two names goes, which would otherwise stay a name
    /// of the same file in the checkpoint. `equal` are unchanged names, unless their file has others.
    pub(super) fn regroup<F: Eq + Hash>(
        &mut self,
        then: &Names<AbsPath>,
        now: &Names<F>,
        mut equal: BTreeMap<AbsPath, Difference>,
    ) {
        let left: HashSet<&AbsPath> = self.left.iter().map(|(path, _)| path).collect();
        let is_left = |path: &AbsPath| left.contains(path) || path.ancestors().any(|above| left.contains(&above));
        let regrouped = hard_links::regrouped(then, now, |path| !is_left(path));
        let found = self.differences.iter_mut().filter(|difference| regrouped.contains(&difference.path));
        found.for_each(|difference| difference.regrouped = true);
        let equal = regrouped.iter().filter_map(|path| equal.remove(path));
        self.differences.extend(equal.map(|difference| Difference { regrouped: true, ..difference }));
        self.differences.sort_by(|a, b| a.path.cmp(&b.path));
    }
}

pub fn difference(path: AbsPath, there: Option<Entry>, here: Option<Seen>) -> Difference {
    let former = there.as_ref().and_then(|entry| entry.ino);
    let (then, at, link) = there.map_or((None, None, None), |entry| (entry.state, entry.at, entry.link));
    let (now, print) = here.map_or((None, None), |seen| (Some(seen.state), Some(seen.print)));
    let ino = print.map(|print| print.identity.ino);
    Difference {
        path,
        then,
        at,
        link,
        merged: None,
        now,
        print,
        now_at: None,
        shared: None,
        ino,
        former,
        older: false,
        regrouped: false,
    }
}

/// True if nothing differs, including times; a directory's times do not count, as they follow from the changes in it.
pub fn same(a: &State, b: &State) -> bool {
    a.content_likeness(b) == Likeness::Same && a.meta_difference(b).is_none() && (a.is_dir() || a.meta.mtime == b.meta.mtime)
}

/// The directory itself, as paths of a snapshot have it.
pub fn root() -> AbsPath {
    // `/` is the shortest path, and src/fs/path.rs accepts it.
    AbsPath::parse("/").expect("the root is a path")
}
