//! `await`: an agent waits for its person. What it may drop by itself.

use std::process::Stdio;

use serde_json::Value;

use crate::common::{self, Said, World, until};

fn agent(world: &World, words: &str) -> Said {
    world.call(words.split(' ')).env("CLAUDECODE", "1").run()
}

fn held(world: &World) {
    agent(world, "run -q --session s -- touch a b c").ok();
}

#[test]
fn what_a_person_decided_is_told_at_once_with_the_reason_and_each_act_once() {
    let world = World::new();
    held(&world);
    let said = agent(&world, "await s --for 1s").with(6);
    assert!(said.stderr().contains("is not decided yet"), "{said}");
    world.call(["commit", "s", "a", "-m", "only this", "-y"]).run().ok();
    world.call(["discard", "s", "b", "-m", "not the tests", "-y"]).run().ok();
    let said = agent(&world, "await s").ok().stdout();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].contains("(1 path: a), was committed by a person: only this"), "{said}");
    assert!(lines[1] == "session s had 1 change (b) discarded by a person: not the tests", "{said}");
    assert_eq!(lines[2..], ["still held: 1 change"], "{said}");
    // What was told is not told again, also not by a further command of the session.
    agent(&world, "await s --for 1s").with(6);
    let said = agent(&world, "run --session s -- true").ok();
    assert!(!said.stderr().contains("by a person"), "{said}");
}

#[test]
fn each_act_of_a_person_is_told_with_the_places_that_it_was_about() {
    let world = World::new();
    let script = "mkdir docs tests src; touch docs/a docs/b tests/a tests/b src/a src/b src/c src/d src/e";
    world.call(["run", "-q", "--session", "s", "--", "sh", "-c", script]).env("CLAUDECODE", "1").run().ok();
    world.call(["commit", "s", "docs", "-m", "good", "-y"]).run().ok();
    world.call(["discard", "s", "tests", "-m", "not the tests", "-y"]).run().ok();
    // An act on the same session does not hide the one before.
    world.call(["discard", "s", "src/a", "src/b", "src/c", "src/d", "-y"]).run().ok();
    let told = world.call(["await", "s", "--json"]).env("CLAUDECODE", "1").run().ok().json();
    let acts = told["acts"].as_array().unwrap();
    let at = |n: usize| acts[n]["at"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect::<Vec<_>>();
    let path = |name: &str| world.path(name).display().to_string();
    assert_eq!((acts.len(), at(0), at(1)), (3, vec![&*path("docs")], vec![&*path("tests")]), "{told}");
    assert_eq!((&acts[1]["reason"], at(2).len()), (&"not the tests".into(), 4), "{told}");
    let log = world.recant("log s --json").ok().json();
    assert_eq!(log["entries"][1]["at"][0], *path("tests"), "{log}");
    world.recant("rewind s 1").ok();
    world.call(["discard", "s", "src/a", "src/b", "src/c", "src/d", "-y"]).run().ok();
    let said = agent(&world, "await s").ok().stdout();
    assert!(said.contains("session s had 4 changes (src/a, src/b, src/c, …) discarded by a person\n"), "{said}");
    // What came before an act that it heard of is no news.
    for path in ["tests/a", "tests/b"] {
        world.call(["discard", "s", path, "-y"]).run().ok();
    }
    let said = agent(&world, "run --session s -- true").ok().stderr();
    assert!(said.contains("(tests/b) discarded by a person"), "{said}");
    world.recant("commit s -y").ok();
    let said = agent(&world, "await s").ok().stdout();
    assert_eq!(said, "session s was committed by a person\n");
}

#[test]
fn an_agent_that_waits_goes_on_when_its_person_decides() {
    let world = World::new();
    held(&world);
    let mut call = world.call(["await", "s", "--json"]).env("CLAUDECODE", "1").command();
    let mut waits = call.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    // It waits: another session of the person's is none of its business.
    world.recant("run -q -n other -- touch d").ok();
    world.recant("discard other -y").ok();
    let said = agent(&world, "await s --for 1s").with(6);
    assert!(waits.try_wait().unwrap().is_none(), "{said}");
    world.call(["discard", "s", "-m", "another way", "-y"]).run().ok();
    until("it goes on", || waits.try_wait().unwrap().is_some());
    let out = waits.wait_with_output().unwrap();
    let told: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&told["status"], &told["held"]), (&"discarded".into(), &0.into()), "{told}");
    assert_eq!((&told["acts"][0]["act"], &told["acts"][0]["reason"]), (&"discard".into(), &"another way".into()), "{told}");
    assert!(out.status.success());
}

#[test]
fn each_that_waits_hears_what_was_decided() {
    let (world, told) = notified();
    held(&world);
    let wait = |by: &str| {
        let call = world.call(["await", "s"]).env("RECANT_AGENT", by);
        call.command().stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
    };
    let mut waits = ["claude", "claude", "codex"].map(wait);
    until("all wait", || told(&world).len() == waits.len());
    world.call(["discard", "s", "-y"]).run().ok();
    for (n, waits) in waits.iter_mut().enumerate() {
        until(&format!("{n} goes on"), || waits.try_wait().unwrap().is_some());
    }
    for waits in waits {
        assert_eq!(waits.wait_with_output().unwrap().stdout, b"session s was discarded by a person\n");
    }
}

#[test]
fn what_one_agent_has_heard_is_news_to_another() {
    let world = World::new();
    held(&world);
    world.call(["discard", "s", "a", "-y"]).run().ok();
    for by in ["codex", "claude"] {
        let wait = || world.call(["await", "s", "--for", "1s"]).env("RECANT_AGENT", by).run();
        let said = wait().ok().stdout();
        assert!(said.contains("had 1 change (a) discarded by a person"), "{by}: {said}");
        wait().with(6);
    }
}

