//! Errors about sessions that move.

use super::sessions::refused;
use crate::engine::plan::conflict;
use crate::engine::{Conflict, Verb};
use crate::error::{Against, Error, Kind, command};
use crate::session::{Id, Status};
use crate::settings::grouped;

/// The error for an export of a session that the tree does not fit any more.
pub fn cannot_export(id: &Id, conflicts: &[Conflict]) -> Error {
    against("export", id, conflicts).with_state("nothing was exported: what the run found there is no longer known")
}

/// The error for a session that came here, and would conflict with the tree.
pub fn cannot_go_in(verb: Verb, id: &Id, status: Status, conflicts: &[Conflict]) -> Error {
    let (status, diff) = (status.word(), command(format_args!("diff {}", id.tail())));
    let state = format!("the session is imported, {status}, and the tree is as it was; {diff} shows it");
    against(verb.infinitive(), id, conflicts).with_state(state)
}

fn against(verb: &str, id: &Id, conflicts: &[Conflict]) -> Error {
    let rows: Vec<Against> = conflicts.iter().map(|conflict| Against::new(&conflict.path, conflict.why())).collect();
    let error = match &rows[..] {
        [one] => Error::new(Kind::Conflict, format!("cannot {verb} {id}: {}: {}", one.path, one.why)),
        many => Error::new(Kind::Conflict, format!("cannot {verb} {id}: {} conflicts", grouped(many.len() as u64))),
    };
    let error = match rows.first() {
        Some(first) => error.with_path(&first.path),
        None => error,
    };
    let rows = if rows.len() > 1 { rows } else { Vec::new() };
    error.with_rows(rows).with_remedy_if(conflict::remedy(conflicts))
}

/// The error for an agent that brings a session which is committed.
pub fn brings_committed(variable: &str) -> Error {
    let refused = refused(variable, command("session import < FILE"));
    let message = format!("the stream's session is committed: {}", refused.message());
    refused.with_message(message)
}
