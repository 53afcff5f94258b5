//! recant holds the changes that a command, a script or an agent wants to make to files, shows them, commits them with a checkpoint of
//! what was there before, and rolls them back exactly.
//!
//! This is the library of the program `recant`, for programs that want sessions, checkpoints and snapshots inside. Start with a
//! [`Store`]; its page says who may call it, and has an example:
//! - a session: [`Store::begin`], [`Store::stage`], [`Store::changes`], [`Store::patch`];
//! - commit and rollback: [`Store::plan`], [`Plan::conflicts`], [`Plan::apply`];
//! - snapshots of a directory: [`Store::take_snapshot`], [`Store::snapshots`], [`Store::restore`];
//! - after a crash: [`Store::recover`].
//!
//! Only the program runs commands with their changes held (`recant run`), uses other machines, prunes, and moves sessions.

// The rooms, and the way of the data: capture or stage → changes → plan → journal → apply → settle → report.
// docs/ARCHITECTURE.md says what each room does, and which others it may use.
mod agent;
mod api;
mod blocks;
mod capture;
mod checkpoint;
mod cli;
mod commit;
mod config;
mod diff;
mod engine;
mod error;
mod fs;
mod mcp;
mod moving;
mod remote;
mod review;
mod rollback;
mod session;
mod snapshot;
mod tree;

use std::process::ExitCode;

pub use api::{
    Change, ChangeKind, Conflict, Edit, Error, Kind, Plan, Recovered, Report, Session, SessionId, Snapshot, Status, Store, Verb,
};

/// The program: carries out the call that the process was started with. For `main.rs` alone.
#[doc(hidden)]
pub fn main() -> ExitCode {
    cli::exit::main()
}

/// Inner parts for recant's own tests: readers of the store's files, and the capture room.
#[cfg(feature = "crash-points")]
#[doc(hidden)]
pub mod internals {
    pub use crate::blocks::between::{Blocks, Whole};
    pub use crate::blocks::block::Block;
    pub use crate::blocks::choice::{Choice, Part};
    pub use crate::blocks::lines::split;
    pub use crate::blocks::merge::{Conflict, Merged, merge};
    pub use crate::blocks::numbers;
    pub use crate::blocks::words::{Marks, words};
    pub use crate::capture::choice::choose;
    pub use crate::capture::chosen::{Choice as SessionChoice, Content};
    pub use crate::capture::collect::facts::{Facts, Numbers};
    pub use crate::capture::collect::{Collected, collect, finish};
    pub use crate::capture::command::{Command, Exit, Linger, Network};
    pub use crate::capture::confine::Confinement;
    pub use crate::capture::ground::Ground;
    pub use crate::capture::inside::inside;
    pub use crate::capture::layout::{Pass, Request, Route};
    pub use crate::capture::plan::{Plan, working_directory};
    pub use crate::capture::run::{Event, run, run_on};
    pub use crate::capture::sealed::Sealed;
    pub use crate::checkpoint::manifest::{Manifest, Original};
    pub use crate::engine::journal::{Draft, Journal};
    pub use crate::engine::step::Spot;
    pub use crate::error::{Error, Kind};
    pub use crate::fs::dir::{Dir, Time};
    pub use crate::fs::path::AbsPath;
    pub use crate::fs::{Fs, exact_now, now};
    pub use crate::session::change::{Change, Changes, DirectoryTime, Sort};
    pub use crate::session::id::Id;
    pub use crate::session::net::Net;
    pub use crate::session::opened::Session;
    pub use crate::session::run::{Arg, Place};
    pub use crate::session::store::Store;
    pub use crate::tree::hash::Hash;
    pub use crate::tree::state::What;
}