#[test]
fn what_others_run_or_edit_in_a_session_is_no_decision() {
    let world = World::new();
    held(&world);
    world.recant("run -q --session s -- touch d").ok();
    world.call(["run", "-q", "--session", "s", "--", "touch", "e"]).env("RECANT_AGENT", "codex").run().ok();
    agent(&world, "await s --for 1s").with(6);
    world.recant("rewind s 2").ok();
    let said = agent(&world, "await s --for 1s").ok().stdout();
    assert_eq!(said, "session s was rewound to step 2 by a person\nstill held: 4 changes\n");
}

#[test]
fn what_is_decided_already_is_told_at_once_and_again() {
    let world = World::new();
    held(&world);
    world.recant("commit s -y").ok();
    for _ in 0..2 {
        assert_eq!(agent(&world, "await s --for 1s").ok().stdout(), "session s was committed by a person\n");
    }
    assert_eq!(world.recant("await s --for 1s").ok().stdout(), "session s was committed by a person\n");
    // What it decided itself, too: nobody else has anything to decide.
    agent(&world, "run -q --session t -- touch t").ok();
    agent(&world, "discard t").ok();
    assert!(agent(&world, "await t --for 1s").ok().stdout().starts_with("session t was discarded by claude"));
}

#[test]
fn a_person_waits_for_what_comes_and_not_for_what_was() {
    let world = World::new();
    held(&world);
    world.call(["commit", "s", "a", "-y"]).run().ok();
    world.recant("await s --for 1s").with(6);
    world.recant("await none").with(1);
    let mut waits = world.call(["await", "s"]).command().stdout(Stdio::null()).spawn().unwrap();
    let mut acts = ["rollback s -y", "redo s -y"].into_iter().cycle();
    world.recant("commit s -y").ok();
    until("it goes on", || {
        // The first may have come before it was there.
        world.recant(acts.next().unwrap()).ok();
        waits.try_wait().unwrap().is_some()
    });
    assert!(waits.wait().unwrap().success());
}

/// A world whose `agent.notify` appends its last argument to a file, and what that has.
fn notified() -> (World, impl Fn(&World) -> Vec<String>) {
    let world = World::new();
    let (script, told) = (world.root().join("notify"), world.root().join("told"));
    std::fs::write(&script, format!("#!/bin/sh\necho \"$2\" >> {}\n", told.display())).unwrap();
    world.config(&format!("[agent]\nnotify = ['sh', '{}', 'recant']\n", script.display()));
    let lines = move |_: &World| std::fs::read_to_string(&told).unwrap_or_default().lines().map(str::to_owned).collect();
    (world, lines)
}

#[test]
fn a_person_is_told_by_a_program_of_theirs_that_an_agent_waits() {
    let (world, told) = notified();
    held(&world);
    let tail = world.recant("list --json").ok().json()["sessions"][0]["id"].as_str().unwrap()[16..].to_owned();
    world.recant("await s --for 1s").with(6);
    assert!(told(&world).is_empty(), "a person waits: {:?}", told(&world));
    agent(&world, "await s --for 1s").with(6);
    until("it is told", || !told(&world).is_empty());
    assert_eq!(told(&world), [format!("session {tail} (s) waits for you: 3 changes; recant review {tail}")]);
    world.config("[agent]\nnotify = 'no-such-program'\n");
    let said = agent(&world, "await s --for 1s").with(6);
    assert!(said.stderr().contains("agent.notify: no-such-program: "), "{said}");
}

#[test]
fn a_person_is_told_when_a_turn_ends_in_which_something_was_held() {
    let (world, told) = notified();
    crate::agent::repository(&world);
    let claude = crate::agent::Agent::begin(&world, "claude", "c");
    claude.prompt("hold it");
    held(&world);
    claude.stop();
    until("it is told", || !told(&world).is_empty());
    claude.prompt("nothing more is held");
    claude.edit("file", "x\n");
    claude.stop();
    claude.prompt("again");
    agent(&world, "run -q --session s -- touch d").ok();
    claude.stop();
    until("it is told again", || told(&world).len() == 2);
    assert!(told(&world)[1].contains("4 changes"), "{:?}", told(&world));
}

#[test]
fn an_agent_drops_only_sessions_in_which_a_person_made_nothing() {
    let world = World::new();
    let by_agent = |words: &str| world.call(words.split(' ')).env("CLAUDECODE", "1").run();
    let persons = world.edited("mine");
    for words in [format!("discard {persons}"), format!("discard {persons} mine"), format!("discard -y {persons}")] {
        let said = by_agent(&words).with(1);
        assert!(said.stderr().contains("a person made some of session"), "{said}");
        assert!(said.stderr().contains(&format!("in your own terminal: recant discard {}", &persons[16..])), "{said}");
    }
    assert_eq!(world.status(&persons), "pending");
    let own = by_agent("session new").ok().id();
    by_agent(&format!("session delete {own} mine"));
    by_agent(&format!("discard {own}")).ok();
    if !common::can_run() {
        return;
    }
    // What a person goes on in is not the agent's alone any more; what he chose of it stays so.
    by_agent("run --session s -- sh -c echo>a;echo>b").ok();
    world.call(["discard", "-y", "s", "a"]).run().ok();
    by_agent("discard s").ok();
    by_agent("run --session s -- touch a").ok();
    world.call(["run", "--session", "s", "--", "touch", "b"]).run().ok();
    by_agent("discard s").with(1);
    world.call(["discard", "-y", "s"]).run().ok();
}
