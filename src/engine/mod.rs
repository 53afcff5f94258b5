//! Brings paths from one recorded state to another, or leaves every one as it was. Used by `commit`, `rollback`, `moving`, `snapshot`, `verb`
//! and the faces.
//!
//! In: a [`Job`], that is moves with their `from` and `to`. Out: all of them done and durable, or an error and
//! nothing changed. Touches the tree only through [`fs`](crate::fs), content only where the session or its checkpoint
//! has it. Never prints, never reads the environment, knows nothing of overlays but the xattr names that are never
//! content. The order of effects is docs/ARCHITECTURE.md's. What always holds (`tests/recovery/crash.rs` kills before every step to prove it):
//! - **I1** No step before the journal that names it is whole and durable, under its temporary name or its own.
//! - **I3** A path holds its `from` or its `to`, whole, at every moment (or nothing, for the moment between the two where names cannot
//!   swap); what is set in place can be put back from the journal.
//! - **I4** What leaves the tree lies in the session: moved there by the step itself, or copied there before.
//! - **I5** The generation in `session.json` is the commit point: before it a crash means undo, after it settle.
//!
//! ```text
//! Job --plan--> Plan --prepare--> Prepared --intend--> Intended --apply--> Applied --seal--> Sealed --settle--> Report
//!                                    |                    |                   |
//!                                    +------- undo -------+-------------------+        (a failure, or recover)
//! ```

mod error;
mod item;
mod job;
pub mod journal;
pub mod minor_conflicts;
mod operation;
mod place_in_session;
pub mod plan;
mod progress;
mod reach;
pub mod recover;
pub mod recover_and_lock;
mod report;
pub mod step;
mod work;

pub use error::{damaged, refused, refused_at};
pub use job::{Job, Move, Moves, OnConflict, Rest, Verb, WantedTime};
pub use minor_conflicts::{JobRequest, Minor};
pub use operation::{Effect, hindrances};
pub use place_in_session::SessionPlace;
pub use plan::choose::{Chosen, Rules, choose, may_begin};
pub use plan::conflict::{Conflict, MEANWHILE, SinceAct};
pub use plan::left_out::{LeftOut, MinorPaths};
pub use progress::{Progress, Unwatched};
pub use recover::finish::how_to_go_on;
pub use recover::recovery::{Finding, Outcome, Recovered};
pub use recover_and_lock::{Settled, refuse_interrupted, way_on};
pub use report::{LeftPath, PathOutcome, Report, Row};
