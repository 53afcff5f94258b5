//! The command line, its pages, the library, and rules of the source.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "tests say what they skip")]
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests set up real files")]

#[path = "../common/agent.rs"]
mod agent;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/desk.rs"]
mod desk;
#[path = "../common/ssh.rs"]
mod ssh;

mod api;
mod bench;
mod book;
mod completion;
mod doctor;
mod examples;
mod fixture;
mod general;
mod json;
mod layering;
mod rules;

use common::Said;

/// What was said on standard error, where that is all, by what ended with this status.
#[track_caller]
fn on_stderr(said: &Said, status: i32) -> String {
    assert!(said.status == status && said.out.is_empty(), "{said}");
    said.masked_err().to_owned()
}
