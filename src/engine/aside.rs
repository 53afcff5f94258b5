//! What an operation leaves out, each path with the reason: for the report.

use crate::fs::path::AbsPath;
use crate::session::change::Change;
use crate::tree::state::State;

/// Whether a path may never be committed.
pub type Denied = std::rc::Rc<dyn Fn(&AbsPath) -> bool>;

/// Paths that conflict where that is of no weight (`commit.minor`), or where nothing is there on which a forced verb could act. They are left out, with what lies under them, and with the
/// deletion of a folder that something of somebody else's is in.
#[derive(Clone, Default)]
pub struct Aside {
    /// The paths, and why.
    pub paths: Vec<(AbsPath, String)>,
    /// Whether a path is of no weight.
    pub minor: Option<Denied>,
}

impl Aside {
    /// Why a change is left out, if it is. One name of several of a file never is: the others would go without it.
    pub fn why(&self, change: &Change) -> Option<String> {
        if change.marks.linked || change.marks.link_broken {
            return None;
        }
        let is_minor = |path: &AbsPath| self.minor.as_ref().is_some_and(|minor| minor(path));
        let takes_away = !change.after.as_ref().is_some_and(State::is_folder) && is_minor(&change.path);
        self.paths.iter().find_map(|(path, why)| match () {
            () if change.path == *path => Some(why.clone()),
            () if change.path.is_under(path) => Some(format!("{path}, in which it lies, is left out")),
            () if takes_away && path.is_under(&change.path) => Some(format!("{path}, which lies in it, is left out")),
            () => None,
        })
    }
}
