//! A recovery under power cuts: a verb is killed before one of its steps, and the power goes in the recovery that follows, with what
//! neither of them has synced. Then the next recant recovers once more.

use std::collections::{BTreeMap, BTreeSet};

use super::common::Dice;
use super::model::{Cut, Loss};
use super::record::{Key, Record};
use super::{LOSSES, Next, Scene, Size, Verb, assert_needed, cuts, dirty, elsewhere, excused, rebuild, thorough};

/// A verb that was killed, and the whole of its recovery.
struct Recovering<'v> {
    verb: &'v Verb<'v>,
    /// The step of the verb that it is killed before.
    kill: usize,
    /// What both did.
    whole: Record,
    whole_dirty: BTreeMap<Key, u64>,
    /// The generation at its end.
    generation: Option<u64>,
}

impl<'v> Recovering<'v> {
    fn new(verb: &'v Verb<'v>, kill: usize) -> Self {
        let empty = Record { steps: Vec::new(), first: BTreeMap::new() };
        let mut recovering = Self { verb, kill, whole: empty, whole_dirty: BTreeMap::new(), generation: None };
        (recovering.whole, recovering.whole_dirty) = recovering.recover(None);
        recovering.generation = verb.scene.now_at();
        recovering
    }

    /// How many steps the verb makes.
    fn made(&self) -> usize {
        self.kill - 1
    }

    /// The verb is killed, and its recovery runs up to step `until` of both, or to its end.
    fn recover(&self, until: Option<usize>) -> (Record, BTreeMap<Key, u64>) {
        let scene = self.verb.scene;
        scene.reset();
        let dirty = dirty(self.verb.verb, scene);
        let mut killed = scene.run(self.verb.verb, Some(self.kill));
        killed.steps.truncate(self.made());
        scene.forget_steps();
        (killed.then(scene.recover(until.map(|n| n - self.made()))), dirty)
    }

    /// Cuts the power before step `n` of both.
    fn cut(&self, n: usize, without: Option<&str>, loss: Loss, next: Next) -> Result<(), String> {
        let (scene, all) = (self.verb.scene, self.whole.steps.len());
        let at_end = n > all;
        let (record, dirty) = self.recover((!at_end).then_some(n));
        let state = Cut::new(&record, n, without, &dirty).state(loss, &mut Dice((self.kill * 1000 + n) as u64));
        rebuild::rebuild(&state, &[scene.world.tree(), scene.store.clone()], &scene.pools);
        let what = || {
            let (verb, kill) = (self.verb.verb, self.kill);
            format!(
                "{verb} killed before step {kill}, its recovery cut before step {n} of {all}, {loss:?}; lost:\n  {}\n",
                state.lost
            )
        };
        let judged = match next {
            // What was said to be undone or done stays that.
            Next::Recover if at_end => self.verb.judge(false, next).and_then(|()| match scene.now_at() == self.generation {
                true => Ok(()),
                false => Err("it ended otherwise than the first recovery".into()),
            }),
            next => self.verb.judge(false, next),
        };
        judged.map_err(|why| format!("{}{why}", what()))
    }

    /// The steps of the recovery before which the most is at stake.
    fn cuts(&self) -> impl DoubleEndedIterator<Item = usize> {
        cuts(&self.whole).into_iter().filter(|n| *n > self.made())
    }

    /// What goes wrong without one site's syncs, if anything does.
    fn leave_out(&self, site: &str) -> Option<String> {
        let stake = |n, without| Cut::new(&self.whole, n, without, &self.whole_dirty).at_stake();
        let at_stake: Vec<usize> = self.cuts().rev().filter(|n| stake(*n, Some(site)) > stake(*n, None)).collect();
        let ways = [(Loss::Unsynced, Next::Recover), (Loss::Unsynced, Next::GoOn), (Loss::All, Next::Recover)];
        let mut all = ways.into_iter().flat_map(|way| at_stake.iter().map(move |n| (*n, way)));
        all.find_map(|(n, (loss, next))| self.cut(n, Some(site), loss, next).err())
    }
}

/// Every so many steps of a verb, and the last ones, at which it is sealed and settled.
fn kills(verb: &Verb<'_>, every: usize) -> impl Iterator<Item = usize> {
    let all = verb.whole.steps.len();
    let seal = verb.whole.steps.iter().find(|step| step.call == "renameat" && step.what.contains("session.json.new"));
    let seal = seal.expect("a seal").n;
    let settled = (seal..=all).step_by(every.div_ceil(4));
    // Where the former manifest has got its second name, and the new one has none yet.
    let kept =
        verb.whole.steps.iter().filter(|step| step.n < seal && step.what.contains(".old")).flat_map(|step| step.n..step.n + 3);
    let all: BTreeSet<usize> = (all / 3..seal).step_by(every).chain(kept).chain(settled).collect();
    all.into_iter()
}

#[test]
fn a_power_cut_during_recovery_loses_nothing_either() {
    let scene = Scene::new(Size::Few, None);
    let verb = Verb::new(&scene, "commit");
    let mut tried = 0;
    for (i, n) in kills(&verb, if thorough() { 1 } else { 9 }).enumerate() {
        let recovering = Recovering::new(&verb, n);
        for m in recovering.cuts() {
            for loss in [LOSSES[i % LOSSES.len()], LOSSES[(i + 1) % LOSSES.len()]] {
                let next = [Next::Recover, Next::GoOn][tried % 2];
                recovering.cut(m, None, loss, next).unwrap_or_else(|why| panic!("{why}"));
                tried += 1;
            }
        }
    }
    println!("{tried} states of a cut in recovery");
    assert!(tried > 50, "{tried}");
}

#[test]
fn each_sync_of_a_recovery_is_needed_or_says_why_nothing_is_caught_here() {
    let mut caught: BTreeMap<String, Option<String>> = BTreeMap::new();
    for store_on in [None].into_iter().chain(elsewhere().map(Some)) {
        let scene = Scene::new(Size::Few, store_on.as_deref());
        let verb = Verb::new(&scene, "commit");
        for n in kills(&verb, if thorough() { 1 } else { 7 }) {
            let recovering = Recovering::new(&verb, n);
            let own = recovering.whole.steps[recovering.made()..].iter().filter(|step| step.sync.is_some());
            for site in own.map(|step| &step.site).collect::<BTreeSet<_>>() {
                let found = caught.entry(site.clone()).or_default();
                if found.is_none() && !excused(site) {
                    *found = recovering.leave_out(site);
                }
            }
        }
    }
    assert_needed(&caught);
}
