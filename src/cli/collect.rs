//! Collects the changes of a run whose recant was killed into its session, when that is next named.

use super::problem::Problem;
use super::{Call, text};
use crate::capture::hold::collect_ended as collect_into;
use crate::error::Kind;
use crate::session::id::Id;
use crate::session::opened::Locked;
use crate::session::store::Store;

/// Collects the run of a session whose recant was killed, if nothing holds it any more, and says so.
pub fn collect_ended(call: &Call, store: &Store, id: &Id) -> Result<(), Problem> {
    let mut locked = store.lock_session(&call.fs, id).map_err(|error| match error {
        error if error.kind() == Kind::Busy => {
            let why = "a run of it is under way; what it changes is known when it has ended";
            crate::session::error::not_now(id, why)
        }
        error => error,
    })?;
    if locked.header.uncollected {
        collect(call, store, &mut locked)?;
    }
    Ok(())
}

/// Collects the run of a session whose lock is held.
pub fn collect(call: &Call, store: &Store, locked: &mut Locked) -> Result<(), Problem> {
    // A power cut took the note of a command that went on in the session: nothing tells any more where that wrote.
    let is_dropped = locked.is_going_on()? && locked.going_on()?.is_none();
    let changes = collect_into(&call.fs, store, locked)?;
    let id = locked.id();
    if is_dropped {
        call.out.warn(format_args!(
            "the machine went down while a command ran in session {id}: what that had changed is lost; the session stands at step {}",
            locked.header.head()
        ));
        return Ok(());
    }
    if locked.run()?.is_some_and(|run| run.is_lost()) {
        call.out.warn(format_args!("the run of session {id} was cut off; what it had changed lay in memory and is lost"));
        return Ok(());
    }
    if locked.header.unsynced && locked.run()?.is_none() {
        let held = locked.dir.path().join("held/upper");
        call.out.warn(format_args!(
            "the machine went down in the run of session {id}, and its record with it: what it had changed lies unread in {}",
            held.display()
        ));
        return Ok(());
    }
    call.out.note(format_args!(
        "the run of session {id} was cut off; what it had changed is collected: {}",
        text::count(changes, "change")
    ));
    Ok(())
}

/// The newest session with a change. A run that was cut off is collected first, else an older session would count as the newest. A running
/// first run counts once it ends; a further run works in a session that exists, which is meant.
pub fn newest(call: &Call, store: &Store) -> Result<Id, Problem> {
    let mut without = Vec::new();
    loop {
        let header = store.newest(&without)?;
        if !header.uncollected {
            return Ok(header.id);
        }
        let mut locked = match store.lock_session(&call.fs, &header.id) {
            // The verb has to say why it cannot act on this one; an older session would be the wrong one.
            Err(error) if error.kind() == Kind::Busy && header.counts.changes > 0 => return Ok(header.id),
            Err(error) if error.kind() == Kind::Busy => {
                call.out.note(format_args!("a run of session {} is under way: it is not meant by 'last' yet", header.id));
                without.push(header.id);
                continue;
            }
            locked => locked?,
        };
        collect(call, store, &mut locked)?;
        if locked.header.counts.changes == 0 {
            without.push(header.id);
        }
    }
}
