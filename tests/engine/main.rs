//! Commits, rollbacks and redos: what stands against them, what is damaged or edited meanwhile, and what they give back.
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

mod before;
mod concurrent;
mod conflicts;
mod damage;
mod fuzz;
mod model;
