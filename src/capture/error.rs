//! The errors of this room: why a command was not run, or why what it left can't be read.

use std::fmt::Display;
use std::io;

use super::space::refusals::Cause;
use crate::error::{Error, Kind, Reason, command, reason};
use crate::fs::AbsPath;
use crate::remedy::{Remedy, shell, words};
use crate::session::Ending;

const NOT_STARTED: &str = "the command was not started; nothing was changed";

fn no_capture(message: String) -> Error {
    Error::new(Kind::NoCapture, message).with_state(NOT_STARTED)
}

fn not_set_up(why: impl Display) -> Error {
    Error::led(Kind::NoCapture, "cannot set up the capture", why).with_state(NOT_STARTED)
}

/// Turns a failed system call before the command's start into a failed set-up; other errors stay as they are.
pub fn not_started(error: Error) -> Error {
    let is_call = error.kind() == Kind::Refused && error.io().is_some();
    if is_call { error.with_kind(Kind::NoCapture).with_state(NOT_STARTED) } else { error }
}

/// A call to set up the namespace failed: `act`, an infinitive, on `path`. The cause goes with it, as its detail.
pub fn set_up(path: &str, act: &str, source: io::Error, cause: Option<Cause>) -> Error {
    let error = not_set_up(format_args!("{path}: cannot {act}: {}", reason(&source))).with_path(path).with_source(source);
    match cause {
        Some(cause) => error.with_remedy(cause.advice()).with_detail(cause),
        None => error,
    }
}

/// The kernel's mounts differ from the plan.
pub fn not_as_planned(path: &str, what: &str) -> Error {
    not_set_up(format_args!("{path}: {what}")).with_path(path)
}

/// The working directory has no path any more, or can't be reached in the run.
pub fn working_directory(path: impl Display, what: &str) -> Error {
    no_capture(format!("cannot run here: {path}: {what}")).with_path(path).with_remedy("change to another directory first")
}

/// The store lies in a directory that is private in a run.
pub fn store_in_private(path: &AbsPath, place: &str) -> Error {
    no_capture(format!("cannot run with the store {path}: {place} is private in a run, and its files go when the machine stops"))
        .with_path(path)
        .with_remedy("use another store: --store DIR, RECANT_STORE")
}

/// The mounted file or directory was deleted, so the mount can't be moved into an overlay. A deleted directory is empty; a file's content
/// goes with the mount.
pub fn deleted_mount(path: &AbsPath, is_dir: bool) -> Error {
    let umount = shell(format_args!("umount {path}"));
    let remedy = if is_dir {
        "it is empty, so unmount it: " + umount
    } else {
        words(format_args!("copy {path} elsewhere first, as its content is lost with the mount; then ")) + umount
    };
    let what = if is_dir { "directory" } else { "file" };
    no_capture(format!("cannot capture the tree around the mount {path}: the mounted {what} was deleted"))
        .with_path(path)
        .with_remedy(remedy)
}

/// The session holds a change that the command could not see; `over` is the mount point that has covered it since.
pub fn not_shown(path: &AbsPath, why: &str, over: Option<&AbsPath>) -> Error {
    let remedy = match over {
        Some(point) => shell(format_args!("umount {point}")) + ", or commit the session first",
        None => "remove the cause, or commit the session first".into(),
    };
    no_capture(format!("cannot go on in the session: {path}: it holds a change there that the command could not see: {why}"))
        .with_path(path)
        .with_remedy(remedy)
}

/// The working directory has an owner or group that a user namespace can't map: "user 12" or "group 34".
pub fn unmapped(path: &AbsPath, belongs: &str, remedy: Remedy) -> Error {
    no_capture(format!("cannot capture {path}: it belongs to {belongs}, whose files an ordinary user's capture cannot change"))
        .with_path(path)
        .with_remedy(remedy)
}

/// The program is sudo, su or doas, run by an ordinary user: it gains nothing inside.
pub fn gains_rights(program: impl Display) -> Error {
    no_capture(format!("cannot run {program} in an ordinary user's run: it can gain no rights there"))
        .with_remedy("call them in the other order: " + shell("sudo recant run -- …"))
}

/// One of the descriptors 0 to 2 is a directory: a way around the capture.
pub fn directory_as_descriptor(fd: i32) -> Error {
    no_capture(format!("descriptor {fd} is a directory, by which the command could write outside of the run"))
        .with_remedy(format!("redirect descriptor {fd} to a file, a pipe or a terminal"))
}

/// The process has more than one thread, and fork(2) needs exactly one.
pub fn not_alone() -> Error {
    not_set_up("recant has more than one thread")
}

/// There is no such program.
pub fn not_found(program: &str) -> Error {
    Error::new(Kind::NotFound, format!("{program}: command not found")).with_state(NOT_STARTED)
}

/// The program exists and can't be executed.
pub fn not_executable(program: &str, source: &io::Error) -> Error {
    let message = format!("{program}: cannot be executed: {}", reason(source));
    Error::new(Kind::NotExecutable, message).with_state(NOT_STARTED)
}

/// An argument or variable holds a NUL byte.
pub fn nul() -> Error {
    Error::new(Kind::NotExecutable, "an argument holds a NUL byte").with_state(NOT_STARTED)
}

/// The command ran; its changes lie in the session and could not be read. `ending` is how it ended, if known; with `lost` the changes lay in
/// memory.
pub fn uncollected(id: impl Display, ending: Option<Ending>, lost: bool, why: &Error) -> Error {
    let state = match ending {
        _ if lost => "what the command changed was in memory and is lost; the tree is as it was".into(),
        Some(Ending::Exited(code)) => {
            format!("the command exited with {code}; what it changed is kept in the session, the tree is as it was")
        }
        _ => "what the command changed is kept in the session, the tree is as it was".into(),
    };
    let remedy = match lost {
        true => "put the store on another file system: --store DIR".into(),
        false => {
            let [diff, discard] = ["diff", "discard"].map(|verb| command(format_args!("{verb} {id}")));
            diff + " tries again once the cause is removed; " + discard + " drops it"
        }
    };
    // The kind of a set-up that failed is not this error's; others are kept: a session that can't be read is damaged, say.
    let kind = if why.kind() == Kind::NoCapture { Kind::Refused } else { why.kind() };
    let error = Error::new(kind, format!("the run of session {id} cannot be collected: {why}"))
        .with_reason(Reason::Uncollected)
        .with_state(state)
        .with_remedy(remedy);
    match why.path() {
        Some(path) => error.with_path(path),
        None => error,
    }
}
