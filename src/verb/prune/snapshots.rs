//! `prune --snapshots`: snapshots of a directory, by number, by conditions, by the settings, or all.

use std::path::Path;

use super::question::Prune;
use super::report::Snapshots;
use crate::error::Error;
use crate::fs::AbsPath;
use crate::snapshot::{Pruned, Series, Which, none, prune_snapshots};
use crate::verb::desk::Desk;
use crate::verb::error::{is_needed, others_than_asked};
use crate::verb::fact::Fact;
use crate::verb::question::Question;
use crate::verb::signals::finished;
use crate::verb::snapshot::fact::SnapshotFact;
use crate::verb::snapshot::prunable::{by_settings, chosen};
use crate::verb::snapshot::series::{found, needed, series};

/// Prunes snapshots of a directory, else of the project. Without `which` the settings choose.
///
/// # Errors
/// There are none; a named one cannot go; the answer is no.
pub fn prune(desk: &Desk, dir: Option<&Path>, which: Option<Which>, dry_run: bool) -> Result<Snapshots, Error> {
    let (store, series) = series(desk, dir)?;
    if !dry_run {
        desk.prepare_to_change(store)?;
    }
    let which = which.unwrap_or_else(|| {
        let (keep, max_size) = (&desk.config.snapshot_keep, &desk.config.snapshot_max_size);
        let (keep, max_size) = ((keep.value, keep.from), (max_size.value, max_size.from));
        desk.caller.tell(Fact::Snapshot(SnapshotFact::SnapshotLimits { keep, max_size }));
        by_settings(desk)
    });
    let numbers = chosen(desk, &series, &which)?;
    if dry_run {
        return Ok(pruned(series.directory.clone(), dry_run, prune_snapshots::preview(&series, &numbers)?));
    }
    if !numbers.is_empty() {
        desk.confirm(Question::Prune(Prune::Snapshots { directory: &series.directory, numbers: &numbers }))?;
    }
    let done = finished(desk, || drop_shown(desk, &series, &which, &numbers))?;
    Ok(pruned(series.directory.clone(), dry_run, done))
}

/// Drops the snapshots that were shown and still may go. Those that have come to fit since were not asked about.
pub(super) fn drop_shown(desk: &Desk, series: &Series, which: &Which, shown: &[u64]) -> Result<Pruned, Error> {
    let lock = series.lock(&desk.fs)?;
    let mut gone = chosen(desk, series, which)?;
    gone.retain(|n| shown.contains(n));
    prune_snapshots::prune(&desk.fs, series, &lock, &gone)
}

fn pruned(directory: AbsPath, dry_run: bool, Pruned { gone, freed, kept }: Pruned) -> Snapshots {
    Snapshots { directory, dry_run, pruned: gone, bytes: freed, kept }
}

/// Drops all snapshots of a directory, also if they cannot be read.
///
/// # Errors
/// There are none; one is needed; there are others by now than were asked about; the answer is no.
pub fn drop_all(desk: &Desk, dir: &Path, dry_run: bool) -> Result<Snapshots, Error> {
    let (directory, series) = found(desk, Some(dir), Series::unread)?;
    let missing = || none(&directory);
    let (store, series) = (desk.store()?.ok_or_else(missing)?, series.ok_or_else(missing)?);
    if !dry_run {
        desk.prepare_to_change(store)?;
    }
    let (gone, bytes) = (series.numbers()?, prune_snapshots::bytes_used(&series.dir)?);
    let all = Snapshots { directory: directory.clone(), dry_run, pruned: gone, bytes, kept: None };
    if dry_run {
        return Ok(all);
    }
    desk.confirm(Question::Prune(Prune::Series { directory: &directory, count: all.pruned.len(), bytes }))?;
    finished(desk, || {
        let lock = series.lock(&desk.fs)?;
        if let Some(n) = needed(desk, &directory)?.first() {
            return Err(is_needed(&directory, *n));
        }
        if series.numbers()? != all.pruned {
            return Err(others_than_asked(&directory));
        }
        series.remove(&desk.fs, store, &lock)?;
        drop(lock);
        desk.clear_away(store);
        Ok(all)
    })
}
