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

use common::{Call, World};
use ssh::{Host, Net};

/// A world, and machines of these names that it reaches; `None`, said as a skip, where there can be none.
fn machines_of<const N: usize>(names: [&str; N]) -> Option<(World, Net, [Host; N])> {
    let mut world = World::new();
    let net = Net::new(&mut world)?;
    let hosts = names.map(|name| net.host(name));
    Some((world, net, hosts))
}

/// A call that SIGINT ends, though whoever started the tests may ignore it.
fn interruptible(world: &World, words: &[&str]) -> Call {
    world.program("env", [&["--default-signal=INT", common::recant()], words].concat())
}
