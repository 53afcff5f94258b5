//! Large deletions: how much of a deleted folder a checkpoint keeps.

use std::collections::HashMap;

use crate::fs::path::AbsPath;
use crate::session::change::Change;
use crate::tree::state::State;

/// What to do where a deleted folder is over a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLimit {
    /// Keep everything, and say how much it is.
    #[default]
    Full,
    /// Do not keep the folder's content, and say so.
    Partial,
    /// Touch nothing.
    Refuse,
}

/// The limits, counted over each topmost deleted folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Files and other objects that are no folders.
    pub max_files: u64,
    /// Bytes of content.
    pub max_size: u64,
    /// What to do above either.
    pub on_limit: OnLimit,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_files: 100, max_size: 50 << 20, on_limit: OnLimit::Full }
    }
}

/// A topmost deleted folder that is over a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Large {
    /// The folder.
    pub path: AbsPath,
    /// Objects in it that are no folders.
    pub files: u64,
    /// Bytes of content in it.
    pub size: u64,
}

/// The topmost deleted folders among `changes` (in path order) that are over a limit.
pub fn large_deletions<'c>(changes: impl Iterator<Item = &'c Change>, limits: &Limits) -> Vec<Large> {
    let mut totals: HashMap<AbsPath, Large> = HashMap::new();
    let mut top: Option<AbsPath> = None;
    for change in changes {
        let Some(before) = &change.before.object else { continue };
        let deleted = change.after.as_ref().is_none_or(|after| !after.is_folder());
        if top.as_ref().is_none_or(|top| !change.path.is_under(top)) {
            top = (before.is_folder() && deleted).then(|| change.path.clone());
        }
        let Some(top) = &top else { continue };
        let total = totals.entry(top.clone()).or_insert_with(|| Large { path: top.clone(), files: 0, size: 0 });
        total.files += u64::from(!before.is_folder());
        total.size += State::size(before);
    }
    let over = |large: &Large| large.files > limits.max_files || large.size > limits.max_size;
    let mut large: Vec<Large> = totals.into_values().filter(over).collect();
    large.sort_by(|a, b| a.path.cmp(&b.path));
    large
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::change::{Before, Marks};
    use crate::tree::state::{Meta, What};

    fn deleted(path: &str, size: Option<u64>) -> Change {
        let meta = Meta { mode: 0o644, uid: 0, gid: 0, mtime: Default::default(), xattrs: Default::default() };
        let what = size.map_or(What::Folder, |size| What::File { size, digest: None });
        let before = Before { object: Some(State { what, meta }), print: None };
        let path = AbsPath::parse(path).unwrap();
        Change { n: 1, path, before, after: None, marks: Marks::default(), extra: Default::default() }
    }

    #[test]
    fn each_topmost_deleted_folder_is_counted_by_itself() {
        let changes = [
            deleted("/a", None),
            deleted("/a/1", Some(10)),
            deleted("/a/b", None),
            deleted("/a/b/2", Some(10)),
            deleted("/c", None),
            deleted("/c/1", Some(10)),
            deleted("/d", Some(1000)),
        ];
        let count = |max_files, max_size| {
            let limits = Limits { max_files, max_size, on_limit: OnLimit::Partial };
            let large = large_deletions(changes.iter(), &limits);
            large.iter().map(|l| (l.path.to_string(), l.files, l.size)).collect::<Vec<_>>()
        };
        assert_eq!(count(1, 100), [("/a".to_owned(), 2, 20)]);
        assert_eq!(count(9, 15), [("/a".to_owned(), 2, 20)]);
        assert_eq!(count(0, 100).len(), 2);
        assert_eq!(count(2, 20), []);
    }
}
