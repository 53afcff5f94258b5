//! The command line: arguments, a file for each verb or small group, text and JSON.
//!
//! Prints ([`out`]); the screen alone draws by itself. What always holds:
//! - **V1** Results go to standard output, everything said about them to standard error.
//! - **V2** A verb that changes something calls [`prepare_to_change`](crate::verb::desk::Desk::prepare_to_change) first.
//! - **V3** An error ends as an [`Error`](crate::error::Error) with its [`Kind`](crate::error::Kind); [`exit`] alone knows exit statuses.

mod acts;
mod agent_run;
mod agents;
mod args;
mod asked;
mod bar;
mod bare;
mod brief;
mod by;
mod caches;
mod call;
mod cat;
mod checkpoint;
mod complete;
mod config;
mod coverage;
mod cut_runs;
mod diff;
mod discard;
mod dispatch;
mod doctor;
mod door;
mod ended;
mod errors;
mod exit;
mod far;
mod finish;
mod gate;
mod graph;
mod guest;
mod heads;
mod help;
mod hints;
mod history;
mod list;
mod log;
mod made;
mod manual;
mod mcp;
mod misuse;
mod moving;
mod near;
mod out;
mod outside;
mod parts;
mod persons;
mod place;
mod prune;
mod prune_all;
mod recover;
mod recovered;
mod remote;
mod review;
mod rewind;
mod run;
mod said;
mod show;
mod snapshot;
mod snapshot_collect;
mod snapshot_diff;
mod snapshot_heads;
mod snapshot_prune;
mod snapshot_restore;
mod snapshot_run;
mod snapshot_verify;
mod stage;
mod start;
mod status;
mod steps;
mod table;
mod text;
mod touched;
mod waiting;
mod watcher;

pub use start::main;
