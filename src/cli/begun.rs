//! Sessions that a verb begins for itself and fills at once: nobody sees one that came to nothing.

use super::Call;
use super::problem::Problem;
use crate::error::recant;
use crate::session::opened::Locked;
use crate::session::store::Store;

/// Fills a session that was just begun. Where `fill` fails it goes again.
pub fn filled<E: Into<Problem>>(
    call: &Call,
    store: &Store,
    mut session: Locked,
    fill: impl FnOnce(&mut Locked) -> Result<(), E>,
) -> Result<Locked, Problem> {
    call.clear_away(store);
    match fill(&mut session) {
        Ok(()) => Ok(session),
        Err(error) => {
            take_away(call, store, session);
            Err(error.into())
        }
    }
}

/// Takes a session away that came to nothing. The failure that this is for is the one that counts; that the session stayed is said.
pub fn take_away(call: &Call, store: &Store, session: Locked) {
    let id = session.id().clone();
    if let Err(error) = store.remove_session(&call.fs, session) {
        call.out.warn(format_args!(
            "session {id} holds nothing of use and could not be removed: {error}; {recant} discard {id}",
            recant = recant()
        ));
    }
}
