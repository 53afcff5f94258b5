//! The surroundings that the places of agents' files follow from.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::fs::{AbsPath, in_path};

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

/// A path below a directory. `name`: one that this program has written down, which is no empty one, `.` or `..`.
pub fn below(directory: &AbsPath, name: &str) -> AbsPath {
    name.split('/').fold(directory.clone(), |path, part| path.join(part.as_bytes()).expect("a name of this file is a name"))
}
