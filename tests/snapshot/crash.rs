//! Snapshots that are killed, or fail, before any step (F49): one is complete or absent, what is pruned frees nothing that is needed, a
//! restore is all done or not begun.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::common::{self, Manifest, Said, World};

/// A directory, its snapshots, and the state that each of them is of.
struct Scene {
    world: World,
    states: BTreeMap<u64, Manifest>,
}

impl Scene {
    /// One snapshot, and changes since.
    fn changed() -> Self {
        Self::of(12)
    }

    fn of(many: u32) -> Self {
        let world = World::new();
        world.write("a", "1").write("same", "same").write("deep/er/f", "f").link("a", "b").symlink("a", "link");
        world.symlink("a", "one").link("one", "two");
        world.write("large", vec![1; 150_000]).write("gone/x", "x").chmod("same", 0o640);
        for i in 0..many {
            world.write(format!("many/{i}"), format!("{i}"));
        }
        let mut scene = Self { world, states: BTreeMap::new() };
        scene.create();
        scene.world.write("a", "2").write("new/f", "n").write("large", vec![2; 160_000]).remove("gone").chmod("same", 0o600);
        scene.world.remove("one").remove("two");
        scene.world.remove("link").mkdir("link").write("many/3", "other");
        scene
    }

    /// Several, that share content and a base.
    fn many() -> Self {
        let mut scene = Self::changed();
        scene.create();
        scene.world.write("a", "3").write("large", vec![1; 150_000]);
        scene.create();
        scene.world.remove("new").write("many/5", "five");
        scene.create();
        scene
    }

    /// The second is told from the first, and no later one is.
    fn told_from_the_first() -> Self {
        let mut scene = Self::of(60);
        scene.create();
        for i in 0..60 {
            scene.world.write(format!("many/{i}"), format!("other {i}"));
        }
        scene.create();
        scene
    }

    fn create(&mut self) {
        let n = self.world.recant("snapshot create").ok().id().parse().expect("a number");
        self.states.insert(n, self.world.manifest());
    }

    fn numbers(&self) -> Vec<u64> {
        let rows = self.world.recant("snapshot list --jsonl").ok().json_lines();
        rows.iter().map(|row| row["n"].as_u64().expect("a number")).rev().collect()
    }

    /// Every snapshot that is listed comes back exactly.
    #[track_caller]
    fn all_whole(&self, what: &str) {
        for n in self.numbers() {
            self.world.recant(&format!("snapshot restore {n}")).ok();
            self.states[&n].assert_same(&self.world.manifest(), &format!("{what}: snapshot {n}"));
        }
    }

    fn with(&self, words: &str, steps: &str) -> Said {
        self.world.call(words.split_whitespace()).env("RECANT_STEPS", steps).run()
    }
}

#[test]
fn a_create_killed_before_any_step_leaves_no_half_snapshot() {
    for step in common::steps() {
        let mut scene = Scene::changed();
        let state = scene.world.manifest();
        let said = scene.with("snapshot create", &format!("kill:{step}"));
        let what = format!("killed before step {step}");
        state.assert_same(&scene.world.manifest(), &what);
        if said.status == 137 {
            let numbers = scene.numbers();
            assert!(numbers == [0] || numbers == [0, 1], "{what}: {numbers:?}");
        } else {
            assert_eq!((said.status, step > 15), (0, true), "{what}: {said}");
        }
        scene.states.insert(1, state);
        scene.create();
        scene.all_whole(&what);
        if said.status == 0 {
            return;
        }
    }
}

#[test]
fn what_a_create_that_failed_could_not_take_away_again_is_said() {
    let content = |world: &World| -> BTreeSet<PathBuf> {
        let series =
            std::fs::read_dir(world.store().join("snapshots")).expect("a directory").next().expect("one").expect("a name").path();
        let below = |directory: &str| {
            std::fs::read_dir(series.join(directory)).expect("a directory").map(|entry| entry.expect("a name").path())
        };
        below("").filter(|path| path.extension().is_some_and(|ending| ending == "pack")).chain(below("blobs")).collect()
    };
    let mut left = 0;
    for step in common::steps() {
        let scene = Scene::changed();
        let before = content(&scene.world);
        // It fails, and so does whatever it does about that.
        let steps: Vec<String> = (step + 1..step + 20).map(|n| format!("fail:{n}:5")).collect();
        let said = scene.with("snapshot create", &format!("fail:{step}:28;{}", steps.join(";")));
        let stays = content(&scene.world) != before && said.status != 0 && scene.numbers() == [0];
        assert_eq!(said.stderr().contains("snapshot prune "), stays, "step {step}: {said}");
        assert_eq!(said.stderr().contains("stays in the store"), stays, "step {step}: {said}");
        left += u32::from(stays);
        scene.world.recant("snapshot prune").ok();
        assert!(!stays || content(&scene.world) == before, "step {step}: {said}");
        if said.status == 0 {
            return assert!(left > 3, "{left}");
        }
    }
}

