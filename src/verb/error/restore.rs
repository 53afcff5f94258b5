//! Errors about what snapshots have.

use crate::error::{Error, Kind, shell_word};
use crate::fs::path::AbsPath;
use crate::snapshot::error::heal;

/// Rewords the damage that the engine finds when it hashes large files: its message names a session that is removed by then.
pub fn damaged_snapshot(problem: Error, directory: &AbsPath, n: u64) -> Error {
    if problem.kind() != Kind::Damaged {
        return problem;
    }
    let path = problem.path().map_or_else(|| directory.to_string(), str::to_owned);
    let message = format!("cannot restore snapshot {n}: the content that it keeps of {path} is damaged");
    problem.with_message(message).with_remedy(heal())
}

/// The reason why a path stays, with what helps where the owner or one of his commands took the rights away: --force does not.
pub fn closed_path(path: &AbsPath, why: &str) -> String {
    let is_closed = why.starts_with("it cannot be") && why.ends_with("permission denied");
    let chmod = || format!("{why} (chmod u+rX {} first, or restore as root)", shell_word(path.as_bytes()));
    if is_closed { chmod() } else { why.to_owned() }
}
