//! `rewind` and `fork` under power cuts, cut at each of their syncs: the session stands at the step that it was at or at the other one, a
//! fork is whole or not there. (A run that makes a further step is in `run`.)

use std::collections::BTreeMap;

use super::common::{Dice, Manifest, Said};
use super::model::{Cut, Loss};
use super::record::Record;
use super::run::{FIRST, SECOND, TIMES, scene};
use super::{LOSSES, Scene, assert_needed, cuts, leave_each_out, rebuild, states, timeless};

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
        scene.reset();
        let whole = scene.record(words, None);
        Self { scene, words, from, to, wanted, whole }
    }

    /// Cuts the power before step `n`, in one of the ways that `loss` allows, `without` one site's syncs.
    fn cut(&self, n: usize, without: Option<&str>, loss: Loss, seed: u64) -> Result<(), String> {
        let (scene, all) = (self.scene, self.whole.steps.len());
        let at_end = n > all;
        scene.reset();
        let record = scene.record(self.words, (!at_end).then_some(n));
        let state = Cut::new(&record, n, without, &BTreeMap::new()).state(loss, &mut Dice(seed));
        rebuild::rebuild(&state, &[scene.world.tree(), scene.store.clone()], &scene.pools);
        let what = format!("{:?} cut before step {n} of {all}, {loss:?}; lost:\n  {}\n", self.words, state.lost);
        self.judge(at_end, seed.is_multiple_of(2)).map_err(|why| format!("{what}{why}"))
    }

    fn judge(&self, at_end: bool, the_fork: bool) -> Result<(), String> {
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
        let (name, step) = if there && the_fork { ("fk", self.to) } else { ("w", head) };
        let seen = world.recant(&format!("run --session {name} -- find . -type f -exec cat {{}} +"));
        let said = commit(self.scene, name);
        let difference = self.wanted[&step].difference(&timeless(world.manifest()));
        if seen.status == 0 && said.status == 0 && difference.is_empty() {
            return Ok(());
        }
        Err(format!("a command: {seen}\n{name} at step {step}, committed: {said}\n{difference}"))
    }

    /// What goes wrong without one site's syncs, if anything does.
    fn leave_out(&self, site: &str) -> Option<String> {
        let stake = |n, without| Cut::new(&self.whole, n, without, &BTreeMap::new()).at_stake();
        let at_stake: Vec<usize> = cuts(&self.whole).into_iter().filter(|n| stake(*n, Some(site)) > stake(*n, None)).collect();
        let mut all = [Loss::Unsynced, Loss::All, Loss::Content, Loss::OneName]
            .into_iter()
            .flat_map(|loss| at_stake.iter().map(move |n| (*n, loss)));
        all.find_map(|(n, loss)| (0..2).find_map(|seed| self.cut(n, Some(site), loss, seed).err()))
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
    scene.id = scene.world.recant("list --jsonl").ok().json_lines()[0]["id"].as_str().expect("an id").to_owned();
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
    each(|stepping| {
        let (cuts, states) = (cuts(&stepping.whole), states(2));
        for (i, n) in cuts.iter().enumerate() {
            for k in 0..states {
                let loss = LOSSES[(k + i * states) % LOSSES.len()];
                stepping.cut(*n, None, loss, (*n * 1000 + k) as u64).unwrap_or_else(|why| panic!("{why}"));
            }
        }
        let end = stepping.whole.steps.len() + 1;
        LOSSES
            .into_iter()
            .zip(7..)
            .for_each(|(loss, seed)| stepping.cut(end, None, loss, seed).unwrap_or_else(|why| panic!("{why}")));
        println!("{:?}: {} states at {} syncs", stepping.words, cuts.len() * states, cuts.len());
    });
}

#[test]
fn each_sync_of_a_rewind_and_of_a_fork_is_needed_or_says_why_nothing_is_caught_here() {
    let mut caught = BTreeMap::new();
    each(|stepping| leave_each_out(&mut caught, &stepping.whole, "src/", |site| stepping.leave_out(site)));
    assert_needed(&caught);
}
