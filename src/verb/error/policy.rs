//! The reasons why something waits for its person although there is a policy.

use super::refused;
use crate::error::Error;
use crate::fs::AbsPath;
use crate::remedy::Command;
use crate::settings::grouped;

/// The error for an agent if nothing of what it would commit fits its person's policy: the first of so many paths, and why.
pub fn nothing_fits(variable: &str, first: Option<(&AbsPath, &str)>, count: usize, command: Command) -> Error {
    let error = refused(variable, command);
    let Some((path, why)) = first else { return error };
    let more = if count > 1 { format!(" (and {} more)", grouped(count as u64 - 1)) } else { String::new() };
    let message = format!("{}; {path}: {why}{more}", error.message());
    error.with_message(message)
}

pub const NO_GLOB: &str = "no glob of agent.policy names it";
pub const SETTINGS: &str = "recant's own settings or store lie there";
pub const MARKS_PROJECT: &str = "its name marks a project, or belongs to version control";
pub const REPOSITORY: &str = "it lies in what git takes for a repository";
pub const AGENTS: &str = "it belongs to an agent, or lies in a directory of an agent";
pub const NO_FILE: &str = "it is, or was, not an ordinary file or directory";
pub const NAMES: &str = "the file has other names";
pub const MODE: &str = "its mode lets others write to it, or has set-id or sticky bits";
pub const OWNER: &str = "it has another owner or group";
pub const ATTRIBUTES: &str = "its extended attributes change, or its capabilities";
pub const DENIED: &str = "commit.deny names it";
pub const PROGRAM: &str = "a program in a directory of programs";
pub const WITH_NAMES: &str = "it would include what does not fit";

/// The reason for a directory that goes, as something in it waits.
pub fn holds_what_waits(below: &AbsPath) -> String {
    format!("{below} in it waits")
}

/// The reason for what lies in a new directory that waits.
pub fn lies_in_what_waits(above: &AbsPath) -> String {
    format!("it lies in {above}, which waits")
}

/// The reason for an end of a rename whose other end waits.
pub fn other_end_waits(other: &AbsPath) -> String {
    format!("it was renamed, and {other} waits")
}

/// The reason for what exceeds the number of paths.
pub fn too_many(fit: u64, most: u64, used: u64) -> String {
    let used = if used > 0 { format!(", of which {} are used since a person acted here", grouped(used)) } else { String::new() };
    format!("{} would be committed, and agent.policy.max_files is {}{used}", grouped(fit), grouped(most))
}

/// The reasons that concern a whole session.
pub const OTHER_SETTINGS: &str = "this is not the settings file of the store's person";
pub const NO_PERSON: &str = "no person has used this store yet";
pub const FAILED: &str = "its last command failed or was cut off";
pub const IMPORTED: &str = "it was imported";
pub const A_PERSONS: &str = "a person made some of it";
pub const NOT_PENDING: &str = "it is not pending";
