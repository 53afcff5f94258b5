//! Commits, rollbacks and redos: what stands against them, what is damaged or edited meanwhile, and what they give back.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "tests say what they skip")]
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests set up real files")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/desk.rs"]
mod desk;

mod before;
mod concurrent;
mod conflicts;
mod damage;
mod fuzz;
mod model;

use common::sweep::steps_of;
use common::{Call, World};

/// A session that holds these lines (`World::stage`); gives its id.
fn held<'a>(world: &World, lines: impl IntoIterator<Item = &'a str>) -> String {
    let id = world.begin();
    world.stage(&id, lines);
    id
}

/// The number of the first step of a verb that looks like this. The verb is done.
fn step_like(verb: impl Fn() -> Call, like: impl Fn(&str) -> bool) -> usize {
    let steps = steps_of(verb);
    1 + steps.iter().position(|step| like(step)).unwrap_or_else(|| panic!("no such step: {steps:#?}"))
}

/// Runs a verb, and kills it before that step.
fn kill(verb: Call, step: usize) {
    verb.env("RECANT_STEPS", format!("kill:{step}")).run().with(137);
}
