//! Commits that wait for a word: confirmed they stay, else they are rolled back exactly, by a watcher or by whoever comes next, whatever
//! became of the shell, the watcher or the machine.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::common::{self, Manifest, World};
use serde_json::Value;

/// A world with a session to commit, and how the tree was.
fn scene() -> (World, String, Manifest) {
    let world = World::new();
    world.write("edited", "old").write("gone", "away").mkdir("full/sub");
    let before = world.manifest();
    let id = world.begin();
    world.stage_write(&id, "edited", "new").stage_write(&id, "made/new", "new");
    world.recant(&format!("session delete {id} gone")).ok();
    (world, id, before)
}

fn record(world: &World, id: &str) -> PathBuf {
    world.store().join("unconfirmed").join(id)
}

#[track_caller]
fn wait_until(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(30), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
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
    wait_until("the watcher's end", || !is_there(pid));
}

/// Makes a record say that its time is over, in this boot or in another.
fn overdue(world: &World, id: &str, boot: Option<&str>) {
    let path = record(world, id);
    let mut json: Value = serde_json::from_slice(&std::fs::read(&path).expect("a record")).expect("JSON");
    json["due"] = "2020-01-01T00:00:00.000000000Z".into();
    if let Some(boot) = boot {
        json["boot"] = boot.into();
    } else {
        json["due_since_boot"] = "1970-01-01T00:00:00.000000001Z".into();
    }
    std::fs::write(path, json.to_string()).expect("another record");
}

#[test]
fn a_commit_that_is_confirmed_stays_and_its_watcher_ends() {
    let (world, id, before) = scene();
    let said = world.call(["commit", &id, "--confirm-within", "1h", "--json"]).run().ok();
    let pid = watcher(&said);
    assert!(is_there(pid), "{said}");
    let status = world.recant("status --json").ok().json();
    assert_eq!(
        (&status["unconfirmed"][0]["session"], &status["unconfirmed"][0]["overdue"]),
        (&id.as_str().into(), &false.into())
    );
    let text = world.recant("status").ok();
    assert!(text.stdout().contains("unless confirmed: recant confirm"), "{text}");
    world.call(["confirm", &id]).run().ok();
    wait_until("the watcher's end", || !is_there(pid));
    assert!(!record(&world, &id).exists());
    assert_eq!(world.status(&id), "committed");
    let said = world.call(["confirm", &id]).run().with(1);
    assert!(said.stderr().contains("waits for no confirmation"), "{said}");
    world.call(["rollback", &id]).run().ok();
    before.assert_same(&world.manifest(), "taken back by hand");
}

/// The word is given once its record is gone, whatever fails after that.
#[test]
fn a_confirmation_that_fails_half_way_says_whether_it_counts() {
    let mut seen = [0, 0];
    for n in common::steps() {
        let (world, id, _) = scene();
        world.recant(&format!("commit {id} --confirm-within 10m")).ok();
        let said = world.call(["confirm", &id]).env("RECANT_STEPS", format!("fail:{n}:5")).run();
        let counts = !record(&world, &id).exists();
        if said.status == 0 {
            assert!(counts, "{n}: {said}");
            break;
        }
        seen[usize::from(counts)] += 1;
        let wanted = if counts { (4, "is confirmed, but a power cut may take that back") } else { (1, "nothing was changed") };
        assert_eq!(said.status, wanted.0, "{n}: {said}");
        assert!(said.stderr().contains(wanted.1), "{n}: {said}");
        if !counts {
            world.recant(&format!("confirm {id}")).ok();
        }
    }
    assert!(seen.iter().all(|times| *times > 0), "{seen:?}");
}

