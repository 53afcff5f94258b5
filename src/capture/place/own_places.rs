//! Decides which places a run holds whatever is mounted: those that its user may write.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::choosing::{Choosing, Wanted, may_write, real, stat};
use super::layout::{Need, Route};
use crate::fs::{AbsPath, searched};
use crate::tree::project_of;

/// The row of the coverage table for what else there is, in an ordinary user's run.
pub const REST: &str = "everything else: an ordinary user's run holds only the places listed here";

/// The directories for temporary files (hier(7)).
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

impl Choosing<'_> {
    /// The home directory, the project and what is the user's above it, the places for temporary files, and what is the user's in PATH. Of
    /// several reasons for one place the first counts.
    pub fn own_places(&self) -> Vec<Wanted> {
        let project = project_of(&self.request.cwd, self.request.home.as_deref());
        let why = if project == self.request.cwd { "the working directory" } else { "the working directory's project" };
        let mut places: Vec<Wanted> = Vec::new();
        places.extend(self.request.home.as_deref().and_then(real).map(|home| Wanted::new(home, "home")));
        places.extend(self.above(&project).map(|above| Wanted::new(above, "yours, above the project")));
        places.push(Wanted::new(project, why));
        places.extend(
            TEMPORARY.into_iter().filter_map(|path| real(Path::new(path))).map(|path| Wanted::new(path, "temporary files")),
        );
        let of_search = |path| Wanted { need: Need::OrReadOnly, ..Wanted::new(path, "yours, in PATH") };
        places.extend(searched().iter().filter_map(|path| self.prefix(path)).map(of_search));
        places
    }

    /// The highest directory above a project that the user owns and may write: a worktree beside the project lies in it.
    fn above(&self, project: &AbsPath) -> Option<AbsPath> {
        std::iter::successors(project.parent(), AbsPath::parent).filter(|path| self.is_users(path)).last()
    }

    /// The directory that an installer writes to for one of PATH that is the user's: the prefix, if that is its `bin`; else itself.
    fn prefix(&self, searched: &Path) -> Option<AbsPath> {
        // Most are not the user's, which one call tells; root's run holds them with the whole tree.
        let is_closed = || AbsPath::parse(searched.as_os_str().as_bytes()).is_ok_and(|path| !may_write(&path));
        if self.route == Route::Root || !searched.is_absolute() || is_closed() {
            return None;
        }
        let path = real(searched).filter(|path| self.is_users(path))?;
        let is_bin = path.split().is_some_and(|(_, name)| name == b"bin");
        let prefix = path.parent().filter(|prefix| is_bin && self.is_users(prefix));
        Some(prefix.unwrap_or(path))
    }

    /// Tells whether a directory is the user's, who may write it. Root's run holds the whole tree without being told so.
    fn is_users(&self, path: &AbsPath) -> bool {
        let uid = rustix::process::geteuid().as_raw();
        self.route == Route::User && path.depth() > 0 && may_write(path) && stat(path).is_some_and(|stat| stat.uid == uid)
    }
}