/// The walk is ahead of what is read, and holds a directory wherever it is by then.
#[test]
fn what_lay_in_a_directory_that_was_moved_meanwhile_is_in_no_snapshot_without_it() {
    let mut moved = 0;
    for (step, take_its_place) in (14..=40).flat_map(|step| [(step, "true"), (step, "ln -s /etc tree/d")]) {
        let world = World::new();
        world.write("a", vec![1; 150_000]).write("b", "b").write("d/x", "x").write("d/e/y", "y").write("z", "z");
        let script = format!("run:{step}:cd {} && mv tree/d m && {take_its_place}", world.root().display());
        let said = world.call(["snapshot", "create"]).env("RECANT_STEPS", script).run();
        let what = format!("step {step}, {take_its_place}: {said}");
        moved += u32::from(world.root().join("m").exists());
        assert!([0, 4].contains(&said.status), "{what}");
        for name in ["a", "b", "d", "z"] {
            if world.path(name).symlink_metadata().is_ok() {
                world.remove(name);
            }
        }
        let back = world.recant("snapshot restore last");
        assert!([0, 4].contains(&back.status), "{what}: {back}");
        assert_eq!((world.read("b"), world.read("z")), ("b".into(), "z".into()), "{what}: {back}");
        if world.path("d").symlink_metadata().is_ok_and(|d| d.is_dir()) {
            assert_eq!((world.read("d/x"), world.read("d/e/y")), ("x".into(), "y".into()), "{what}: {back}");
        }
    }
    assert!(moved > 8, "{moved}");
}

#[test]
fn a_snapshot_that_is_made_is_told_whatever_becomes_of_old_ones() {
    let (mut not_pruned, mut not_indexed) = (0, 0);
    for step in common::steps() {
        let scene = Scene::many();
        scene.world.write("a", "4");
        let said = scene.with("snapshot create --keep 1", &format!("fail:{step}:5"));
        let what = format!("EIO at step {step}: {said}");
        if said.stderr().contains("old snapshots were not pruned") {
            not_pruned += 1;
            assert_eq!((said.status, said.stdout().trim()), (0, "4"), "{what}");
            let words = "snapshot create --keep 1 --if-changed";
            assert_eq!(scene.world.recant(words).ok().stdout().trim(), "4", "{what}");
            scene.world.write("a", "5");
            scene.world.recant("snapshot create --keep 1").ok();
            assert_eq!(scene.numbers(), [5], "the next one lets them go: {what}");
        }
        if said.stderr().contains("snapshot 4 has no index now") {
            not_indexed += 1;
            assert_eq!((said.status, said.stdout().trim()), (0, "4"), "{what}");
            assert_eq!(scene.world.recant("snapshot create --if-changed").ok().stdout().trim(), "4", "{what}");
        } else if said.status == 0 && said.stderr().contains("4 old snapshots pruned") {
            break;
        }
    }
    assert!(not_pruned > 3 && not_indexed > 1, "{not_pruned}, {not_indexed}");
}

#[test]
fn a_create_that_fails_at_any_step_says_so_and_leaves_no_half_snapshot() {
    for step in common::steps() {
        let mut scene = Scene::changed();
        let state = scene.world.manifest();
        let said = scene.with("snapshot create", &format!("fail:{step}:28"));
        let what = format!("no room at step {step}");
        state.assert_same(&scene.world.manifest(), &what);
        if said.status != 0 {
            assert!(said.stderr().contains("no space left"), "{what}: {said}");
            let numbers = scene.numbers();
            assert!(numbers == [0] || numbers == [0, 1], "{what}: {numbers:?}");
        }
        scene.states.insert(1, state);
        scene.create();
        scene.all_whole(&what);
        if said.status == 0 && step > 20 {
            return;
        }
    }
}

#[test]
fn a_prune_killed_before_any_step_frees_nothing_that_is_needed() {
    kill_a_prune([0, 2], &[1, 3], Scene::many);
    kill_a_prune([0, 1], &[2], Scene::told_from_the_first);
}

