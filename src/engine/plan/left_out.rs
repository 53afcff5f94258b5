//! The paths that an operation leaves out, each with the reason: for the report.

use crate::fs::AbsPath;
use crate::session::Change;
use crate::tree::State;

/// True for a path that may never be committed.
pub type MinorPaths = std::rc::Rc<dyn Fn(&AbsPath) -> bool>;

/// Conflicting paths that do not matter (`commit.minor`), or where nothing is there for a forced verb to act on. They are left out, with
/// what lies under them, and with the deletion of a directory that holds something of somebody else's.
#[derive(Clone, Default)]
pub struct LeftOut {
    pub paths: Vec<(AbsPath, String)>,
    /// True for a path that does not matter.
    pub minor: Option<MinorPaths>,
}

impl LeftOut {
    /// The reason why a change is left out, if it is. One of several names of a file never is: the others would go without it.
    pub fn why(&self, change: &Change) -> Option<String> {
        if change.marks.linked || change.marks.link_broken {
            return None;
        }
        let is_minor = |path: &AbsPath| self.minor.as_ref().is_some_and(|minor| minor(path));
        let takes_away = !change.after.as_ref().is_some_and(State::is_dir) && is_minor(&change.path);
        self.paths.iter().find_map(|(path, why)| match () {
            () if change.path == *path => Some(why.clone()),
            () if change.path.is_under(path) => Some(format!("{path}, in which it lies, is left out")),
            () if takes_away && path.is_under(&change.path) => Some(format!("{path}, which lies in it, is left out")),
            () => None,
        })
    }
}
