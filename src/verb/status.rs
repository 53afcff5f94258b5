//! `status`: how things stand in the store. Reads headers, heads of snapshots, names of journals, and the changes of commands that run.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::act::unconfirmed::Waiting;
use super::act::unconfirmed::waiting;
use super::error::{snapshot_unread, snapshots_of_unknown};
use super::prunable::keeps_overwritten;
use super::resolve::service_rows::{ServiceRow, services_of};
use super::resolve::standing::Standing;
use super::resolve::standing::cut_off;
use crate::error::Error;
use crate::fs::{AbsPath, Fs};
use crate::session::{Broken, Failed, Header, Id, Session, Size, Status, Store, is_awaited, is_needed, run_in_place, sizes};
use crate::snapshot::{Fault, Series, bytes_used as used_by_snapshots, series as snapshots};

/// A store, and what others know of it.
pub struct Known<'k> {
    pub fs: &'k Fs,
    pub path: AbsPath,
    /// `None` if there is none yet.
    pub store: Option<&'k Store>,
    /// The bytes above which it is too large.
    pub warn_bytes: u64,
    /// The sessions with an operation that is under way, or was interrupted.
    pub journaled: Vec<Id>,
    /// Looks at a session with what the command that runs in it has changed so far; `None` if none runs in it.
    pub so_far: &'k dyn Fn(&Store, &Header) -> Option<Session>,
}

/// The standing of a store, as JSON has it: docs/json.md.
#[derive(Debug, Serialize)]
pub struct Overview {
    pub store: StoreRow,
    pub sessions: BTreeMap<Status, usize>,
    pub steps: Steps,
    pub running: Vec<Running>,
    pub snapshots: Snapshots,
    /// The sessions, and runs on the real tree, that were cut off.
    pub interrupted: Vec<Id>,
    /// The pending sessions whose newest command was cut off.
    pub cut_off: Vec<Id>,
    /// Sessions with paths where an interrupted operation could not be taken back.
    #[serde(serialize_with = "ids")]
    pub left: Vec<Header>,
    pub unconfirmed: Vec<Waiting>,
    pub damaged: Vec<Broken>,
    pub prunable: Prunable,
    /// Pending sessions that were not changed for a week, the oldest first.
    #[serde(serialize_with = "ids")]
    pub old_pending: Vec<Header>,
}

fn ids<S: Serializer>(headers: &[Header], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(headers.iter().map(|header| &header.id))
}

#[derive(Debug, Serialize)]
pub struct StoreRow {
    pub path: AbsPath,
    pub exists: bool,
    /// Bytes of content in sessions, checkpoints and snapshots.
    pub bytes: u64,
    pub warn_bytes: u64,
    pub too_large: bool,
}

/// The steps of sessions in which more than one command ran.
#[derive(Debug, Default, Serialize)]
pub struct Steps {
    pub sessions: u64,
    /// The number of their steps, but for those that were merged into others.
    pub steps: u64,
}

/// A session in which a command runs, with what it has changed so far.
#[derive(Debug, Serialize)]
pub struct Running {
    pub session: Id,
    pub changes: u64,
    /// The services that run in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceRow>,
}

#[derive(Debug, Default, Serialize)]
pub struct Snapshots {
    #[serde(flatten)]
    pub room: Room,
    /// The directories whose snapshots cannot be read, or directories of the store.
    pub damaged: Vec<Fault>,
}

/// The room that snapshots take.
#[derive(Debug, Default, Serialize)]
pub struct Room {
    pub directories: usize,
    /// The number of these directories that do not exist now.
    pub directories_gone: usize,
    pub snapshots: usize,
    pub bytes: u64,
}

/// The sessions and checkpoints that prunes would drop, and their bytes.
#[derive(Debug, Default, Serialize)]
pub struct Prunable {
    /// Sessions that neither a commit nor a rollback needs.
    pub unneeded: usize,
    pub unneeded_bytes: u64,
    pub pending: usize,
    pub pending_bytes: u64,
    /// Checkpoints that a rollback needs.
    pub needed: usize,
    pub needed_bytes: u64,
}

/// Looks at a store.
///
/// # Errors
/// It cannot be read. A session or a snapshot that cannot be read is no error.
pub fn status(known: Known<'_>) -> Result<Overview, Error> {
    let Known { fs, path, store, warn_bytes, journaled, so_far } = known;
    let (headers, damaged) = of(store, Store::headers)?;
    let interrupted = of(store, |store| Ok([cut_off(store, journaled), run_in_place::cut_off(store)?].concat()))?;
    let sizes = of(store, |store| sizes(fs, store, &headers))?;
    let snapshots = of(store, Snapshots::of)?;
    let bytes = sizes.iter().fold(snapshots.room.bytes, |sum, size| sum.saturating_add(size.bytes));
    let running = |store: &Store, session: Session| Running {
        services: services_of(store, session.id()),
        changes: session.header.counts.changes,
        session: session.header.id,
    };
    Ok(Overview {
        store: StoreRow { path, exists: store.is_some(), bytes, warn_bytes, too_large: bytes > warn_bytes },
        sessions: counts(store, &headers),
        steps: Steps::of(&headers),
        running: of(store, |store| {
            Ok(headers.iter().filter_map(|header| so_far(store, header)).map(|of| running(store, of)).collect())
        })?,
        snapshots,
        interrupted,
        cut_off: of(store, |store| Ok(runs_cut_off(store, &headers)))?,
        left: headers.iter().filter(|header| !header.left.is_empty() && header.discarded.is_none()).cloned().collect(),
        unconfirmed: of(store, waiting)?,
        damaged,
        prunable: of(store, |store| Prunable::of(store, headers.iter().zip(sizes)))?,
        old_pending: old_pending(&headers),
    })
}

