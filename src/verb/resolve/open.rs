//! The sessions that a call opens: to look at, to change, and after what a crash left is settled.

use super::find_session;
use super::guard;
use super::killed_run;
use super::services;
use super::wanted_act::Want;
use crate::engine::recover::recovery;
use crate::engine::{Recovered, Settled, recover_and_lock};
use crate::error::{Error, Kind, Reason};
use crate::fs::Lock;
use crate::session::{Header, Id, Locked, Session, Store};
use crate::verb::desk::Desk;
use crate::verb::error::{COMMIT_MORE, RECOVERED, at_work};
use crate::verb::fact::Fact;

impl Desk {
    /// The id of the session that `key` means to a verb; without a key, of `last`. Says which session `last` is.
    pub(crate) fn find(&self, store: &Store, key: Option<&str>, want: Want) -> Result<Id, Error> {
        find_session::find(self, store, key.unwrap_or("last"), want)
    }

    pub(crate) fn session(&self, key: Option<&str>) -> Result<(&Store, Session), Error> {
        let store = self.store_with(key.unwrap_or("last"))?;
        let id = self.find(store, key, Want::Look)?;
        let mut session = store.session(&id)?;
        if session.header.uncollected {
            killed_run::collect_ended(self, store, &id)?;
            session = store.session(&id)?;
        }
        Ok((store, session))
    }

    /// Opens a session to look at. If a command runs in it, with what that has changed so far.
    pub(crate) fn looked_at(&self, key: Option<&str>) -> Result<(&Store, Session), Error> {
        let store = self.store_with(key.unwrap_or("last"))?;
        let id = self.find(store, key, Want::Look)?;
        let Some((session, warnings)) = self.so_far(store, &id)? else { return self.session(Some(id.as_str())) };
        self.say_running(&session);
        warnings.iter().for_each(|warning| self.caller.tell(Fact::Warning(warning)));
        Ok((store, session))
    }

    /// Says that what is shown is not all that a command changes; not to that command.
    pub(crate) fn say_running(&self, session: &Session) {
        if !self.is_in_run() {
            self.caller.tell(Fact::Running(session.id()));
        }
    }

    /// A session as the command that runs in it has it so far, with warnings; `None` if none runs in it.
    pub(crate) fn so_far(&self, store: &Store, id: &Id) -> Result<Option<(Session, Vec<String>)>, Error> {
        let session = store.session(id)?;
        if !session.header.uncollected || !session.is_held()? {
            return Ok(None);
        }
        Ok(Some(crate::capture::changes_so_far(&self.fs, store, session)?))
    }

    /// A session as [`Self::so_far`] has it, for a list of many: it warns of an error, and the session stays as it was before its command.
    pub(crate) fn listed_so_far(&self, store: &Store, header: &Header) -> Option<Session> {
        if !header.uncollected || header.discarded.is_some() {
            return None;
        }
        let so_far = self.so_far(store, &header.id).unwrap_or_else(|problem| {
            self.caller.tell(Fact::NotCounted { id: &header.id, why: &problem });
            None
        });
        so_far.map(|(session, _)| session)
    }

    /// Opens a session to change, and locks it; what crashes left is settled first (I27).
    pub(crate) fn locked(&self, key: &str, want: Want) -> Result<(&Store, Locked), Error> {
        let store = self.store_with(key)?;
        let id = self.find(store, Some(key), want)?;
        let locked = match self.recover_and_lock(store, &id) {
            Err(busy) if busy.kind() == Kind::Busy => {
                // What stands against the act stops nothing.
                self.refuse(key, &store.session(&id)?, want)?;
                services::stop_all(self, store, &id, busy)?;
                self.recover_and_lock(store, &id)?
            }
            locked => locked?,
        };
        self.refuse(key, &locked, want)?;
        if want == Want::Commit {
            killed_run::refuse_unseen(self, &locked)?;
        }
        Ok((store, locked))
    }

