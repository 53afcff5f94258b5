//! Ctrl-C, SIGTERM and SIGHUP, sent right before each step of an operation: before its first effect they end it, then it is undone
//! or finished, and says which; nothing is left to the next recant. Needs the feature `crash-points`.
#![cfg(feature = "crash-points")]
#![allow(clippy::print_stdout, reason = "what a sweep saw is said")]

mod common;

use common::{Manifest, Said, World};

/// A world with a session of all kinds of steps, committed or not, to be put back as often as it is needed.
struct Scene {
    world: World,
    id: String,
    verb: &'static str,
    before: Manifest,
}

impl Scene {
    fn new(verb: &'static str) -> Self {
        let world = World::new();
        world.write("edited", "old").write("gone", "away").write("moded", "x").write("full/a", "1");
        let id = world.begin();
        for name in ["edited", "new", "made/deep/new"] {
            world.stage_write(&id, name, "new");
        }
        for words in ["delete ID gone", "chmod ID 0640 moded", "delete ID full -r"] {
            world.recant(&format!("session {}", words.replace("ID", &id))).ok();
        }
        for done in
            ["commit", "rollback"].iter().take(["commit", "rollback", "redo"].iter().position(|v| *v == verb).unwrap_or(0))
        {
            world.recant(&format!("{done} {id}")).ok();
        }
        let scene = Self { before: world.manifest(), world, id, verb };
        scene.shell("mkdir ../saved && cp -a ../tree ../store ../saved");
        scene
    }

    fn shell(&self, command: &str) -> Said {
        self.world.program("sh", ["-c", command]).run().ok()
    }

    fn reset(&self) {
        self.world.program("sh", ["-c", "rm -rf tree store && cp -a saved/. ."]).cwd(self.world.root()).run().ok();
    }

    fn steps(&self, steps: &str) -> Said {
        self.world.call([self.verb, &self.id]).env("RECANT_STEPS", steps).run()
    }

    fn kill_before_seal(&self) {
        let log = self.world.root().join("steps");
        self.steps(&format!("log:{}", log.display())).ok();
        let steps = std::fs::read_to_string(&log).expect("a log of steps");
        let at = steps.lines().position(|step| step.contains("renameat ") && step.contains("session.json.new"));
        self.reset();
        let killed = self.steps(&format!("kill:{}", at.expect("a seal") + 1));
        assert_eq!(killed.status, 137, "{killed}");
    }
}

fn timeless(manifest: Manifest) -> Manifest {
    let mut manifest = manifest.without_folder_times();
    manifest.0.values_mut().filter(|row| row.content.starts_with("file \"new")).for_each(|row| row.mtime = (0, 0));
    manifest
}

#[test]
fn a_signal_before_any_step_ends_an_operation_undoes_it_or_comes_too_late() {
    for (verb, signal, ended) in [("commit", "INT", 130), ("rollback", "TERM", 143), ("redo", "HUP", 129)] {
        let scene = Scene::new(verb);
        scene.steps("log:/dev/null").ok();
        let after = timeless(scene.world.manifest());
        let mut seen = Vec::new();
        for n in 1.. {
            scene.reset();
            // The second one, by somebody who does not want to wait, changes nothing.
            let mut orders = format!("run:{n}:kill -{signal} $PPID");
            if n % 3 == 0 {
                orders = format!("{orders};run:{}:kill -INT $PPID", n + 1);
            }
            let said = scene.steps(&orders);
            let what = format!("{verb}, SIG{signal} before step {n}: {said}");
            let now = scene.world.manifest();
            match said.status {
                0 => after.assert_same(&timeless(now), &what),
                1 => scene.before.assert_same(&now, &what),
                status => {
                    assert_eq!(status, ended, "{what}");
                    scene.before.assert_same(&now, &what);
                }
            }
            scene.world.assert_tidy(&what);
            let nothing = if verb == "commit" {
                "pending"
            } else if verb == "rollback" {
                "committed"
            } else {
                "rolled_back"
            };
            let all = if verb == "rollback" { "rolled_back" } else { "committed" };
            assert_eq!(scene.world.status(&scene.id), if said.status == 0 { all } else { nothing }, "{what}");
            let late = said.stderr().contains(&format!("SIG{signal} came when all was done"));
            match said.status {
                1 => {
                    assert!(said.stderr().contains(&format!("SIG{signal} asked for an end")), "{what}");
                    let state = ["the tree is as it was", "nothing was changed"];
                    assert!(state.iter().any(|state| said.stderr().contains(state)), "{what}");
                }
                // The last steps are those of the log, and of the end without a signal.
                0 => assert!(late || seen.iter().filter(|status| **status == 0).count() > 2, "{what}"),
                _ => {}
            }
            seen.push(said.status);
            if said.status == 0 && !late {
                break;
            }
        }
        let count = |status: i32| seen.iter().filter(|seen| **seen == status).count();
        println!("{verb}: {} ended, {} undone, {} finished", count(ended), count(1), count(0));
        assert!(count(ended) > 0 && count(1) > 10 && count(0) > 5, "{verb}: {seen:?}");
        let in_order = |status: i32| [ended, 1, 0].iter().position(|known| *known == status);
        assert!(seen.is_sorted_by_key(|status| in_order(*status)), "{verb}: {seen:?}");
    }
}

