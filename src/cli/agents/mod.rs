//! `agent` and `hook`.

use super::args::{AgentStatus, ExportAgent, Hook, Install, TurnDiff, TurnUndo, Turns};
use super::problem::Problem;
use super::{Call, Ended};

pub fn turns(_call: &Call, _args: &Turns) -> Result<Ended, Problem> {
    Err(Problem::refused("not built"))
}
pub fn diff(_call: &Call, _args: &TurnDiff) -> Result<Ended, Problem> {
    Err(Problem::refused("not built"))
}
pub fn undo(_call: &Call, _args: &TurnUndo) -> Result<Ended, Problem> {
    Err(Problem::refused("not built"))
}
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
pub fn hook(_call: &Call, _args: &Hook) -> Result<Ended, Problem> {
    Err(Problem::refused("not built"))
}
pub fn list(_call: &Call) -> Result<Ended, Problem> {
    Err(Problem::refused("not built"))
}
pub fn guide(_call: &Call) -> Result<Ended, Problem> {
    Err(Problem::refused("not built"))
}
