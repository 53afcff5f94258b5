//! The surroundings that the places of agents' files follow from.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::fs::path::AbsPath;

/// The place where an agent is started, and what its environment says.
pub struct Surroundings<'a> {
    pub home: AbsPath,
    pub project: AbsPath,
    /// The value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
}

impl Surroundings<'_> {
    /// The directory that a variable names, if it is an absolute path.
    pub fn named(&self, variable: &str) -> Option<AbsPath> {
        AbsPath::parse((self.variable)(variable)?.as_bytes()).ok()
    }

    /// The directory that a variable names, else one below the home directory.
    pub fn named_or(&self, variable: &str, usual: &str) -> AbsPath {
        self.named(variable).unwrap_or_else(|| below(&self.home, usual))
    }

    /// The first program of this name in PATH.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        in_path(&(self.variable)("PATH")?, name)
    }
}

/// The first program of this name in the directories of `path`.
pub fn in_path(path: &OsStr, name: &str) -> Option<PathBuf> {
    std::env::split_paths(path).map(|directory| directory.join(name)).find(|path| is_program(path))
}

/// True if it can be started, as far as its mode tells.
pub fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// A path below a directory. `name`: one that this program has written down, which is no empty one, `.` or `..`.
pub fn below(directory: &AbsPath, name: &str) -> AbsPath {
    name.split('/').fold(directory.clone(), |path, part| path.join(part.as_bytes()).expect("a name of this file is a name"))
}
