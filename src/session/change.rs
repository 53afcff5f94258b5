//! Changes: the net difference of one path each, and their lines in `changes.jsonl`.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::fs::{AbsPath, Time, absolute, dir, resolve};
use crate::tree::danger::danger;
use crate::tree::{Danger, Fingerprint, Likeness, Object, State, likeness, time};

/// The object at a path before the session, and how surely that is known: a staged `before` has a hash; a captured one has a fingerprint,
/// as its content was not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// The object; `None` is absent.
    pub object: Object,
    /// The cheap sign that it is unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub print: Option<Fingerprint>,
}

impl Before {
    /// True if both are files that are known to have the same content.
    pub fn has_content_of(&self, after: &Object) -> bool {
        let hash = |object: &Object| object.as_ref().and_then(State::hash);
        hash(after).is_some_and(|hash_of_after| hash(&self.object) == Some(hash_of_after))
    }
}

/// Facts about a change beside its two states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Marks {
    /// True if the real tree changed at this path while the command ran: a conflict at commit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub foreign: bool,
    /// True if only a time shows that, which may be from before the command: the clock was set meanwhile, or is ahead of this machine's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_clock: bool,
    /// True if the original has other names, which keep the old content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub link_broken: bool,
    /// True for a link made in the run: the object itself is put, so that its names share it, even where its content is known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub linked: bool,
    /// True if another file is put even where its content is the same: its owner could not set the metadata of the one that is there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaced: bool,
    /// True if both are files with the same content: only metadata or the mtime differ.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub same_content: bool,
}

/// The net difference of one path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Its number: names `held/objects/<n>`. Unique in a session, in no order.
    pub n: u32,
    /// The path.
    pub path: AbsPath,
    /// The object that was there.
    pub before: Before,
    /// The object that is to be there.
    pub after: Object,
    /// Further facts.
    #[serde(default)]
    pub marks: Marks,
    /// The step whose upper holds the `after` of a captured change; missing for the first step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// In a step's own list: the earlier step whose upper holds the `before`; missing if that was on the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
    /// The path of the real file that the command renamed or linked to this path, where a copy of it by its owner would lack its capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<AbsPath>,
}

/// The kind of a change, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sort {
    /// Nothing was there.
    Created,
    /// Another content, or another kind of object.
    Modified,
    /// Nothing is to be there.
    Deleted,
    /// Mode, owner or xattrs alone.
    Metadata,
    /// The mtime alone.
    Times,
}

impl Sort {
    /// The word in text.
    pub fn word(self) -> &'static str {
        match self {
            Sort::Created => "created",
            Sort::Modified => "modified",
            Sort::Deleted => "deleted",
            Sort::Metadata => "metadata",
            Sort::Times => "times",
        }
    }

    /// The word behind a number of such changes.
    pub fn counted(self) -> &'static str {
        match self {
            Sort::Created | Sort::Modified | Sort::Deleted => self.word(),
            Sort::Metadata => "of metadata",
            Sort::Times => "of the mtime alone",
        }
    }
}

impl Line {
    /// The path that it is about; `None` for a line about the file.
    pub fn path(&self) -> Option<&AbsPath> {
        match self {
            Self::Change(change) => Some(&change.path),
            Self::None { path, .. } => Some(path),
            Self::DirectoryTime(time) => Some(&time.path),
            Self::Rewritten { .. } => None,
        }
    }
}

impl Change {
    /// A change that belongs to no step.
    pub fn new(n: u32, path: AbsPath, before: Before, after: Object) -> Self {
        Self { n, path, before, after, marks: Marks::default(), step: None, from: None, original: None }
    }

    /// The change the other way round, for its kind alone: it belongs to no session.
    pub fn inverse(&self) -> Self {
        let before = Before { object: self.after.clone(), print: None };
        let change = Self::new(self.n, self.path.clone(), before, self.before.object.clone());
        Self { marks: self.marks, ..change }
    }

    /// The reason why a person should see it before others: [`danger`].
    pub fn danger(&self) -> Option<Danger> {
        danger(&self.path, &self.before.object, &self.after)
    }

    /// The kind of the change.
    pub fn sort(&self) -> Sort {
        match (&self.before.object, &self.after) {
            (_, None) => Sort::Deleted,
            (None, _) => Sort::Created,
            (Some(_), Some(_)) if !self.in_place() => Sort::Modified,
            (Some(before), Some(after)) if before.meta_difference(after).is_none() => Sort::Times,
            _ => Sort::Metadata,
        }
    }

    /// True for a deletion of what was gone already when it was committed.
    pub fn was_gone(&self) -> bool {
        self.before.object.is_none() && self.after.is_none()
    }