/// Once it is taken back, by hand or as nobody confirmed it, what is left of its record tells nothing.
#[test]
fn a_rollback_that_is_done_is_said_to_be_done_though_the_record_cannot_be_removed() {
    for late in [false, true] {
        let waiting = || {
            let (world, id, before) = scene();
            world.call(["commit", &id, "--confirm-within", "1h"]).env("RECANT_CONFIRM_BY", "nobody").run().ok();
            if late {
                overdue(&world, &id, None);
            }
            (world, id, before)
        };
        let call = |world: &World, id: &str, steps: &str| {
            let words: &[&str] = if late { &["session", "new"] } else { &["rollback", id] };
            world.call(words).env("RECANT_STEPS", steps).run()
        };
        let steps = {
            let (world, id, _) = waiting();
            let log = world.root().join("steps");
            call(&world, &id, &format!("log:{}", log.display())).ok();
            std::fs::read_to_string(log).expect("steps")
        };
        let of_record = |line: &&str| line.contains("/unconfirmed");
        let numbers: Vec<&str> = steps.lines().filter(of_record).filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(numbers.len(), 2, "{steps}");
        for n in numbers {
            let (world, id, before) = waiting();
            let said = call(&world, &id, &format!("fail:{n}:5")).ok();
            let text = format!("{said}");
            assert!(
                ["taken back", "rolled back"].iter().any(|word| text.contains(word))
                    && text.contains("was rolled back; its confirmation record could not be removed"),
                "{said}"
            );
            assert!(!text.contains("and stays") && !text.contains("nothing was changed"), "{said}");
            before.assert_same(&world.manifest(), "taken back");
            assert!(!world.recant("log").ok().stdout().contains("failed"), "{said}");
            world.call(["redo", &id]).run().ok();
            overdue_leaves(&world, &id);
        }
    }
}

#[test]
fn one_that_is_not_confirmed_is_rolled_back_exactly_though_the_shell_has_ended() {
    let (world, id, before) = scene();
    // The shell that commits is gone at once, with its session and its terminal's, if it had one.
    let script = "setsid \"$0\" commit \"$1\" --confirm-within 2s --json";
    let said = world.program("sh", ["-c", script, common::recant(), &id]).run().ok();
    assert_eq!(world.status(&id), "committed");
    let pid = watcher(&said);
    wait_until("the rollback", || !record(&world, &id).exists());
    wait_until("the watcher's end", || !is_there(pid));
    assert_eq!(world.status(&id), "rolled_back");
    before.assert_same(&world.manifest(), "rolled back by itself");
    let said = world.call(["confirm", &id]).run().with(1);
    assert!(said.stderr().contains("was not confirmed in time") && said.stderr().contains("it was rolled back at"), "{said}");
    world.call(["redo", &id]).run().ok();
    assert_eq!(world.read("edited"), "new");
}

/// What stays of it is there because somebody has changed it, not because anybody is waited for.
#[test]
fn a_commit_that_is_undone_but_for_a_path_waits_for_no_word() {
    let (world, id, _) = scene();
    let commit = |steps: &str| {
        let call = world.call(["commit", &id, "--confirm-within", "1h"]).env("RECANT_CONFIRM_BY", "nobody");
        call.env("RECANT_STEPS", steps).run()
    };
    let shell = |command: &str| world.program("sh", ["-c", command]).cwd(world.root()).run().ok();
    shell("mkdir saved && cp -a tree store saved");
    let log = world.root().join("steps");
    commit(&format!("log:{}", log.display())).ok();
    let steps = std::fs::read_to_string(&log).expect("a log of steps");
    let seal = steps.lines().position(|step| step.contains("renameat ") && step.contains("session.json.new")).expect("a seal");
    shell("rm -rf tree store && cp -a saved/. .");
    commit(&format!("kill:{}", seal + 1)).with(137);
    assert!(record(&world, &id).exists());
    world.write("edited", "theirs");
    world.recant("recover").with(4);
    assert!(!record(&world, &id).exists());
    assert_eq!(world.recant("status --json").ok().json()["unconfirmed"], serde_json::json!([]));
    assert_eq!((&*world.status(&id), &*world.read("edited")), ("partial", "theirs"));
}

