//! Commits that wait for a word: confirmed they stay, else they are rolled back exactly, by a watcher or by whoever comes next, whatever
//! became of the shell, the watcher or the machine.

use std::path::PathBuf;

use crate::common::sweep::{Came, Sweep, steps_of};
use crate::common::{self, Call, Manifest, World, until};
use serde_json::Value;

pub type Scene = (World, String, Manifest);

/// A world with a session to commit, and how the tree was.
pub fn scene() -> Scene {
    let world = World::new();
    world.write("edited", "old").write("gone", "away").mkdir("full/sub");
    let before = world.manifest();
    let id = world.begin();
    world.stage(&id, ["write edited new", "write made/new new", "delete gone"]);
    (world, id, before)
}

/// A commit that waits for an hour, and that no process watches.
fn unwatched(world: &World, id: &str) -> Call {
    world.call(["commit", id, "--confirm-within", "1h", "--json"]).env("RECANT_CONFIRM_BY", "nobody")
}

/// The scene with such a commit.
fn waiting() -> Scene {
    let (world, id, before) = scene();
    unwatched(&world, &id).run().ok();
    (world, id, before)
}

/// One whose time is over.
fn late() -> Scene {
    let (world, id, before) = waiting();
    overdue(&world, &id);
    (world, id, before)
}

/// One that a process watches; with its number.
fn watched() -> (World, String, Manifest, i32) {
    let (world, id, before) = scene();
    let said = world.call(["commit", &id, "--confirm-within", "1h", "--json"]).run().ok();
    (world, id, before, watcher(&said))
}

fn header(world: &World, id: &str) -> PathBuf {
    world.session(id).join("session.json")
}

/// True if it has a deadline, and something of it is on the tree.
fn waits(world: &World, id: &str) -> bool {
    let json: Value = serde_json::from_slice(&std::fs::read(header(world, id)).expect("a header")).expect("JSON");
    json["deadline"].is_object() && json["counts"]["in"] != 0
}

/// The process that watches, as the commit named it.
fn watcher(said: &common::Said) -> i32 {
    let by = said.json()["confirm"]["by"].as_str().expect("who watches").to_owned();
    by.strip_prefix("process ").unwrap_or_else(|| panic!("{by}")).parse().expect("a number")
}

