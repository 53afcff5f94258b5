//! `session import` under power cuts: cut at each of its syncs, the session is there whole, or not at all and comes with the same stream.

use std::collections::BTreeMap;

use super::common::Dice;
use super::common::Manifest;
use super::model::{Cut, Loss};
use super::record::Record;
use super::{LOSSES, Scene, Size, assert_needed, cuts, leave_each_out, rebuild, states, timeless};

struct Importing<'s> {
    scene: &'s Scene,
    stream: Vec<u8>,
    /// The tree once the session is committed.
    wanted: Manifest,
    whole: Record,
}

impl<'s> Importing<'s> {
    /// The scene's session is exported, and not in the store any more.
    fn new(scene: &'s Scene) -> Self {
        let stream = scene.world.call(["session", "export", &scene.id]).run().ok().out;
        scene.world.call(["commit", &scene.id]).run().ok();
        let wanted = timeless(scene.world.manifest());
        scene.world.call(["rollback", &scene.id]).run().ok();
        scene.world.call(["session", "prune", "-y", &scene.id]).run().ok();
        scene.keep();
        let mut importing = Self { scene, stream, wanted, whole: Record { steps: Vec::new(), first: BTreeMap::new() } };
        scene.reset();
        importing.whole = importing.import(None);
        importing
    }

    fn import(&self, kill: Option<usize>) -> Record {
        self.scene.record_with(&["session", "import"], &self.stream, kill)
    }

    fn cut(&self, n: usize, without: Option<&str>, loss: Loss, seed: u64) -> Result<(), String> {
        let (scene, all) = (self.scene, self.whole.steps.len());
        let at_end = n > all;
        scene.reset();
        let record = self.import((!at_end).then_some(n));
        let state = Cut::new(&record, n, without, &BTreeMap::new()).state(loss, &mut Dice(seed));
        rebuild::rebuild(&state, &[scene.world.tree(), scene.store.clone()], &scene.pools);
        let what = format!("import cut before step {n} of {all}, {loss:?}; lost:\n  {}\n", state.lost);
        self.judge(at_end).map_err(|why| format!("{what}{why}"))
    }

    fn judge(&self, at_end: bool) -> Result<(), String> {
        let world = &self.scene.world;
        let there = world.call(["show", &self.scene.id]).run().status == 0;
        if at_end && !there {
            return Err("it was imported, and is not there".into());
        }
        if !there {
            let again = world.call(["session", "import"]).stdin(&self.stream).run();
            if again.status != 0 {
                return Err(format!("the same stream again: {again}"));
            }
        }
        let said = world.call(["commit", &self.scene.id]).run();
        let difference = self.wanted.difference(&timeless(world.manifest()));
        if said.status == 0 && difference.is_empty() { Ok(()) } else { Err(format!("committed: {said}\n{difference}")) }
    }

    /// What goes wrong without one site's syncs, if anything does.
    fn leave_out(&self, site: &str) -> Option<String> {
        let stake = |n, without| Cut::new(&self.whole, n, without, &BTreeMap::new()).at_stake();
        let at_stake = cuts(&self.whole).into_iter().filter(|n| stake(*n, Some(site)) > stake(*n, None));
        let at_stake: Vec<usize> = at_stake.collect();
        let mut all = [Loss::Unsynced, Loss::All, Loss::Content, Loss::OneName]
            .into_iter()
            .flat_map(|loss| at_stake.iter().map(move |n| (*n, loss)));
        all.find_map(|(n, loss)| self.cut(n, Some(site), loss, n as u64).err())
    }
}

#[test]
fn after_a_power_cut_a_session_that_was_imported_is_whole_or_not_there() {
    for size in [Size::Few, Size::Many] {
        let scene = Scene::new(size, None);
        let importing = Importing::new(&scene);
        let (cuts, states) = (cuts(&importing.whole), states(2));
        for (i, n) in cuts.iter().enumerate() {
            for k in 0..states {
                let loss = LOSSES[(k + i * states) % LOSSES.len()];
                importing.cut(*n, None, loss, (*n * 1000 + k) as u64).unwrap_or_else(|why| panic!("{why}"));
            }
        }
        let end = importing.whole.steps.len() + 1;
        LOSSES.into_iter().for_each(|loss| importing.cut(end, None, loss, 7).unwrap_or_else(|why| panic!("{why}")));
        println!("import: {} states at {} syncs", cuts.len() * states, cuts.len());
    }
}

#[test]
fn each_sync_of_an_import_is_needed_or_says_why_nothing_is_caught_here() {
    let mut caught = BTreeMap::new();
    for size in [Size::Few, Size::Many] {
        let scene = Scene::new(size, None);
        let importing = Importing::new(&scene);
        for below in ["src/moving/", "src/session/arrive.rs"] {
            leave_each_out(&mut caught, &importing.whole, below, |site| importing.leave_out(site));
        }
    }
    assert_needed(&caught);
}
