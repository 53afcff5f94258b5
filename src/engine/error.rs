//! The errors of this room. Nothing was changed, unless they say so. Errors after an undo are in [`take_back`](super::recover::undo_and_finish).

use std::fmt::Display;
use std::io;
use std::os::unix::fs::MetadataExt;

use crate::error::{Against, Error, Kind, Reason, command, shell_word};
use crate::fs::AbsPath;
use crate::remedy::{Command, Remedy, shell};

/// The error for what cannot be done, seen before the first effect: paths and reasons.
pub fn refused(rows: Vec<Against>) -> Error {
    Error::of_rows(Kind::Refused, "paths that prevent it", rows)
}

/// The error for one path that cannot be done, seen before the first effect.
pub fn refused_at(path: impl Display, why: impl Display) -> Error {
    refused(vec![Against::new(path, why.to_string())])
}

/// The error for what does not fit, seen before the first effect: paths and reasons.
pub fn no_room(rows: Vec<Against>) -> Error {
    let rows = Error::of_rows(Kind::Refused, "file systems that have no room for it", rows);
    rows.with_source(io::Error::from_raw_os_error(libc::ENOSPC))
}

/// The error for content in the store that is not what was put there: paths and reasons.
pub fn damaged(rows: Vec<Against>) -> Error {
    let remedy = "name only the other paths to go on without it";
    Error::of_rows(Kind::Damaged, "paths whose content is damaged in the store", rows).with_remedy(remedy)
}

/// The error for a journal that can be neither undone nor settled now, or for work not known to be durable. `path` is the journal, or the
/// cause.
pub fn stuck(path: impl Display, why: impl Display, state: impl Into<String>) -> Error {
    let again = command("recover") + " tries again once the cause is removed";
    Error::at(Kind::Stuck, path, why).with_state(state).with_remedy(again)
}

/// The command that lets a user into the first of his own directories on the way to `path` that is closed to him.
pub fn way_in(path: &AbsPath) -> Option<Command> {
    let me = rustix::process::geteuid().as_raw();
    let keeps_out = |dir: &&AbsPath| {
        let found = dir.as_path().symlink_metadata();
        found.is_ok_and(|found| found.is_dir() && found.uid() == me && found.mode() & 0o100 == 0)
    };
    let above: Vec<_> = std::iter::successors(Some(path.clone()), AbsPath::parent).collect();
    above.iter().rev().find(keeps_out).map(|dir| shell(format_args!("chmod u+rwx {}", shell_word(dir.as_bytes()))))
}

/// The error for a journal of session `id` whose file system is not mounted. The journal stays in `store`.
pub fn unmounted(path: impl Display, why: impl Display, store: impl Display, id: impl Display) -> Error {
    let [again, give_up] = ["", " --give-up-unmounted"].map(|option| command(format_args!("recover {id}{option}")));
    Error::at(Kind::Stuck, path, why).with_state(format!("its journal stays in {store}; nothing more is touched")).with_remedy(
        "mount it and " + again + " tries again; if it is gone for good, " + give_up + " ends the operation without it",
    )
}

/// The error if nothing tells whether an interrupted operation was sealed: the user decides.
pub fn undecided(path: impl Display, verb: &str, why: impl Display, id: impl Display) -> Error {
    let [undo, finish] = ["undo", "finish"].map(|option| command(format_args!("recover {id} --{option}")));
    Error::at(Kind::Damaged, path, format_args!("cannot tell whether the interrupted {verb} was done: {why}"))
        .with_state("nothing was touched; other sessions go on")
        .with_remedy(undo + " takes back what was done; " + finish + " keeps it, if all was done")
}

/// The error if the user's decision cannot be carried out as things stand.
pub fn not_decided(path: impl Display, why: impl Display, remedy: impl Into<Remedy>) -> Error {
    Error::at(Kind::Refused, path, why).with_reason(Reason::NotDecided).with_remedy(remedy)
}

/// The error for a session whose interrupted operation is not recovered. `kind` is that of the cause.
pub fn interrupted(id: impl Display, kind: Kind, why: impl Display) -> Error {
    Error::new(kind, format!("session {id}: {why}"))
}

/// The error for a path that an interrupted operation of session `by` holds.
pub fn held(path: impl Display, by: impl Display) -> Error {
    let remedy = command(format_args!("recover {by}"));
    Error::at(Kind::Stuck, path, format_args!("in use by an interrupted operation of session {by}")).with_remedy(remedy)
}
