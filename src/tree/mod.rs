//! The objects on disk: an object's state, identity and fingerprint, the hash of its content, and the walk over a directory. Reads only,
//! except [`sealed_file`]: the store's files with a hash at their end.

pub mod danger;
pub mod git_head;
pub mod git_index;
pub mod hash;
pub mod json;
pub mod mention;
pub mod observe;
pub mod project;
pub mod sealed_file;
pub mod state;
pub mod time;
pub mod walk;