#[test]
fn what_its_watcher_did_not_do_the_next_verb_that_changes_something_does() {
    // A boot of its own, this one; another one: a restart.
    for boot in [None, Some("00000000-0000-0000-0000-000000000000")] {
        let (world, id, before) = scene();
        let said = world.call(["commit", &id, "--confirm-within", "1h", "--json"]).run().ok();
        kill(watcher(&said));
        overdue(&world, &id, boot);
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
}

#[test]
fn a_restart_before_the_time_is_over_takes_nothing_back() {
    let (world, id, _) = scene();
    let said = world.call(["commit", &id, "--confirm-within", "1h", "--json"]).run().ok();
    kill(watcher(&said));
    let path = record(&world, &id);
    let mut json: Value = serde_json::from_slice(&std::fs::read(&path).expect("a record")).expect("JSON");
    json["boot"] = "another".into();
    // What the other boot's clock said means nothing in this one.
    json["due_since_boot"] = "1970-01-01T00:00:00.000000001Z".into();
    std::fs::write(&path, json.to_string()).expect("another record");
    world.recant("session new").ok();
    assert_eq!(world.status(&id), "committed");
    world.call(["confirm", &id]).run().ok();
    assert_eq!(world.status(&id), "committed");
}

#[test]
fn confirming_too_late_says_so() {
    let (world, id, before) = scene();
    let said = world.call(["commit", &id, "--confirm-within", "1h", "--json"]).run().ok();
    kill(watcher(&said));
    overdue(&world, &id, None);
    let said = world.call(["confirm", &id]).run().with(1);
    assert!(said.stderr().contains("was not confirmed in time"), "{said}");
    before.assert_same(&world.manifest(), "rolled back first");
}

#[test]
fn what_somebody_edited_since_stays_and_is_named() {
    let (world, id, _) = scene();
    let said = world.call(["commit", &id, "--confirm-within", "1h", "--json"]).run().ok();
    kill(watcher(&said));
    world.write("edited", "by somebody");
    overdue(&world, &id, None);
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
    let (world, id, before) = scene();
    let said = world.call(["commit", &id, "--confirm-within", "1h", "--json"]).run().ok();
    let pid = watcher(&said);
    world.call(["rollback", &id]).run().ok();
    assert!(!record(&world, &id).exists());
    wait_until("the watcher's end", || !is_there(pid));
    before.assert_same(&world.manifest(), "taken back by hand");
    world.call(["redo", &id]).run().ok();
    world.recant("session new").ok();
    assert_eq!(world.status(&id), "committed");
}

#[test]
fn a_commit_that_comes_to_nothing_waits_for_no_word() {
    let (world, id, _) = scene();
    world.write("edited", "theirs");
    world.call(["commit", &id, "--confirm-within", "5m"]).run().with(3);
    assert!(!record(&world, &id).exists());
    world.write("edited", "old");
    world.call(["commit", &id, &world.path("gone").display().to_string()]).run().ok();
    let said = world.call(["commit", &id, "--confirm-within", "5m"]).run().with(1);
    assert!(said.stderr().contains("a part of it is committed already"), "{said}");
    assert!(said.stderr().contains(&format!("recant rollback {id}, then commit all of it")), "{said}");
    world.call(["commit", &id]).run().ok();
    // Who asks for a guard is told that there is none.
    let said = world.call(["commit", &id, "--confirm-within", "5m"]).run().ok();
    assert!(said.stderr().contains("is committed already: it needs no confirmation\n"), "{said}");
    assert!(!record(&world, &id).exists());
    let said = world.call(["commit", &id]).run().ok();
    assert!(said.stderr().contains("nothing to commit"), "{said}");
    for wrong in ["5", "0s", "-1m", "500d", "soon"] {
        world.call(["commit", &id, &format!("--confirm-within={wrong}")]).run().with(2);
    }
}

#[test]
fn one_that_waits_already_is_said_to_wait() {
    let (world, id, _) = scene();
    world.call(["commit", &id, "--confirm-within", "1h"]).run().ok();
    let said = world.call(["commit", &id, "--confirm-within", "5m"]).run().ok();
    assert!(said.stderr().contains("is committed already: it waits to be confirmed until "), "{said}");
    world.call(["confirm", &id]).run().ok();
}

#[test]
fn what_its_rollback_needs_is_not_pruned_while_a_commit_waits() {
    let (world, id, before) = scene();
    let said = world.call(["commit", &id, "--confirm-within", "1h", "--json"]).run().ok();
    kill(watcher(&said));
    let other = world.begin();
    for (words, what) in [(["checkpoint", "prune"], "the checkpoint of"), (["session", "prune"], "session")] {
        for more in [&[][..], &["--dry-run"]] {
            // Nothing of what is named beside it goes either.
            let said = world.call(words.iter().chain(&[&*other, &id, "-y"]).chain(more)).run().with(1);
            assert!(said.stderr().contains(&format!("cannot prune {what} {id}: it waits to be confirmed until ")), "{said}");
            assert!(
                said.stderr().contains(&format!("recant confirm {id} lets it stay, recant rollback {id} takes it back")),
                "{said}"
            );
            world.call(["show", &other]).run().ok();
        }
    }
    overdue(&world, &id, None);
    world.recant("session new").ok();
    before.assert_same(&world.manifest(), "taken back all the same");
    world.call(["session", "prune", &id, "-y"]).run().ok();
    // Confirmed, it goes as any other.
    let (world, id, _) = scene();
    world.call(["commit", &id, "--confirm-within", "1h"]).run().ok();
    world.call(["confirm", &id]).run().ok();
    world.call(["checkpoint", "prune", &id, "-y"]).run().ok();
}

#[test]
fn a_record_that_is_garbled_is_named_by_every_verb_and_decided_by_a_word_or_a_rollback() {
    for verb in ["confirm", "rollback"] {
        let (world, id, before) = scene();
        let said = world.call(["commit", &id, "--confirm-within", "1h", "--json"]).run().ok();
        kill(watcher(&said));
        std::fs::write(record(&world, &id), "{").expect("another record");
        let named = format!(
            "the rollback deadline of session {id} is unreadable; recant confirm {id} keeps the commit, recant rollback {id}"
        );
        for words in ["session new", "list", "show ID", "diff ID", "log", "checkpoint list"] {
            let said = world.recant(&words.replace("ID", &id)).ok();
            assert!(said.stderr().contains(&named), "{words}: {said}");
            assert!(said.stderr().contains(&record(&world, &id).display().to_string()), "{words}: {said}");
        }
        let said = world.recant("status").with(4);
        assert!(said.stderr().contains(&named), "{said}");
        let json = world.recant("status --json").with(4).json();
        assert_eq!((&json["damaged"][0]["id"], json["damaged"].as_array().map(Vec::len)), (&id.as_str().into(), Some(1)));
        let said = world.call(["checkpoint", "prune", &id, "-y"]).run().with(1);
        assert!(said.stderr().contains("it waits to be confirmed; its deadline is unreadable"), "{said}");
        assert_eq!(world.status(&id), "committed");
        world.call([verb, &id]).run().ok();
        assert!(!record(&world, &id).exists());
        match verb {
            "confirm" => assert_eq!(world.status(&id), "committed"),
            _ => before.assert_same(&world.manifest(), "taken back by hand"),
        }
        assert!(world.recant("status").ok().stderr().is_empty());
    }
}

#[test]
fn a_watcher_whose_record_is_garbled_goes_by_what_it_had_read() {
    let (world, id, before) = scene();
    let said = world.call(["commit", &id, "--confirm-within", "4s", "--json"]).run().ok();
    let pid = watcher(&said);
    std::fs::write(record(&world, &id), "{").expect("another record");
    wait_until("the watcher's end", || !is_there(pid));
    before.assert_same(&world.manifest(), "rolled back by itself");
    assert_eq!(world.status(&id), "rolled_back");
    assert!(!record(&world, &id).exists());
    let log = world.recant("log --json").ok().stdout();
    assert!(log.contains("\"result\":\"record unreadable\"") && log.contains("\"result\":\"not confirmed\""), "{log}");
}

#[test]
fn what_keeps_a_watcher_from_its_work_is_told_by_status_and_log() {
    let (world, id, _) = scene();
    let said = world.call(["commit", &id, "--confirm-within", "4s", "--json"]).run().ok();
    let pid = watcher(&said);
    let header = world.session(&id).join("session.json");
    let whole = std::fs::read(&header).expect("a header");
    std::fs::write(&header, "{").expect("another header");
    wait_until("the watcher's end", || !is_there(pid));
    let said = world.recant("status").with(4);
    assert!(said.stdout().contains("not all of it could be taken back") && said.stdout().contains("session.json"), "{said}");
    let log = world.recant("log --json").ok().stdout();
    assert!(log.contains("\"verb\":\"confirm\"") && log.contains("\"result\":\"failed\""), "{log}");
    // Once that is mended the next verb takes it back.
    std::fs::write(&header, whole).expect("the header");
    world.recant("session new").ok();
    assert_eq!(world.status(&id), "rolled_back");
}

/// Killed before every step: a commit that is on the tree is taken back when its time is over; one that is not leaves nothing.
#[test]
fn a_commit_that_waits_for_a_word_and_is_killed_before_any_step_is_taken_back_or_not_begun() {
    let (mut pending, mut taken) = (0, 0);
    for n in common::steps() {
        let (world, id, before) = scene();
        let call = world.call(["commit", &id, "--confirm-within", "1h", "--json"]);
        let said = call.env("RECANT_STEPS", format!("kill:{n}")).env("RECANT_CONFIRM_BY", "nobody").run();
        if said.status != 137 {
            said.ok();
            break;
        }
        let what = format!("killed before step {n}");
        if record(&world, &id).exists() {
            overdue(&world, &id, None);
        }
        world.recant("session new").ok();
        world.assert_tidy(&what);
        match &*world.status(&id) {
            "pending" => pending += 1,
            "rolled_back" => taken += 1,
            other => panic!("{what}: {other}"),
        }
        before.assert_same(&world.manifest(), &what);
        // Nothing of it is in the way of the next one.
        let verb = if world.status(&id) == "pending" { "commit" } else { "redo" };
        world.call([verb, &id]).run().ok();
        world.recant("session new").ok();
        assert_eq!(world.status(&id), "committed", "{what}");
    }
    assert!(pending > 10 && taken > 10, "{pending} not begun, {taken} taken back");
}

/// The rollback that nobody asked for, killed before every step, is ended by the next verb.
#[test]
fn a_rollback_by_itself_that_is_killed_before_any_step_is_ended_by_the_next() {
    for n in common::steps() {
        let (world, id, before) = scene();
        let call = world.call(["commit", &id, "--confirm-within", "1h"]).env("RECANT_CONFIRM_BY", "nobody");
        call.run().ok();
        overdue(&world, &id, None);
        let said = world.call(["recover"]).env("RECANT_STEPS", format!("kill:{n}")).run();
        if said.status != 137 {
            said.ok();
            assert!(n > 30, "only {n} steps");
            break;
        }
        world.recant("session new").ok();
        let what = format!("killed before step {n}");
        before.assert_same(&world.manifest(), &what);
        assert_eq!(world.status(&id), "rolled_back", "{what}");
        world.assert_tidy(&what);
    }
}

/// What was put on this machine by `-H` may have given its place to another version when the time is over.
#[test]
fn a_job_finds_the_version_that_came_into_its_own_one_s_place() {
    use std::os::unix::fs::PermissionsExt;
    for (by, name, take) in [
        ("systemd", "systemd-run", "while [ \"$1\" != -- ]; do shift; done; shift; \"$@\" &\n"),
        ("at", "at", "cat > ../job; sh ../job &\n"),
    ] {
        let mut world = World::new();
        let bin = world.root().join("bin");
        let versions = world.root().join("h'ome/.local/lib/recant/bin");
        std::fs::create_dir(&bin).expect("a directory");
        std::fs::create_dir_all(versions.join("0.0.1")).expect("a directory");
        world.program("cp", [Path::new(common::recant()), &versions.join("0.0.1/recant")]).run().ok();
        let script = format!("#!/bin/sh\nmv \"$VERSIONS\"/0.0.1 \"$VERSIONS\"/0.0.2\n{take}");
        std::fs::write(bin.join(name), script).expect("a script");
        std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).expect("its mode");
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        world.set("PATH", path).set("RECANT_CONFIRM_BY", by).set("VERSIONS", &versions);
        let (id, before) = {
            world.write("edited", "old");
            (world.begin(), world.manifest())
        };
        world.stage_write(&id, "edited", "new");
        world.program(versions.join("0.0.1/recant"), ["commit", &id, "--confirm-within", "1s"]).run().ok();
        wait_until("the rollback", || !record(&world, &id).exists());
        before.assert_same(&world.manifest(), by);
    }
}

