//! The gate between Prepare and Intend: an operation that is ready waits for the word, and leaves nothing where it does not come.
//! Needs the feature `crash-points`, for a silence that is shorter than a minute.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::common::sweep::steps_of;
use crate::common::{self, Call, World};
use crate::interruptible;
use serde_json::Value;

/// An operation at its gate.
struct Waiting {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Waiting {
    /// Starts it, and waits until it says that it is ready.
    fn at_gate(world: &World, verb: &str, id: &str) -> Self {
        Self::begin(world.call([verb, id, "--gate", "--json"]).env("RECANT_GATE_SILENCE_MS", "1500"), id)
    }

    /// The same, where no silence of less than a minute ends it.
    fn long_at_gate(world: &World, verb: &str, id: &str) -> Self {
        Self::begin(interruptible(world, &[verb, id, "--gate", "--json"]), id)
    }

    fn begin(call: Call, id: &str) -> Self {
        let mut command = call.command();
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let input = child.stdin.take();
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        assert_eq!((&ready["gate"], &ready["session"]), (&"ready".into(), &id.into()));
        Self { child, input, output }
    }

    fn say(&mut self, words: &str) {
        self.input.as_mut().expect("an input").write_all(words.as_bytes()).expect("somebody who reads");
    }

    /// Its status and what it said last.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.input.take());
        let mut out = String::new();
        while self.output.read_line(&mut out).expect("output") > 0 {}
        let ended = self.child.wait_with_output().expect("its end");
        (ended.status.code().or(ended.status.signal().map(|signal| 128 + signal)), out + &String::from_utf8_lossy(&ended.stderr))
    }
}

/// A session with all that Prepare has to make: new directories, links, changed files; store and tree on one file system or on two.
fn scene(store: Option<&std::path::Path>) -> (World, String) {
    let mut world = World::new();
    if let Some(store) = store {
        world.set("RECANT_STORE", store);
    }
    world.write("edited", "old").write("gone", "away").write("moded", "x").mkdir("full/sub");
    let id = world.begin();
    world.stage(
        &id,
        ["write edited new", "write made/deep/er new", "delete gone", "chmod 0640 moded", "symlink there link", "delete full"],
    );
    (world, id)
}

#[test]
fn an_operation_that_is_told_to_go_is_done() {
    let (world, id) = scene(None);
    let before = world.manifest();
    for (verb, status) in [("commit", "committed"), ("rollback", "rolled_back"), ("redo", "committed")] {
        let mut waiting = Waiting::at_gate(&world, verb, &id);
        waiting.say("wait\nwait\ngo\n");
        let (ended, said) = waiting.end();
        assert_eq!(ended, Some(0), "{verb}: {said}");
        let document: Value = serde_json::from_str(said.lines().next().unwrap_or_default()).expect("a document");
        assert_eq!(document["status"], status, "{said}");
        assert_eq!(world.status(&id), status);
        world.assert_tidy(verb);
    }
    world.call(["rollback", &id]).run().ok();
    before.assert_same(&world.manifest(), "taken back");
}

#[test]
fn what_was_committed_since_somebody_named_it_for_pruning_stays() {
    let (world, id) = scene(None);
    let before = world.manifest();
    let mut waiting = Waiting::at_gate(&world, "commit", &id);
    waiting.say("wait\n");
    let mut prune = world.call(["session", "prune", &id]).command();
    let mut prune = prune.stderr(Stdio::piped()).stdin(Stdio::null()).spawn().expect("a program");
    // It has decided, and waits for the lock that the commit holds.
    let mut said = String::new();
    let mut lines = BufReader::new(prune.stderr.take().expect("a pipe"));
    lines.read_line(&mut said).expect("a line");
    assert!(said.contains("another recant is at work"), "{said}");
    waiting.say("go\n");
    assert_eq!(waiting.end().0, Some(0));
    lines.read_to_string(&mut said).expect("the rest");
    let pruned = prune.wait().expect("its end");
    assert_eq!(pruned.code(), Some(4), "{said}");
    assert!(said.contains("stays: another recant has changed it meanwhile"), "{said}");
    world.call(["rollback", &id]).run().ok();
    before.assert_same(&world.manifest(), "rolled back");
    world.call(["session", "prune", &id]).run().ok();
}

