//! `recover` under power cuts where it has to leave something, and `recover ID --undo`: a verb is killed right before its seal, somebody is at
//! work on what it had put there, and the recovery is cut at each of its syncs. Then it is called once more, and all is as it would have been.

use std::collections::BTreeMap;

use super::common::Dice;
use super::model::{Cut, Loss};
use super::record::{Key, Record};
use super::{LOSSES, Scene, Size, assert_needed, common::Manifest, cuts, elsewhere, leave_each_out, rebuild, states, timeless};

/// A recovery that leaves something, or one where the header cannot tell; on a scene that is ready for it.
struct Recovering<'s> {
    scene: &'s Scene,
    verb: &'static str,
    /// None, or `--undo`.
    how: Option<&'static str>,
    /// The step of the verb that it is killed before.
    seal: usize,
    wanted: Manifest,
    whole: Record,
    /// What was not synced when that began.
    whole_dirty: BTreeMap<Key, u64>,
}

impl<'s> Recovering<'s> {
    fn new(scene: &'s Scene, verb: &'static str, how: Option<&'static str>) -> Self {
        scene.keep();
        scene.reset();
        let is_seal = |step: &&super::record::Step| step.call == "renameat" && step.what.contains("session.json.new");
        let seal = scene.run(verb, None).steps.iter().find(is_seal).expect("a seal").n;
        let mut recovering = Self {
            scene,
            verb,
            how,
            seal,
            wanted: Manifest::default(),
            whole: Record { steps: Vec::new(), first: BTreeMap::new() },
            whole_dirty: BTreeMap::new(),
        };
        recovering.stop();
        recovering.whole_dirty = scene.files();
        recovering.whole = scene.record(&recovering.words(), None);
        recovering.wanted = calm(scene.world.manifest());
        recovering
    }

    fn words(&self) -> Vec<&str> {
        ["recover", &self.scene.id].into_iter().chain(self.how).collect()
    }

    /// The verb is killed, and somebody is at work.
    fn stop(&self) {
        let scene = self.scene;
        scene.reset();
        scene.run(self.verb, Some(self.seal));
        scene.empty_pools();
        let garbled = scene.store.join("sessions").join(&scene.id).join("session.json");
        match (self.how, self.verb) {
            // The header cannot tell, and nobody else was there.
            (Some(_), _) => std::fs::write(garbled, "x").expect("a write"),
            (_, "commit") => {
                self.disturb("printf theirs > edited.t; mv edited.t edited; printf theirs >> new/deep; printf theirs > full")
            }
            _ => self.disturb("printf theirs > edited.t; mv edited.t edited; printf theirs >> gone; rm -rf full"),
        }
    }

    fn disturb(&self, command: &str) {
        self.scene.world.program("sh", ["-c", command]).run().ok();
    }

    /// Cuts the power before step `n` of the decision. Before it is made nobody answers for what somebody has not synced.
    fn cut(&self, n: usize, without: Option<&str>, loss: Loss, seed: u64) -> Result<(), String> {
        let (scene, all) = (self.scene, self.whole.steps.len());
        let at_end = n > all;
        self.stop();
        let dirty = if at_end { scene.files() } else { BTreeMap::new() };
        let record = scene.record(&self.words(), (!at_end).then_some(n));
        let state = Cut::new(&record, n, without, &dirty).state(loss, &mut Dice(seed));
        rebuild::rebuild(&state, &[scene.world.tree(), scene.store.clone()], &scene.pools);
        let what = format!("{} {:?} cut before step {n} of {all}, {loss:?}; lost:\n  {}\n", self.verb, self.how, state.lost);
        self.judge(at_end).map_err(|why| format!("{what}{why}"))
    }

    fn judge(&self, at_end: bool) -> Result<(), String> {
        let scene = self.scene;
        let said = scene.recant(&self.words());
        let text = [&said.stdout[..], &said.stderr].map(String::from_utf8_lossy).concat();
        let mut difference = self.wanted.difference(&calm(scene.world.manifest()));
        // What stays on the tree stays as durable as its writer made it.
        if at_end && self.how.is_none() {
            difference.clear();
        }
        let is_over = text.contains("nothing was interrupted");
        // A journal that comes back after the cut is settled again, which is said again.
        let ended = said.status.code() == Some(if self.how.is_some() { 0 } else { 4 }) || self.how.is_none() && is_over;
        if !ended || !difference.is_empty() {
            return Err(format!("the same again: {}\n{text}{difference}", said.status));
        }
        if at_end && !is_over && self.how.is_some() {
            return Err(format!("what was done was to be done again: {text}"));
        }
        let (left, journals) = (scene.world.leftovers(), scene.world.journals());
        if !left.is_empty() || !journals.is_empty() {
            return Err(format!("left: {left:?} {journals:?}"));
        }
        if self.how.is_none() { self.go_on() } else { Ok(()) }
    }