    /// The change from another object to another one, where this one leads from what was on the tree when it was held.
    pub fn leading(&self, before: Before, after: Object) -> Self {
        let same_content = before.has_content_of(&after);
        // A `before` that was chosen is what the person saw there.
        let marks = match self.before == before {
            true => self.marks,
            false => {
                let link_broken = self.marks.link_broken && !same_content;
                Marks { foreign: false, by_clock: false, same_content, link_broken, ..self.marks }
            }
        };
        let original = self.original.clone().filter(|_| self.after == after);
        Self { before, after, marks, from: None, original, ..self.clone() }
    }

    /// True if the inode stays and only its metadata changes: content is known to be the same.
    pub fn in_place(&self) -> bool {
        let (Some(before), Some(after)) = (&self.before.object, &self.after) else { return false };
        // Content that is learned later must not change the kind of a change.
        if self.marks.linked || self.marks.link_broken || self.marks.replaced {
            return false;
        }
        match before.content_likeness(after) {
            Likeness::Same => true,
            Likeness::ReadToTell => self.marks.same_content,
            Likeness::Differs(_) => false,
        }
    }

    /// True if it changes nothing: the path is back to its `before`. Times do not count: a staged write of the same bytes is no change.
    pub fn is_none(&self) -> bool {
        match likeness(&self.before.object, &self.after) {
            Likeness::Same => true,
            Likeness::ReadToTell => self.marks.same_content,
            Likeness::Differs(_) => false,
        }
    }
}

/// The mtime that an existing directory has after the session although it is no change itself: names in it changed, or it was touched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryTime {
    /// The directory.
    pub path: AbsPath,
    /// Its mtime before.
    #[serde(with = "time")]
    pub before: Time,
    /// Its mtime after.
    #[serde(with = "time")]
    pub after: Time,
}

/// One line of `changes.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// A change. The last line for a path wins.
    Change(Box<Change>),
    /// The path is back to its `before`, and its time is no matter either.
    None { n: u32, path: AbsPath },
    #[serde(rename = "folder_time")]
    DirectoryTime(DirectoryTime),
    /// The file was written anew: this line and those that follow it stand for so many lines of the header's count.
    Rewritten {
        /// The header's count that the lines in this file stand for.
        lines: u64,
        /// The number of lines that follow and were written with this one.
        follow: u64,
        /// The offset in bytes where these end.
        end: u64,
    },
}

/// All that a session holds, in path order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Changes {
    /// The net changes, one a path.
    pub list: Vec<Change>,
    /// The mtimes of directories that are no changes.
    pub directory_times: Vec<DirectoryTime>,
}

impl Changes {
    /// Takes over the hashes of what was there before that other records of the same files have.
    pub fn learn(&mut self, known: &Changes) {
        for change in &mut self.list {
            let Some(before) = change.before.object.as_mut().filter(|before| before.is_file() && before.hash().is_none()) else {
                continue;
            };
            let Some(same) = known.at(&change.path).and_then(|known| known.before.object.as_ref()) else { continue };
            let alike = |state: &State| (state.size(), state.meta.mtime);
            if let Some(hash) = same.hash().filter(|_| alike(same) == alike(before)) {
                before.set_hash(hash);
            }
        }
    }

    /// The change at `path`.
    pub fn at(&self, path: &AbsPath) -> Option<&Change> {
        self.list.binary_search_by(|change| change.path.cmp(path)).ok().map(|i| &self.list[i])
    }

    /// True if something at `path`, above or below it changed.
    pub fn touches(&self, path: &AbsPath) -> bool {
        self.list.iter().any(|change| change.path.is_under(path) || path.is_under(&change.path))
    }

    /// The indices in the list of the changes at and under `path`.
    pub fn under(&self, path: &AbsPath) -> std::ops::Range<usize> {
        let start = self.list.partition_point(|change| change.path < *path);
        let count = self.list[start..].iter().take_while(|change| change.path.is_under(path)).count();
        start..start + count
    }

    /// Resolves an absolute path to one of the session. It stays as it is if the session holds something there or below (a directory may
    /// be a link by now, or lead nowhere). Else, as in staging, its parent is resolved and its last component is not.
    ///
    /// Errors: it cannot be resolved, or is no path of an object.
    pub fn named(&self, whole: &Path) -> Result<AbsPath, Error> {
        let plain: PathBuf = whole.components().collect();
        if let Ok(plain) = AbsPath::parse(plain.as_os_str().as_bytes())
            && !self.under(&plain).is_empty()
        {
            return Ok(plain);
        }
        match (whole.parent(), whole.file_name()) {
            (Some(parent), Some(name)) => {
                let parent = absolute(parent)?;
                parent.join(name.as_bytes()).map_err(|error| resolve::bad(whole, error))
            }
            // `/`, or a path that ends in `..`: a directory, which is no link.
            _ => absolute(whole),
        }
    }

    /// The first path that cannot be true together with those before it, and why.
    pub fn contradiction(&self) -> Option<(&AbsPath, &'static str)> {
        let mut above = Vec::new();
        self.list.iter().find_map(|change| fits_under(&mut above, change).err().map(|why| (&change.path, why)))
    }
}

