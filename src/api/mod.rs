//! The interface of the library: sessions, checkpoints and snapshots inside another program. Thin: each call does the work of a verb of the
//! program, without its words, by the same rooms.
//!
//! Exposes types of its own alone, none of another room. Never prints, never asks, reads no settings, and of the environment only what the
//! rooms below read: the home directory.
#![deny(missing_docs)]

mod id;
mod plan;
mod session;
mod snapshot;
mod store;

pub use id::SessionId;
pub use plan::{Conflict, Plan, Report, Verb};
pub use session::{Change, ChangeKind, Edit, Session, Status};
pub use snapshot::Snapshot;
pub use store::{Recovered, Store};
