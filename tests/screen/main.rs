//! What a person looks at: the screen of review, diffs and pages.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "tests say what they skip")]
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests set up real files")]

#[path = "../common/agent.rs"]
mod agent;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/page.rs"]
mod page;
#[path = "../common/ssh.rs"]
mod ssh;
#[path = "../common/terminal.rs"]
mod terminal;

mod blocks;
mod diff;
mod diff_forms;
mod diff_tool;
mod html;
mod review;

use common::Said;

/// What was said on standard error, where that is all, by what ended with this status.
#[track_caller]
fn on_stderr(said: &Said, status: i32) -> String {
    assert!(said.status == status && said.out.is_empty(), "{said}");
    said.masked_err().to_owned()
}
