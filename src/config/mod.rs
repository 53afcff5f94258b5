//! Settings: the values of `config.toml`, the defaults, and the source of each value. A leaf: it knows no room, prints nothing, and reads
//! only that file.

mod file;
mod glob;
mod keys;
mod settings;
mod units;
mod wrong;

pub use glob::path_glob;
pub use keys::edits;
pub use settings::{AgentCommit, CACHES, Cache, Color, Config, From, OUTPUT_PATHS, OfAgent, OnLimit, Remote, Set};
pub use units::{age, age_word, bytes, grouped, size, size_word};
