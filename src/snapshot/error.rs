//! The errors of this room. Nothing was changed, unless they say so.

use std::fmt::Display;
use std::io;

use crate::error::{Error, Kind, Reason, command, reason, shell_word};
use crate::fs::AbsPath;
use crate::remedy::{Remedy, shell};
use crate::settings::grouped;

/// There are no snapshots of `directory`.
pub fn none(directory: impl Display) -> Error {
    let create = command(format_args!("snapshot create {directory}")) + " takes the first one; --dir names another directory";
    refused(directory, "no snapshots").with_remedy(create)
}

/// There is no snapshot of that number or label; `there` are the existing ones.
pub(super) fn unknown(key: &str, directory: &AbsPath, there: &[String]) -> Error {
    refused(directory, format_args!("no snapshot {key:?}; there are {}", there.join(", ")))
        .with_reason(Reason::Unknown { near: true })
        .with_remedy(command(format_args!("snapshot list {directory}")) + " shows them")
}

/// A file of a snapshot cannot be trusted.
pub fn damaged(path: impl Display, why: impl Display) -> Error {
    Error::damaged(path, "the snapshot", why).with_remedy(heal())
}

/// The remedy for damage: a single file does not show which snapshots need it.
pub fn heal() -> Remedy {
    let [verify, create, prune] = ["snapshot verify", "snapshot create", "prune --snapshots --number N"].map(command);
    verify
        + " names the damaged snapshots; "
        + create
        + " takes one that does not depend on them, then "
        + prune
        + " removes them"
}

/// The directory is far larger than anybody would mean.
pub(super) fn too_broad(path: &AbsPath, why: impl Display) -> Error {
    let remedy = "name a directory further down: " + command("snapshot create DIR");
    refused(path, why).with_state("no snapshot was taken").with_remedy(remedy)
}

/// The directory holds `count` objects; `biggest` are the subdirectories with the most, and their counts.
pub(super) fn too_many(path: &AbsPath, count: u64, limit: u64, biggest: &[(String, u64)]) -> Error {
    let shown: Vec<String> = biggest.iter().map(|(path, n)| format!("{path} ({})", grouped(*n))).collect();
    let named = if shown.is_empty() { String::new() } else { format!("; the biggest in it: {}", shown.join(", ")) };
    let (count, limit) = (grouped(count), grouped(limit));
    refused(path, format_args!("it holds {count} files and directories, more than the limit of {limit}{named}"))
        .with_reason(Reason::TooMany)
        .with_state("no snapshot was taken")
        .with_remedy("--all takes it anyway; snapshot.max_files sets the limit; --exclude GLOB or --preset dev leave things out")
}

/// The text is no valid glob.
pub(super) fn no_glob(glob: &str, why: &str) -> Error {
    Error::new(Kind::Usage, format!("{glob:?} is not a glob: {why}"))
}

/// The request cannot be met as things are.
pub(super) fn refused(path: impl Display, why: impl Display) -> Error {
    Error::at(Kind::Refused, path, why)
}

/// A snapshot failed, and what was stored for it could not be removed, because of `left`.
pub(super) fn unswept(failed: Error, left: &Error, directory: &AbsPath) -> Error {
    let state = format!("no snapshot was taken; what was stored for it stays in the store: {left}");
    let prune = command(format_args!("prune --snapshots {}", shell_word(directory.as_bytes()))) + " removes it";
    let remedy = match failed.advice().cloned() {
        Some(remedy) => remedy + "; " + prune,
        None => prune,
    };
    failed.with_state(state).with_remedy(remedy)
}

pub(super) fn busy(directory: &AbsPath) -> Error {
    Error::new(Kind::Busy, format!("the snapshots of {directory} are in use by another recant"))
        .with_path(directory)
        .with_state("nothing was changed; try again when it has ended")
}

/// The error of a look at `path` that is due to this process or its machine, not to the object: nothing is left out for it.
pub(super) fn of_ours(path: &AbsPath, error: &io::Error) -> Option<Error> {
    let remedy = match error.raw_os_error()? {
        libc::EMFILE => "let it open more files: " + shell("ulimit -n 1024"),
        libc::ENFILE => "all processes together have too many files open: try again when some have ended".into(),
        libc::EINTR => "a signal interrupted it: try again".into(),
        libc::ENOMEM => "there is too little memory: try again when there is more".into(),
        _ => return None,
    };
    Some(refused(path, format_args!("cannot look at it: {}", reason(error))).with_remedy(remedy))
}
