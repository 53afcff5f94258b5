//! recant holds the changes that a command, a script or an agent wants to make to files, shows them, makes them real
//! with a checkpoint of what was there before, and takes them back exactly.

pub mod capture;
pub mod checkpoint;
pub mod cli;
pub mod commit;
pub mod config;
pub mod engine;
pub mod error;
pub mod fs;
pub mod rollback;
pub mod session;
pub mod tree;
