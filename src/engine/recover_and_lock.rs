//! Prepares a verb that changes something: undoes or settles what crashes left, and locks the session.

use super::error::interrupted;
use super::job::Verb;
use super::recover::finish::how_to_go_on;
use super::recover::recovery;
use super::recover::recovery::{Outcome, Recovered};
use super::report::LeftPath;
use crate::error::{Error, Kind, Reason, command};
use crate::fs::{Fs, Lock};
use crate::remedy::Remedy;
use crate::session::{Id, Locked, Store};

/// The outcome of recovering all.
#[derive(Debug)]
pub struct Settled {
    /// The outcome of each interrupted operation, by session id.
    pub recovered: Vec<Recovered>,
    /// Errors about remains that nobody needs and that could not be removed: the next recovery tries again.
    pub unswept: Vec<crate::error::Error>,
}

/// Recovers all that was interrupted, and removes the names of what was half made. An error in that is returned beside the rest. The
/// caller holds the store's lock.
///
/// Errors: nothing was touched.
pub fn recover_all(fs: &Fs, store: &Store, _lock: &Lock) -> Result<Settled, Error> {
    let mut recovered = recovery::recover_all(fs, store)?;
    // I24: a part that was never sealed is swept, and one that was has left.
    recovered.extend(store.settle_partings(fs)?.into_iter().map(|(id, why)| Recovered {
        id,
        verb: None,
        outcome: Outcome::Failed(why),
        notes: Vec::new(),
        strays: Vec::new(),
    }));
    Ok(Settled { recovered, unswept: store.sweep(fs).err().into_iter().collect() })
}

/// Takes the store's lock and recovers all; without the lock then removes what has lost its name. Calls `slow` if another recant holds
/// the lock for longer than half a second; waits at most 10 s.
///
/// Errors: those of [`recover_all`]; the lock cannot be had.
pub fn recover_alone(fs: &Fs, store: &Store, slow: impl FnOnce()) -> Result<Settled, Error> {
    let lock = store.lock(fs, slow)?;
    let settled = recover_all(fs, store, &lock);
    drop(lock);
    let unswept = store.sweep_removed(fs);
    let mut settled = settled?;
    settled.unswept.extend(unswept);
    Ok(settled)
}

/// Recovers all if something was interrupted; `None`, and no lock is taken, if nothing was.
pub fn recover_any(fs: &Fs, store: &Store, slow: impl FnOnce()) -> Result<Option<Settled>, Error> {
    if recovery::interrupted(store)?.is_empty() && store.parting_ids()?.is_empty() {
        Ok(None)
    } else {
        recover_alone(fs, store, slow).map(Some)
    }
}

/// Locks a session that is to be changed. `recover` recovers what was interrupted, and returns it; `collect` makes changes of what is
/// left of a run whose recant was killed.
///
/// Errors: another recant holds it; it was interrupted, and could not be recovered, or not everywhere.
pub fn lock<E: From<Error>>(
    fs: &Fs,
    store: &Store,
    id: &Id,
    mut collect: impl FnMut(&mut Locked) -> Result<(), E>,
    recover: impl FnOnce() -> Result<Vec<Recovered>, E>,
) -> Result<Locked, E> {
    // The session's lock before the store's (docs/ARCHITECTURE.md, Locks): of two recants on one session the second ends at once.
    let mut locked = match store.lock_session(fs, id) {
        // A journal may have the header: that comes before the advice to drop the session.
        Err(error) if error.reason() == Some(&Reason::Garbled) => {
            refuse_interrupted(store, id)?;
            return Err(error.into());
        }
        locked => locked?,
    };
    if locked.header.uncollected {
        collect(&mut locked)?;
    }
    let recovered = recover()?;
    if !recovered.is_empty() {
        refuse_interrupted(store, id)?;
        refuse_left(&recovered, id)?;
        // Recovery may have rewritten it.
        locked.set_header(store.session(id)?.header);
    }
    locked.settle_parting(fs, store)?;
    if locked.header.uncollected {
        collect(&mut locked)?;
    }
    Ok(locked)
}

/// Refuses a session that still has a journal: only that may tell where originals lie.
pub fn refuse_interrupted(store: &Store, id: &Id) -> Result<(), Error> {
    let (kind, why, remedy) = match recovery::finding(store, id) {
        Ok(None) => return Ok(()),
        Ok(Some(_)) => (Kind::Stuck, "an interrupted operation of it is not recovered".to_owned(), None),
        Err(error) => (error.kind(), error.to_string(), error.advice().cloned()),
    };
    let remedy = remedy.unwrap_or_else(|| command(format_args!("recover {id}")) + " tries again");
    Err(interrupted(id, kind, why).with_remedy(remedy))
}

/// Refuses a verb on a session of which recovery has left something: it may no longer be what is wanted.
pub fn refuse_left(recovered: &[Recovered], id: &Id) -> Result<(), Error> {
    let Some(one) = recovered.iter().find(|one| one.id == *id) else { return Ok(()) };
    let Outcome::Left(left) = &one.outcome else { return Ok(()) };
    let verb = one.verb.map_or("operation", Verb::word);
    Err(interrupted(id, Kind::LeftOut, format!("the interrupted {verb} could not be undone at {} of its paths", left.len()))
        .with_state("nothing else was changed; called again, the verb goes on")
        .with_remedy_if(way_on(one, left)))
}

/// Returns the command that goes on with what a recovery has left.
pub fn way_on(one: &Recovered, left: &[LeftPath]) -> Option<Remedy> {
    Some(how_to_go_on(one.verb?.inward(), one.id.tail(), &left.first()?.path))
}
