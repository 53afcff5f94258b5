//! `agent` and `hook`.

pub mod hook;
mod install;
mod programs;
mod settings;
pub mod take;
pub mod turns;
pub mod undo;

use super::args::{AgentStatus, ExportAgent};
use super::problem::Problem;
use super::{Call, Ended};

pub use install::{install, uninstall};

pub fn status(_call: &Call, _args: &AgentStatus) -> Result<Ended, Problem> {
    Err(Problem::refused("not built"))
}
pub fn export(_call: &Call, _args: &ExportAgent) -> Result<Ended, Problem> {
    Err(Problem::refused("not built"))
}
pub fn list(_call: &Call) -> Result<Ended, Problem> {
    Err(Problem::refused("not built"))
}
pub fn guide(_call: &Call) -> Result<Ended, Problem> {
    Err(Problem::refused("not built"))
}
