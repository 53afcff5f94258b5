//! The names that belong to version control itself.

use crate::fs::AbsPath;

/// A `.git` that is a file leads a worktree or a submodule to its repository: without it the working tree belongs to none, so it counts too.
const NAMES: [&[u8]; 4] = [b".git", b".hg", b".svn", b".jj"];

/// Tells whether a name is version control's own: a directory, a file or a link.
pub fn is_vcs(name: &[u8]) -> bool {
    NAMES.contains(&name)
}

/// The topmost part of a path of a snapshot that is version control's own; never the snapshot's directory `/` itself.
pub fn vcs_above(path: &AbsPath) -> Option<AbsPath> {
    let own = std::iter::successors(Some(path.clone()), AbsPath::parent).filter(|at| at.depth() > 0 && is_vcs(at.name()));
    own.last()
}
