//! Sessions: pending writes and deletions, recorded on disk; the store's layout, ids, locks, staging by hand.
//!
//! In: what somebody stages, or what a capture collected. Out: numbered changes with their `before` and `after`, one a path. This room
//! only reads the tree. What always holds:
//! - **I9** A status is computed from the header's counts; nothing sets it.
//! - **I10** A line of `changes.jsonl` counts once the header counts it; its content was durable before (docs/ARCHITECTURE.md, D1).
//! - Nothing read from the store is used as a path before it was parsed as an [`Id`](id::Id), a hash, a number or an
//!   [`AbsPath`](crate::fs::path::AbsPath) (docs/ARCHITECTURE.md, I14).

pub mod act;
pub mod by;
pub mod change;
pub mod deadline;
pub mod discarded;
pub mod error;
pub mod header;
pub mod id;
pub mod incoming;
pub mod inherit;
pub mod lines;
pub mod log;
pub mod merge_base;
pub mod net;
pub mod opened;
pub mod own_store;
pub mod path_history;
pub mod prune;
mod reopen;
pub mod run;
pub mod running;
pub mod seen_by;
pub mod sides;
pub mod split;
pub mod squash;
pub mod stage;
pub mod steps;
pub mod store;
mod temporary;
mod told_once;
pub mod undo;
pub mod unreadable;