/// systemd-run and at, as far as what they are given: scripts in their place do it at once.
#[test]
fn timers_and_jobs_are_given_what_takes_the_commit_back() {
    use std::os::unix::fs::PermissionsExt;
    for (by, name, script) in [
        (
            "systemd",
            "systemd-run",
            "#!/bin/sh\necho \"$@\" > ../given\nwhile [ \"$1\" != -- ]; do shift; done; shift; \"$@\" > ../said 2>&1 &\n",
        ),
        (
            "at",
            "at",
            "#!/bin/sh\npwd >> \"$RECANT_STORE/../given\"\necho \"$@\" >> \"$RECANT_STORE/../given\"\ncd \"$RECANT_STORE\"\ncat > ../job\nsh ../job > ../said 2>&1 &\n",
        ),
    ] {
        let mut world = World::new();
        let bin = world.root().join("b'in");
        std::fs::create_dir(&bin).expect("a directory");
        std::fs::write(bin.join(name), script).expect("a script");
        std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).expect("its mode");
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        world.set("PATH", path).set("RECANT_CONFIRM_BY", by);
        let store = world.root().join("it's a store");
        world.set("RECANT_STORE", &store);
        world.write("edited", "old");
        let before = world.manifest();
        let id = world.begin();
        world.stage_write(&id, "edited", "new");
        let said = world.call(["commit", &id, "--confirm-within", "1s", "--json"]).run().ok();
        let told = said.json()["confirm"]["by"].as_str().expect("who").to_owned();
        assert!(told.starts_with(by), "{told}");
        let given = std::fs::read_to_string(world.root().join("given")).expect("what it was given");
        // at begins a job in the directory that it was called in.
        let wanted = if by == "at" { "/\n-t 2" } else { "--on-active=1s" };
        assert!(given.contains(wanted), "{given}");
        wait_until("the rollback", || !store.join("unconfirmed").join(&id).exists());
        before.assert_same(&world.manifest(), by);
        // What goes by mail, or into a journal: that it was rolled back, and nothing else.
        let said = || std::fs::read_to_string(world.root().join("said")).unwrap_or_default();
        wait_until("its word", || !said().is_empty());
        assert!(said().contains("was not confirmed by") && said().lines().count() == 1, "{}", said());
    }
}

