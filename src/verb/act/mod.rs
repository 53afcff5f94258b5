//! Acts on the tree: what commit, rollback, redo and undo have in common.
//!
//! In: a session, and what of it. Out: an [`Acted`](acted::Acted), with what was left and what waits to be confirmed.

pub mod acted;
pub mod carry_out;
pub mod deadline;
pub mod merge;
pub mod named_paths;
pub mod steps_behind;
pub mod temporary;
pub mod unconfirmed;
