//! `confirm`: a commit stays. One that nobody confirmed in time is rolled back.

use serde::Serialize;

use super::act::deadline::remove_mark;
use super::act::unconfirmed::marked;
use super::desk::Desk;
use super::error;
use super::fact::Fact;
use super::resolve::wanted_act::Want;
use super::rollback::take_back;
use crate::error::{Error, Kind};
use crate::session::{Deadline, Header, Id, Locked, Store, log};
use crate::tree::time;

/// The log's result of a commit that nobody confirmed.
const LATE: &str = "not confirmed";

/// A commit that stays.
#[derive(Debug, Serialize)]
pub struct Confirmed {
    pub session: Id,
    confirmed: bool,
}

/// Lets a commit stay.
///
/// # Errors
/// The session waits for no confirmation, or it was rolled back as none came in time.
pub fn confirm(desk: &Desk, key: &str) -> Result<Confirmed, Error> {
    let (store, mut session) = desk.locked(key, Want::Confirm)?;
    if session.header.waits().is_none() {
        return Err(nothing_waits(store, session.id())?);
    }
    session.save_at_last(&desk.fs, Header { deadline: None, ..session.header.clone() }, &[], &[])?;
    unmark(desk, store, &session);
    note(desk, store, &session.header, "done", session.header.counts.inside);
    Ok(Confirmed { session: session.id().clone(), confirmed: true })
}

fn nothing_waits(store: &Store, id: &Id) -> Result<Error, Error> {
    let entries = log::read(store)?.entries;
    let last = entries.iter().rev().find(|entry| entry.session == *id && entry.verb == "confirm");
    Ok(match last.filter(|entry| entry.result == LATE) {
        Some(late) => error::confirmed_late(id, &time::local(late.time, true)),
        None => error::waits_for_none(id),
    })
}

/// Rolls all commits back that were not confirmed in time, before a verb that changes something.
///
/// # Errors
/// The store cannot be read; a signal came.
pub fn take_back_overdue(desk: &Desk) -> Result<(), Error> {
    let Some(store) = desk.store()? else { return Ok(()) };
    for id in marked(store)? {
        let session = match store.session(&id) {
            Ok(session) => session,
            // A part of which nothing came.
            Err(error) if error.is_unknown() => {
                remove_mark(desk, store, &id);
                continue;
            }
            // `status` names a session that is damaged.
            Err(_) => continue,
        };
        match session.header.waits().map(Deadline::is_over) {
            None => drop(store.lock_session(&desk.fs, &id).map(|session| unmark(desk, store, &session))),
            Some(false) => {}
            // The verb itself is about something else, and goes on.
            Some(true) => {
                if let Err(why) = settle(desk, store, &id) {
                    desk.caller.tell(Fact::NotSettled { id: &id, why: &why });
                }
            }
        }
        desk.stop_if_signalled(error::OVERDUE_SETTLED)?;
    }
    Ok(())
}

/// Removes the mark of a session, unless the recovery of a commit may still seal one that waits.
fn unmark(desk: &Desk, store: &Store, session: &Locked) {
    if session.header.waits().is_none() && store.journaled().is_ok_and(|ids| !ids.contains(session.id())) {
        remove_mark(desk, store, session.id());
    }
}

/// Rolls a commit back, if its time is over. False if another recant works in the session.
///
/// # Errors
/// The session cannot be read or changed.
pub fn settle(desk: &Desk, store: &Store, id: &Id) -> Result<bool, Error> {
    let mut session = match store.lock_session(&desk.fs, id) {
        Err(error) if error.kind() == Kind::Busy => return Ok(false),
        session => session?,
    };
    // The recovery of an operation that was cut off decides if it was committed at all.
    if !desk.prepare_to_change(store)?.is_empty() {
        session.set_header(store.session(id)?.header);
    }
    let Some(deadline) = session.header.waits().filter(|deadline| deadline.is_over()).cloned() else { return Ok(true) };
    let done = take_back(desk, store, &mut session);
    if done.as_ref().is_err_and(|error| error.kind() == Kind::Busy) {
        return Ok(false);
    }
    let taken_back = done.as_ref().map(|report| report.rows.len());
    desk.caller.tell(Fact::NotConfirmed { id, due: deadline.due, taken_back });
    let failed: Vec<String> = match &done {
        Ok(report) => {
            note(desk, store, &session.header, LATE, report.rows.len() as u64);
            report.left.iter().map(ToString::to_string).collect()
        }
        Err(error) if error.rows().is_empty() => vec![error.message().to_owned()],
        Err(error) => error.rows().iter().map(ToString::to_string).collect(),
    };
    // Nobody may read what this process prints.
    if session.header.waits().is_some() && failed != deadline.failed {
        note(desk, store, &session.header, "left", failed.len() as u64);
        let header = Header { deadline: Some(Deadline { failed, ..deadline }), ..session.header.clone() };
        session.save(&desk.fs, header)?;
    }
    unmark(desk, store, &session);
    Ok(true)
}

fn note(desk: &Desk, store: &Store, header: &Header, result: &str, paths: u64) {
    let entry = log::Entry::new("confirm", &header.id, header.generation, result, paths).of(header);
    desk.note_in_log(store, &entry);
}
