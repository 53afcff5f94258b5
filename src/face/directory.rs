//! The directory whose snapshots a call means.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::place::{absolute, cwd, home, whole};
use crate::error::Error;
use crate::fs::path::AbsPath;
use crate::snapshot::place;

/// The directory or file that a call means.
pub fn directory(given: Option<&Path>) -> Result<AbsPath, Error> {
    match given {
        // A path below something that is no directory now may have existed before.
        Some(path) => match path.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
                as_named(path)?.pop().map_or_else(|| absolute(&whole(path)?), Ok)
            }
            _ => absolute(&whole(path)?),
        },
        None => Ok(place::project(&absolute(&cwd()?)?, home().as_ref())),
    }
}

/// The `--dir` option for a suggested command; empty if the directory is meant without it.
pub fn dir(of: &AbsPath) -> String {
    if directory(None).is_ok_and(|meant| meant == *of) { String::new() } else { format!(" --dir {of}") }
}

/// A path with its last component not resolved, then one with no component resolved.
pub fn as_named(path: &Path) -> Result<Vec<AbsPath>, Error> {
    let plain: PathBuf = whole(path)?.components().collect();
    let above = plain.parent().zip(plain.file_name()).and_then(|(above, name)| absolute(above).ok()?.join(name.as_bytes()).ok());
    Ok(above.into_iter().chain(AbsPath::parse(plain.as_os_str().as_bytes()).ok()).collect())
}
