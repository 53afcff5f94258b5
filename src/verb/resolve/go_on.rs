//! The session that a command's changes go to: a new one, or a pending one in which the command goes on.

use std::time::{Duration, Instant};

use super::guard::refuse_in_a_persons;
use super::killed_run;
use super::scope::Scope;
use super::wanted_act::Want;
use crate::error::{Error, Kind, Reason};
use crate::fs::interrupt;
use crate::session::{Header, Id, Locked, Origin, Session, Status, Store, id};
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::error::{no_name, refusal};
use crate::verb::fact::Fact;

/// How a call names the session.
#[derive(Debug, Clone, Copy)]
pub enum Aim<'a> {
    /// A new session, with this name or none.
    New(Option<&'a str>),
    /// `--session`: a session that exists, or a new one with this name. Waits so long for a command that runs in it.
    Named(&'a str, Duration),
    /// A session whose run is about to end; waits so long for that.
    Ending(&'a str, Duration),
    /// A session that has to exist.
    There(&'a str),
}

/// The session of a run.
pub struct Begun {
    pub session: Locked,
    /// It was begun for this run, and is removed if the run leaves nothing in it.
    pub fresh: bool,
    /// A name that left it open whether the session is new: that it is has to be told, once it is known to stay.
    pub untold: Option<NewName>,
}

/// The name of a new session, and the newest that had it before, if its commit was undone and it cannot be gone on in.
pub struct NewName {
    name: String,
    former: Option<Id>,
}

impl NewName {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tells that the session is new.
    pub fn tell(self, desk: &Desk, id: &Id) {
        desk.caller.tell(Fact::New { id, name: &self.name, former: self.former.as_ref() });
    }
}

/// A session that a command goes to.
pub enum Aimed {
    Alone(Box<Begun>),
    /// A command runs in it already.
    Beside(Box<Session>),
}

/// Begins a session or takes up a pending one. Listings show `command` for a new one.
///
/// Errors: the session cannot be gone on in, with the reason; the name is invalid.
pub fn begin(desk: &Desk, store: &Store, aim: Aim<'_>, command: &str) -> Result<Aimed, Error> {
    match aim {
        Aim::New(name) => new(desk, store, name, command)
            .map(|begun| Aimed::Alone(Box::new(begun)))
            .map_err(|error| or_go_on(store, name, error)),
        Aim::There(key) => take_up(desk, store, &desk.find(store, Some(key), Want::GoOn)?, Wait::Joins(Duration::ZERO)),
        Aim::Named(key, wait) => named(desk, store, (key, Wait::Joins(wait)), command),
        Aim::Ending(key, wait) => named(desk, store, (key, Wait::Alone(wait)), command),
    }
}

/// How long what runs in a session is waited for.
#[derive(Clone, Copy)]
enum Wait {
    /// So long for commands; what still runs then, if it was not waited for, and services are joined.
    Joins(Duration),
    /// So long for all, and nothing is joined.
    Alone(Duration),
}

impl Wait {
    fn time(self) -> Duration {
        match self {
            Self::Joins(time) | Self::Alone(time) => time,
        }
    }

    /// True if what runs in a session now is joined.
    fn is_over(self, session: &Session) -> bool {
        let is_service = || session.under_way().is_ok_and(|all| !all.is_empty() && all.iter().all(|one| one.service().is_some()));
        matches!(self, Self::Joins(time) if time.is_zero() || is_service())
    }
}

fn new(desk: &Desk, store: &Store, name: Option<&str>, command: &str) -> Result<Begun, Error> {
    let session = store.begin(&desk.fs, Origin::Captured, name, Some(command.into()))?;
    Ok(Begun { session, fresh: true, untold: None })
}

/// Adds the way to go on in the session, if a run could: whoever chose a name that is taken may have meant that, or not known it.
fn or_go_on(store: &Store, name: Option<&str>, error: Error) -> Error {
    let by = match error.reason() {
        Some(Reason::Taken { by }) => Id::parse(by).and_then(|id| store.session(&id).ok()),
        _ => None,
    };
    match (name, by) {
        (Some(name), Some(session)) if refusal(&session.header, false).is_none() => error::or_go_on(error, name),
        _ => error,
    }
}

fn named(desk: &Desk, store: &Store, (key, wait): (&str, Wait), command: &str) -> Result<Aimed, Error> {
    if let Some(found) = find(desk, store, key)? {
        return take_up(desk, store, &found, wait);
    }
    match new(desk, store, Some(key), command) {
        Ok(begun) => {
            let untold = Some(NewName { name: key.to_owned(), former: rolled_back(store, key)? });
            Ok(Aimed::Alone(Box::new(Begun { untold, ..begun })))
        }
        // Another run with the same words has taken the name meanwhile.
        Err(error) if matches!(error.reason(), Some(Reason::Taken { .. })) => match find(desk, store, key)? {
            Some(found) => take_up(desk, store, &found, wait),
            None => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// The newest session that had a name before, if its commit was undone and it cannot be gone on in.
fn rolled_back(store: &Store, name: &str) -> Result<Option<Id>, Error> {
    let (headers, _) = store.headers()?;
    let mut named = headers.into_iter().rev().filter(|header| header.name.as_deref() == Some(name) && header.of.is_none());
    Ok(named.nth(1).filter(|header| header.status() == Status::RolledBack).map(|header| header.id))
}

/// The session that `key` means; `None` if a new one is to have that name. By its name no session of another project is meant, and none
/// that is committed, rolled back or discarded: a new one may take over its name.
///
/// Errors: `key` means no session, and is no valid name.
fn find(desk: &Desk, store: &Store, key: &str) -> Result<Option<Id>, Error> {
    if key == "last" {
        return Ok(Some(desk.find(store, Some(key), Want::GoOn)?));
    }
    let (headers, _) = store.headers()?;
    let is_id = |header: &&Header| header.id.as_str() == key || header.id.tail() == key;
    let keeps_name = |header: &&Header| {
        let opens = header.origin == Origin::Captured && header.may_reopen();
        matches!(header.status(), Status::Running | Status::Pending) || opens
    };
    let named = || headers.iter().rev().filter(|header| header.name.as_deref() == Some(key));
    if !headers.iter().any(|header| is_id(&header)) && named().next().is_some() {
        let scope = Scope::of(desk)?;
        // A session of an unknown directory may be of this project.
        let found = named().filter(keeps_name).find(|header| scope.tells(store, header) != Some(false));
        return Ok(found.map(|header| header.id.clone()));
    }
    match store.find(key, |header| Want::GoOn.fits(header)) {
        Ok(id) => Ok(Some(id)),
        Err(error) if error.is_unknown() || error.reason() == Some(&Reason::BadKey) => match id::check_name(key) {
            Ok(()) => Ok(None),
            Err(why) => Err(no_name(key, why)),
        },
        Err(error) => Err(error),
    }
}

/// Locks a session that exists, for a command that goes on in it. If one runs in it, and is not waited for, it may be joined.
fn take_up(desk: &Desk, store: &Store, id: &Id, wait: Wait) -> Result<Aimed, Error> {
    let mut session = match locked(desk, store, id, wait)? {
        Err(error) if error.kind() == Kind::Busy => match store.session(id) {
            Ok(session) if session.header.uncollected => {
                refuse_in_a_persons(desk, &session)?;
                return if wait.is_over(&session) {
                    Ok(Aimed::Beside(Box::new(session)))
                } else {
                    Err(error::is_running(&session))
                };
            }
            _ => return Err(error),
        },
        locked => locked?,
    };
    crate::engine::refuse_interrupted(store, id)?;
    if session.header.uncollected {
        killed_run::collect(desk, store, &mut session)?;
    }
    let in_memory = session.run()?.is_some_and(|run| run.in_memory);
    refuse(&session.header, in_memory, Want::GoOn)?;
    refuse_in_a_persons(desk, &session)?;
    open_again(desk, &mut session)?;
    Ok(Aimed::Alone(Box::new(Begun { session, fresh: false, untold: None })))
}

/// Opens a session again whose commit was undone, before its steps change.
///
/// # Errors
/// A system call failed.
pub fn open_again(desk: &Desk, session: &mut Locked) -> Result<(), Error> {
    if session.header.may_reopen() {
        session.reopen(&desk.fs)?;
        desk.caller.tell(Fact::OpenAgain(session.id()));
    }
    Ok(())
}

/// Refuses a session whose steps cannot be gone on from.
///
/// # Errors
/// It is such a session.
pub fn refuse(header: &Header, in_memory: bool, want: Want) -> Result<(), Error> {
    match refusal(header, in_memory) {
        Some((why, remedy)) => Err(error::cannot_go_on(header, want, why, remedy)),
        None => Ok(()),
    }
}

/// Locks a session; waits for a command that runs in it.
fn locked(desk: &Desk, store: &Store, id: &Id, wait: Wait) -> Result<Result<Locked, Error>, Error> {
    let start = Instant::now();
    let mut told = false;
    loop {
        let locked = store.lock_session(&desk.fs, id);
        let is_busy = locked.as_ref().is_err_and(|error| error.kind() == Kind::Busy);
        if !is_busy || start.elapsed() >= wait.time() || store.session(id).is_ok_and(|session| wait.is_over(&session)) {
            return Ok(locked);
        }
        if !std::mem::replace(&mut told, true) {
            desk.caller.tell(Fact::WaitsForCommand(id));
        }
        interrupt::check().map_err(error::asked_to_stop)?;
        std::thread::sleep(Duration::from_millis(20));
    }
}
