//! The mark of a session: one hash of what it puts on the tree. Two machines compare it to tell if they have the same session.
//!
//! Hashes paths, and the `after` of each with its content. Leaves out `before`, which a commit compares with the tree itself, names,
//! times of directories, and all other records of a session.

use std::collections::HashMap;

use serde::Serialize;

use crate::error::{At, Error};
use crate::fs::path::AbsPath;
use crate::session::change::Change;
use crate::session::opened::Session;
use crate::session::run::Run;
use crate::session::sides::Side;
use crate::tree::hash::{Hash, Hasher};
use crate::tree::json;
use crate::tree::look;
use crate::tree::state::{Object, State, What};

/// A hashed line.
#[derive(Serialize)]
struct Put<'a> {
    path: &'a AbsPath,
    /// True if only metadata changes: the content is that of the tree.
    in_place: bool,
    after: &'a Object,
}

/// The mark of a session. A session that was imported keeps the mark of its origin, as long as nobody changes what it holds.
/// `None` if content of it lies on the tree, or is lost, and was never read.
pub fn mark(session: &Session) -> Result<Option<Hash>, Error> {
    // Stored: a commit that takes an unexpected object as `before`, by force, alters the content of changes in place.
    if let Some(mark) = session.header.mark {
        return Ok(Some(mark));
    }
    let mut list = session.changes()?.list;
    let (sides, run) = (session.sides(list.len())?, session.run()?);
    for (change, side) in list.iter_mut().zip(sides) {
        if !is_unread(change) {
            continue;
        }
        let Some(hash) = content(session, change, side, run.as_ref())? else { return Ok(None) };
        if let Some(State { what: What::File { hash: known, .. }, .. }) = &mut change.after {
            *known = Some(hash);
        }
    }
    Ok(Some(of(list.iter().map(|change| (&change.path, change)))))
}

/// The mark of imported changes. `there` has the original paths of those that were mapped, by a change's number, in any order.
pub fn of_came(list: &[Change], there: &[(u32, AbsPath)]) -> Hash {
    let there: HashMap<u32, &AbsPath> = there.iter().map(|(n, path)| (*n, path)).collect();
    let mut came: Vec<(&AbsPath, &Change)> =
        list.iter().map(|change| (there.get(&change.n).copied().unwrap_or(&change.path), change)).collect();
    came.sort_by_key(|(path, _)| *path);
    of(came.into_iter())
}

/// The mark of changes in path order whose content is known.
fn of<'a>(changes: impl Iterator<Item = (&'a AbsPath, &'a Change)>) -> Hash {
    let mut hasher = Hasher::default();
    for (path, change) in changes {
        let in_place = change.in_place();
        let mut after = change.after.clone();
        if let Some(State { what: What::File { hash, .. }, .. }) = &mut after
            && in_place
        {
            // One machine may know it, and the other not.
            *hash = None;
        }
        hasher.update(&json::line(&Put { path, in_place, after: &after }));
    }
    hasher.finish()
}

fn is_unread(change: &Change) -> bool {
    matches!(change.after, Some(State { what: What::File { hash: None, .. }, .. })) && !change.in_place()
}

/// The hash of a change's held content.
fn content(session: &Session, change: &Change, side: Side, run: Option<&Run>) -> Result<Option<Hash>, Error> {
    let Some(place) = Session::held_at(change, side, run) else { return Ok(None) };
    let (dir, name) = session.split(&place)?;
    let (hash, _) = look::hash(dir.at(name)).at("read the held content of", &change.path)?;
    Ok(Some(hash))
}
