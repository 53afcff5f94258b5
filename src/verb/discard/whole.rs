//! Sessions that are put aside, or freed.

use serde::Serialize;

use crate::checkpoint::manifest;
use crate::engine::recover_and_lock;
use crate::error::{Error, Kind};
use crate::fs::{OnSignal, Time, interrupt};
use crate::session::{FREED, Header, Id, Locked, Status, Store, TakesBack, log, prune_sessions};
use crate::tree::time;
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::fact::Fact;
use crate::verb::question::Question;
use crate::verb::resolve::find_session;
use crate::verb::resolve::guard;
use crate::verb::resolve::scope::Scope;
use crate::verb::resolve::services;
use crate::verb::resolve::wanted_act::Want;

/// The sessions that were discarded, or would be. JSON: docs/json.md.
#[derive(Debug, Serialize, Default)]
pub struct Sessions {
    pub(crate) discarded: Vec<Dropped>,
    pub(crate) skipped: Vec<Skipped>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) dry_run: bool,
    /// The error that stopped it after these.
    #[serde(skip)]
    pub(crate) stopped: Option<Error>,
}

#[derive(Debug, Serialize)]
pub struct Dropped {
    pub session: Id,
    #[serde(skip)]
    pub name: Option<String>,
    pub changes: u64,
    pub bytes: u64,
    /// The number of its steps, if it has more than one.
    #[serde(skip)]
    pub steps: u64,
    /// True for a run that was cut off, of which nobody knows yet what it changed.
    #[serde(skip)]
    pub uncollected: bool,
    /// The end of the time in which it can be brought back; missing where that cannot be.
    #[serde(with = "time::option", skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

impl Sessions {
    /// The error that stopped it after some of the sessions; these are discarded.
    pub fn stopped(&self) -> Option<&Error> {
        self.stopped.as_ref()
    }
}

impl Dropped {
    fn of(desk: &Desk, header: &Header, end: End) -> Self {
        let kept = |now: Time| Time { s: now.s.saturating_add(desk.config.discarded.value), ..now };
        let until = (end == End::Aside).then(|| kept(header.discarded.unwrap_or_else(crate::fs::now)));
        Self {
            session: header.id.clone(),
            name: header.name.clone(),
            changes: out_of(header),
            bytes: header.sizes.all(),
            steps: header.steps.as_ref().map_or(0, |steps| steps.last.into()),
            uncollected: header.uncollected,
            until,
        }
    }
}

/// The fate of a discarded session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It is put aside: `recant undo` brings it back, until it is pruned.
    Aside,
    /// It is freed at once.
    Now,
}

/// A session that stays as it is.
#[derive(Debug, Serialize)]
pub struct Skipped {
    pub session: Id,
    pub why: &'static str,
}

/// Discards sessions. All are found, locked and checked before the first one is discarded. `reason`: for the log.
///
/// # Errors
/// [`Kind::Refused`]: one is not found, or changes of it are on the tree; the answer is no. `Busy`: another works in it.
pub fn sessions(desk: &Desk, keys: &[String], end: End, dry_run: bool, reason: Option<&str>) -> Result<Sessions, Error> {
    let mut sessions: Vec<Locked> = Vec::new();
    let mut done = Sessions { dry_run, ..Sessions::default() };
    let mut store = None;
    for key in keys {
        let opened = desk.store_with(key)?;
        store = Some(opened);
        let id = desk.find(opened, Some(key), Want::Discard)?;
        // A session that is named twice counts once.
        if sessions.iter().any(|known| *known.id() == id) {
            continue;
        }
        let session = stopped(desk, opened, &id, dry_run)?;
        find_session::refuse_gone_on(key, &session.header)?;
        sessions.push(session);
    }
    let Some(store) = store else { return Ok(done) };
    let stays = |session: &Locked| session.header.discarded.is_some() && (end == End::Aside || session.header.freed);
    let (gone, mut sessions): (Vec<Locked>, Vec<Locked>) = sessions.into_iter().partition(stays);
    done.skipped.extend(gone.iter().map(|session| Skipped { session: session.id().clone(), why: ALREADY }));
    for session in sessions.iter().filter(|session| session.header.discarded.is_none()) {
        prune_sessions::refuse_discard(&session.header)?;
    }
    if dry_run {
        done.discarded = sessions.iter().map(|session| Dropped::of(desk, &session.header, end)).collect();
        return Ok(done);
    }
    if end == End::Now {
        ask(desk, &sessions)?;
    }
    sessions.iter_mut().for_each(|session| session.for_reason(reason));
    finish(desk, store, done, |done| sessions.iter_mut().try_for_each(|session| drop_held(desk, store, session, end, done)))
}

/// Locks a session to discard it; stops the services that run in it.
fn stopped(desk: &Desk, store: &Store, id: &Id, dry_run: bool) -> Result<Locked, Error> {
    match locked(desk, store, id) {
        Err(busy) if busy.kind() == Kind::Busy && !dry_run => {
            let session = store.session(id)?;
            guard::refuse_waiting(&session.header, "discard")?;
            guard::refuse_a_persons(desk, &session)?;
            services::stop_all(desk, store, id, busy)?;
            locked(desk, store, id)
        }
        locked => locked,
    }
}

/// Locks a session to discard it as it lies: nothing of a run that was cut off is collected for that.
fn locked(desk: &Desk, store: &Store, id: &Id) -> Result<Locked, Error> {
    let session = recover_and_lock::lock(&desk.fs, store, id, |_| Ok(()), || desk.prepare_to_change(store))?;
    guard::refuse_waiting(&session.header, "discard")?;
    guard::refuse_a_persons(desk, &session)?;
    Ok(session)
}

