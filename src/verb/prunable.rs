//! Sessions, and checkpoints, that nothing needs any more.

use crate::checkpoint::keeps_overwritten as keeps;
use crate::error::Error;
use crate::session::{Header, Status, Store, is_awaited, is_needed};

/// The fate of committed sessions, which could be rolled back, under conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    Stays,
    May,
}

/// Tells whether nothing needs a session: no rollback, no commit that may still come, no work that `--force` overwrote.
///
/// # Errors
/// It cannot be read.
pub fn may_go(store: &Store, header: &Header, committed: Committed) -> Result<bool, Error> {
    Ok(!is_awaited(header) && may_lose_checkpoint(store, header, committed)?)
}

/// Tells whether nothing needs a session's checkpoint: no rollback, and no work that `--force` overwrote.
///
/// # Errors
/// It cannot be read.
pub fn may_lose_checkpoint(store: &Store, header: &Header, committed: Committed) -> Result<bool, Error> {
    let free = (committed == Committed::May || !is_needed(header)) && header.status() != Status::Running;
    Ok(free && !keeps_overwritten(store, header)?)
}

/// True if it keeps the only copy of what `--force` overwrote.
///
/// # Errors
/// It cannot be read.
pub fn keeps_overwritten(store: &Store, header: &Header) -> Result<bool, Error> {
    // Nothing was overwritten before anything was committed.
    if header.generation == 0 || header.discarded.is_some() {
        return Ok(false);
    }
    keeps(&store.session(&header.id)?.dir)
}
