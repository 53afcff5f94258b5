//! The deadline of a commit that is to be confirmed: set before it, begun once it is sealed, its mark removed when it is over.

use super::unconfirmed::{DIRECTORY, Waiting};
use crate::error::Error;
use crate::session::{Deadline, Header, Id, Locked, Store};
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::fact::Fact;

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
        desk.caller.tell(Fact::NothingToConfirm(session.id()));
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
        desk.caller.tell(Fact::EarlierTimeCounts(&error));
    }
    Waiting::of(&session.header)
}
