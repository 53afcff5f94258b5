//! Undoes or settles what was cut off: after a failure in the same process, or later by the journal alone.
//!
//! [`find_objects`] tells where each object of a step lies, and whose it is; nothing else here asks. What somebody has changed since is left to
//! them, and [finished](finish).

pub mod find_objects;
pub mod finish;
pub mod recovery;
pub mod remove_prepared;
pub mod undo_and_finish;
pub mod undo_steps;
