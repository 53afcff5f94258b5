//! recant holds the changes that a command, a script or an agent wants to make to files, shows them, makes them real
//! with a checkpoint of what was there before, and takes them back exactly.
//!
//! The rooms, and the way of the data: capture or stage → changes → plan → journal → apply → settle → report.
//! - [`capture`] runs a command and reads what it left into changes; [`session`] records them, or what is staged by hand;
//! - [`commit`] and [`rollback`] say which states go from where to where; [`engine`] brings them there, all or none;
//! - [`snapshot`] keeps numbered copies of a folder, and makes sessions of the way back to them;
//! - [`moving`] takes a session out of a store as one stream, and into another one;
//! - [`checkpoint`] is what came off the tree; [`tree`] what is on disk; [`fs`] the one place of system calls that change it;
//! - [`remote`] has a verb carried out by the recant of another machine;
//! - [`cli`] alone prints. docs/ARCHITECTURE.md has the whole.

mod capture;
mod checkpoint;
mod cli;
mod commit;
mod config;
mod diff;
mod engine;
mod error;
mod fs;
mod moving;
mod remote;
mod rollback;
mod session;
mod snapshot;
mod tree;

use std::process::ExitCode;

/// The program: carries out the call that the process was started with. For `main.rs` alone.
#[doc(hidden)]
pub fn main() -> ExitCode {
    cli::exit::main()
}

/// What recant's own tests and examples need from inside: readers of the store's files, and the capture room alone.
#[cfg(feature = "crash-points")]
#[doc(hidden)]
pub mod internals {
    pub use crate::capture::collect::facts::Facts;
    pub use crate::capture::collect::{Collected, collect, finish};
    pub use crate::capture::command::{Command, Exit, Linger, Network};
    pub use crate::capture::confine::Confinement;
    pub use crate::capture::error::Error;
    pub use crate::capture::ground::Ground;
    pub use crate::capture::inside::inside;
    pub use crate::capture::layout::{Pass, Request, Route};
    pub use crate::capture::plan::{Plan, working_folder};
    pub use crate::capture::run::{Event, run, run_on};
    pub use crate::checkpoint::manifest::{Manifest, Original};
    pub use crate::engine::journal::{Draft, Journal};
    pub use crate::engine::step::Spot;
    pub use crate::error::{Failure, Kind};
    pub use crate::fs::dir::{Dir, Time};
    pub use crate::fs::path::AbsPath;
    pub use crate::fs::{Fs, exact_now, now};
    pub use crate::session::change::{Change, Changes, FolderTime, Sort};
    pub use crate::session::id::Id;
    pub use crate::session::run::Place;
    pub use crate::session::store::{Session, Store};
    pub use crate::tree::digest::Digest;
}