    fn recover_and_lock(&self, store: &Store, id: &Id) -> Result<Locked, Error> {
        let collect = |locked: &mut Locked| killed_run::collect(self, store, locked);
        let recover = || {
            let mut recovered = self.recovered.take();
            recovered.extend(self.prepare_to_change(store)?);
            Ok::<_, Error>(recovered)
        };
        recover_and_lock::lock(&self.fs, store, id, collect, recover)
    }

    /// Refuses an act on a session that it does not fit, or that is not the caller's to decide.
    fn refuse(&self, key: &str, session: &Session, want: Want) -> Result<(), Error> {
        find_session::refuse_gone_on(key, &session.header)?;
        match want {
            Want::Commit | Want::Redo if session.header.is_in_part() => guard::refuse_waiting(&session.header, COMMIT_MORE),
            Want::Discard => {
                guard::refuse_waiting(&session.header, "discard")?;
                guard::refuse_a_persons(self, session)
            }
            Want::Stage | Want::Rewind | Want::Tend => guard::refuse_in_a_persons(self, session),
            _ => Ok(()),
        }
    }

    /// Opens a session for a dry run. Takes its lock, so that nothing half done is reported, but recovers nothing.
    pub(crate) fn to_look_at(&self, key: &str, want: Want) -> Result<(&Store, Locked), Error> {
        let store = self.store_with(key)?;
        let id = find_session::find_to_look(self, store, key, want)?;
        // A recant at work holds the lock: its journal does not mean an interruption.
        let locked = store.lock_session(&self.fs, &id);
        if !matches!(&locked, Err(error) if error.kind() == Kind::Busy) {
            self.say_interrupted(store, &id);
        }
        let mut locked = locked?;
        if locked.header.uncollected {
            killed_run::collect(self, store, &mut locked)?;
        }
        recover_and_lock::refuse_interrupted(store, &id)?;
        Ok((store, locked))
    }

    /// Tells that an operation on a session was interrupted, for a verb that recovers nothing.
    fn say_interrupted(&self, store: &Store, id: &Id) {
        match recovery::finding(store, id) {
            Ok(None) => {}
            Ok(Some(found)) => self.caller.tell(Fact::Interrupted { id, found: Ok(found) }),
            Err(error) => self.caller.tell(Fact::Interrupted { id, found: Err(&error) }),
        }
    }

    /// Judges what a reader of a session found. If another recant was at work meanwhile, an error is no damage: to a reader, an object on
    /// its way lies at neither of its two places.
    pub(crate) fn believed<T>(&self, store: &Store, session: &Session, found: Result<T, Error>) -> Result<T, Error> {
        // What a person wrote meanwhile is no reading.
        let is_read = !matches!(&found, Err(error) if error.reason() == Some(&Reason::Kept));
        if session.is_so_far() || !is_read {
            return found;
        }
        if !store.is_at_work(session) {
            if found.is_err() {
                // What an interrupted operation left half done is no damage.
                recover_and_lock::refuse_interrupted(store, session.id())?;
            }
            return found;
        }
        if found.is_err() {
            return Err(at_work(session.id()));
        }
        self.caller.tell(Fact::Mixed(session.id()));
        found
    }

    /// Undoes or settles what crashes left, before anything is changed. Reports each in a line, and returns them.
    pub(crate) fn prepare_to_change(&self, store: &Store) -> Result<Vec<Recovered>, Error> {
        match recover_and_lock::recover_any(&self.fs, store, || self.say_waiting(store))? {
            None => Ok(Vec::new()),
            Some(settled) => self.say_settled(settled),
        }
    }

    /// Undoes or settles what crashes left, like [`Self::prepare_to_change`]; the caller holds the store's lock.
    pub(crate) fn recover_under(&self, store: &Store, lock: &Lock) -> Result<Vec<Recovered>, Error> {
        self.say_settled(recover_and_lock::recover_all(&self.fs, store, lock)?)
    }

    pub(crate) fn say_settled(&self, settled: Settled) -> Result<Vec<Recovered>, Error> {
        self.say_unswept(settled.unswept);
        for recovered in &settled.recovered {
            self.caller.tell(Fact::Recovered(recovered));
        }
        self.stop_if_signalled(RECOVERED)?;
        Ok(settled.recovered)
    }
}