/// A fact about a store; of none yet, nothing.
fn of<T: Default>(store: Option<&Store>, look: impl FnOnce(&Store) -> Result<T, Error>) -> Result<T, Error> {
    store.map_or_else(|| Ok(T::default()), look)
}

/// The sessions whose newest command was cut off, collected or not. One that is gone meanwhile is none.
fn runs_cut_off(store: &Store, headers: &[Header]) -> Vec<Id> {
    let is_cut_off =
        |header: &&Header| Standing::of(store, header, &[]).is_ok_and(|standing| standing.failed == Some(Failed::CutOff {}));
    headers.iter().filter(is_cut_off).map(|header| header.id.clone()).collect()
}

fn old_pending(headers: &[Header]) -> Vec<Header> {
    /// Seconds after which a pending session is probably forgotten: a week.
    const OLD: i64 = 7 * 86_400;
    let now = crate::fs::now().s;
    let is_old = |header: &&Header| header.status() == Status::Pending && now.saturating_sub(header.changed.s) > OLD;
    let mut old: Vec<Header> = headers.iter().filter(is_old).cloned().collect();
    old.sort_by_key(|header| header.changed.s);
    old
}

/// The number of sessions of each status.
fn counts(store: Option<&Store>, headers: &[Header]) -> BTreeMap<Status, usize> {
    let all = [Status::Running, Status::Pending, Status::Committed, Status::RolledBack, Status::Discarded];
    let mut counts = BTreeMap::from(all.map(|status| (status, 0)));
    for header in headers {
        let has_ended = header.status() == Status::Running && store.is_some_and(|store| has_ended(store, header));
        *counts.entry(if has_ended { Status::Pending } else { header.status() }).or_default() += 1;
    }
    counts
}

/// True if its run was ended by a restart of the machine: it counts as pending. If the session is gone or unreadable, its header decides.
fn has_ended(store: &Store, header: &Header) -> bool {
    Standing::of(store, header, &[]).is_ok_and(|standing| standing.ended)
}

impl Steps {
    fn of(headers: &[Header]) -> Self {
        let steps = headers.iter().filter(|header| header.discarded.is_none()).filter_map(|header| header.steps.as_ref());
        steps.fold(Self::default(), |sum, of| Self {
            sessions: sum.sessions + 1,
            steps: sum.steps + u64::from(of.last - of.floor.saturating_sub(1)),
        })
    }
}

impl Snapshots {
    /// Their room by names and stats; those that are unreadable by their heads and tails.
    fn of(store: &Store) -> Result<Self, Error> {
        let (all, unknown) = Series::all(store)?;
        let mut sum = Self { room: Room { directories: all.len(), ..Room::default() }, damaged: Vec::new() };
        all.iter().try_for_each(|series| sum.add(series))?;
        unknown.iter().try_for_each(|name| sum.add_unknown(store, name))?;
        Ok(sum)
    }

    fn add(&mut self, series: &Series) -> Result<(), Error> {
        let (found, broken) = series.summaries()?;
        self.room.snapshots += found.len() + broken.len();
        self.room.bytes += used_by_snapshots(&series.dir)?;
        self.room.directories_gone += usize::from(series.directory.as_path().symlink_metadata().is_err());
        let fault = |one: &snapshots::Broken| Fault { path: series.directory.clone(), why: snapshot_unread(one.n, &one.why) };
        self.damaged.extend(broken.iter().map(fault));
        Ok(())
    }

    /// Adds those in a directory of the store which does not tell what they are of.
    fn add_unknown(&mut self, store: &Store, name: &str) -> Result<(), Error> {
        let below = [b"snapshots/", name.as_bytes()].concat();
        // If this is no directory, the room it takes does not count.
        self.room.bytes += store.dir.open_below(&below).map_or(Ok(0), |dir| used_by_snapshots(&dir))?;
        let path = AbsPath::parse([store.path.as_bytes(), b"/", &*below].concat()).unwrap_or_else(|_| store.path.clone());
        self.damaged.push(Fault { path, why: snapshots_of_unknown() });
        Ok(())
    }
}

impl Prunable {
    fn of<'h>(store: &Store, headers: impl Iterator<Item = (&'h Header, Size)>) -> Result<Self, Error> {
        let mut sum = Self::default();
        for (header, size) in headers.filter(|(header, _)| header.status() != Status::Running) {
            let (count, bytes) = if is_needed(header) {
                (&mut sum.needed, &mut sum.needed_bytes)
            } else if is_awaited(header) {
                (&mut sum.pending, &mut sum.pending_bytes)
            } else if !size.displaces || !keeps_overwritten(store, header)? {
                (&mut sum.unneeded, &mut sum.unneeded_bytes)
            } else {
                continue;
            };
            (*count, *bytes) = (*count + 1, bytes.saturating_add(size.bytes));
        }
        Ok(sum)
    }
}
