//! Snapshots that are killed, or fail, before any step (F49): one is complete or absent, what is pruned frees nothing that is needed, a
//! restore is all done or not begun.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::common::sweep::{self, Came, Sweep, steps_of};
use crate::common::{self, Call, Manifest, Said, World, until};
use crate::{number, numbers, series, sessions};

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
        let n = number(&self.world, "").parse().expect("a number");
        self.states.insert(n, self.world.manifest());
    }

    fn numbers(&self) -> Vec<u64> {
        numbers(&self.world)
    }

    /// Every snapshot that is listed comes back exactly.
    #[track_caller]
    fn all_whole(&self, what: &str) {
        for n in self.numbers() {
            self.world.recant(&format!("snapshot restore {n}")).ok();
            self.states[&n].assert_same(&self.world.manifest(), &format!("{what}: snapshot {n}"));
        }
    }

    fn call(&self, words: &str) -> Call {
        self.world.call(words.split_whitespace())
    }

    fn with(&self, words: &str, steps: &str) -> Said {
        self.call(words).env("RECANT_STEPS", steps).run()
    }
}

#[test]
fn a_create_killed_or_failing_at_any_step_leaves_no_half_snapshot() {
    for order in ["kill:N", "fail:N:28"] {
        let row = Sweep {
            name: "snapshot create",
            scene: &|| {
                let mut scene = Scene::changed();
                scene.states.insert(1, scene.world.manifest());
                Some(scene)
            },
            verb: &|scene| scene.call("snapshot create"),
            order,
        };
        let tally = row.run(|scene, said, what| {
            scene.states[&1].assert_same(&scene.world.manifest(), what);
            let is_done = scene.numbers() == [0, 1];
            assert!(is_done || said.status != 0 && scene.numbers() == [0], "{what}: {:?}", scene.numbers());
            assert!([0, 137].contains(&said.status) || said.stderr().contains("no space left"), "{what}");
            scene.create();
            scene.all_whole(what);
            Came::Used(is_done)
        });
        assert!(tally.steps > 20, "{} steps", tally.steps);
        tally.saw(false, 10).saw(true, 1);
    }
}

#[test]
fn what_a_create_that_failed_could_not_take_away_again_is_said() {
    let content = |world: &World| -> BTreeSet<PathBuf> {
        let below =
            |directory: PathBuf| std::fs::read_dir(directory).expect("a directory").map(|name| name.expect("a name").path());
        let packs = below(series(world)).filter(|path| path.extension().is_some_and(|ending| ending == "pack"));
        packs.chain(below(series(world).join("blobs"))).collect()
    };
    let mut left = 0;
    for step in sweep::steps() {
        let scene = Scene::changed();
        let before = content(&scene.world);
        // It fails, and so does whatever it does about that.
        let steps: Vec<String> = (step + 1..step + 20).map(|n| format!("fail:{n}:5")).collect();
        let said = scene.with("snapshot create", &format!("fail:{step}:28;{}", steps.join(";")));
        let stays = content(&scene.world) != before && said.status != 0 && scene.numbers() == [0];
        assert_eq!(said.stderr().contains("prune --snapshots "), stays, "step {step}: {said}");
        assert_eq!(said.stderr().contains("stays in the store"), stays, "step {step}: {said}");
        left += u32::from(stays);
        scene.world.recant("prune --snapshots").ok();
        assert!(!stays || content(&scene.world) == before, "step {step}: {said}");
        if said.status == 0 {
            return assert!(left > 3 || !sweep::is_whole(), "{left}");
        }
    }
}

