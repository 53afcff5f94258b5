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
pub mod service;
mod settle_changes;
pub mod stop;
pub mod terms;
pub mod trial;
pub mod value;

mod beside;
mod caches;
mod closed;
mod hints;
mod plan;
mod proxy;
mod shell;
mod temporary;
