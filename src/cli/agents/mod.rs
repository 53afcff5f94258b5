//! `agent` and `hook`.

pub mod hook;
pub mod take;
pub mod turns;
pub mod undo;

use super::args::{AgentStatus, ExportAgent, Install};
use super::problem::Problem;
use super::{Call, Ended};

pub fn install(_call: &Call, _args: &Install) -> Result<Ended, Problem> {
    Err(Problem::refused("not built"))
}
pub fn uninstall(_call: &Call, _args: &Install) -> Result<Ended, Problem> {
    Err(Problem::refused("not built"))
}
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
