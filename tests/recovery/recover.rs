//! What comes of an interrupted operation where somebody was at work before it was undone: his paths stay, the rest is undone, and a later
//! verb goes on with them; also when the recovery is itself killed before any step. And a header that cannot tell whether it was done:
//! `recant recover ID --undo | --finish` says it.

use std::path::Path;

use crate::common::sweep::{Came, Sweep, is_due, is_whole, steps, steps_of};
use crate::common::{self, Manifest, Said, World};
use crate::{Scene, numbers, seal, until_old};

/// A session with every kind of step, on one file system.
fn of(verb: &'static str) -> Scene {
    on(verb, false).expect("one file system")
}

fn on(verb: &'static str, two: bool) -> Option<Scene> {
    let mut scene = Scene::new(two)?;
    let world = &scene.world;
    world.write("edited", "old").write("gone", "away").write("moded", "x").write("calm", "old");
    world.write("full/a", "1").write("in/edited", "old");
    let written = ["edited", "calm", "new", "made/deep/new", "in/edited"].map(|name| format!("write {name} new"));
    scene.begin(written.iter().map(String::as_str).chain(["delete gone", "chmod 0640 moded", "delete full"]));
    Some(scene.at(verb))
}

/// The verb is cut off, and the recovery is due.
impl Scene {
    /// All of it is on the tree and nothing sealed.
    fn interrupted(self) -> Self {
        self.cut_before(self.seal());
        self
    }

    /// The same anew.
    fn interrupt(&self) {
        self.reset();
        self.cut_before(self.seal());
    }

    fn cut_before(&self, n: usize) {
        self.kill_before(self.verb, n);
    }

    /// Somebody is at work on paths of all kinds before anybody recovers.
    fn disturbed(self) -> Self {
        self.disturb();
        self
    }

    fn disturb(&self) {
        let command = if self.verb == "commit" {
            "cd tree; printf theirs > edited.t; mv edited.t edited; printf theirs > gone; printf theirs >> new; printf theirs > full;
             printf theirs > made/deep/put; chmod 0711 made/deep; chmod 0604 moded"
        } else {
            "cd tree; printf theirs > edited.t; mv edited.t edited; printf theirs > new; printf theirs >> gone; rm -rf full;
             printf theirs > made; chmod 0604 moded"
        };
        self.shell(command);
    }

    /// The header cannot tell whether the verb was done.
    fn garble(&self) {
        std::fs::write(self.session().join("session.json"), "x").expect("a write");
    }

    /// Nothing is done until somebody says which of the two it is to be.
    #[track_caller]
    fn assert_undecided(&self, what: &str) {
        let on_tree = self.world.manifest();
        for words in ["recover", &format!("recover {}", self.id), &format!("{} {}", self.verb, self.id)] {
            let said = self.world.recant(words).with(5);
            let ways = ["--undo", "--finish"].map(|how| format!("recover {} {how}", self.id));
            assert!(ways.iter().all(|way| [said.stdout(), said.stderr()].concat().contains(way)), "{what}, {words}: {said}");
        }
        on_tree.assert_same(&self.world.manifest(), what);
    }

    fn recover(&self, how: &str) -> Said {
        self.world.recant(&format!("recover {} {how}", self.id))
    }

    /// The steps of the recovery that is due.
    fn steps_of_recovery(&self) -> Vec<String> {
        steps_of(|| self.world.call(["recover"]))
    }

    fn recover_with(&self, steps: impl AsRef<str>) -> Said {
        self.world.call(["recover"]).env("RECANT_STEPS", steps.as_ref()).run()
    }

    /// The lines of the manifests of what force has overwritten.
    fn overwritten(&self) -> String {
        let directories = std::fs::read_dir(self.session().join("displaced")).expect("what is kept");
        let read = |directory: std::fs::DirEntry| std::fs::read_to_string(directory.path().join("manifest.jsonl")).ok();
        directories.filter_map(|directory| read(directory.expect("a directory"))).collect()
    }

    /// What the log says last.
    fn noted(&self) -> String {
        let log = self.world.recant("log --json").ok().json();
        ["verb", "result"].map(|key| log["entries"][0][key].as_str().unwrap_or_default().to_owned()).join(" ")
    }

    /// The tree is as before the verb, but for times of directories.
    #[track_caller]
    fn assert_undone(&self, what: &str) {
        calm(&self.before).assert_same(&calm(&self.world.manifest()), what);
    }
}

fn calm(manifest: &Manifest) -> Manifest {
    let mut manifest = manifest.clone().without_directory_times();
    manifest.0.retain(|path, _| path != b"");
    manifest
}

/// The verb that goes on with what was left.
fn onward(verb: &str) -> &'static str {
    if verb == "commit" { "rollback" } else { "redo" }
}

#[test]
fn what_somebody_has_changed_stays_and_is_shown_until_it_is_dealt_with() {
    for (verb, two) in [("commit", false), ("rollback", false), ("commit", true), ("rollback", true)] {
        let Some(scene) = on(verb, two).map(|case| case.interrupted().disturbed()) else { continue };
        let theirs = scene.world.manifest();
        let said = scene.recover("").with(4);
        let what = format!("{verb}, two file systems: {two}: {said}");
        let tail = scene.id.rsplit('-').next().expect("a tail");
        for name in ["edited", "moded"] {
            assert!(said.stdout().contains(&scene.world.path(name).display().to_string()), "{name}: {what}");
        }
        assert!(said.stdout().contains(&format!("recant {} {tail} ", onward(verb))), "{what}");
        assert_eq!(scene.noted(), format!("{verb} left"), "{what}");
        scene.assert_over(&what);
        let now = scene.world.manifest();
        for name in ["edited", "moded", "gone", "new"] {
            assert_eq!(theirs.0.get(name.as_bytes()), now.0.get(name.as_bytes()), "{name}: {what}");
        }
        assert_eq!(scene.world.read("calm"), if verb == "commit" { "old" } else { "new" }, "the rest is undone: {what}");
        for words in ["status", "list --all", "", "show"] {
            let said = scene.world.recant(words).ok();
            assert!(said.stdout().contains("left"), "{words}: {said}: {what}");
        }
        // What was there before, and what was to be put, is had again; what is found is kept.
        match (verb, two) {
            // A directory that somebody has changed cannot go to another file system.
            ("commit", true) => scene.world.remove("made"),
            ("commit", false) => scene.world.remove("made/deep/put"),
            _ => &scene.world,
        };
        let on = scene.world.recant(&format!("{} {} --force", onward(verb), scene.id)).ok();
        scene.assert_undone(&format!("{what}\n{on}"));
        assert_eq!(scene.displaced("edited"), "theirs", "{what}\n{on}");
        let appended = if verb == "commit" { "new" } else { "gone" };
        assert!(scene.displaced(appended).ends_with("theirs"), "{what}\n{on}");
        let overwritten = scene.overwritten();
        let moded = overwritten.lines().find(|line| line.contains("/moded\"")).expect("what it had");
        assert!(moded.contains("\"mode\":\"0604\""), "{what}: metadata is kept as it was found: {moded}");
        for words in ["status", "list --all", ""] {
            assert!(!scene.world.recant(words).ok().stdout().contains("left"), "{words}: {what}");
        }
    }
}

