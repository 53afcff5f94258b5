//! What a run covers: for each place, whether its changes are held, refused or let through, and why.

use serde::{Deserialize, Serialize};

use crate::fs::path::AbsPath;

/// What happens to changes at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Held in the session.
    Captured,
    /// Refused by the kernel (EROFS).
    ReadOnly,
    /// Left real: what the command does there is done.
    Passed,
    /// Not to be seen.
    Hidden,
    /// The command's own, gone at its end.
    Private,
    /// A socket that the command can see and not reach.
    Masked,
    /// Asked for, and not to be had.
    Uncovered,
}

/// One place and what happens to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// The place; all below it goes with it but for what has a line of its own.
    pub path: AbsPath,
    /// What happens there.
    pub how: How,
    /// Why, in a few words for people.
    pub why: String,
    /// Whether a person should hear of it before the command starts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warn: bool,
}
