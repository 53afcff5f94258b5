//! The facts about snapshots that a verb tells while it works.

use crate::error::Error;
use crate::fs::AbsPath;
use crate::settings::From;
use crate::snapshot::{Moved, SnapshotResult};

/// A fact about snapshots.
pub enum SnapshotFact<'a> {
    /// The path has snapshots of its own, and the snapshot is one of those.
    OwnSnapshots { directory: &'a AbsPath, key: &'a str },
    /// The snapshot has these repositories, and they stay as they are: the first, and so many more.
    RepositoriesStay { first: &'a AbsPath, more: usize, n: u64 },
    /// A restore moves a HEAD.
    HeadMoves(&'a Moved),
    /// The object at the first path had another name, which stays; so had those at so many more.
    OtherNameStays { first: &'a AbsPath, more: usize },
    /// No content of dropped snapshots was freed, as a file cannot be read.
    ContentStays(&'a str),
    /// The snapshots that retention lets go of could not be dropped.
    OldSnapshotsStay { directory: &'a AbsPath, why: &'a Error },
    /// A snapshot, which may have found damage in earlier ones: it needs nothing of that.
    EarlierSnapshots(&'a SnapshotResult),
    /// The settings choose the snapshots to prune.
    SnapshotLimits { keep: (usize, From), max_size: (u64, From) },
}
