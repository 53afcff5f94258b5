//! Killed before every step that changes anything, each operation is afterwards all done or not begun (engine I1 to I5; tests/README.md, F1
//! to F3). The real binary is killed with SIGKILL by the hook that all its changes pass.

use std::path::PathBuf;

use crate::Scene;
use crate::common::sweep::{AllOrNothing, COMMIT, Came, REDO, ROLLBACK, Sweep, Verb, is_due, is_whole, steps_of};
use crate::common::{self, Manifest};

/// A tree with objects of every kind, and a session that changes each of them in some way.
fn all_kinds(two: bool) -> Option<Scene> {
    let mut scene = Scene::new(two)?;
    let world = &scene.world;
    world.write("edited", "old").write("empty", "").write("gone", "away").write("moded", "x");
    world.write("one", "linked").write("full/a", "1").write("full/sub/b", "2");
    world.write("kind/file", "f").mkdir("kind/directory").symlink("nowhere", "kind/link").fifo("kind/fifo");
    world.write("kind/full/x", "x").symlink("old", "link").fifo("fifo").chmod("edited", 0o600).chmod("full/sub", 0o500);
    world.set_xattr("edited", "user.kept", "1");
    for name in ["full", "full/sub", "kind", "kind/full", ""] {
        world.set_mtime(name, 1_000_000_000, 7);
    }
    if !two {
        // Between two file systems a name outside the session cannot be rejoined.
        world.link("one", "two");
    }
    scene.begin([
        "write edited new",
        "write empty filled",
        "write one edited alone",
        "write new/deep/er n",
        "write new/again n",
        "delete gone",
        "delete full",
        "delete link",
        "delete fifo",
        "chmod 0640 moded",
        "mkdir hollow",
        "mkdir kind/file",
        "symlink to kind/directory",
        "write kind/link/in in",
        "write kind/fifo was a fifo",
        "symlink to kind/full",
    ]);
    Some(scene)
}

/// Metadata that is set under several names of a file.
fn names() -> Option<Scene> {
    let mut scene = Scene::new(false)?;
    scene.world.write("one", "linked").link("one", "two").link("one", "three").chmod("one", 0o644);
    scene.begin(["chmod 0600 one", "chmod 0600 two", "chmod 0600 three"]);
    Some(scene)
}

/// What a command wrote: it lies in uppers, which are cleared away once they are not needed.
fn a_run(two: bool) -> Option<Scene> {
    if !common::can_run() {
        return None;
    }
    let mut scene = Scene::new(two)?;
    let world = &scene.world;
    world.write("edited", "old").write("gone/sub/1", "away").write("moded", "x").write("timed", "t").write("sub/calm", "c");
    for (i, path) in world.manifest().0.keys().rev().enumerate() {
        world.set_mtime(common::name(path), 1_000_000_000 + i as i64, 7);
    }
    let script = "echo new > edited; rm -r gone; mkdir -p made/deep; echo n > made/deep/n; mkfifo made/fifo; \
                  ln made/deep/n made/n; chmod 600 moded; ln -s edited link; touch -d @900000000 timed";
    world.call(["run", "--", "sh", "-c", script]).run().ok();
    scene.id = scene.world.recant("show --json").ok().json()["session"]["id"].as_str().expect("an id").to_owned();
    scene.before = scene.world.manifest();
    Some(scene)
}

/// What comes before a verb is done.
fn after_the_first(mut scene: Scene, verb: Verb) -> Scene {
    verb.first.iter().for_each(|verb| drop(scene.ok(verb)));
    if verb.name == REDO.name {
        scene.before.assert_same(&scene.world.manifest(), "after a rollback");
    }
    scene.before = scene.world.manifest();
    scene
}

/// Each verb, killed before each step, of each scene.
fn sweep(scenes: &[(&str, &dyn Fn() -> Option<Scene>)], verbs: &[(Verb, usize)]) {
    for ((name, scene), (verb, least)) in scenes.iter().flat_map(|scene| verbs.iter().map(move |verb| (scene, verb))) {
        let row = Sweep {
            name: &format!("{name}: {}", verb.name),
            scene: &|| scene().map(|scene| after_the_first(scene, *verb)),
            verb: &|case: &Scene| case.call(verb.name),
            order: "kill:N",
        };
        let mut all_or_nothing = AllOrNothing::of(*verb);
        let tally = row.run(|scene, _, what| all_or_nothing.judge(&scene.world, &scene.id, &scene.before, what));
        assert!(tally.steps == 0 || tally.steps > *least, "{name}: {} has {} steps", verb.name, tally.steps);
        tally.saw(verb.from, 5).saw(verb.to, 2);
    }
}

