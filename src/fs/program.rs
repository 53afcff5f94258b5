//! Programs in PATH.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The directories of the caller's PATH.
pub fn searched() -> Vec<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect()
}

/// The first program of this name in PATH.
pub fn find(name: &str) -> Option<PathBuf> {
    in_path(&std::env::var_os("PATH")?, name)
}

/// The first program of this name in the directories of `path`.
pub fn in_path(path: &OsStr, name: &str) -> Option<PathBuf> {
    std::env::split_paths(path).map(|directory| directory.join(name)).find(|path| is_program(path))
}

/// True if it can be started, as far as its mode tells.
pub fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
