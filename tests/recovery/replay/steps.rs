//! `rewind` and `fork` under power cuts, cut at each of their syncs: the session stands at the step that it was at or at the other one, a
//! fork is whole or not there. (A run that makes a further step is in `run`.)

use std::collections::BTreeMap;

use super::common::{Manifest, Said};
use super::record::Record;
use super::run::{FIRST, SECOND, TIMES, scene};
use super::{Caught, Cutting, Scene, timeless};

/// A verb on a session of three steps.
struct Stepping<'s> {
    scene: &'s Scene,
    words: &'s [&'s str],
    /// The step at which it stands, and that to which the verb leads.
    from: u64,
    to: u64,
    /// The tree, once the session is committed at a step.
    wanted: &'s BTreeMap<u64, Manifest>,
    whole: Record,
}

const THIRD: &str = "rm -r new; mkdir new; echo anew > new/file; ln -s other link; chmod 600 edited";

impl<'s> Stepping<'s> {
    fn new(scene: &'s Scene, wanted: &'s BTreeMap<u64, Manifest>, words: &'s [&'s str], (from, to): (u64, u64)) -> Self {
        scene.reset();
        scene.world.recant(&format!("rewind w {from}")).ok();
        scene.keep();
        let mut stepping = Self { scene, words, from, to, wanted, whole: Record::default() };
        stepping.whole = stepping.run(None);
        stepping
    }
}

impl Cutting for Stepping<'_> {
    fn name(&self) -> String {
        self.words.join(" ")
    }

    fn on(&self) -> (&Scene, &Record) {
        (self.scene, &self.whole)
    }

    fn run(&self, until: Option<usize>) -> Record {
        self.scene.reset();
        self.scene.record(self.words, until)
    }

    fn judge(&self, at_end: bool, seed: u64) -> Result<(), String> {
        let world = &self.scene.world;
        let is_fork = self.words[0] == "fork";
        let there = is_fork && world.recant("show fk").status == 0;
        if is_fork && at_end && !there {
            return Err("the fork is not there".into());
        }
        let shown = world.recant("show w --json");
        if shown.status != 0 || shown.json()["session"]["unsynced"] != false {
            return Err(format!("show: {shown}"));
        }
        let head = head(self.scene);
        if head != self.to && (at_end || head != self.from) {
            return Err(format!("it stands at step {head}"));
        }
        let (name, step) = if there && seed.is_multiple_of(2) { ("fk", self.to) } else { ("w", head) };
        let seen = world.recant(&format!("run --session {name} -- find . -type f -exec cat {{}} +"));
        let said = commit(self.scene, name);
        let difference = self.wanted[&step].difference(&timeless(world.manifest()));
        if seen.status == 0 && said.status == 0 && difference.is_empty() {
            return Ok(());
        }
        Err(format!("a command: {seen}\n{name} at step {step}, committed: {said}\n{difference}"))
    }
}

/// The tree of a scene is a copy, which is a conflict by itself.
fn commit(scene: &Scene, name: &str) -> Said {
    scene.world.recant(&format!("commit {name} --force"))
}

/// The step at which the session `w` stands.
fn head(scene: &Scene) -> u64 {
    let path = scene.store.join("sessions").join(&scene.id).join("session.json");
    let header: serde_json::Value = serde_json::from_slice(&std::fs::read(path).expect("a header")).expect("JSON");
    header["steps"]["chain"].as_array().and_then(|chain| chain.last()).map_or(0, |range| range[1].as_u64().expect("a number"))
}

/// Backward, forward, and a fork.
fn each(mut test: impl FnMut(&Stepping<'_>)) {
    let Some(mut scene) = scene() else { return };
    for script in [FIRST, SECOND, THIRD] {
        scene.world.call(["run", "--session", "w", "--", "sh", "-ec", &format!("{script}; {TIMES}")]).run().ok();
    }
    scene.id = scene.world.recant("list --json").ok().rows()[0]["id"].as_str().expect("an id").to_owned();
    scene.keep();
    let mut wanted = BTreeMap::new();
    for step in 1..=3 {
        scene.reset();
        scene.world.recant(&format!("rewind w {step}")).ok();
        commit(&scene, "w").ok();
        wanted.insert(step, timeless(scene.world.manifest()));
    }
    scene.reset();
    scene.world.recant("rewind w 3").ok();
    scene.keep();
    test(&Stepping::new(&scene, &wanted, &["rewind", "w", "1"], (3, 1)));
    test(&Stepping::new(&scene, &wanted, &["rewind", "w", "3"], (1, 3)));
    test(&Stepping::new(&scene, &wanted, &["fork", "w", "-n", "fk"], (3, 3)));
}

#[test]
fn after_a_power_cut_a_session_stands_at_the_step_it_was_at_or_at_the_other() {
    each(|stepping| stepping.sweep(2));
}

#[test]
#[ignore = "long: it proves comments on syncs, not the product"]
fn each_sync_of_a_rewind_and_of_a_fork_is_needed_or_says_why_nothing_is_caught_here() {
    let mut caught = Caught::default();
    each(|stepping| stepping.leave_each_out(&mut caught, "src/"));
    caught.assert_needed();
}