/// The walk is ahead of what is read, and holds a directory wherever it is by then.
#[test]
fn what_lay_in_a_directory_that_was_moved_meanwhile_is_in_no_snapshot_without_it() {
    for take_its_place in ["true", "ln -s /etc tree/d"] {
        let row = Sweep {
            name: "snapshot create",
            scene: &|| {
                let world = World::new();
                world.write("a", vec![1; 150_000]).write("b", "b").write("d/x", "x").write("d/e/y", "y").write("z", "z");
                Some(world)
            },
            verb: &|world| world.call(["snapshot", "create"]).env("root", world.root()),
            order: &format!("run:N:cd $root && mv tree/d m && {take_its_place}"),
        };
        let tally = row.run(|world, said, what| {
            assert!([0, 4].contains(&said.status), "{what}");
            for name in ["a", "b", "d", "z"].into_iter().filter(|name| world.exists(name)) {
                world.remove(name);
            }
            let back = world.recant("snapshot restore last");
            assert!([0, 4].contains(&back.status), "{what}: {back}");
            assert_eq!((world.read("b"), world.read("z")), ("b".into(), "z".into()), "{what}: {back}");
            let has_it = world.path("d").symlink_metadata().is_ok_and(|d| d.is_dir());
            if has_it {
                assert_eq!((world.read("d/x"), world.read("d/e/y")), ("x".into(), "y".into()), "{what}: {back}");
            }
            Came::Used(has_it)
        });
        tally.saw(true, 5).saw(false, 5);
    }
}

#[test]
fn a_snapshot_that_is_made_is_told_whatever_becomes_of_old_ones() {
    let row = Sweep {
        name: "snapshot create --keep 1",
        scene: &|| {
            let scene = Scene::many();
            scene.world.write("a", "4");
            Some(scene)
        },
        verb: &|scene| scene.call("snapshot create --keep 1"),
        order: "fail:N:5",
    };
    let tally = row.run(|scene, said, what| {
        let [not_pruned, not_indexed] =
            ["old snapshots were not pruned", "snapshot 4 has no index now"].map(|word| said.stderr().contains(word));
        if said.status == 0 || not_pruned || not_indexed {
            assert_eq!((said.status, said.stdout().trim()), (0, "4"), "{what}");
            let again = scene.world.recant("snapshot create --keep 1 --if-changed").ok();
            assert_eq!(again.stdout().trim(), "4", "{what}");
            scene.world.write("a", "5");
            scene.world.recant("snapshot create --keep 1").ok();
            assert_eq!(scene.numbers(), [5], "the next one lets them go: {what}");
        } else {
            assert!(scene.numbers().starts_with(&[0, 1, 2, 3]), "{what}");
        }
        let is_pruned = said.stderr().contains("4 old snapshots pruned");
        Came::Used(if not_pruned {
            "not pruned"
        } else if not_indexed {
            "not indexed"
        } else if is_pruned {
            "done"
        } else {
            "failed"
        })
    });
    tally.saw("not pruned", 4).saw("not indexed", 2).saw("done", 1).saw("failed", 5);
}

#[test]
fn a_prune_killed_before_any_step_frees_nothing_that_is_needed() {
    kill_a_prune([0, 2], &[1, 3], Scene::many);
    kill_a_prune([0, 1], &[2], Scene::told_from_the_first);
}

fn kill_a_prune(gone: [u64; 2], stay: &[u64], scene: fn() -> Scene) {
    let words = format!("prune --snapshots --number {} --number {}", gone[0], gone[1]);
    let used = |scene: &Scene| {
        let names = std::fs::read_dir(series(&scene.world)).expect("its names");
        let mut names: Vec<_> = names.map(|name| name.expect("a name").file_name()).collect();
        names.sort();
        names
    };
    let whole = scene();
    whole.world.recant(&words).ok();
    let wanted = used(&whole);
    let row = Sweep { name: &words, scene: &|| Some(scene()), verb: &|scene| scene.call(&words), order: "kill:N" };
    let tally = row.run(|scene, said, what| {
        scene.all_whole(what);
        let numbers = scene.numbers();
        for n in gone.into_iter().filter(|n| numbers.contains(n)) {
            scene.world.recant(&format!("prune --snapshots --number {n}")).ok();
        }
        scene.world.recant("prune --snapshots").ok();
        assert_eq!(scene.numbers(), stay, "{what}");
        assert_eq!(used(scene), wanted, "{what}: the next prune frees the rest");
        scene.all_whole(what);
        Came::Used(said.status)
    });
    assert!(tally.steps >= 4, "{words}: {} steps", tally.steps);
}

