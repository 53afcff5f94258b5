//! The one place where lists of lines or words are compared.

use std::time::Instant;

use similar::{Algorithm, DiffOp};

use super::block::Block;
use super::slide;

/// The places in which two lists differ, by Myers' algorithm with the bounds of git's (`similar`): nearly linear in time and memory, not
/// always the fewest changes. After `end` the rest counts as changed.
pub fn compare(old: &[&[u8]], new: &[&[u8]], end: Option<Instant>) -> Vec<Block> {
    let same = |op: &DiffOp| matches!(op, DiffOp::Equal { .. });
    let ops = similar::capture_diff_slices_deadline(Algorithm::Myers, old, new, end);
    let runs = ops.chunk_by(|a, b| !same(a) && !same(b)).filter(|run| !same(&run[0]));
    let found = runs.map(|run| {
        let (first, last) = (&run[0], &run[run.len() - 1]);
        Block { old: first.old_range().start..last.old_range().end, new: first.new_range().start..last.new_range().end }
    });
    slide::settled(found.collect(), old, new)
}
