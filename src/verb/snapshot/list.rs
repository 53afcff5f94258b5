//! `snapshot list`: the snapshots of a directory, the newest first, or the directories that have some.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::series::found;
use crate::error::Error;
use crate::fs::{AbsPath, Time};
use crate::session::ActingAgent;
use crate::snapshot::{Broken, Counts, Head, Series, Summary, Tail, bytes_used};
use crate::tree::time;
use crate::verb::desk::Desk;

/// The snapshots of a directory. JSON: docs/json.md.
#[derive(Debug, Serialize)]
pub struct Listed {
    pub(crate) directory: AbsPath,
    /// The newest first.
    pub(crate) snapshots: Vec<Row>,
    /// Those that cannot be read.
    pub(crate) damaged: Vec<Broken>,
}

impl Listed {
    /// The numbers and messages, the newest first.
    pub fn snapshots(&self) -> impl Iterator<Item = (u64, Option<&str>)> {
        self.snapshots.iter().map(|row| (row.n, row.message.as_deref()))
    }
}

/// A snapshot of a listing.
#[derive(Debug, Serialize)]
pub struct Row {
    pub n: u64,
    #[serde(with = "time")]
    pub time: Time,
    pub message: Option<String>,
    pub label: Option<String>,
    pub key: Option<String>,
    pub run: bool,
    pub meta: BTreeMap<String, String>,
    #[serde(flatten)]
    pub counts: Counts,
    /// The agent that took it, or for which it was taken.
    #[serde(skip)]
    pub by: Option<ActingAgent>,
}

impl Row {
    pub(super) fn of(Summary { head, tail: Tail { counts, .. } }: Summary) -> Self {
        let by = head.by();
        let Head { n, time, message, label, key, run, meta, .. } = head;
        Self { n, time, message, label, key, run, meta, counts, by }
    }
}

/// The directories that have snapshots. JSON: docs/json.md.
#[derive(Debug, Serialize)]
pub struct Directories {
    pub directories: Vec<Directory>,
    /// The names of the series whose directory is unknown.
    pub damaged: Vec<String>,
}

/// A directory that has snapshots.
#[derive(Debug, Serialize)]
pub struct Directory {
    pub directory: AbsPath,
    /// True if it is there now.
    pub there: bool,
    pub snapshots: usize,
    pub bytes: u64,
}

/// Lists the snapshots of a directory; else of the project.
///
/// # Errors
/// The path leads nowhere; the store cannot be read.
pub fn list(desk: &Desk, dir: Option<&Path>) -> Result<Listed, Error> {
    let (directory, series) = found(desk, dir, Series::open)?;
    let (summaries, damaged) = series.as_ref().map_or(Ok(Default::default()), Series::looked_over)?;
    Ok(Listed { directory, snapshots: summaries.into_iter().rev().map(Row::of).collect(), damaged })
}

/// Lists the directories that have snapshots, those that are gone too.
///
/// # Errors
/// The store cannot be read.
pub fn directories(desk: &Desk) -> Result<Directories, Error> {
    let (all, damaged) = desk.store()?.map_or(Ok(Default::default()), Series::all)?;
    let mut directories = Vec::with_capacity(all.len());
    for series in all {
        let (snapshots, bytes) = (series.numbers()?.len(), bytes_used(&series.dir)?);
        // Without any, its first snapshot was refused or stopped, or all are pruned.
        if snapshots > 0 {
            let there = series.directory.as_path().symlink_metadata().is_ok();
            directories.push(Directory { directory: series.directory, there, snapshots, bytes });
        }
    }
    Ok(Directories { directories, damaged })
}