#[test]
fn one_that_is_not_told_to_go_leaves_everything_as_it_was() {
    let other = common::elsewhere();
    for store in [None, other.as_ref().map(|directory| directory.path().join("store"))] {
        let (world, id) = scene(store.as_deref());
        for (verb, status) in [("commit", "pending"), ("rollback", "committed")] {
            if verb == "rollback" {
                world.call(["commit", &id]).run().ok();
            }
            let before = world.manifest();
            for (what, wanted) in [
                ("stop\n", "was told to stop"),
                ("going\n", "was told to stop"),
                ("go", "before a 'go'"),
                ("", "before a 'go'"),
                ("a line that never ends and ends at last\n", "was told to stop"),
            ] {
                let mut waiting = Waiting::at_gate(&world, verb, &id);
                waiting.say(what);
                let (ended, said) = waiting.end();
                assert_eq!(ended, Some(1), "{verb}, {what:?}: {said}");
                assert!(said.contains(wanted) && said.contains("nothing was changed"), "{verb}, {what:?}: {said}");
                before.assert_same(&world.manifest(), what);
                assert_eq!(world.status(&id), status, "{verb}, {what:?}");
                world.assert_tidy(what);
            }
        }
        world.call(["rollback", &id]).run().ok();
        world.call(["redo", &id]).run().ok();
    }
}

#[test]
fn a_silence_ends_it_and_a_signal_too() {
    let (world, id) = scene(None);
    let before = world.manifest();
    let mut silent = Waiting::at_gate(&world, "commit", &id);
    // Somebody is there, and says nothing.
    let input = silent.input.take();
    let (ended, said) = silent.end();
    drop(input);
    assert_eq!(ended, Some(1), "{said}");
    assert!(said.contains("no 'go' came for 1.5 s"), "{said}");
    before.assert_same(&world.manifest(), "after a silence");
    let mut asked = Waiting::long_at_gate(&world, "commit", &id);
    let input = asked.input.take();
    let pid = rustix::process::Pid::from_child(&asked.child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    let (ended, said) = asked.end();
    drop(input);
    assert_eq!(ended, Some(130), "{said}");
    assert!(said.contains("stopped by SIGINT"), "{said}");
    before.assert_same(&world.manifest(), "after a signal");
    world.assert_tidy("after a signal");
    world.call(["commit", &id]).run().ok();
}

/// What it says at the gate is not yet what was done.
#[test]
fn a_second_signal_behind_the_gate_does_not_end_it_where_it_stands() {
    let (world, id) = scene(None);
    let steps = steps_of(|| world.call(["commit", &id]));
    let put = 1 + steps.iter().position(|step| step.contains("renameat") && step.contains("/tree/edited")).expect("a step");
    let (mut world, id) = scene(None);
    let before = world.manifest();
    world.set("RECANT_STEPS", format!("run:{put}:kill -TERM $PPID;run:{}:kill -TERM $PPID", put + 2));
    let mut waiting = Waiting::at_gate(&world, "commit", &id);
    waiting.say("go\n");
    let (ended, said) = waiting.end();
    assert_eq!((ended, world.journals()), (Some(143), Vec::<String>::new()), "{said}");
    assert!(said.contains("stopped by SIGTERM"), "{said}");
    before.assert_same(&world.manifest(), &said);
}

#[test]
fn one_that_is_killed_while_it_waits_leaves_nothing_to_who_comes_next() {
    let other = common::elsewhere();
    for store in [None, other.as_ref().map(|directory| directory.path().join("store"))] {
        let (world, id) = scene(store.as_deref());
        let before = world.manifest();
        for verb in ["commit", "rollback"] {
            let at_first = world.manifest();
            let mut waiting = Waiting::at_gate(&world, verb, &id);
            let input = waiting.input.take();
            waiting.child.kill().expect("a kill");
            drop(waiting.end());
            drop(input);
            world.recant("session new").ok();
            at_first.assert_same(&world.manifest(), verb);
            world.assert_tidy(verb);
            world.call([verb, &id]).run().ok();
        }
        before.assert_same(&world.manifest(), "committed and taken back");
    }
}

#[test]
fn a_conflict_comes_before_the_gate_and_the_store_is_held_behind_it() {
    let (world, id) = scene(None);
    world.write("edited", "theirs");
    let said = world.call(["commit", &id, "--gate"]).run().with(3);
    assert!(said.out.is_empty(), "{said}");
    world.write("edited", "old");
    let other = world.edited("another");
    let waiting = Waiting::at_gate(&world, "commit", &id);
    world.call(["commit", &id]).run().with(6);
    // It waits for the store until the silence at the gate ends.
    let stdin = waiting;
    world.call(["commit", &other]).run().ok();
    assert_eq!(stdin.end().0, Some(1));
    // Nothing to do: there is nothing to be asked.
    let said = world.call(["commit", &other, "--gate"]).run().ok();
    assert!(said.out.is_empty(), "{said}");
}
