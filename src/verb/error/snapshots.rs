//! Errors about snapshots: of a directory, of a path in it, and of a restore.

use std::fmt::Display;

use crate::error::{Error, command, shell_word};
use crate::fs::AbsPath;
use crate::remedy::Command;
use crate::snapshot::heal;
use crate::verb::snapshot::directory::dir;

/// The error for a path in the place of a snapshot's number. `so`: the call that has both.
pub fn key_first(error: Error, so: Command) -> Error {
    error.with_remedy("a number, a label or 'last' comes first; for the path: " + so)
}

/// The call that shows the paths of a snapshot.
pub fn show_of_paths(directory: &AbsPath) -> Command {
    command(format_args!("snapshot show last -v{}", dir(directory)))
}

/// The call that compares a path with a snapshot.
pub fn diff_of_path(directory: &AbsPath, path: &str) -> Command {
    command(format_args!("snapshot diff last{} -- {path}", dir(directory)))
}

/// The call that restores a path.
pub fn restore_of_path(directory: &AbsPath, path: &str) -> Command {
    command(format_args!("snapshot restore last {path}{}", dir(directory)))
}

/// The error for a path outside of the directory of the snapshots.
pub fn lies_elsewhere(path: &AbsPath, directory: &AbsPath) -> Error {
    let problem = Error::refused(format!("{path}: not in {directory}")).with_path(path);
    problem.with_remedy("--dir DIR names another directory's snapshots")
}

/// The error for a path that neither the snapshot nor the directory has.
pub fn nowhere(path: &AbsPath, directory: &AbsPath) -> Error {
    let problem = Error::refused(format!("{path}: neither in the snapshot nor in the directory")).with_path(path);
    problem.with_remedy(command(format_args!("snapshot show N -v{}", dir(directory))) + " lists what is in a snapshot")
}

/// The act of a restore, after "cannot".
pub fn restoring(directory: &AbsPath, n: u64) -> String {
    format!("restore snapshot {n} of {directory}")
}

/// The error for damage to the content of a snapshot that is restored.
pub fn damaged_content(error: Error, directory: &AbsPath, n: u64) -> Error {
    let path = error.path().map_or_else(|| directory.to_string(), str::to_owned);
    let message = format!("cannot restore snapshot {n}: the content that it keeps of {path} is damaged");
    error.with_message(message).with_remedy(heal())
}

/// The reason why a path stays whose rights keep recant out, with what opens it.
pub fn closed(path: &AbsPath, why: &str) -> String {
    format!("{why} (chmod u+rX {} first, or restore as root)", shell_word(path.as_bytes()))
}

/// The error for a restore of version control's own from a snapshot without it.
pub fn without_vcs(directory: &AbsPath, n: u64) -> Error {
    let why = format!("snapshot {n} of {directory} has none of version control's directories: it was taken without --with-vcs");
    Error::refused(why).with_path(directory).with_remedy("restore without --with-vcs: they stay as they are")
}

/// The error for a word that can be no label.
pub fn no_label(label: &str, why: impl Display) -> Error {
    Error::refused(format!("{label:?} cannot be a label: {why}"))
}

/// The error for an empty key.
pub fn no_key() -> Error {
    let remedy = "name a turn or task; without --once each call takes a snapshot";
    Error::refused("--once: the key is empty").with_remedy(remedy)
}

/// The error for a snapshot that is still needed.
pub fn is_needed(directory: &AbsPath, n: u64) -> Error {
    let why = format!("{directory}: snapshot {n} is needed for the session of a command on the real tree");
    let remedy = "let the command end first; if it was cut off, " + command("recover") + " makes the session";
    Error::refused(why).with_path(directory).with_remedy(remedy)
}
