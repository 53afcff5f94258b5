//! Sessions in the store: staged, listed, logged, exported and imported, and those that wait for a word.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests set up real files, and say what they skip"
)]

#[path = "../common/mod.rs"]
mod common;

mod confirm;
mod confirm_timers;
mod log;
mod moving;
mod sessions;
mod staging;
mod store_format;
