//! `run`, `shell`, `agent run` and `run --in`: a command with every file change held, or on the real tree between two snapshots.

pub mod agent_guest;
mod agent_records;
mod collect_in_place;
pub mod cut_off;
pub mod cut_off_value;
pub mod door;
pub mod hold;
pub mod in_place;
pub mod notice;
mod settle_changes;
pub mod terms;
pub mod trial;
pub mod value;

mod beside;
mod caches;
mod hints;
mod plan;
mod shell;
mod temporary;
