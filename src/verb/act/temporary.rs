//! Sessions that a verb begins for itself and fills at once. One that comes to nothing is removed, and nobody sees it.

use crate::error::Error;
use crate::session::{Locked, Store};
use crate::verb::desk::Desk;
use crate::verb::fact::Fact;

/// Fills a session that was just begun. If `fill` fails, the session is removed.
pub fn filled<E: Into<Error>>(
    desk: &Desk,
    store: &Store,
    mut session: Locked,
    fill: impl FnOnce(&mut Locked) -> Result<(), E>,
) -> Result<Locked, Error> {
    desk.clear_away(store);
    match fill(&mut session) {
        Ok(()) => Ok(session),
        Err(error) => {
            take_away(desk, store, session);
            Err(error.into())
        }
    }
}

/// Removes a session that came to nothing. That the session stayed is a warning, as the failure that led here counts.
pub fn take_away(desk: &Desk, store: &Store, session: Locked) {
    let id = session.id().clone();
    if let Err(error) = store.remove_session(&desk.fs, session) {
        desk.caller.tell(Fact::OfNoUse { id: &id, why: &error });
    }
}
