//! The errors of this room, in its words. Nothing was changed, unless they say so. What is taken back says so in
//! [`take_back`](super::take_back).

use std::fmt::Display;
use std::io;

use crate::error::{Error, Kind, Reason, command};

/// Something cannot be done, seen before the first effect: paths and reasons.
pub fn refused(rows: Vec<(String, String)>) -> Error {
    Error::of_rows(Kind::Refused, "paths that stand against it", rows)
}

/// The same of one path.
pub fn refused_at(path: impl Display, why: impl Display) -> Error {
    refused(vec![(path.to_string(), why.to_string())])
}

/// What is to be copied or written does not fit, seen before the first effect: paths and reasons.
pub(super) fn no_room(rows: Vec<(String, String)>) -> Error {
    let rows = Error::of_rows(Kind::Refused, "file systems that have no room for it", rows);
    rows.with_source(io::Error::from_raw_os_error(libc::ENOSPC))
}

/// Content in the store is not what was put there: paths and reasons.
pub fn damaged(rows: Vec<(String, String)>) -> Error {
    let remedy = "name the other paths alone, and they go without it";
    Error::of_rows(Kind::Damaged, "paths whose content is damaged in the store", rows).with_remedy(remedy)
}

/// It was ready, and was not let go on.
pub(super) fn stopped(why: String) -> Error {
    Error::new(Kind::Refused, why).with_reason(Reason::Stopped)
}

/// A journal is there that can be neither undone nor settled now, or what was done is not known to be durable: `path` is the journal, or
/// what stands against it.
pub(super) fn stuck(path: impl Display, why: impl Display, state: impl Into<String>) -> Error {
    let again = command("recover tries again once the cause is gone");
    Error::at(Kind::Stuck, path, why).with_state(state).with_remedy(again)
}

/// What a journal of session `id` speaks of is not mounted. The journal stays in `store`.
pub(super) fn unmounted(path: impl Display, why: impl Display, store: impl Display, id: impl Display) -> Error {
    let [again, give_up] = ["", " --give-up-unmounted"].map(|option| command(format_args!("recover {id}{option}")));
    Error::at(Kind::Stuck, path, why)
        .with_state(format!("its journal stays in {store}; nothing more is touched"))
        .with_remedy(format!("mount it and {again} tries again; if it is gone for good, {give_up} ends the operation without it"))
}

/// Whether an interrupted operation was sealed cannot be told: the user decides.
pub(super) fn undecided(path: impl Display, verb: &str, why: impl Display, id: impl Display) -> Error {
    let [undo, finish] = ["undo", "finish"].map(|option| command(format_args!("recover {id} --{option}")));
    Error::at(Kind::Damaged, path, format_args!("it cannot be told whether the interrupted {verb} was done: {why}"))
        .with_state("nothing was touched; other sessions go on")
        .with_remedy(format!("{undo} takes back what was done; {finish} keeps it, if all was done"))
}

/// What was decided cannot be done as things stand.
pub(super) fn not_decided(path: impl Display, why: impl Display, remedy: impl Into<String>) -> Error {
    Error::at(Kind::Refused, path, why).with_reason(Reason::NotDecided).with_remedy(remedy)
}

/// An operation of the session was cut off, and is not recovered: `kind` is of what keeps it from that.
pub(super) fn interrupted(id: impl Display, kind: Kind, why: impl Display) -> Error {
    Error::new(kind, format!("session {id}: {why}"))
}

/// An interrupted operation of session `by` holds a path.
pub(super) fn held(path: impl Display, by: impl Display) -> Error {
    let remedy = command(format_args!("recover {by}"));
    Error::at(Kind::Stuck, path, format_args!("an interrupted operation of session {by} holds it")).with_remedy(remedy)
}
