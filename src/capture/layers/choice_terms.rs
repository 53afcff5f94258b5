//! The terms of a person's choice of the content that a session holds in a file from now on.

use crate::fs::AbsPath;
use crate::session::{Before, Change, Marks};
use crate::tree::{Likeness, State, likeness};

/// The file that a session holds at a path from now on.
#[derive(Debug)]
pub struct Choice {
    pub path: AbsPath,
    /// The object that a commit will expect there. It need not be the one of the present change.
    pub before: Before,
    /// The file that a commit will put there. If `before` is the same, times included, the path is no change any more.
    pub after: State,
    pub content: Vec<u8>,
}

impl Choice {
    /// True if the path is no change any more: nothing differs, times included.
    pub fn is_none(&self) -> bool {
        let Some(before) = &self.before.object else { return false };
        // Content that does not come from the tree may have the size and the time of what is there, by chance: its hash alone tells.
        let is_known = [before, &self.after].into_iter().all(|state| !state.is_file() || state.hash().is_some());
        let is_same = || likeness(&self.before.object, &Some(self.after.clone())) == Likeness::Same;
        is_known && before.meta.mtime == self.after.meta.mtime && is_same()
    }

    /// The net change that it makes of the one that is known.
    pub fn change(&self, known: Option<&Change>) -> Change {
        let (before, after) = (self.before.clone(), Some(self.after.clone()));
        match known {
            Some(known) => known.leading(before, after),
            None => {
                let marks = Marks { same_content: before.has_content_of(&after), ..Marks::default() };
                Change { n: 0, path: self.path.clone(), before, after, marks, step: None, from: None, original: None }
            }
        }
    }
}
