//! `snapshot create`, `prune` and `restore` under power cuts: each is cut at each of its syncs. Then every snapshot that is listed gives
//! back what it was taken of, what was done before the cut is there, and the same verb again is done.

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::common::{self, Manifest};
use super::record::Record;
use super::{Caught, Cutting, Scene, Size, timeless};

/// One verb on a scene with snapshots 0 to 2 of three states of the tree, which holds a fourth.
struct Taking<'s> {
    scene: &'s Scene,
    words: &'static [&'static str],
    /// What each number stands for; the last is the tree as it is.
    wanted: Vec<Manifest>,
    whole: Record,
}

const CREATE: &[&str] = &["snapshot", "create"];
const PRUNE: &[&str] = &["prune", "--snapshots", "--keep", "1"];
const RESTORE: &[&str] = &["snapshot", "restore", "1"];

/// A scene whose tree goes through four states, small files and one that is kept as a blob among them.
fn scene() -> (Scene, Vec<Manifest>) {
    let scene = Scene::new(Size::Few, false).expect("one file system");
    let world = &scene.world;
    let mut wanted = Vec::new();
    for i in 0..4_u8 {
        world.write("edited", format!("state {i}").repeat(300)).write(format!("new-{i}"), "n").write("large", vec![i; 200_000]);
        if i > 0 {
            world.remove(format!("new-{}", i - 1)).write("full/a", format!("{i}"));
        }
        world.set_mtime("", 1_100_000_000 + i64::from(i), 3).set_mtime("full", 1_100_000_000 + i64::from(i), 3);
        wanted.push(timeless(world.manifest()));
        if i < 3 {
            world.recant("snapshot create").ok();
        }
    }
    scene.keep();
    (scene, wanted)
}

impl<'s> Taking<'s> {
    fn new(scene: &'s Scene, wanted: &[Manifest], words: &'static [&'static str]) -> Self {
        let mut taking = Self { scene, words, wanted: wanted.to_vec(), whole: Record::default() };
        taking.whole = taking.run(None);
        taking
    }
}

impl Cutting for Taking<'_> {
    fn name(&self) -> String {
        self.words.join(" ")
    }

    fn on(&self) -> (&Scene, &Record) {
        (self.scene, &self.whole)
    }

    fn run(&self, until: Option<usize>) -> Record {
        fresh(self.scene);
        // Nobody knows whether what a restore takes off the tree was synced. A snapshot answers for what it copied, not for the tree.
        let taken_off: &[&str] = if self.words == RESTORE { &["edited", "large", "full/a", "new-3"] } else { &[] };
        let look = |name: &&str| {
            let meta = self.scene.world.path(name).symlink_metadata().expect("a file");
            ((meta.dev(), meta.ino()), meta.len())
        };
        Record { dirty: taken_off.iter().map(look).collect(), ..self.scene.record(self.words, until) }
    }

    fn judge(&self, at_end: bool, seed: u64) -> Result<(), String> {
        if self.words == RESTORE {
            self.judge_restore(at_end)?;
        }
        let listed = self.listed()?;
        let done: &[u64] = match self.words {
            CREATE => &[0, 1, 2, 3],
            PRUNE => &[2],
            _ => &[0, 1, 2],
        };
        if at_end && listed != done {
            return Err(format!("it was done, and {listed:?} is what there is"));
        }
        let before: &[u64] = if self.words == PRUNE { &[2] } else { &[0, 1, 2] };
        if before.iter().any(|n| !listed.contains(n)) {
            return Err(format!("of {before:?} only {listed:?} are there"));
        }
        // Before another create stores anew what it finds missing.
        self.said(&["snapshot", "verify"])?;
        // The same again is done, and what was needed is needed still.
        if self.words != RESTORE {
            self.said(self.words)?;
        }
        let then = self.listed()?;
        if self.words == CREATE && listed.iter().any(|n| !then.contains(n)) {
            return Err(format!("of {listed:?} only {then:?} are there"));
        }
        // A restore reads snapshots alone, and all were verified: one in turn tells that they can be restored still.
        let one = usize::try_from(seed).expect("a small number") % then.len();
        self.give_back(if self.words == RESTORE { &then[one..=one] } else { &then })
    }
}