/// A change that others may lie under.
pub struct Above {
    path: AbsPath,
    no_directory_before: bool,
    no_directory_after: bool,
}

/// Checks that a change can be true together with those before it in path order: a path above another has to be a directory, on both
/// sides, and no path comes twice (tests/README.md, F28). `above` holds the changes that it lies under; empty at first. The error is the
/// text behind the path.
pub fn fits_under(above: &mut Vec<Above>, change: &Change) -> Result<(), &'static str> {
    let is_dir = |object: &Object| object.as_ref().is_some_and(State::is_dir);
    while above.last().is_some_and(|top| !change.path.is_under(&top.path)) {
        let top = above.pop();
        if top.is_some_and(|top| change.path < top.path) {
            return Err("is not in path order");
        }
    }
    if let Some(top) = above.last() {
        let before = change.before.object.is_some() && top.no_directory_before;
        let after = change.after.is_some() && top.no_directory_after;
        if before || after || change.path == top.path {
            return Err("contradicts another change");
        }
    }
    above.push(Above {
        path: change.path.clone(),
        no_directory_before: !is_dir(&change.before.object),
        no_directory_after: !is_dir(&change.after),
    });
    Ok(())
}

/// Finds befores that cannot be true together: something was there under what was no directory. Takes paths in path order with what was
/// there. Returns pairs of indices: the one above, and the one below.
pub fn misfits<'p>(befores: impl Iterator<Item = (&'p AbsPath, Option<dir::Sort>)>) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut above: Vec<(usize, &AbsPath, Option<dir::Sort>)> = Vec::new();
    for (i, (path, before)) in befores.enumerate() {
        while above.last().is_some_and(|(_, top, _)| !path.is_under(top)) {
            above.pop();
        }
        if let Some((top, _, was)) = above.last()
            && before.is_some()
            && *was != Some(dir::Sort::Directory)
        {
            found.push((*top, i));
        }
        above.push((i, path, before));
    }
    found
}

/// The place of the content of change `n` in the session, if it is held as an object of its own. Always 32 digits: ext4 searches a
/// directory by blocks, and a block holds hundreds of short names, but some eighty of these. With thousands of names in the directory, a
/// rename into it takes half the time.
pub fn object_name(n: u32) -> Vec<u8> {
    format!("held/objects/{n:032}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Meta, What};

    #[test]
    fn a_path_fits_under_what_is_a_directory_on_both_sides_where_it_is_itself() {
        const DIRECTORY: Option<What> = Some(What::Directory);
        const FILE: Option<What> = Some(What::File { size: 0, hash: None, index: None });
        let object = |what: Option<What>| {
            let meta = Meta { mode: 0o755, uid: 0, gid: 0, mtime: Default::default(), xattrs: Default::default() };
            what.map(|what| State { what, meta })
        };
        let change = |path: &str, before, after| {
            Change::new(1, AbsPath::parse(path).unwrap(), Before { object: object(before), print: None }, object(after))
        };
        for (what, changes, fits) in [
            ("a new directory with a file", vec![change("/a", None, DIRECTORY), change("/a/b", None, FILE)], true),
            ("a directory that goes", vec![change("/a", DIRECTORY, None), change("/a/b", FILE, None)], true),
            ("beside it", vec![change("/a", FILE, None), change("/a.b", None, FILE), change("/b", FILE, FILE)], true),
            (
                "deeper",
                vec![change("/a", DIRECTORY, DIRECTORY), change("/a/b", DIRECTORY, None), change("/a/b/c", FILE, None)],
                true,
            ),
            ("under a file that comes", vec![change("/a", DIRECTORY, FILE), change("/a/b", FILE, FILE)], false),
            ("under a file that was", vec![change("/a", FILE, DIRECTORY), change("/a/b", FILE, None)], false),
            ("a file becomes a directory", vec![change("/a", FILE, DIRECTORY), change("/a/b", None, FILE)], true),
            ("a directory becomes a file", vec![change("/a", DIRECTORY, FILE), change("/a/b", FILE, None)], true),
            ("twice", vec![change("/a", DIRECTORY, DIRECTORY), change("/a", DIRECTORY, DIRECTORY)], false),
            (
                "twice, below",
                vec![change("/a", DIRECTORY, DIRECTORY), change("/a/b", None, FILE), change("/a/b", None, FILE)],
                false,
            ),
            ("not in order", vec![change("/b", FILE, None), change("/a", FILE, None)], false),
            ("not in order, below", vec![change("/a/b", FILE, None), change("/a", DIRECTORY, DIRECTORY)], false),
        ] {
            let mut above = Vec::new();
            let found = changes.iter().all(|change| fits_under(&mut above, change).is_ok());
            assert_eq!(found, fits, "{what}");
        }
    }
}
