//! Sweeps: an operation is killed, or fails, or is interfered with right before each of its steps, and what came of it is judged. A row is a
//! scene, a verb in it, an order for the step, and a judge.
//!
//! `make test` takes each seventh step, from a seed that is printed; seven seeds in a row take all of them (`RECANT_SWEEP_SEED=n`). `make
//! torture` takes all (`RECANT_SWEEP_EVERY=1`).

use std::collections::BTreeMap;
use std::fmt::Debug;

use crate::common::{Call, Manifest, Said, World};

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: no number")))
}

/// Whether this step is one of those that are tried.
pub fn is_due(step: usize) -> bool {
    (step + number("RECANT_SWEEP_SEED", 0)).is_multiple_of(number("RECANT_SWEEP_EVERY", 7))
}

/// Whether all steps are tried: what is to come out somewhere among them may then be asserted.
pub fn is_whole() -> bool {
    number("RECANT_SWEEP_EVERY", 7) == 1
}

/// The steps to try of an operation whose number of steps is not known: whoever goes through them stops behind the operation's end, and where
/// that never comes, the test fails and does not hang.
pub fn steps() -> impl Iterator<Item = usize> {
    (1..).inspect(|n| assert!(*n < 5_000, "step {n}, and no end")).filter(|n| is_due(*n))
}

/// What came of one try.
pub enum Came<T> {
    /// The scene is as it was staged: the next try is made in it, too.
    Unchanged(T),
    /// The next try needs a scene of its own.
    Used(T),
}

/// One row of a table of sweeps.
pub struct Sweep<'a, S> {
    /// What is done, for messages: `rollback --force`.
    pub name: &'a str,
    /// Stages the scene; `None` where that cannot be had here, which it says.
    pub scene: &'a dyn Fn() -> Option<S>,
    /// The verb in the scene.
    pub verb: &'a dyn Fn(&S) -> Call,
    /// What is done right before step `N`, as in `RECANT_STEPS`: `kill:N`, `fail:N:28`, `run:N:kill -INT $PPID`.
    pub order: &'a str,
}

impl<S> Sweep<'_, S> {
    /// Tries the order at each step that is due, and once behind the last; judges each. The judge gets the scene, what the verb said, and words
    /// for messages. Gives the number of steps, and how often each of the judge's words came; nothing where the scene cannot be had.
    pub fn run<T: Ord + Debug>(&self, mut judge: impl FnMut(&mut S, &Said, &str) -> Came<T>) -> Tally<T> {
        let mut tally = Tally { steps: 0, came: BTreeMap::new() };
        let Some(scene) = (self.scene)() else { return tally };
        tally.steps = steps_of(|| (self.verb)(&scene)).len();
        let mut scene = None;
        for n in (1..=tally.steps).filter(|n| is_due(*n)).chain([tally.steps + 1]) {
            let mut at = scene.take().unwrap_or_else(|| (self.scene)().expect("a scene that could be had before"));
            let order = at_step(self.order, n);
            let said = (self.verb)(&at).env("RECANT_STEPS", &order).run();
            let what = format!("{}, {order} of {} steps: {said}", self.name, tally.steps);
            let word = match judge(&mut at, &said, &what) {
                Came::Unchanged(word) => {
                    scene = Some(at);
                    word
                }
                Came::Used(word) => word,
            };
            *tally.came.entry(word).or_insert(0) += 1;
        }
        println!("{}, {}: {} steps, {:?}", self.name, self.order, tally.steps, tally.came);
        tally
    }
}

/// The order with the number in the place of each `N` that stands alone.
fn at_step(order: &str, n: usize) -> String {
    let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let alone = |at: usize| !is_part(order[..at].chars().next_back()) && !is_part(order[at + 1..].chars().next());
    let letter = |(at, c): (usize, char)| if c == 'N' && alone(at) { n.to_string() } else { c.to_string() };
    order.char_indices().map(letter).collect()
}

/// How a sweep ended.
pub struct Tally<T> {
    /// The steps that the verb has.
    pub steps: usize,
    came: BTreeMap<T, usize>,
}

impl<T: Ord + Debug> Tally<T> {
    /// Ends the test where a whole sweep had this outcome less often.
    #[track_caller]
    pub fn saw(self, word: T, at_least: usize) -> Self {
        let times = self.came.get(&word).copied().unwrap_or(0);
        assert!(!is_whole() || self.steps == 0 || times >= at_least, "{word:?} came {times} times only: {:?}", self.came);
        self
    }
}

/// The steps of a verb, each as a line `call directory/name [directory/name]`. The verb is done.
pub fn steps_of(verb: impl Fn() -> Call) -> Vec<String> {
    let directory = tempfile::tempdir().expect("a directory for the log");
    // Whoever the verb is carried out by writes to it.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(directory.path(), open).expect("a directory for all");
    let log = directory.path().join("steps");
    // There already, so that the verb's umask closes it to nobody.
    std::fs::File::create(&log)
        .and_then(|file| file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666)))
        .expect("a log");
    verb().env("RECANT_STEPS", format!("log:{}", log.display())).run();
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    text.lines().map(|line| line.split_once(' ').map_or(line, |(_, step)| step).to_owned()).collect()
}

/// A verb that takes a session from one status to another one, and the verb that takes that back.
#[derive(Clone, Copy)]
pub struct Verb {
    pub name: &'static str,
    pub from: &'static str,
    pub to: &'static str,
    pub back: &'static str,
    /// What is done to a pending session first.
    pub first: &'static [&'static str],
}

pub const COMMIT: Verb = Verb { name: "commit", from: "pending", to: "committed", back: "rollback", first: &[] };
pub const ROLLBACK: Verb = Verb { name: "rollback", from: "committed", to: "rolled_back", back: "redo", first: &["commit"] };
pub const REDO: Verb =
    Verb { name: "redo", from: "rolled_back", to: "committed", back: "rollback", first: &["commit", "rollback"] };

/// A judge of verbs that were killed: after the recovery the session is as before the verb or as after it, and the tree with it, exactly,
/// with nothing lying about; and what is done goes back to what was there.
pub struct AllOrNothing {
    verb: Verb,
    /// What all scenes have after the verb, once one has come there. Times are those of the staging, which differ.
    after: Option<Manifest>,
}

impl AllOrNothing {
    pub fn of(verb: Verb) -> Self {
        Self { verb, after: None }
    }

    /// `before` is the tree as it was staged.
    #[track_caller]
    pub fn judge(&mut self, world: &World, id: &str, before: &Manifest, what: &str) -> Came<&'static str> {
        let Verb { from, to, back, .. } = self.verb;
        let what = format!("{what}, then {}", world.recant("recover").ok());
        world.assert_tidy(&what);
        let (now, status) = (world.manifest(), world.status(id));
        if status == from {
            before.assert_same(&now, &what);
            return Came::Unchanged(from);
        }
        assert_eq!(status, to, "{what}");
        let now = now.without_times();
        self.after.get_or_insert_with(|| now.clone()).assert_same(&now, &what);
        world.call([back, id]).run().ok();
        before.assert_same(&world.manifest(), &format!("{what}, then {back}"));
        Came::Used(to)
    }
}
