//! Kinds of objects and of file systems, and the surroundings of a process: signals, clocks, limits, users, load.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "tests say what they skip")]
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests set up real files")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/desk.rs"]
mod desk;

mod clock;
mod filesystems;
mod kinds;
mod limits;
mod links;
mod load;
mod memory;
mod scope;
mod signals;
mod surroundings;
mod users;

use std::convert::identity as whole;

use common::sweep::steps_of;
use common::{Call, Manifest, Said, World};

/// The step that makes an operation count: what was to be done on the tree is done.
const SEAL: [&str; 2] = ["renameat ", "session.json.new"];

/// The number of the first step of `verb` whose line, with the newline, has all of these parts. The verb is done.
#[track_caller]
fn step_of(verb: impl Fn() -> Call, parts: &[&str]) -> usize {
    let steps = steps_of(verb);
    let found = steps.iter().position(|step| parts.iter().all(|part| format!("{step}\n").contains(part)));
    1 + found.unwrap_or_else(|| panic!("no {parts:?} in\n{}", steps.join("\n")))
}

/// Whether strace(1) is there; says so as a skip where not.
fn has_strace(what: &str) -> bool {
    let has = std::process::Command::new("strace").arg("-V").output().is_ok();
    if !has {
        common::skip(&format!("{what}: no strace here"));
    }
    has
}

/// What was said on standard error, where that is all, by what ended with this status.
#[track_caller]
fn on_stderr(said: &Said, status: i32) -> String {
    assert!(said.status == status && said.out.is_empty(), "{said}");
    said.masked_err().to_owned()
}

/// Times of long ago for all that is there, each another one.
fn old_times(world: &World) {
    for (i, path) in world.manifest().0.keys().rev().enumerate() {
        world.set_mtime(common::name(path), 1_000_000_000 + i as i64, 123_456_789);
    }
}

/// Commit, rollback, redo and rollback give the states before and after, each time exactly; `of` takes from what is compared what cannot be
/// had. Gives the state after.
#[track_caller]
fn round_trip(world: &World, id: &str, before: &Manifest, what: &str, of: fn(Manifest) -> Manifest) -> Manifest {
    let before = of(before.clone());
    world.recant(&format!("commit {id}")).ok();
    let after = of(world.manifest());
    assert!(!before.difference(&after).is_empty(), "{what}");
    for (verb, want) in [("rollback", &before), ("redo", &after), ("rollback", &before)] {
        world.recant(&format!("{verb} {id}")).ok();
        want.assert_same(&of(world.manifest()), &format!("{what}: {verb}"));
        world.assert_tidy(&format!("{what}: {verb}"));
    }
    after
}