fn is_there(pid: i32) -> bool {
    // One that has ended and waits for its parent is a zombie.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

fn kill(pid: i32) {
    let known = rustix::process::Pid::from_raw(pid).expect("a process");
    rustix::process::kill_process(known, rustix::process::Signal::KILL).expect("a kill");
    until("the watcher's end", || !is_there(pid));
}

/// Makes its time be over.
fn overdue(world: &World, id: &str) {
    amend(world, id, |deadline| deadline["due_since_boot"] = "1970-01-01T00:00:00.000000001Z".into());
}

/// Gives it another deadline, at once: a watcher may look at it.
fn amend(world: &World, id: &str, change: impl Fn(&mut Value)) {
    let path = header(world, id);
    let mut json: Value = serde_json::from_slice(&std::fs::read(&path).expect("a header")).expect("JSON");
    change(&mut json["deadline"]);
    let new = world.root().join("header");
    std::fs::write(&new, json.to_string()).expect("another header");
    std::fs::rename(new, path).expect("it takes the place");
}

/// Puts a directory where the store's log is, which cannot be written to then.
fn close_log(world: &World) {
    let log = world.store().join("log.jsonl");
    std::fs::rename(&log, log.with_extension("kept")).expect("a log");
    std::fs::create_dir(&log).expect("a directory in its place");
}

/// What was confirmed is taken back by nobody.
fn overdue_leaves(world: &World, id: &str) {
    assert!(!waits(world, id));
    world.recant("session new").ok();
    assert_eq!(world.status(id), "committed");
}

#[test]
fn a_commit_that_is_confirmed_stays_and_its_watcher_ends() {
    let (world, id, before, pid) = watched();
    assert!(is_there(pid));
    let status = world.recant("status --json").ok().json();
    let waits = &status["unconfirmed"][0];
    assert_eq!((&waits["session"], &waits["overdue"]), (&id.as_str().into(), &false.into()));
    let text = world.recant("status").ok();
    assert!(text.stdout().contains("unless confirmed: recant confirm"), "{text}");
    world.call(["confirm", &id]).run().ok();
    until("the watcher's end", || !is_there(pid));
    overdue_leaves(&world, &id);
    let said = world.call(["confirm", &id]).run().with(1);
    assert!(said.stderr().contains("is not waiting to be confirmed"), "{said}");
    world.call(["rollback", &id]).run().ok();
    before.assert_same(&world.manifest(), "taken back by hand");
}

/// The word is given once its record is gone, whatever fails after that.
#[test]
fn a_confirmation_that_fails_half_way_says_whether_it_counts() {
    let row = Sweep {
        name: "confirm",
        scene: &|| Some(waiting()),
        verb: &|(world, id, _)| world.call(["confirm", id]),
        order: "fail:N:5",
    };
    let tally = row.run(|(world, id, _), said, what| {
        let (counts, status) = (!waits(world, id), said.status);
        let word = if counts { "power cut" } else { "nothing was changed" };
        assert!(if counts { [0, 4].contains(&status) } else { status == 1 }, "{what}");
        assert!(status == 0 || said.stderr().contains(word), "{what}");
        if counts { Came::Used(status) } else { Came::Unchanged(status) }
    });
    tally.saw(1, 1).saw(4, 1).saw(0, 1);
}

#[test]
fn one_that_is_not_confirmed_is_rolled_back_exactly_though_the_shell_has_ended() {
    let (world, id, before) = scene();
    // The shell that commits is gone at once, with its session and its terminal's, if it had one.
    let script = "setsid \"$0\" commit \"$1\" --confirm-within 2s --json";
    let said = world.program("sh", ["-c", script, common::recant(), &id]).run().ok();
    assert_eq!(world.status(&id), "committed");
    let pid = watcher(&said);
    until("the rollback", || !waits(&world, &id));
    until("the watcher's end", || !is_there(pid));
    assert_eq!(world.status(&id), "rolled_back");
    before.assert_same(&world.manifest(), "rolled back by itself");
    let said = world.call(["confirm", &id]).run().with(1);
    assert!(said.stderr().contains("was not confirmed in time, and was rolled back at"), "{said}");
    world.call(["redo", &id]).run().ok();
    assert_eq!(world.read("edited"), "new");
}

/// What stays of it is there because somebody has changed it, not because anybody is waited for.
#[test]
fn a_commit_that_is_undone_but_for_a_path_waits_for_no_word() {
    let (world, id, _) = scene();
    let steps = steps_of(|| unwatched(&world, &id));
    let is_seal = |step: &String| step.starts_with("renameat ") && step.contains("session.json.new");
    let seal = 1 + steps.iter().position(is_seal).expect("a seal");
    let (world, id, _) = scene();
    unwatched(&world, &id).env("RECANT_STEPS", format!("kill:{seal}")).run().with(137);
    world.write("edited", "theirs");
    world.recant("recover").with(4);
    assert!(!waits(&world, &id));
    assert_eq!(world.recant("status --json").ok().json()["unconfirmed"], serde_json::json!([]));
    assert_eq!((&*world.status(&id), &*world.read("edited")), ("committed", "theirs"));
}

#[test]
fn what_its_watcher_did_not_do_the_next_verb_that_changes_something_does() {
    // This boot; another one: a restart.
    for boot in [None, Some("00000000-0000-0000-0000-000000000000")] {
        let (world, id, before, pid) = watched();
        kill(pid);
        match boot {
            None => overdue(&world, &id),
            Some(boot) => amend(&world, &id, |record| {
                (record["boot"], record["due"]) = (boot.into(), "2020-01-01T00:00:00.000000000Z".into());
            }),
        }
        let status = world.recant("status").ok();
        assert!(status.stdout().contains("the next recant that changes something takes it back"), "{status}");
        assert_eq!(world.status(&id), "committed", "looking changes nothing");
        world.call(["rollback", &id, "--dry-run"]).run().ok();
        assert_eq!(world.status(&id), "committed", "a dry run changes nothing");
        let said = world.recant("session new").ok();
        assert_eq!(said.stderr().lines().count(), 1, "{said}");
        assert!(said.stderr().contains("was not confirmed by") && said.stderr().contains("rolled back, 4 taken back"), "{said}");
        before.assert_same(&world.manifest(), "rolled back by the next verb");
        assert_eq!(world.status(&id), "rolled_back");
        world.assert_tidy("afterwards");
        assert!(world.recant("session new").ok().stderr().is_empty());
    }
    // A confirmation that is too late is such a verb.
    let (world, id, before) = late();
    let said = world.call(["confirm", &id]).run().with(1);
    assert!(said.stderr().contains("was not confirmed in time"), "{said}");
    before.assert_same(&world.manifest(), "rolled back first");
}

#[test]
fn a_restart_before_the_time_is_over_takes_nothing_back() {
    let (world, id, _) = waiting();
    amend(&world, &id, |record| {
        record["boot"] = "another".into();
        // What the other boot's clock said means nothing in this one.
        record["due_since_boot"] = "1970-01-01T00:00:00.000000001Z".into();
    });
    world.recant("session new").ok();
    assert_eq!(world.status(&id), "committed");
    world.call(["confirm", &id]).run().ok();
    overdue_leaves(&world, &id);
}

#[test]
fn what_somebody_edited_since_stays_and_is_named() {
    let (world, id, _) = late();
    world.write("edited", "by somebody");
    let said = world.recant("session new").ok();
    assert!(said.stderr().contains("and stays") && said.stderr().contains("tree/edited"), "{said}");
    assert_eq!(world.read("edited"), "by somebody");
    assert_eq!(world.status(&id), "committed", "all of it stays: nothing is done in part");
    let status = world.recant("status --json").ok().json();
    assert!(status["unconfirmed"][0]["failed"][0].as_str().is_some_and(|why| why.contains("tree/edited")), "{status}");
    let text = world.recant("status").ok();
    assert!(text.stdout().contains("not all of it could be taken back"), "{text}");
    let log = world.recant("log --json").ok().stdout();
    assert!(log.contains("\"result\":\"left\""), "{log}");
    // Once it is as it was committed, the next verb takes it back; or somebody lets it stay.
    world.call(["confirm", &id]).run().ok();
    assert_eq!(world.recant("status --json").ok().json()["unconfirmed"], Value::Array(Vec::new()));
    assert_eq!(world.read("edited"), "by somebody");
}

#[test]
fn a_rollback_by_hand_ends_the_waiting_and_a_redo_begins_none() {
    let (world, id, before, pid) = watched();
    world.call(["rollback", &id]).run().ok();
    assert!(!waits(&world, &id));
    until("the watcher's end", || !is_there(pid));
    before.assert_same(&world.manifest(), "taken back by hand");
    world.call(["redo", &id]).run().ok();
    overdue_leaves(&world, &id);
}

#[test]
fn a_commit_that_comes_to_nothing_waits_for_no_word() {
    let (world, id, _) = scene();
    world.write("edited", "theirs");
    world.call(["commit", &id, "--confirm-within", "5m"]).run().with(3);
    assert!(!waits(&world, &id));
    world.write("edited", "old");
    assert_eq!(world.commit_half(&id, &["gone"], false), 0);
    let said = world.call(["commit", &id, "--confirm-within", "5m"]).run().with(1);
    assert!(said.stderr().contains("a part of it is committed already"), "{said}");
    assert!(said.stderr().contains(&format!("recant rollback {id}, then commit all of it")), "{said}");
    world.call(["commit", &id]).run().ok();
    // Who asks for a guard is told that there is none.
    let said = world.call(["commit", &id, "--confirm-within", "5m"]).run().ok();
    assert!(said.stderr().contains("is committed already: there is nothing to confirm\n"), "{said}");
    assert!(!waits(&world, &id));
    let said = world.call(["commit", &id]).run().ok();
    assert!(said.stderr().contains("nothing to commit"), "{said}");
    for wrong in ["5", "0s", "-1m", "500d", "soon"] {
        world.call(["commit", &id, &format!("--confirm-within={wrong}")]).run().with(2);
    }
}

#[test]
fn what_waits_is_neither_discarded_nor_pruned_nor_made_to_wait_again_and_the_advice_can_be_followed() {
    let (world, id, before) = waiting();
    let said = world.call(["commit", &id, "--confirm-within", "5m"]).run().ok();
    assert!(said.stderr().contains("is committed already: there is nothing to confirm"), "{said}");
    let said = world.call(["discard", &id, "-y"]).run().with(1);
    assert!(said.stderr().contains(&format!("cannot discard {id}: it waits to be confirmed until ")), "{said}");
    assert!(said.stderr().contains(&format!("recant rollback {id} takes it back")), "{said}");
    let other = world.begin();
    for words in [["prune", "--checkpoints"], ["prune", "--sessions"]] {
        for more in [&[][..], &["--dry-run"]] {
            // Nothing of what is named beside it goes either.
            let said = world.call(words.iter().chain(&[&*other, &id, "-y"]).chain(more)).run().with(1);
            assert!(said.stderr().contains(&format!("cannot prune {id}: it waits to be confirmed until ")), "{said}");
            let advice = format!("recant confirm {id} lets it stay, recant rollback {id} takes it back");
            assert!(said.stderr().contains(&advice), "{said}");
            world.call(["show", &other]).run().ok();
        }
    }
    overdue(&world, &id);
    world.recant("session new").ok();
    before.assert_same(&world.manifest(), "taken back all the same");
    world.call(["prune", "--sessions", &id, "-y"]).run().ok();
    // Confirmed, it is as any other.
    let (world, id, _) = waiting();
    world.call(["confirm", &id]).run().ok();
    let said = world.call(["discard", &id, "-y"]).run().with(1);
    assert!(said.stderr().contains(&format!("recant prune --checkpoints {id}")), "{said}");
    world.call(["prune", "--checkpoints", &id, "-y"]).run().ok();
    // Taken back, it can be discarded.
    let (world, id, before) = waiting();
    world.call(["rollback", &id]).run().ok();
    world.call(["discard", &id, "-y"]).run().ok();
    before.assert_same(&world.manifest(), "taken back by hand");
}

#[test]
fn a_session_that_is_damaged_is_taken_back_once_that_is_mended() {
    let (world, id, before) = late();
    let path = header(&world, &id);
    let whole = std::fs::read(&path).expect("a header");
    std::fs::write(&path, "{").expect("another header");
    world.call(["confirm", "--watch", &id]).run().with(5);
    assert!(world.recant("status").with(4).stderr().contains("the session is damaged"));
    world.recant("session new").ok();
    std::fs::write(&path, whole).expect("the header");
    world.recant("session new").ok();
    before.assert_same(&world.manifest(), "rolled back by the next verb");
}

#[test]
fn a_commit_that_waits_for_a_word_and_is_killed_before_any_step_is_taken_back_or_not_begun() {
    let row = Sweep {
        name: "commit --confirm-within",
        scene: &|| Some(scene()),
        verb: &|(world, id, _)| unwatched(world, id),
        order: "kill:N",
    };
    let tally = row.run(|(world, id, before), _, what| {
        if waits(world, id) {
            overdue(world, id);
        }
        world.recant("session new").ok();
        world.assert_tidy(what);
        before.assert_same(&world.manifest(), what);
        let (status, again) = match &*world.status(id) {
            "pending" => ("pending", "commit"),
            "rolled_back" => ("rolled_back", "redo"),
            other => panic!("{what}: {other}"),
        };
        // Nothing of it is in the way of the next one.
        world.call([again, id]).run().ok();
        overdue_leaves(world, id);
        Came::Used(status)
    });
    tally.saw("pending", 11).saw("rolled_back", 11);
}

#[test]
fn a_rollback_by_itself_that_is_killed_or_fails_at_any_step_is_told_and_ended_by_the_next_verb() {
    for (verb, order) in [(&["recover"][..], "kill:N"), (&["confirm", "--watch"], "fail:N:28")] {
        let of_session = |id: &str| (verb.len() > 1).then(|| id.to_owned());
        let row = Sweep {
            name: &verb.join(" "),
            scene: &|| Some(late()),
            verb: &|(world, id, _)| world.call(verb.iter().map(|word| (*word).to_owned()).chain(of_session(id))),
            order,
        };
        let tally = row.run(|(world, id, before), said, what| {
            let came = if said.status == 137 {
                "killed"
            } else if world.status(id) == "rolled_back" {
                before.assert_same(&world.manifest(), what);
                "taken back"
            } else {
                let status = world.recant("status --json").json();
                let row = &status["unconfirmed"][0];
                assert_eq!((&row["session"], &row["overdue"]), (&id.as_str().into(), &true.into()), "{what}: {status}");
                "told"
            };
            world.recant("session new").ok();
            before.assert_same(&world.manifest(), what);
            assert_eq!(world.status(id), "rolled_back", "{what}");
            world.assert_tidy(what);
            assert!(!waits(world, id), "{what}");
            Came::Used(came)
        });
        assert!(tally.steps > 30, "{} has {} steps", row.name, tally.steps);
        if order == "kill:N" {
            tally.saw("killed", 30)
        } else {
            tally.saw("taken back", 11).saw("told", 11)
        };
    }
}

/// systemd-run, as far as what it is given: a script in its place does it at once.
#[test]
fn a_timer_is_given_what_takes_the_commit_back() {
    let mut world = World::new();
    let bin = world.root().join("b'in");
    let script =
        "#!/bin/sh\necho \"$@\" > \"$OUT\"/given; while [ \"$1\" != -- ]; do shift; done; shift\n\"$@\" > \"$OUT\"/said 2>&1 &\n";
    world.write(bin.join("systemd-run"), script).chmod(bin.join("systemd-run"), 0o755);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let out = world.root().to_owned();
    world.set("PATH", path).set("RECANT_CONFIRM_BY", "systemd").set("OUT", &out);
    world.write("edited", "old");
    let before = world.manifest();
    let id = world.begin();
    world.stage(&id, ["write edited new"]);
    let said = world.call(["commit", &id, "--confirm-within", "1h", "--json"]).run().ok();
    assert!(said.json()["confirm"]["by"].as_str().expect("who").starts_with("systemd "), "{said}");
    let found = std::fs::read_to_string(out.join("given")).expect("what it was given");
    assert!(found.contains("--on-active=3600s"), "{found}");
    overdue(&world, &id);
    until("the rollback", || world.status(&id) == "rolled_back");
    before.assert_same(&world.manifest(), "by its command");
}

/// A part waits alone: what it left goes its own way, and has it again where nobody confirms.
#[test]
fn a_part_that_nobody_confirms_is_held_again_by_the_session_that_it_left() {
    let (world, id, before) = scene();
    let edited = world.path("edited").display().to_string();
    let part = || {
        let words = ["commit", &id, "--confirm-within", "1h", "--json", "--", &edited];
        world.call(words).env("RECANT_CONFIRM_BY", "nobody").run().ok().json()
    };
    let whole = world.recant(&format!("show {id} --json")).ok().json()["session"]["changes"].clone();
    let said = part();
    let first = said["session"].as_str().unwrap().to_owned();
    assert!(first != id && waits(&world, &first) && !waits(&world, &id), "{said}");
    assert_eq!(said["part_of"]["changes"].as_u64(), whole.as_u64().map(|n| n - 1), "{said}");
    overdue(&world, &first);
    world.recant("session new").ok();
    before.assert_same(&world.manifest(), "nobody confirmed it");
    assert_eq!((world.status(&id), world.status(&first)), ("pending".into(), "rolled_back".into()));
    let now = world.recant(&format!("show {id} --json")).ok().json()["session"]["changes"].clone();
    assert_eq!(now, whole, "it holds all again");
    let second = part()["session"].as_str().unwrap().to_owned();
    world.call(["confirm", &second]).run().ok();
    world.call(["commit", &id]).run().ok();
    overdue_leaves(&world, &second);
    for id in [&id, &second] {
        world.call(["rollback", id]).run().ok();
    }
    before.assert_same(&world.manifest(), "taken back by hand");
}

/// Nothing of a part is left that is refused, its mark neither.
#[test]
fn a_part_that_is_refused_waits_for_nobody() {
    let (world, id, _) = scene();
    world.write("edited", "theirs");
    let edited = world.path("edited").display().to_string();
    world.call(["commit", &id, "--confirm-within", "1h", "--", &edited]).run().with(3);
    world.recant("session new").ok();
    let marks = std::fs::read_dir(world.store().join("unconfirmed")).unwrap().count();
    assert_eq!(marks, 0);
}

#[test]
fn a_commit_that_is_done_is_said_to_be_done_though_its_time_cannot_be_noted_once_more() {
    let row = Sweep {
        name: "commit --confirm-within",
        scene: &|| Some(scene()),
        verb: &|(world, id, _)| world.call(["commit", id, "--confirm-within", "1h", "--json"]),
        order: "fail:N:28",
    };
    let tally = row.run(|(world, id, before), said, what| {
        let committed = world.status(id) == "committed";
        let came = if said.stderr().contains("the time that was noted before the commit counts") {
            assert_eq!((said.status, committed, said.json()["status"].as_str()), (0, true, Some("committed")), "{what}");
            assert!(waits(world, id), "{what}");
            overdue(world, id);
            world.recant("session new").ok();
            "not noted once more"
        } else if committed {
            world.call(["rollback", id]).run().ok();
            "committed"
        } else {
            "not committed"
        };
        before.assert_same(&world.manifest(), what);
        Came::Used(came)
    });
    tally.saw("not noted once more", 2).saw("not committed", 1);
}

#[test]
fn a_watch_or_a_verb_whose_note_fails_has_done_its_work_all_the_same() {
    let (world, _, before) = late();
    close_log(&world);
    let said = world.recant("session new");
    assert!(said.stderr().contains("rolled back, 4 taken back") && !said.stderr().contains("and stays"), "{said}");
    assert!(said.stderr().contains("the log could not be written") && said.stderr().contains("log.jsonl"), "{said}");
    before.assert_same(&world.manifest(), "rolled back by the next verb");
    for conflict in [false, true] {
        let (world, id, before) = late();
        if conflict {
            world.write("edited", "by somebody");
        }
        close_log(&world);
        world.call(["confirm", "--watch", &id]).run();
        let status = world.recant("status --json").ok().json();
        if conflict {
            assert_eq!(world.status(&id), "committed");
            let failed = status["unconfirmed"][0]["failed"].as_array().expect("what was left").clone();
            assert_eq!(failed.len(), 1, "{status}");
            assert!(failed[0].as_str().is_some_and(|why| why.contains("tree/edited: changed since the commit")), "{status}");
            // What is stored has no time of day: the next verb finds the same, and says nothing more.
            std::fs::remove_dir(world.store().join("log.jsonl")).expect("the directory in its place");
            world.recant("session new").ok();
            let log = world.recant("log --json").ok().json();
            assert!(log["entries"].as_array().unwrap().iter().all(|entry| entry["verb"] != "confirm"), "{log}");
        } else {
            before.assert_same(&world.manifest(), "rolled back by itself");
            assert_eq!(status["unconfirmed"], Value::Array(Vec::new()), "{status}");
        }
    }
}