    /// What was left goes back, or there again: what that takes is whole.
    fn go_on(&self) -> Result<(), String> {
        let (scene, commits) = (self.scene, self.verb == "commit");
        let verified = scene.recant(&["checkpoint", "verify", &scene.id]);
        let words = [if commits { "rollback" } else { "redo" }, &scene.id, "--force"];
        let on = scene.recant(&words);
        let text =
            [verified.stdout, verified.stderr, on.stdout, on.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
        let edited = scene.world.read("edited");
        let is_back = if commits { edited == "old" } else { edited.starts_with("new and longer") };
        let is_whole = verified.status.success() && matches!(on.status.code(), Some(0 | 4)) && is_back;
        if is_whole { Ok(()) } else { Err(format!("{words:?} does not give it: {}", text.concat())) }
    }

    /// What goes wrong without one site's syncs, if anything does.
    fn leave_out(&self, site: &str) -> Option<String> {
        let stake = |n, without| Cut::new(&self.whole, n, without, &self.whole_dirty).at_stake();
        let at_stake: Vec<usize> =
            cuts(&self.whole).into_iter().rev().filter(|n| stake(*n, Some(site)) > stake(*n, None)).collect();
        for loss in [Loss::Unsynced, Loss::All, Loss::Content, Loss::OneName] {
            for n in &at_stake {
                if let Err(why) = self.cut(*n, Some(site), loss, *n as u64) {
                    return Some(why);
                }
            }
        }
        None
    }
}

/// Without the times of what somebody wrote, which each run has anew.
fn calm(manifest: Manifest) -> Manifest {
    let mut manifest = timeless(manifest);
    manifest
        .0
        .values_mut()
        .filter(|row| row.content.contains("theirs") || row.mtime.0 > 1_500_000_000)
        .for_each(|row| row.mtime = (0, 0));
    manifest
}

#[test]
fn after_a_power_cut_a_recovery_that_leaves_something_ends_and_what_it_keeps_is_whole() {
    for verb in ["commit", "rollback"] {
        for how in [None, Some("--undo")] {
            let scene = Scene::new(Size::Few, None);
            if verb == "rollback" {
                scene.reset();
                scene.run("commit", None);
            }
            let recovering = Recovering::new(&scene, verb, how);
            let (cuts, states) = (cuts(&recovering.whole), states(1));
            for (i, n) in cuts.iter().enumerate() {
                for k in 0..states {
                    let loss = LOSSES[(k + i * states) % LOSSES.len()];
                    recovering.cut(*n, None, loss, (*n * 1000 + k) as u64).unwrap_or_else(|why| panic!("{why}"));
                }
                if *n > recovering.whole.steps.len() {
                    LOSSES
                        .into_iter()
                        .for_each(|loss| recovering.cut(*n, None, loss, *n as u64).unwrap_or_else(|why| panic!("{why}")));
                }
            }
            println!("{verb} {how:?}: {} states at {} syncs", cuts.len() * states, cuts.len());
        }
    }
}

#[test]
fn each_sync_of_a_recovery_that_leaves_something_is_needed_or_says_why_nothing_is_caught_here() {
    let mut caught: BTreeMap<String, Option<String>> = BTreeMap::new();
    // Between two file systems the most depends on them: what is caught there need not be tried again.
    let mut scenes: Vec<_> = elsewhere().map(|other| ("rollback", Some(other))).into_iter().collect();
    scenes.extend([("commit", None), ("rollback", None)]);
    for (verb, store_on) in scenes {
        let scene = Scene::new(Size::Few, store_on.as_deref());
        if verb == "rollback" {
            scene.reset();
            scene.run("commit", None);
        }
        let recovering = Recovering::new(&scene, verb, None);
        for file in ["src/engine/finish.rs", "src/engine/journal.rs"] {
            leave_each_out(&mut caught, &recovering.whole, file, |site| recovering.leave_out(site));
        }
    }
    assert_needed(&caught);
}
