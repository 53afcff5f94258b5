//! `run`, `shell`, `agent run` and `run --in`: a command with every file change held, or on the real tree between two snapshots.

pub mod cut_off;
pub mod door;
pub mod guest;
pub mod held;
pub mod in_place;
pub mod notice;
pub mod ran;
pub mod recovered;
pub mod terms;
pub mod trial;

mod caches;
mod collect;
mod fate;
mod hints;
mod made;
mod plan;
mod records;
mod shell;
