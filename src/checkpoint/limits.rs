//! Large deletions: how much of a deleted directory a checkpoint keeps.

use serde::Serialize;

use crate::fs::AbsPath;
use crate::settings::OnLimit;
use crate::tree::State;

/// The limits, counted over each topmost deleted directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Files and other objects that are no directories.
    pub max_files: u64,
    /// Bytes of content.
    pub max_size: u64,
    pub on_limit: OnLimit,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_files: 100, max_size: 50 << 20, on_limit: OnLimit::Full }
    }
}

/// A topmost deleted directory that is over a limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Large {
    pub path: AbsPath,
    /// Objects in it that are no directories.
    pub files: u64,
    /// Bytes of content in it.
    pub size: u64,
}

/// Counts deletions, in path order, over each topmost deleted directory.
pub struct Tally<'l> {
    limits: &'l Limits,
    top: Option<Large>,
    over: Vec<Large>,
}

impl<'l> Tally<'l> {
    pub fn new(limits: &'l Limits) -> Self {
        Self { limits, top: None, over: Vec::new() }
    }

    /// Counts one change, from the object at the path to the one that is to be there.
    pub fn count(&mut self, path: &AbsPath, before: Option<&State>, after: Option<&State>) {
        let Some(before) = before else { return };
        if self.top.as_ref().is_none_or(|top| !path.is_under(&top.path)) {
            self.close();
            let deleted = after.is_none_or(|after| !after.is_dir());
            self.top = (before.is_dir() && deleted).then(|| Large { path: path.clone(), files: 0, size: 0 });
        }
        if let Some(top) = &mut self.top {
            top.files += u64::from(!before.is_dir());
            top.size += before.size();
        }
    }

    fn close(&mut self) {
        let over = |large: &Large| large.files > self.limits.max_files || large.size > self.limits.max_size;
        self.over.extend(self.top.take().filter(over));
    }

    /// The directories that are over a limit, in path order.
    pub fn over(mut self) -> Vec<Large> {
        self.close();
        self.over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Meta, What};

    fn deleted(path: &str, size: Option<u64>) -> (AbsPath, State) {
        let meta = Meta { mode: 0o644, uid: 0, gid: 0, mtime: Default::default(), xattrs: Default::default() };
        let what = size.map_or(What::Directory, |size| What::File { size, hash: None, index: None });
        (AbsPath::parse(path).unwrap(), State { what, meta })
    }

    #[test]
    fn each_topmost_deleted_directory_is_counted_by_itself() {
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
            let mut tally = Tally::new(&limits);
            changes.iter().for_each(|(path, before)| tally.count(path, Some(before), None));
            tally.over().iter().map(|l| (l.path.to_string(), l.files, l.size)).collect::<Vec<_>>()
        };
        assert_eq!(count(1, 100), [("/a".to_owned(), 2, 20)]);
        assert_eq!(count(9, 15), [("/a".to_owned(), 2, 20)]);
        assert_eq!(count(0, 100).len(), 2);
        assert_eq!(count(2, 20), []);
    }

    #[test]
    fn a_directory_that_stays_is_no_deleted_one_and_one_that_becomes_something_else_is() {
        let (directory, file) = (deleted("/a", None), deleted("/a/1", Some(10)));
        let other = deleted("/a", Some(1)).1;
        let count = |after: Option<&State>| {
            let limits = Limits { max_files: 0, max_size: 100, on_limit: OnLimit::Partial };
            let mut tally = Tally::new(&limits);
            tally.count(&directory.0, Some(&directory.1), after);
            tally.count(&file.0, Some(&file.1), None);
            tally.over().len()
        };
        assert_eq!((count(None), count(Some(&directory.1)), count(Some(&other))), (1, 0, 1));
    }
}
