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
    let own = if inside.store.is_some() { desk.store()? } else { None };
    let is_own = match own {
        Some(store) if key == "last" => store.headers().is_ok_and(|(headers, _)| !headers.is_empty()),
        Some(store) => store.find(key, |_| true).is_ok(),
        None => false,
    };
    if !commits && is_own { Ok(()) } else { Err(error::decided_outside(&inside.session)) }
}

/// Prepares for a verb that changes something: runs on the real tree that were cut off get their sessions, and commits that nobody confirmed
/// in time are rolled back.
///
/// # Errors
/// The store cannot be read; a signal came.
pub fn before_changes(desk: &Desk) -> Result<(), Error> {
    if inside().is_none() {
        cut_off::recover_before(desk)?;
        take_back_overdue(desk)?;
    }
    Ok(())
}
