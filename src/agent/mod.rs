//! Agents that work on the real tree: what their hooks tell, and the turns that follow from it.
//!
//! In: events of an agent. Out: turns, each between two snapshots of the project, and the differences that take some of them back.
//! An agent has one file here, and a line in [`known`]: where its settings lie, its events, its state, its words.
//!
//! Changes nothing but files in the store's `agents/`; snapshots are taken, and sessions committed, by whoever calls.

pub mod anew;
pub mod choice;
mod claude;
mod codex;
mod copilot;
mod directory;
pub mod event;
pub mod facts;
mod gemini;
pub mod known;
mod line;
pub mod look;
pub mod only;
mod opencode;
mod pi;
pub mod places;
pub mod programs;
pub mod receipt;
pub mod repository;
pub mod seen;
pub mod settings;
mod sign;
pub mod state;
pub mod surroundings;
pub mod touched;
pub mod turn;
pub mod turns;
pub mod uncovered;
pub mod undo;
mod verdict;

#[cfg(test)]
mod made_up;
