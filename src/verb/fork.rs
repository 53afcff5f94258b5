//! `fork`: a session that begins as another one is at a step.

use serde::Serialize;

use super::desk::Desk;
use super::error;
use super::fact::Fact;
use super::resolve::go_on;
use super::resolve::wanted_act::Want;
use super::rewind::pending;
use crate::capture::fill;
use crate::error::Error;
use crate::fs::{OnSignal, interrupt};
use crate::session::{Changes, Counts, Header, Id, Locked, Origin, Run, Session, Sizes, Step, StepList, Store, id, merge_base};
use crate::tree::State;

/// A session that began as another one is, or would.
#[derive(Debug, Serialize)]
pub struct Forked {
    /// The new session; `None` if nothing was done.
    pub session: Option<Id>,
    pub of: Id,
    pub step: u32,
    pub changes: u64,
    pub dry_run: bool,
}

/// Begins a session as the one that `key` means is at a step, or at its head. With `dry_run` it only tells.
///
/// # Errors
/// The name is invalid or taken; no session is meant, or its steps cannot be gone back to; the step does not exist, or holds nothing. Nothing
/// was made then.
pub fn fork(desk: &Desk, key: &str, step: Option<u32>, (name, dry_run): (Option<&str>, bool)) -> Result<Forked, Error> {
    if let Some(name) = name {
        id::check_name(name).map_err(|why| error::bad_name(name, why))?;
    }
    let (store, mut session, run) = pending(desk, key, Want::Fork)?;
    let list = session.steps()?;
    let step = step.unwrap_or(session.header.head());
    list.check(&session.header, step)?;
    let changes = list.net(&session, step)?;
    if changes.list.is_empty() {
        return Err(error::nothing_to_begin_with(session.id(), step));
    }
    let count = changes.list.len() as u64;
    let mut forked = Forked { session: None, of: session.id().clone(), step, changes: count, dry_run };
    if !dry_run {
        interrupt::check().map_err(error::asked_to_stop)?;
        let _noting = interrupt::note(OnSignal::GoesOn);
        go_on::open_again(desk, &mut session)?;
        forked.session = Some(made(desk, store, (&session, &list, &run), changes, (step, name))?);
    }
    Ok(forked)
}

/// Makes the session: it is named once all of it is durable.
fn made(
    desk: &Desk,
    store: &Store,
    (of, list, run): (&Locked, &StepList, &Run),
    mut changes: Changes,
    (step, name): (u32, Option<&str>),
) -> Result<Id, Error> {
    let (fs, chain) = (&desk.fs, list.chain(step));
    if let Some(name) = name {
        store.refuse_taken(name)?;
    }
    let arriving = store.expect_new(fs)?;
    let filled = (|| {
        fill(fs, of, run, chain.clone(), &arriving.dir.open_below(b"held")?)?;
        merge_base::copy(fs, of, &changes, &arriving.dir)?;
        for (change, n) in changes.list.iter_mut().zip(1..) {
            (change.n, change.step) = (n, None);
        }
        let lines = (changes.list.len() + changes.directory_times.len()) as u64;
        let mut header = Header::new(arriving.id().clone(), 0, Origin::Captured, crate::fs::now());
        header.name = name.map(Into::into);
        let begins = list.get(&of.header, step)?;
        header.command = Some(begins.command.called());
        header.unsynced = list.steps.iter().any(|step| step.unsynced && chain.contains(&step.n));
        header.lines = lines;
        header.counts = Counts { changes: changes.list.len() as u64, inside: 0, ever_in: 0 };
        header.sizes =
            Sizes { held: changes.list.iter().filter_map(|c| c.after.as_ref()).map(State::size).sum(), ..Sizes::default() };
        header.mounts = of.header.mounts.clone();
        let note = error::forked(of.id(), step);
        let Step { command, uid, beside, .. } = begins.clone();
        header.by = command.by.clone();
        let notes = [&run.notes[..], &[note]].concat();
        let run = Run { command, uid, beside, notes, ..run.clone() };
        let session = Session::new(arriving.dir.again()?, header);
        session.write_first(fs, &changes, lines, &run)?;
        Ok::<_, crate::error::Error>(session.header)
    })();
    let header = match filled {
        Ok(header) => header,
        Err(error) => {
            // The first error is the one that counts.
            drop(store.turn_away(fs, arriving));
            return Err(error);
        }
    };
    let (session, taken) = store.welcome(fs, arriving, header)?;
    if let Some(name) = taken {
        let id = session.id().clone();
        desk.caller.tell(Fact::Unnamed { id: &id, name: &name });
    }
    Ok(session.id().clone())
}
