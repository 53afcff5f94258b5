//! A connection that is cut decides nothing: right before each step of a commit and a rollback on another machine ssh, sshd or the far
//! side's relay is killed, or recant itself there.

use std::path::PathBuf;

use crate::common::{self, Manifest, Said, World, manifest};
use crate::ssh::{self, Host, Net};

/// A machine with a session to be committed or rolled back, put back as often as it is needed.
struct Scene {
    world: World,
    host: Host,
    id: String,
    verb: &'static str,
    before: Manifest,
}

impl Scene {
    fn new(verb: &'static str) -> Option<Self> {
        let mut world = World::new();
        let net = Net::new(&mut world)?;
        let host = net.host("web1");
        for (name, text) in [("tree/edited", "old"), ("tree/gone", "away"), ("tree/full/a", "1")] {
            host.write(name, text);
        }
        let far = |words: &str| world.call(["-H", "web1"].into_iter().chain(words.split(' '))).stdin("new").run().ok();
        let id = far("session new").stdout().trim().to_owned();
        for words in ["write ID tree/edited", "write -p ID tree/made/new", "delete ID tree/gone", "delete ID tree/full -r"] {
            far(&format!("session {}", words.replace("ID", &id)));
        }
        if verb == "rollback" {
            far(&format!("commit {id}"));
        }
        let before = manifest(&host.home.join("tree"));
        let scene = Self { world, host, id, verb, before };
        scene.there("mkdir ../saved && cp -a tree .local ../saved");
        Some(scene)
    }

    fn there(&self, script: &str) {
        self.world.program("sh", ["-ec", script]).cwd(&self.host.home).run().ok();
    }

    fn reset(&self) {
        self.there("rm -rf tree .local && cp -a ../saved/. .");
    }

    fn far(&self, words: &[&str]) -> Said {
        self.world.call(["-H", "web1"].iter().chain(words)).run()
    }

    fn steps(&self, steps: &str) -> Said {
        self.world.call(["-H", "web1", self.verb, &self.id]).env("RECANT_STEPS", steps).run()
    }

    fn tree(&self) -> Manifest {
        manifest(&self.host.home.join("tree"))
    }

    /// A script that a step runs: it leaves the number of the process that is at work, and cuts the connection.
    fn cutter(&self, who: &str) -> (PathBuf, PathBuf) {
        let (script, worker) = (self.world.root().join(format!("cut-{who}")), self.world.root().join("worker"));
        let relay = "$(awk '/^PPid/ {print $2}' /proc/$PPID/status)";
        let cut = match who {
            // Its shared connection too.
            "ssh" => format!("pkill -9 -f '{}/ssh/'", self.world.root().display()),
            // That of the connection, not the one that listens: it goes up to it.
            "sshd" => format!(
                "p={relay}; while :; do q=$(awk '/^PPid/ {{print $2}}' /proc/$p/status); [ $q = {} ] && break; p=$q; done; kill -9 $p",
                self.host.listener()
            ),
            _ => format!("kill -9 {relay}"),
        };
        std::fs::write(&script, format!("echo $PPID > {}\n{cut}\nexit 0\n", worker.display())).unwrap();
        (script, worker)
    }
}

#[test]
fn whoever_cuts_the_connection_the_far_side_goes_on_to_its_end_and_status_tells() {
    cut_before_steps(9);
}

#[test]
#[ignore = "three minutes: the test above takes a third of these points"]
fn the_same_before_every_step() {
    cut_before_steps(3);
}

