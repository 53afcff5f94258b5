//! `discard`: drop what a session holds.

use serde::Serialize;

use super::args;
use super::awaited;
use super::problem::Problem;
use super::{Call, Ended, text};
use crate::checkpoint::manifest;
use crate::fs::interrupt::{self, Asked};
use crate::session::Error;
use crate::session::header::Header;
use crate::session::id::Id;
use crate::session::log;
use crate::session::prune;
use crate::session::store::Store;

/// `{"schema":2,"session":…,"changes":n,"bytes":n}`.
#[derive(Serialize)]
struct Discarded<'a> {
    session: &'a Id,
    changes: u64,
    bytes: u64,
}

/// Drops what a session holds; its header stays as a record.
pub fn discard(call: &Call, args: &args::Discard) -> Result<Ended, Problem> {
    let (store, mut session) = call.locked(&args.id)?;
    let before = session.header.clone();
    if before.discarded.is_some() {
        if call.out.is_text() {
            call.out.note(format_args!("session {} is discarded already: nothing", before.id));
        } else {
            call.out.document(&Discarded { session: &before.id, changes: 0, bytes: 0 });
        }
        return Ok(Ended::Done);
    }
    awaited::refuse_discard(store, &before)?;
    prune::refuse_discard(&before)?;
    let held = before.counts.changes - before.counts.inside;
    let overwritten = if manifest::keeps_overwritten(&session.dir)? { ", with what --force overwrote" } else { "" };
    if held > 0 {
        let changes = text::count(held, "held change");
        call.confirm(&format!("Discard {changes} of session {}{overwritten}?", before.id))?;
    }
    let noting = interrupt::note(Asked::GoesOn);
    let discarded = prune::discard(&call.fs, &mut session);
    if is_done(&discarded) {
        call.out.changes.set(Some(held));
        note_in_log(call, store, "discard", &before);
    }
    drop(noting);
    discarded?;
    if call.out.is_text() {
        let changes = text::count(held, "change");
        call.out.note(format_args!("session {} is discarded: {changes}, {}", before.id, text::bytes(before.sizes.all())));
    } else {
        call.out.document(&Discarded { session: &before.id, changes: held, bytes: before.sizes.all() });
    }
    Ok(Ended::Done)
}

/// Whether what was given up is given up, all of it or not.
pub fn is_done(given_up: &Result<(), Error>) -> bool {
    matches!(given_up, Ok(()) | Err(Error::NotEmptied { .. }))
}

/// One line of the log, about a session that is as `header` has it.
pub fn note_in_log(call: &Call, store: &Store, verb: &str, header: &Header) {
    call.note_in_log(store, &log::Entry::new(verb, &header.id, header.generation, "done", header.counts.changes));
}
