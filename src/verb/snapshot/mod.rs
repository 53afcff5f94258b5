//! The verbs of snapshots, a file each, and what they share.

pub mod create;
pub mod diff;
pub mod directory;
pub mod fact;
pub mod list;
pub mod prunable;
pub mod restore;
pub mod series;
pub mod show;
pub mod verify;
