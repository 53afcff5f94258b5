//! A path as somebody gives it, made the path of an object: absolute, and without links.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::path::{AbsPath, Shown};
use crate::error::{At, Failure, IoError, Kind};

/// Why a path is none that recant can take.
#[derive(Debug, thiserror::Error)]
pub enum Unresolved {
    /// A system call failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// It is no path of an object.
    #[error("{path}: {why}")]
    Bad {
        /// The path.
        path: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Unresolved {
    /// Of a path as it was given.
    pub fn bad(path: &Path, why: impl ToString) -> Self {
        Self::Bad { path: shown(path), why: why.to_string() }
    }
}

impl Failure for Unresolved {
    fn kind(&self) -> Kind {
        Kind::Refused
    }

    fn state(&self) -> Option<String> {
        Some("nothing was changed".into())
    }

    fn path(&self) -> Option<String> {
        match self {
            Unresolved::Io(error) => Some(error.path.clone()),
            Unresolved::Bad { path, .. } => Some(path.clone()),
        }
    }
}

fn shown(path: &Path) -> String {
    Shown(path.as_os_str().as_bytes()).to_string()
}

/// An absolute path without links, `.` and `..`: the part that is there by realpath(3), the rest as it stands.
///
/// Errors: a link on the way that leads nowhere or in a circle, a directory that cannot be searched, `..` below a directory that is missing.
pub fn absolute(path: &Path) -> Result<AbsPath, Unresolved> {
    let mut there = path.to_path_buf();
    let mut missing = Vec::new();
    let mut real = loop {
        match there.canonicalize() {
            Ok(real) => break real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => match there.symlink_metadata() {
                Err(_) => {}
                Ok(found) if found.is_symlink() => return Err(error).at("resolve", shown(path)).map_err(Unresolved::from),
                // Made in this moment: another recant makes its store.
                Ok(_) => continue,
            },
            Err(error) => return Err(error).at("resolve", shown(path)).map_err(Unresolved::from),
        }
        let name = there.file_name().map(ToOwned::to_owned);
        missing.push(name.ok_or_else(|| Unresolved::bad(path, "'..' below a folder that is missing"))?);
        there.pop();
    };
    real.extend(missing.iter().rev());
    AbsPath::parse(real.as_os_str().as_bytes()).map_err(|error| Unresolved::bad(path, error))
}