impl Taking<'_> {
    /// A restore is a session of the engine's: the tree is as before or as wanted, and the way back is there.
    fn judge_restore(&self, at_end: bool) -> Result<(), String> {
        self.said(&["recover"])?;
        let now = timeless(self.scene.world.manifest());
        let differs = |wanted: &Manifest| wanted.difference(&now);
        let (restored, before) = (&self.wanted[1], &self.wanted[3]);
        let difference = differs(restored);
        if at_end && !difference.is_empty() || !difference.is_empty() && !differs(before).is_empty() {
            return Err(format!("neither as before nor as wanted: {difference}"));
        }
        if difference.is_empty() {
            self.said(&["rollback", "last"])?;
            let back = before.difference(&timeless(self.scene.world.manifest()));
            return if back.is_empty() { Ok(()) } else { Err(format!("rolled back: {back}")) };
        }
        Ok(())
    }

    /// Each of them gives back what it was taken of.
    fn give_back(&self, numbers: &[u64]) -> Result<(), String> {
        for n in numbers {
            self.said(&["snapshot", "restore", &n.to_string()])?;
            // From 3 on it is the last state.
            let wanted = &self.wanted[usize::try_from(*n).map_or(3, |n| n.min(3))];
            let difference = wanted.difference(&timeless(self.scene.world.manifest()));
            if !difference.is_empty() {
                return Err(format!("snapshot {n} gave something else back: {difference}"));
            }
        }
        Ok(())
    }

    fn listed(&self) -> Result<Vec<u64>, String> {
        let said = self.said(&["snapshot", "list", "--json"])?;
        let list: serde_json::Value = serde_json::from_str(&said).map_err(|error| format!("{error}: {said}"))?;
        let mut numbers: Vec<u64> =
            list["snapshots"].as_array().expect("a list").iter().filter_map(|s| s["n"].as_u64()).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn said(&self, words: &[&str]) -> Result<String, String> {
        let said = self.scene.recant(words);
        let [out, err] = [&said.stdout[..], &said.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        if said.status.success() { Ok(out) } else { Err(format!("{}: {}\n{out}{err}", words.join(" "), said.status)) }
    }
}

/// The scene at its beginning, once its files are old enough for their times to be believed: else what is read, and noted, would differ from
/// run to run.
fn fresh(scene: &Scene) {
    scene.reset();
    let youngest = || {
        let ages = scene.world.manifest().0.into_keys().map(|path| {
            let meta = scene.world.path(common::name(&path)).symlink_metadata().expect("an object");
            let changed = UNIX_EPOCH + Duration::new(meta.ctime().unsigned_abs(), u32::try_from(meta.ctime_nsec()).unwrap_or(0));
            SystemTime::now().duration_since(changed).unwrap_or_default()
        });
        ages.min().expect("a tree")
    };
    while youngest() < Duration::from_millis(40) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn each(mut test: impl FnMut(&Taking<'_>)) {
    for words in [CREATE, PRUNE, RESTORE] {
        let (scene, wanted) = scene();
        test(&Taking::new(&scene, &wanted, words));
    }
}

#[test]
fn after_a_power_cut_every_snapshot_that_is_there_is_whole() {
    each(|taking| taking.sweep(2));
}

#[test]
#[ignore = "long: it proves comments on syncs, not the product"]
fn each_sync_of_a_snapshot_is_needed_or_says_why_nothing_is_caught_here() {
    let mut caught = Caught::default();
    each(|taking| taking.leave_each_out(&mut caught, "src/snapshot/"));
    caught.assert_needed();
}
