//! What was done, a row a path.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::item::Item;
use super::job::Verb;
use super::step::Act;
use crate::checkpoint::limits::Large;
use crate::fs::path::AbsPath;
use crate::session::header::{Counts, Status};
use crate::tree::state::sort_word;

/// What became of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// Something was put where nothing was.
    Made,
    /// What was there gave its place.
    Replaced,
    /// What was there is gone from the tree.
    Removed,
    /// Mode, owner, times or xattrs were set.
    Metadata,
    /// It was as wanted already.
    AlreadySo,
}

/// One path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The path.
    pub path: AbsPath,
    /// What became of it.
    pub done: Done,
    /// What kind of object it holds now, or held where nothing is now.
    pub kind: &'static str,
}

/// A path that is not as it was to be, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// The path.
    pub path: AbsPath,
    /// Why, for people.
    pub why: String,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.why)
    }
}

/// A folder that was opened and is to be closed has two steps, and is named once.
pub(super) fn without_repeats(left: impl Iterator<Item = Left>) -> Vec<Left> {
    let mut once: Vec<Left> = Vec::new();
    for left in left {
        if !once.iter().any(|known| known.path == left.path) {
            once.push(left);
        }
    }
    once
}

/// The whole operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Which verb.
    pub verb: Verb,
    /// Its paths, in path order.
    pub rows: Vec<Row>,
    /// What was left out, and why: exit 4.
    pub left: Vec<(AbsPath, String)>,
    /// What is to be said beside it.
    pub notes: Vec<String>,
    /// Large directories that went, each with its files and bytes, of which all is kept.
    pub large: Vec<Large>,
    /// Something that was taken off the tree is not kept, by policy.
    pub uncovered: bool,
    /// Where something was overwritten by force that is kept under `displaced/`.
    pub displaced: Vec<AbsPath>,
    /// Bytes that the checkpoint keeps for a rollback now.
    pub kept: u64,
    /// How many changes the session has, and how many of them are on the tree now, or would be.
    pub counts: Counts,
    /// Where the session stands now, or would stand.
    pub status: Status,
    /// The session's generation.
    pub generation: u64,
}

impl Row {
    /// Of an item.
    pub(super) fn of(item: Item) -> Self {
        let done = match item.act {
            Act::Place => Done::Made,
            Act::Replace => Done::Replaced,
            Act::Remove => Done::Removed,
            Act::SetMeta => Done::Metadata,
            Act::Stay => Done::AlreadySo,
        };
        let kept = if item.act == Act::Stay { None } else { item.from.as_ref() };
        let kind = item.to.as_ref().or(kept).map_or("nothing", |seen| sort_word(seen.state.sort()));
        Self { path: item.path, done, kind }
    }
}
