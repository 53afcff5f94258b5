//! `status`: how things stand, and what to do about it. Reads headers, heads of snapshots, names of journals, and the
//! changes of commands that run.

use serde::Serialize;

use super::brief::{self, List, Place, is_default};
use super::call::Call;
use super::ended::Ended;
use super::list::say_damaged;
use super::waiting::lines;
use super::{args, cut_runs, recovered, text};
use crate::diff::shown::{cut, cut_off as cut_text};
use crate::engine::report::Left;
use crate::error::{Error, Kind, command};
use crate::fs::path::AbsPath;
use crate::session::header::{Header, Status};
use crate::session::id::Id;
use crate::session::opened::Session;
use crate::session::prune;
use crate::session::running;
use crate::session::store::{self, Store};
use crate::snapshot::prune::used;
use crate::snapshot::series::{Broken, Series};
use crate::verb::standing::{Standing, cut_off};
use crate::verb::waiting::{Waiting, waiting};

#[derive(Serialize)]
struct Whole<'a> {
    store: StoreRow<'a>,
    sessions: Counts,
    steps: Steps,
    running: &'a [Running],
    snapshots: &'a Snapshots,
    interrupted: &'a [Id],
    /// Sessions with paths where an interrupted operation could not be taken back; `list` has the paths.
    left: Vec<&'a Id>,
    unconfirmed: &'a [Waiting],
    damaged: &'a [store::Broken],
    prunable: Prunable,
    /// Pending sessions that were not changed for [`OLD`] seconds, the oldest first.
    old_pending: Vec<&'a Id>,
}

/// The beginning of a page.
#[derive(Serialize)]
struct Brief<'a> {
    store: StoreRow<'a>,
    sessions: Counts,
    steps: Steps,
    snapshots: Room,
    prunable: Prunable,
}

/// [`Snapshots`] without the damaged ones.
#[derive(Serialize)]
struct Room {
    directories: usize,
    directories_gone: usize,
    snapshots: usize,
    bytes: u64,
}

impl Room {
    fn of(all: &Snapshots) -> Self {
        let Snapshots { directories, directories_gone, snapshots, bytes, .. } = *all;
        Self { directories, directories_gone, snapshots, bytes }
    }
}

/// An item of a page: one of the lists of [`Whole`], and what it has.
#[derive(Default, Serialize)]
struct Matter<'a> {
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a AbsPath>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<brief::Seconds>,
    #[serde(skip_serializing_if = "is_default")]
    overdue: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

impl<'a> Matter<'a> {
    fn of(what: &'static str, session: &'a str) -> Self {
        Self { what, session: Some(session), ..Self::default() }
    }

    fn at(what: &'static str, path: &'a AbsPath) -> Self {
        Self { what, path: Some(path), ..Self::default() }
    }

    fn unconfirmed(waiting: &'a Waiting) -> Self {
        let why = waiting.failed.first().map(|why| cut_text(why, brief::TEXT));
        let due = Some(brief::Seconds(waiting.due));
        Self { due, overdue: waiting.overdue, why, ..Self::of("unconfirmed", waiting.session.as_str()) }
    }

    fn why(self, why: &str) -> Self {
        Self { why: Some(cut_text(why, brief::TEXT)), ..self }
    }

    fn name(&self) -> Vec<u8> {
        let path = self.path.map_or(&b""[..], AbsPath::as_bytes);
        let why = self.path.and(self.why.as_deref()).unwrap_or_default();
        [self.what.as_bytes(), self.session.unwrap_or_default().as_bytes(), path, why.as_bytes()].join(&0)
    }
}

#[derive(Serialize)]
struct StoreRow<'a> {
    path: &'a AbsPath,
    exists: bool,
    /// Bytes of content in sessions, checkpoints and snapshots.
    bytes: u64,
    warn_bytes: u64,
    too_large: bool,
}

/// The number of sessions of each status.
#[derive(Default, Serialize)]
struct Counts {
    running: usize,
    pending: usize,
    committed: usize,
    rolled_back: usize,
    discarded: usize,
}

/// The steps of sessions in which more than one command ran.
#[derive(Default, Clone, Copy, Serialize)]
struct Steps {
    sessions: u64,
    /// The number of their steps, but for those that were merged into others.
    steps: u64,
}

/// A session in which a command runs, with what it has changed so far.
#[derive(Serialize)]
struct Running {
    session: Id,
    changes: u64,
}

