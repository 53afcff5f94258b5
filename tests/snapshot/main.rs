//! Snapshots, and runs on the real tree between two of them.
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

mod care;
mod crash;
mod create;
mod cut;
mod damage;
mod mounted;
mod restore;
mod run;