#[test]
fn all_snapshots_of_a_directory_are_dropped_or_none_is_when_that_is_killed() {
    let row = Sweep {
        name: "prune --snapshots --all",
        scene: &|| Some(Scene::many()),
        verb: &|scene| scene.call(&format!("prune --snapshots {} --all", scene.world.tree().display())),
        order: "kill:N",
    };
    let tally = row.run(|scene, _, what| {
        let numbers = scene.numbers();
        assert!(numbers == [0, 1, 2, 3] || numbers.is_empty(), "{what}: {numbers:?}");
        scene.all_whole(what);
        if numbers.is_empty() {
            assert_eq!(scene.world.recant("snapshot create").ok().id(), "0", "{what}: the next one is of another series");
            scene.states = BTreeMap::from([(0, scene.world.manifest())]);
            scene.all_whole(what);
        }
        scene.call(&format!("prune --snapshots {} --all", scene.world.tree().display())).run().ok();
        // Whatever begins a session sweeps.
        let id = scene.world.begin();
        let snapshots = std::fs::read_dir(scene.world.store().join("snapshots")).expect("a directory").count();
        assert_eq!((snapshots, scene.world.leftovers()), (0, Vec::new()), "{what}");
        let of_sessions = std::fs::read_dir(scene.world.store().join("sessions")).expect("a directory");
        let left: Vec<_> = of_sessions.map(|name| name.expect("a name").file_name()).filter(|name| *name != *id).collect();
        assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{what}: {left:?}");
        Came::Used(numbers.is_empty())
    });
    assert!(tally.steps >= 10, "{} steps", tally.steps);
    tally.saw(true, 1).saw(false, 1);
}

#[test]
fn a_create_that_waited_while_all_were_dropped_takes_none_where_nobody_looks() {
    let scene = Scene::changed();
    let drop_all = || scene.world.call(["prune", "--snapshots", "--all", "."]);
    let steps = steps_of(drop_all);
    let is_it = |step: &String| step.contains("/snapshots/") && step.contains("rename");
    let takes_the_name = 1 + steps.iter().position(is_it).unwrap_or_else(|| panic!("no rename: {steps:?}"));
    scene.world.recant("snapshot create").ok();

    let status = scene.world.root().join("status");
    let create = {
        let (recant, status) = (common::recant(), status.display());
        format!("(if {recant} snapshot create >/dev/null\nthen echo 0 >{status}\nelse echo 1 >{status}\nfi) & sleep 0.5")
    };
    // It is killed before anything is swept: the directory is there still, under another name.
    let steps = format!("run:{takes_the_name}:{create};kill:{}", takes_the_name + 2);
    drop_all().env("RECANT_STEPS", steps).run().with(137);
    until("the other's end", || std::fs::read_to_string(&status).is_ok_and(|text| text == "1\n"));
    assert!(scene.numbers().is_empty());
    assert_eq!(scene.world.recant("snapshot create").ok().id(), "0");
}

#[test]
fn a_restore_killed_before_any_step_is_all_done_or_not_begun() {
    kill_a_restore(|| Scene::of(1));
}

/// Two threads fill its session, and a third writes out what they wrote.
#[test]
fn a_restore_of_many_files_that_is_killed_is_all_done_or_not_begun() {
    kill_a_restore(|| {
        let scene = Scene::of(70);
        scene.world.remove("many");
        scene
    });
}

