//! Verbs about agents: their turns, their hooks, and the settings in which these stand.

pub mod diff;
pub mod edit;
pub mod fault;
pub mod hook;
pub mod install;
pub mod project_turns;
pub mod status;
pub mod take_snapshots;
pub mod turns;
pub mod uncovered;
pub mod undo;

#[cfg(test)]
mod tests;