/// The verb that was meant for the session stops; called again it goes on. One that was meant for another says what came of it, and does
/// its own.
#[test]
fn the_first_verb_for_a_session_of_which_something_is_left_stops() {
    for verb in ["commit", "rollback"] {
        let scene = of(verb).interrupted().disturbed();
        let said = scene.world.recant(&format!("{verb} {}", scene.id)).with(4);
        assert!(said.stderr().contains("could not be undone at"), "{said}");
        assert!(said.stderr().contains("nothing else was changed"), "{said}");
        assert_eq!(scene.world.read("calm"), if verb == "commit" { "old" } else { "new" }, "{said}");
        scene.assert_over(verb);
        // What is in conflict with nobody's work goes now.
        let calm = scene.world.path("calm").display().to_string();
        scene.world.recant(&format!("{verb} {} {calm}", scene.id)).ok();
        assert_eq!(scene.world.read("calm"), if verb == "commit" { "new" } else { "old" });

        let scene = of(verb).interrupted().disturbed();
        let said = scene.world.recant("session new").ok();
        assert!(said.stderr().contains("was undone except for") && !said.stdout().is_empty(), "{said}");
        assert!(said.stderr().contains(&scene.world.path("edited").display().to_string()), "{said}");
    }
}

/// What nothing can deal with any more is not named for ever.
#[test]
fn what_was_left_is_forgotten_where_its_checkpoint_is_pruned_or_the_session_discarded() {
    for (verb, status, words) in
        [("commit", "committed", "prune --checkpoints ID -y"), ("rollback", "rolled_back", "discard ID -y")]
    {
        let mut scene = Scene::new(false).expect("one file system");
        scene.world.write("calm", "old").write("edited", "old");
        let lines = ["write edited new", "write calm new"];
        scene.begin(lines.into_iter().take(if verb == "commit" { 2 } else { 1 }));
        let scene = scene.at(verb).interrupted();
        let world = &scene.world;
        world.write("edited", "theirs");
        scene.recover("").with(4);
        let left = || world.recant("status --json").ok().json()["left"].clone();
        assert_eq!(world.status(&scene.id), status);
        assert_eq!(left(), serde_json::json!([scene.id]), "{verb}");
        world.recant(&words.replace("ID", &scene.id)).ok();
        assert_eq!(left(), serde_json::json!([]), "{words}");
    }
}

/// As other lists do: the first twenty, and the command that tells the rest.
#[test]
fn many_paths_that_are_left_are_the_first_twenty_and_a_command_that_lists_them() {
    let scene = of("commit");
    scene.world.write("many/kept", "k");
    let many: Vec<String> = (10..35).map(|n| format!("write many/n{n} new")).collect();
    scene.world.stage(&scene.id, many.iter().map(String::as_str));
    let scene = scene.at("commit");
    let interrupt = || {
        scene.interrupt();
        scene.shell("cd tree/many; for n in $(seq 10 34); do printf theirs > n$n; done");
    };
    interrupt();
    let named = |text: &str| text.matches("/many/n").count();
    let tail = &scene.id[16..];
    let said = scene.recover("").with(4).stdout();
    // The command that goes on names the first once more.
    assert_eq!(named(&said), 21, "{said}");
    assert!(said.contains(&format!("\n… and 5 more: recant log {tail}\nrecant rollback {tail} ")), "{said}");
    let log = scene.world.recant(&format!("log {tail}")).ok().stdout();
    assert_eq!(named(&log), 25, "{log}");
    for (how, all) in [("-v", 26), ("--json", 26)] {
        interrupt();
        let said = scene.recover(how).with(4).stdout();
        assert!(named(&said) == all && !said.contains(" more: "), "{how}: {said}");
    }
    interrupt();
    let said = scene.world.recant("session new").ok().stderr();
    assert!(named(&said) == 21 && said.contains(&format!("… and 5 more: recant log {tail}")), "{said}");
}

/// What an operation that is not recovered may still put back is no place for anybody else's: not at a path, not under it, not above it.
#[test]
fn what_is_not_recovered_is_left_alone_by_every_other_session() {
    let scene = of("commit").interrupted();
    // A journal that cannot be undone as long as one of its directories is missing.
    let blobs = scene.session().join("checkpoint/blobs");
    let aside = scene.world.root().join("blobs");
    std::fs::rename(&blobs, &aside).expect("it goes");
    let world = &scene.world;
    let held_by = &scene.id;
    for words in ["write ID edited", "write ID made/deep/under", "chmod ID 0700 ."] {
        let id = world.begin();
        // Paths before and behind it are nobody's.
        world.stage_write(&id, "aaa", "new").stage_write(&id, "zzz", "new");
        world.recant(&format!("session {}", words.replace("ID", &id))).ok();
        let before = world.manifest();
        for verb in ["commit", "commit --dry-run"] {
            let refused = world.recant(&format!("{verb} {id}")).with(7);
            let said = refused.stderr();
            assert!(said.contains(&format!("in use by an interrupted operation of session {held_by}")), "{words}: {refused}");
            assert!(said.contains(&format!("recant recover {held_by}")), "{words}: {refused}");
        }
        before.assert_same(&world.manifest(), words);
        // The same paths but that one.
        world.recant(&format!("commit {id} aaa zzz")).ok();
        world.recant("undo -y").ok();
        world.recant(&format!("discard {id}")).ok();
    }
    std::fs::rename(&aside, &blobs).expect("it is back");
    world.recant("recover").ok();
    let id = world.begin();
    world.stage_write(&id, "edited", "mine");
    world.recant(&format!("commit {id}")).ok();
    assert_eq!(world.read("edited"), "mine");
}

/// Kills the recovery before each of its steps; the next recant goes on with it, and what comes of it is the same.
fn sweep(verb: &'static str, two: bool) {
    let Some(case) = on(verb, two) else { return };
    let row = Sweep {
        name: &format!("recovery of a {verb}, two file systems: {two}"),
        scene: &|| {
            case.interrupt();
            case.disturb();
            if two {
                // A directory that somebody has changed cannot go to another file system.
                case.shell("rm -f tree/made/deep/put");
            }
            Some(())
        },
        verb: &|()| case.world.call(["recover", &case.id]),
        order: "kill:N",
    };
    let mut wanted: Option<Manifest> = None;
    let tally = row.run(|(), said, what| {
        if said.status == 137 {
            let next = case.world.recant("recover");
            // Behind the journal's end there is nothing to be said any more.
            assert!(next.status == 4 || next.stderr().contains("nothing was interrupted"), "{what}: {next}");
        } else {
            assert_eq!(said.status, 4, "{what}");
        }
        let now = calm(&case.world.manifest()).without_times();
        wanted.get_or_insert(now.clone()).assert_same(&now, what);
        let log = case.world.recant("log --json").ok().json();
        let left = |entry: &&serde_json::Value| entry["result"] == "left" && entry["notes"].to_string().contains("/edited: ");
        assert!(log["entries"].as_array().expect("a log").iter().filter(left).count() == 1, "it is noted: {what}: {log}");
        case.assert_over(what);
        let on = case.call(&format!("{} --force", onward(verb))).run();
        assert!(matches!(on.status, 0 | 4), "{what}\n{on}");
        calm_but_put(&case.before).assert_same(&calm_but_put(&case.world.manifest()), &format!("{what}\n{on}"));
        assert_eq!(case.displaced("edited"), "theirs", "{what}\n{on}");
        Came::Used(())
    });
    assert!(tally.steps >= 30, "{} steps", tally.steps);
}

