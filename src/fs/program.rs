//! Programs in PATH.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
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

/// This program, for a child of this process: by its name, which listings of processes show; by the file itself, if the name is another's by
/// now, as after an upgrade, so that both are of one version.
///
/// # Errors
/// /proc is not mounted.
pub fn own() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    Ok(if path.exists() { path } else { "/proc/self/exe".into() })
}

/// The path of this program, for what starts it later; after an upgrade that of the new one.
///
/// # Errors
/// /proc is not mounted.
pub fn own_path() -> io::Result<PathBuf> {
    // proc_pid_exe(5): the mark of a file that was removed.
    let path = std::env::current_exe()?;
    let former = path.as_os_str().as_bytes().strip_suffix(b" (deleted)").map(|name| PathBuf::from(OsStr::from_bytes(name)));
    Ok(former.filter(|former| !path.exists() && former.exists()).unwrap_or(path))
}

/// True if it can be started, as far as its mode tells.
pub fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
