//! `status`: how things stand, and what to do about it.

use std::fmt::Display;

use super::agent::turns;
use super::list::say_damaged;
use super::run::service;
use super::steps::words;
use super::waiting::lines;
use super::{cut_run, recovered};
use crate::compare::cut;
use crate::engine::recover::recovery;
use crate::error::{Error, Kind, command};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures;
use crate::session::{Header, Id};
use crate::snapshot::Fault;
use crate::verb::run::cut_off::{is_cut_off, record};
use crate::verb::status as verb;
use crate::verb::{Known, Overview, Room, Running};

pub fn status(call: &Call) -> Result<Ended, Error> {
    let (path, store) = (call.store_path()?, call.store()?);
    let overview = verb::status(Known {
        fs: &call.fs,
        path,
        store,
        warn_bytes: call.config.warn_size.value,
        journaled: store.map_or(Ok(Vec::new()), recovery::interrupted)?,
        so_far: &|store, header| call.listed_so_far(store, header),
    })?;
    if call.out.is_text() {
        print(call, &overview);
    }
    say_damaged(call, &overview.damaged);
    if !call.out.is_text() {
        call.out.document(&overview);
    }
    let is_whole = overview.damaged.is_empty() && overview.snapshots.damaged.is_empty();
    Ok(if is_whole { Ended::Done } else { Ended::With(Kind::LeftOut) })
}

fn print(call: &Call, overview: &Overview) {
    print_counts(call, overview);
    turns::newest(call).iter().for_each(|newest| line(call, "agent", newest));
    for Running { session, changes, services } in &overview.running {
        let (id, changes) = (session.tail(), figures::count(*changes, "change"));
        line(call, "running", format_args!("{id}, {changes} so far: {}", command(format_args!("diff {id}"))));
        for service in services {
            line(call, "", figures::within(&format!("{}, {}", service::since(service), words(&service.argv)), SERVICE));
        }
    }
    print_old(call, &overview.old_pending);
    overview.interrupted.iter().for_each(|id| line(call, "interrupted", format_args!("{id}: {}", would(call, id))));
    for id in &overview.cut_off {
        let show = command(format_args!("show {}", id.tail()));
        line(call, "cut off", format_args!("{}: what its command had changed is held: {show}", id.tail()));
    }
    for (what, how) in overview.left.iter().filter_map(recovered::left_of) {
        line(call, "left", what);
        line(call, "", how);
    }
    overview.unconfirmed.iter().flat_map(lines).for_each(|text| line(call, "unconfirmed", text));
    print_prunable(call, overview);
    overview.snapshots.damaged.iter().for_each(|Fault { path, why }| call.out.warn(format_args!("{path}: {why}")));
}

/// The most columns of a service.
const SERVICE: usize = 66;

fn line(call: &Call, label: &str, text: impl Display) {
    call.out.line(format_args!("{label:<12} {text}"));
}

fn print_counts(call: &Call, Overview { store, sessions, steps, snapshots, .. }: &Overview) {
    let size = if store.exists { figures::bytes(store.bytes) } else { "does not exist yet; the first session makes it".into() };
    line(call, "store", format_args!("{} ({size})", call.out.place(&store.path)));
    let counts = sessions.iter().filter(|(_, n)| **n > 0);
    let counts = counts.map(|(status, n)| format!("{} {}", figures::grouped(*n as u64), status.word().replace('_', " ")));
    let counts: Vec<String> = counts.collect();
    line(call, "sessions", if counts.is_empty() { "none".into() } else { counts.join(", ") });
    if steps.sessions > 0 {
        let (keep, bytes) = (call.config.steps_keep.value, figures::bytes(call.config.steps_max_size.value));
        let (of, steps) = (figures::count(steps.sessions, "session"), figures::grouped(steps.steps));
        line(call, "steps", format_args!("{steps} of {of} (steps.keep {keep}, steps.max_size {bytes} of each)"));
    }
    let Room { directories, directories_gone, snapshots, bytes } = snapshots.room;
    if directories > 0 {
        let gone = if directories_gone > 0 { format!(", {directories_gone} no longer there") } else { String::new() };
        let (directories, bytes) = (figures::count(directories as u64, "directory"), figures::bytes(bytes));
        line(call, "snapshots", format_args!("{} of {directories}{gone} ({bytes})", figures::grouped(snapshots as u64)));
    }
}

/// Prints the commands for each: its user may not remember what it holds.
fn print_old(call: &Call, old: &[Header]) {
    /// The most that are named.
    const NAMED: usize = 5;
    let now = crate::fs::now().s;
    let most = call.out.limit();
    let (named, more) = cut(old.len(), if most == usize::MAX { most } else { most.min(NAMED) });
    for header in &old[..named] {
        let (id, days) = (header.id.tail(), (now.saturating_sub(header.changed.s) / 86_400).unsigned_abs());
        let [show, discard] = ["show", "discard"].map(|verb| command(format_args!("{verb} {id}")));
        line(call, "pending", format_args!("{id} for {}: {show}, {discard}", figures::count(days, "day")));
    }
    if more > 0 {
        line(call, "", figures::more(more, &command("list --all --status pending")));
    }
}

/// Describes what recovery would do.
fn would(call: &Call, id: &Id) -> String {
    let store = call.store().ok().flatten();
    let would = store.and_then(|store| match is_cut_off(store, id) {
        true => Some(cut_run::would(id, record(store, id).as_ref())),
        false => recovered::would(store, id),
    });
    would.unwrap_or_default()
}

/// Prints what could go, if something can that nothing needs, or if the store is too large.
fn print_prunable(call: &Call, Overview { store, snapshots, prunable, .. }: &Overview) {
    let could_go = |n: usize, bytes: u64, what: &str, ways: &[String]| {
        if n > 0 {
            line(call, "could free", format_args!("{}, {what}", figures::bytes(bytes)));
            ways.iter().for_each(|way| line(call, "", way));
        }
    };
    let sessions = |n: usize, bytes: u64, what: &str, ways: &[String]| {
        could_go(n, bytes, &format!("{}: {what}", figures::count(n as u64, "session")), ways);
    };
    if store.too_large {
        call.out.warn(format_args!("the store is above store.warn_size ({})", figures::bytes(store.warn_bytes)));
    }
    if store.too_large || prunable.unneeded_bytes > 0 {
        let finished = "finished; pruning ends redo";
        sessions(prunable.unneeded, prunable.unneeded_bytes, finished, &ways_of_finished(call));
    }
    if store.too_large {
        let (discard, prune) = (command("discard ID"), command("prune --checkpoints --older-than 30d --committed"));
        sessions(prunable.pending, prunable.pending_bytes, "pending; what they hold is lost", &[discard.into()]);
        sessions(prunable.needed, prunable.needed_bytes, "committed; pruning ends rollback", &[prune.into()]);
        let Room { snapshots, bytes, .. } = snapshots.room;
        let prune = format!("{} ({} shows of which)", command("prune --snapshots DIR"), command("snapshot list --all"));
        could_go(snapshots, bytes, &figures::count(snapshots as u64, "snapshot"), &[prune]);
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
