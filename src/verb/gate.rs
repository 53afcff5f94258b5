//! The gate before a verb: what a run inside may not do, and what is put right before anything is changed.

use super::confirm::take_back_overdue;
use super::desk::Desk;
use super::error;
use super::run::cut_off;
use crate::capture::{capture, inside};
use crate::error::Error;

/// Refuses, inside a run, an act on the tree, which a person outside decides. What a held agent undid in its own store it may roll back there:
/// that is held, too. `commits`: whether the act is a commit.
///
/// # Errors
/// This is inside a run, and the session that `key` means is not of its own store, or is to be committed.
pub fn refuse_outside(desk: &Desk, key: &str, commits: bool) -> Result<(), Error> {
    let Some(inside) = capture() else { return Ok(()) };
    if !commits && inside.store.is_some() && is_of_own_store(desk, key) {
        Ok(())
    } else {
        Err(error::decided_outside(&inside.session))
    }
}

/// Tells whether `key` means a session of the run's own store. For a process in a run that has one.
pub fn is_of_own_store(desk: &Desk, key: &str) -> bool {
    let Ok(Some(store)) = desk.store() else { return false };
    if key == "last" {
        return store.headers().is_ok_and(|(headers, _)| !headers.is_empty());
    }
    store.find(key, |_| true).is_ok()
}

/// Prepares for a verb that changes something: runs on the real tree that were cut off get their sessions, commits that nobody confirmed in
/// time are rolled back, and a person's store knows where that one has settings.
///
/// # Errors
/// The store cannot be read; a signal came.
pub fn before_changes(desk: &Desk) -> Result<(), Error> {
    if inside().is_none() {
        cut_off::recover_before(desk)?;
        take_back_overdue(desk)?;
        desk.store()?.map_or(Ok(()), |store| desk.note_person(store))?;
    }
    Ok(())
}
