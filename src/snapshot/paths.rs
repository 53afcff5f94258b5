//! Paths in a snapshot, and on the tree.

use crate::error::{Error, Kind};
use crate::fs::AbsPath;

/// The real path of a path in a snapshot of `directory`.
///
/// # Errors
/// Fails if the result is no path.
pub fn whole(directory: &AbsPath, path: &AbsPath) -> Result<AbsPath, Error> {
    if path.depth() == 0 {
        return Ok(directory.clone());
    }
    let bytes = [directory.as_bytes(), path.as_bytes()].concat();
    AbsPath::parse(bytes).map_err(|error| Error::at(Kind::Refused, path, error))
}
