//! Builds the mounts of a plan inside the run's own namespace, and tells why one could not be built.
//!
//! In: a plan as laid out. Out: the namespace as planned, read back from mountinfo, or an error before the command starts (H1).

pub mod build;
pub mod cause;
mod check;
mod cover;
mod devices;
pub mod memory;
mod mounting;
mod overlay;
pub mod probe;
mod shm;
mod split;
pub mod switches;
mod terminals;