/// Discards a session again whose discard was undone, as the act that takes that back.
///
/// # Errors
/// It cannot be discarded.
pub fn again(desk: &Desk, store: &Store, id: &Id, takes_back: TakesBack, dry_run: bool) -> Result<Sessions, Error> {
    let mut session = locked(desk, store, id)?;
    session.takes_back(takes_back);
    let mut done = Sessions { dry_run, ..Sessions::default() };
    if dry_run {
        done.discarded.push(Dropped::of(desk, &session.header, End::Aside));
        return Ok(done);
    }
    finish(desk, store, done, |done| drop_held(desk, store, &mut session, End::Aside, done))
}

/// The reason why a session that is discarded stays as it is: all that was asked for is so.
pub const ALREADY: &str = error::IS_DISCARDED;

/// Asks once about all that is freed; not if none of them holds anything, nor has a step.
fn ask(desk: &Desk, sessions: &[Locked]) -> Result<(), Error> {
    let held: u64 = sessions.iter().map(|session| out_of(&session.header)).sum();
    if held == 0 && sessions.iter().all(|session| session.header.steps.is_none() && !session.header.uncollected) {
        return Ok(());
    }
    let mut overwritten = false;
    for session in sessions {
        overwritten |= manifest::keeps_overwritten(&session.dir)?;
    }
    let ids: Vec<&Id> = sessions.iter().map(|session| session.id()).collect();
    desk.confirm(Question::Free { ids: &ids, held, overwritten })
}

/// The number of held changes of a session: those not on the tree.
fn out_of(header: &Header) -> u64 {
    header.counts.changes - header.counts.inside
}

/// Discards all that are pending in this project: shows them, then asks. Without a terminal `-y` is needed.
///
/// # Errors
/// The answer is no, or nobody can be asked; the store cannot be read.
pub fn all_pending(desk: &Desk) -> Result<Sessions, Error> {
    let Some(store) = desk.store()? else { return Ok(Sessions::default()) };
    let (headers, _) = store.headers()?;
    let scope = Scope::of(desk)?;
    let is_pending = |header: &Header| header.status() == Status::Pending && scope.has(store, header);
    let chosen: Vec<Header> = headers.into_iter().rev().filter(is_pending).collect();
    if !chosen.is_empty() {
        let held = chosen.iter().map(out_of).sum();
        if !desk.yes && !desk.can_ask {
            return Err(error::drops_unasked(chosen.len(), held, desk.is_far()));
        }
        desk.confirm(Question::DiscardAll { sessions: &chosen, held, everywhere: desk.is_far() })?;
    }
    finish(desk, store, Sessions::default(), |done| chosen.iter().try_for_each(|header| drop_shown(desk, store, header, done)))
}

/// Puts a session aside, if it is as it was shown.
fn drop_shown(desk: &Desk, store: &Store, header: &Header, done: &mut Sessions) -> Result<(), Error> {
    let skip = |why| Skipped { session: header.id.clone(), why };
    let mut session = match locked(desk, store, &header.id) {
        Ok(session) => session,
        Err(error) if error.kind() == Kind::Busy => {
            done.skipped.push(skip(error::IS_HELD));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    if session.header.changed != header.changed || session.header.counts != header.counts {
        done.skipped.push(skip(error::IS_CHANGED));
        return Ok(());
    }
    drop_held(desk, store, &mut session, End::Aside, done)
}

fn drop_held(desk: &Desk, store: &Store, session: &mut Locked, end: End, done: &mut Sessions) -> Result<(), Error> {
    interrupt::check().map_err(|asked| Error::refused(asked.to_string()))?;
    let before = session.header.clone();
    let _noting = interrupt::note(OnSignal::GoesOn);
    let discarded = match end {
        End::Aside => session.put_aside(&desk.fs),
        End::Now => prune_sessions::free(&desk.fs, session),
    };
    if is_done(&discarded) {
        let verb = if end == End::Now { FREED } else { "discard" };
        let entry = log::Entry::new(verb, session.id(), before.generation, "done", before.counts.changes);
        desk.note_in_log(store, &entry.of_act(&session.header));
    }
    // If only a part could be removed, the error says that it is discarded.
    if discarded.is_ok() {
        done.discarded.push(Dropped::of(desk, &before, end));
    }
    discarded
}

/// Discards, and frees what was discarded long ago. A signal stops it between two sessions.
fn finish(
    desk: &Desk,
    store: &Store,
    mut done: Sessions,
    act: impl FnOnce(&mut Sessions) -> Result<(), Error>,
) -> Result<Sessions, Error> {
    let noting = interrupt::note(OnSignal::Stops);
    let acted = act(&mut done);
    drop(noting);
    free_overdue(desk, store);
    match acted {
        Err(error) if done.discarded.is_empty() && done.skipped.is_empty() => Err(error),
        acted => Ok(Sessions { stopped: acted.err(), ..done }),
    }
}

/// Frees what was discarded long ago. Nobody waits for that: an error is a warning.
pub fn free_overdue(desk: &Desk, store: &Store) {
    match store.free_overdue(&desk.fs, desk.config.discarded.value) {
        Ok(freed) if freed.is_empty() => {}
        Ok(freed) => {
            for id in &freed {
                desk.note_in_log(store, &log::Entry::new("prune --discarded", id, 0, "done", 0));
            }
            desk.caller.tell(Fact::Freed(&freed));
        }
        Err(error) => desk.caller.tell(Fact::NotFreed(&error)),
    }
}

/// Tells whether a session counts as given up, even if not all of it could be removed.
pub fn is_done(given_up: &Result<(), Error>) -> bool {
    given_up.as_ref().err().is_none_or(|error| error.kind() == Kind::LeftOut)
}
