//! Sessions in the store: staged, listed, logged, exported and imported, and those that wait for a word.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "tests say what they skip")]
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests set up real files")]

#[path = "../common/mod.rs"]
mod common;

mod confirm;
mod confirm_timers;
mod history;
mod log;
mod moving;
mod sessions;
mod staging;
mod store_format;
mod upgrade;

use common::Said;

/// What was said on standard error, where that is all, by what ended with this status.
#[track_caller]
fn on_stderr(said: &Said, status: i32) -> String {
    assert!(said.status == status && said.out.is_empty(), "{said}");
    said.masked_err().to_owned()
}
