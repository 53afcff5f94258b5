//! Runs a command: forks the init into its namespaces, passes signals on, waits, and records the run in its session.
//!
//! In: a plan as laid out, and a [`Command`](command::Command). Out: how it ended, with only the run's init left (H3). `sys` has the
//! unsafe calls.

pub mod capabilities;
pub mod command;
pub mod confine;
pub mod descriptors;
pub mod early_sync;
pub mod feed;
pub mod filter;
pub mod ground;
pub mod hold;
pub mod ids;
pub mod init;
pub mod inside;
pub mod limit;
pub mod messages;
pub mod orphans;
pub mod phase;
pub mod scope;
pub mod start;
pub mod sys;
pub mod terminal;
