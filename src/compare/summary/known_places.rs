//! The places where programs leave what people do not look for: directories by their names, and what the settings say.

use globset::{GlobSet, GlobSetBuilder};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::kind::Kind;
use crate::fs::AbsPath;
use crate::settings::{Settings, path_glob};
use crate::tree::{generated, is_vcs};

/// Known places, as seen from a session.
pub struct KnownPlaces {
    /// `capture.caches` and `commit.minor`.
    caches: GlobSet,
    /// `agent.byproducts`.
    byproducts: Gitignore,
    /// The project that the session is of, which is in no place.
    project: Option<AbsPath>,
}

/// A directory that packages are put in, but also one in which many projects keep sources of others: no preset leaves it out.
const VENDOR: &[u8] = b"vendor";

impl KnownPlaces {
    /// Those of the settings, for a session of this project. Byproducts that cannot be read name nothing.
    pub fn of(settings: &Settings, project: Option<AbsPath>) -> Self {
        let mut caches = GlobSetBuilder::new();
        let literal = |path: &std::path::PathBuf| path.to_str().map(globset::escape);
        let globs = settings.caches.value.iter().filter_map(literal).chain(settings.minor.value.iter().cloned());
        for glob in globs.filter_map(|glob| path_glob(&glob).ok()) {
            caches.add(glob);
        }
        let mut byproducts = GitignoreBuilder::new("/");
        let all_fit = settings.agent_byproducts.value.iter().all(|glob| byproducts.add_line(None, glob).is_ok());
        let byproducts = byproducts.build().ok().filter(|_| all_fit).unwrap_or_else(Gitignore::empty);
        Self { caches: caches.build().unwrap_or_default(), byproducts, project }
    }

    /// The outermost known directory at or above a path for which `is_top` is true.
    pub(super) fn outermost(
        &self,
        path: &AbsPath,
        is_directory: bool,
        is_top: impl Fn(&AbsPath) -> bool,
    ) -> Option<(Kind, AbsPath)> {
        let mut above: Vec<AbsPath> = path.ancestors().filter(|above| above.depth() > 0).collect();
        above.reverse();
        above.extend(is_directory.then(|| path.clone()));
        let holds_project = |top: &AbsPath| self.project.as_ref().is_some_and(|project| project.is_under(top));
        let known = above.into_iter().filter(|top| !holds_project(top) && is_top(top));
        known.filter_map(|top| Some((self.kind(&top)?, top))).next()
    }

    fn kind(&self, directory: &AbsPath) -> Option<Kind> {
        let name = directory.name();
        match generated(name) {
            _ if is_vcs(name) => Some(Kind::Repository),
            Some(kind) => Some(kind.into()),
            None if name == VENDOR => Some(Kind::Dependencies),
            None => self.caches.is_match(directory.as_path()).then_some(Kind::Caches),
        }
    }

    /// The glob that names a file which compilers and editors put beside sources.
    pub(super) fn byproduct(&self, path: &AbsPath) -> Option<String> {
        match self.byproducts.matched(path.as_path(), false) {
            ignore::Match::Ignore(glob) => Some(glob.original().to_owned()),
            _ => None,
        }
    }
}
