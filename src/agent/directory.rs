//! The directories of agents in the store.

use crate::error::Error;
use crate::fs::{Dir, Fs};
use crate::session::Store;

/// A directory of the store, made if it is missing.
///
/// # Errors
/// It cannot be made.
pub fn directory(fs: &Fs, store: &Store, path: &[u8]) -> Result<Dir, Error> {
    if let Ok(dir) = store.dir.open_below(path) {
        return Ok(dir);
    }
    let mut dir = store.dir.again()?;
    for part in path.split(|byte| *byte == b'/') {
        match fs.mkdir(dir.at(part), 0o700) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error.into()),
            _ => dir = dir.open_below(part)?,
        }
    }
    Ok(dir)
}
