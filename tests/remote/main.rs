//! Other machines: real sshds on loopback ports.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "tests say what they skip")]
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests set up real files")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/ssh.rs"]
mod ssh;

mod ansible;
mod cut;
mod install;
mod net;
mod one;
mod silence;
mod sudo;

use common::{Call, World};
use ssh::{Host, Net};

/// A world, and a machine `web1` that it reaches; `None`, said as a skip, where there can be none.
fn machine() -> Option<(World, Net, Host)> {
    let mut world = World::new();
    let net = Net::new(&mut world)?;
    let host = net.host("web1");
    Some((world, net, host))
}

/// A call that SIGINT ends, though whoever started the tests may ignore it.
fn interruptible(world: &World, words: &[&str]) -> Call {
    world.program("env", [&["--default-signal=INT", common::recant()], words].concat())
}
