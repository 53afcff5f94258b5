//! The snapshots that go: by the settings, by conditions, or by number; but never one that is still needed.

use super::fact::SnapshotFact;
use super::series::needed;
use crate::error::Error;
use crate::snapshot::{Conditions, Locked, Maker, Series, Which, prune_snapshots};
use crate::verb::desk::Desk;
use crate::verb::error::is_needed;
use crate::verb::fact::Fact;

/// Drops the snapshots beyond `keep`, or beyond the settings, but for those that are `spared`; an agent's call drops agents' alone. Returns
/// the dropped ones.
///
/// # Errors
/// A snapshot cannot be read or removed.
pub fn retain(desk: &Desk, series: &Series, lock: &Locked, keep: Option<usize>, spared: &[u64]) -> Result<Vec<u64>, Error> {
    let which = match keep {
        Some(keep) => Which::Any(Conditions { keep: Some(keep), ..limits(desk) }),
        None if desk.caller.variable().is_some() => Which::Settings(limits(desk), Maker::Agent),
        None => by_settings(desk),
    };
    let mut gone = chosen(desk, series, &which)?;
    gone.retain(|n| !spared.contains(n));
    if gone.is_empty() {
        return Ok(gone);
    }
    let pruned = prune_snapshots::prune(&desk.fs, series, lock, &gone)?;
    if let Some(why) = pruned.kept {
        desk.caller.tell(Fact::Snapshot(SnapshotFact::ContentStays(&why)));
    }
    Ok(pruned.gone)
}

/// The snapshots that retention dropped. An error is a warning: the new snapshot is made, and the next one drops the old ones.
pub fn dropped(desk: &Desk, series: &Series, pruned: Result<Vec<u64>, Error>) -> Vec<u64> {
    pruned.unwrap_or_else(|why| {
        desk.caller.tell(Fact::Snapshot(SnapshotFact::OldSnapshotsStay { directory: &series.directory, why: &why }));
        Vec::new()
    })
}

/// The limits of the settings, for persons' snapshots.
pub fn by_settings(desk: &Desk) -> Which {
    Which::Settings(limits(desk), Maker::Person)
}

fn limits(desk: &Desk) -> Conditions {
    let (keep, max_size) = (desk.config.snapshot_keep.value, desk.config.snapshot_max_size.value);
    Conditions { keep: Some(keep), before: None, max_size: Some(max_size) }
}

/// Chooses the snapshots to drop, but never one from which the session of a `run --in` is yet to be made.
///
/// # Errors
/// Such a one is named; a snapshot cannot be read.
pub fn chosen(desk: &Desk, series: &Series, which: &Which) -> Result<Vec<u64>, Error> {
    let mut chosen = prune_snapshots::choose(series, which)?;
    let needed = needed(desk, &series.directory)?;
    if let (Which::Named(_), Some(n)) = (which, chosen.iter().find(|n| needed.contains(n))) {
        return Err(is_needed(&series.directory, *n));
    }
    chosen.retain(|n| !needed.contains(n));
    Ok(chosen)
}
