//! `agent` and `hook`.

pub mod hook;
mod install;
mod programs;
mod settings;
mod silenced;
mod status;
pub mod take;
pub mod turns;
pub mod undo;

use super::args::ExportAgent;
use super::problem::Problem;
use super::{Call, Ended};

pub use install::{install, uninstall};
pub use status::{list, status};

pub fn export(_call: &Call, _args: &ExportAgent) -> Result<Ended, Problem> {
    Err(Problem::refused("not built"))
}
pub fn guide(_call: &Call) -> Result<Ended, Problem> {
    Err(Problem::refused("not built"))
}
