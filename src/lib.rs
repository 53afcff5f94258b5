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

pub mod capture;
pub mod checkpoint;
pub mod cli;
pub mod commit;
pub mod config;
pub mod engine;
pub mod error;
pub mod fs;
pub mod moving;
pub mod remote;
pub mod rollback;
pub mod session;
pub mod snapshot;
pub mod tree;
