//! What is on disk: the state of an object, its identity and fingerprint, the digest of its content, and the walk over a
//! folder. Reads only, but for [`sealed`], the store's files with a digest at their end.

pub mod digest;
pub mod git_index;
pub mod json;
pub mod look;
pub mod project;
pub mod sealed;
pub mod state;
pub mod time;
pub mod walk;
