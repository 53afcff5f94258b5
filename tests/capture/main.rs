//! Commands whose changes are held: runs, their steps, parts of them, and ways out.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests set up real files, and say what they skip"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/desk.rs"]
mod desk;
#[path = "../common/mounts.rs"]
mod mounts;

mod choice;
mod closed;
mod escapes;
mod git;
mod join;
mod look;
mod mounted;
mod network;
mod open_files;
mod parts;
mod places;
mod programs;
mod refused;
mod renames;
mod room;
mod run;
mod services;
mod steps;
mod steps_blocks;
mod steps_crash;
mod steps_loop;
mod terminals;

/// All that a command sees of `t`, but for times of directories, and names of one file.
const VIEW: &str = r"
    find t ! -type d -printf '%p|%y|%m|%U:%G|%s|%l|%T@\n' | sort; find t -type d -printf '%p|%m|%U:%G\n' | sort
    find t -type f -print0 | sort -z | xargs -0 -r md5sum";

/// Kills a run, and waits until its init has ended all that it had started.
fn killed(desk: &desk::Desk, waiting: desk::Waiting) {
    let running = || desk.recant("list --all --json").ok().stdout().matches(r#""status":"running""#).count();
    let before = running();
    waiting.kill();
    common::until("the run ends", || running() < before);
}

/// A call at a terminal, for which this is typed.
fn at_terminal(desk: &desk::Desk, words: &str, typed: &str) -> common::Call {
    let command = format!("exec '{}' {words}", desk.binary.display());
    desk.give(desk.world.program("script", ["-qec", &command, "/dev/null"])).stdin(typed)
}
