//! Collects the changes of a run whose recant was killed into its session, when that is next named.

use crate::capture::collect_killed as collect_into;
use crate::error::{Error, Kind};
use crate::session::{Id, Locked, Store};
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::fact::{Collected, Fact, Lost};

/// Collects the run of a session whose recant was killed, if nothing holds it any more, and says so.
pub fn collect_ended(desk: &Desk, store: &Store, id: &Id) -> Result<(), Error> {
    let mut locked = store.lock_session(&desk.fs, id).map_err(|error| match error {
        error if error.kind() == Kind::Busy => error::runs(id),
        error => error,
    })?;
    if locked.header.uncollected {
        collect(desk, store, &mut locked)?;
    }
    Ok(())
}

/// Collects the run of a session whose lock is held, and says so.
pub fn collect(desk: &Desk, store: &Store, locked: &mut Locked) -> Result<(), Error> {
    let collected = take_in(desk, store, locked)?;
    desk.caller.tell(Fact::Collected(&collected));
    if let Some(all) = &mut *desk.collected.borrow_mut() {
        all.push(collected);
    }
    Ok(())
}

/// Collects the run of a session whose lock is held, and says nothing.
fn take_in(desk: &Desk, store: &Store, locked: &mut Locked) -> Result<Collected, Error> {
    // A power cut took the note of a command that went on in the session: nothing tells any more where that wrote.
    let is_dropped = locked.is_going_on()? && locked.going_on()?.is_none();
    let changes = collect_into(&desk.fs, store, locked)?;
    let id = locked.id();
    let lost = if is_dropped {
        Some(Lost::Command { head: locked.header.head() })
    } else if locked.run()?.is_some_and(|run| run.is_lost()) {
        Some(Lost::Memory)
    } else if locked.header.unsynced && locked.run()?.is_none() {
        Some(Lost::Record(locked.dir.path().join("held/upper")))
    } else {
        None
    };
    Ok(Collected { id: id.clone(), changes, lost })
}

/// The session of a run that was cut off, and what became of that.
pub type TakenIn = (Id, Result<Collected, Error>);

/// Collects all runs whose recant was killed, without a word.
pub fn take_in_all(desk: &Desk, store: &Store) -> Result<Vec<TakenIn>, Error> {
    let (headers, _) = store.headers()?;
    let cut_off = headers.iter().filter(|header| header.uncollected && header.discarded.is_none());
    Ok(cut_off.filter_map(|header| take_in_one(desk, store, &header.id)).collect())
}

/// Collects the run of one session as [`take_in_all`] does; `None` if none of it was cut off.
pub fn take_in_one(desk: &Desk, store: &Store, id: &Id) -> Option<TakenIn> {
    let collected = match store.lock_session(&desk.fs, id) {
        Ok(mut locked) if locked.header.uncollected => take_in(desk, store, &mut locked),
        Ok(_) => return None,
        // It is under way.
        Err(error) if error.kind() == Kind::Busy => return None,
        Err(error) => Err(error),
    };
    Some((id.clone(), collected))
}

/// Refuses to commit what this very commit has collected: nobody has seen it, and a command that was cut off may have done half its work.
/// A restart that cut it off is asked about by itself.
pub fn refuse_unseen(desk: &Desk, session: &Locked) -> Result<(), Error> {
    let (id, counts) = (session.id(), session.header.counts);
    let is_new = desk.collected.borrow().as_ref().is_some_and(|all| all.iter().any(|collected| collected.id == *id));
    if !is_new || session.header.unsynced || counts.changes == 0 {
        return Ok(());
    }
    Err(error::just_collected(id))
}
