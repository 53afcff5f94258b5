//! Sessions that a verb begins for itself and fills at once. One that comes to nothing is removed, and nobody sees it.

use super::call::Call;
use crate::error::{Error, recant};
use crate::session::opened::Locked;
use crate::session::store::Store;

/// Fills a session that was just begun. If `fill` fails, the session is removed.
pub fn filled<E: Into<Error>>(
    call: &Call,
    store: &Store,
    mut session: Locked,
    fill: impl FnOnce(&mut Locked) -> Result<(), E>,
) -> Result<Locked, Error> {
    call.clear_away(store);
    match fill(&mut session) {
        Ok(()) => Ok(session),
        Err(error) => {
            take_away(call, store, session);
            Err(error.into())
        }
    }
}

/// Removes a session that came to nothing. That the session stayed is a warning, as the failure that led here counts.
pub fn take_away(call: &Call, store: &Store, session: Locked) {
    let id = session.id().clone();
    if let Err(error) = store.remove_session(&call.fs, session) {
        call.out.warn(format_args!(
            "session {id} holds nothing of use and could not be removed: {error}; {recant} discard {id}",
            recant = recant()
        ));
    }
}
