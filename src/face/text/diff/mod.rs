//! `diff`: a session's changes as a patch that `git apply` takes, as counts, as paths, or in JSON.
//!
//! Lines that start with `#`, between the patches, hold what a patch cannot say (directories, owners, FIFOs, conflicts). Programs that
//! read patches skip them there.

pub mod about;
mod compared;
mod conflicts;
pub mod html;
pub mod showing;
mod shown;
mod spool;
mod stat;
pub mod tool;

pub use compared::diff;
pub use shown::names;
pub use stat::Together;
