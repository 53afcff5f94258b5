//! `agent` and `hook`.

mod guide;
pub mod hook;
mod install;
pub mod programs;
pub mod settings;
mod silenced;
mod status;
pub mod take;
pub mod turns;
mod uncovered;
pub mod undo;

pub use guide::guide;
pub use install::{install, uninstall};
pub use status::{Glance, glance, status};
