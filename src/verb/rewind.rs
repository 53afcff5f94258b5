//! `rewind`: a session at another of its steps.

use serde::Serialize;

use super::desk::Desk;
use super::error;
use super::resolve::go_on;
use super::resolve::wanted_act::Want;
use crate::error::Error;
use crate::fs::{OnSignal, interrupt};
use crate::session::{Id, Locked, Run, Store, log};

/// A session that stands at another step, or would.
#[derive(Debug, Serialize)]
pub struct Rewound {
    pub session: Id,
    pub step: u32,
    /// The step at which it stood.
    pub was: u32,
    /// The number of changes that it holds there.
    pub changes: u64,
    pub dry_run: bool,
}

/// Makes the session that `key` means stand at another of its steps. `reason`: for the log. With `dry_run` it only tells.
///
/// # Errors
/// No session is meant, or its steps cannot be gone back to; there is no such step; nothing was changed then.
pub fn rewind(desk: &Desk, key: &str, step: u32, (reason, dry_run): (Option<&str>, bool)) -> Result<Rewound, Error> {
    let (store, mut session, _) = pending(desk, key, Want::Rewind)?;
    let (list, was) = (session.steps()?, session.header.head());
    list.check(&session.header, step)?;
    let changes = list.net(&session, step)?.list.len() as u64;
    if !dry_run {
        interrupt::check().map_err(error::asked_to_stop)?;
        let _noting = interrupt::note(OnSignal::GoesOn);
        go_on::open_again(desk, &mut session)?;
        session.for_reason(reason);
        session.rewind(&desk.fs, &list, step)?;
        let entry = log::Entry::new(format!("rewind {step}"), session.id(), session.header.generation, "done", changes);
        desk.note_in_log(store, &entry.of_act(&session.header));
    }
    Ok(Rewound { session: session.id().clone(), step, was, changes, dry_run })
}

/// A pending session whose steps can be gone back to, locked, with its record.
pub(super) fn pending<'d>(desk: &'d Desk, key: &str, want: Want) -> Result<(&'d Store, Locked, Run), Error> {
    let (store, session) = desk.locked(key, want)?;
    let run = session.run()?;
    go_on::refuse(&session.header, run.as_ref().is_some_and(|run| run.in_memory), want)?;
    let run = run.ok_or_else(|| error::has_no_steps(session.id()))?;
    Ok((store, session, run))
}
