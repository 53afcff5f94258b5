//! Sessions: changes that are held or committed together, their steps and acts, recorded on disk; the store's layout, ids, locks, log, and
//! staging by hand. Used by all rooms above.
//!
//! In: what is staged, or what a capture collected. Out: numbered changes with their `before` and `after`, one a path. This room
//! only reads the tree. What always holds:
//! - **I9** A status is computed from the header's counts; nothing sets it.
//! - **I10** A line of `changes.jsonl` counts once the header counts it; its content was durable before (docs/ARCHITECTURE.md, D1).
//! - Nothing read from the store is used as a path before it was parsed as an [`Id`], a hash, a number or an
//!   [`AbsPath`](crate::fs::AbsPath) (docs/ARCHITECTURE.md, I14).

mod act;
mod acting_agent;
mod begin_session;
mod beside;
mod change;
pub mod changes_file;
mod deadline;
mod discard;
pub mod error;
pub mod header;
pub mod id;
mod incoming;
mod inherit;
mod kept_sizes;
mod last_viewed;
pub mod log;
pub mod merge_base;
mod net_changes;
mod notices;
mod open_session;
pub mod own_store;
mod parts;
pub mod path_history;
mod person;
pub mod prune_sessions;
mod remove_session;
mod reopen;
pub mod run_in_place;
mod run_record;
mod sides;
mod squash;
pub mod stage;
mod steps;
mod store;
mod temporary;
mod under_way;
mod undo_target;
mod unreadable;

pub use act::{LastAct, Part, Purpose, REASON, TakesBack};
pub use acting_agent::{ActingAgent, MOST, Pointer};
pub use beside::{SOCKET, ServiceEnd};
pub use change::{Before, Change, Changes, DirectoryTime, Line, Marks, Sort, fits_under, misfits, object_name};
pub use changes_file::{Reading, Written};
pub use deadline::Deadline;
pub use error::{busy, damaged, not_now, unknown};
pub use header::{Checkpoint, Counts, Header, NotUndone, Origin, Sizes, Status};
pub use id::{Id, check_name};
pub use incoming::Arriving;
pub use inherit::set_mode;
pub use kept_sizes::{Size, sizes};
pub use last_viewed::Unseen;
pub use log::{About, Entry, Log, Restore, append};
pub use net_changes::Net;
pub use open_session::{Locked, Opener, Session, header_bytes, open_own, part, read_small, with_own_rights};
pub use own_store::StoreState;
pub use parts::{Parting, RemainingBlocks, lines_without, may_part};
pub use person::Person;
pub use prune_sessions::{RESERVE, Which, is_awaited, is_needed};
pub use run_in_place::{Directory, Held, Record, Wanted};
pub use run_record::{
    Arg, CommandRecord, Coverage, Ending, Failed, FileCopy, How, Place, Run, Service, Stopped, boot_id, start_of,
};
pub use sides::Side;
pub use squash::Keep;
pub use stage::{Staging, Write};
pub use steps::{Added, HeaderFacts, PartedPaths, Step, StepList, is_block};
pub use store::{Broken, Named, Store};
pub use under_way::UnderWay;
pub use undo_target::{Acts, BROUGHT_BACK, FREED, Inverse, UndoableAct};
pub use unreadable::Remains;
