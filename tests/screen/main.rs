//! What a person looks at: the screen of review, diffs and pages.
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
