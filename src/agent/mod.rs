//! Agents that work on the real tree: what their hooks tell, and the turns that follow from it.
//!
//! In: events of an agent. Out: turns, each between two snapshots of the project, with the paths that it wrote.

pub mod known;
