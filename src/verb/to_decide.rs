//! The sessions that wait for their person to decide.

use super::desk::Desk;
use super::resolve::scope::Scope;
use crate::error::Error;
use crate::session::{Header, Id, Status};

/// The pending sessions of this project that hold something: those that agents made first, of each the oldest first.
///
/// # Errors
/// The store, or the working directory, cannot be read.
pub fn to_decide(desk: &Desk) -> Result<Vec<Id>, Error> {
    let Some(store) = desk.store()? else { return Ok(Vec::new()) };
    let scope = Scope::of(desk)?;
    let waits = |header: &Header| header.status() == Status::Pending && header.counts.changes > 0 && scope.has(store, header);
    let mut waiting: Vec<Header> = store.headers()?.0.into_iter().filter(waits).collect();
    waiting.sort_by_key(|header| (header.by.is_none(), header.seq));
    Ok(waiting.into_iter().map(|header| header.id).collect())
}
