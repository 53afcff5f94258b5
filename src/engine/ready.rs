//! What comes before a verb changes anything: what crashes left is undone or settled, and the session that it works on is locked.

use super::error::interrupted;
use super::finish::how_to_go_on;
use super::job::Verb;
use super::recover::{self, Outcome, Recovered};
use super::report::Left;
use crate::error::{Error, Kind, Reason, recant};
use crate::fs::Fs;
use crate::fs::lock::Lock;
use crate::session::id::Id;
use crate::session::opened::Locked;
use crate::session::store::Store;

/// What a recovery of all did.
#[derive(Debug)]
pub struct Settled {
    /// What became of each interrupted operation, by the ids of their sessions.
    pub recovered: Vec<Recovered>,
    /// What nobody needs, and could not be removed: the next recovery tries again.
    pub unswept: Vec<crate::error::Error>,
}

/// Recovers all that was interrupted, and takes the names of what was half made. What stands against that is no reason to say nothing of the
/// rest. The caller holds the store's lock.
///
/// Errors: nothing was touched.
pub fn recover_all(fs: &Fs, store: &Store, _lock: &Lock) -> Result<Settled, Error> {
    let recovered = recover::all(fs, store)?;
    Ok(Settled { recovered, unswept: store.sweep(fs).err().into_iter().collect() })
}

/// Takes the store's lock, recovers all, and once the lock is let go removes what has lost its name. `slow` is called where another recant
/// holds the lock for longer than half a second; it is waited for at most 10 s.
///
/// Errors: as of [`recover_all`]; the lock cannot be had.
pub fn recover_alone(fs: &Fs, store: &Store, slow: impl FnOnce()) -> Result<Settled, Error> {
    let lock = store.lock(fs, slow)?;
    let settled = recover_all(fs, store, &lock);
    drop(lock);
    let unswept = store.sweep_removed(fs);
    let mut settled = settled?;
    settled.unswept.extend(unswept);
    Ok(settled)
}

/// The same where something was interrupted; `None` where nothing was, for which no lock is taken.
pub fn recover_any(fs: &Fs, store: &Store, slow: impl FnOnce()) -> Result<Option<Settled>, Error> {
    if recover::interrupted(store)?.is_empty() { Ok(None) } else { recover_alone(fs, store, slow).map(Some) }
}

/// Locks a session that is to be changed. `recover` recovers what was interrupted, and gives what that was; `collect` makes changes of
/// what a run left whose recant was killed.
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
        // A journal may tell what the header was: that comes before the advice to drop the session.
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
        // Recovery may have written it anew.
        locked.set_header(store.session(id)?.header);
    }
    if locked.header.uncollected {
        collect(&mut locked)?;
    }
    Ok(locked)
}

/// A session that still has a journal is not worked on: originals may lie where nothing but the journal tells.
pub fn refuse_interrupted(store: &Store, id: &Id) -> Result<(), Error> {
    let (kind, why, remedy) = match recover::finding(store, id) {
        Ok(None) => return Ok(()),
        Ok(Some(_)) => (Kind::Stuck, "an interrupted operation of it is not recovered".to_owned(), None),
        Err(error) => (error.kind(), error.to_string(), error.remedy().map(str::to_owned)),
    };
    let remedy = remedy.or_else(|| Some(format!("{recant} recover {id} tries again", recant = recant())));
    Err(interrupted(id, kind, why).with_remedy_if(remedy))
}

/// A verb that was meant for a session of which something is left goes no further: it may not be what is wanted any more.
pub fn refuse_left(recovered: &[Recovered], id: &Id) -> Result<(), Error> {
    let Some(one) = recovered.iter().find(|one| one.id == *id) else { return Ok(()) };
    let Outcome::Left(left) = &one.outcome else { return Ok(()) };
    let verb = one.verb.map_or("operation", Verb::word);
    Err(interrupted(id, Kind::LeftOut, format!("the interrupted {verb} could not be undone at {} of its paths", left.len()))
        .with_state("nothing else was changed; called again, the verb goes on")
        .with_remedy_if(way_on(one, left)))
}

/// The command that goes on with what a recovery has left.
pub fn way_on(one: &Recovered, left: &[Left]) -> Option<String> {
    Some(how_to_go_on(one.verb?.inward(), one.id.tail(), &left.first()?.path))
}
