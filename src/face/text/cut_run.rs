//! Words for a run of `run --in` whose recant was killed.

use super::list::shown;
use crate::capture::run::hold::start_of;
use crate::compare::shown::cut_off;
use crate::face::figures;
use crate::session::id::Id;
use crate::session::running::{self, Record};
use crate::session::store::Store;

/// Describes what recovery would do with a run that was cut off, for verbs that only read.
pub fn would(store: &Store, id: &Id) -> Option<String> {
    if !running::is_cut_off(store, id).is_ok_and(|cut_off| cut_off) {
        return None;
    }
    let what = what(store, id);
    Some(format!("{what} was cut off; the next verb that changes something makes a session of what it changed"))
}

/// Names a run for a sentence, also if its record cannot be read.
pub fn what(store: &Store, id: &Id) -> String {
    match running::read(store, id) {
        Ok(Some(record)) => named(&record),
        _ => format!("run {id} on the real tree"),
    }
}

fn named(record: &Record) -> String {
    let directories: Vec<String> = record.directories.iter().map(|of| of.directory.to_string()).collect();
    format!("the run of {} in {}", cut_off(&shown(&start_of(&record.words())), 60), figures::list(&directories))
}
