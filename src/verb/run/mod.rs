//! `run`, `shell`, `agent run` and `run --in`: a command with every file change held, or on the real tree between two snapshots.

pub mod cut_off;
pub mod door;
pub mod guest;
pub mod hold;
pub mod in_place;
pub mod notice;
pub mod recovered;
pub mod terms;
pub mod trial;
pub mod value;

mod caches;
mod collect;
mod fate;
mod hints;
mod plan;
mod records;
mod shell;
mod temporary;
