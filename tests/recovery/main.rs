//! Operations that are cut off, fail or are interfered with at any step, and what becomes of them afterwards.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests set up real files, and say what they skip"
)]

#[path = "../common/mod.rs"]
mod common;

mod crash;
mod faults;
mod forced;
mod late;
mod races;
mod recover;
mod replay;
