//! The command line, its pages, the library, and rules of the source.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests set up real files, and say what they skip"
)]

#[path = "../common/agent.rs"]
mod agent;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/desk.rs"]
mod desk;
#[path = "../common/ssh.rs"]
mod ssh;

mod api;
mod book;
mod completion;
mod doctor;
mod examples;
mod fixture;
mod general;
mod json;
mod layering;
mod rules;
