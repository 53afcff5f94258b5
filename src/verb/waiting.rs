//! Commits that wait to be confirmed.
//!
//! The deadline is in the session's header, sealed with the commit. An empty file `unconfirmed/<id>` in the store, made before the commit
//! begins, only saves reading all headers: each verb that changes something looks there first, and removes those that stand for nothing.
//! A watcher does it at the deadline itself: a timer of systemd, or a process of recant's own.

use serde::Serialize;

use super::desk::Desk;
use super::error;
use super::said::Said;
use crate::error::Error;
use crate::fs::dir::Time;
use crate::session::deadline::Deadline;
use crate::session::header::Header;
use crate::session::id::Id;
use crate::session::opened::Locked;
use crate::session::store::Store;
use crate::tree::time;

const DIRECTORY: &[u8] = b"unconfirmed";

/// A commit that waits, for `status` and for the report of that commit.
#[derive(Debug, Clone, Serialize)]
pub struct Waiting {
    pub session: Id,
    #[serde(with = "time")]
    pub due: Time,
    pub overdue: bool,
    /// The one that rolls it back then.
    pub by: Option<String>,
    /// The reasons why it could not be rolled back when it was due.
    pub failed: Vec<String>,
}

impl Waiting {
    /// `None` for a session that does not wait.
    pub fn of(header: &Header) -> Option<Self> {
        let Deadline { due, by, failed, .. } = header.waits()?.clone();
        Some(Self { session: header.id.clone(), due, overdue: header.waits()?.is_over(), by, failed })
    }
}

/// The commits that wait to be confirmed. Costs one look if none ever did.
///
/// # Errors
/// The store cannot be read.
pub fn waiting(store: &Store) -> Result<Vec<Waiting>, Error> {
    let headers = marked(store)?.into_iter().filter_map(|id| Some(store.session(&id).ok()?.header));
    Ok(headers.filter_map(|header| Waiting::of(&header)).collect())
}

/// The sessions that have a mark: of those alone one may wait.
///
/// # Errors
/// The store cannot be read.
pub fn marked(store: &Store) -> Result<Vec<Id>, Error> {
    let dir = match store.dir.open_below(DIRECTORY) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        dir => dir?,
    };
    Ok(dir.names()?.iter().filter_map(|name| Id::parse(std::str::from_utf8(name).ok()?)).collect())
}

/// Removes the mark of a session. One that stays goes the next time.
pub fn remove_mark(desk: &Desk, store: &Store, id: &Id) {
    if let Ok(dir) = store.dir.open_below(DIRECTORY) {
        drop(desk.fs.unlink_if_there(dir.at(id.as_str().as_bytes())));
    }
}

/// Makes the commit that is about to begin one that waits. False, with a warning, if all of it is on the tree already.
///
/// # Errors
/// A part of it is committed already; the mark cannot be made.
pub fn arm(desk: &Desk, store: &Store, session: &mut Locked, seconds: i64) -> Result<bool, Error> {
    if session.header.is_all_in() {
        desk.caller.tell(Said::NothingToConfirm(session.id()));
        return Ok(false);
    }
    if session.header.counts.inside > 0 {
        return Err(error::is_in_part(session.id()));
    }
    let at = store.dir.at(DIRECTORY);
    match desk.fs.mkdir(at, 0o700) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    // Durable before the seal: no verb would look for the deadline. (Directory: not caught here, the model's commits wait for nobody.)
    desk.fs.sync_dir(&store.dir)?; // D3
    desk.fs.replace(at.open_dir()?.at(session.id().as_str().as_bytes()), b"")?;
    session.set_header(Header { deadline: Some(Deadline::within(seconds)), ..session.header.clone() });
    Ok(true)
}

/// Starts the time of a sealed commit anew, and its watcher. An error is a warning: the deadline from before the commit counts.
pub fn begin(desk: &Desk, store: &Store, session: &mut Locked, seconds: i64) -> Option<Waiting> {
    session.header.waits()?;
    let by = desk.caller.watch(store, session.id(), seconds);
    let header = Header { deadline: Some(Deadline { by, ..Deadline::within(seconds) }), ..session.header.clone() };
    if let Err(error) = session.save(&desk.fs, header) {
        desk.caller.tell(Said::EarlierTimeCounts(&error));
    }
    Waiting::of(&session.header)
}