/// ssh, sshd and the relay are killed in turn.
fn cut_before_steps(every: usize) {
    for verb in ["commit", "rollback"] {
        let Some(scene) = Scene::new(verb) else { return };
        let log = scene.world.root().join("steps");
        scene.steps(&format!("log:{}", log.display())).ok();
        let (count, after) = (std::fs::read_to_string(&log).unwrap().lines().count(), scene.tree().without_directory_times());
        let mut cuts = 0;
        for who in ["ssh", "sshd", "relay"] {
            let (script, worker) = scene.cutter(who);
            // Each begins at another step.
            for n in (1..=count).skip(who.len() % 3).step_by(every) {
                scene.reset();
                let _none = std::fs::remove_file(&worker);
                let said = scene.steps(&format!("run:{n}:exec sh {}", script.display()));
                let at = format!("{verb}, {who} killed before step {n} of {count}: {said}");
                assert_eq!(said.status, 1, "{at}");
                assert!(said.stderr().contains("web1: the connection was cut before the end was known"), "{at}");
                assert!(said.stderr().contains("recant -H web1 status tells what was done"), "{at}");
                let at_work: i32 = std::fs::read_to_string(&worker).unwrap().trim().parse().unwrap();
                ssh::until("it has ended there", || !std::path::Path::new(&format!("/proc/{at_work}")).exists());
                let status = scene.far(&["status", "--json"]).ok().json();
                assert_eq!(
                    (
                        status["interrupted"].as_array().map(Vec::len),
                        &status["sessions"][if verb == "commit" { "committed" } else { "rolled_back" }]
                    ),
                    (Some(0), &1.into()),
                    "{at}"
                );
                after.assert_same(&scene.tree().without_directory_times(), &at);
                cuts += 1;
            }
        }
        println!("{verb}: {cuts} cuts over {count} steps, each time done to the end");
    }
}

#[test]
fn recant_killed_there_is_told_by_status_and_recovered_by_the_next_verb() {
    for verb in ["commit", "rollback"] {
        let Some(scene) = Scene::new(verb) else { return };
        let log = scene.world.root().join("steps");
        scene.steps(&format!("log:{}", log.display())).ok();
        let (count, after) = (std::fs::read_to_string(&log).unwrap().lines().count(), scene.tree().without_directory_times());
        let (mut undone, mut done, mut told) = (0, 0, 0);
        for n in (1..=count).step_by(4) {
            scene.reset();
            let killed = scene.steps(&format!("kill:{n}"));
            assert_eq!(killed.status, 137, "{verb}, before step {n}: {killed}");
            told += scene.far(&["status", "--json"]).ok().json()["interrupted"].as_array().unwrap().len();
            scene.far(&["recover"]).ok();
            let found = scene.tree();
            let is = |tree: &Manifest| tree.difference(&found).is_empty();
            match (is(&scene.before), after.difference(&scene.tree().without_directory_times()).is_empty()) {
                (true, _) => undone += 1,
                (_, true) => done += 1,
                _ => panic!("{verb}, killed before step {n}: {}", after.difference(&found)),
            }
        }
        assert!(undone > 0 && done > 0 && told > 0, "{verb}: {undone} undone, {done} done, {told} told");
        println!("{verb}: killed at {} of {count} steps: {undone} as before, {done} done; status told of {told}", undone + done);
    }
}

#[test]
fn a_run_ends_with_its_connection_as_with_its_terminal() {
    let mut world = World::new();
    let Some(net) = Net::new(&mut world) else { return };
    if !common::can_run() {
        return;
    }
    let host = net.host("web1");
    let command = world.call(["-H", "web1", "run", "--", "sh", "-c", "echo held > f; exec sleep 600"]).command();
    let mut command = command;
    let mut child = command.stdin(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let runner = host.writer();
    ssh::until("the command is there", || !ssh::children(runner as u32).is_empty());
    host.cut();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    ssh::until("the run has ended", || !std::path::Path::new(&format!("/proc/{runner}")).exists());
    // What it had changed by then is held, or nothing is left: nothing is on the tree.
    assert!(!host.home.join("f").exists());
    let status = world.recant("-H web1 status --json").ok().json();
    assert_eq!((&status["sessions"]["committed"], status["interrupted"].as_array().map(Vec::len)), (&0.into(), Some(0)));
}
