//! The changes of a session that a call means if it names paths.

use std::path::PathBuf;

use super::place;
use crate::config::edits;
use crate::error::{Error, recant};
use crate::fs::path::AbsPath;
use crate::session::change::Changes;
use crate::session::id::Id;

/// The indexes of the changes at and under `paths`, of all changes if `paths` is empty. In path order, each once.
pub fn chosen(id: &Id, changes: &Changes, paths: &[PathBuf]) -> Result<Vec<usize>, Error> {
    if paths.is_empty() {
        return Ok((0..changes.list.len()).collect());
    }
    let mut chosen = Vec::new();
    for path in paths {
        let path = place::named(path, changes)?;
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

/// The error for a path that is not in the session. It names the paths most like it.
pub fn not_in_session(id: &Id, changes: &Changes, path: &AbsPath) -> Error {
    let asked = path.to_string();
    // In a long list the first few thousand do: nobody typed one of so many by mistake.
    let mut near: Vec<(usize, String)> =
        changes.list.iter().take(4000).map(|c| c.path.to_string()).map(|p| (edits(&p, &asked), p)).collect();
    near.sort();
    let near: Vec<String> = near.into_iter().take(3).map(|(_, path)| path).collect();
    let nearest = if near.is_empty() { String::new() } else { format!("; the nearest: {}", near.join(", ")) };
    Error::refused(format!("{path}: not in the session{nearest}")).with_path(path).with_remedy(format!(
        "{recant} show {} lists what is in it",
        id.tail(),
        recant = recant()
    ))
}
