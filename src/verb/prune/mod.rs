//! `prune`: drops what nothing needs any more: of one kind, or all that the settings let go of.

mod damaged;
pub mod kind;
pub mod question;
pub mod report;
pub mod sessions;
mod settings;
mod snapshots;

use std::path::Path;

use super::desk::Desk;
use crate::error::Error;
use crate::snapshot::Which;
use kind::Kind;
use report::Pruned;
use sessions::Wanted;

/// The kind to prune, and which of it.
pub enum What<'a> {
    /// Sessions, or what they keep.
    Sessions(Kind, Wanted),
    /// Snapshots of a directory, else of the project; without conditions by the settings.
    Snapshots { dir: Option<&'a Path>, which: Option<Which>, dry_run: bool },
    /// All snapshots of a directory.
    Series { dir: &'a Path, dry_run: bool },
    /// All that the settings let go of.
    BySettings { dry_run: bool },
}

/// Prunes.
///
/// # Errors
/// Those of each kind.
pub fn prune(desk: &Desk, what: &What<'_>) -> Result<Pruned, Error> {
    Ok(match what {
        What::Sessions(kind, wanted) => Pruned::Sessions(sessions::prune(desk, *kind, wanted)?),
        What::Snapshots { dir, which, dry_run } => Pruned::Snapshots(snapshots::prune(desk, *dir, which.clone(), *dry_run)?),
        What::Series { dir, dry_run } => Pruned::Snapshots(snapshots::drop_all(desk, dir, *dry_run)?),
        What::BySettings { dry_run } => Pruned::All(settings::prune(desk, *dry_run)?),
    })
}