#[test]
fn an_operation_killed_before_any_step_is_afterwards_all_done_or_not_begun() {
    sweep(&[("all kinds", &|| all_kinds(false))], &[(COMMIT, 60), (ROLLBACK, 20), (REDO, 20)]);
}

#[test]
fn so_it_is_with_store_and_tree_on_two_file_systems() {
    sweep(&[("two file systems", &|| all_kinds(true))], &[(COMMIT, 60), (ROLLBACK, 20), (REDO, 20)]);
}

#[test]
fn so_it_is_with_metadata_that_is_set_under_several_names_of_a_file() {
    sweep(&[("several names", &names)], &[(COMMIT, 10), (ROLLBACK, 5)]);
}

#[test]
fn so_it_is_with_the_session_of_a_run() {
    sweep(&[("a run", &|| a_run(false))], &[(COMMIT, 20), (ROLLBACK, 20), (REDO, 20)]);
}

/// Where it has to be copied, what the session has of its own goes at last, and then the uppers that it lay in.
#[test]
fn the_session_of_a_run_that_is_killed_while_its_uppers_go_is_settled() {
    let Some(case) = a_run(true) else { return };
    let all = steps_of(|| case.call("commit")).len();
    for n in (all - 24..=all).filter(|n| is_due(*n)) {
        let case = a_run(true).expect("a scene that could be had before");
        case.kill_before("commit", n);
        let what = format!("killed before step {n} of {all}: {}", case.world.recant("recover").ok());
        case.world.assert_tidy(&what);
        assert_eq!((case.status(), case.world.read("edited")), ("committed".into(), "new\n".into()), "{what}");
    }
}

/// Homes of originals that something else has, which nothing names: it gives way, at whatever moment the operation is cut off, and
/// is never taken for the original.
#[test]
fn what_lies_at_the_home_of_an_original_is_no_obstacle_and_is_never_given_back() {
    let homes_of = |case: &Scene| {
        let directories = ["checkpoint/blobs", "checkpoint/objects", "held/objects"].map(|below| case.session().join(below));
        let listed = directories.iter().flat_map(|directory| std::fs::read_dir(directory).expect("a directory of the session"));
        listed.map(|name| name.expect("a name").path()).collect::<Vec<_>>()
    };
    let litter = |homes: Vec<PathBuf>| {
        for (i, home) in homes.iter().filter(|home| home.symlink_metadata().is_err()).enumerate() {
            match i % 2 {
                0 => std::fs::write(home, "left").expect("a file"),
                _ => std::fs::create_dir_all(home.join("with/something/in it")).expect("a directory"),
            }
        }
    };
    let littered = |homes_are_those_of: Verb, verb: Verb| {
        let case = after_the_first(all_kinds(false)?, homes_are_those_of);
        let homes = homes_of(&case);
        case.ok(homes_are_those_of.name);
        litter(homes);
        Some(Scene { before: case.world.manifest(), ..case }).filter(|case| case.status() == verb.from)
    };
    sweep(&[("litter", &|| littered(COMMIT, ROLLBACK))], &[(Verb { first: &[], ..ROLLBACK }, 20)]);
    sweep(&[("litter", &|| littered(ROLLBACK, REDO))], &[(Verb { first: &[], ..REDO }, 20)]);
}

/// What somebody does before an operation by force, and the paths that it overwrites then.
fn disturb(scene: &Scene, verb: Verb) -> [&'static str; 4] {
    let paths = match verb.name {
        "rollback" => ["edited", "empty", "new/again", "kind/link/in"],
        _ => ["edited", "empty", "gone", "one"],
    };
    for path in paths {
        // Another inode under that name, so that other names of the old one are not concerned.
        scene.world.remove(path).write(path, format!("{path}: theirs"));
    }
    scene.world.chmod("moded", 0o711);
    paths
}