/// Without the file that somebody has put into a directory of the session's, and what holds it.
fn calm_but_put(manifest: &Manifest) -> Manifest {
    let mut manifest = calm(manifest);
    manifest.0.retain(|path, _| !path.starts_with(b"made"));
    manifest
}

#[test]
fn a_recovery_that_is_killed_before_any_step_is_ended_by_the_next_one() {
    ["commit", "rollback"].into_iter().for_each(|verb| sweep(verb, false));
}

#[test]
fn so_it_is_between_two_file_systems() {
    ["commit", "rollback"].into_iter().for_each(|verb| sweep(verb, true));
}

/// A power cut may bring back the list of what an operation was to make ready, which has long been in use.
#[test]
fn a_list_of_what_was_made_ready_that_comes_back_takes_nothing_of_it_away() {
    for (verb, next) in [("commit", "rollback"), ("rollback", "redo")] {
        let Some(scene) = on(verb, true) else { return };
        let list = scene.store.join("journals").join(format!("{}.tmp", scene.id));
        let saved = scene.world.root().join("list");
        // It goes by the last of these that finds it.
        let keep = |n: usize| format!("run:{n}:cp {} {} || true", list.display(), saved.display());
        let keep: Vec<_> = numbers(&scene.steps, "unlinkat ", ".tmp").into_iter().map(keep).collect();
        scene.run(verb, keep.join(";")).ok();
        let (done, held) = (scene.world.manifest(), common::manifest(&scene.store.join("sessions")));
        std::fs::copy(&saved, &list).expect("the list is back");
        let said = scene.world.recant("recover").ok();
        scene.assert_over(verb);
        done.assert_same(&scene.world.manifest(), &format!("{verb}: {said}"));
        held.without_directory_times()
            .assert_same(&common::manifest(&scene.store.join("sessions")).without_directory_times(), verb);
        scene.world.recant(&format!("{next} {}", scene.id)).ok();
    }
}

/// After a power cut it may have no other name. A smaller one, of what cannot be undone, is written under that very name.
#[test]
fn a_journal_under_its_temporary_name_stays_until_another_stands_for_it() {
    let scene = of("commit");
    let stage = || {
        scene.interrupt();
        let journals = scene.store.join("journals");
        std::fs::rename(journals.join(&scene.id), journals.join(format!("{}.new", scene.id))).expect("another name");
        scene.disturb();
    };
    stage();
    let killed = numbers(&scene.steps_of_recovery(), "", "/journals/");
    assert!(killed.len() > 3, "{killed:?}");
    for n in killed {
        stage();
        let said = scene.recover_with(format!("kill:{}", n + 1)).with(137);
        let next = scene.recover("");
        let what = format!("killed behind step {n}: {said}{next}");
        scene.assert_over(&what);
        scene.world.remove("made/deep/put");
        scene.ok("rollback --force");
        scene.assert_undone(&what);
    }
}

#[test]
fn what_was_made_ready_for_a_session_that_is_gone_goes_where_it_still_lies() {
    let Some(scene) = on("commit", true) else { return };
    let all_ready = scene.step("", ".new");
    scene.cut_before(all_ready);
    assert!(scene.world.leftovers().iter().any(|name| name.starts_with("in/")), "{:?}", scene.world.leftovers());
    std::fs::remove_dir_all(scene.session()).expect("the session goes by hand");
    // So does a directory, with what lies in it.
    scene.world.remove("in");
    // Whether it went or was moved nobody can tell: what had been made in it is named.
    let said = scene.world.recant("recover").with(4);
    assert!(said.stderr().contains("/in/.recant-") && said.stderr().contains("its directory is gone or was moved"), "{said}");
    scene.assert_over(&format!("{said}"));
    assert_eq!(scene.world.read("edited"), "old");
}

#[test]
fn what_a_recovery_could_not_have_beside_its_outcome_is_said() {
    // A rollback has freed the room that its commit kept; the recovery finds no room to keep again, and cannot write to the log.
    for (verb, step, kill, note) in [
        ("rollback", "/reserve", ("renameat ", "session.json.new"), "could not reserve room"),
        ("commit", "log.jsonl", ("renameat ", "manifest.jsonl.new"), "the log could not be written"),
    ] {
        let scene = of(verb);
        let killed_before = scene.step(kill.0, kill.1);
        scene.cut_before(killed_before);
        let steps = scene.steps_of_recovery();
        let of_it = |n: &usize| !steps[n - 1].starts_with("unlink");
        let n = numbers(&steps, "", step).into_iter().rfind(of_it).expect("a step that fails");
        for words in [&["recover"][..], &["session", "new"], &["recover", "--json"]] {
            scene.reset();
            scene.cut_before(killed_before);
            let said = scene.world.call(words).env("RECANT_STEPS", format!("fail:{n}:28")).run().ok();
            if words.contains(&"--json") {
                let notes = &said.json()["recovered"][0]["notes"];
                assert!(notes[0].as_str().is_some_and(|said| said.contains(note)), "{said}");
            } else {
                assert!(said.stderr().contains(note), "{said}\n{steps:?}");
            }
            scene.assert_over(note);
        }
    }
}

/// What was recovered is said, whatever becomes of what is swept up beside it.
#[test]
fn a_recovery_is_said_though_what_was_half_made_cannot_be_swept_up() {
    let scene = of("commit");
    let stage = || {
        scene.cut_before(scene.seal());
        std::fs::create_dir(scene.store.join("sessions/.new-20260301-101500-k3fa")).expect("a new directory");
    };
    stage();
    let n = numbers(&scene.steps_of_recovery(), "", "/.gone-new-")[0];
    for words in [vec!["recover"], vec!["session", "new"]] {
        stage();
        let said = scene.world.call(words).env("RECANT_STEPS", format!("fail:{n}:5")).run().ok();
        let text = format!("{said}");
        assert!(text.contains("was undone: the tree is as before it"), "{said}");
        assert!(text.contains("this does no harm, and the next verb that changes something tries again"), "{said}");
        scene.world.recant("session new").ok();
        scene.assert_over("the rest");
    }
}

/// Only a recovery that came to its end is said to be done.
#[test]
fn a_recovery_that_failed_is_not_said_to_be_done_where_its_report_is_lost() {
    let scene = of("commit").interrupted();
    let journal = scene.store.join("journals").join(&scene.id);
    let whole = std::fs::read(&journal).expect("the journal");
    for (bytes, status, words) in
        [(&whole[..whole.len() - 9], 5, "not all is done"), (&whole, 4, "all is done; only the report is lost")]
    {
        std::fs::write(&journal, bytes).expect("the journal");
        let out = scene.world.call(["recover"]).command().stdout(common::full()).output().expect("recant");
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.code() == Some(status) && said.contains(words), "{status}: {said}");
    }
    scene.assert_over("recovered");
}

