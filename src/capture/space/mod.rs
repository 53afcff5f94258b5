//! Builds the mounts of a plan inside the run's own namespace, and tells why one could not be built.
//!
//! In: a plan as laid out. Out: the namespace as planned, read back from mountinfo, or an error before the command starts (H1).

mod attach;
pub mod build_mounts;
mod check_mounts;
mod devices;
pub mod hidden;
mod mount_covers;
mod mount_pieces;
mod overlay;
pub mod probe;
pub mod refusals;
mod shm;
pub mod switches;
mod terminals;
pub mod uppers_in_memory;