/// By force the tree is afterwards as somebody had left it, or as the session has it with all of his kept.
#[test]
fn so_it_is_by_force_and_what_is_overwritten_is_kept() {
    for verb in [COMMIT, ROLLBACK, REDO] {
        let row = Sweep {
            name: &format!("{} --force", verb.name),
            scene: &|| {
                let case = after_the_first(all_kinds(false)?, verb);
                let paths = disturb(&case, verb);
                Some((Scene { before: case.world.manifest(), ..case }, paths))
            },
            verb: &|(case, _)| case.call(&format!("{} --force", verb.name)),
            order: "kill:N",
        };
        let mut after: Option<Manifest> = None;
        let tally = row.run(|(scene, paths), said, what| {
            let world = &scene.world;
            let recovered = (said.status == 137).then(|| world.recant("recover").ok());
            assert!(recovered.is_some() || said.status == 0, "{what}");
            world.assert_tidy(what);
            let (now, status) = (world.manifest(), world.status(&scene.id));
            if status == verb.from {
                scene.before.assert_same(&now, what);
                return Came::Unchanged(verb.from);
            }
            assert_eq!(status, verb.to, "{what}");
            // Where there was no report, the recovery says where what was overwritten is.
            if let Some(said) = recovered.filter(|said| verb.name != "commit" && said.stdout().contains("settled")) {
                assert!(paths.iter().all(|path| said.stderr().contains(&format!("{path} --displaced"))), "{what}: {said}");
            }
            let now = now.without_times();
            after.get_or_insert_with(|| now.clone()).assert_same(&now, what);
            if verb.name == "commit" {
                scene.ok("rollback");
                scene.before.assert_same(&world.manifest(), &format!("{what}, then rollback"));
            } else {
                for path in *paths {
                    let kept = world.call(["cat", &scene.id, path, "--displaced"]).run().ok().stdout();
                    assert_eq!(kept, format!("{path}: theirs"), "{what}");
                }
            }
            Came::Used(verb.to)
        });
        tally.saw(verb.to, 6);
    }
}

#[test]
fn recovery_killed_before_any_step_is_ended_by_the_next_one() {
    let case = all_kinds(false).expect("one file system");
    let commit = case.steps("commit").len();
    // Every fifth step of the commit, every step of its recovery.
    for n in (3..=commit).step_by(5).enumerate().filter(|(i, _)| is_due(*i)).map(|(_, n)| n) {
        let row = Sweep {
            name: &format!("recovery of a commit killed before step {n}"),
            scene: &|| {
                let case = all_kinds(false)?;
                case.kill_before("commit", n);
                Some(case)
            },
            verb: &|case| case.world.call(["recover"]),
            order: "kill:N",
        };
        row.run(|case, _, what| {
            case.world.recant("recover").ok();
            case.world.assert_tidy(what);
            match &*case.status() {
                "pending" => case.before.assert_same(&case.world.manifest(), what),
                status => assert_eq!(status, "committed", "{what}"),
            }
            Came::Used(())
        });
    }
}

/// A directory that gives way whole, and a file: each is at its path with what is in it, or in the store, whenever the rollback is killed,
/// and the recovery of it.
#[test]
fn what_somebody_made_gives_way_by_force_and_the_recovery_of_that_may_be_killed() {
    let mut scene = Scene::new(false).expect("one file system");
    scene.world.write("f", "old").write("g", "old");
    scene.begin(["write f new", "write g new"]);
    scene.ok("commit");
    let world = &scene.world;
    world.remove("f").write("f/y", "theirs").chmod("f", 0o711).write("g", "theirs");
    let start = world.manifest();
    let (mut undone, mut killed_again) = (0, 0);
    // Its recovery is killed, too, where it was killed before each sixth step.
    let cuts = (1..200).flat_map(|n| (0..100).map(move |m| (n, m)));
    let mut ended = 0;
    for (n, m) in cuts.filter(|(n, m)| if *m == 0 { is_due(*n) } else { n % 6 == 0 && is_due(*m) }) {
        if n == ended {
            continue;
        }
        let was_killed = scene.run("rollback --force", format!("kill:{n}")).status == 137;
        let what = format!("killed before step {n}, its recovery before step {m}");
        let killed = m > 0 && world.call(["recover"]).env("RECANT_STEPS", format!("kill:{m}")).run().status == 137;
        let said = world.recant("recover").ok();
        world.assert_tidy(&what);
        if !was_killed || scene.status() != "committed" {
            break;
        }
        start.assert_same(&world.manifest(), &format!("{what}: {said}"));
        (undone, killed_again) = (undone + 1, killed_again + u32::from(killed));
        if m > 0 && !killed {
            ended = n;
        }
    }
    assert!(undone > 5 && (undone > 20 && killed_again > 20 || !is_whole()), "{undone}, {killed_again}");
    assert_eq!(scene.status(), "rolled_back");
    assert_eq!((world.read("f"), world.read("g")), ("old".into(), "old".into()));
}
