//! Other machines: real sshds on loopback ports.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests set up real files, and say what they skip"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/machines.rs"]
mod machines;
#[path = "../common/ssh.rs"]
mod ssh;

mod ansible;
mod commit;
mod cut;
mod gate;
mod install;
mod many;
mod meant;
mod net;
mod one;
mod silence;
mod sudo;
