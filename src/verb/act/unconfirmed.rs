//! Commits that wait to be confirmed.
//!
//! The deadline is in the session's header, sealed with the commit. An empty file `unconfirmed/<id>` in the store, made before the commit
//! begins, only saves reading all headers: each verb that changes something looks there first, and removes those that stand for nothing.
//! A watcher does it at the deadline itself: a timer of systemd, or a process of recant's own.

use serde::Serialize;

use crate::error::Error;
use crate::fs::Time;
use crate::session::{Deadline, Header, Id, Store};
use crate::tree::time;

/// The directory of the store with an empty file for each, by its session's id.
pub const DIRECTORY: &[u8] = b"unconfirmed";

/// A commit that waits, for `status` and for the report of that commit.
#[derive(Debug, Clone, Serialize)]
pub struct Waiting {
    pub session: Id,
    #[serde(with = "time")]
    pub due: Time,
    pub overdue: bool,
    pub by: Option<String>,
    pub failed: Vec<String>,
}

impl Waiting {
    /// The commit of a session, if it waits.
    pub fn of(header: &Header) -> Option<Self> {
        let Deadline { due, by, failed, .. } = header.waits()?.clone();
        Some(Self { session: header.id.clone(), due, overdue: header.waits()?.is_over(), by, failed })
    }
}

/// The commits that wait to be confirmed. Costs one look if none ever did.
///
/// # Errors
/// The directory cannot be read.
pub fn waiting(store: &Store) -> Result<Vec<Waiting>, Error> {
    let headers = marked(store)?.into_iter().filter_map(|id| Some(store.session(&id).ok()?.header));
    Ok(headers.filter_map(|header| Waiting::of(&header)).collect())
}

/// The sessions that have a file in [`DIRECTORY`]: those that wait, and some that do no more.
///
/// # Errors
/// The directory cannot be read.
pub fn marked(store: &Store) -> Result<Vec<Id>, Error> {
    let dir = match store.dir.open_below(DIRECTORY) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        dir => dir?,
    };
    Ok(dir.names()?.iter().filter_map(|name| Id::parse(std::str::from_utf8(name).ok()?)).collect())
}
