//! The record of a step, and its lines in `steps.jsonl`.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::fs::AbsPath;
use crate::session::change::{Change, Changes, DirectoryTime, Line, Sort};
use crate::session::header::Header;
use crate::session::id::Id;
use crate::session::run_record::{CommandRecord, Run};

/// The name of the file, in the session's directory.
pub const FILE: &[u8] = b"steps.jsonl";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its number, from 1 on; never used again.
    pub n: u32,
    /// The step that it stands on; 0 is the tree as it was.
    pub on: u32,
    #[serde(flatten)]
    pub command: CommandRecord,
    pub uid: u32,
    /// The commands that joined its run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<CommandRecord>,
    /// True if the machine went down before it was durable: content may be missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsynced: bool,
    /// True if nothing was run: a person chose what the session holds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chosen: bool,
    /// The number of paths that left the session at it: a command that runs over it sees the tree there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left: u64,
    /// The part that has them: then no step before it has them any more, whatever the session stands at. Missing if they were discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parted: Option<Id>,
    /// The number of changes of each sort.
    pub sorts: BTreeMap<Sort, u64>,
    /// Bytes of content that its upper holds.
    #[serde(default)]
    pub held: u64,
    /// The bytes of its lines, which follow.
    pub bytes: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Step {
    /// The number of paths that it changed.
    pub fn changes(&self) -> u64 {
        self.sorts.values().sum()
    }

    pub fn count(list: &[Change]) -> BTreeMap<Sort, u64> {
        let mut sorts = BTreeMap::new();
        list.iter().for_each(|change| *sorts.entry(change.sort()).or_insert(0) += 1);
        sorts
    }

    /// The record of a step that is to be added, which gets its number then. `held`: bytes of content in its upper.
    pub fn of(run: &Run, on: u32, own: &Changes, held: u64) -> Self {
        Self {
            n: 0,
            on,
            command: run.command.clone(),
            uid: run.uid,
            beside: run.beside.clone(),
            unsynced: false,
            chosen: false,
            left: 0,
            parted: None,
            sorts: Self::count(&own.list),
            held,
            bytes: 0,
        }
    }

    /// The record of the only step of a session, as its run and changes tell it.
    pub fn first(run: &Run, header: &Header, changes: &Changes) -> Self {
        Self { n: 1, unsynced: header.unsynced, ..Self::of(run, 0, changes, header.sizes.held) }
    }
}

/// A line of `steps.jsonl`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepLine {
    /// The record of a step, before its lines.
    Step(Box<Step>),
    /// A change against the step below.
    Change(Box<Change>),
    /// The time of a directory that is no change of the step.
    #[serde(rename = "folder_time")]
    DirectoryTime(DirectoryTime),
    /// The net line of a path, in place of the step's own.
    Net(Line),
    Left(AbsPath),
    /// In place of a record: the part of this step was rolled back, so that what left is out for this step and those on it alone.
    Joined(u32),
}

/// The changes that a step adds to a session.
#[derive(Debug, Default)]
pub struct Added {
    /// Its changes against the step that it stands on, in path order.
    pub own: Changes,
    /// The net lines of the paths that an earlier step had changed. For all others the own ones count.
    pub net: Vec<Line>,
    /// The paths that leave the session, in path order.
    pub left: Vec<AbsPath>,
}

impl Added {
    /// The lines of the step in `steps.jsonl`.
    fn lines(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for change in &self.own.list {
            crate::tree::append_line(&mut bytes, &LineRef::Change(change));
        }
        for time in &self.own.directory_times {
            crate::tree::append_line(&mut bytes, &LineRef::DirectoryTime(time));
        }
        for line in &self.net {
            crate::tree::append_line(&mut bytes, &LineRef::Net(line));
        }
        for path in &self.left {
            crate::tree::append_line(&mut bytes, &LineRef::Left(path));
        }
        bytes
    }

    /// The record and the lines of the step. Sets the record's length.
    pub fn text(&self, step: &mut Step) -> Vec<u8> {
        let lines = self.lines();
        (step.bytes, step.left) = (lines.len() as u64, self.left.len() as u64);
        let mut bytes = crate::tree::line(&LineRef::Step(step));
        bytes.extend_from_slice(&lines);
        bytes
    }

    /// The lines that make the net changes of the session those at this step, in place of those below it.
    pub fn net_lines(&self) -> Vec<Line> {
        let of_net: HashSet<&AbsPath> = self.net.iter().filter_map(Line::path).collect();
        let own = self.own.list.iter().filter(|change| change.from.is_none() && !of_net.contains(&change.path));
        let times = self.own.directory_times.iter().filter(|time| !of_net.contains(&time.path));
        let own = own.map(|change| Line::Change(Box::new(change.clone())));
        own.chain(times.map(|time| Line::DirectoryTime(time.clone()))).chain(self.net.iter().cloned()).collect()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineRef<'a> {
    Step(&'a Step),
    Change(&'a Change),
    #[serde(rename = "folder_time")]
    DirectoryTime(&'a DirectoryTime),
    Net(&'a Line),
    Left(&'a AbsPath),
    Joined(u32),
}

/// Paths that left a session, each with the newest step at which it did: the steps before that show the tree there.
#[derive(Debug, Default)]
pub struct PartedPaths(pub BTreeMap<AbsPath, u32>);

impl PartedPaths {
    /// Of steps, the oldest first.
    pub fn of<'s>(steps: impl Iterator<Item = &'s (u32, Vec<AbsPath>)>) -> Self {
        Self(steps.flat_map(|(n, paths)| paths.iter().map(|path| (path.clone(), *n))).collect())
    }

    /// The newest of the steps; 0 if there is none.
    pub fn newest(&self) -> u32 {
        self.0.values().copied().max().unwrap_or(0)
    }

    /// True if a path left at a later step than `n`.
    pub fn has(&self, n: u32, path: &AbsPath) -> bool {
        self.0.get(path).is_some_and(|left| *left > n)
    }

    /// True if one of them is `path` or lies below it.
    pub fn is_under(&self, path: &AbsPath) -> bool {
        self.0.range(path..).next().is_some_and(|(left, _)| left.is_under(path))
    }
}
