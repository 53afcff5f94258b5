//! Settings: the values of `config.toml`, the defaults, and the source of each value. A leaf: it knows no room, prints nothing, and reads
//! only that file.
//!
//! A setting is a row in [`table`]. The file is read by it, `recant config` lists it, and the help of `config` and
//! the page of settings are made from it.

mod caches;
mod choice;
mod file;
mod glob;
mod hosts;
mod kind;
mod row;
mod secrets;
mod similar_word;
mod table;
#[cfg(test)]
mod tests;
mod units;
mod value;

pub use caches::{CACHES, Cache};
pub use choice::{AgentCommit, Choice, Color, OnLimit};
pub use glob::path_glob;
pub use hosts::{Entry, Host};
pub use row::Row;
pub use secrets::{Holds, MovedSecret, Secret, moved, names_private_key};
pub use similar_word::edits;
pub use table::{OUTPUT_PATHS, ROWS, Remote, Settings};
pub use units::{age, age_word, bytes, grouped, size, size_word};
pub use value::{From, Setting, Value};
