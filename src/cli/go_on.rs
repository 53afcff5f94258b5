//! The session that a command's changes go to: a new one, or a pending one in which the command goes on.

use std::time::{Duration, Instant};

use super::call::Call;
use crate::error::{Error, Kind, Reason, command};
use crate::fs::interrupt;
use crate::session::header::{Header, Origin, Status};
use crate::session::id::{self, Id};
use crate::session::opened::Locked;
use crate::session::store::Store;
use crate::verb::collect;
use crate::verb::scope::Scope;
use crate::verb::want::Want;

/// How a call names the session.
#[derive(Debug, Clone, Copy)]
pub enum Aim<'a> {
    /// A new session, with this name or none.
    New(Option<&'a str>),
    /// `--session`: a session that exists, or a new one with this name. Waits so long for a command that runs in it.
    Named(&'a str, Duration),
    /// A session that has to exist.
    There(&'a str),
}

/// The session of a run.
pub struct Begun {
    pub session: Locked,
    /// It was begun for this run, and is removed if the run leaves nothing in it.
    pub fresh: bool,
    /// The user who began it was told of pending sessions here, which its commands do not see.
    pub told: bool,
}

/// Begins a session or takes up a pending one. Listings show `command` for a new one. Says that a session is new if the name left it open.
///
/// Errors: the session cannot be gone on in, with the reason; the name is invalid.
pub fn begin(call: &Call, store: &Store, aim: Aim<'_>, command: &str) -> Result<Begun, Error> {
    match aim {
        Aim::New(name) => new(call, store, name, command).map_err(|error| or_go_on(store, name, error)),
        Aim::There(key) => take_up(call, store, &call.find(store, Some(key), Want::GoOn)?, Duration::ZERO),
        Aim::Named(key, wait) => named(call, store, (key, wait), command),
    }
}

fn new(call: &Call, store: &Store, name: Option<&str>, command: &str) -> Result<Begun, Error> {
    let session = store.begin(&call.fs, Origin::Captured, name, Some(command.into()))?;
    Ok(Begun { session, fresh: true, told: false })
}

/// Adds the way to go on in the session, if a run could: whoever chose a name that is taken may have meant that, or not known it.
fn or_go_on(store: &Store, name: Option<&str>, error: Error) -> Error {
    let by = match error.reason() {
        Some(Reason::Taken { by }) => Id::parse(by).and_then(|id| store.session(&id).ok()),
        _ => None,
    };
    let problem = error;
    match (name, by) {
        (Some(name), Some(session)) if refusal(&session.header, false).is_none() => {
            let goes_on = command(format_args!("run --session {name} -- COMMAND"));
            problem.with_remedy(format!("{goes_on} goes on in it; or take another name"))
        }
        _ => problem,
    }
}

fn named(call: &Call, store: &Store, (key, wait): (&str, Duration), command: &str) -> Result<Begun, Error> {
    if let Some(found) = find(call, store, key)? {
        return take_up(call, store, &found, wait);
    }
    match new(call, store, Some(key), command) {
        Ok(begun) => {
            let former = rolled_back(store, key)?
                .map(|former| format!("; {} of that name is rolled back, and not all of it is there", former.tail()));
            call.out.note(format_args!("new session {}, named {key}{}", begun.session.id().tail(), former.unwrap_or_default()));
            Ok(begun)
        }
        // Another run with the same words has taken the name meanwhile.
        Err(error) if matches!(error.reason(), Some(Reason::Taken { .. })) => match find(call, store, key)? {
            Some(found) => take_up(call, store, &found, wait),
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
fn find(call: &Call, store: &Store, key: &str) -> Result<Option<Id>, Error> {
    if key == "last" {
        return Ok(Some(call.find(store, Some(key), Want::GoOn)?));
    }
    let (headers, _) = store.headers()?;
    let is_id = |header: &&Header| header.id.as_str() == key || header.id.tail() == key;
    let keeps_name = |header: &&Header| {
        let opens = header.origin == Origin::Captured && header.may_reopen();
        matches!(header.status(), Status::Running | Status::Pending) || opens
    };
    let named = || headers.iter().rev().filter(|header| header.name.as_deref() == Some(key));
    if !headers.iter().any(|header| is_id(&header)) && named().next().is_some() {
        let scope = Scope::of(call)?;
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

fn no_name(key: &str, why: &str) -> Error {
    let message = format!("no session {key:?}, and a new one cannot have that name: {why}");
    let rule = "a name begins with a letter; letters, digits, '.', '_' and '-' follow, 64 at most";
    Error::usage(message).with_remedy(rule)
}

/// Locks a session that exists, for a command that goes on in it.
fn take_up(call: &Call, store: &Store, id: &Id, wait: Duration) -> Result<Begun, Error> {
    let mut session = locked(call, store, id, wait)?.map_err(|error| match error {
        error if error.kind() == Kind::Busy && store.session(id).is_ok_and(|session| session.header.uncollected) => {
            is_running(id)
        }
        error => error,
    })?;
    crate::engine::ready::refuse_interrupted(store, id)?;
    if session.header.uncollected {
        collect::collect(call, store, &mut session)?;
    }
    let in_memory = session.run()?.is_some_and(|run| run.in_memory);
    refuse(&session.header, in_memory, Want::GoOn)?;
    crate::verb::guard::refuse_in_a_persons(call, &session)?;
    open_again(call, &mut session)?;
    Ok(Begun { session, fresh: false, told: false })
}

/// Opens a session again whose commit was undone, before its steps change.
///
/// # Errors
/// A system call failed.
pub fn open_again(call: &Call, session: &mut Locked) -> Result<(), Error> {
    if session.header.may_reopen() {
        session.reopen(&call.fs)?;
        call.out.note(format_args!("session {} is open again: its commit was undone", session.id().tail()));
    }
    Ok(())
}

/// Refuses a session whose steps cannot be gone on from.
pub fn refuse(header: &Header, in_memory: bool, want: Want) -> Result<(), Error> {
    let Some((why, remedy)) = refusal(header, in_memory) else { return Ok(()) };
    let (act, id) = (
        match want {
            Want::Rewind => "rewind",
            Want::Fork => "fork",
            _ => "go on in",
        },
        &header.id,
    );
    let problem = Error::refused(format!("cannot {act} session {id}: {why}"));
    // Another session is no remedy for one that is to be rewound.
    let shows = || format!("{} still shows what a step changed", command(format_args!("diff {} --step N", id.tail())));
    let has_steps = matches!(header.status(), Status::Committed | Status::RolledBack);
    Err(match want {
        Want::GoOn => problem.with_remedy(remedy),
        _ if has_steps && header.origin == Origin::Captured => problem.with_remedy(shows()),
        _ => problem,
    })
}

/// Locks a session; waits so long for a command that runs in it.
fn locked(call: &Call, store: &Store, id: &Id, wait: Duration) -> Result<Result<Locked, Error>, Error> {
    let start = Instant::now();
    let mut told = false;
    loop {
        let locked = store.lock_session(&call.fs, id);
        let is_busy = locked.as_ref().is_err_and(|error| error.kind() == Kind::Busy);
        if !is_busy || start.elapsed() >= wait {
            return Ok(locked);
        }
        if !std::mem::replace(&mut told, true) {
            call.out.note(format_args!("waiting for the command that runs in session {}", id.tail()));
        }
        interrupt::check().map_err(|asked| Error::refused(asked.to_string()))?;
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn is_running(id: &Id) -> Error {
    let message = format!("cannot go on in session {id}: a command is running in it");
    Error::new(Kind::Busy, message).with_remedy("let that end first (--wait TIME waits for it), or name another session")
}

/// The reason why no command can go on in a session, and what to do instead.
fn refusal(header: &Header, in_memory: bool) -> Option<(&'static str, String)> {
    let tail = header.id.tail();
    let another = || "name another session: --session NAME begins it".to_owned();
    let first = || format!("{} makes it real first; or {}", command(format_args!("commit {tail}")), another());
    match header.status() {
        Status::RolledBack if header.origin == Origin::Captured && header.may_reopen() && !in_memory => None,
        Status::Pending if header.imported.is_some() => Some(("it was imported", first())),
        Status::Pending if header.origin == Origin::Staged => Some(("it was staged by hand", first())),
        Status::Pending if in_memory => Some(("its run lay in memory, as the store's file system can hold none", first())),
        Status::Pending => None,
        Status::Committed => Some(("it is committed", another())),
        Status::RolledBack => Some(("it is rolled back", another())),
        Status::Discarded => {
            let (why, remedy) = header.why_discarded();
            Some((why, remedy.map_or_else(another, |remedy| format!("{remedy}; {}", another()))))
        }
        Status::Running => Some(("a command is running in it", another())),
    }
}
