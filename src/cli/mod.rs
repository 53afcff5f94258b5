//! The command line: from the words of a process to a verb, and a file for each verb or small group that has no face yet.
//!
//! Prints by [`Out`](crate::face::out::Out); the screen alone draws by itself. An error ends as an [`Error`](crate::error::Error) with its
//! [`Kind`](crate::error::Kind), and [`exit`] alone knows exit statuses.

mod agent_diff;
mod checkpoint;
mod dispatch;
mod far;
mod misuse;
mod prune;
mod prune_all;
mod review;
mod snapshot;
mod snapshot_diff;
mod snapshot_heads;
mod snapshot_prune;
mod snapshot_restore;
mod snapshot_verify;
mod start;

pub use start::main;