/// As FUSE has it (ENOSYS), or a directory of somebody else's (EPERM): the time of the operation stands, and nothing else differs. Any
/// other failure leaves the journal, and the next recovery ends it.
#[test]
fn an_undo_that_cannot_set_a_time_undoes_all_else() {
    let scene = of("commit");
    scene.interrupt();
    let times = numbers(&scene.steps_of_recovery(), "utimensat", "");
    assert!(times.len() > 2, "{times:?}");
    for errno in [38, 1, 95] {
        scene.interrupt();
        let failing: Vec<String> = times.iter().map(|n| format!("fail:{n}:{errno}")).collect();
        let said = scene.recover_with(failing.join(";")).ok();
        let what = format!("errno {errno}: {said}");
        scene.assert_undone(&what);
        assert_ne!(scene.before.0[&b"full"[..]].mtime, scene.world.manifest().0[&b"full"[..]].mtime, "{what}");
        scene.assert_over(&what);
        scene.ok("commit");
    }
    scene.interrupt();
    let fails = format!("fail:{}:5", times[0]);
    let said = scene.recover_with(&fails).with(7);
    assert!(said.stdout().contains("cannot be recovered now"), "{said}");
    let said = scene.world.call(["recover", "--json"]).env("RECANT_STEPS", fails).run().with(7).json();
    let row = &said["recovered"][0];
    assert!(row["result"] == "failed" && row["why"].as_str().is_some_and(|why| why.contains("input/output error")), "{row}");
    scene.world.recant("recover").ok();
    scene.assert_undone("after a time that failed once");
    scene.assert_over("after a time that failed once");
}

#[test]
fn a_header_of_another_generation_cannot_tell_and_is_decided_by_who_says_it() {
    let scene = of("commit").interrupted();
    let header = scene.session().join("session.json");
    scene.shell(&format!("sed -i 's/\"generation\":0/\"generation\":7/' {}", header.display()));
    scene.assert_undecided("another generation");
    scene.recover("--undo").ok();
    scene.assert_undone("undone");
    assert_eq!(scene.status(), "pending");
    scene.assert_over("undone");
    ["commit", "rollback"].into_iter().for_each(|verb| drop(scene.ok(verb)));
}

/// The header's name was lost in a power cut, the manifest's and the line of the log were not.
#[test]
fn what_only_the_log_and_the_manifest_say_was_sealed_is_undone_and_the_log_says_so() {
    for verb in ["commit", "rollback"] {
        let scene = of(verb);
        let (header, manifest) = ("session.json", "checkpoint/manifest.jsonl");
        let read = |name: &str| std::fs::read(scene.session().join(name)).ok();
        let (header_before, manifest_before) = (read(header).expect("a header"), read(manifest));
        scene.cut_before(scene.step("openat ", "log.jsonl") + 2);
        assert_ne!(read(manifest), manifest_before, "it has its name");
        std::fs::write(scene.session().join(header), header_before).expect("a write");
        let results = || {
            let said = scene.world.recant("log --json").ok().json();
            let of_it = |entry: &serde_json::Value| Some(entry["result"].as_str()?.to_string()).filter(|_| entry["verb"] == verb);
            said["entries"].as_array().expect("a log").iter().filter_map(of_it).collect::<Vec<_>>()
        };
        assert_eq!(results().first().map(String::as_str), Some("done"));
        // Others have written to the log meanwhile, and recovery is killed before each of its steps.
        (0..18).for_each(|_| {
            let other = scene.world.recant("session new").ok().stdout().trim().to_string();
            scene.world.recant(&format!("discard {other}"));
        });
        let said = steps().map(|n| scene.recover_with(format!("kill:{n}"))).find(|said| said.status != 137).expect("an end").ok();
        scene.assert_undone(&format!("{said}"));
        assert_eq!(results().iter().filter(|result| *result == "undone").count(), 1, "{said}");
        assert_eq!(read(manifest), manifest_before, "the former manifest is back");
        assert_eq!(results().first().map(String::as_str), Some("undone"), "{said}");
        scene.assert_over(verb);
        for verb in if verb == "commit" { ["commit", "rollback"] } else { ["rollback", "redo"] } {
            scene.ok(verb);
        }
        assert_eq!(results().first().map(String::as_str), Some("done"));
    }
}

#[test]
fn where_no_second_name_can_be_had_the_former_manifest_is_copied_and_is_never_a_part_of_it() {
    let scene = of("rollback");
    let link = scene.step("linkat ", ".old");
    let steps = |more: String| format!("fail:{link}:1{more}");
    // Unlink, make, write, sync, rename; then what comes after.
    for next in (1..=6).map(|k| link + k) {
        for more in [format!(";kill:{next}"), format!(";fail:{next}:28")] {
            scene.reset();
            let said = scene.run("rollback", steps(more.clone()));
            scene.world.recant("recover").ok();
            scene.assert_undone(&format!("{more}: {said}"));
            for verb in ["rollback", "redo"] {
                scene.ok(verb);
            }
            scene.assert_undone(&more);
            scene.assert_over(&more);
        }
    }
    scene.reset();
    scene.run("rollback", steps(String::new())).ok();
    scene.assert_over("copied");
    let directory = std::fs::read_dir(scene.session().join("checkpoint")).expect("a directory");
    let names: Vec<_> =
        directory.map(|entry| entry.expect("a name").file_name()).filter(|name| name != "blobs" && name != "objects").collect();
    assert_eq!(names, ["manifest.jsonl"]);
}

/// A power cut may leave the manifest of what was not sealed under the manifest's name. The copy of the former one is put back then.
#[test]
fn where_no_second_name_can_be_had_the_copy_is_what_an_undo_goes_by() {
    let scene = of("rollback");
    let link = scene.step("linkat ", ".old");
    let session = scene.session();
    let read = |name: &str| std::fs::read_to_string(session.join(name)).expect("a file of the session");
    let (header, manifest) = (read("session.json"), read("checkpoint/manifest.jsonl"));
    let seal = scene.seal();
    let next_is_named = (seal..seal + 20).any(|n| {
        scene.reset();
        let steps = format!("fail:{link}:1;kill:{n}");
        scene.run("rollback", steps).with(137);
        read("checkpoint/manifest.jsonl") != manifest
    });
    assert!(next_is_named);
    std::fs::write(session.join("session.json"), header).expect("the header as it was");
    let said = scene.world.recant("recover").ok();
    assert!(read("checkpoint/manifest.jsonl") == manifest, "{said}");
    scene.assert_undone(&format!("{said}"));
    scene.assert_over("the copy is put back");
    scene.ok("rollback");
    assert_eq!(scene.world.read("edited"), "old");
}

/// The last of all steps has swapped the names; the original does not lie in the checkpoint yet.
#[test]
fn what_has_not_come_home_is_not_finished() {
    let scene = Scene::of_a_file("old", false).expect("one file system").at("commit");
    let n = scene.step("renameat2 EXCHANGE", "tree/f") + 1;
    assert!(scene.steps[n - 1].contains("checkpoint/blobs"), "{}", scene.steps[n - 1]);
    scene.cut_before(n);
    assert_eq!(scene.world.read("f"), "new");
    scene.garble();
    let said = scene.recover("--finish").with(1);
    assert!(said.stdout().contains("--undo"), "{said}");
    scene.recover("--undo").ok();
    assert_eq!(scene.world.read("f"), "old");
    scene.world.assert_tidy("undone");
}

