//! The changes of a session that a call means if it names paths.

use std::path::PathBuf;

use super::error::not_in_session;
use crate::error::Error;
use crate::session::change::Changes;
use crate::session::id::Id;

/// The indexes of the changes at and under `paths`, which are absolute, of all changes if `paths` is empty. In path order, each once.
pub fn chosen(id: &Id, changes: &Changes, paths: &[PathBuf]) -> Result<Vec<usize>, Error> {
    if paths.is_empty() {
        return Ok((0..changes.list.len()).collect());
    }
    let mut chosen = Vec::new();
    for path in paths {
        let path = changes.named(path)?;
        let under = changes.under(&path);
        if under.is_empty() {
            return Err(not_in_session(id, changes, &path));
        }
        chosen.extend(under);
    }
    chosen.sort_unstable();
    chosen.dedup();
    Ok(chosen)
}