#[test]
fn while_a_part_waits_the_rest_does_not_come_beside_it() {
    let (world, id, before) = scene();
    let edited = world.path("edited").display().to_string();
    world.call(["commit", &id, "--confirm-within", "1h", "--", &edited]).run().ok();
    for verb in ["commit", "redo"] {
        let said = world.call([verb, &id]).run().with(1);
        assert!(said.stderr().contains("waits to be confirmed") && said.stderr().contains("recant confirm"), "{said}");
    }
    world.call(["commit", &id, "--dry-run"]).run().ok();
    assert!(!world.exists("made/new"));
    world.call(["confirm", &id]).run().ok();
    world.call(["commit", &id]).run().ok();
    overdue_leaves(&world, &id);
    world.call(["rollback", &id]).run().ok();
    before.assert_same(&world.manifest(), "taken back by hand");
}

/// What was confirmed is taken back by nobody.
fn overdue_leaves(world: &World, id: &str) {
    assert!(!record(world, id).exists());
    world.recant("session new").ok();
    assert_eq!(world.status(id), "committed");
}

#[test]
fn a_commit_that_is_done_is_said_to_be_done_though_its_time_cannot_be_noted_once_more() {
    let mut late = 0;
    for n in common::steps() {
        let (world, id, before) = scene();
        let call = world.call(["commit", &id, "--confirm-within", "1h", "--json"]);
        let said = call.env("RECANT_STEPS", format!("fail:{n}:28")).run();
        let committed = world.status(&id) == "committed";
        if said.stderr().contains("the time that was noted before the commit counts") {
            late += 1;
            assert_eq!(
                (said.status, committed, said.json()["status"].as_str()),
                (0, true, Some("committed")),
                "step {n}: {said}"
            );
            assert!(record(&world, &id).exists(), "step {n}: {said}");
            overdue(&world, &id, None);
            world.recant("session new").ok();
            before.assert_same(&world.manifest(), "taken back all the same");
        } else if committed {
            // No step is left, or one that failed made no difference.
            world.call(["rollback", &id]).run().ok();
            if late > 0 {
                break;
            }
        }
        assert!(n < 500, "no step failed after the commit");
    }
    assert!(late >= 2, "{late}");
}

