//! A connection that is cut decides nothing: right before each step of a commit and a rollback on another machine ssh, sshd or the far
//! side's relay is killed, or recant itself there.

use std::path::PathBuf;

use crate::common::sweep::{is_due, is_whole, steps_of};
use crate::common::{self, Call, Manifest, Said, World, manifest};
use crate::machine;
use crate::ssh::{self, Host};

/// A machine with a session to be committed or rolled back, put back as often as it is needed.
struct Scene {
    world: World,
    host: Host,
    id: String,
    verb: &'static str,
    before: Manifest,
    /// Once the verb is done, without times of directories.
    after: Manifest,
    steps: usize,
}

impl Scene {
    fn new(verb: &'static str) -> Option<Self> {
        let (world, _, host) = machine()?;
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
        let mut scene = Self { world, host, id, verb, after: before.clone(), before, steps: 0 };
        scene.there("mkdir ../saved && cp -a tree .local ../saved");
        scene.steps = steps_of(|| scene.call()).len();
        scene.after = scene.tree().without_directory_times();
        assert!(scene.steps > 10 && !scene.is_after(&scene.before), "{verb}: {} steps", scene.steps);
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

    fn call(&self) -> Call {
        self.world.call(["-H", "web1", self.verb, &self.id])
    }

    fn tree(&self) -> Manifest {
        manifest(&self.host.home.join("tree"))
    }

    fn is_after(&self, tree: &Manifest) -> bool {
        tree.clone().without_directory_times() == self.after
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

/// Tries each verb at each step that is due, on the machine as it was: with the scene, the number of the step, and words for messages.
fn sweep(mut judge: impl FnMut(&Scene, usize, &str)) {
    for verb in ["commit", "rollback"] {
        let Some(scene) = Scene::new(verb) else { return };
        for n in (1..=scene.steps).filter(|n| is_due(*n)) {
            scene.reset();
            judge(&scene, n, &format!("{verb}, before step {n} of {}", scene.steps));
        }
    }
}

/// ssh, sshd and the relay are killed in turn.
#[test]
fn whoever_cuts_the_connection_the_far_side_goes_on_to_its_end_and_status_tells() {
    sweep(|scene, n, at| {
        let who = ["ssh", "sshd", "relay"][n % 3];
        let (script, worker) = scene.cutter(who);
        let said = scene.call().env("RECANT_STEPS", format!("run:{n}:exec sh {}", script.display())).run();
        let at = format!("{at}, {who} killed: {said}");
        assert_eq!(said.status, 1, "{at}");
        assert!(said.stderr().contains("web1: the connection was cut, and whether it ended there is unknown"), "{at}");
        assert!(said.stderr().contains("recant -H web1 status shows what was done"), "{at}");
        let at_work: i32 = std::fs::read_to_string(&worker).unwrap().trim().parse().unwrap();
        common::until("it has ended there", || !std::path::Path::new(&format!("/proc/{at_work}")).exists());
        std::fs::remove_file(&worker).unwrap();
        let status = scene.far(&["status", "--json"]).ok().json();
        let ended = if scene.verb == "commit" { "committed" } else { "rolled_back" };
        let interrupted = status["interrupted"].as_array().map(Vec::len);
        assert_eq!((interrupted, &status["sessions"][ended]), (Some(0), &1.into()), "{at}");
        scene.after.assert_same(&scene.tree().without_directory_times(), &at);
    });
}

#[test]
fn recant_killed_there_is_told_by_status_and_recovered_by_the_next_verb() {
    let mut seen = std::collections::BTreeSet::new();
    sweep(|scene, n, at| {
        let killed = scene.call().env("RECANT_STEPS", format!("kill:{n}")).run();
        assert_eq!(killed.status, 137, "{at}: {killed}");
        let told = scene.far(&["status", "--json"]).ok().json()["interrupted"].as_array().unwrap().len();
        scene.far(&["recover"]).ok();
        let tree = scene.tree();
        if !scene.is_after(&tree) {
            scene.before.assert_same(&tree, at);
        }
        seen.insert((scene.verb, told > 0, scene.is_after(&tree)));
    });
    for verb in ["commit", "rollback"].into_iter().filter(|_| is_whole() && !seen.is_empty()) {
        let has = |what: fn(bool, bool) -> bool| seen.iter().any(|(of, told, done)| *of == verb && what(*told, *done));
        assert!(has(|told, _| told) && has(|_, done| done) && has(|_, done| !done), "{verb}: {seen:?}");
    }
}

#[test]
fn a_run_ends_with_its_connection_as_with_its_terminal() {
    let Some((world, _, host)) = machine().filter(|_| common::can_run()) else { return };
    let command = world.call(["-H", "web1", "run", "--", "sh", "-c", "echo held > f; exec sleep 600"]).command();
    let mut command = command;
    let mut child = command.stdin(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let runner = host.writer();
    common::until("the command is there", || !ssh::children(runner as u32).is_empty());
    host.cut();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    common::until("the run has ended", || !std::path::Path::new(&format!("/proc/{runner}")).exists());
    // What it had changed by then is held, or nothing is left: nothing is on the tree.
    assert!(!host.home.join("f").exists());
    let status = world.recant("-H web1 status --json").ok().json();
    assert_eq!((&status["sessions"]["committed"], status["interrupted"].as_array().map(Vec::len)), (&0.into(), Some(0)));
}