fn kill_a_prune(gone: [u64; 2], stay: &[u64], scene: fn() -> Scene) {
    let words = format!("snapshot prune --number {} --number {}", gone[0], gone[1]);
    let used = |scene: &Scene| {
        let all = std::fs::read_dir(scene.world.store().join("snapshots")).expect("a directory").next();
        let names = std::fs::read_dir(all.expect("one").expect("a name").path()).expect("its names");
        let mut names: Vec<_> = names.map(|name| name.expect("a name").file_name()).collect();
        names.sort();
        names
    };
    let whole = scene();
    whole.world.recant(&words).ok();
    let wanted = used(&whole);
    for step in common::steps() {
        let scene = scene();
        let said = scene.with(&words, &format!("kill:{step}"));
        let what = format!("{words} killed before step {step}");
        scene.all_whole(&what);
        if said.status == 0 {
            assert!(step > 4, "{what}");
            return;
        }
        let numbers = scene.numbers();
        for n in gone.into_iter().filter(|n| numbers.contains(n)) {
            scene.world.recant(&format!("snapshot prune --number {n}")).ok();
        }
        scene.world.recant("snapshot prune").ok();
        assert_eq!(scene.numbers(), stay, "{what}");
        assert_eq!(used(&scene), wanted, "{what}: the next prune frees the rest");
        scene.all_whole(&what);
    }
}

#[test]
fn all_snapshots_of_a_directory_are_dropped_or_none_is_when_that_is_killed() {
    let words = |scene: &Scene| format!("snapshot prune {} --all", scene.world.tree().display());
    for step in common::steps() {
        let mut scene = Scene::many();
        let said = scene.with(&words(&scene), &format!("kill:{step}"));
        let what = format!("killed before step {step}");
        let numbers = scene.numbers();
        assert!(numbers == [0, 1, 2, 3] || numbers.is_empty(), "{what}: {numbers:?}");
        scene.all_whole(&what);
        if numbers.is_empty() {
            assert_eq!(scene.world.recant("snapshot create").ok().id(), "0", "{what}: the next one is of another series");
            scene.states = BTreeMap::from([(0, scene.world.manifest())]);
            scene.all_whole(&what);
        }
        if !scene.numbers().is_empty() {
            scene.world.recant(&words(&scene)).ok();
        }
        // Whatever begins a session sweeps.
        let id = scene.world.begin();
        let snapshots = std::fs::read_dir(scene.world.store().join("snapshots")).expect("a directory").count();
        assert_eq!((snapshots, scene.world.leftovers()), (0, Vec::new()), "{what}");
        let of_sessions = std::fs::read_dir(scene.world.store().join("sessions")).expect("a directory");
        let left: Vec<_> = of_sessions.map(|name| name.expect("a name").file_name()).filter(|name| *name != *id).collect();
        assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{what}: {left:?}");
        if said.status == 0 {
            assert!(step > 10, "{what}");
            return;
        }
    }
}

#[test]
fn a_create_that_waited_while_all_were_dropped_takes_none_where_nobody_looks() {
    let scene = Scene::changed();
    let drop_all = || scene.world.call(["snapshot", "prune", "--all", "--dir", "."]);
    let log = scene.world.root().join("log");
    drop_all().env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
    let steps = std::fs::read_to_string(&log).expect("the log");
    let takes_the_name =
        1 + steps.lines().position(|line| line.contains("/snapshots/") && line.contains("rename")).expect("a rename");
    scene.world.recant("snapshot create").ok();

    let status = scene.world.root().join("status");
    let create = {
        let (recant, status) = (common::recant(), status.display());
        format!("(if {recant} snapshot create >/dev/null\nthen echo 0 >{status}\nelse echo 1 >{status}\nfi) & sleep 0.5")
    };
    // It is killed before anything is swept: the directory is there still, under another name.
    let steps = format!("run:{takes_the_name}:{create};kill:{}", takes_the_name + 2);
    drop_all().env("RECANT_STEPS", steps).run().with(137);
    let ended = (0..200).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        std::fs::read_to_string(&status).ok().filter(|text| !text.is_empty())
    });
    assert_eq!(ended.as_deref(), Some("1\n"), "it is refused");
    assert!(scene.numbers().is_empty());
    assert_eq!(scene.world.recant("snapshot create").ok().id(), "0");
}

#[test]
fn a_restore_killed_before_any_step_is_all_done_or_not_begun() {
    kill_a_restore(1, || Scene::of(1));
}

/// Two threads fill its session, and a third writes out what they wrote.
#[test]
fn a_restore_of_many_files_that_is_killed_is_all_done_or_not_begun() {
    kill_a_restore(71, || {
        let scene = Scene::of(150);
        scene.world.remove("many");
        scene
    });
}