/// What is done is said to be done, and what is left is named, though the log cannot tell of it.
#[test]
fn a_watch_whose_note_fails_has_done_its_work_all_the_same() {
    for conflict in [false, true] {
        let (world, id, before) = scene();
        let said = world.call(["commit", &id, "--confirm-within", "3s", "--json"]).run().ok();
        let pid = watcher(&said);
        if conflict {
            world.write("edited", "by somebody");
        }
        let log = world.store().join("log.jsonl");
        std::fs::rename(&log, log.with_extension("kept")).expect("a log");
        std::fs::create_dir(&log).expect("a directory in its place");
        wait_until("the watcher's end", || !is_there(pid));
        let status = world.recant("status --json").ok().json();
        if conflict {
            assert_eq!(world.status(&id), "committed");
            let failed = status["unconfirmed"][0]["failed"].as_array().expect("what was left").clone();
            assert_eq!(failed.len(), 1, "{status}");
            assert!(failed[0].as_str().is_some_and(|why| why.contains("tree/edited")), "{status}");
            world.write("edited", "new");
        } else {
            before.assert_same(&world.manifest(), "rolled back by itself");
            assert_eq!(status["unconfirmed"], Value::Array(Vec::new()), "{status}");
        }
        std::fs::remove_dir(&log).expect("the directory");
        std::fs::rename(log.with_extension("kept"), &log).expect("the log");
    }
}

