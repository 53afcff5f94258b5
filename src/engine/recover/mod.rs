//! Undoes or settles what was cut off: after a failure in the same process, or later by the journal alone.
//!
//! [`find`] tells where each object of a step lies, and whose it is; nothing else here asks. What somebody has changed since is left to
//! them, and [finished](finish).

pub mod clean;
pub mod find;
pub mod finish;
pub mod interrupted;
pub mod take_back;
pub mod undo;
