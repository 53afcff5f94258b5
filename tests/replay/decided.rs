//! `recover ID --force | --finish | --undo` under power cuts: a verb is killed right before its seal, somebody is at work on what it
//! had put there, and the decision is cut at each of its syncs. Then it is asked for once more, and all is as it would have been.

use std::collections::BTreeMap;

use super::common::Dice;
use super::model::{Cut, Loss};
use super::record::{Key, Record};
use super::{LOSSES, Scene, Size, assert_needed, common::Manifest, cuts, elsewhere, leave_each_out, rebuild, states, timeless};

/// One way to decide, on a scene that is ready for it.
struct Deciding<'s> {
    scene: &'s Scene,
    verb: &'static str,
    how: &'static str,
    /// The step of the verb that it is killed before.
    seal: usize,
    wanted: Manifest,
    whole: Record,
    /// What was not synced when that began.
    whole_dirty: BTreeMap<Key, u64>,
}

impl<'s> Deciding<'s> {
    fn new(scene: &'s Scene, verb: &'static str, how: &'static str) -> Self {
        scene.keep();
        scene.reset();
        let is_seal = |step: &&super::record::Step| step.call == "renameat" && step.what.contains("session.json.new");
        let seal = scene.run(verb, None).steps.iter().find(is_seal).expect("a seal").n;
        let mut deciding = Self {
            scene,
            verb,
            how,
            seal,
            wanted: Manifest::default(),
            whole: Record { steps: Vec::new(), first: BTreeMap::new() },
            whole_dirty: BTreeMap::new(),
        };
        deciding.stop();
        deciding.whole_dirty = scene.files();
        deciding.whole = scene.record(&["recover", &scene.id, how], None);
        deciding.wanted = calm(scene.world.manifest());
        deciding
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
            ("--undo", _) => std::fs::write(garbled, "x").expect("a write"),
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
        let record = scene.record(&["recover", &scene.id, self.how], (!at_end).then_some(n));
        let state = Cut::new(&record, n, without, &dirty).state(loss, &mut Dice(seed));
        rebuild::rebuild(&state, &[scene.world.tree(), scene.store.clone()], &scene.pools);
        let what = format!("{} {} cut before step {n} of {all}, {loss:?}; lost:\n  {}\n", self.verb, self.how, state.lost);
        self.judge(at_end).map_err(|why| format!("{what}{why}"))
    }

    fn judge(&self, at_end: bool) -> Result<(), String> {
        let scene = self.scene;
        let said = scene.recant(&["recover", &scene.id, self.how]);
        let text = [&said.stdout[..], &said.stderr].map(String::from_utf8_lossy).concat();
        let mut difference = self.wanted.difference(&calm(scene.world.manifest()));
        // What stays on the tree stays as durable as its writer made it.
        if at_end && self.how == "--finish" {
            difference.clear();
        }
        if !said.status.success() || !difference.is_empty() {
            return Err(format!("the same again: {}\n{text}{difference}", said.status));
        }
        if at_end && !text.contains("nothing was interrupted") {
            return Err(format!("what was done was to be done again: {text}"));
        }
        if self.how != "--undo" {
            let path = scene.world.path("edited").display().to_string();
            let kept = scene.recant(&["cat", &scene.id, &path, "--displaced"]);
            let old = match (self.how, self.verb) {
                ("--force", _) => "theirs",
                (_, "commit") => "old",
                _ => "new and longer",
            };
            if !String::from_utf8_lossy(&kept.stdout).starts_with(old) {
                return Err(format!("{text}what was there is not kept: {kept:?}"));
            }
        }
        let (left, journals) = (scene.world.leftovers(), scene.world.journals());
        if left.is_empty() && journals.is_empty() { Ok(()) } else { Err(format!("left: {left:?} {journals:?}")) }
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
fn after_a_power_cut_a_decision_is_carried_out_and_what_it_keeps_is_whole() {
    for verb in ["commit", "rollback"] {
        for how in ["--force", "--finish", "--undo"] {
            let scene = Scene::new(Size::Few, None);
            if verb == "rollback" {
                scene.reset();
                scene.run("commit", None);
            }
            let deciding = Deciding::new(&scene, verb, how);
            let (cuts, states) = (cuts(&deciding.whole), states(1));
            for (i, n) in cuts.iter().enumerate() {
                for k in 0..states {
                    let loss = LOSSES[(k + i * states) % LOSSES.len()];
                    deciding.cut(*n, None, loss, (*n * 1000 + k) as u64).unwrap_or_else(|why| panic!("{why}"));
                }
                if *n > deciding.whole.steps.len() {
                    LOSSES
                        .into_iter()
                        .for_each(|loss| deciding.cut(*n, None, loss, *n as u64).unwrap_or_else(|why| panic!("{why}")));
                }
            }
            println!("{verb} {how}: {} states at {} syncs", cuts.len() * states, cuts.len());
        }
    }
}

#[test]
fn each_sync_of_a_decision_is_needed_or_says_why_nothing_is_caught_here() {
    let mut caught: BTreeMap<String, Option<String>> = BTreeMap::new();
    // Between two file systems the most depends on them: what is caught there need not be tried again.
    let mut scenes: Vec<_> = elsewhere().map(|other| ("rollback", Some(other))).into_iter().collect();
    scenes.extend([("commit", None), ("rollback", None)]);
    for (verb, store_on) in scenes {
        for how in ["--force", "--finish"] {
            let scene = Scene::new(Size::Few, store_on.as_deref());
            if verb == "rollback" {
                scene.reset();
                scene.run("commit", None);
            }
            let deciding = Deciding::new(&scene, verb, how);
            for file in ["src/engine/decide.rs", "src/engine/journal.rs"] {
                leave_each_out(&mut caught, &deciding.whole, file, |site| deciding.leave_out(site));
            }
        }
    }
    assert_needed(&caught);
}
