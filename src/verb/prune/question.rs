//! The questions of a prune.

use super::kind::{Kind, Loss};
use super::report::All;
use crate::fs::AbsPath;
use crate::session::{Header, Id};

/// A prune that is asked about.
pub enum Prune<'a> {
    /// Sessions that fit conditions are to be pruned, or what they keep.
    Chosen { kind: Kind, headers: &'a [Header], bytes: u64 },
    /// Named sessions are to be pruned, or what they keep; with this loss.
    Named { kind: Kind, ids: &'a [Id], loss: Loss },
    /// These snapshots are to be pruned.
    Snapshots { directory: &'a AbsPath, numbers: &'a [u64] },
    /// All snapshots of a directory are to be dropped.
    Series { directory: &'a AbsPath, count: usize, bytes: u64 },
    /// All that the settings let go of is to be pruned.
    All(&'a All),
}
