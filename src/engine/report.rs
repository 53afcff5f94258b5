//! The report of what was done, a row a path.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::item::Item;
use super::job::Verb;
use super::step::Act;
use crate::checkpoint::Large;
use crate::fs::{AbsPath, Sort};
use crate::session::{Counts, Header, Status};
use crate::tree::danger::danger;
use crate::tree::{Danger, Object, Seen, State, sort_word};

/// The outcome for a path: a rollback has words of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PathOutcome {
    /// A commit or redo put something where nothing was.
    Created,
    /// A commit or redo put another object in its place.
    Modified,
    /// A commit or redo took its object off the tree.
    Deleted,
    /// A rollback put back what had gone.
    Recreated,
    /// A rollback put back what had been there.
    Restored,
    /// A rollback took what had come off the tree.
    Removed,
    /// Mode, owner, times or xattrs were set.
    Metadata,
    /// A restore took it out of what came later.
    Merged,
    /// It was as wanted already.
    Unchanged,
}

impl PathOutcome {
    fn of(verb: Verb, act: Act) -> Self {
        match (verb, act) {
            (Verb::Rollback, Act::Place) => Self::Recreated,
            (Verb::Rollback, Act::Replace) => Self::Restored,
            (Verb::Rollback, Act::Remove) => Self::Removed,
            (_, Act::Place) => Self::Created,
            (_, Act::Replace) => Self::Modified,
            (_, Act::Remove) => Self::Deleted,
            (_, Act::SetMeta) => Self::Metadata,
            (_, Act::Stay) => Self::Unchanged,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::Recreated => "recreated",
            Self::Restored => "restored",
            Self::Removed => "removed",
            Self::Metadata => "metadata",
            Self::Merged => "merged",
            Self::Unchanged => "unchanged",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    pub path: AbsPath,
    pub done: PathOutcome,
    /// The kind of object that it holds now, or held if nothing is there now.
    pub kind: &'static str,
    /// True if force puts it over what was changed since.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub over: bool,
    /// The reason why a person should see it before the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub danger: Option<Danger>,
}

/// A path that is not as it was to be, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftPath {
    pub path: AbsPath,
    pub why: String,
}

impl LeftPath {
    pub fn parts(&self) -> (&Path, &str) {
        (self.path.as_path(), &self.why)
    }
}

impl fmt::Display for LeftPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.why)
    }
}

/// Drops repeated paths: a directory that was opened and is to be closed has two steps.
pub fn without_repeats(left: impl Iterator<Item = LeftPath>) -> Vec<LeftPath> {
    let mut once: Vec<LeftPath> = Vec::new();
    for left in left {
        if !once.iter().any(|known| known.path == left.path) {
            once.push(left);
        }
    }
    once
}

/// The report of an operation, done or only planned, as JSON has it: docs/json.md.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    pub verb: Verb,
    /// True if it only tells.
    pub dry_run: bool,
    pub status: Status,
    pub generation: u64,
    /// Its paths, in path order.
    #[serde(rename = "paths")]
    pub rows: Vec<Row>,
    /// The paths that were left out, and why: exit 4.
    #[serde(rename = "skipped")]
    pub left: Vec<LeftPath>,
    pub notes: Vec<String>,
    /// Large directories that went and are kept in full.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub large: Vec<Large>,
    /// True if something that was taken off the tree is not kept, by policy.
    #[serde(skip)]
    pub uncovered: bool,
    /// Bytes that the checkpoint keeps for a rollback now.
    #[serde(rename = "kept_bytes")]
    pub kept: u64,
    /// The paths where force overwrote something that is kept under `displaced/`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub displaced: Vec<AbsPath>,
    /// The number of changes in the session, and of those on the tree now, or then.
    #[serde(skip)]
    pub counts: Counts,
}

impl Row {
    pub fn of(verb: Verb, item: Item) -> Self {
        let done = PathOutcome::of(verb, item.act);
        let kept = if item.act == Act::Stay { None } else { item.from.as_ref() };
        let kind = item.to.as_ref().or(kept).map_or("nothing", |seen| sort_word(seen.state.sort()));
        let over = item.forced && item.moves() && item.from.is_some();
        let state = |seen: Option<&Seen>| seen.map(|seen| seen.state.clone());
        let is_done = item.act != Act::Stay;
        let danger = is_done.then(|| danger(&item.path, &state(item.from.as_ref()), &state(item.to.as_ref()))).flatten();
        Self { path: item.path, done, kind, over, danger }
    }

    /// A file that gets other content.
    pub fn modified(path: AbsPath, before: &Object, after: State) -> Self {
        let danger = danger(&path, before, &Some(after));
        Self { path, done: PathOutcome::Modified, kind: sort_word(Sort::File), over: false, danger }
    }
}

impl Report {
    /// A dry run of a commit that does this and no more.
    pub fn of_commit(header: &Header, rows: Vec<Row>) -> Self {
        let inside = header.counts.inside + rows.len() as u64;
        Self {
            verb: Verb::Commit,
            dry_run: true,
            status: Status::Committed,
            generation: header.generation + 1,
            rows,
            left: Vec::new(),
            notes: Vec::new(),
            large: Vec::new(),
            uncovered: false,
            kept: 0,
            displaced: Vec::new(),
            counts: Counts { inside, ..header.counts },
        }
    }

    /// Adds rows of other paths, which a dry run would move, too.
    pub fn add(&mut self, rows: Vec<Row>) {
        self.counts.inside += rows.len() as u64;
        self.rows.extend(rows);
        self.rows.sort_by(|one, other| one.path.cmp(&other.path));
    }
}