impl Running {
    fn all(call: &Call, store: &Store, headers: &[Header]) -> Vec<Self> {
        let so_far = headers.iter().filter_map(|header| call.listed_so_far(store, header));
        so_far.map(|Session { header, .. }| Self { session: header.id, changes: header.counts.changes }).collect()
    }

    fn print(&self, call: &Call) {
        let (id, changes) = (self.session.tail(), text::count(self.changes, "change"));
        call.out.line(format_args!("running      {id}, {changes} so far: {}", command(format_args!("diff {id}"))));
    }
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

#[derive(Default, Serialize)]
struct Snapshots {
    directories: usize,
    /// The number of these directories that do not exist now.
    directories_gone: usize,
    snapshots: usize,
    bytes: u64,
    damaged: Vec<Left>,
}

/// The sessions and checkpoints that prunes would drop, and their bytes.
#[derive(Default, Serialize)]
struct Prunable {
    /// Sessions that neither a commit nor a rollback needs: `prune --sessions`.
    unneeded: usize,
    unneeded_bytes: u64,
    pending: usize,
    pending_bytes: u64,
    /// Checkpoints that a rollback needs: `prune --checkpoints ID`, or `--committed`.
    needed: usize,
    needed_bytes: u64,
    /// Bytes of all sessions.
    #[serde(skip)]
    all_bytes: u64,
}

/// Seconds after which a pending session is probably forgotten: a week.
const OLD: i64 = 7 * 86_400;

/// The pending sessions that are old, the oldest first.
fn old(headers: &[Header]) -> Vec<&Header> {
    let now = crate::fs::now().s;
    let is_old = |header: &&Header| header.status() == Status::Pending && now.saturating_sub(header.changed.s) > OLD;
    let mut old: Vec<&Header> = headers.iter().filter(is_old).collect();
    old.sort_by_key(|header| header.changed.s);
    old
}

/// Prints the commands for each: its user may not remember what it holds.
fn print_old(call: &Call, old: &[&Header]) {
    /// The most that are named.
    const NAMED: usize = 5;
    let now = crate::fs::now().s;
    let most = call.out.limit();
    let (named, more) = cut(old.len(), if most == usize::MAX { most } else { most.min(NAMED) });
    for header in &old[..named] {
        let (id, days) = (header.id.tail(), (now.saturating_sub(header.changed.s) / 86_400).unsigned_abs());
        let (show, discard) = (command(format_args!("show {id}")), command(format_args!("discard {id}")));
        call.out.line(format_args!("pending      {id} for {}: {show}, {discard}", text::count(days, "day")));
    }
    if more > 0 {
        call.out.line(format_args!("             {}", text::more(more, &command("list --all --status pending"))));
    }
}

pub fn status(call: &Call, page: &args::Page) -> Result<Ended, Error> {
    let path = call.store_path()?;
    let store = call.store()?;
    let (headers, broken, journaled) = match store {
        Some(store) => {
            let (headers, broken) = store.headers()?;
            let mut interrupted = cut_off(store, crate::engine::recover::interrupted(store)?);
            interrupted.extend(running::cut_off(store)?);
            (headers, broken, interrupted)
        }
        None => Default::default(),
    };
    let mut counts = Counts::default();
    for header in &headers {
        match header.status() {
            Status::Running if store.is_some_and(|store| is_ended_elsewhere(store, header)) => counts.pending += 1,
            Status::Running => counts.running += 1,
            Status::Pending => counts.pending += 1,
            Status::Committed => counts.committed += 1,
            Status::RolledBack => counts.rolled_back += 1,
            Status::Discarded => counts.discarded += 1,
        }
    }
    let running = store.map(|store| Running::all(call, store, &headers)).unwrap_or_default();
    let old = old(&headers);
    let left: Vec<&Header> = headers.iter().filter(|header| !header.left.is_empty() && header.discarded.is_none()).collect();
    let unconfirmed = store.map_or(Ok(Vec::new()), waiting)?;
    let prunable = store.map_or(Ok(Prunable::default()), |store| prunable(store, &headers))?;
    let snapshots = store.map_or(Ok(Snapshots::default()), snapshots)?;
    let bytes = snapshots.bytes + prunable.all_bytes;
    let warn_bytes = call.config.warn_size.value;
    let row = StoreRow { path: &path, exists: store.is_some(), bytes, warn_bytes, too_large: bytes > warn_bytes };
    if call.out.is_text() {
        print(
            call,
            store,
            &row,
            (&counts, Steps::of(&headers), &running, &snapshots),
            (&journaled, &left),
            &unconfirmed,
            (&prunable, &old),
        );
        snapshots.damaged.iter().for_each(|Left { path, why }| call.out.warn(format_args!("{path}: {why}")));
    }
    say_damaged(call, &broken);
    if page.brief {
        let mut matters: Vec<Matter> =
            broken.iter().map(|store::Broken { name, why }| Matter::of("damaged", name).why(why)).collect();
        matters.extend(snapshots.damaged.iter().map(|Left { path, why }| Matter::at("damaged", path).why(why)));
        matters.extend(journaled.iter().map(|id| Matter::of("interrupted", id.as_str())));
        matters.extend(unconfirmed.iter().map(Matter::unconfirmed));
        matters.extend(left.iter().map(|header| Matter::of("left", header.id.as_str())));
        let runs = running.iter().map(|run| Matter { changes: Some(run.changes), ..Matter::of("running", run.session.as_str()) });
        matters.extend(runs);
        matters.extend(old.iter().map(|header| Matter::of("old_pending", header.id.as_str())));
        let room = Room::of(&snapshots);
        let head = Brief { store: row, sessions: counts, steps: Steps::of(&headers), snapshots: room, prunable };
        let of = vec![&b"status"[..], path.as_bytes()];
        let list = List { key: "matters", of, count: matters.len() };
        let names: Vec<Vec<u8>> = matters.iter().map(Matter::name).collect();
        brief::print(call, &list, page.after.as_deref(), &head, |i| Place::Name(&names[i]), |i| Ok(&matters[i]))?;
    } else if !call.out.is_text() {
        call.out.document(&Whole {
            store: row,
            sessions: counts,
            steps: Steps::of(&headers),
            running: &running,
            snapshots: &snapshots,
            interrupted: &journaled,
            left: left.iter().map(|header| &header.id).collect(),
            unconfirmed: &unconfirmed,
            damaged: &broken,
            prunable,
            old_pending: old.iter().map(|header| &header.id).collect(),
        });
        brief::offer(call, "status --brief");
    }
    let whole = broken.is_empty() && snapshots.damaged.is_empty();
    Ok(if whole { Ended::Done } else { Ended::With(Kind::LeftOut) })
}

/// The room that the snapshots take, by names and stats; and those that are unreadable, by their heads and tails.
fn snapshots(store: &Store) -> Result<Snapshots, Error> {
    let (all, broken) = Series::all(store)?;
    let mut sum = Snapshots { directories: all.len(), ..Snapshots::default() };
    for series in &all {
        let (found, broken) = series.summaries()?;
        sum.snapshots += found.len() + broken.len();
        sum.bytes += used(&series.dir)?;
        sum.directories_gone += usize::from(series.directory.as_path().symlink_metadata().is_err());
        let why = |broken: Broken| format!("of its snapshots, {} cannot be read: {}", broken.n, broken.why);
        sum.damaged.extend(broken.into_iter().map(|broken| Left { path: series.directory.clone(), why: why(broken) }));
    }
    for name in broken {
        let below = [b"snapshots/", name.as_bytes()].concat();
        // If this is no directory, the room it takes does not count.
        sum.bytes += store.dir.open_below(&below).map_or(Ok(0), |dir| used(&dir))?;
        let path = AbsPath::parse([store.path.as_bytes(), b"/", &*below].concat());
        let why = "the directory of these snapshots is unknown".into();
        sum.damaged.push(Left { path: path.unwrap_or_else(|_| store.path.clone()), why });
    }
    Ok(sum)
}

/// True if its run was ended by a restart of the machine: it counts as pending. If the session is gone or unreadable, its header decides.
fn is_ended_elsewhere(store: &Store, header: &Header) -> bool {
    Standing::of(store, header, &[]).is_ok_and(|standing| standing.word == "pending")
}

fn prunable(store: &Store, headers: &[Header]) -> Result<Prunable, Error> {
    let mut sum = Prunable::default();
    for header in headers {
        let bytes = prune::used(store, &header.id)?;
        sum.all_bytes += bytes;
        if header.status() == Status::Running {
            continue;
        }
        if prune::is_needed(header) {
            (sum.needed, sum.needed_bytes) = (sum.needed + 1, sum.needed_bytes + bytes);
        } else if crate::session::prune::is_awaited(header) {
            (sum.pending, sum.pending_bytes) = (sum.pending + 1, sum.pending_bytes + bytes);
        } else if super::prune::is_unneeded(store, header)? {
            (sum.unneeded, sum.unneeded_bytes) = (sum.unneeded + 1, sum.unneeded_bytes + bytes);
        }
    }
    Ok(sum)
}

fn print(
    call: &Call,
    opened: Option<&Store>,
    store: &StoreRow,
    (counts, steps, running, snapshots): (&Counts, Steps, &[Running], &Snapshots),
    (journaled, left): (&[Id], &[&Header]),
    unconfirmed: &[Waiting],
    (prunable, old): (&Prunable, &[&Header]),
) {
    let held = text::bytes(store.bytes);
    let size = if store.exists { held } else { "not there yet; the first session makes it".into() };
    call.out.line(format_args!("store        {} ({size})", call.out.place(store.path)));
    let counts = [
        (counts.running, "running"),
        (counts.pending, "pending"),
        (counts.committed, "committed"),
        (counts.rolled_back, "rolled back"),
        (counts.discarded, "discarded"),
    ];
    let parts: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{} {word}", text::grouped(*n as u64))).collect();
    call.out.line(format_args!("sessions     {}", if parts.is_empty() { "none".into() } else { parts.join(", ") }));
    if steps.sessions > 0 {
        let (keep, bytes) = (call.config.steps_keep.value, text::bytes(call.config.steps_max_size.value));
        let of = text::count(steps.sessions, "session");
        let steps = text::grouped(steps.steps);
        call.out.line(format_args!("steps        {steps} of {of} (steps.keep {keep}, steps.max_size {bytes} of each)"));
    }
    if snapshots.directories > 0 {
        let Snapshots { directories, directories_gone, snapshots, bytes, .. } = *snapshots;
        let gone = if directories_gone > 0 { format!(", {directories_gone} not there now") } else { String::new() };
        let (directories, bytes) = (text::count(directories as u64, "directory"), text::bytes(bytes));
        let snapshots = text::grouped(snapshots as u64);
        call.out.line(format_args!("snapshots    {snapshots} of {directories}{gone} ({bytes})"));
    }
    super::agents::turns::newest(call).iter().for_each(|newest| call.out.line(format_args!("agent        {newest}")));
    running.iter().for_each(|running| running.print(call));
    print_old(call, old);
    for id in journaled {
        let what = opened.and_then(|store| cut_runs::would(store, id).or_else(|| recovered::would(store, id)));
        call.out.line(format_args!("interrupted  {id}: {}", what.unwrap_or_default()));
    }
    for (what, how) in left.iter().filter_map(|header| recovered::left_of(header)) {
        call.out.line(format_args!("left         {what}"));
        call.out.line(format_args!("             {how}"));
    }
    for line in unconfirmed.iter().flat_map(lines) {
        call.out.line(format_args!("unconfirmed  {line}"));
    }
    if store.too_large {
        call.out.warn(format_args!("the store is above store.warn_size ({})", text::bytes(store.warn_bytes)));
    }
    if store.too_large || prunable.unneeded_bytes > 0 {
        let hint = |n: usize, bytes: u64, what: &str, ways: &[String]| {
            if n > 0 {
                let sessions = text::count(n as u64, "session");
                call.out.line(format_args!("could go     {}, {sessions}: {what}", text::bytes(bytes)));
                ways.iter().for_each(|way| call.out.line(format_args!("             {way}")));
            }
        };
        let finished = "finished; pruning also gives up redo";
        hint(prunable.unneeded, prunable.unneeded_bytes, finished, &ways_of_finished(call));
        if store.too_large {
            let (discard, prune) = ([command("discard ID")], [command("prune --checkpoints --older-than 30d --committed")]);
            hint(prunable.pending, prunable.pending_bytes, "pending; what they hold is lost", &discard);
            hint(prunable.needed, prunable.needed_bytes, "committed; this ends their rollback", &prune);
            if snapshots.snapshots > 0 {
                let count = text::count(snapshots.snapshots as u64, "snapshot");
                call.out.line(format_args!("could go     {}, {count}", text::bytes(snapshots.bytes)));
                let (prune, list) = (command("prune --snapshots DIR"), command("snapshot list --all"));
                call.out.line(format_args!("             {prune} ({list} shows of which)"));
            }
        }
    }
}

/// The ways to drop finished sessions. `prune` drops none unless the settings say which.
fn ways_of_finished(call: &Call) -> [String; 2] {
    let (prune, sessions) = (command("prune"), command("prune --sessions"));
    if call.config.keep.value.is_none() && call.config.older_than.value.is_none() {
        let keeps = format!("{prune} keeps them: no retention.* is set");
        return [keeps, format!("{sessions} --older-than 30d drops old, --keep 0 all")];
    }
    [format!("{prune} drops what the settings no longer keep"), format!("{sessions} --keep 0 drops them all")]
}
