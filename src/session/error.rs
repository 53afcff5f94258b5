//! The errors of this room. Nothing was changed, unless they say so.

use std::fmt::Display;

use super::id::Id;
use super::under_way::UnderWay;
use crate::error::{Against, Error, Kind, Reason, command};
use crate::remedy::Remedy;

/// The error for a store of a format that this program does not know; `found` is the first line of `format`.
pub(super) fn other_format(path: impl Display, found: &str) -> Error {
    let why = format_args!("the store's format is {found:?}; this recant knows recant-store 1");
    Error::at(Kind::Refused, path, why).with_remedy("use the recant that made it, or another store: --store DIR, RECANT_STORE")
}

/// The error for a directory that is not empty and no store.
pub(super) fn no_store(path: impl Display) -> Error {
    Error::at(Kind::Refused, path, "this directory is not empty, and not a store of recant")
        .with_remedy("name a store, an empty directory, or a new one: --store DIR, RECANT_STORE")
}

/// The error for a store's directory that belongs to somebody else, or that others may write to.
pub(super) fn not_safe(path: impl Display, why: impl Display, remedy: impl Into<Remedy>) -> Error {
    Error::at(Kind::Refused, path, why).with_remedy(remedy)
}

/// The error for a stored file that cannot be trusted.
pub fn damaged(path: impl Display, why: impl Display) -> Error {
    Error::damaged(path, "the store", why)
}

/// The error for a session's header that cannot be trusted.
pub(super) fn garbled(path: impl Display, why: impl Display, id: impl Display) -> Error {
    let prune = command(format_args!("prune --sessions {id}"));
    damaged(path, why)
        .with_reason(Reason::Garbled)
        .with_remedy(prune + " drops it with all that it holds; --dry-run shows what that is")
}

/// The error for an id or name of no session. `near` are ids that look like it.
pub fn unknown(key: impl Display, near: &[String]) -> Error {
    let key = key.to_string();
    let nearest = if near.is_empty() { String::new() } else { format!("; the nearest: {}", near.join(", ")) };
    Error::new(Kind::Refused, format!("no session {key:?}{nearest}"))
        .with_reason(Reason::Unknown { near: !near.is_empty() })
        .with_remedy(all_sessions())
}

/// The error for a prefix of several ids.
pub(super) fn ambiguous(key: &str, fits: &[String]) -> Error {
    let message = format!("{key:?} fits {} sessions: {}", fits.len(), fits.join(", "));
    Error::new(Kind::Refused, message).with_remedy(all_sessions())
}

fn all_sessions() -> Remedy {
    command("list --all") + " shows all sessions"
}

/// The error for a key that cannot be an id or a name.
pub(super) fn bad_key(key: &str, why: &str) -> Error {
    let rule = "ids and names have letters, digits, '.', '_' and '-'; " + all_sessions();
    let error = Error::new(Kind::Refused, format!("{key:?} cannot be a session's id or name: {why}"));
    error.with_reason(Reason::BadKey).with_remedy(rule)
}

/// The error for a name that session `by` has.
pub(super) fn name_taken(name: &str, by: impl Display) -> Error {
    let rename = command(format_args!("session rename {by}"));
    Error::new(Kind::Refused, format!("the name {name:?} is taken by session {by}"))
        .with_remedy("choose another name, or " + rename + " removes it there")
        .with_reason(Reason::Taken { by: by.to_string() })
}

/// The error for a name that would hide session `id` from its short id.
pub(super) fn name_is_id(name: &str, id: impl Display) -> Error {
    Error::new(Kind::Refused, format!("the name {name:?} is the last part of session {id}"))
        .with_remedy("choose another name")
        .with_reason(Reason::IsId)
}

/// The error if another recant holds `what`: "session …" or "the store …".
pub fn busy(what: impl Display) -> Error {
    Error::new(Kind::Busy, format!("{what} is in use by another recant"))
        .with_state("nothing was changed; try again when it has ended")
}

/// The error if these commands run in session `id`.
pub fn running(id: &Id, under_way: &[UnderWay]) -> Error {
    let state = "nothing was changed; try again when it has ended";
    match under_way {
        [] => Error::new(Kind::Busy, format!("a command is running in session {id}")).with_state(state),
        [one] => Error::of_session(Kind::Busy, id.tail(), one.says()).with_state(state),
        several => {
            let row = |one: &UnderWay| {
                let since = format!("has run in it since {}", one.since());
                match one.service() {
                    Some(name) => Against::new(name, format!("{} {since}", one.quoted())),
                    None => Against::new(one.quoted(), since),
                }
            };
            let error = Error::of_session(Kind::Busy, id.tail(), format_args!("{} commands run in it", several.len()));
            error.with_state(state).with_rows(several.iter().map(row).collect())
        }
    }
}

/// The error for a service that another one has the name of.
pub(super) fn serves_already(id: &Id, name: &str, running: Option<&UnderWay>) -> Error {
    let since = running.map(|one| format!(", {}, since {}", one.quoted(), one.since())).unwrap_or_default();
    let stop = command(format_args!("run --session {} --stop {name}", id.tail()));
    Error::new(Kind::Busy, format!("{name} runs already in session {}{since}", id.tail())).with_remedy(stop + " ends it")
}

/// The error for a session that is not in a state for this.
pub fn not_now(id: impl Display, why: impl Display) -> Error {
    Error::of_session(Kind::Refused, id, why)
}

/// The error if something is given up, as `given_up` says, and not all of it could be removed.
pub(super) fn not_emptied(given_up: impl Display, why: impl Into<Error>, remedy: Remedy) -> Error {
    let state = format!("{given_up}; some of what it held could not be removed");
    why.into().with_kind(Kind::LeftOut).with_state(state).with_remedy(remedy)
}

/// The error if a session was changed, but perhaps not durably: `why` failed after its header had its name.
pub(super) fn not_lasting(id: impl Display, why: Error) -> Error {
    let state = format!("session {id} was changed as you asked, but a power cut may revert that");
    why.with_kind(Kind::LeftOut).with_state(state)
}

/// The error for a path that cannot be staged; `act` is what was asked for.
pub(super) fn not_staged(act: &str, path: impl Display, why: &str) -> Error {
    Error::new(Kind::Refused, format!("cannot {act} {path}: {why}")).with_path(path)
}
