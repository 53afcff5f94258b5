//! Kinds of objects and of file systems, and the surroundings of a process: signals, clocks, limits, users, load.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests set up real files, and say what they skip"
)]

#[path = "../common/mod.rs"]
mod common;

mod clock;
mod filesystems;
mod kinds;
mod limits;
mod links;
mod load;
mod memory;
mod scope;
mod signals;
mod surroundings;
mod users;