/// So has the next verb, which says what is true.
#[test]
fn one_that_is_taken_back_by_the_next_verb_is_said_to_be_so_though_the_log_cannot_be_written() {
    let (world, id, before) = scene();
    let said = world.call(["commit", &id, "--confirm-within", "1h", "--json"]).run().ok();
    kill(watcher(&said));
    overdue(&world, &id, None);
    let log = world.store().join("log.jsonl");
    std::fs::remove_file(&log).expect("a log");
    std::fs::create_dir(&log).expect("a directory in its place");
    let said = world.recant("session new");
    assert!(said.stderr().contains("rolled back, 4 taken back") && !said.stderr().contains("and stays"), "{said}");
    assert!(said.stderr().contains("cannot record this in the log") && said.stderr().contains("log.jsonl"), "{said}");
    before.assert_same(&world.manifest(), "rolled back by the next verb");
}

/// A full disk at any step of a watch: what was not taken back is told by `status`, and goes with the next verb.
#[test]
fn a_watch_of_which_any_step_fails_leaves_nothing_that_is_not_told() {
    let waiting = || {
        let (world, id, before) = scene();
        world.call(["commit", &id, "--confirm-within", "1h"]).env("RECANT_CONFIRM_BY", "nobody").run().ok();
        overdue(&world, &id, None);
        (world, id, before)
    };
    let watch = |world: &World, id: &str, steps: &str| world.call(["confirm", "--watch", id]).env("RECANT_STEPS", steps).run();
    let count = {
        let (world, id, _) = waiting();
        let log = world.root().join("steps");
        watch(&world, &id, &format!("log:{}", log.display())).ok();
        std::fs::read_to_string(log).expect("steps").lines().count()
    };
    let (mut back, mut told) = (0, 0);
    for n in 1..=count {
        let (world, id, before) = waiting();
        let said = watch(&world, &id, &format!("fail:{n}:28"));
        let what = format!("step {n} of {count} failed: {said}");
        if world.status(&id) == "rolled_back" {
            back += 1;
            before.assert_same(&world.manifest(), &what);
        } else {
            let status = world.recant("status --json").json();
            let row = &status["unconfirmed"][0];
            assert_eq!((&row["session"], &row["overdue"]), (&id.as_str().into(), &true.into()), "{what}: {status}");
            told += 1;
        }
        world.recant("session new").ok();
        before.assert_same(&world.manifest(), &what);
        assert_eq!(world.status(&id), "rolled_back", "{what}");
        world.assert_tidy(&what);
        assert!(!record(&world, &id).exists(), "{what}");
    }
    assert!(back > 10 && told > 10, "{back} taken back, {told} told, of {count}");
}

#[test]
fn what_waits_cannot_be_discarded_and_the_advice_can_be_followed() {
    let (world, id, before) = scene();
    world.call(["commit", &id, "--confirm-within", "1h"]).run().ok();
    let said = world.call(["discard", &id, "-y"]).run().with(1);
    assert!(said.stderr().contains(&format!("cannot discard {id}: it is committed, and waits to be confirmed until ")), "{said}");
    assert!(said.stderr().contains(&format!("recant rollback {id} takes it back, then discard it")), "{said}");
    assert!(!said.stderr().contains("prune"), "{said}");
    world.call(["rollback", &id]).run().ok();
    world.call(["discard", &id, "-y"]).run().ok();
    before.assert_same(&world.manifest(), "taken back by hand");
    // Confirmed, it is as any other.
    let (world, id, _) = scene();
    world.call(["commit", &id, "--confirm-within", "1h"]).run().ok();
    world.call(["confirm", &id]).run().ok();
    let said = world.call(["discard", &id, "-y"]).run().with(1);
    assert!(said.stderr().contains(&format!("recant checkpoint prune {id}")), "{said}");
    world.call(["checkpoint", "prune", &id, "-y"]).run().ok();
}
