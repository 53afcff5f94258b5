//! Agents that work on the real tree: what their hooks tell, and the turns that follow from it.
//!
//! In: events of an agent. Out: turns, each between two snapshots of the project, and the differences that take some of them back.
//! Changes nothing but files in the store's `agents/`; snapshots are taken, and sessions committed, by whoever calls.

pub mod anew;
pub mod event;
pub mod known;
pub mod look;
pub mod only;
pub mod receipt;
pub mod repository;
pub mod seen;
pub mod settings;
mod sign;
pub mod state;
pub mod touched;
pub mod turn;
pub mod turns;
pub mod uncovered;
pub mod undo;
