//! The gate before a verb: what a run inside may not do, and what is put right before anything is changed.

use super::cut_runs;
use crate::capture::run::inside::capture;
use crate::capture::run::inside::inside;
use crate::error::{Error, command};
use crate::face::call::Call;
use crate::verb::confirm::take_back_overdue;

/// Refuses, inside a run, an act on the tree, which a person outside decides. What a held agent undid in its own store it may roll back there:
/// that is held, too.
///
/// # Errors
/// This is inside a run, and the session that `key` means is not of its own store, or is to be committed.
pub fn refuse_outside(call: &Call, key: &str, commits: bool) -> Result<(), Error> {
    let Some(inside) = capture() else { return Ok(()) };
    let own = if inside.store.is_some() { call.store()? } else { None };
    let is_own = match own {
        Some(store) if key == "last" => store.headers().is_ok_and(|(headers, _)| !headers.is_empty()),
        Some(store) => store.find(key, |_| true).is_ok(),
        None => false,
    };
    if !commits && is_own {
        return Ok(());
    }
    let id = &inside.session;
    let message = format!("this is inside the run of session {id}, where nothing reaches the real tree");
    let tail = id.rsplit('-').next().unwrap_or(id);
    let remedy = "the person outside does that: " + command(format_args!("review {tail}"));
    Err(Error::refused(message).with_remedy(remedy))
}

/// Prepares for a verb that changes something: runs of `run --in` that were cut off get their sessions, and commits that nobody confirmed in
/// time are rolled back.
///
/// # Errors
/// The store cannot be read; a signal came.
pub fn before_changes(call: &Call) -> Result<(), Error> {
    if inside().is_none() {
        cut_runs::recover_before(call)?;
        take_back_overdue(call)?;
    }
    Ok(())
}
