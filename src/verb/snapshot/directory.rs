//! The directory whose snapshots a call means.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::capture::working_directory;
use crate::error::{At as _, Error};
use crate::fs::{AbsPath, Shown, absolute, home};
use crate::snapshot::choose_directory;

/// Finds the directory or file at a path, which may be relative; without one, the project of the working directory.
///
/// # Errors
/// The working directory is gone; the path leads nowhere.
pub fn directory(given: Option<&Path>) -> Result<AbsPath, Error> {
    let Some(path) = given else { return Ok(choose_directory::project(&working_directory()?, home().as_ref())) };
    let path = &whole(path)?;
    match path.symlink_metadata() {
        // A path below something that is no directory now may have existed before.
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            as_named(path)?.pop().map_or_else(|| absolute(path), Ok)
        }
        _ => absolute(path),
    }
}

/// The `--dir` option for a suggested command; empty if the directory is meant without it.
pub fn dir(of: &AbsPath) -> String {
    if directory(None).is_ok_and(|meant| meant == *of) { String::new() } else { format!(" --dir {of}") }
}

fn whole(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).at("resolve", Shown(path.as_os_str().as_bytes())).map_err(Error::from)
}

/// A path with its last component not resolved, then one with no component resolved.
///
/// # Errors
/// It is relative, and the working directory is gone.
pub fn as_named(path: &Path) -> Result<Vec<AbsPath>, Error> {
    let plain: PathBuf = whole(path)?.components().collect();
    let above = plain.parent().zip(plain.file_name()).and_then(|(above, name)| absolute(above).ok()?.join(name.as_bytes()).ok());
    Ok(above.into_iter().chain(AbsPath::parse(plain.as_os_str().as_bytes()).ok()).collect())
}