#[test]
fn a_recovery_that_is_asked_to_end_comes_to_its_end_first() {
    let scene = Scene::new("commit");
    for n in 1.. {
        scene.reset();
        scene.kill_before_seal();
        let said = scene.world.call(["recover"]).env("RECANT_STEPS", format!("run:{n}:kill -INT $PPID")).run();
        let what = format!("SIGINT before step {n}: {said}");
        if said.status == 130 {
            // Before its first effect.
            assert_eq!(scene.world.journals(), [&*scene.id], "{what}");
            scene.world.recant("recover").ok();
        } else {
            assert_eq!(said.status, 0, "{what}");
        }
        scene.before.assert_same(&scene.world.manifest(), &what);
        scene.world.assert_tidy(&what);
        if n > 20 && said.stdout().is_empty() || n > 60 {
            break;
        }
    }
}

#[test]
fn what_is_to_come_after_a_recovery_is_not_begun() {
    let scene = Scene::new("commit");
    scene.reset();
    let second = scene.world.begin();
    scene.world.stage_write(&second, "other", "o");
    scene.shell("rm -rf ../saved && mkdir ../saved && cp -a ../tree ../store ../saved");
    let mut not_begun = 0;
    for n in (1..).step_by(3) {
        scene.reset();
        scene.kill_before_seal();
        let said = scene.world.call(["commit", &second]).env("RECANT_STEPS", format!("run:{n}:kill -TERM $PPID")).run();
        let what = format!("SIGTERM before step {n}: {said}");
        let recovered = scene.world.journals().is_empty();
        if recovered {
            scene.world.assert_tidy(&what);
        }
        assert_eq!(scene.world.exists("other"), said.status == 0, "{what}");
        if said.status == 0 {
            assert!(recovered && not_begun > 3, "{what}");
            break;
        }
        assert!([1, 143].contains(&said.status), "{what}");
        not_begun += usize::from(recovered && said.stderr().contains("SIGTERM asked for an end"));
    }
    // A command that is to be run is not started either.
    scene.reset();
    scene.kill_before_seal();
    let log = scene.world.root().join("steps of the recovery");
    scene.world.call(["recover"]).env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
    let steps = std::fs::read_to_string(&log).expect("a log of steps").lines().count();
    scene.reset();
    scene.kill_before_seal();
    let orders = format!("run:{}:kill -TERM $PPID", steps / 2);
    let said = scene.world.call(["run", "--", "touch", "made"]).env("RECANT_STEPS", orders).run().with(125);
    assert!(said.stderr().contains("SIGTERM asked for an end") && !scene.world.exists("made"), "{said}");
    scene.world.assert_tidy("before a run");
    assert_eq!(scene.world.recant("list --jsonl").ok().stdout().lines().count(), 2);
}

#[test]
fn a_signal_that_is_ignored_stays_ignored() {
    let scene = Scene::new("commit");
    let script = format!("trap '' HUP INT; exec {} commit {}", env!("CARGO_BIN_EXE_recant"), scene.id);
    let orders = "run:30:kill -HUP $PPID && kill -INT $PPID";
    scene.world.program("sh", ["-c", &script]).env("RECANT_STEPS", orders).run().ok();
    assert_eq!(scene.world.status(&scene.id), "committed");
}
