//! Agents that work on the real tree: what their hooks tell, and the turns that follow from it. Used by `verb` and the faces.
//!
//! In: events of an agent. Out: turns, each between two snapshots of the project, and the differences that take some of them back.
//! An agent has one file here, and a line in [`known`]: where its settings lie, its events, its state, its words.
//!
//! Changes nothing but files in the store's `agents/`; snapshots are taken, and sessions committed, by whoever calls.

mod chosen_turns;
mod claude;
mod codex;
mod copilot;
mod directory;
mod event;
mod facts;
mod gemini;
pub mod known;
mod last_event;
mod model_hosts;
mod opencode;
pub mod path_history;
mod pi;
mod places;
pub mod programs;
mod project_walk;
mod rebuild_times;
mod receipt;
pub mod repository;
pub mod settings;
mod short_hash;
mod single_turn;
mod state;
mod surroundings;
mod turn;
pub mod turn_files;
mod turn_lines;
pub mod uncovered;
pub mod undo;

#[cfg(test)]
mod made_up;
mod undo_verdict;

pub use chosen_turns::{Chosen, Reach};
pub use event::{Effect, Event, Tool, What};
pub use facts::{Answers, Check, Form, Scope};
pub use known::Agent;
pub use last_event::Seen;
pub use places::{File, chosen, files, unparsed};
pub use project_walk::{Look, Out, id};
pub use rebuild_times::Built;
pub use receipt::Receipt;
pub use repository::Part;
pub use settings::command::Command;
pub use settings::edit::Edit;
pub use state::{State, obeyed_change};
pub use surroundings::Surroundings;
pub use turn::{Call, Head, Line, Named, Place, Ran, Turn, When, Wrote, mark};
pub use turn_files::Turns;
pub use uncovered::{Became, Fate, fates, own};
pub use undo::{Asked, Undo};