fn kill_a_restore(scene: impl Fn() -> Scene) {
    let row = Sweep {
        name: "snapshot restore 0",
        scene: &|| {
            let mut scene = scene();
            scene.states.insert(1, scene.world.manifest());
            Some(scene)
        },
        verb: &|scene| scene.call("snapshot restore 0"),
        order: "kill:N",
    };
    let tally = row.run(|scene, said, what| {
        let what = format!("{what}, then {}", scene.world.recant("recover").ok());
        let left = scene.world.recant("list --json").ok().json()["sessions"].as_array().expect("a list").len();
        scene.world.assert_tidy(&what);
        let (before, now) = (&scene.states[&1], scene.world.manifest());
        let done = now == scene.states[&0];
        let one = usize::from(done);
        assert_eq!((left, sessions(&scene.world)), (one, one), "{what}: a restore that came to nothing leaves no session");
        assert!(done || said.status == 137, "{what}");
        if !done {
            before.assert_same(&now, &what);
            return Came::Unchanged(done);
        }
        scene.world.recant("rollback last").ok();
        before.assert_same(&scene.world.manifest(), &format!("{what}, then a rollback"));
        Came::Used(done)
    });
    assert!(tally.steps > 60, "{} steps", tally.steps);
    tally.saw(false, 20).saw(true, 2);
}

/// The steps of `words` that fit; `scene` is used up.
fn steps_that(scene: &Scene, words: &str, fit: impl Fn(&str) -> bool) -> Vec<usize> {
    let steps = steps_of(|| scene.call(words));
    let found: Vec<usize> = (1..=steps.len()).filter(|n| fit(&steps[n - 1])).collect();
    assert!(!found.is_empty(), "{words}: no such step in {steps:?}");
    found
}

/// A restore that was killed while its session was filled: nothing of it is on the tree.
fn killed_while_filled() -> Scene {
    let is_lines = |line: &str| line.contains("changes.jsonl.new");
    let step = steps_that(&Scene::changed(), "snapshot restore 0", is_lines)[0];
    let scene = Scene::changed();
    assert_eq!(scene.with("snapshot restore 0", &format!("kill:{step}")).status, 137);
    scene
}

/// The bytes may be many: who begins a session meanwhile does not wait for them.
#[test]
fn what_a_killed_restore_left_is_removed_while_others_begin_sessions() {
    let removes = |line: &str| line.contains("unlinkat") && line.contains("/.gone-");
    for words in ["session new", "snapshot restore 0", "recover"] {
        let step = steps_that(&killed_while_filled(), words, removes)[0];
        let scene = killed_while_filled();
        let other = format!("{} session new > other 2>&1", common::recant());
        let said = scene.with(words, &format!("run:{step}:cd {} && {other}", scene.world.root().display()));
        assert_eq!(said.status, 0, "{words}: {said}");
        scene.world.assert_tidy(words);
    }
}

/// It is nobody's, and goes with the next verb that begins one: until then a reader does not offer it for a commit.
#[test]
fn what_a_killed_restore_left_is_listed_by_nothing_and_stops_nothing_where_it_cannot_be_removed() {
    let removes = |line: &str| line.contains("unlinkat") && line.contains("/.gone-");
    let step = steps_that(&killed_while_filled(), "session new", removes)[0];
    let scene = killed_while_filled();
    assert_eq!(sessions(&scene.world), 1, "it is there");
    let listed = scene.world.recant("list --json").ok().json();
    assert_eq!(listed["sessions"], serde_json::json!([]));
    let said = scene.with("session new", &format!("fail:{step}:5")).ok();
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
    let prune = format!("{} prune --snapshots --number 0 > pruned 2>&1 &", common::recant());
    let said = scene.with("snapshot create", &format!("run:8:cd {} && {prune}", scene.world.root().display())).ok();
    scene.states.insert(said.id().parse().expect("a number"), state);
    let pruned = || std::fs::read_to_string(scene.world.root().join("pruned")).unwrap_or_default();
    until("the prune's end", || ["freed", "no snapshots"].iter().any(|word| pruned().contains(word)));
    scene.all_whole("after both");
}
