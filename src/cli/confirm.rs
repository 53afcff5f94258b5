//! `confirm`: a user lets a commit stay. Also the watcher of a commit, which ends with that or rolls the commit back.

use std::time::Duration;

use serde::Serialize;

use super::awaited::{local, note};
use super::overdue::{LATE, Taken, failed, note_or_say, take_back_one};
use super::problem::Problem;
use super::which::Want;
use super::{Call, Ended, args};
use crate::error::{Kind, recant};
use crate::session::confirm::{self, Record, Word};
use crate::session::id::Id;
use crate::session::log;
use crate::session::opened::Locked;
use crate::session::store::Store;

/// `{"schema":2,"session":…,"confirmed":true}`.
#[derive(Serialize)]
struct Confirmed<'a> {
    session: &'a Id,
    confirmed: bool,
}

/// Lets a commit stay, or watches over one.
pub fn confirm(call: &Call, args: &args::Confirm) -> Result<Ended, Problem> {
    if args.watch {
        return watch(call, &args.id);
    }
    let store = call.store_with(&args.id)?;
    let id = call.find(store, Some(&args.id), Want::Confirm)?;
    let (store, session) = call.locked(id.as_str(), Want::Confirm)?;
    match Word::of(store, &session.header) {
        Word::None => Err(nothing_waits(store, &id)?),
        // The deadline no longer matters.
        Word::Awaited(_) | Word::Unreadable(_) => stay(call, store, &session),
    }
}

/// Counts a commit as confirmed once the record's name is gone, even if that could not be made durable.
fn confirmed_all_the_same(store: &Store, id: &Id, mut problem: Problem) -> Problem {
    if matches!(confirm::read(store, id), Ok(None)) {
        problem.kind = Kind::LeftOut;
        problem.state = Some(format!("session {id} is confirmed, but a power cut may take that back"));
    }
    problem
}

fn stay(call: &Call, store: &Store, session: &Locked) -> Result<Ended, Problem> {
    let id = session.id();
    confirm::drop_record(&call.fs, store, id).map_err(|error| confirmed_all_the_same(store, id, error.into()))?;
    note_or_say(call, store, id, session.header.generation, "done", session.header.counts.inside);
    if call.out.is_text() {
        call.out.note(format_args!(
            "session {id} is confirmed: it stays; {recant} rollback {} takes it back",
            id.tail(),
            recant = recant()
        ));
    } else {
        call.out.document(&Confirmed { session: id, confirmed: true });
    }
    Ok(Ended::Done)
}

fn nothing_waits(store: &Store, id: &Id) -> Result<Problem, Problem> {
    let entries = log::read(store)?.entries;
    let last = entries.iter().rev().find(|entry| entry.session == *id && entry.verb == "confirm");
    Ok(match last.filter(|entry| entry.result == LATE) {
        Some(entry) => {
            let message = format!("session {id} was not confirmed in time");
            let mut problem =
                Problem::new(Kind::Refused, message).remedy(format!("{recant} redo {id} commits it again", recant = recant()));
            problem.state = Some(format!("it was rolled back at {}", local(entry.time)));
            problem
        }
        None => Problem::refused(format!("session {id} waits for no confirmation"))
            .remedy(format!("{recant} commit {id} --confirm-within 5m makes a commit that does", recant = recant())),
    })
}

/// Waits until a commit is confirmed, or rolls it back at the deadline.
fn watch(call: &Call, key: &str) -> Result<Ended, Problem> {
    let Some(id) = Id::parse(key) else { return Err(Problem::refused(format!("{key:?} is no session's id"))) };
    // The terminal of the commit may close.
    let _refused_to_a_leader = rustix::process::setsid();
    call.out.line("watching");
    call.out.flush();
    let store = call.store_with(key)?;
    let mut known: Option<Record> = None;
    let mut garbled = false;
    loop {
        match confirm::read(store, &id) {
            Ok(None) => return Ok(Ended::Done),
            Ok(record) => known = record,
            // An unreadable record is no confirmation, as a removed one would be. The record that was read before counts.
            Err(error) => {
                if !std::mem::replace(&mut garbled, true) {
                    // A log that cannot be written does not end the watch.
                    let _unnoted =
                        note(call, store, &id, known.as_ref().map_or(0, |record| record.generation), "record unreadable", 0);
                }
                if known.is_none() {
                    return Err(error.into());
                }
            }
        }
        let left = known.as_ref().map(Record::left).unwrap_or_default();
        let left = Duration::new(u64::try_from(left.s).unwrap_or(0), left.ns);
        if left.is_zero() {
            match take_back_one(call, store, &id, known.as_ref()) {
                // Another recant works in the session: try again.
                Ok(Taken::Busy) => std::thread::sleep(Duration::from_millis(200)),
                Err(problem) if problem.kind == Kind::Busy => {}
                Ok(Taken::Back | Taken::Not) => return Ok(Ended::Done),
                // Nobody reads the output of a watcher.
                Err(problem) => {
                    failed(call, store, &id, known.as_ref(), &problem.message);
                    return Err(problem);
                }
            }
        }
        // The confirmation may come meanwhile.
        std::thread::sleep(left.min(Duration::from_millis(500)));
    }
}
