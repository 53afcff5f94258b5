//! Commands whose changes are held: runs, their steps, parts of them, and ways out.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests set up real files, and say what they skip"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/desk.rs"]
mod desk;
#[path = "../common/mounts.rs"]
mod mounts;

mod choice;
mod escapes;
mod git;
mod mounted;
mod parts;
mod programs;
mod room;
mod run;
mod steps;
mod steps_blocks;
mod steps_crash;
mod steps_loop;
mod terminals;
