//! Runs a command: forks the init into its namespaces, passes signals on, waits, and records the run in its session.
//!
//! In: a plan as laid out, and a [`Command`](command::Command). Out: how it ended, with only the run's init left (H3). `raw_calls` has the
//! unsafe calls.

pub mod answered_calls;
pub mod call_listener;
pub mod call_path;
pub mod capabilities;
pub mod collect_killed;
pub mod command;
pub mod confine;
pub mod descriptors;
pub mod detached;
pub mod door;
pub mod early_sync;
pub mod foreseen_refusals;
pub mod git_links;
pub mod ground;
pub mod held_run;
pub mod ids;
pub mod init;
pub mod is_inside;
pub mod join;
pub mod joined_run;
pub mod keep_changes;
pub mod landlock_scope;
pub mod listening_sockets;
pub mod messages;
pub mod one_thread;
pub mod orphans;
pub mod passed_descriptors;
pub mod raw_calls;
pub mod rebuild;
pub mod refusal_notes;
pub mod rename_call;
pub mod renames;
pub mod reopened_streams;
pub mod seccomp_filter;
pub mod service_end;
pub mod signal_phase;
pub mod size_limit;
pub mod stopping;
pub mod supervise;
pub mod terminal;
pub mod way_out;