/// Before every step, or each so-manieth.
fn kill_a_restore(each: usize, scene: impl Fn() -> Scene) {
    for step in common::steps().step_by(each) {
        let scene = scene();
        let before = scene.world.manifest();
        let said = scene.with("snapshot restore 0", &format!("kill:{step}"));
        let what = format!("killed before step {step}");
        let recovered = scene.world.recant("recover").ok();
        let left = scene.world.recant("list --json").ok().json()["sessions"].as_array().expect("a list").len();
        let directories = std::fs::read_dir(scene.world.store().join("sessions")).expect("a directory").count();
        scene.world.assert_tidy(&what);
        let now = scene.world.manifest();
        let done = now == scene.states[&0];
        assert_eq!(
            (left, directories),
            (usize::from(done), usize::from(done)),
            "{what}: a restore that came to nothing leaves no session"
        );
        if said.status == 0 {
            assert!(done && step > 60, "{what}: {said}");
            return;
        }
        if done {
            scene.world.recant("rollback last").ok();
            before.assert_same(&scene.world.manifest(), &format!("{what}: {recovered}, then a rollback"));
        } else {
            before.assert_same(&now, &format!("{what}: {recovered}"));
            scene.world.recant("snapshot restore 0").ok();
            scene.states[&0].assert_same(&scene.world.manifest(), &format!("{what}: again"));
        }
    }
}

/// The steps of `words` whose lines in a log of them fit; `scene` is used up.
fn steps_of(scene: &Scene, words: &str, fits: impl Fn(&str) -> bool) -> Vec<usize> {
    let log = scene.world.root().join("steps");
    scene.with(words, &format!("log:{}", log.display()));
    let steps = std::fs::read_to_string(&log).expect("a log");
    let found: Vec<usize> = steps.lines().zip(1..).filter(|(line, _)| fits(line)).map(|(_, step)| step).collect();
    assert!(!found.is_empty(), "{words}: no such step in\n{steps}");
    found
}

/// A restore that was killed while its session was filled: nothing of it is on the tree.
fn killed_while_filled() -> Scene {
    let is_lines = |line: &str| line.contains("changes.jsonl.new");
    let step = steps_of(&Scene::changed(), "snapshot restore 0", is_lines)[0];
    let scene = Scene::changed();
    assert_eq!(scene.with("snapshot restore 0", &format!("kill:{step}")).status, 137);
    scene
}

/// The bytes may be many: who begins a session meanwhile does not wait for them.
#[test]
fn what_a_killed_restore_left_is_removed_while_others_begin_sessions() {
    let removes = |line: &str| line.contains("unlinkat") && line.contains("/.gone-");
    for words in ["session new", "snapshot restore 0", "recover"] {
        let step = steps_of(&killed_while_filled(), words, removes)[0];
        let scene = killed_while_filled();
        let other = format!("{} session new > other 2>&1", common::recant());
        let said = scene.with(words, &format!("run:{step}:cd {} && {other}", scene.world.root().display()));
        assert_eq!(said.status, 0, "{words}: {said}");
        scene.world.assert_tidy(words);
    }
}

/// It is nobody's, and goes with the next verb that begins one: until then a reader does not offer it for a commit.
#[test]
fn what_a_killed_restore_left_is_listed_by_nothing() {
    let scene = killed_while_filled();
    let directories = std::fs::read_dir(scene.world.store().join("sessions")).expect("a directory").count();
    assert_eq!(directories, 1, "it is there");
    let listed = scene.world.recant("list --json").ok().json();
    assert_eq!(listed["sessions"], serde_json::json!([]));
}

#[test]
fn what_a_killed_restore_left_and_cannot_be_removed_is_named_and_stops_nothing() {
    let removes = |line: &str| line.contains("unlinkat") && line.contains("/.gone-");
    let step = steps_of(&killed_while_filled(), "session new", removes)[0];
    let scene = killed_while_filled();
    let said = scene.with("session new", &format!("fail:{step}:5"));
    assert_eq!(said.status, 0, "{said}");
    assert!(said.stderr().contains("/sessions/.gone-") && said.stderr().contains("cannot remove"), "{said}");
    scene.world.recant("session new").ok();
    scene.world.assert_tidy("the next verb removes it");
}

/// A prune waits for a create; both are whole.
#[test]
fn a_prune_beside_a_create_frees_nothing_that_it_names() {
    let mut scene = Scene::many();
    // Content of snapshot 0 alone comes back while that is pruned.
    scene.world.write("gone/x", "x").write("a", "1");
    let state = scene.world.manifest();
    let prune = format!("{} snapshot prune --number 0 > pruned 2>&1 &", common::recant());
    let said = scene.with("snapshot create", &format!("run:8:cd {} && {prune}", scene.world.root().display()));
    assert_eq!(said.status, 0, "{said}");
    scene.states.insert(said.id().parse().expect("a number"), state);
    let pruned = scene.world.root().join("pruned");
    for _ in 0..500 {
        if std::fs::read_to_string(&pruned).is_ok_and(|text| text.contains("freed") || text.contains("no snapshots of it")) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    scene.all_whole("after both");
}
