//! No verb: how things stand in this project, each with its next commands. Reads headers, names of journals, and the changes of commands
//! that run.

use serde::{Serialize, Serializer};

use super::act::unconfirmed::Waiting;
use super::act::unconfirmed::waiting;
use super::desk::Desk;
use super::resolve::scope::Scope;
use super::resolve::service_rows::{ServiceRow, services_of};
use super::resolve::standing::Standing;
use super::resolve::standing::cut_off;
use crate::engine::recover::recovery;
use crate::error::{Error, command};
use crate::fs::AbsPath;
use crate::session::{Checkpoint, Counts, Failed, Header, Id, Status, Store, is_awaited, run_in_place};
use crate::snapshot::{Head, Series};

/// The standing of a project, as JSON has it: docs/json.md.
#[derive(Default, Serialize)]
pub struct Here {
    /// `None` if another machine works on this one.
    pub project: Option<AbsPath>,
    /// True if nothing was ever held in this store.
    pub fresh: bool,
    /// The sessions of this project, newest first: pending, running, committed, and rolled back with changes never committed.
    pub sessions: Vec<Row>,
    pub interrupted: Interrupted,
    pub unconfirmed: Vec<Waiting>,
    /// The newest snapshot of the project that somebody asked for; its number in JSON.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number")]
    pub snapshot: Option<Head>,
    /// The number of pending sessions of other projects.
    pub elsewhere: usize,
    /// The number of sessions that cannot be read.
    #[serde(skip)]
    pub damaged: usize,
}

fn number<S: Serializer>(head: &Option<Head>, serializer: S) -> Result<S::Ok, S::Error> {
    head.as_ref().map(|head| head.n).serialize(serializer)
}

/// A session, and the commands that may come next.
#[derive(Serialize)]
pub struct Row {
    pub id: Id,
    pub name: Option<String>,
    pub status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<Failed>,
    pub changes: u64,
    /// The number of paths where an interrupted operation could not be taken back.
    pub left: usize,
    #[serde(skip)]
    pub counts: Counts,
    pub command: Option<String>,
    /// The services that run in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceRow>,
    pub next: Vec<String>,
}

/// Operations of sessions, and runs of `run --in` by their session to be, that were cut off.
#[derive(Default)]
pub struct Interrupted {
    pub operations: Vec<Id>,
    pub runs: Vec<Id>,
}

impl Interrupted {
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty() && self.runs.is_empty()
    }
}

impl Serialize for Interrupted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.operations.iter().chain(&self.runs))
    }
}

/// Looks at a project. `directory`: the one whose newest snapshot is looked for.
///
/// # Errors
/// The store cannot be read.
pub fn here(desk: &Desk, directory: Option<&AbsPath>) -> Result<Here, Error> {
    let scope = Scope::of(desk)?;
    let mut here = Here { project: scope.project.clone(), fresh: true, ..Here::default() };
    let Some(store) = desk.store()? else { return Ok(here) };
    let (headers, broken) = store.headers()?;
    let operations = cut_off(store, recovery::interrupted(store)?);
    here.interrupted = Interrupted { operations, runs: run_in_place::cut_off(store)? };
    here.unconfirmed = waiting(store)?;
    let of_use = |header: &&Header| {
        header.discarded.is_none() && (header.counts.changes > 0 || header.steps.is_some() || header.uncollected)
    };
    let (near, far): (Vec<&Header>, Vec<&Header>) =
        headers.iter().rev().filter(of_use).partition(|header| scope.has(store, header));
    let rows = near.iter().filter_map(|header| row(desk, store, header, &here.interrupted.operations).transpose());
    here.sessions = rows.collect::<Result<_, _>>()?;
    here.elsewhere = far.iter().filter(|header| header.status() == Status::Pending).count();
    here.damaged = broken.len();
    here.fresh = headers.is_empty() && broken.is_empty() && here.interrupted.runs.is_empty();
    here.snapshot = directory.and_then(|directory| newest_snapshot(store, directory));
    Ok(here)
}

/// The row of a session; `None` if nothing is left to do with it.
fn row(desk: &Desk, store: &Store, header: &Header, interrupted: &[Id]) -> Result<Option<Row>, Error> {
    let Standing { word: status, failed, .. } = Standing::of(store, header, interrupted)?;
    let Some(verbs) = next(header, status) else { return Ok(None) };
    let so_far = desk.listed_so_far(store, header);
    let now = so_far.as_ref().map_or(header, |session| &session.header);
    Ok(Some(Row {
        id: header.id.clone(),
        name: header.name.clone(),
        status,
        failed,
        changes: now.counts.changes,
        left: header.left.len(),
        counts: header.counts,
        command: now.command.clone(),
        services: so_far.as_ref().map(|_| services_of(store, &header.id)).unwrap_or_default(),
        next: verbs.iter().map(|verb| command(format_args!("{verb} {}", header.id.tail())).into()).collect(),
    }))
}

/// The verbs that may come next; `None` if nothing is left to do.
fn next(header: &Header, status: &str) -> Option<&'static [&'static str]> {
    // Nothing brings back what was there.
    let is_pruned = header.checkpoint == Checkpoint::Pruned;
    Some(match header.status() {
        Status::Running if status == "running" => &["diff"],
        Status::Running | Status::Pending => &["diff", "commit", "discard"],
        Status::Committed if is_pruned && header.is_all_in() => return None,
        Status::Committed if is_pruned => &["show", "commit"],
        Status::Committed if header.is_in_part() => &["show", "commit", "rollback"],
        Status::Committed => &["rollback"],
        // The rest was never on the tree, and is still held.
        Status::RolledBack if is_awaited(header) => &["commit", "discard"],
        Status::RolledBack if !header.left.is_empty() => &["show", "redo"],
        Status::RolledBack | Status::Discarded => return None,
    })
}

/// The newest snapshot of a directory that somebody asked for.
fn newest_snapshot(store: &Store, directory: &AbsPath) -> Option<Head> {
    let series = Series::open(store, directory).ok()??;
    let newest = series.find("last").ok()?;
    Some(series.summary(newest).ok()?.head)
}
