//! Sessions as a whole: ids and names, listing, damage, status, discarding, pruning, the log.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use crate::common::sweep::{Came, Sweep, is_whole, steps_of};
use crate::common::{self, World, until};
use crate::on_stderr;
use insta::assert_snapshot;

#[test]
fn a_key_that_can_be_no_id_is_refused_an_unknown_one_lists_the_nearest_and_an_ambiguous_one_what_it_fits() {
    let world = World::new();
    assert_snapshot!(on_stderr(&world.recant("show nothing"), 1), @r#"
    recant: no session "nothing"
            nothing was changed
            recant list --all shows all sessions
    "#);
    let ids = [world.begin(), world.begin()];
    for key in ["", "..", "a/b", "../sessions", "/", ".hidden"] {
        let said = world.call(["show", key]).run();
        assert!(matches!(said.status, 1 | 2) && said.out.is_empty(), "{key:?}: {said}");
    }
    assert_snapshot!(on_stderr(&world.call(["show", "../x"]).run(), 1), @r#"
    recant: "../x" cannot be a session's id or name: it is empty, starts with '.' or holds '/'
            nothing was changed
            ids and names have letters, digits, '.', '_' and '-'; recant list --all shows all sessions
    "#);
    let said = world.recant(&format!("show {}x", ids[0])).with(1);
    assert!(ids.iter().all(|id| said.stderr().contains(id)), "{said}");
    let year = &ids[0][..4];
    let said = world.call(["show", year]).run().with(1);
    assert!(ids.iter().all(|id| said.stderr().contains(id)) && said.stderr().contains("fits 2 sessions"), "{said}");
}

/// Whoever discards an attempt tries again under its name.
#[test]
fn the_name_of_what_is_discarded_is_free() {
    let world = World::new();
    let first = world.recant("session new -n try").id();
    world.recant("session new -n try").with(1);
    world.recant("discard try -y").ok();
    let shown = |key: &str| world.call(["show", key, "--json"]).run().ok().json()["session"]["id"].clone();
    assert_eq!(shown("try"), *first, "it has it while nobody else has");
    let second = world.recant("session new -n try").id();
    let other = world.begin();
    assert_eq!(shown("try"), *second);
    world.recant(&format!("session rename {other} try")).with(1);
    world.recant("discard try -y").ok();
    assert_eq!(shown("try"), *second, "the newest of those that had it");
    world.recant(&format!("session rename {other} try")).ok();
    assert_eq!(shown("try"), *other);
    world.stage_write("try", "f", "mine");
    world.recant("commit try").ok();
    assert_eq!(world.read("f"), "mine");
}

#[test]
fn a_session_is_found_by_id_last_part_name_and_last() {
    let world = World::new();
    let id = world.recant("session new -n upgrade").id();
    world.stage_write(&id, "f", "x");
    let empty = world.begin();
    world.recant("session rename upgrade other").ok();
    world.recant("session rename upgrade third").with(1);
    world.recant("session rename other").ok();
    assert_eq!(world.call(["show", &id, "--json"]).run().ok().json()["session"]["name"], serde_json::Value::Null);
    world.call(["session", "rename", &id, "upgrade"]).run().ok();
    for key in [&*id, &id[16..], "upgrade", "last", &id[..20]] {
        let shown = world.call(["show", key, "--json"]).run().ok().json();
        assert_eq!(shown["session"]["id"], *id, "{key}; the empty session {empty} is not the last");
    }
    assert_snapshot!(world.recant("diff --name-only"), @r#"
    status 0
    --- stdout
    /world/tree/f
    --- stderr
    recant: last is <id1>
    "#);
    assert_snapshot!(on_stderr(&world.recant("session new -n upgrade"), 1), @r#"
    recant: the name "upgrade" is taken by session <id1>
            nothing was changed
            choose another name, or recant session rename <id1> removes it there
    "#);
    for (name, why) in [("last", "'last' always means the newest"), ("1st", "it does not start with a letter")] {
        let said = world.recant(&format!("session new -n {name}")).with(1);
        assert!(said.stderr().contains(&format!("{name:?} cannot be a session's id or name: {why}\n")), "{said}");
    }
}

#[test]
fn a_garbled_session_never_hides_the_others() {
    let world = World::new();
    let [run, good, bad, cut] = [(); 4].map(|()| world.begin());
    world.stage(&run, ["write f x"]).stage(&good, ["write f x"]);
    let header = |id: &str| world.session(id).join("session.json");
    world.write(header(&bad), "{\"schema\":1,");
    let whole = std::fs::read(header(&cut)).unwrap();
    world.write(header(&cut), &whole[..whole.len() / 2]);
    // A run whose record is garbled.
    let text = std::fs::read_to_string(header(&run)).unwrap();
    let text = text.replace("\"staged\"", "\"captured\"").replace("\"lines\"", "\"uncollected\":true,\"lines\"");
    world.write(header(&run), text).write(world.session(&run).join("run.json"), "{");
    world.mkdir(world.store().join("sessions/stray"));
    for verb in ["list", "status", "checkpoint list"] {
        let said = world.recant(verb).with(4);
        assert!([&*bad, &*cut, "stray", "recant prune --sessions ID"].iter().all(|name| said.stderr().contains(name)), "{said}");
    }
    let listed = world.recant("list --json").with(4).json();
    assert_eq!((listed["sessions"].as_array().unwrap().len(), listed["damaged"].as_array().unwrap().len()), (1, 4), "{listed}");
    assert_eq!(world.recant("show --json").ok().json()["session"]["id"], *good);
    let said = world.call(["show", &bad]).run().with(5);
    assert!(said.stderr().contains("session.json"), "{said}");
    world.call(["commit", &good]).run().ok();
}

#[test]
fn many_sessions_are_listed_in_order_with_the_damaged_ones_beside_them() {
    let world = World::new();
    let (first, store) = (world.begin(), world.store().join("sessions"));
    let header = std::fs::read_to_string(world.session(&first).join("session.json")).unwrap();
    for n in 2..=150 {
        let id = format!("20200101-000000-{}{}aa", char::from(b'a' + n / 26), char::from(b'a' + n % 26));
        world.mkdir(store.join(&id));
        let header = header.replace(&first, &id).replace("\"seq\":1,", &format!("\"seq\":{n},"));
        let damaged = n % 30 == 0;
        world.write(store.join(&id).join("session.json"), if damaged { "{}" } else { &header });
    }
    let listed = world.recant("list --json").with(4).json();
    let sessions = listed["sessions"].as_array().unwrap();
    let listed_ids: Vec<_> = sessions.iter().map(|session| session["id"].as_str().unwrap()).collect();
    assert_eq!((listed_ids.len(), listed_ids[144]), (145, &*first));
    let mut names: Vec<_> = listed_ids[..144].to_vec();
    names.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(names, listed_ids[..144], "the newest first");
    let damaged: Vec<_> = listed["damaged"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert!(damaged.len() == 5 && damaged.is_sorted(), "{damaged:?}");
}

#[test]
fn many_that_come_first_at_once_make_one_store() {
    let world = World::new();
    // Who comes second may meet the store, or a directory above it, in any state of its making.
    for round in 0..if is_whole() { 20 } else { 5 } {
        let store = world.root().join(format!("many/{round}/store")).display().to_string();
        let begin = || world.call(["session", "new", "--store", &store]).command().stdout(Stdio::null()).spawn().unwrap();
        let children: Vec<_> = (0..8).map(|_| begin()).collect();
        assert!(children.into_iter().all(|mut child| child.wait().unwrap().success()), "round {round}");
        assert_eq!(world.call(["list", "--json", "--store", &store]).run().ok().rows().len(), 8);
    }
}

#[test]
fn a_store_whose_making_was_cut_off_anywhere_is_made_by_the_next() {
    let row = Sweep {
        name: "the first session",
        scene: &|| Some(World::new()),
        verb: &|world| world.call(["session", "new"]),
        order: "kill:N",
    };
    let tally = row.run(|world, said, what| {
        world.recant("list").ok();
        let id = world.begin();
        world.stage(&id, ["write f x"]).call(["commit", &id]).run().ok();
        world.recant("recover").ok();
        let names = std::fs::read_dir(world.store().join("sessions")).unwrap().map(|name| name.unwrap().file_name());
        let left: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with(".new-")).collect();
        assert!(left.is_empty(), "{what}: {left:?}");
        Came::Used(said.status)
    });
    assert!(tally.steps >= 10, "{} steps", tally.steps);
}

#[test]
fn of_many_that_take_a_name_at_once_one_gets_it_and_no_two_sessions_have_a_number() {
    let world = World::new();
    for name in ["one", "two", "three"] {
        let begin =
            || world.call(["session", "new", "-n", name]).command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let children: Vec<_> = (0..8).map(|_| begin()).collect();
        let ended: Vec<_> = children.into_iter().map(|mut child| child.wait().unwrap().code().unwrap()).collect();
        assert_eq!((ended.iter().filter(|code| **code == 0).count(), ended.iter().sum::<i32>()), (1, 7), "{ended:?}");
    }
    let number = |id: &str| -> serde_json::Value {
        serde_json::from_slice::<serde_json::Value>(&std::fs::read(world.session(id).join("session.json")).unwrap()).unwrap()["seq"].clone()
    };
    let listed = world.recant("list --json").ok().json();
    let numbers: Vec<_> = listed["sessions"].as_array().unwrap().iter().map(|row| number(row["id"].as_str().unwrap())).collect();
    assert_eq!(numbers, [3, 2, 1]);
}

/// A run that made a file, in a session of its own; `None` where no run works here, which is said.
fn ran() -> Option<(World, String)> {
    let world = common::can_run().then(World::new)?;
    world.recant("run -- touch made").ok();
    let id = world.recant("list --json").ok().json()["sessions"][0]["id"].as_str().unwrap().to_owned();
    Some((world, id))
}

/// Changes a file of a session that holds JSON.
fn amend(world: &World, id: &str, file: &str, change: impl Fn(&mut serde_json::Value)) {
    let file = world.session(id).join(file);
    let mut json = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    change(&mut json);
    world.write(file, format!("{json}\n"));
}

/// Its changes are still to be found.
fn uncollect(world: &World, id: &str) {
    amend(world, id, "session.json", |header| {
        header["uncollected"] = true.into();
        (header["lines"], header["counts"]["changes"]) = (0.into(), 0.into());
    });
    world.remove(world.session(id).join("changes.jsonl"));
}

#[test]
fn an_agent_drops_no_run_of_a_person_that_is_still_to_be_collected() {
    let Some((world, id)) = ran() else { return };
    uncollect(&world, &id);
    let said = world.call(["discard", "-y", &id]).env("CLAUDECODE", "1").run().with(1);
    assert!(said.stderr().contains("a person made some of session"), "{said}");
    assert!(world.session(&id).join("held").exists());
}

/// What a power cut leaves of a run: nothing of it was synced yet.
#[test]
fn a_run_whose_header_and_record_are_empty_was_cut_off_and_is_no_damage() {
    let Some((world, id)) = ran() else { return };
    let good = world.begin();
    world.write(world.session(&id).join("session.json"), "").write(world.session(&id).join("run.json"), "");
    world.remove(world.session(&id).join("changes.jsonl"));
    let listed = world.recant("list --json").ok().json();
    let rows = listed["sessions"].as_array().unwrap();
    let row = rows.iter().find(|row| row["id"] == *id).unwrap();
    assert!(rows.len() == 2 && row["unsynced"] == true && row["ended"] == true, "{listed}");
    let said = world.call(["diff", &id]).run().ok();
    assert!(said.stderr().contains("and its record with it") && said.stderr().contains("held/upper"), "{said}");
    assert!(world.session(&id).join("run.json.lost").exists());
    assert!(!world.call(["commit", &id]).run().stderr().contains("damaged"));
    world.call(["discard", &id]).run().ok();
    world.call(["show", &good]).run().ok();
}

/// The header was durable already, or the power went after a few seconds; the verb that sets the record aside is cut off, too.
#[test]
fn a_run_that_lost_its_record_alone_is_not_said_to_have_changed_nothing() {
    for record in ["run.json", "run.json.lost"] {
        let Some((world, id)) = ran() else { return };
        uncollect(&world, &id);
        world.remove(world.session(&id).join("run.json")).write(world.session(&id).join(record), "");
        let said = world.call(["diff", &id]).run().ok();
        assert!(said.stderr().contains("and its record with it") && !said.stderr().contains("is held"), "{said}");
        assert_eq!(world.recant("list --json").ok().json()["sessions"][0]["unsynced"], true);
    }
}

/// A file that a run wrote in the boot before this one may have lost its content with the power, and its size with it.
#[test]
fn a_run_that_a_restart_cut_off_is_committed_on_request_alone() {
    let Some((world, id)) = ran() else { return };
    uncollect(&world, &id);
    amend(&world, &id, "run.json", |run| {
        run.as_object_mut().unwrap().remove("ending");
        run["boot"] = "6f1a2bb0-0000-4000-8000-000000000000".into();
    });
    for _ in 0..2 {
        let said = world.call(["commit", &id]).run().with(1);
        assert!(said.stderr().contains("cut off by a restart") && said.stderr().contains("--accept-unsynced"), "{said}");
        assert!(!world.exists("made"), "nothing was asked for");
    }
    assert_eq!(world.recant("list --json").ok().json()["sessions"][0]["unsynced"], true);
    world.call(["commit", &id, "--accept-unsynced"]).run().ok();
    assert_eq!(world.read("made"), "");
}

/// A header made up for it would be of the generation before the operation, which would take back what may be sealed.
#[test]
fn a_session_with_a_journal_is_no_run_that_was_cut_off() {
    let world = World::new();
    let id = world.begin();
    let directory = world.session(&id);
    world.write(directory.join("session.json"), "").write(directory.join("run.json"), "");
    assert_eq!(world.recant("list --json").ok().json()["damaged"], serde_json::json!([]));
    world.write(world.store().join("journals").join(&id), "");
    assert_eq!(world.recant("list --json").with(4).json()["damaged"][0]["id"], *id);
    world.remove(world.store().join("journals").join(&id)).remove(directory.join("run.json"));
    // Nor is one without the mark of a run, whatever else of it is missing.
    assert_eq!(world.recant("list --json").with(4).json()["damaged"][0]["id"], *id);
}

#[test]
fn fewer_lines_than_the_header_counts_are_damage_and_one_more_that_is_cut_off_is_none() {
    let world = World::new();
    let id = world.begin();
    world.stage_write(&id, "f", "x");
    let file = world.session(&id).join("changes.jsonl");
    let text = std::fs::read(&file).unwrap();
    world.write(&file, "");
    assert_snapshot!(on_stderr(&world.call(["diff", &id]).run(), 5), @r#"
    recant: /world/store/sessions/<id1>/changes.jsonl: the store is damaged: it ends after 0 lines; the session counts 1
            nothing was changed
    "#);
    assert_eq!(world.call(["commit", &id]).run().status, 5);
    assert!(!world.exists("f"));
    // One that a crash cut off does not count.
    world.write(&file, [&text[..], b"{\"change\":{\"n\":2,"].concat());
    assert_eq!(world.call(["diff", &id, "--name-only"]).run().ok().stdout().lines().count(), 1);
    world.stage_write(&id, "g", "x");
    assert_eq!(world.call(["diff", &id, "--name-only"]).run().ok().stdout().lines().count(), 2);
}

#[test]
fn a_store_of_another_format_is_refused_untouched() {
    let world = World::new();
    world.begin();
    world.write(world.store().join("format"), "recant-store 2\n");
    let before = common::manifest(&world.store());
    assert_snapshot!(on_stderr(&world.recant("session new"), 1), @r#"
    recant: /world/store: the store's format is "recant-store 2"; this recant knows recant-store 1
            nothing was changed
            use the recant that made it, or another store: --store DIR, RECANT_STORE
    "#);
    assert_eq!(world.recant("list").status, 1);
    before.assert_same(&common::manifest(&world.store()), "the store was touched");
}

#[test]
fn a_store_that_others_can_write_to_is_refused() {
    let world = World::new();
    world.begin();
    world.chmod(world.store(), 0o777);
    assert_snapshot!(on_stderr(&world.recant("list"), 1), @r#"
    recant: /world/store: others may write to it (mode 0777)
            nothing was changed
            chmod go-w /world/store
    "#);
}

#[test]
fn the_store_is_private_from_its_first_moment() {
    let mut world = World::new();
    world.umask(0);
    let id = world.begin();
    world.stage_write(&id, "f", "x");
    let store = common::manifest(&world.store());
    let is_open = |(path, row): &(&Vec<u8>, &common::Row)| row.mode & 0o077 != 0 && !path.windows(5).any(|part| part == b"held/");
    assert_eq!(store.0.iter().find(is_open), None);
}

#[test]
fn two_recants_on_one_session_and_the_second_ends_at_once() {
    let world = World::new();
    let id = world.begin();
    let mut first = world.call(["session", "write", &id, "f"]).command();
    let mut first = first.stdin(Stdio::piped()).spawn().unwrap();
    let lock = world.session(&id).join("lock");
    let held = || {
        let file = std::fs::File::open(&lock).unwrap();
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockShared).is_err()
    };
    crate::common::until("the first one's lock", held);
    assert_snapshot!(on_stderr(&world.call(["session", "write", &id, "g"]).stdin("y").run(), 6), @r#"
    recant: session <id1> is in use by another recant
            nothing was changed; try again when it has ended
    "#);
    assert_snapshot!(on_stderr(&world.call(["prune", "--sessions", &id]).run(), 4), @r#"
    recant: session <id1> stays: in use by another recant
    recant: 0 sessions pruned, 0 B
    "#);
    assert_eq!(world.call(["commit", &id]).run().status, 6);
    drop(first.stdin.take());
    assert!(first.wait().unwrap().success());
    assert_eq!(world.call(["diff", &id, "--name-only"]).run().ok().stdout().lines().count(), 1);
}

#[test]
fn discard_puts_a_session_aside_and_undo_brings_it_back_whole() {
    let world = World::new();
    let id = world.recant("session new -n plan").id();
    world.stage_write(&id, "f", "x");
    let whole = || {
        let mut all = common::manifest(&world.session(&id));
        all.0.retain(|path, _| !path.ends_with(b"session.json") && !path.ends_with(b"lock"));
        all.without_directory_times()
    };
    let before = whole();
    let said = world.call(["discard", &id]).run().ok();
    assert!(said.masked_err().starts_with("recant: session <id1~> (plan) is discarded: 1 change"), "{said}");
    assert!(said.masked_err().ends_with(": recant undo <id1~>\n"), "{said}");
    before.assert_same(&whole(), "nothing of it is touched");
    assert_eq!(world.recant("list --json").json()["sessions"][0]["status"], "discarded");
    assert_snapshot!(on_stderr(&world.call(["discard", &id]).run(), 0), @"
    recant: session <id1~> stays as it is: it is discarded already
    ");
    assert_eq!(world.call(["diff", &id, "--name-only"]).run().ok().stdout().lines().count(), 1);
    for (verb, cannot) in [("rollback", "roll back"), ("commit", "commit")] {
        let said = world.call([verb, &id]).run().with(1);
        assert!(said.masked_err().starts_with(&format!("recant: cannot {cannot} <id1>: it is discarded\n")), "{said}");
        assert!(said.masked_err().ends_with("recant undo <id1~> brings it back\n"), "{said}");
    }
    assert_snapshot!(on_stderr(&world.call(["session", "write", &id, "g"]).run(), 1), @r#"
    recant: session <id1>: it is discarded; only a pending one can be added to
            nothing was changed
            recant session new begins another
    "#);
    world.recant("undo -y").ok();
    before.assert_same(&whole(), "brought back");
    world.recant("redo --dry-run").ok();
    assert_eq!(world.status(&id), "pending");
    world.recant("redo").ok();
    assert_eq!(world.status(&id), "discarded", "what undo took back is done again");
    // Its name is another's by now.
    let other = world.recant("session new -n plan").id();
    world.stage_write(&other, "g", "x");
    let said = world.call(["undo", &id, "-y"]).run().ok();
    assert!(said.stderr().contains("the name plan is taken by now"), "{said}");
    assert_eq!(world.recant("show plan --json").ok().json()["session"]["id"], *other);
    world.call(["commit", &id]).run().ok();
    assert_eq!(world.read("f"), "x");
}

/// Whatever it holds: nothing of it is touched.
#[test]
fn a_discard_takes_as_many_steps_for_many_changes_as_for_one() {
    let steps = |count: usize| {
        let world = World::new();
        let id = world.begin();
        let lines: Vec<String> = (0..count).map(|n| format!("write {n} x")).collect();
        world.stage(&id, lines.iter().map(String::as_str));
        steps_of(|| world.call(["discard", &id])).len()
    };
    assert_eq!(steps(1), steps(300));
}

#[test]
fn what_was_discarded_is_freed_at_once_by_age_by_amount_and_by_prune() {
    let world = World::new();
    let content = |id: &str| std::fs::read_dir(world.session(id).join("held/objects")).unwrap().count();
    let discarded = || {
        let id = world.edited("f");
        world.call(["discard", &id]).run().ok();
        assert_eq!(content(&id), 1);
        id
    };
    let header = |id: &str, change: &dyn Fn(String) -> String| {
        let at = world.session(id).join("session.json");
        std::fs::write(&at, change(std::fs::read_to_string(&at).unwrap())).unwrap();
    };
    let [now, old, large, pruned] = [(); 4].map(|()| discarded());
    // Other settings do not end the time in which it can be brought back.
    world.config("[retention]\nkeep = 0\n");
    for words in ["prune -y", "prune --sessions -y"] {
        world.recant(words).ok();
    }
    assert_eq!([&now, &old, &large, &pruned].map(|id| content(id)), [1, 1, 1, 1]);
    world.config("");
    let said = world.call(["discard", &now, "--now"]).run().ok();
    assert!(said.stderr().contains("is freed, which cannot be undone"), "{said}");
    assert_eq!(content(&now), 0);
    header(&old, &|text| {
        let at = text.find("\"discarded\":\"").unwrap() + 13;
        format!("{}2020{}", &text[..at], &text[at + 4..])
    });
    let said = world.call(["discard", &now]).run().ok();
    assert!(said.stderr().contains(&format!("is freed (retention.discarded): {}", &old[16..])), "{said}");
    assert_eq!((content(&old), content(&large), content(&pruned)), (0, 1, 1));
    header(&large, &|text| text.replace("\"held\":3", "\"held\":6442450944"));
    world.call(["discard", &now]).run().ok();
    assert_eq!((content(&large), content(&pruned)), (0, 1));
    world.recant("prune --discarded --dry-run").ok();
    assert_eq!(content(&pruned), 1);
    world.recant("prune --discarded -y").ok();
    for id in [&now, &old, &large, &pruned] {
        assert_eq!((content(id), world.status(id)), (0, "discarded".into()));
        let said = world.call(["undo", id, "-y"]).run().with(1);
        assert!(said.stderr().contains("its content is freed"), "{said}");
        assert!(world.call(["diff", id]).run().with(1).stderr().contains("its content is freed"));
    }
    // What nothing brings back is a person's.
    let said = world.call(["discard", &pruned, "--now", "-y"]).env("CLAUDECODE", "1").run().with(1);
    assert!(said.stderr().contains("a person decides"), "{said}");
}

#[test]
fn what_is_on_the_tree_cannot_be_discarded() {
    let (world, id) = committed("f");
    assert_snapshot!(on_stderr(&world.call(["discard", &id]).run(), 1), @r#"
    recant: session <id1>: it is committed: its changes are on the tree
            nothing was changed
            recant rollback <id1> first; or recant prune --checkpoints <id1> gives up its rollback
    "#);
    world.call(["rollback", &id]).run().ok();
    world.call(["discard", &id]).run().ok();
}

#[test]
fn prune_takes_what_nothing_needs_and_the_rest_only_by_name() {
    let world = World::new();
    let [pending, committed, back, gone] = ["p", "c", "b", "g"].map(|name| edited(&world, name));
    for words in [["commit", &committed], ["commit", &back], ["rollback", &back], ["discard", &gone]] {
        world.call(words).run().ok();
    }
    assert_snapshot!(on_stderr(&world.recant("prune --sessions"), 2), @r#"
    recant: which sessions? give an age, a number to keep, a size, or ids
            nothing was changed
            recant prune --sessions --older-than 30d, --keep 50, --max-size 1G, or ID…; or set retention.* in the settings
    "#);
    let said = world.recant("prune --checkpoints --committed").with(2).stderr();
    assert!(
        said.contains("which checkpoints?") && said.contains("recant prune --checkpoints --committed --older-than 30d"),
        "{said}"
    );
    let before = common::manifest(&world.store());
    let dry = world.recant("prune --sessions --keep 0 --dry-run").ok().stdout();
    before.assert_same(&common::manifest(&world.store()), "a dry run changes nothing");
    let pruned = world.recant("prune --sessions --keep 0").ok().stdout();
    assert_eq!((&*dry, &*pruned), (&*format!("{back}\n{gone}\n"), &*format!("{back}\n{gone}\n")));
    assert_eq!(world.recant("list --json").json()["sessions"].as_array().unwrap().len(), 2);
    assert_eq!(world.recant("prune --sessions --older-than 0s").ok().stdout(), "");
    assert_eq!(
        world.call(["prune", "--sessions", &pending, &committed]).run().ok().stdout(),
        format!("{pending}\n{committed}\n")
    );
    assert_eq!(world.recant("list --json").json()["sessions"].as_array().unwrap().len(), 0);
    assert_eq!(world.read("c"), "new", "the tree is not involved");
}

#[test]
fn prune_by_conditions_says_what_it_leaves_as_it_is_committed_and_takes_that_when_told() {
    let world = World::new();
    let committed: Vec<String> = (0..4).map(|n| edited(&world, &format!("f{n}"))).collect();
    committed.iter().for_each(|id| drop(world.call(["commit", id]).run().ok()));
    let pending = edited(&world, "f4");
    assert_snapshot!(world.recant("prune --sessions --keep 1").masked_err(), @"
    recant: 0 sessions pruned, 0 B
    recant: 3 sessions are committed; to give up their rollback:
            recant prune --sessions --keep 1 --committed
    ");
    assert_snapshot!(world.recant("prune --checkpoints --older-than 0s").masked_err(), @"
    recant: 0 checkpoints pruned, 0 B
    recant: 4 sessions are committed; to give up their rollback:
            recant prune --checkpoints --older-than 0s --committed
    ");
    let dry = world.recant("prune --sessions --keep 1 --committed --dry-run").ok().stdout();
    let pruned = world.recant("prune --sessions --keep 1 --committed").ok();
    assert!(dry.lines().eq(&committed[..3]), "{dry}");
    assert_eq!(pruned.stdout(), dry);
    assert!(!pruned.stderr().contains("committed"), "{pruned}");
    world.call(["prune", "--sessions", &pending, "--committed"]).run().with(2);
    // The newest has kept its rollback. What was never committed does not go unnamed.
    let checkpoint = world.recant("prune --checkpoints --keep 0 --committed").ok();
    assert_eq!(checkpoint.stdout(), format!("{}\n", committed[3]));
    world.call(["rollback", &committed[3]]).run().with(1);
    world.recant("prune --sessions --keep 0 --committed").ok();
    assert_eq!(world.status(&pending), "pending");
}

/// The bytes on disk of all that lies in a directory.
fn du(path: &std::path::Path) -> u64 {
    let output = std::process::Command::new("du").args(["-s", "-B1"]).arg(path).output().expect("du");
    String::from_utf8_lossy(&output.stdout).split_whitespace().next().expect("a number").parse().expect("bytes")
}

#[test]
fn what_sessions_take_is_told_as_du_tells_it() {
    let world = World::new();
    let committed: Vec<String> = (0..5)
        .map(|n| {
            let id = edited(&world, &format!("f{n}"));
            world.write(format!("linked{n}"), vec![1; 9_000]).stage(&id, [&*format!("write linked{n} new")]);
            world.call(["commit", &id]).run().ok();
            id
        })
        .collect();
    let sessions: u64 = committed.iter().map(|id| du(&world.session(id))).sum();
    assert!(sessions > 5 * 8_192, "{sessions}");
    let status = world.recant("status --json").ok().json();
    assert_eq!(status["store"]["bytes"], sessions);
    assert_eq!(status["prunable"]["needed_bytes"], sessions);
    let last = committed.last().unwrap();
    let gone = sessions - du(&world.session(last));
    assert_eq!(world.recant("prune --sessions --keep 1 --committed --dry-run --json").ok().json()["bytes"], gone);
    // As many of the oldest as bring it down to what the disk is to hold.
    let fits = world.recant(&format!("prune --sessions --max-size {} --committed --dry-run", sessions - 1)).ok();
    assert_eq!(fits.stdout(), format!("{}\n", committed[0]));
    assert_eq!(world.recant("prune --sessions --keep 1 --committed --json").ok().json()["bytes"], gone);
    assert_eq!(world.recant("status --json").ok().json()["store"]["bytes"], du(&world.session(last)));
}

/// Does things to sessions, and looks twice after each: the first look may count, the second knows.
#[test]
fn what_a_session_takes_is_counted_once_after_each_change_of_it() {
    let world = World::new();
    let look = |what: &str| {
        // What is as young as the clock of files proves nothing.
        std::thread::sleep(std::time::Duration::from_millis(30));
        let sessions = std::fs::read_dir(world.store().join("sessions")).expect("sessions");
        let taken: u64 = sessions.map(|session| du(&session.expect("a session").path())).sum();
        let told = || world.recant("status --json").json()["store"]["bytes"].as_u64().expect("bytes");
        assert_eq!((told(), told()), (taken, taken), "{what}");
        if world.journals().is_empty() {
            let steps = steps_of(|| world.call(["status"]));
            assert!(steps.is_empty(), "{what}: the third look has counted: {steps:?}");
        }
    };
    world.write("f", vec![1; 50_000]).write("g", vec![2; 9_000]);
    let id = world.begin();
    look("a session begun");
    for n in 0..3 {
        world.stage(&id, [&*format!("write f {}", "x".repeat(7_000 * n)), &*format!("write n{n} new")]);
        look("staged");
    }
    let script = world.root().join("looks");
    world.write(&script, format!("sleep 0.03; {} status", common::recant()));
    let meanwhile = |step: u32| format!("run:{step}:sh {};fail:25:28", script.display());
    for order in ["fail:25:28", "kill:25", "kill:45", &meanwhile(8), &meanwhile(13), &meanwhile(18)] {
        assert_ne!(world.call(["commit", &id]).env("RECANT_STEPS", order).run().status, 0, "{order}");
        look(&format!("a commit with {order}"));
        world.recant("recover").ok();
        look(&format!("a commit with {order}, recovered"));
        drop(world.call(["rollback", &id]).run());
    }
    let acts = ["commit", "rollback", "redo", "checkpoint verify", "rollback", "discard", "undo -y", "redo -y", "undo -y"];
    for act in acts.into_iter().chain(["commit", "prune --checkpoints -y"]) {
        world.recant(&format!("{act} {id}")).ok();
        look(act);
    }
    let unneeded = || world.recant("status --json").ok().json()["prunable"]["unneeded"].as_u64();
    let (others, forced) = (unneeded(), edited(&world, "g"));
    world.call(["commit", &forced]).run().ok();
    world.write("g", vec![3; 30_000]).call(["rollback", &forced, "--force"]).run().ok();
    look("rolled back by force");
    assert_eq!(unneeded(), others, "it keeps what was overwritten");
    if common::can_run() {
        for script in ["seq 9000 > r; mkdir d; touch d/1 d/2", "rm d/1; seq 900 > d/3", "seq 10 > r"] {
            world.call(["run", "-q", "--session", "run", "--", "sh", "-c", script]).run().ok();
            look(script);
        }
        let acts = ["rewind run 1", "fork run -n other", "discard other d", "commit run", "undo -y run", "rewind other 0"];
        for act in acts.into_iter().chain(["discard run --now -y"]) {
            world.recant(act).ok();
            look(act);
        }
    }
    // A hint: without it, or with another one, all is counted.
    for bytes in ["", "recant-sizes  1\n", "garbled"] {
        std::fs::write(world.store().join("sizes"), bytes).expect("other sizes");
        look(bytes);
    }
}

#[test]
fn what_was_committed_since_somebody_named_it_for_pruning_stays() {
    let scene = || {
        let world = World::new();
        let id = world.edited("f");
        (world, id)
    };
    let (world, id) = scene();
    let steps = steps_of(|| world.call(["commit", &id]));
    let n = 1 + steps.iter().position(|step| step.contains("journals/")).unwrap_or_else(|| panic!("{steps:?}"));
    let (world, id) = scene();
    let before = world.manifest();
    let (script, begun, go) = (world.root().join("waits"), world.root().join("begun"), world.root().join("go"));
    // A commit that waits before its journal, and has the locks.
    world.write(&script, format!(": > {}\nwhile [ ! -e {} ]; do sleep 0.01; done\n", begun.display(), go.display()));
    let mut commit = world.call(["commit", &id]).env("RECANT_STEPS", format!("run:{n}:sh {}", script.display())).command();
    let mut commit = commit.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    until("the commit is at work", || begun.exists());
    let mut prune = world.call(["prune", "--sessions", &id]).command();
    let mut prune = prune.stderr(Stdio::piped()).stdin(Stdio::null()).spawn().expect("it starts");
    // It has decided, and waits for the lock that the commit holds.
    let mut said = String::new();
    let mut lines = BufReader::new(prune.stderr.take().expect("a pipe"));
    lines.read_line(&mut said).expect("a line");
    assert!(said.contains("another recant is at work"), "{said}");
    std::fs::write(&go, "").expect("a file");
    assert!(commit.wait().expect("its end").success());
    lines.read_to_string(&mut said).expect("the rest");
    assert_eq!(prune.wait().expect("its end").code(), Some(4), "{said}");
    assert!(said.contains("stays: another recant has changed it meanwhile"), "{said}");
    world.call(["rollback", &id]).run().ok();
    before.assert_same(&world.manifest(), "rolled back");
}

#[test]
fn prune_takes_no_change_that_was_never_committed_and_nothing_that_force_overwrote() {
    let world = World::new();
    let two = || {
        let id = world.begin();
        world.stage_write(&id, format!("{id}-f"), "f").stage_write(&id, format!("{id}-g"), "g");
        assert_eq!(world.commit_half(&id, &[&format!("{id}-f")], false), 0);
        id
    };
    let (back, given_up, forced) = (two(), two(), two());
    world.call(["rollback", &back]).run().ok();
    assert_eq!(world.call(["show", &back, "--json"]).run().json()["session"]["status"], "rolled_back");
    world.call(["prune", "--checkpoints", &given_up]).run().ok();
    world.call(["commit", &forced]).run().ok();
    world.write(format!("{forced}-f"), "somebody's");
    world.call(["rollback", &forced, "--force"]).run().ok();
    let before = common::manifest(&world.store());
    assert_eq!(world.recant("prune --sessions --keep 0").ok().stdout(), "");
    assert_eq!(world.recant("prune --checkpoints --keep 0").ok().stdout(), "");
    before.assert_same(&common::manifest(&world.store()), "all of it is still wanted");
    let status = world.recant("status --json").json();
    assert_eq!(status["prunable"]["unneeded"], 0, "{status}");
    let kept = world.call(["cat", &forced, &format!("{forced}-f"), "--displaced"]).run().ok();
    assert_eq!(kept.stdout(), "somebody's");
    // What is committed for good does not keep the rest from being dropped.
    assert!(world.call(["discard", &given_up]).run().ok().stderr().contains("1 change"));
    assert!(world.exists(format!("{given_up}-f")) && !world.exists(format!("{given_up}-g")));
    assert_eq!(world.recant("prune --sessions --keep 0").ok().stdout(), format!("{given_up}\n"));
    assert_eq!(world.call(["prune", "--sessions", &back, &forced]).run().ok().stdout(), format!("{back}\n{forced}\n"));
}

#[test]
fn a_session_with_a_garbled_header_is_pruned_by_its_whole_id_alone_and_all_that_it_holds_is_named() {
    let world = World::new();
    world.write("kept", "old");
    let id = world.begin();
    world.stage_write(&id, "kept", "new").stage_write(&id, "fresh", "new");
    world.call(["commit", &id]).run().ok();
    world.call(["rollback", &id, "fresh"]).run().ok();
    world.write(world.session(&id).join("session.json"), "{");
    for key in ["last", &id[16..], &id[..18]] {
        let said = world.call(["prune", "--sessions", key]).run();
        assert!([1, 5].contains(&said.status) && world.session(&id).exists(), "{said}");
    }
    assert_eq!(world.recant("prune --sessions --keep 0").ok().stdout(), "", "not by conditions");
    let said = world.call(["discard", &id]).run();
    assert_snapshot!(on_stderr(&said, 5), @r#"
    recant: /world/store/sessions/<id1>/session.json: the store is damaged: EOF while parsing an object at line 1 column 1
            nothing was changed
            recant prune --sessions <id1> drops it with all that it holds; --dry-run shows what that is
    "#);
    assert_eq!(world.call(["prune", "--checkpoints", &id]).run(), said);
    let dry = world.call(["prune", "--sessions", &id, "--dry-run"]).run().ok();
    assert_snapshot!(dry, @r#"
    status 0
    --- stdout
    <id1>
    --- stderr
    recant: would be lost: /world/tree/fresh: what the session held of it
    recant: would be lost: /world/tree/kept: what the session held of it
    recant: would be lost: /world/tree/kept: what was there before it was committed
    recant: 1 session would be pruned, 8.0 KiB
    "#);
    assert!(world.session(&id).exists());
    let pruned = world.call(["prune", "--sessions", &id, "--json"]).run().ok().json();
    assert_eq!(pruned["lost"].as_array().unwrap().len(), 3, "{pruned}");
    assert!(!world.session(&id).exists());
    assert_eq!(world.recant("status").ok().stderr(), "");
    assert!(world.recant("log").ok().stdout().contains(&id[16..]));
}

/// A world with a committed session that has put new content into the file `name`.
fn committed(name: &str) -> (World, String) {
    let world = World::new();
    let id = edited(&world, name);
    world.call(["commit", &id]).run().ok();
    (world, id)
}

/// A session that holds "new" for a file of "old", staged in this process.
fn edited(world: &World, name: &str) -> String {
    let id = world.write(name, "old").begin();
    world.stage(&id, [&*format!("write {name} new")]);
    id
}

#[test]
fn of_a_garbled_session_whose_records_are_gone_too_the_directories_are_named() {
    let (world, id) = committed("kept");
    for file in ["session.json", "changes.jsonl", "checkpoint/manifest.jsonl"] {
        world.write(world.session(&id).join(file), "garbled");
    }
    assert_snapshot!(world.call(["prune", "--sessions", &id]).run(), @r#"
    status 0
    --- stdout
    <id1>
    --- stderr
    recant: /world/store/sessions/<id1>/changes.jsonl: the store is damaged: line 1: expected value at line 1 column 1; its paths are counted, not listed
    recant: /world/store/sessions/<id1>/checkpoint/manifest.jsonl: the checkpoint's manifest is damaged: its end is missing; its paths are counted, not listed
    recant: lost: /world/store/sessions/<id1>/checkpoint/blobs: 1 object, paths unknown
    recant: 1 session pruned, 4.0 KiB
    "#);
    assert!(!world.session(&id).exists());
}

#[test]
fn prune_keeps_the_newest_and_goes_by_age_and_by_the_settings() {
    let world = World::new();
    let ids: Vec<String> = (0..4).map(|_| world.begin()).collect();
    assert_eq!(world.recant("prune --sessions --older-than 1h").ok().stdout(), "");
    assert_eq!(world.recant("prune --sessions --keep 3").ok().stdout(), format!("{}\n", ids[0]));
    world.config("[retention]\nkeep = 2\n");
    assert_eq!(world.recant("prune --sessions -y").ok().stdout(), format!("{}\n", ids[1]));
    assert_eq!(world.recant("prune --sessions --keep 9").ok().stdout(), "");
    assert_eq!(world.recant("prune --sessions --max-size 1G").ok().stdout(), "");
}

#[test]
fn checkpoint_prune_ends_a_rollback_only_by_name_and_none_where_nothing_is_on_the_tree() {
    let (world, id) = committed("f");
    assert_eq!(world.recant("prune --checkpoints --keep 0").ok().stdout(), "");
    for verb in ["rollback", "prune --checkpoints", "redo", "rollback"] {
        world.recant(&format!("{verb} {id}")).ok();
    }
    assert_eq!(world.read("f"), "old");
    world.recant(&format!("redo {id}")).ok();
    let said = world.recant("prune --checkpoints last").ok();
    assert_eq!(said.stdout(), format!("{id}\n"));
    assert_eq!(said.stderr().matches("last is").count(), 1, "{said}");
    assert_snapshot!(on_stderr(&world.call(["rollback", &id]).run(), 1), @r#"
    recant: cannot roll back <id1>: its checkpoint was pruned: the originals are gone, and what is committed stays
            nothing was changed
    "#);
    assert_eq!(world.read("f"), "new");
    assert_eq!(world.recant("checkpoint list --json").json()["checkpoints"][0]["checkpoint"], "pruned");
    assert_snapshot!(world.call(["checkpoint", "show", &id]).run(), @"
    status 0
    --- stdout
    modified  file  3 B  f
    --- stderr
    recant: the checkpoint of session <id1> was pruned, and its originals with it
    ");
}

#[test]
fn a_checkpoint_is_listed_shown_whole_in_every_form_and_verified() {
    let world = World::new();
    world.write("changed", "old").write("gone", "old").symlink("x", "link");
    let id = world.begin();
    world.stage(&id, ["write changed new", "write made new", "delete gone", "delete link"]);
    assert_snapshot!(on_stderr(&world.recant("checkpoint list"), 0), @r#"
    recant: no checkpoints
    "#);
    world.call(["commit", &id]).run().ok();
    assert_snapshot!(world.recant("checkpoint show"), @"
    status 0
    --- stdout
    modified  file     3 B  changed
    deleted   file     3 B  gone
    deleted   symlink       link
    created   nothing       made
    --- stderr
    recant: last is <id1>
    ");
    let paths = |rows: &[serde_json::Value]| {
        let row = |row: &serde_json::Value| (row["path"].as_str().expect("a path").to_owned(), row["change"].clone());
        rows.iter().map(row).collect::<Vec<_>>()
    };
    let wanted = [("changed", "modified"), ("gone", "deleted"), ("link", "deleted"), ("made", "created")]
        .map(|(name, change)| (world.path(name).display().to_string(), change.into()));
    let shown = world.recant("checkpoint show last --json").ok().json();
    assert_eq!(paths(shown["originals"].as_array().expect("originals")), wanted);
    assert_eq!(paths(&world.recant("checkpoint show last --json").ok().rows()), wanted);
    assert_snapshot!(world.recant("checkpoint verify"), @r#"
    status 0
    --- stdout
    <id1>  4 originals  6 B  intact
    "#);
    let blobs = world.session(&id).join("checkpoint/blobs");
    let blob = std::fs::read_dir(&blobs).unwrap().next().unwrap().unwrap().path();
    let times = rustix::fs::stat(&blob).unwrap();
    world.write(&blob, "bad").set_mtime(&blob, times.st_mtime, times.st_mtime_nsec as _);
    let said = world.recant("checkpoint verify").with(5);
    assert!(said.stderr().contains("damaged (SHA-256 differs)"), "{said}");
    assert_eq!(world.call(["rollback", &id]).run().status, 5);
    assert_eq!(world.read("changed"), "new", "nothing was changed");
}

#[test]
fn status_tells_how_things_stand_and_which_prune_helps() {
    let world = World::new();
    assert_snapshot!(world.recant("status"), @r#"
    status 0
    --- stdout
    store        /world/store (does not exist yet; the first session makes it)
    sessions     none
    "#);
    let id = world.begin();
    world.stage_write(&id, "f", "large");
    world.config("[store]\nwarn_size = 1\n");
    let status = world.recant("status --json").ok().json();
    assert_eq!((&status["sessions"]["pending"], &status["store"]["too_large"]), (&1.into(), &true.into()));
    assert_eq!(status["prunable"]["pending"], 1);
    let said = world.recant("status").ok();
    assert!(said.stderr().contains("above store.warn_size (1 B)") && said.stdout().contains("recant discard ID"), "{said}");
}

#[test]
fn the_log_tells_what_was_done_also_of_sessions_that_are_gone() {
    let world = World::new();
    assert_snapshot!(on_stderr(&world.recant("log"), 0), @r#"
    recant: no act in this project yet; recant log --all lists all projects
    "#);
    let id = world.begin();
    world.stage_write(&id, "f", "x");
    for verb in ["commit", "rollback", "discard"] {
        world.call([verb, &id]).run().ok();
    }
    world.call(["prune", "--sessions", &id]).run().ok();
    assert_snapshot!(world.recant("log"), @"
    status 0
    --- stdout
    <time>  prune     <id1~>  1 path  done
    <time>  discard   <id1~>  1 path  done
    <time>  rollback  <id1~>  1 path  done
    <time>  commit    <id1~>  1 path  done
    ");
    assert_eq!(world.call(["log", &id, "-n", "2", "--json"]).run().ok().rows().len(), 2);
    assert_eq!(world.call(["log", &id[16..]]).run().ok().stdout().lines().count(), 4);
}

#[test]
fn a_command_from_another_directory_does_the_same() {
    let world = World::new();
    world.write("f", "old").mkdir("elsewhere");
    let id = world.begin();
    world.stage_write(&id, "f", "new");
    let elsewhere = world.path("elsewhere");
    let here = world.call(["diff", &id]).run().ok().stdout();
    assert_eq!(world.call(["diff", &id]).cwd(&elsewhere).run().ok().stdout(), here);
    assert_eq!(world.call(["diff", &id, "../f"]).cwd(&elsewhere).run().ok().stdout(), here);
    world.call(["commit", &id]).cwd("/").run().ok();
    assert_eq!(world.read("f"), "new");
    world.call(["rollback", &id]).cwd(&elsewhere).run().ok();
    assert_eq!(world.read("f"), "old");
}

#[test]
fn an_interrupted_commit_is_shown_by_status_and_settled_by_the_next_change() {
    let world = World::new();
    let id = world.edited("f");
    let steps = steps_of(|| world.call(["commit", &id]));
    world.call(["rollback", &id]).run().ok();
    let exchange = steps.iter().position(|line| line.contains("EXCHANGE")).unwrap_or_else(|| panic!("{steps:?}"));
    world.call(["redo", &id]).env("RECANT_STEPS", format!("kill:{}", exchange + 2)).run().with(137);
    let said = world.recant("status").ok();
    assert!(said.masked_out().contains("interrupted  <id1>: interrupted"), "{said}");
    assert!(world.recant("list").ok().masked_out().contains("interrupted"));
    let said = world.recant("session new").ok();
    assert!(said.masked_err().contains("session <id1>"), "{said}");
    assert!(!world.recant("status").ok().stdout().contains("interrupted"));
    assert!(["old", "new"].contains(&&*world.read("f")));
}

#[test]
fn who_only_asks_whether_a_session_is_held_keeps_nobody_from_it() {
    let world = World::new();
    let id = world.begin();
    let lock = std::fs::File::open(world.session(&id).join("lock")).expect("the session's lock");
    // Readers ask so, for a moment each.
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockShared).expect("a shared lock");
    let mut child = world.call(["session", "rename", &id, "named"]).command().spawn().expect("recant");
    for _ in 0..30 {
        assert_eq!(child.try_wait().expect("its status"), None, "it was kept from the session, or took it all the same");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    drop(lock);
    assert!(child.wait().expect("its status").success());
    assert!(world.recant("list").ok().stdout().contains("named"));
}

#[test]
fn what_is_done_already_or_was_never_committed_is_said_and_the_store_stays_as_it_is() {
    let world = World::new();
    world.set_mtime(".", 1_000_000_000, 7);
    let id = world.edited("f");
    world.call(["session", "mkdir", &id, "d"]).run().ok();
    let (tree, listed) = (world.manifest(), world.recant("list --json").ok());
    for (verb, remedy) in [("redo", "recant commit"), ("rollback", "recant discard")] {
        let said = world.call([verb, &id]).run().with(1);
        assert!(said.stderr().contains("it was never committed") && said.stderr().contains(remedy), "{said}");
        tree.assert_same(&world.manifest(), verb);
        assert_eq!(listed, world.recant("list --json"), "{verb}");
    }
    for (verb, said) in [("commit", "nothing to commit"), ("rollback", "nothing to roll back"), ("redo", "nothing to redo")] {
        world.call([verb, &id]).run().ok();
        let (tree, log) = (world.manifest(), world.recant("log --json").ok().stdout());
        let again = world.call([verb, &id]).run().ok();
        assert!(again.stderr().contains(said), "{again}");
        tree.assert_same(&world.manifest(), verb);
        assert_eq!(log, world.recant("log --json").ok().stdout(), "{verb}");
    }
}

#[test]
fn two_originals_of_one_content_that_are_committed_one_after_the_other_are_both_kept() {
    let world = World::new();
    world.write("a", "same").write("b", "same").set_mtime("b", 1_000_000_000, 5);
    let before = world.manifest();
    let inodes = || ["a", "b"].map(|name| world.path(name).metadata().expect("a file").ino());
    let was = inodes();
    let id = world.begin();
    world.stage_write(&id, "a", "1").stage_write(&id, "b", "2");
    for name in ["a", "b"] {
        assert_eq!(world.commit_half(&id, &[name], false), 0);
        world.recant(&format!("checkpoint verify {id}")).ok();
    }
    world.recant(&format!("rollback {id}")).ok();
    before.without_directory_times().assert_same(&world.manifest().without_directory_times(), "both came back");
    assert_eq!(inodes(), was);
}

#[test]
fn what_was_put_is_known_by_its_fingerprint_and_not_read_again() {
    let (world, id) = committed("a");
    let manifest = std::fs::read_to_string(world.session(&id).join("checkpoint/manifest.jsonl")).unwrap();
    let line: serde_json::Value = serde_json::from_str(manifest.lines().next().unwrap()).unwrap();
    assert_eq!(line["original"]["put"]["ino"], world.path("a").metadata().unwrap().ino(), "{line}");
}

#[test]
fn what_somebody_removed_with_its_directory_is_gone_already_for_a_rollback() {
    let world = World::new();
    world.write("kept", "1");
    let before = world.manifest().without_directory_times();
    let id = world.begin();
    world.stage_write(&id, "made/deep/new", "n").stage_write(&id, "kept", "2");
    world.recant(&format!("commit {id}")).ok();
    world.remove("made");
    let said = world.recant(&format!("rollback {id}")).ok();
    before.assert_same(&world.manifest().without_directory_times(), &said.to_string());
    assert_eq!(world.status(&id), "rolled_back");
}

#[test]
fn how_much_a_session_holds_follows_what_lies_in_it() {
    let world = World::new();
    let bytes = |field: &str| world.recant("list --json").ok().json()["sessions"][0][field].as_u64().unwrap();
    world.write("a", vec![1; 100_000]).write("b", "old");
    let id = world.begin();
    world.stage_write(&id, "a", "new a").stage_write(&id, "b", "new");
    assert_eq!(world.commit_half(&id, &["b"], false), 0);
    assert_eq!(bytes("held_bytes"), 5);
    for (words, held) in [("commit ID", 0), ("rollback ID b", 3), ("rollback ID", 8), ("redo ID", 0)] {
        world.recant(&words.replace("ID", &id)).ok();
        assert_eq!(bytes("held_bytes"), held, "{words}");
    }
    // What was overwritten by force lies beside the checkpoint.
    let kept = bytes("checkpoint_bytes");
    world.recant(&format!("rollback {id} b")).ok();
    world.write("b", vec![2; 500_000]);
    world.recant(&format!("redo {id} b --force")).ok();
    assert!(bytes("displaced_bytes") >= 500_000);
    world.recant(&format!("rollback {id} b")).ok();
    assert!((100_000..=kept).contains(&bytes("checkpoint_bytes")), "{} of {kept}", bytes("checkpoint_bytes"));
    assert_eq!(bytes("displaced_bytes"), 0, "it is back on the tree");
    let said = world.call(["cat", &id, "b", "--displaced"]).run().with(1);
    assert!(said.stderr().contains("it was put back"), "{said}");
    world.recant(&format!("redo {id} b --force")).ok();
    world.remove("b").mkdir("b").write("b/theirs", vec![3; 700_000]);
    world.recant(&format!("rollback {id} --force")).ok();
    let displaced = bytes("displaced_bytes");
    assert!((700_000..800_000).contains(&displaced), "{displaced}: all that lay in the directory; the other is gone back");
    let store = world.recant("status --json").ok().json()["store"]["bytes"].as_u64().unwrap();
    assert!(store >= displaced, "{store}: nothing grows in silence");
    let dropped = world.recant(&format!("discard {id} -y --json")).ok().json()["discarded"][0]["bytes"].as_u64().unwrap();
    assert!(dropped >= displaced, "{dropped}");
}

/// I28: the room that a commit keeps for its rollback is freed by a rollback, and kept again by one that is undone or leaves something in.
#[test]
fn room_for_a_rollback_is_kept_as_long_as_something_is_in() {
    // btrfs keeps none.
    let world = World::on(std::path::Path::new("/dev/shm"));
    let id = world.edited("f");
    world.write("g", "old").stage_write(&id, "g", "new");
    world.recant(&format!("commit {id}")).ok();
    let names = || {
        let names = std::fs::read_dir(world.session(&id)).expect("the session").map(|name| name.expect("a name").file_name());
        names.filter(|name| name.to_string_lossy().starts_with("reserve")).count()
    };
    let kept = names();
    assert!(world.session(&id).join("reserve").metadata().is_ok_and(|meta| meta.len() > 64 << 10));
    let rollback = || world.call(["rollback", &id]);
    let steps = steps_of(rollback);
    assert_eq!(names(), 0, "nothing is in any more");
    for (words, what) in [("redo ID", "redone"), ("rollback ID --dry-run", "only looked at"), ("session rename ID x", "renamed")]
    {
        world.recant(&words.replace("ID", &id)).ok();
        assert_eq!(names(), kept, "{what}");
    }
    let swap = 1 + steps.iter().position(|step| step.contains("EXCHANGE")).expect("a swap");
    rollback().env("RECANT_STEPS", format!("fail:{swap}:5")).run().with(1);
    assert_eq!(names(), kept, "undone");
    world.recant(&format!("rollback {id} f")).ok();
    assert_eq!(names(), kept, "one is still in");
    world.recant(&format!("prune --checkpoints {id}")).ok();
    assert_eq!(names(), 0, "there can be no rollback any more");
}

const DEEP: &str = "a-directory/with-a-long-name/below-another-one/and-so-on/until-it-is-too-long";

/// A session that deletes a thousand files with long names, below the working directory; gives its id.
fn crowded(world: &World) -> String {
    for n in 0..1000 {
        world.write(format!("{DEEP}/file-with-a-name-of-its-own-{n}.txt"), "x\n");
    }
    let id = world.begin();
    world.stage(&id, ["delete a-directory"]);
    world.recant("session rename last a-name-that-somebody-has-given-to-it-because-he-likes-long-names").ok();
    id
}

/// What a person or an agent has to read: standard output, then standard error.
fn read_by_somebody(said: &common::Said) -> Vec<String> {
    format!("{}{}", said.stdout(), said.stderr()).lines().map(str::to_owned).collect()
}

#[test]
fn a_thousand_changes_with_long_paths_are_told_in_thirty_lines_of_eighty_columns() {
    let world = World::new();
    let id = crowded(&world);
    for words in ["show ID", "diff ID --stat", "list", "list --all", "commit ID --dry-run", "log", "status"] {
        let said = world.recant(&words.replace("ID", &id)).ok();
        let lines = read_by_somebody(&said);
        assert!(lines.len() <= 30, "{words}: {} lines: {said}", lines.len());
        // What would be moved has its paths whole: they may be copied into the next command.
        let wide: Vec<&String> =
            lines.iter().filter(|_| !words.contains("--dry-run")).filter(|line| line.chars().count() > 80).collect();
        assert_eq!(wide, [""; 0], "{words}");
    }
    let tail = &id[16..];
    for (words, more, whole) in [
        ("show ID DEEP", format!("… and 981 more: recant show {tail} {DEEP} -v"), 1001),
        ("diff ID DEEP --stat --full", format!(" … and 981 more: recant diff {tail} --full {DEEP} --stat -v"), 1001),
    ] {
        let said = world.recant(&words.replace("ID", &id).replace("DEEP", DEEP)).ok();
        assert!(said.stdout().lines().any(|line| line == more), "{words}: {more}: {said}");
        let said = world.recant(&format!("{words} -v").replace("ID", &id).replace("DEEP", DEEP)).ok();
        assert!(said.stdout().lines().count() >= whole && !said.stdout().contains("more:"), "{words} -v");
        let changes = world.recant(&format!("{words} --json").replace("ID", &id).replace("DEEP", DEEP)).ok().json()["changes"]
            .as_array()
            .unwrap()
            .len();
        assert_eq!(changes, 1001, "{words} --json");
        // With -v nothing is left out, and nothing shortened.
        let said = world.recant(&format!("{words} -v").replace("ID", &id).replace("DEEP", DEEP)).ok();
        assert!(said.stdout().contains("until-it-is-too-long/file-with-a-name-of-its-own-999.txt"), "{words} -v");
    }
}

#[test]
fn show_of_a_session_that_is_committed_but_for_some_lists_the_side_of_the_fewer_first_and_counts_both() {
    let world = World::new();
    let id = world.begin();
    let staged: Vec<String> = (0..30).map(|n| format!("write {n:02} x")).collect();
    world.stage(&id, staged.iter().map(String::as_str));
    assert_eq!(world.commit_half(&id, &["17", "29"], false), 0);
    let said = world.call(["show", &id]).run().ok();
    let text = said.stdout();
    assert!(text.contains("status      committed, 28 of 30 still held\n"), "{said}");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("created")).collect();
    assert_eq!(rows.len(), 20);
    let names = |n: usize| rows[n].split_whitespace().collect::<Vec<_>>().join(" ");
    let first = ["created committed file 1 B 17", "created committed file 1 B 29", "created held file 1 B 00"];
    assert_eq!([names(0), names(1), names(2)], first);
    // The other way round: the two that are held.
    world.call(["commit", &id]).run().ok();
    world.call(["rollback", &id, "05", "07"]).run().ok();
    let text = world.call(["show", &id]).run().ok().stdout();
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("created")).collect();
    assert!(rows[0].ends_with("05") && rows[1].ends_with("07") && rows[2].ends_with("00"), "{text}");
    assert!(text.contains("status      committed, 2 of 30 taken back\n"), "{text}");
}

#[test]
fn show_lists_only_the_paths_that_are_named() {
    let world = World::new();
    let id = world.begin();
    world.stage_write(&id, "src/a", "x").stage_write(&id, "src/b", "x").stage_write(&id, "other", "x");
    let said = world.call(["show", &id, "src"]).run().ok();
    let text = said.stdout();
    assert!(text.contains("changes     3 created\n") && text.contains("src/b") && !text.contains("other"), "{said}");
    let told = world.call(["show", &id, "other", "src/a", "--json"]).run().ok().json();
    let paths: Vec<&str> = told["changes"].as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap()).collect();
    assert_eq!(paths, [world.path("other").to_str().unwrap(), world.path("src/a").to_str().unwrap()]);
    assert!(world.call(["show", &id, "nowhere"]).run().with(1).stderr().contains("not in the session"));
}

/// Two projects beside each other, with a session each of them is begun in; gives their ids.
fn two_projects(world: &World) -> (String, String) {
    world.mkdir("web/.git").mkdir("src/.git");
    let staged = |project: &str| {
        let id = world.call(["session", "new"]).cwd(world.path(project)).run().ok().id();
        world.call(["session", "write", &id, "f"]).cwd(world.path(project)).stdin("x").run().ok();
        id
    };
    (staged("web"), staged("src"))
}

fn ids(said: &common::Said) -> Vec<String> {
    let rows = said.json()["sessions"].as_array().cloned().unwrap_or_default();
    rows.iter().map(|row| row["id"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn list_shows_this_project_a_line_a_session_and_says_how_many_are_elsewhere() {
    let world = World::new();
    let (web, src) = two_projects(&world);
    let list = |project: &str, words: &str| {
        world.call(["list"].into_iter().chain(words.split_whitespace())).cwd(world.path(project)).run()
    };
    let said = list("web", "").ok();
    assert_eq!(said.stdout().lines().count(), 2, "{said}");
    assert!(said.stdout().contains(&web[16..]) && !said.stdout().contains(&src[16..]), "{said}");
    assert_eq!(said.stderr(), "recant: 1 more in other projects: recant list --all\n");
    let all = list("web", "--all").ok();
    assert!(all.stdout().lines().count() == 3 && all.stdout().contains("PROJECT") && all.err.is_empty(), "{all}");
    assert_eq!(ids(&list("web", "--json").ok()), [&*web]);
    let json = list("src", "--json").ok().json();
    assert_eq!((&json["elsewhere"], json["project"].as_str()), (&1.into(), world.path("src").to_str()));
    assert_eq!(ids(&list("src", "--json --all").ok()), [&*src, &*web]);
    // Nothing of another project's is shown in its place.
    world.mkdir("empty/.git");
    let none = list("empty", "").ok();
    assert!(none.out.is_empty(), "{none}");
    assert!(none.masked_err() == "recant: no sessions in /world/tree/empty; 2 elsewhere: recant list --all\n", "{none}");
    // Where the working directory no longer exists, all are.
    let script = format!("mkdir gone && cd gone && rmdir ../gone && {} list --json", common::recant());
    assert_eq!(ids(&world.program("sh", ["-c", &script]).run().ok()).len(), 2);
}

#[test]
fn list_takes_a_status_a_time_a_path_and_a_number() {
    let world = World::new();
    assert_eq!(world.recant("list").ok().masked_err(), "recant: no sessions\n");
    let many: Vec<String> = (0..25)
        .map(|n| {
            let id = world.begin();
            world.stage(&id, [&*format!("write d{n}/f x")]);
            id
        })
        .collect();
    world.call(["commit", &many[3]]).run().ok();
    world.call(["commit", &many[4]]).run().ok();
    world.call(["rollback", &many[4]]).run().ok();
    let list = |words: &str| ids(&world.recant(&format!("list --json {words}")).ok());
    assert_eq!(world.recant("list --json").ok().rows().len(), 25);
    assert!(world.recant("list").ok().stdout().starts_with("ID "));
    assert!(list("").iter().eq(many.iter().rev()), "the newest first");
    assert_eq!(list("--status committed"), [&*many[3]]);
    assert_eq!(list("--status rolled-back,committed"), [&*many[4], &*many[3]]);
    assert_eq!(list("--status rolled_back"), [&*many[4]]);
    assert_eq!([list("--path d7"), list("--path d7/f")], [[&*many[7]], [&*many[7]]]);
    assert_eq!(list("--path d"), [""; 0]);
    assert_eq!((list("--limit 2").len(), list("").len(), list("--limit 0").len()), (2, 25, 25));
    assert_eq!(list("--since 1h").len(), 25);
    assert_eq!((list("--since 2099-01-01").len(), list("--since 2020-01-01 --limit 3").len()), (0, 3));
    let said = world.recant("list").ok();
    assert_eq!(said.stdout().lines().count(), 22, "{said}");
    assert!(said.stdout().ends_with("… and 5 more: recant list --limit 0\n"), "{said}");
    let said = world.recant("list --status pending --limit 1").ok();
    assert!(said.stdout().ends_with("… and 22 more: recant list --status pending --limit 0\n"), "{said}");
    assert_eq!(world.recant("list --limit 0").ok().stdout().lines().count(), 26);
    for wrong in ["--status done", "--since yesterday", "--limit x"] {
        world.recant(&format!("list {wrong}")).with(2);
    }
}

#[test]
fn discard_takes_several_sessions_all_of_them_or_none() {
    let world = World::new();
    let held: Vec<String> = ["a", "b", "c"].map(|name| world.edited(name)).into();
    let real = world.edited("real");
    world.call(["commit", &real]).run().ok();
    for wrong in ["nonesuch", &*real] {
        world.call(["discard", &held[0], wrong, &held[1]]).run().with(1);
        assert_eq!((world.status(&held[0]), world.status(&held[1])), ("pending".into(), "pending".into()), "{wrong}");
    }
    let said = world.call(["discard", &held[0], &held[1], &held[0]]).run().ok();
    assert!(said.masked_err().starts_with("recant: 2 sessions discarded: 2 changes, 6 B\n"), "{said}");
    let told = world.call(["discard", &held[0], &held[2], "--json"]).run().ok().json();
    assert_eq!((&told["discarded"][0]["session"], &told["skipped"][0]["session"]), (&(*held[2]).into(), &(*held[0]).into()));
    assert!(held.iter().all(|id| world.status(id) == "discarded"));
    assert_eq!(world.recant("discard").with(2).out, b"");
    world.call(["discard", "--all", &real]).run().with(2);
}

#[test]
fn discard_all_drops_what_is_pending_in_this_project_and_wants_a_word_for_it() {
    let world = World::new();
    let (web, src) = two_projects(&world);
    let here = |words: &str| world.call(words.split_whitespace()).cwd(world.path("web")).run();
    let real = world.call(["session", "new"]).cwd(world.path("web")).run().ok().id();
    world.call(["session", "write", &real, "real"]).cwd(world.path("web")).stdin("x").run().ok();
    world.call(["commit", &real]).run().ok();
    // Neither a terminal nor -y: nothing but what would go.
    let said = here("discard --all").with(2);
    assert!(said.stderr().contains("1 pending session with 1 held change"), "{said}");
    assert_eq!(world.status(&web), "pending");
    let said = here("discard --all -y").ok();
    assert!(said.stderr().contains("is discarded: 1 change"), "{said}");
    assert_eq!([&web, &src, &real].map(|id| world.status(id)), ["discarded", "pending", "committed"]);
    assert!(here("discard --all").ok().stderr().contains("nothing to discard"));
    assert_eq!(here("discard --all --json").ok().json()["discarded"].as_array().unwrap().len(), 0);
}

#[test]
fn discard_all_shows_at_a_terminal_what_would_go_and_asks() {
    let world = World::new();
    let ids: Vec<String> = (0..23).map(|n| edited(&world, &format!("f{n}"))).collect();
    let Some((status, said)) = at_a_terminal(&world, "discard --all", "n") else { return };
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("… and 3 more: recant list --status pending --limit 0"), "{said}");
    assert!(said.contains("Discard 23 pending sessions"), "{said}");
    assert!(said.contains(&ids[22][16..]) && !said.contains(&ids[2][16..]), "{said}");
    assert_eq!(world.status(&ids[0]), "pending");
    let Some((status, said)) = at_a_terminal(&world, "discard --all", "y") else { return };
    assert!(status == 0 && said.contains("23 sessions discarded: 23 changes"), "{said}");
    assert!(ids.iter().all(|id| world.status(id) == "discarded"));
}

/// Gives a session another age: as if nothing had been done with it for so many days.
fn aged(world: &World, id: &str, days: i64) {
    let then = chrono::Utc::now() - chrono::Duration::days(days);
    let then = then.format("%Y-%m-%dT%H:%M:%S.000000000Z").to_string();
    amend(world, id, "session.json", |header| header["changed"] = then.clone().into());
}

/// A finished session, a pending one, one that is committed, and two snapshots, in a world whose settings keep nothing; gives the ids.
fn prunable() -> (World, [String; 3]) {
    let world = World::new();
    world.config("[retention]\nkeep = 0\n[snapshot]\nkeep = 1\n");
    let (finished, pending, committed) = (world.edited("finished"), world.edited("pending"), world.edited("committed"));
    for id in [&finished, &committed] {
        world.call(["commit", id]).run().ok();
    }
    world.call(["rollback", &finished]).run().ok();
    world.write("snap/f", "1\n").config("[retention]\nkeep = 0\n[snapshot]\nkeep = 50\n");
    world.recant("snapshot create snap").ok();
    world.write("snap/f", "2\n");
    world.recant("snapshot create snap").ok();
    world.config("[retention]\nkeep = 0\n[snapshot]\nkeep = 1\n");
    (world, [finished, pending, committed])
}

#[test]
fn prune_lets_go_what_the_settings_say_once_it_was_shown() {
    let (world, [finished, pending, committed]) = prunable();
    let before = world.recant("status --json").ok().json();
    let shown = world.recant("prune --dry-run").ok();
    assert!(shown.stdout().contains("1 session: finished; they can then not be redone"), "{shown}");
    assert!(shown.stdout().contains(&finished[16..]) && !shown.stdout().contains(&pending[16..]), "{shown}");
    assert!(shown.stdout().contains("1 snapshot: over snapshot.keep"), "{shown}");
    assert!(shown.stderr().contains("1 session, 1 snapshot would be pruned"), "{shown}");
    assert_eq!(world.recant("status --json").ok().json(), before, "a dry run changes nothing");
    // Without a terminal it wants a word.
    let said = world.recant("prune").with(2);
    assert!(said.stderr().contains("there is no terminal to ask at") && said.stderr().contains("-y goes on"), "{said}");
    assert_eq!(world.recant("status --json").ok().json(), before);
    let said = world.recant("prune -y").ok();
    assert!(said.stderr().contains("1 session, 1 snapshot pruned"), "{said}");
    world.call(["show", &finished]).run().with(1);
    assert_eq!((world.status(&pending), world.status(&committed)), ("pending".into(), "committed".into()));
    assert_eq!(world.recant("snapshot list snap --json").ok().json()["snapshots"].as_array().unwrap().len(), 1);
    assert_eq!(world.recant("prune").ok().masked_err(), "recant: nothing to prune\n");
    world.call(["rollback", &committed]).run().ok();
}

#[test]
fn prune_without_a_retention_leaves_sessions_and_says_so() {
    let (world, [finished, ..]) = prunable();
    let status = || world.recant("status").ok().stdout();
    let what = "1 session: finished; pruning ends redo\n             recant";
    assert!(status().contains(&format!("{what} prune drops what the settings no longer keep\n")), "{}", status());
    world.config("[snapshot]\nkeep = 1\n");
    assert!(
        status().contains("could free   ") && status().contains(&format!("{what} prune keeps them: no retention.* is set\n"))
    );
    assert!(status().contains("             recant prune --sessions --older-than 30d drops old, --keep 0 all\n"), "{}", status());
    assert!(status().lines().all(|line| line.chars().count() <= 80) && !status().contains("prunable"), "{}", status());
    let said = world.recant("prune -y").ok();
    assert!(said.stderr().contains("1 snapshot pruned"), "{said}");
    assert!(said.stderr().contains("; sessions stay: no retention is set\n"), "{said}");
    assert_eq!(world.status(&finished), "rolled_back");
    assert_eq!(world.recant("prune -y").ok().masked_err(), "recant: nothing to prune: no retention is set\n");
}

/// What a verb says at a terminal at which `answer` is typed, and its status.
fn at_a_terminal(world: &World, words: &str, answer: &str) -> Option<(i32, String)> {
    if world.program("script", ["-V"]).command().output().is_err() {
        common::skip("script makes the terminal");
        return None;
    }
    let command = format!("{} {words}", common::recant());
    let call = world.program("script", ["-qec", &command, "/dev/null"]).env("TERM", "dumb").stdin(format!("{answer}\n"));
    let said = call.run();
    Some((said.status, said.stdout()))
}

#[test]
fn every_prune_asks_at_a_terminal() {
    let (world, [finished, ..]) = prunable();
    for (words, question) in [
        ("prune".to_owned(), "Prune 1 session, 1 snapshot"),
        ("prune --sessions --keep 0".into(), "Prune 1 session"),
        (format!("prune --sessions {finished}"), "Prune session"),
        (format!("prune --checkpoints {finished}"), "Prune checkpoint"),
        ("prune --snapshots snap".into(), "Prune snapshot 0 of"),
        ("prune --snapshots snap --number 0".into(), "Prune snapshot 0 of"),
    ] {
        let Some((status, said)) = at_a_terminal(&world, &words, "n") else { return };
        assert!(status == 1 && said.contains(question) && said.contains("nothing changed"), "{words}: {status}: {said}");
    }
    assert_eq!(world.status(&finished), "rolled_back");
    assert_eq!(world.recant("snapshot list snap --json").ok().json()["snapshots"].as_array().unwrap().len(), 2);
    for words in [format!("prune --sessions {finished}"), "prune --snapshots snap --number 0".into()] {
        let Some((status, said)) = at_a_terminal(&world, &words, "y") else { return };
        assert_eq!(status, 0, "{words}: {said}");
    }
    world.call(["show", &finished]).run().with(1);
}

#[test]
fn status_says_of_old_pending_sessions_what_to_do_with_them() {
    let world = World::new();
    let (old, new) = (world.edited("old"), world.edited("new"));
    aged(&world, &old, 12);
    let said = world.recant("status").ok();
    let tail = &old[16..];
    let want = format!("pending      {tail} for 12 days: recant show {tail}, recant discard {tail}\n");
    assert!(said.stdout().contains(&want) && !said.stdout().contains(&new[16..]), "{said}");
    assert_eq!(world.recant("status --json").ok().json()["old_pending"], serde_json::json!([old]));
    for n in 0..9 {
        aged(&world, &world.edited(&format!("f{n}")), 8);
    }
    let said = world.recant("status").ok();
    assert_eq!(said.stdout().matches(" days: recant show ").count(), 5, "{said}");
    assert!(said.stdout().contains("… and 5 more: recant list --all --status pending\n"), "{said}");
}

#[test]
fn the_log_and_the_lists_of_snapshots_and_checkpoints_fit_eighty_columns_and_twenty_lines() {
    let world = World::new();
    let ids: Vec<String> = (0..25).map(|n| edited(&world, &format!("f{n}"))).collect();
    for id in &ids {
        world.call(["commit", id]).run().ok();
        let name = format!("a-name-that-is-as-long-as-a-name-may-be-with-a-tail-{}", &id[16..]);
        world.call(["session", "rename", id, &name]).run().ok();
    }
    let message = "a message that says at length what somebody was about to do, and why that was wanted";
    for n in 0..25 {
        world.write("snap/f", format!("{n}\n"));
        world.call(["snapshot", "create", "snap", "-m", message, "--label", "a-label-of-some-length"]).run().ok();
    }
    for (words, more, whole) in [
        ("log", "… and 5 more: recant log -v", "log -v"),
        ("checkpoint list", "… and 5 more: recant checkpoint list -v", "checkpoint list -v"),
        ("snapshot list --dir snap", "… and 5 more: recant snapshot list --dir ", "snapshot list --dir snap -v"),
    ] {
        let said = world.recant(words).ok();
        let lines = read_by_somebody(&said);
        assert!(lines.len() <= 22 && lines.iter().any(|line| line.starts_with(more)), "{words}: {said}");
        let wide: Vec<&String> = lines.iter().filter(|line| line.chars().count() > 80 && !line.starts_with('…')).collect();
        assert_eq!(wide, [""; 0], "{words}");
        let all = world.recant(whole).ok();
        assert!(all.stdout().lines().count() >= 25 && !all.stdout().contains("more:"), "{whole}: {all}");
    }
    assert!(world.recant("snapshot list snap -v").ok().stdout().contains(message));
    assert_eq!(world.recant("log -n 23").ok().stdout().lines().count(), 23);
    assert_eq!(world.recant("log --json").ok().json()["entries"].as_array().unwrap().len(), 25);
}

#[test]
fn no_line_of_list_or_log_is_wider_than_the_terminal_with_names_agents_and_commands() {
    let Some(world) = common::can_run().then(World::new) else { return println!("skipped: lists of runs: no run works here") };
    for n in 0..3 {
        let name = format!("a-name-that-is-about-as-long-as-a-name-may-be-{n}");
        let script = format!("for n in $(seq 1000); do : > f{n}-$n; done; echo {}", "x".repeat(100));
        let words = ["run", "-q", "-n", &name, "--", "sh", "-c", &script];
        world.call(words).env("RECANT_AGENT", "an-agent-of-some-length").run().ok();
    }
    world.recant("commit a-name-that-is-about-as-long-as-a-name-may-be-1").ok();
    world.recant("commit a-name-that-is-about-as-long-as-a-name-may-be-2 f2-1").ok();
    world.recant("rollback a-name-that-is-about-as-long-as-a-name-may-be-1").ok();
    // Its run waits to be collected.
    let id = world.recant("list --json --status pending").ok().json()["sessions"][0]["id"].as_str().unwrap().to_owned();
    amend(&world, &id, "session.json", |header| header["uncollected"] = true.into());
    for words in ["list", "list --all", "log"] {
        for columns in [80_usize, 60, 40] {
            let said = world.call(words.split(' ')).env("COLUMNS", columns.to_string()).run().ok();
            let wide: Vec<_> = said.stdout().lines().filter(|line| line.chars().count() > columns).map(str::to_owned).collect();
            assert_eq!(wide, [""; 0], "{words} in {columns}");
            if columns == 80 && words == "list" {
                let lines = said.stdout();
                let titles = lines.lines().next().unwrap().split_whitespace().collect::<Vec<_>>();
                assert_eq!(titles, ["ID", "STATUS", "CHANGES", "SIZE", "CHANGED", "NAME", "AGENT", "COMMAND"], "{said}");
                assert!(lines.contains("a-n…") && lines.contains("sh -c"), "{said}");
            }
        }
    }
}

#[test]
fn a_short_name_is_whole_in_eighty_columns() {
    let Some(world) = common::can_run().then(World::new) else { return println!("skipped: lists of runs: no run works here") };
    let long = "echo a-long-command > f; exit 3";
    world
        .call(["run", "-q", "-n", "risky-change", "--", "sh", "-c", long])
        .env("RECANT_AGENT", "an-agent-of-some-length")
        .run()
        .with(3);
    for words in ["list --all", "log"] {
        let said = world.call(words.split(' ')).env("COLUMNS", "80").run().ok();
        assert!(said.stdout().lines().last().unwrap().contains("  risky-change  "), "{words}: {said}");
        assert!(said.stdout().lines().all(|line| line.chars().count() <= 80), "{words}: {said}");
        world.recant("commit risky-change -y").ok();
    }
}

#[test]
fn a_session_named_where_a_path_belongs_is_told_to_have_a_call_of_its_own() {
    let world = World::new();
    let ids: Vec<String> = ["a", "b"].map(|name| world.recant(&format!("session new -n {name}")).id()).into();
    for id in &ids {
        world.stage_write(id, format!("of-{id}"), "x");
    }
    let tail = &ids[1][16..];
    for (words, wanted) in [
        ("commit a b".to_owned(), "recant commit a; recant commit b".to_owned()),
        (format!("commit a {tail} --dry-run"), format!("recant commit a; recant commit {tail}")),
        (format!("rollback last {}", ids[1]), format!("recant rollback last; recant rollback {}", ids[1])),
    ] {
        if words.starts_with("rollback") {
            world.recant("commit a").ok();
        }
        let said = world.recant(&words).with(1);
        assert!(said.stderr().contains(" is a session, not a path: use one call for each\n"), "{said}");
        assert!(said.stderr().ends_with(&format!("\n        {wanted}\n")), "{said}");
    }
    // What is there, or in the session, is a path.
    world.write("b", "there");
    assert!(!world.recant("rollback a b").stderr().contains("no path"));
    world.stage_write("b", "a", "x");
    world.recant("commit b a").ok();
}

#[test]
fn show_tells_together_what_programs_made_and_in_a_line_each_what_people_look_for() {
    let world = World::new();
    let id = world.begin();
    for path in ["node_modules/a/index.js", "node_modules/b/index.js", "src/a.js", "src/b.js", "package.json", "README"] {
        world.stage_write(&id, path, "one\n");
    }
    let rows = |words: &str| world.recant(&format!("show {id} {words}")).ok().masked_out().to_string();
    let said = rows("");
    assert_snapshot!(said.split_once("\n\n").expect("a head and rows").1, @"
    created  file  4 B  package.json  (npm runs its scripts)
    created  file  4 B  README
    src/           new directory: 2 files, 8 B
    node_modules/  dependencies: 5 created, 8 B
    8 changes summed up: recant show <id1~> -v
    ");
    let all = rows("-v");
    assert!(all.contains("node_modules/b/index.js") && !all.contains("together"), "{all}");
    let named = rows("src");
    assert!(named.contains("src/b.js") && !named.contains("together"), "{named}");
    // So does a commit, before it and after it.
    let commit = |options: &str| world.recant(&format!("commit {id} {options}")).ok().masked_out().to_string();
    let would = commit("--dry-run");
    assert_snapshot!(would, @"
    created   package.json  (npm runs its scripts)
    created   README
    src/           new directory: 2 files, 8 B
    node_modules/  dependencies: 5 created, 8 B
    8 changes summed up: recant commit <id1~> --dry-run -v
    ");
    let all = commit("--dry-run -v");
    assert!(all.contains("created   node_modules/b/index.js") && !all.contains("together"), "{all}");
    // So does a part, whose session is gone after a dry run.
    let part = commit("node_modules README --dry-run");
    assert_snapshot!(part, @"
    created   README
    node_modules/  dependencies: 5 created, 8 B
    5 changes summed up: recant commit <id1~> … --dry-run -v
    ");
    let json = world.recant(&format!("commit {id} node_modules README --dry-run --json")).ok().json();
    assert_eq!(json["summary"]["groups"][0]["created"], 5, "{json}");
    let done = commit("");
    assert_eq!(done.lines().take(4).collect::<Vec<_>>(), would.lines().take(4).collect::<Vec<_>>());
    assert!(done.contains("8 changes summed up: recant show "), "{done}");
    // What is taken back is told the other way round, before it and after it.
    let rollback = |options: &str| world.recant(&format!("rollback {id} {options}")).ok().masked_out().to_string();
    let would = rollback("--dry-run");
    assert_snapshot!(would, @"
    removed   README
    removed   package.json
    src/           deleted directory: 2 files, 8 B
    node_modules/  dependencies: 5 deleted, 8 B
    8 changes summed up: recant rollback <id1~> --dry-run -v
    ");
    let all = rollback("-v --dry-run");
    assert!(all.contains("removed   node_modules/b/index.js") && !all.contains("together"), "{all}");
    let undo = world.recant("undo --dry-run").ok().masked_out().to_string();
    assert_eq!(undo.lines().take(4).collect::<Vec<_>>(), would.lines().take(4).collect::<Vec<_>>());
    let done = rollback("");
    assert_eq!(done.lines().take(4).collect::<Vec<_>>(), would.lines().take(4).collect::<Vec<_>>());
}
