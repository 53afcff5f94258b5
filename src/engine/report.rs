//! The report of what was done, a row a path.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::item::Item;
use super::job::Verb;
use super::step::Act;
use crate::checkpoint::limits::Large;
use crate::fs::path::AbsPath;
use crate::session::header::{Counts, Status};
use crate::tree::danger::{Danger, danger};
use crate::tree::look::Seen;
use crate::tree::state::sort_word;

/// The outcome for a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// Something was put where nothing was.
    Made,
    /// Another object took its place.
    Replaced,
    /// Its object is gone from the tree.
    Removed,
    /// Mode, owner, times or xattrs were set.
    Metadata,
    /// It was as wanted already.
    AlreadySo,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub path: AbsPath,
    pub done: Done,
    /// The kind of object that it holds now, or held if nothing is there now.
    pub kind: &'static str,
    /// True if force puts it over what was changed since.
    pub over: bool,
    /// The reason why a person should see it before the others.
    pub danger: Option<Danger>,
}

/// A path that is not as it was to be, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    pub path: AbsPath,
    pub why: String,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.why)
    }
}

/// Drops repeated paths: a directory that was opened and is to be closed has two steps.
pub(super) fn without_repeats(left: impl Iterator<Item = Left>) -> Vec<Left> {
    let mut once: Vec<Left> = Vec::new();
    for left in left {
        if !once.iter().any(|known| known.path == left.path) {
            once.push(left);
        }
    }
    once
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub verb: Verb,
    /// Its paths, in path order.
    pub rows: Vec<Row>,
    /// The paths that were left out, and why: exit 4.
    pub left: Vec<(AbsPath, String)>,
    pub notes: Vec<String>,
    /// Large directories that went and are kept in full, each with its files and bytes.
    pub large: Vec<Large>,
    /// True if something that was taken off the tree is not kept, by policy.
    pub uncovered: bool,
    /// The paths where force overwrote something that is kept under `displaced/`.
    pub displaced: Vec<AbsPath>,
    /// Bytes that the checkpoint keeps for a rollback now.
    pub kept: u64,
    /// The number of changes in the session, and of those on the tree now, or then.
    pub counts: Counts,
    pub status: Status,
    pub generation: u64,
}

impl Row {
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
        let over = item.forced && item.moves() && item.from.is_some();
        let state = |seen: Option<&Seen>| seen.map(|seen| seen.state.clone());
        let is_done = item.act != Act::Stay;
        let danger = is_done.then(|| danger(&item.path, &state(item.from.as_ref()), &state(item.to.as_ref()))).flatten();
        Self { path: item.path, done, kind, over, danger }
    }
}
