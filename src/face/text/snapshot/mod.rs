//! Snapshots, in words: a file a verb.

pub mod create;
pub mod diff;
pub mod fact;
pub mod list;
pub mod restore;
pub mod show;
pub mod verify;
