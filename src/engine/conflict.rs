//! Conflicts: what was expected at a path, and what is there.

use crate::fs::path::AbsPath;
use crate::tree::state::{Difference, Object, State, sort_word};

/// One path that does not hold what is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The path.
    pub path: AbsPath,
    /// What was expected there.
    pub expected: String,
    /// What is there.
    pub found: String,
    /// The session that put it there, where one did: it has to go first.
    pub by: Option<String>,
}

impl Conflict {
    /// Of two states and the difference between them.
    pub fn of(path: &AbsPath, expected: &Object, found: &Object, difference: Difference) -> Self {
        let say = |object: &Object| describe(object.as_ref(), difference);
        let (mut expected, mut found) = (say(expected), say(found));
        if expected == found {
            (expected, found) = (format!("{expected} as it was"), format!("{found} with another {difference}"));
        }
        Self { path: path.clone(), expected, found, by: None }
    }

    /// With words of its own.
    pub fn said(path: &AbsPath, expected: &str, found: &str) -> Self {
        Self { path: path.clone(), expected: expected.into(), found: found.into(), by: None }
    }
}

fn describe(object: Option<&State>, difference: Difference) -> String {
    let Some(state) = object else { return "nothing".into() };
    let word = sort_word(state.sort());
    match difference {
        Difference::Mode => format!("a {word} with mode {:04o}", state.meta.mode),
        Difference::Owner => format!("a {word} of {}:{}", state.meta.uid, state.meta.gid),
        Difference::Content => match &state.what {
            crate::tree::state::What::File { size, .. } => format!("a {word} of {size} bytes"),
            crate::tree::state::What::Symlink { target } => format!("a symlink to {}", crate::fs::path::Shown(target)),
            _ => format!("a {word}"),
        },
        _ => format!("a {word}"),
    }
}

/// All of them, a line each.
pub fn summary(conflicts: &[Conflict]) -> String {
    let line = |c: &Conflict| {
        let by = c.by.as_ref().map_or(String::new(), |id| format!(" (put there by session {id})"));
        format!("{}: conflict: expected {}, found {}{by}", c.path, c.expected, c.found)
    };
    conflicts.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// What to do about them.
pub fn remedy(conflicts: &[Conflict]) -> Option<String> {
    match conflicts.iter().find_map(|c| c.by.as_ref()) {
        Some(id) => Some(format!("session {id} has to be rolled back first: recant rollback {id}")),
        None => Some("look with recant diff; --force goes on and keeps what it finds".into()),
    }
}
