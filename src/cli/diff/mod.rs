//! `diff`: a session's changes as a patch that `git apply` takes, as counts, as paths, or in JSON.
//!
//! Lines that start with `#`, between the patches, hold what a patch cannot say (directories, owners, FIFOs, conflicts). Programs that
//! read patches skip them there.

pub mod about;
mod brief;
mod conflicts;
pub mod html;
pub mod patch;
mod session;
pub mod showing;
mod shown;
mod spool;
mod stat;
mod steps;
pub mod tool;

pub use session::diff;
pub use shown::{Between, UNSYNCED, names, refuse_discarded};
pub use steps::view as view_of_states;