/// Killed before any step, then the header is garbled: whichever of the two is asked for first, it is done, or refused in favour of
/// the other one; and whatever comes of it, nothing is lost.
#[test]
fn a_header_garbled_at_any_moment_loses_nothing() {
    garbled_at_any_moment(false);
}

#[test]
fn so_it_is_with_a_garbled_header_between_two_file_systems() {
    garbled_at_any_moment(true);
}

fn garbled_at_any_moment(two: bool) {
    for verb in ["commit", "rollback"] {
        for (first, second) in [("--finish", "--undo"), ("--undo", "--finish")] {
            let Some(scene) = on(verb, two) else { return };
            let journaled = scene.step("renameat ", &format!("journals/{}.new", scene.id));
            let names_manifest = scene.step("renameat ", "manifest.jsonl.new");
            // What is not done is not finished, and what is settled is not undone.
            let is_act = |step: &String| step.starts_with("renameat2 ") || step.starts_with("fchmodat ");
            let acts = scene.steps[..scene.seal()].iter().rposition(is_act).expect("a step that does something") + 1;
            let settles = *numbers(&scene.steps, "unlinkat ", ".old").last().expect("the former manifest goes");
            let from = scene.status();
            scene.ok(verb);
            let (after, ends) = (calm(&scene.world.manifest()), (from, scene.status()));
            let (back, again) = if verb == "commit" { ("rollback", "commit") } else { ("redo", "rollback") };
            for n in steps().filter(|n| *n >= journaled) {
                scene.reset();
                let killed = scene.run(verb, format!("kill:{n}"));
                if killed.status != 137 || scene.world.journals().is_empty() {
                    assert!(n > names_manifest, "{verb}: {killed}");
                    break;
                }
                scene.garble();
                scene.assert_undecided(&format!("{verb}, killed before step {n}"));
                let mut said = scene.recover(first);
                let refused = said.status == 1;
                let done = if refused { second } else { first };
                if refused {
                    assert!(said.stdout().contains(second), "{verb}, killed before step {n}, {first}: {said}");
                    said = scene.recover(second);
                }
                let what = format!("{verb}, killed before step {n}, {done}: {said}");
                assert_eq!(said.status, 0, "{what}");
                assert_eq!(refused, if first == "--finish" { n <= acts } else { n > settles }, "{what}");
                scene.assert_over(&what);
                let is_after = done == "--finish";
                assert_eq!(&scene.status(), if is_after { &ends.1 } else { &ends.0 }, "{what}");
                let wanted = if is_after { after.clone() } else { calm(&scene.before) };
                wanted.assert_same(&calm(&scene.world.manifest()), &what);
                for verb in if is_after { [back, again] } else { [verb, back] } {
                    let said = scene.call(verb).run();
                    assert_eq!(said.status, 0, "{what}\nthen {said}");
                }
                wanted.assert_same(&calm(&scene.world.manifest()), &what);
            }
        }
    }
}

/// Killed while copies were made beside the targets; then the session goes, as its header is garbled.
#[test]
fn what_was_made_ready_for_a_session_that_is_gone_is_removed_too() {
    let Some(scene) = on("commit", true) else { return };
    let n = scene.step("renameat ", &format!("journals/{}.new", scene.id));
    let temporary = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(".recant-");
    let ready =
        || std::fs::read_dir(scene.world.tree()).expect("a directory").flatten().filter(|it| temporary(&it.file_name())).count();
    // The journal under its temporary name counts: before that it is not whole.
    let n = (1..n).rev().find(|n| {
        scene.reset();
        scene.cut_before(*n);
        !scene.store.join("journals").join(format!("{}.new", scene.id)).exists()
    });
    assert!(n.is_some() && ready() > 1, "{n:?}");
    scene.garble();
    scene.world.recant(&format!("prune --sessions {} -y", scene.id)).ok();
    scene.world.recant("recover").ok();
    assert_eq!(ready(), 0);
    scene.assert_undone("the tree");
    scene.assert_over("pruned");
}

/// A directory that somebody has made where one was deleted is his: nothing of the deleted one is put into it.
#[test]
fn what_lay_in_a_deleted_directory_is_put_into_none_that_somebody_made_in_its_place() {
    for two in [false, true] {
        let Some(scene) = on("commit", two).map(Scene::interrupted) else { continue };
        let (world, id) = (&scene.world, &scene.id);
        world.write("full/his", "his");
        let said = world.recant("recover").with(4);
        for name in ["full", "full/a"] {
            assert!(said.stdout().contains(&world.path(name).display().to_string()), "{name}: {said}");
        }
        assert!(!world.exists("full/a") && world.read("full/his") == "his", "{two}: {said}");
        assert_eq!(world.read("edited"), "old", "the rest is taken back");
        let full = world.path("full").display().to_string();
        let way = format!("\nafter you move away what is there, recant rollback {} {full} --force ", &id[16..]);
        assert!(said.stdout().contains(&way), "{said}");
        // Once he has moved his own away, that goes back too.
        std::fs::rename(world.path("full"), world.root().join("his")).expect("it is moved away");
        world.recant(&format!("rollback {id} --force")).ok();
        scene
            .before
            .clone()
            .without_directory_times()
            .assert_same(&world.manifest().without_directory_times(), &format!("{two}"));
    }
}

/// So it is where a file took the directory's place, and somebody made a directory of that.
#[test]
fn what_lay_in_a_replaced_directory_is_put_into_none_that_somebody_made_in_its_place() {
    let mut scene = Scene::new(false).expect("one file system");
    scene.world.write("full/a", "1").write("edited", "old");
    scene.begin(["write full a file", "write edited new"]);
    let scene = scene.at("commit").interrupted();
    scene.world.remove("full").write("full/his", "his");
    let said = scene.recover("").with(4);
    let is_his = !scene.world.exists("full/a") && scene.world.read("full/his") == "his";
    assert!(is_his && scene.world.read("edited") == "old", "{said}");
}

/// A call that fails decides nothing.
#[test]
fn what_cannot_be_read_is_undone_once_it_can_be() {
    if std::process::Command::new("strace").arg("-V").output().is_err() {
        return common::skip("a file that cannot be read at a recovery: no strace");
    }
    let scene = of("commit").interrupted();
    let path = scene.world.path("edited").display().to_string();
    let words = ["-f", "-qq", "-o", "/dev/null", "-P", &path, "-e", "trace=pread64", "-e", "inject=pread64:error=EIO"];
    let said = scene.world.program("strace", [&words[..], &[common::recant(), "recover"]].concat()).run().with(7);
    assert!(said.stdout().contains("edited: cannot read: input/output error"), "{said}");
    scene.world.recant("recover").ok();
    scene.assert_undone("when it can be read again");
    scene.assert_over("when it can be read again");
}

