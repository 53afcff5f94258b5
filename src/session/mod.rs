//! Sessions: pending writes and deletions, recorded on disk; the store's layout, ids, locks, staging by hand.
//!
//! In: what somebody stages, or what a capture collected. Out: numbered changes with their `before` and `after`, one a path. This room
//! only reads the tree. What always holds:
//! - **I9** A status is computed from the header's counts; nothing sets it.
//! - **I10** A line of `changes.jsonl` counts once the header counts it; its content was durable before (docs/ARCHITECTURE.md, D1).
//! - Nothing read from the store is used as a path before it was parsed as an [`Id`](id::Id), a hash, a number or an
//!   [`AbsPath`](crate::fs::path::AbsPath) (docs/ARCHITECTURE.md, I14).

pub mod act;
pub mod acting_agent;
mod begin_session;
pub mod change;
pub mod changes_file;
pub mod deadline;
pub mod discard;
pub mod error;
pub mod header;
pub mod id;
pub mod incoming;
pub mod inherit;
pub mod last_viewed;
pub mod log;
pub mod merge_base;
pub mod net_changes;
mod notices;
pub mod open_session;
pub mod own_store;
pub mod parts;
pub mod path_history;
pub mod prune_sessions;
mod remove_session;
mod reopen;
pub mod run_in_place;
pub mod run_record;
pub mod sides;
pub mod squash;
pub mod stage;
pub mod steps;
pub mod store;
mod temporary;
pub mod undo_target;
pub mod unreadable;
