//! `session export` and `session import`: a session as a stream, out of a store and into another.

use std::io::{Read, Write};

use serde::Serialize;

use super::desk::Desk;
use super::error;
use super::fact::Fact;
use super::resolve::guard;
use super::resolve::wanted_act::Want;
use super::signals;
use crate::engine::plan::conflict;
use crate::engine::{Conflict, SinceAct, Verb};
use crate::error::Error;
use crate::moving::{self, Arrived, Exported, Mapping, With};
use crate::session::{Id, Locked, Status, Store, log};

/// A session that came out of a stream. JSON: docs/json.md.
#[derive(Debug, Serialize)]
pub struct Imported {
    pub session: Id,
    pub changes: u64,
    /// True if it was not here before.
    pub new: bool,
    #[serde(skip)]
    pub status: Status,
    /// The conflicts in the way of its commit here, or of its rollback.
    #[serde(skip)]
    pub against: Option<Error>,
}

/// Writes a session to a stream.
///
/// # Errors
/// The tree does not hold what the run found there (a conflict); the session cannot be exported so; the stream cannot be written.
pub fn export(desk: &Desk, key: &str, with: With, to: &mut dyn Write) -> Result<(), Error> {
    let (store, session) = desk.locked(key, Want::Look)?;
    match moving::export(&session, with, to)? {
        Exported::Whole => Ok(()),
        Exported::Conflicts(mut conflicts) => {
            let since = SinceAct::of(&session.header, Verb::Commit);
            conflicts.iter_mut().for_each(|conflict| conflict.note_since(since));
            conflict::attribute(store, session.id(), &mut conflicts);
            Err(error::cannot_export(session.id(), &conflicts))
        }
    }
}

/// Makes a session of a stream in the store, and finds what would stop its commit here.
///
/// # Errors
/// It is no whole stream of a session; its session is committed, and an agent calls.
pub fn import(desk: &Desk, from: &mut dyn Read, mapping: &Mapping) -> Result<Imported, Error> {
    let variable = guard::limited(desk);
    let store = desk.made_store()?;
    desk.prepare_to_change(&store)?;
    let arrived = signals::finished(desk, || {
        let arrived = moving::import(&desk.fs, &store, from, mapping, variable.is_some())?;
        if let Arrived::New(locked, _) = &arrived {
            let header = &locked.header;
            let entry = log::Entry::new("session import", locked.id(), header.generation, "done", header.counts.changes);
            desk.note_in_log(&store, &entry.of(header));
        }
        desk.clear_away(&store);
        Ok(arrived)
    })?;
    match arrived {
        Arrived::Refused => Err(error::brings_committed(variable.unwrap_or_default())),
        Arrived::Before(id) => {
            let header = store.session(&id)?.header;
            let (changes, status) = (header.counts.changes, header.status());
            Ok(Imported { session: id, changes, new: false, status, against: None })
        }
        Arrived::New(locked, lost) => {
            if let Some(name) = lost {
                desk.caller.tell(Fact::CameUnnamed(&name));
            }
            mapping.in_vain().for_each(|from| desk.caller.tell(Fact::MappedInVain(from)));
            new(&store, &locked)
        }
    }
}

fn new(store: &Store, locked: &Locked) -> Result<Imported, Error> {
    let (id, header) = (locked.id(), &locked.header);
    let mut conflicts: Vec<Conflict> = moving::conflicts(locked)?;
    conflict::attribute(store, id, &mut conflicts);
    let (changes, status) = (header.counts.changes, header.status());
    let verb = if header.counts.inside > 0 { Verb::Rollback } else { Verb::Commit };
    let against = (!conflicts.is_empty()).then(|| error::cannot_go_in(verb, id, status, &conflicts));
    Ok(Imported { session: id.clone(), changes, new: true, status, against })
}