/// Two names of one file, of which a kill let one be put, and somebody wrote to that: both are put then, as the settings file is one. Where somebody
/// has taken the other name, what was held for it is lost, and said to be.
#[test]
fn a_file_that_was_put_under_one_of_its_names_and_edited_is_put_under_all() {
    let staged = || {
        let world = World::new();
        world.write("one", "old").write("deep", "a file");
        let run = "rm one deep; mkdir deep; printf new > one; ln one deep/two; ln one three; printf calm > calm";
        world.call(["run", "--session", "links", "--", "sh", "-c", run]).run().ok();
        world
    };
    let world = staged();
    let n = numbers(&steps_of(|| world.call(["commit", "links"])), "renameat2", "/tree/")[0];
    let mut joined = 0;
    for (taken, n) in
        [false, true].into_iter().flat_map(|taken| (n + 1..n + 8).map(move |n| (taken, n))).filter(|(_, n)| is_due(*n))
    {
        let world = staged();
        world.call(["commit", "links"]).env("RECANT_STEPS", format!("kill:{n}")).run().with(137);
        let is_put = |name: &&str| world.exists(name) && world.path(name).is_file() && world.read(name) == "new";
        let Some(at) = ["one", "deep/two", "three"].into_iter().find(is_put) else { continue };
        world.program("sh", ["-c", &format!("printf theirs >> {at}")]).cwd(world.tree()).run().ok();
        let takes = taken && !world.exists("three");
        if takes {
            world.write("three", "his");
        }
        joined += usize::from(!world.exists("three"));
        let said = world.recant("recover").with(4);
        let what = format!("killed before step {n}, {at} edited, taken: {takes}: {said}");
        let names = if takes { vec!["one", "deep/two"] } else { vec!["one", "deep/two", "three"] };
        for name in names {
            assert_eq!(world.read(name), "newtheirs", "{name}: {what}");
        }
        assert!(!world.exists("calm"), "the rest is undone: {what}");
        assert!(!takes || world.read("three") == "his" && said.stdout().contains("three ("), "{what}");
        // What is left of it goes both ways, and nothing is called damaged.
        let rest = world.recant("commit links");
        assert!(matches!(rest.status, 0 | 4) && world.read("calm") == "calm", "{what}\n{rest}");
        if takes {
            world.remove("three");
        }
        let back = world.recant("rollback links --force");
        assert!(matches!(back.status, 0 | 4), "{what}\n{back}");
        assert!(world.read("one") == "old" && world.read("deep") == "a file" && !world.exists("three"), "{what}\n{back}");
    }
    assert!(joined > 0 || !is_whole());
}

/// What was beside a path to be swapped with it goes with their directory; the store has a copy of either.
#[test]
fn what_went_with_its_directory_can_be_had_again_between_two_file_systems() {
    for verb in ["commit", "rollback"] {
        let Some(scene) = on(verb, true) else { return };
        let swap = scene.step("renameat2 EXCHANGE", "in/edited");
        for killed_before in [swap, swap + 1] {
            scene.reset();
            scene.cut_before(killed_before);
            let what = format!("{verb} killed before step {killed_before}");
            let swapped = scene.world.read("in/edited") == if verb == "commit" { "new" } else { "old" };
            assert_eq!(swapped, killed_before > swap, "{what}");
            scene.world.remove("in");
            let said = scene.recover("").with(4);
            assert!(format!("{said}").contains("in/edited") && format!("{said}").contains("displaced/"), "{what}: {said}");
            scene.assert_over(&what);
            assert_eq!(scene.displaced("in/edited"), if verb == "commit" { "old" } else { "new" }, "{what}: {said}");
            let path = scene.world.path("in/edited").display().to_string();
            if verb == "commit" {
                assert_eq!(scene.world.recant(&format!("cat {} {path}", scene.id)).ok().stdout(), "new", "{what}: {said}");
            } else {
                scene.world.mkdir("in");
                let again = scene.ok("rollback --force");
                assert_eq!(scene.world.read("in/edited"), "old", "{what}: {said} {again}");
            }
        }
    }
}

/// Neither a manifest that has not got its name yet, nor an original that is on its way, is damage.
#[test]
fn readers_call_an_operation_that_was_cut_off_interrupted_and_never_damage() {
    let looks = ["diff ID", "cat ID edited", "cat ID edited --before", "cat ID new", "checkpoint verify", "checkpoint show ID"];
    for verb in ["commit", "rollback"] {
        let scene = of(verb);
        let reset = || {
            scene.reset();
            Some(())
        };
        let row = Sweep { name: verb, scene: &reset, verb: &|()| scene.call(verb), order: "kill:N" };
        let tally = row.run(|(), said, what| {
            let mut refused = 0;
            for look in looks {
                let looked = scene.world.recant(&look.replace("ID", &scene.id));
                let (text, what) = (looked.stderr(), format!("{what}{look}: {looked}"));
                match looked.status {
                    0 => {}
                    1 => assert!(look.starts_with("checkpoint show") && verb == "commit", "{what}"),
                    7 => assert!(
                        text.contains(&format!("recant recover {}", scene.id)) || text.contains("is not recovered"),
                        "{what}"
                    ),
                    _ => panic!("{what}"),
                }
                assert!(!text.contains("damaged") && !text.contains("missing"), "{what}");
                refused += i32::from(looked.status == 7);
            }
            assert!(said.status == 137 || refused == 0, "{what}");
            Came::Used(refused > 0)
        });
        tally.saw(true, 10);
        scene.world.recant("recover").ok();
        scene.world.recant("checkpoint verify").ok();
    }
    let scene = of("rollback");
    scene.ok("rollback");
    scene.ok("discard --now -y");
    let said = scene.world.call(["cat", &scene.id, "new"]).run().with(1);
    assert!(said.stderr().contains("is discarded"), "{said}");
}

/// Whatever somebody does to what was put there is his, also where neither size nor time nor mode tells of it. What goes on with that gives
/// all else back, the times of directories too.
#[test]
fn what_somebody_does_to_a_path_between_a_kill_and_the_recovery_is_named_and_stays() {
    // Old enough that the fingerprints are not doubtful.
    let rewrite = "touch -r tree/F ref; sleep 0.1; tr a-z A-Z < tree/F > upper; cat upper > tree/F; touch -r ref tree/F";
    let (attribute, append) = ("setfattr -n user.mine -v 1 tree/F", "printf theirs >> tree/F");
    let (replace, remove) = ("printf theirs > t; mv t tree/F", "rm tree/F");
    for (verb, name, deeds) in [
        ("commit", "edited", &[attribute, rewrite, append][..]),
        ("commit", "new", &[attribute, rewrite]),
        ("commit", "in/edited", &[append]),
        ("commit", "moded", &[replace, remove]),
        ("rollback", "edited", &[attribute, rewrite, append]),
        ("rollback", "gone", &[attribute, rewrite]),
        ("rollback", "in/edited", &[append]),
    ] {
        for deed in deeds {
            let scene = of(verb).interrupted();
            scene.shell(&deed.replace("tree/F", &format!("tree/{name}")));
            let theirs = scene.world.manifest().0.get(name.as_bytes()).cloned();
            // What is gone is nobody's to be asked about, where metadata alone was set.
            let said = scene.recover("").with(if theirs.is_some() { 4 } else { 0 });
            let what = format!("{verb}, {name}, {deed}: {said}");
            assert_eq!(said.stdout().contains(&format!("{} (", scene.world.path(name).display())), theirs.is_some(), "{what}");
            assert_eq!(scene.world.manifest().0.get(name.as_bytes()), theirs.as_ref(), "{what}");
            assert_eq!(scene.world.read("calm"), if verb == "commit" { "old" } else { "new" }, "all else is undone: {what}");
            scene.assert_over(&what);
            let Some(theirs) = theirs else { continue };
            let on = scene.call(&format!("{} --force", onward(verb))).run();
            let kept = scene.displaced(name);
            let is_on_tree = scene.world.manifest().0.get(name.as_bytes()).is_some_and(|row| row.content == theirs.content);
            assert!(*deed == attribute || is_on_tree || theirs.content == format!("file \"{kept}\""), "{what}{on}");
            if *deed == append {
                scene.before.assert_same(&scene.world.manifest(), &what);
            }
            let again = scene.call(verb).run();
            assert_ne!(again.status, 5, "no content that somebody changed is held: {what}{again}");
        }
    }
}

