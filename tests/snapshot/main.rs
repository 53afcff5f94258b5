//! Snapshots, and runs on the real tree between two of them.
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

mod care;
mod crash;
mod create;
mod cut;
mod damage;
mod mounted;
mod restore;
mod run;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use common::{Said, World};

fn snapshot(world: &World, words: &str) -> Said {
    world.recant(&format!("snapshot {words}"))
}

fn restore(world: &World, words: &str) -> Said {
    snapshot(world, &format!("restore {words}"))
}

/// Takes a snapshot; gives its number.
fn number(world: &World, words: &str) -> String {
    snapshot(world, &format!("create {words}")).ok().id()
}

/// The numbers of the snapshots, the oldest first.
fn numbers(world: &World) -> Vec<u64> {
    let rows = snapshot(world, "list --json").ok().rows();
    rows.iter().map(|row| row["n"].as_u64().expect("a number")).rev().collect()
}

/// What the store has of the only directory that has snapshots.
fn series(world: &World) -> PathBuf {
    let all = std::fs::read_dir(world.store().join("snapshots")).expect("a directory");
    let all: Vec<_> = all.map(|entry| entry.expect("a name").path()).collect();
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].clone()
}

/// The large content of its snapshots.
fn blob(world: &World) -> PathBuf {
    std::fs::read_dir(series(world).join("blobs")).expect("a directory").next().expect("one").expect("a name").path()
}

/// Directories of sessions, the hidden ones included.
fn sessions(world: &World) -> usize {
    std::fs::read_dir(world.store().join("sessions")).expect("a directory").count()
}

/// Until the times that are there now are older than the clock's granularity, so that they prove something.
fn settle() {
    std::thread::sleep(Duration::from_millis(60));
}

/// A world outside of /tmp, where a confined command may write; `None` where nothing can be confined, which is said.
fn confined() -> Option<World> {
    static CAN: OnceLock<bool> = OnceLock::new();
    let new = || World::on(Path::new("/var/tmp"));
    let can = CAN.get_or_init(|| {
        let said = new().recant("run --in . -- true");
        if said.status == 125 {
            common::skip(&format!("no confinement here: {}", said.stderr().trim()));
        }
        said.status != 125
    });
    can.then(new)
}

/// Gives the world to an ordinary user, with these paths below its tree; gives what runs recant as that user.
fn owned<'a>(world: &'a World, paths: &[&str]) -> impl Fn(&str) -> Said + 'a {
    let own = [world.root().to_path_buf(), world.root().join("home"), world.tree()];
    for path in own.into_iter().chain(paths.iter().map(|name| world.path(name))) {
        std::os::unix::fs::chown(path, Some(65534), Some(65534)).expect("another owner");
    }
    |words| world.call(words.split_whitespace()).user(65534, 65534).run()
}

/// Root and an ordinary user, or the one that runs the tests.
fn whos() -> &'static [desk::Who] {
    if desk::is_root() { &[desk::Who::Root, desk::Who::User] } else { &[desk::Who::User] }
}
