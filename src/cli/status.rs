//! `status`: how things stand, and what to do about it. Reads headers and names of journals only.

use serde::Serialize;

use super::awaited::{self, Waiting};
use super::list::Damaged;
use super::problem::Problem;
use super::{Call, Ended, Standing, cut_off, recover, text};
use crate::error::Kind;
use crate::fs::path::AbsPath;
use crate::session::header::{Header, Status};
use crate::session::id::Id;
use crate::session::prune;
use crate::session::store::Store;

/// `{"schema":1,"store":{…},"sessions":{…},"interrupted":[…],"damaged":[…],"prunable":{…}}`.
#[derive(Serialize)]
struct Whole<'a> {
    store: StoreRow<'a>,
    sessions: Counts,
    interrupted: &'a [Id],
    unconfirmed: &'a [Waiting],
    damaged: &'a [Damaged<'a>],
    prunable: Prunable,
}

#[derive(Serialize)]
struct StoreRow<'a> {
    path: &'a AbsPath,
    exists: bool,
    /// Bytes of content that the sessions hold and keep.
    bytes: u64,
    warn_bytes: u64,
    too_large: bool,
}

/// How many sessions have each status.
#[derive(Default, Serialize)]
struct Counts {
    capturing: usize,
    pending: usize,
    committed: usize,
    partial: usize,
    rolled_back: usize,
    discarded: usize,
}

/// What prunes would free.
#[derive(Default, Serialize)]
struct Prunable {
    /// Sessions that neither a commit nor a rollback needs: `session prune`.
    unneeded: usize,
    unneeded_bytes: u64,
    /// Pending ones: `session prune ID`, `discard`.
    pending: usize,
    pending_bytes: u64,
    /// Checkpoints that a rollback needs: `checkpoint prune ID`.
    needed: usize,
    needed_bytes: u64,
}

/// Shows how things stand.
pub fn status(call: &Call) -> Result<Ended, Problem> {
    let path = call.store_path()?;
    let store = call.store()?;
    let (headers, broken, journaled) = match store {
        Some(store) => {
            let (headers, broken) = store.headers()?;
            (headers, broken, cut_off(store, crate::engine::recover::interrupted(store)?))
        }
        None => Default::default(),
    };
    let mut counts = Counts::default();
    for header in &headers {
        match header.status() {
            Status::Capturing if store.is_some_and(|store| is_ended_elsewhere(store, header)) => counts.pending += 1,
            Status::Capturing => counts.capturing += 1,
            Status::Pending => counts.pending += 1,
            Status::Committed => counts.committed += 1,
            Status::Partial => counts.partial += 1,
            Status::RolledBack => counts.rolled_back += 1,
            Status::Discarded => counts.discarded += 1,
        }
    }
    let (unconfirmed, unreadable) = store.map_or(Ok(Default::default()), awaited::waiting)?;
    let prunable = store.map_or(Ok(Prunable::default()), |store| prunable(store, &headers))?;
    let bytes = headers.iter().map(|header| header.sizes.all()).sum();
    let warn_bytes = call.config.warn_size.value;
    let row = StoreRow { path: &path, exists: store.is_some(), bytes, warn_bytes, too_large: bytes > warn_bytes };
    if call.out.is_text() {
        print(call, store, &row, &counts, &journaled, &unconfirmed, &prunable);
    }
    let mut damaged = Damaged::say_all(call, &broken);
    for (id, why) in &unreadable {
        call.out.warn(awaited::unreadable(id, why));
        damaged.push(Damaged::new(id.as_str(), why));
    }
    if !call.out.is_text() {
        call.out.document(&Whole {
            store: row,
            sessions: counts,
            interrupted: &journaled,
            unconfirmed: &unconfirmed,
            damaged: &damaged,
            prunable,
        });
    }
    Ok(if damaged.is_empty() { Ended::Done } else { Ended::With(Kind::LeftOut) })
}

/// A run of another boot counts as pending; one that was pruned meanwhile, or cannot be looked at, as its header has it.
fn is_ended_elsewhere(store: &Store, header: &Header) -> bool {
    Standing::of(store, header, &[]).is_ok_and(|standing| standing.word == "pending")
}

fn prunable(store: &Store, headers: &[Header]) -> Result<Prunable, Problem> {
    let mut sum = Prunable::default();
    for header in headers {
        if header.status() == Status::Capturing {
            continue;
        }
        if prune::is_needed(header) {
            (sum.needed, sum.needed_bytes) = (sum.needed + 1, sum.needed_bytes + header.sizes.all());
        } else if super::prune::is_awaited(header) {
            (sum.pending, sum.pending_bytes) = (sum.pending + 1, sum.pending_bytes + header.sizes.all());
        } else if super::prune::is_unneeded(store, header)? {
            (sum.unneeded, sum.unneeded_bytes) = (sum.unneeded + 1, sum.unneeded_bytes + header.sizes.all());
        }
    }
    Ok(sum)
}

fn print(
    call: &Call,
    opened: Option<&Store>,
    store: &StoreRow,
    counts: &Counts,
    journaled: &[Id],
    unconfirmed: &[Waiting],
    prunable: &Prunable,
) {
    let held = text::bytes(store.bytes);
    let size = if store.exists { held } else { "not there yet; the first session makes it".into() };
    call.out.line(format_args!("store        {} ({size})", store.path));
    let counts = [
        (counts.capturing, "capturing"),
        (counts.pending, "pending"),
        (counts.committed, "committed"),
        (counts.partial, "partial"),
        (counts.rolled_back, "rolled back"),
        (counts.discarded, "discarded"),
    ];
    let parts: Vec<String> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    call.out.line(format_args!("sessions     {}", if parts.is_empty() { "none".into() } else { parts.join(", ") }));
    for id in journaled {
        let what = opened.and_then(|store| recover::would(store, id));
        call.out.line(format_args!("interrupted  {id}: {}", what.unwrap_or_default()));
    }
    for line in unconfirmed.iter().flat_map(Waiting::lines) {
        call.out.line(format_args!("unconfirmed  {line}"));
    }
    if store.too_large {
        call.out.warn(format_args!("the store is above store.warn_size ({})", text::bytes(store.warn_bytes)));
    }
    if store.too_large || prunable.unneeded_bytes > 0 {
        let hint = |n: usize, bytes: u64, command: &str, what: &str| {
            if n > 0 {
                call.out.line(format_args!(
                    "prunable     {}: {command} ({}, {what})",
                    text::bytes(bytes),
                    text::count(n as u64, "session")
                ));
            }
        };
        hint(prunable.unneeded, prunable.unneeded_bytes, "recant session prune --keep 0", "needed by nothing");
        if store.too_large {
            hint(prunable.pending, prunable.pending_bytes, "recant discard ID", "pending: what they hold is lost");
            hint(prunable.needed, prunable.needed_bytes, "recant checkpoint prune ID…", "ends their rollback");
        }
    }
}