/// What is missing of the manifest when it is settled is taken from the former one, as long as that is kept.
#[test]
fn a_manifest_that_is_missing_when_a_second_part_is_settled_keeps_the_lines_of_the_first() {
    let scene = of("commit");
    assert_eq!(scene.world.commit_half(&scene.id, &["edited"], false), 0);
    let second = numbers(&scene.steps("commit"), "renameat ", "checkpoint/manifest.jsonl.new");
    scene.cut_before(second[0]);
    std::fs::remove_file(scene.session().join("checkpoint/manifest.jsonl")).expect("the manifest");
    scene.world.recant("recover").ok();
    scene.ok("rollback");
    scene.before.assert_same(&scene.world.manifest(), "rolled back");
}

/// A journal that somebody gave another session's name to would have its objects looked for in that one.
#[test]
fn a_journal_of_another_session_is_taken_for_nobodys() {
    let scene = of("commit");
    let other = scene.world.begin();
    let scene = scene.interrupted();
    let journals = scene.store.join("journals");
    let [of_it, of_other] = [&scene.id, &other].map(|id| journals.join(id));
    std::fs::rename(&of_it, &of_other).expect("a journal");
    let before = scene.world.manifest();
    let said = scene.world.recant("recover").with(5);
    assert!(said.stdout().contains("it is another session's"), "{said}");
    before.assert_same(&scene.world.manifest(), "nothing is touched");
    std::fs::rename(&of_other, &of_it).expect("a journal");
    scene.recover("").ok();
    scene.before.assert_same(&scene.world.manifest(), "undone");
}

/// Where no room can be kept for the way back there is none: it is not begun. A file system that keeps none at all promises nothing.
#[test]
fn a_commit_for_whose_rollback_no_room_can_be_kept_is_not_begun() {
    let scene = of("commit");
    let n = scene.step("fallocate", "");
    for (error, status) in [(28, 1), (95, 0)] {
        scene.reset();
        let said = scene.run("commit", format!("fail:{n}:{error}")).with(status);
        assert_eq!(said.stderr().contains("keep room for a rollback"), status == 1, "{said}");
        assert_eq!(scene.world.read("edited"), if status == 1 { "old" } else { "new" }, "{said}");
        scene.assert_over(&format!("{said}"));
    }
}

/// It is held with the metadata of when it was written, and put with that which it got later: the undo has to know it by the latter.
#[test]
fn what_was_put_with_other_metadata_than_it_was_held_with_is_taken_back() {
    let mut scene = Scene::new(false).expect("one file system");
    scene.world.write("edited", "old").write("calm", "old");
    scene.begin([]);
    for name in ["edited", "made"] {
        scene.world.stage_write(&scene.id, name, "new");
        scene.world.recant(&format!("session chmod {} 0640 {name}", scene.id)).ok();
    }
    let held = format!("chmod 0600 {}/held/objects/*", scene.session().display());
    let all_is_put = steps().any(|n| {
        // What is made ready keeps the metadata that it got for that.
        scene.shell(&held);
        scene.kill_before("commit", n);
        let all_is_put = scene.world.read("edited") == "new" && scene.world.exists("made");
        let said = scene.world.recant("recover").ok();
        scene.assert_undone(&format!("killed before step {n}: {said}"));
        scene.world.assert_tidy("recovered");
        all_is_put
    });
    assert!(all_is_put);
}

/// What is kept for the rollback of all that is in is no less than what that writes before its seal, and not many times as much.
#[test]
fn the_reserve_has_the_room_that_a_rollback_of_all_that_is_in_takes() {
    let mut scene = Scene::new(false).expect("one file system");
    for n in 0..600 {
        scene.world.write(format!("{}/{}", if n < 300 { "a" } else { "b" }, n % 300), "old");
    }
    scene.begin(["delete a", "delete b"]);
    let size = |path: &Path| path.metadata().map_or(0, |meta| meta.len());
    for (words, what) in
        [("commit ID a", "a part"), ("commit ID b", "the other part as well"), ("rollback ID a/7", "all but one")]
    {
        match words.strip_prefix("commit ID ") {
            Some(path) => assert_eq!(scene.world.commit_half(&scene.id, &[path], false), 0),
            None => drop(scene.world.recant(&words.replace("ID", &scene.id)).ok()),
        }
        let session = scene.session();
        let kept: u64 = ["reserve", "reserve.3"].map(|name| size(&session.join(name))).iter().sum();
        scene.kill_before("rollback", seal(&scene.steps("rollback")));
        let of_it = ["session.json.new", "checkpoint/manifest.jsonl.new"].map(|name| size(&session.join(name)));
        let written = of_it.iter().sum::<u64>() + size(&scene.store.join("journals").join(&scene.id));
        assert!(written > 100_000, "{what}: {written} bytes");
        assert!(kept >= written && kept < 8 * written, "{what}: {kept} bytes are kept for {written}");
        scene.reset();
    }
}

/// A session of a run that knows no hash yet, and its changes.
fn without_hashes() -> Option<(Scene, Vec<u8>)> {
    let mut scene = Scene::new(false)?;
    scene.world.write("edited", "old").write("gone", "away");
    until_old(&scene.world, "gone");
    let said = scene.world.call(["run", "--", "sh", "-c", "echo new > edited; rm gone"]).run();
    if said.status == 125 {
        common::skip("files of which a run knows no hash: recant run does not work here");
        return None;
    }
    scene.id = scene.world.recant("list --json").ok().rows()[0]["id"].as_str().expect("its id").to_owned();
    let changes = std::fs::read(scene.session().join("changes.jsonl")).expect("its changes");
    Some((scene, changes))
}

/// A power cut may take back the name of `changes.jsonl` where it has the hashes, and leave all that was done after it on another file
/// system.
#[test]
fn what_was_taken_back_can_be_committed_again_though_its_hashes_had_not_got_their_name() {
    let row = Sweep {
        name: "commit",
        scene: &|| without_hashes().map(|(scene, changes)| (scene.world.manifest(), scene, changes)),
        verb: &|(_, scene, _)| scene.call("commit"),
        order: "kill:N",
    };
    let tally = row.run(|(before, scene, changes), _, what| {
        let is_journaled = scene.world.journals().contains(&scene.id);
        if scene.status() == "pending" || is_journaled {
            std::fs::write(scene.session().join("changes.jsonl"), &*changes).expect("without hashes");
        }
        let said = scene.world.recant("recover").ok();
        let is_settled = scene.status() == "committed";
        if is_settled {
            scene.ok("rollback");
        }
        before.assert_same(&scene.world.manifest(), &format!("{what}: {said}"));
        if !is_settled {
            scene.ok("commit");
        }
        Came::Used(if is_journaled { if is_settled { "settled" } else { "undone" } } else { "no journal" })
    });
    tally.saw("undone", 4).saw("settled", 2);
}

