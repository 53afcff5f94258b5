//! Agents' hooks and turns, held agents, and the MCP server.
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

mod borders;
mod covered;
mod crash;
mod decision;
mod events;
mod install;
mod mcp;
mod planted;
mod policy;
mod run;
mod turns;
