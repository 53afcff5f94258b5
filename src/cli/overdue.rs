//! Rolls back commits that nobody confirmed in time: for the watcher of a commit, and for every verb that changes something.

use super::awaited::{self, local, note, settle, settle_or_say, unreadable};
use super::problem::Problem;
use super::{Call, apply};
use crate::error::{Kind, recant};
use crate::session::confirm::{self, Record};
use crate::session::id::Id;
use crate::session::store::Store;

/// The log's result of a commit that nobody confirmed.
pub const LATE: &str = "not confirmed";

/// The fate of an overdue commit.
pub enum Taken {
    /// It is rolled back, or waits for nothing.
    Back,
    /// Another recant is at work in it.
    Busy,
    /// It cannot be rolled back; the record says why.
    Not,
}

/// The store, if a commit ever waited in it. Costs one look if none did, which is the usual case.
fn store_with_records(call: &Call) -> Result<Option<Store>, Problem> {
    let path = call.store_path()?;
    if !path.as_path().join("unconfirmed").exists() {
        return Ok(None);
    }
    Ok(Store::open(&path)?)
}

/// Rolls back all commits that were not confirmed in time, before a verb that changes something. Reports each in a line.
pub fn take_back_overdue(call: &Call) -> Result<(), Problem> {
    let Some(store) = &store_with_records(call)? else { return Ok(()) };
    for id in confirm::waiting(store)? {
        let due = match confirm::read(store, &id) {
            Ok(record) => record.is_some_and(|record| record.is_due()),
            Err(error) => {
                say_unreadable(call, store, &id, &error.to_string())?;
                false
            }
        };
        if due && let Err(problem) = take_back_one(call, store, &id, None) {
            // The verb itself is about something else, and goes on.
            call.out.warn(format_args!("session {id} was not confirmed in time, and stays: {}", problem.message));
            failed(call, store, &id, None, &problem.message);
        }
        call.go_on("what was not confirmed in time is dealt with as said; nothing else was changed")?;
    }
    Ok(())
}

/// Warns of unreadable records, before a verb that only reads.
pub fn say_all_unreadable(call: &Call) -> Result<(), Problem> {
    let Some(store) = &store_with_records(call)? else { return Ok(()) };
    match awaited::waiting(store) {
        Ok((_, untold)) => untold.iter().for_each(|(id, why)| call.out.warn(unreadable(id, why))),
        // The verb itself is about something else, and goes on.
        Err(problem) => call.out.warn(format_args!("cannot list the commits that wait to be confirmed: {}", problem.message)),
    }
    Ok(())
}

/// Warns of an unreadable record. It is removed if nothing of its session is on the tree.
fn say_unreadable(call: &Call, store: &Store, id: &Id, why: &str) -> Result<(), Problem> {
    match store.lock_session(&call.fs, id) {
        Ok(session) if session.header.counts.inside == 0 => return settle(call, store, &session.header),
        Err(error) if error.is_unknown() => return Ok(confirm::drop_record(&call.fs, store, id)?),
        _ => call.out.warn(unreadable(id, why)),
    }
    Ok(())
}

/// Rolls a commit back, if its time is over. `known` is its record, if somebody has read it before: a record that became unreadable is no
/// confirmation.
pub fn take_back_one(call: &Call, store: &Store, id: &Id, known: Option<&Record>) -> Result<Taken, Problem> {
    let mut session = match store.lock_session(&call.fs, id) {
        Ok(session) => session,
        Err(error) if error.is_unknown() => {
            confirm::drop_record(&call.fs, store, id)?;
            return Ok(Taken::Back);
        }
        Err(error) if error.kind() == Kind::Busy => return Ok(Taken::Busy),
        Err(error) => return Err(error.into()),
    };
    // The recovery of an operation that was cut off decides if it was committed at all.
    if !call.prepare_to_change(store)?.is_empty() {
        session.set_header(store.session(id)?.header);
    }
    // Read again under the lock: the commit may have been confirmed.
    let record = match (confirm::read(store, id), known) {
        (Err(_), Some(known)) => Some(known.clone()),
        (record, _) => record?,
    };
    let Some(record) = record.filter(Record::is_due) else { return Ok(Taken::Back) };
    if !record.counts(&session.header) {
        settle(call, store, &session.header)?;
        return Ok(Taken::Back);
    }
    let due = local(record.due);
    let left = match apply::take_back(call, store, &mut session) {
        Ok(report) => {
            let taken = format!("session {id} was not confirmed by {due}: rolled back");
            note_or_say(call, store, id, session.header.generation, LATE, report.rows.len() as u64);
            if report.left.is_empty() {
                call.out.warn(format_args!("{taken}, {} taken back", report.rows.len()));
                settle_or_say(call, store, &session.header);
                return Ok(Taken::Back);
            }
            call.out.warn(format_args!(
                "{taken} except for {} left; {recant} status names them",
                report.left.len(),
                recant = recant()
            ));
            report.left.iter().map(|(path, why)| format!("{path}: {why}")).collect::<Vec<_>>()
        }
        Err(problem) if problem.kind == Kind::Busy => return Ok(Taken::Busy),
        Err(problem) => {
            let paths = problem.paths.iter().map(|against| format!("{}: {}", against.path, against.why));
            let left: Vec<String> = if problem.paths.is_empty() { vec![problem.message.clone()] } else { paths.collect() };
            call.out.warn(format_args!("session {id} was not confirmed by {due}, and stays: {}", problem.message));
            left
        }
    };
    if left != record.failed {
        note_or_say(call, store, id, session.header.generation, "left", left.len() as u64);
        confirm::keep(&call.fs, store, &Record { failed: left, ..record })?;
    }
    Ok(Taken::Not)
}

/// Logs what was done. An error is a warning: the work is done all the same.
pub fn note_or_say(call: &Call, store: &Store, id: &Id, generation: u64, result: &str, paths: u64) {
    if let Err(problem) = note(call, store, id, generation, result, paths) {
        call.out.warn(format_args!("session {id}: cannot record this in the log: {}", problem.message));
    }
}

/// Records why a rollback could not even be tried, in the record and the log: nobody may read what this process prints. Only warns if
/// that cannot be recorded.
pub fn failed(call: &Call, store: &Store, id: &Id, known: Option<&Record>, why: &str) {
    let record = match (confirm::read(store, id), known) {
        (Ok(Some(record)), _) => record,
        (Err(_), Some(known)) => known.clone(),
        _ => return,
    };
    let failed = vec![why.to_owned()];
    if record.failed == failed {
        return;
    }
    let noted = note(call, store, id, record.generation, "failed", 0);
    let kept = confirm::keep(&call.fs, store, &Record { failed, ..record }).map_err(Problem::from);
    if let Err(problem) = noted.and(kept) {
        call.out.warn(format_args!("session {id}: cannot record that the rollback failed: {}", problem.message));
    }
}