/// The lines that it learns again are written before anything is undone: a recovery that is killed there begins once more.
#[test]
fn a_recovery_killed_while_it_learns_hashes_again_is_ended_by_the_next_one() {
    let Some((scene, _)) = without_hashes() else { return };
    let sealed = seal(&steps_of(|| scene.call("commit")));
    let row = Sweep {
        name: "recovery that learns hashes",
        scene: &|| {
            let (scene, changes) = without_hashes()?;
            let before = scene.world.manifest();
            // All is on the tree, and nothing sealed.
            scene.kill_before("commit", sealed);
            assert!(scene.world.journals().contains(&scene.id) && scene.status() == "pending", "it is interrupted");
            std::fs::write(scene.session().join("changes.jsonl"), changes).expect("without hashes");
            Some((scene, before))
        },
        verb: &|(scene, _)| scene.world.call(["recover"]),
        order: "kill:N",
    };
    let tally = row.run(|(scene, before), _, what| {
        let said = scene.world.recant("recover").ok();
        before.assert_same(&scene.world.manifest(), &format!("{what}{said}"));
        scene.world.assert_tidy(what);
        scene.ok("commit");
        Came::Used(())
    });
    assert!(tally.steps > 5, "{} steps", tally.steps);
}

/// F13: after a cut a file system may show a file in a new directory again that an undo has taken out of it.
#[test]
fn a_name_that_comes_back_into_a_new_directory_is_nobodys() {
    let staged = || {
        let mut scene = Scene::new(false)?;
        scene.begin(["write d/e the held one"]);
        Some(scene)
    };
    let sealed = seal(&staged().expect("one file system").steps("commit"));
    let row = Sweep {
        name: "recovery",
        scene: &|| staged().inspect(|scene| scene.kill_before("commit", sealed)),
        verb: &|scene| scene.world.call(["recover"]),
        order: "kill:N",
    };
    let tally = row.run(|scene, said, what| {
        let back = "set -- $(find held -type f -exec grep -l 'the held one' {} +); \
                    for d in held/objects/*/; do test -d $d && test -n \"$1\" && ln $1 ${d}e && echo $d; done; true";
        let brought_back = || scene.world.program("sh", ["-c", back]).cwd(scene.session()).run().ok().stdout();
        let linked = if said.status == 137 { brought_back() } else { String::new() };
        let recovered = scene.world.recant("recover").ok();
        assert!(!format!("{recovered}").contains("worked in the directory"), "{what}, {linked}: {recovered}");
        scene.ok("commit");
        assert_eq!(scene.world.read("d/e"), "the held one", "{what}, {linked}");
        scene.ok("rollback");
        scene.world.assert_tidy(what);
        Came::Used(!linked.is_empty())
    });
    tally.saw(true, 3);
}

/// A commit of another mode for a file `f` alone.
fn moded() -> Option<Scene> {
    let mut scene = Scene::new(false)?;
    scene.world.write("f", "old\n").set_mtime("f", 1_500_000_000, 0);
    scene.begin(["chmod 600 f"]);
    Some(scene)
}

/// The undo sets its mode, and leaves what is his: the content, and the time of that.
#[test]
fn what_is_written_after_a_kill_into_a_file_that_changes_by_metadata_alone_keeps_its_time() {
    let row = Sweep { name: "commit", scene: &moded, verb: &|scene| scene.call("commit"), order: "kill:N" };
    let tally = row.run(|scene, said, what| {
        let state = || scene.world.manifest().0[&b"f"[..]].clone();
        let was_set = state().mode == 0o600;
        scene.world.write("f", "old\nmine\n");
        let written = state().mtime;
        let recovered = scene.world.recant("recover").ok();
        let is_done = said.status == 0 || scene.status() == "committed";
        let wanted = (written, if is_done { 0o600 } else { 0o644 }, "old\nmine\n".into());
        assert_eq!((state().mtime, state().mode, scene.world.read("f")), wanted, "{what}: {recovered}");
        Came::Used(was_set && !is_done)
    });
    tally.saw(true, 1);
}

/// Of an ACL chmod changes the mask, and no more.
#[test]
fn an_acl_that_somebody_sets_after_a_kill_is_named() {
    let acl = |scene: &Scene, words: &str| {
        scene.world.program("sh", ["-c", &format!("setfacl {words} f")]).cwd(scene.world.tree()).run().status == 0
    };
    let with_acl = || {
        let mut scene = Scene::new(false)?;
        scene.world.write("f", "old");
        if !acl(&scene, "-m u:1:rw") {
            common::skip("an ACL that somebody sets: none here");
            return None;
        }
        scene.begin(["chmod 600 f"]);
        Some(scene)
    };
    let row = Sweep { name: "commit", scene: &with_acl, verb: &|scene| scene.call("commit"), order: "kill:N" };
    let tally = row.run(|scene, said, what| {
        let was_set = scene.world.manifest().0[&b"f"[..]].mode == 0o600;
        assert!(acl(scene, "--set u::rw,g::-,o::-,u:2:r,m::-"), "{what}");
        let set = scene.world.manifest();
        let recovered = scene.world.recant("recover");
        if was_set {
            set.assert_same(&scene.world.manifest(), &format!("{what}: {recovered}"));
        }
        Came::Used(said.status == 137 && was_set && recovered.status == 4)
    });
    tally.saw(true, 1);
}

/// A prune may take what the recovery needs, and would count what is half done as it is.
#[test]
fn every_prune_recovers_first() {
    for words in ["prune -y", "prune --snapshots --keep 99", "prune --sessions --keep 99 -y", "prune --checkpoints --keep 99 -y"]
    {
        let scene = Scene::of_a_file("old", false).expect("one file system");
        scene.world.recant("snapshot create").ok();
        let scene = scene.at("commit").interrupted();
        assert_eq!(scene.world.read("f"), "new");
        let said = scene.world.recant(words).ok();
        assert!(said.stderr().contains("interrupted commit of session"), "{words}: {said}");
        assert_eq!(scene.world.journals().len(), 0, "{words}: {said}");
        assert_eq!(scene.world.read("f"), "old", "{words}");
    }
}

/// Of what force found a part can stay alone: what it makes the session's before may not contradict what was undone.
#[test]
fn what_force_has_found_contradicts_nothing_where_the_rest_is_undone() {
    let mut left = 0;
    for n in steps() {
        let world = World::new();
        world.mkdir("d").write("d/c", "c").write("d/f", "f");
        let id = world.begin();
        world.call(["session", "write", "-r", &id, "d"]).stdin("new").run().ok();
        std::fs::rename(world.path("d"), world.path("real")).unwrap();
        world.symlink("real", "d");
        let steps = format!("kill:{n}");
        if world.call(["commit", &id, "--force"]).env("RECANT_STEPS", steps).run().status != 137 {
            break;
        }
        if world.path("d").symlink_metadata().is_ok() {
            world.remove("d");
        }
        world.symlink(".", "d");
        left += i32::from(world.recant("recover").status == 4);
        world.call(["show", &id, "--json"]).run().ok();
    }
    assert!(left > 0 || !is_whole(), "nothing was left anywhere");
}
