//! A recovery under power cuts: a verb is killed before one of its steps, and the power goes in the recovery that follows, with what
//! neither of them has synced. Then the next recant recovers once more.

use std::collections::BTreeSet;

use super::record::Record;
use super::{Caught, Cutting, Scene, Size, Verb, recovers};
use crate::common::sweep::is_due;

/// A verb that was killed, and the whole of its recovery.
struct Recovering<'v> {
    verb: &'v Verb<'v>,
    /// The step of the verb that it is killed before.
    kill: usize,
    /// What both did.
    whole: Record,
    /// The generation at its end.
    generation: Option<u64>,
}

impl<'v> Recovering<'v> {
    fn new(verb: &'v Verb<'v>, kill: usize) -> Self {
        let mut recovering = Self { verb, kill, whole: Record::default(), generation: None };
        recovering.whole = recovering.run(None);
        recovering.generation = verb.scene.now_at();
        recovering
    }
}

impl Cutting for Recovering<'_> {
    fn name(&self) -> String {
        format!("{} killed before step {}, its recovery", self.verb.verb, self.kill)
    }

    fn on(&self) -> (&Scene, &Record) {
        (self.verb.scene, &self.whole)
    }

    fn made(&self) -> usize {
        self.kill - 1
    }

    /// The verb is killed, and its recovery runs up to step `until` of both, or to its end.
    fn run(&self, until: Option<usize>) -> Record {
        let mut killed = self.verb.run(Some(self.kill));
        killed.steps.truncate(self.made());
        self.verb.scene.forget_steps();
        killed.then(self.verb.scene.record(&["recover"], until.map(|n| n - self.made())))
    }

    fn judge(&self, at_end: bool, seed: u64) -> Result<(), String> {
        self.verb.judge(false, seed)?;
        // What was said to be undone or done stays that.
        let is_the_same = !at_end || !recovers(seed) || self.verb.scene.now_at() == self.generation;
        if is_the_same { Ok(()) } else { Err("it ended otherwise than the first recovery".into()) }
    }
}

/// Steps of a verb from its first third on, with those at which it is sealed and settled, and where the former manifest has got its second
/// name and the new one has none yet.
fn kills(verb: &Verb<'_>, every: usize) -> BTreeSet<usize> {
    let steps = &verb.whole.steps;
    let seal = steps.iter().find(|step| step.call == "renameat" && step.what.contains("session.json.new")).expect("a seal").n;
    let kept = steps.iter().filter(|step| step.n < seal && step.what.contains(".old")).flat_map(|step| step.n..step.n + 3);
    (steps.len() / 3..seal).step_by(every).chain(kept).chain((seal..=steps.len()).step_by(every.div_ceil(4))).collect()
}

#[test]
fn a_power_cut_during_recovery_loses_nothing_either() {
    let scene = Scene::new(Size::Few, false).expect("one file system");
    let verb = Verb::new(&scene, "commit");
    for n in kills(&verb, 1).into_iter().filter(|n| is_due(*n)) {
        Recovering::new(&verb, n).sweep(2);
    }
}

#[test]
#[ignore = "long: it proves comments on syncs, not the product"]
fn each_sync_of_a_recovery_is_needed_or_says_why_nothing_is_caught_here() {
    let mut caught = Caught::default();
    for scene in [false, true].into_iter().filter_map(|two| Scene::new(Size::Few, two)) {
        let verb = Verb::new(&scene, "commit");
        // It ends with the first that shows what a sync is good for: few are as good as all.
        for n in kills(&verb, 7) {
            Recovering::new(&verb, n).leave_each_out(&mut caught, "src/");
        }
    }
    caught.assert_needed();
}
