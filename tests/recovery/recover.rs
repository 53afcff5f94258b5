//! What comes of an interrupted operation where somebody was at work before it was undone: his paths stay, the rest is undone, and a later
//! verb goes on with them; also when the recovery is itself killed before any step. And a header that cannot tell whether it was done:
//! `recant recover ID --undo | --finish` says it.

use std::path::Path;

use crate::common::{self, Manifest, Said, World};

/// A session with every kind of step, killed when all of it was on the tree and nothing was sealed.
struct Scene {
    world: World,
    id: String,
    verb: &'static str,
    before: Manifest,
    _elsewhere: Option<tempfile::TempDir>,
}

impl Scene {
    fn new(verb: &'static str, two_file_systems: bool) -> Self {
        let shm = Path::new("/dev/shm");
        let mut world = if shm.is_dir() { World::on(shm) } else { World::new() };
        let elsewhere = two_file_systems.then(|| tempfile::tempdir().expect("a directory of another file system"));
        if let Some(elsewhere) = &elsewhere {
            world.set("RECANT_STORE", elsewhere.path().join("store"));
        }
        world
            .write("edited", "old")
            .write("gone", "away")
            .write("moded", "x")
            .write("calm", "old")
            .write("full/a", "1")
            .write("in/edited", "old");
        let id = world.begin();
        for name in ["edited", "calm", "new", "made/deep/new", "in/edited"] {
            world.stage_write(&id, name, "new");
        }
        for words in ["delete ID gone", "chmod ID 0640 moded", "delete ID full -r"] {
            world.recant(&format!("session {}", words.replace("ID", &id))).ok();
        }
        if verb == "rollback" {
            world.recant(&format!("commit {id}")).ok();
        }
        let before = world.manifest();
        Self { world, id, verb, before, _elsewhere: elsewhere }
    }

    /// Kills the verb before its seal.
    fn interrupted(self) -> Self {
        let n = self.step_of("renameat ", "session.json.new");
        self.kill_before(n);
        self
    }

    /// The number of the first step of this kind.
    fn step_of(&self, call: &str, name: &str) -> usize {
        self.steps_of(call, name)[0]
    }

    fn steps_of(&self, call: &str, name: &str) -> Vec<usize> {
        let log = self.world.root().join("steps");
        self.keep();
        self.world.call([self.verb, &self.id]).env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
        let steps = std::fs::read_to_string(&log).expect("a log of steps");
        std::fs::remove_file(log).expect("the log");
        self.reset();
        let of_it = |(_, step): &(usize, &str)| step.contains(call) && step.contains(name);
        let found: Vec<_> = steps.lines().enumerate().filter(of_it).map(|(at, _)| at + 1).collect();
        assert!(!found.is_empty(), "no {call}{name} in\n{steps}");
        found
    }

    /// Tree and store as they are now are what [`Self::reset`] gives back.
    fn keep(&self) {
        self.shell(&format!("rm -rf saved && mkdir saved && cp -a tree {} saved", self.store().display()));
    }

    fn reset(&self) {
        self.shell(&format!("rm -rf tree {0} && cp -a saved/tree . && cp -a saved/store {0}", self.store().display()));
    }

    fn store(&self) -> std::path::PathBuf {
        self._elsewhere.as_ref().map_or_else(|| self.world.store(), |elsewhere| elsewhere.path().join("store"))
    }

    fn kill_before(&self, n: usize) {
        let killed = self.world.call([self.verb, &self.id]).env("RECANT_STEPS", format!("kill:{n}")).run();
        assert_eq!(killed.status, 137, "{killed}");
    }

    /// The operation cut off there, somebody at work since, and a recovery killed before its step `n`.
    fn kill_recovery(&self, killed_before: usize, n: usize) -> Said {
        self.reset();
        self.kill_before(killed_before);
        self.disturb();
        if self._elsewhere.is_some() {
            self.shell("rm -f tree/made/deep/put");
        }
        self.world.call(["recover", &self.id]).env("RECANT_STEPS", format!("kill:{n}")).run()
    }

    fn shell(&self, command: &str) {
        self.world.program("sh", ["-c", command]).cwd(self.world.root()).run().ok();
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

    fn recover(&self, how: &str) -> Said {
        self.world.recant(&format!("recover {} {how}", self.id))
    }

    fn displaced(&self, name: &str) -> String {
        let path = self.world.path(name).display().to_string();
        let said = self.world.call(["cat", &self.id, &path, "--displaced"]).run();
        if said.status == 0 { said.stdout() } else { format!("{said}") }
    }

    /// The paths and modes of what force has overwritten, as its manifest has them.
    fn overwritten(&self) -> Vec<(String, String)> {
        let directories =
            std::fs::read_dir(self.store().join("sessions").join(&self.id).join("displaced")).expect("what is kept");
        let manifests = directories
            .filter_map(|directory| std::fs::read_to_string(directory.expect("a directory").path().join("manifest.jsonl")).ok());
        let lines: Vec<serde_json::Value> = manifests
            .flat_map(|text| text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<_>>())
            .collect();
        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        let row = |line: &serde_json::Value| Some((text(&line["original"]["path"])?, text(&line["original"]["state"]["mode"])?));
        lines.iter().filter_map(row).collect()
    }

    /// What the log says last.
    fn noted(&self) -> String {
        let log = self.world.recant("log --json").ok().json();
        ["verb", "result"].map(|key| log["entries"][0][key].as_str().unwrap_or_default().to_owned()).join(" ")
    }

    fn status(&self) -> String {
        self.world.status(&self.id)
    }

    fn assert_over(&self, what: &str) {
        self.world.assert_tidy(what);
        let said = self.world.recant("recover").ok();
        assert!(said.stderr().contains("nothing was interrupted"), "{what}: {said}");
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
        let scene = Scene::new(verb, two).interrupted().disturbed();
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
        calm(&scene.before).assert_same(&calm(&scene.world.manifest()), &format!("{what}\n{on}"));
        assert_eq!(scene.displaced("edited"), "theirs", "{what}\n{on}");
        let appended = if verb == "commit" { "new" } else { "gone" };
        assert!(scene.displaced(appended).ends_with("theirs"), "{what}\n{on}");
        let (_, moded) = scene.overwritten().into_iter().find(|(path, _)| path.ends_with("/moded")).expect("what it had");
        assert_eq!(moded, "0604", "{what}: metadata is kept as it was found");
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
        let scene = Scene::new(verb, false).interrupted().disturbed();
        let said = scene.world.recant(&format!("{verb} {}", scene.id)).with(4);
        assert!(said.stderr().contains("could not be undone at"), "{said}");
        assert!(said.stderr().contains("nothing else was changed"), "{said}");
        assert_eq!(scene.world.read("calm"), if verb == "commit" { "old" } else { "new" }, "{said}");
        scene.assert_over(verb);
        // What is in conflict with nobody's work goes now.
        let calm = scene.world.path("calm").display().to_string();
        scene.world.recant(&format!("{verb} {} {calm}", scene.id)).ok();
        assert_eq!(scene.world.read("calm"), if verb == "commit" { "new" } else { "old" });

        let scene = Scene::new(verb, false).interrupted().disturbed();
        let said = scene.world.recant("session new").ok();
        assert!(said.stderr().contains("was undone except for") && !said.stdout().is_empty(), "{said}");
        assert!(said.stderr().contains(&scene.world.path("edited").display().to_string()), "{said}");
    }
}

/// What nothing can deal with any more is not named for ever.
#[test]
fn what_was_left_is_forgotten_where_its_checkpoint_is_pruned_or_the_session_discarded() {
    for (verb, status, words) in [("commit", "partial", "checkpoint prune ID -y"), ("rollback", "rolled_back", "discard ID -y")] {
        let world = World::new();
        world.write("calm", "old");
        let id = world.edited("edited");
        if verb == "rollback" {
            world.recant(&format!("commit {id}")).ok();
        } else {
            world.stage_write(&id, "calm", "new");
        }
        let scene = Scene { before: world.manifest(), world, id, verb, _elsewhere: None }.interrupted();
        let world = &scene.world;
        world.write("edited", "theirs");
        scene.recover("").with(4);
        let left = || {
            let header = std::fs::read_to_string(world.session(&scene.id).join("session.json")).expect("its header");
            let header: serde_json::Value = serde_json::from_str(&header).expect("JSON");
            (header["left"].as_array().map_or(0, Vec::len), world.recant("status --json").ok().json()["left"].clone())
        };
        assert_eq!(world.status(&scene.id), status);
        assert_eq!(left(), (1, serde_json::json!([scene.id])), "{verb}");
        world.recant(&words.replace("ID", &scene.id)).ok();
        assert_eq!(left(), (0, serde_json::json!([])), "{words}");
    }
}

/// As other lists do: the first twenty, and the command that tells the rest.
#[test]
fn many_paths_that_are_left_are_the_first_twenty_and_a_command_that_lists_them() {
    let scene = Scene::new("commit", false);
    scene.world.write("many/kept", "k");
    for n in 10..35 {
        scene.world.stage_write(&scene.id, format!("many/n{n}"), "new");
    }
    let seal = scene.step_of("renameat ", "session.json.new");
    let interrupt = || {
        scene.reset();
        scene.kill_before(seal);
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
    let scene = Scene::new("commit", false).interrupted();
    // A journal that cannot be undone as long as one of its directories is missing.
    let blobs = scene.store().join("sessions").join(&scene.id).join("checkpoint/blobs");
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
            assert!(said.contains(&format!("interrupted operation of session {held_by} holds it")), "{words}: {refused}");
            assert!(said.contains(&format!("recant recover {held_by}")), "{words}: {refused}");
        }
        before.assert_same(&world.manifest(), words);
        // The same paths but that one.
        world.recant(&format!("commit {id} aaa zzz")).ok();
        world.recant(&format!("rollback {id}")).ok();
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
    let mut wanted: Option<Manifest> = None;
    let scene = Scene::new(verb, two);
    let killed_before = scene.step_of("renameat ", "session.json.new");
    for n in common::steps().step_by(if two { 3 } else { 1 }) {
        let first = scene.kill_recovery(killed_before, n);
        let what = format!("{verb}, recovery killed before step {n}, two file systems: {two}: {first}");
        if first.status == 137 {
            let next = scene.world.recant("recover");
            // Behind the journal's end there is nothing to be said any more.
            assert!(next.status == 4 || next.stderr().contains("nothing was interrupted"), "{what}: {next}");
        } else {
            assert!(n > 30, "{what}");
        }
        let mut now = calm(&scene.world.manifest());
        now.0.values_mut().for_each(|row| row.mtime = (0, 0));
        wanted.get_or_insert(now.clone()).assert_same(&now, &what);
        let log = scene.world.recant("log --json").ok().json();
        let left = |entry: &&serde_json::Value| entry["result"] == "left" && entry["notes"].to_string().contains("/edited: ");
        assert!(log["entries"].as_array().expect("a log").iter().filter(left).count() == 1, "it is noted: {what}: {log}");
        scene.assert_over(&what);
        let on = scene.world.recant(&format!("{} {} --force", onward(verb), scene.id));
        assert!(matches!(on.status, 0 | 4), "{what}\n{on}");
        calm_but_put(&scene.before).assert_same(&calm_but_put(&scene.world.manifest()), &format!("{what}\n{on}"));
        assert_eq!(scene.displaced("edited"), "theirs", "{what}\n{on}");
        if first.status != 137 {
            println!("{verb}, two file systems: {two}: {} steps", n - 1);
            return;
        }
    }
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
        let scene = Scene::new(verb, true);
        let list = scene.store().join("journals").join(format!("{}.tmp", scene.id));
        let saved = scene.world.root().join("list");
        // It goes by the last of these that finds it.
        let keep = |n: usize| format!("run:{n}:cp {} {} || true", list.display(), saved.display());
        let keep: Vec<_> = scene.steps_of("unlinkat ", ".tmp").into_iter().map(keep).collect();
        scene.world.call([verb, &scene.id]).env("RECANT_STEPS", keep.join(";")).run().ok();
        let (done, held) = (scene.world.manifest(), common::manifest(&scene.store().join("sessions")));
        std::fs::copy(&saved, &list).expect("the list is back");
        let said = scene.world.recant("recover").ok();
        scene.assert_over(verb);
        done.assert_same(&scene.world.manifest(), &format!("{verb}: {said}"));
        held.without_directory_times()
            .assert_same(&common::manifest(&scene.store().join("sessions")).without_directory_times(), verb);
        scene.world.recant(&format!("{next} {}", scene.id)).ok();
    }
}

/// After a power cut it may have no other name. A smaller one, of what cannot be undone, is written under that very name.
#[test]
fn a_journal_under_its_temporary_name_stays_until_another_stands_for_it() {
    let scene = Scene::new("commit", false);
    let seal = scene.step_of("renameat ", "session.json.new");
    let recover = |steps: String| {
        scene.reset();
        scene.kill_before(seal);
        let journals = scene.store().join("journals");
        std::fs::rename(journals.join(&scene.id), journals.join(format!("{}.new", scene.id))).expect("another name");
        scene.disturb();
        scene.world.call(["recover"]).env("RECANT_STEPS", steps).run()
    };
    let log = scene.world.root().join("steps");
    recover(format!("log:{}", log.display())).with(4);
    let steps = std::fs::read_to_string(log).expect("a log of steps");
    let of_journals = steps.lines().enumerate().filter(|(_, step)| step.contains("/journals/"));
    let killed: Vec<usize> = of_journals.map(|(at, _)| at + 2).collect();
    assert!(killed.len() > 3, "{steps}");
    for n in killed {
        let said = recover(format!("kill:{n}")).with(137);
        let next = scene.recover("");
        let what = format!("killed before step {n}: {said}{next}");
        scene.assert_over(&what);
        scene.world.remove("made/deep/put");
        scene.world.recant(&format!("rollback {} --force", scene.id)).ok();
        calm(&scene.before).assert_same(&calm(&scene.world.manifest()), &what);
    }
}

#[test]
fn what_was_made_ready_for_a_session_that_is_gone_goes_where_it_still_lies() {
    let scene = Scene::new("commit", true);
    let all_ready = scene.step_of("", ".new");
    scene.kill_before(all_ready);
    assert!(scene.world.leftovers().iter().any(|name| name.starts_with("in/")), "{:?}", scene.world.leftovers());
    std::fs::remove_dir_all(scene.store().join("sessions").join(&scene.id)).expect("the session goes by hand");
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
        let scene = Scene::new(verb, false);
        let killed_before = scene.step_of(kill.0, kill.1);
        scene.kill_before(killed_before);
        let log = scene.world.root().join("steps");
        scene.world.call(["recover"]).env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
        let steps = std::fs::read_to_string(&log).expect("a log of steps");
        let of_it = |line: &&str| line.contains(step) && !line.contains("unlink");
        let n = steps.lines().filter(of_it).filter_map(|line| line.split(' ').next()).next_back();
        let n = n.unwrap_or_else(|| panic!("{step} in\n{steps}"));
        for words in [vec!["recover"], vec!["session", "new"]] {
            scene.reset();
            scene.kill_before(killed_before);
            let said = scene.world.call(words).env("RECANT_STEPS", format!("fail:{n}:28")).run().ok();
            assert!(said.stderr().contains(note), "{said}\n{steps}");
            scene.assert_over(note);
        }
        scene.reset();
        scene.kill_before(killed_before);
        let said = scene.world.call(["recover", "--json"]).env("RECANT_STEPS", format!("fail:{n}:28")).run().ok().json();
        assert!(said["recovered"][0]["notes"][0].as_str().is_some_and(|said| said.contains(note)), "{said}");
    }
}

/// What was recovered is said, whatever becomes of what is swept up beside it.
#[test]
fn a_recovery_is_said_though_what_was_half_made_cannot_be_swept_up() {
    let scene = Scene::new("commit", false);
    let killed_before = scene.step_of("renameat ", "session.json.new");
    let half_made =
        || std::fs::create_dir(scene.world.store().join("sessions/.new-20260301-101500-k3fa")).expect("a new directory");
    scene.kill_before(killed_before);
    half_made();
    let log = scene.world.root().join("steps");
    scene.world.call(["recover"]).env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
    let steps = std::fs::read_to_string(&log).expect("a log of steps");
    let n = 1 + steps.lines().position(|line| line.contains("/.gone-new-")).expect("it is swept up");
    for words in [vec!["recover"], vec!["session", "new"]] {
        scene.kill_before(killed_before);
        half_made();
        let said = scene.world.call(words).env("RECANT_STEPS", format!("fail:{n}:5")).run().ok();
        let text = format!("{said}");
        assert!(text.contains("was undone: the tree is as before it"), "{said}");
        assert!(text.contains("nothing needs it, and the next verb that changes something tries again"), "{said}");
        scene.world.recant("session new").ok();
        scene.assert_over("the rest");
    }
}

/// Only a recovery that came to its end is said to be done.
#[test]
fn a_recovery_that_failed_is_not_said_to_be_done_where_its_report_is_lost() {
    let scene = Scene::new("commit", false).interrupted();
    let journal = scene.world.store().join("journals").join(&scene.id);
    let whole = std::fs::read(&journal).expect("the journal");
    std::fs::write(&journal, &whole[..whole.len() - 9]).expect("the journal");
    let out = scene.world.call(["recover"]).command().stdout(common::full()).output().expect("recant");
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(5), "{said}");
    assert!(said.contains("not all that was asked for is done"), "{said}");
    std::fs::write(&journal, whole).expect("the journal");
    let out = scene.world.call(["recover"]).command().stdout(common::full()).output().expect("recant");
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(4), "{said}");
    assert!(said.contains("what was asked for is done; only the report is lost"), "{said}");
    scene.assert_over("recovered");
}

/// As FUSE has it (ENOSYS), or a directory of somebody else's (EPERM): the time of the operation stands, and nothing else differs. Any
/// other failure leaves the journal, and the next recovery ends it.
#[test]
fn an_undo_that_cannot_set_a_time_undoes_all_else() {
    let scene = Scene::new("commit", false);
    let before = calm(&scene.before);
    let killed_before = scene.step_of("renameat ", "session.json.new");
    let interrupt = || {
        scene.reset();
        scene.kill_before(killed_before);
    };
    interrupt();
    let log = scene.world.root().join("steps");
    scene.world.call(["recover"]).env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
    let steps = std::fs::read_to_string(&log).expect("a log of steps");
    let times: Vec<&str> =
        steps.lines().filter(|step| step.contains("utimensat")).filter_map(|step| step.split(' ').next()).collect();
    assert!(times.len() > 2, "{steps}");
    for errno in [38, 1, 95] {
        interrupt();
        let failing: Vec<String> = times.iter().map(|n| format!("fail:{n}:{errno}")).collect();
        let said = scene.world.call(["recover"]).env("RECANT_STEPS", failing.join(";")).run().ok();
        let (now, what) = (calm(&scene.world.manifest()), format!("errno {errno}: {said}"));
        before.assert_same(&now, &what);
        assert_ne!(scene.before.0[&b"full"[..]].mtime, scene.world.manifest().0[&b"full"[..]].mtime, "{what}");
        scene.assert_over(&what);
        scene.world.recant(&format!("commit {}", scene.id)).ok();
    }
    interrupt();
    let said = scene.world.call(["recover"]).env("RECANT_STEPS", format!("fail:{}:5", times[0])).run().with(7);
    assert!(said.stdout().contains("cannot be recovered now"), "{said}");
    let said = scene.world.call(["recover", "--json"]).env("RECANT_STEPS", format!("fail:{}:5", times[0])).run().with(7).json();
    let row = &said["recovered"][0];
    assert!(row["result"] == "failed" && row["why"].as_str().is_some_and(|why| why.contains("input/output error")), "{row}");
    scene.world.recant("recover").ok();
    before.assert_same(&calm(&scene.world.manifest()), "after a time that failed once");
    scene.assert_over("after a time that failed once");
}

#[test]
fn a_header_that_cannot_tell_is_decided_by_undo_or_finish() {
    let garble = |scene: &Scene| {
        std::fs::write(scene.store().join("sessions").join(&scene.id).join("session.json"), "x").expect("a write")
    };
    for (garbled, how, status) in [(true, "--undo", "pending"), (true, "--finish", "committed"), (false, "--undo", "pending")] {
        let scene = Scene::new("commit", false).interrupted();
        if garbled {
            garble(&scene);
        } else {
            // Of another generation.
            scene.shell(&format!(
                "sed -i 's/\"generation\":0/\"generation\":7/' {}/sessions/{}/session.json",
                scene.store().display(),
                scene.id
            ));
        }
        let on_tree = scene.world.manifest();
        for words in ["recover", &format!("recover {}", scene.id), &format!("commit {}", scene.id)] {
            let said = scene.world.recant(words).with(5);
            let said = format!("{said}");
            for how in ["--undo", "--finish"] {
                assert!(said.contains(&format!("recover <id1> {how}")), "{words}: {said}");
            }
        }
        on_tree.assert_same(&scene.world.manifest(), how);
        let said = scene.recover(how).ok();
        let wanted = if how == "--undo" { &scene.before } else { &on_tree };
        calm(wanted).assert_same(&calm(&scene.world.manifest()), &format!("{how}: {said}"));
        assert_eq!(scene.status(), status, "{how}: {said}");
        scene.assert_over(how);
        let (there, back) = if how == "--undo" { ("commit", "rollback") } else { ("rollback", "redo") };
        for verb in [there, back] {
            scene.world.recant(&format!("{verb} {}", scene.id)).ok();
        }
    }
}

#[test]
fn what_was_not_done_is_not_finished_and_what_was_tidied_up_is_not_undone() {
    // Killed before the steps were done: the journal has its name, the tree is as before but for some.
    let scene = Scene::new("commit", false);
    let n = scene.step_of("renameat2 EXCHANGE", "edited");
    scene.kill_before(n);
    std::fs::write(scene.world.session(&scene.id).join("session.json"), "x").expect("a write");
    let said = scene.recover("--finish").with(1);
    assert!(said.stdout().contains("--undo"), "{said}");
    scene.recover("--undo").ok();
    calm(&scene.before).assert_same(&calm(&scene.world.manifest()), "undone");
    // Killed right before settling begins: the manifest has its name, and the former one is kept still.
    let scene = Scene::new("commit", false);
    let n = scene.steps_of("unlinkat ", ".old").pop().expect("the former manifest goes");
    scene.kill_before(n);
    std::fs::write(scene.world.session(&scene.id).join("session.json"), "x").expect("a write");
    scene.recover("--undo").ok();
    calm(&scene.before).assert_same(&calm(&scene.world.manifest()), "undone when it was sealed");
    scene.assert_over("undone when it was sealed");
    // Killed once settling had begun.
    let scene = Scene::new("commit", false);
    let n = scene.steps_of("unlinkat ", ".old").pop().expect("the former manifest goes") + 1;
    scene.kill_before(n);
    let on_tree = scene.world.manifest();
    std::fs::write(scene.world.session(&scene.id).join("session.json"), "x").expect("a write");
    let said = scene.recover("--undo").with(1);
    assert!(said.stdout().contains("--finish"), "{said}");
    scene.recover("--finish").ok();
    on_tree.assert_same(&scene.world.manifest(), "finished");
    scene.world.recant(&format!("rollback {}", scene.id)).ok();
    calm(&scene.before).assert_same(&calm(&scene.world.manifest()), "rolled back");
}

/// The header's name was lost in a power cut, the manifest's and the line of the log were not.
#[test]
fn what_only_the_log_and_the_manifest_say_was_sealed_is_undone_and_the_log_says_so() {
    for verb in ["commit", "rollback"] {
        let scene = Scene::new(verb, false);
        let (header, manifest) = ("session.json", "checkpoint/manifest.jsonl");
        let read = |name: &str| std::fs::read(scene.world.session(&scene.id).join(name)).ok();
        let (header_before, manifest_before) = (read(header).expect("a header"), read(manifest));
        scene.kill_before(scene.step_of("openat ", "log.jsonl") + 2);
        assert_ne!(read(manifest), manifest_before, "it has its name");
        std::fs::write(scene.world.session(&scene.id).join(header), header_before).expect("a write");
        let results = || {
            let said = scene.world.recant("log --json").ok().json();
            let of_it = |entry: &serde_json::Value| Some(entry["result"].as_str()?.to_string()).filter(|_| entry["verb"] == verb);
            said["entries"].as_array().expect("a log").iter().filter_map(of_it).collect::<Vec<_>>()
        };
        assert_eq!(results().first().map(String::as_str), Some("done"));
        // Others have written to the log meanwhile, and recovery is killed before each of its steps.
        (0..18).for_each(|_| {
            let other = scene.world.recant("session new").ok().stdout().trim().to_string();
            scene.world.recant(&format!("session discard {other}"));
        });
        let recover = |n: usize| scene.world.call(["recover"]).env("RECANT_STEPS", format!("kill:{n}")).run();
        let said = (1..).map(recover).find(|said| said.status != 137).expect("an end").ok();
        calm(&scene.before).assert_same(&calm(&scene.world.manifest()), &format!("{said}"));
        assert_eq!(results().iter().filter(|result| *result == "undone").count(), 1, "{said}");
        assert_eq!(read(manifest), manifest_before, "the former manifest is back");
        assert_eq!(results().first().map(String::as_str), Some("undone"), "{said}");
        scene.assert_over(verb);
        for verb in if verb == "commit" { ["commit", "rollback"] } else { ["rollback", "redo"] } {
            scene.world.recant(&format!("{verb} {}", scene.id)).ok();
        }
        assert_eq!(results().first().map(String::as_str), Some("done"));
    }
}

#[test]
fn where_no_second_name_can_be_had_the_former_manifest_is_copied_and_is_never_a_part_of_it() {
    let scene = Scene::new("rollback", false);
    let link = scene.step_of(" linkat ", ".old");
    let steps = |more: String| format!("fail:{link}:1{more}");
    // Unlink, make, write, sync, rename; then what comes after.
    for next in (1..=6).map(|k| link + k) {
        for more in [format!(";kill:{next}"), format!(";fail:{next}:28")] {
            scene.reset();
            let said = scene.world.call(["rollback", &scene.id]).env("RECANT_STEPS", steps(more.clone())).run();
            scene.world.recant("recover").ok();
            calm(&scene.before).assert_same(&calm(&scene.world.manifest()), &format!("{more}: {said}"));
            for verb in ["rollback", "redo"] {
                scene.world.recant(&format!("{verb} {}", scene.id)).ok();
            }
            calm(&scene.before).assert_same(&calm(&scene.world.manifest()), &more);
            scene.assert_over(&more);
        }
    }
    scene.reset();
    scene.world.call(["rollback", &scene.id]).env("RECANT_STEPS", steps(String::new())).run().ok();
    scene.assert_over("copied");
    let directory = std::fs::read_dir(scene.world.session(&scene.id).join("checkpoint")).expect("a directory");
    let names: Vec<_> =
        directory.map(|entry| entry.expect("a name").file_name()).filter(|name| name != "blobs" && name != "objects").collect();
    assert_eq!(names, ["manifest.jsonl"]);
}

/// A power cut may leave the manifest of what was not sealed under the manifest's name. The copy of the former one is put back then.
#[test]
fn where_no_second_name_can_be_had_the_copy_is_what_an_undo_goes_by() {
    let scene = Scene::new("rollback", false);
    let link = scene.step_of(" linkat ", ".old");
    let session = scene.world.session(&scene.id);
    let read = |name: &str| std::fs::read_to_string(session.join(name)).expect("a file of the session");
    let (header, manifest) = (read("session.json"), read("checkpoint/manifest.jsonl"));
    let seal = scene.step_of("renameat ", "session.json.new");
    let next_is_named = (seal..seal + 20).any(|n| {
        scene.reset();
        let steps = format!("fail:{link}:1;kill:{n}");
        scene.world.call(["rollback", &scene.id]).env("RECANT_STEPS", steps).run().with(137);
        read("checkpoint/manifest.jsonl") != manifest
    });
    assert!(next_is_named);
    std::fs::write(session.join("session.json"), header).expect("the header as it was");
    let said = scene.world.recant("recover").ok();
    assert!(read("checkpoint/manifest.jsonl") == manifest, "{said}");
    calm(&scene.before).assert_same(&calm(&scene.world.manifest()), &format!("{said}"));
    scene.assert_over("the copy is put back");
    scene.world.recant(&format!("rollback {}", scene.id)).ok();
    assert_eq!(scene.world.read("edited"), "old");
}

/// The last of all steps has swapped the names; the original does not lie in the checkpoint yet.
#[test]
fn what_has_not_come_home_is_not_finished() {
    let world = World::new();
    let id = world.edited("edited");
    let log = world.root().join("steps");
    let kill = |world: &World, id: &str| {
        for n in common::steps() {
            let steps = format!("log:{};kill:{n}", log.display());
            let killed = world.call(["commit", id]).env("RECANT_STEPS", steps).run().with(137);
            if world.read("edited") == "new" {
                return;
            }
            world.recant("recover").ok();
            assert_eq!(world.read("edited"), "old", "{killed}");
        }
    };
    kill(&world, &id);
    let steps = std::fs::read_to_string(&log).expect("a log of steps");
    assert!(steps.lines().last().is_some_and(|step| step.contains("checkpoint/blobs")), "{steps}");
    std::fs::write(world.session(&id).join("session.json"), "x").expect("a write");
    let said = world.recant(&format!("recover {id} --finish")).with(1);
    assert!(said.stdout().contains("--undo"), "{said}");
    world.recant(&format!("recover {id} --undo")).ok();
    assert_eq!(world.read("edited"), "old");
    world.assert_tidy("undone");
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
            let scene = Scene::new(verb, two);
            let sealed = scene.step_of("renameat ", "session.json.new");
            let journaled = scene.step_of("renameat ", &format!("journals/{}.new", scene.id));
            let names_manifest = scene.step_of("renameat ", "manifest.jsonl.new");
            scene.world.recant(&format!("{verb} {}", scene.id)).ok();
            let after = calm(&scene.world.manifest());
            let (back, again) = if verb == "commit" { ("rollback", "commit") } else { ("redo", "rollback") };
            for n in (journaled..).step_by(if two { 3 } else { 1 }) {
                scene.reset();
                let killed = scene.world.call([verb, &scene.id]).env("RECANT_STEPS", format!("kill:{n}")).run();
                if killed.status != 137
                    || std::fs::read_dir(scene.store().join("journals")).expect("a directory").next().is_none()
                {
                    assert!(n > names_manifest, "{verb}: {killed}");
                    break;
                }
                std::fs::write(scene.store().join("sessions").join(&scene.id).join("session.json"), "x").expect("a write");
                let mut said = scene.recover(first);
                let refused = said.status == 1;
                let done = if refused { second } else { first };
                if refused {
                    assert!(said.stdout().contains(second), "{verb}, killed before step {n}, {first}: {said}");
                    said = scene.recover(second);
                }
                let what = format!("{verb}, killed before step {n}, {done}: {said}");
                assert_eq!(said.status, 0, "{what}");
                if n <= sealed {
                    assert!(first == "--finish" || !refused, "nothing stands against an undo: {what}");
                }
                scene.assert_over(&what);
                let now = calm(&scene.world.manifest());
                let is_after = done == "--finish";
                let wanted = if is_after { after.clone() } else { calm(&scene.before) };
                wanted.assert_same(&now, &what);
                let there_and_back = if is_after { [back, again] } else { [verb, back] };
                for verb in there_and_back {
                    let said = scene.world.recant(&format!("{verb} {}", scene.id));
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
    let scene = Scene::new("commit", true);
    let n = scene.step_of("renameat ", &format!("journals/{}.new", scene.id));
    let temporary = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(".recant-");
    let ready =
        || std::fs::read_dir(scene.world.tree()).expect("a directory").flatten().filter(|it| temporary(&it.file_name())).count();
    // The journal under its temporary name counts: before that it is not whole.
    let n = (1..n).rev().find(|n| {
        scene.reset();
        scene.kill_before(*n);
        !scene.store().join("journals").join(format!("{}.new", scene.id)).exists()
    });
    assert!(n.is_some() && ready() > 1, "{n:?}");
    std::fs::write(scene.store().join("sessions").join(&scene.id).join("session.json"), "x").expect("a write");
    scene.world.recant(&format!("session prune {} -y", scene.id)).ok();
    scene.world.recant("recover").ok();
    assert_eq!(ready(), 0);
    calm(&scene.before).assert_same(&calm(&scene.world.manifest()), "the tree");
    scene.assert_over("pruned");
}

/// A directory that somebody has made where one was deleted is his: nothing of the deleted one is put into it.
#[test]
fn what_lay_in_a_deleted_directory_is_put_into_none_that_somebody_made_in_its_place() {
    for two in [false, true] {
        let scene = Scene::new("commit", two).interrupted();
        let (world, id) = (&scene.world, &scene.id);
        world.write("full/his", "his");
        let said = world.recant("recover").with(4);
        for name in ["full", "full/a"] {
            assert!(said.stdout().contains(&world.path(name).display().to_string()), "{name}: {said}");
        }
        assert!(!world.exists("full/a") && world.read("full/his") == "his", "{two}: {said}");
        assert_eq!(world.read("edited"), "old", "the rest is taken back");
        let full = world.path("full").display().to_string();
        let way = format!("\nonce what is there is moved away, recant rollback {} {full} --force ", &id[16..]);
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
    let commit = |steps: &str| {
        let world = World::new();
        world.write("full/a", "1").write("edited", "old");
        let id = world.begin();
        world.recant(&format!("session delete {id} full -r")).ok();
        world.stage_write(&id, "full", "a file").stage_write(&id, "edited", "new");
        world.call(["commit", &id]).env("RECANT_STEPS", steps.replace("LOG", &world.path("../log").display().to_string())).run();
        world
    };
    let log = std::fs::read_to_string(commit("log:LOG").path("../log")).expect("the steps");
    let seal = log.lines().position(|step| step.contains("renameat ") && step.contains("session.json.new")).expect("the seal");
    // All of it was moved, and nothing sealed.
    let world = commit(&format!("kill:{seal}"));
    world.remove("full").write("full/his", "his");
    let said = world.recant("recover").with(4);
    assert!(!world.exists("full/a") && world.read("full/his") == "his" && world.read("edited") == "old", "{said}");
}

/// A call that fails decides nothing.
#[test]
fn what_cannot_be_read_is_undone_once_it_can_be() {
    if std::process::Command::new("strace").arg("-V").output().is_err() {
        return common::skip("a file that cannot be read at a recovery: no strace");
    }
    let scene = Scene::new("commit", false).interrupted();
    let path = scene.world.path("edited").display().to_string();
    let words = ["-f", "-qq", "-o", "/dev/null", "-P", &path, "-e", "trace=pread64", "-e", "inject=pread64:error=EIO"];
    let said = scene.world.program("strace", [&words[..], &[common::recant(), "recover"]].concat()).run().with(7);
    assert!(said.stdout().contains("edited: cannot read: input/output error"), "{said}");
    scene.world.recant("recover").ok();
    calm(&scene.before).assert_same(&calm(&scene.world.manifest()), "when it can be read again");
    scene.assert_over("when it can be read again");
}

/// Two names of one file, of which a kill let one be put, and somebody wrote to that: both are put then, as the file is one. Where somebody
/// has taken the other name, what was held for it is lost, and said to be.
#[test]
fn a_file_that_was_put_under_one_of_its_names_and_edited_is_put_under_all() {
    let killed = |steps: &str| {
        let world = World::on(Path::new("/var/tmp"));
        world.write("one", "old").write("deep", "a file");
        let run = "rm one deep; mkdir deep; printf new > one; ln one deep/two; ln one three; printf calm > calm";
        world.call(["run", "--session", "links", "--", "sh", "-c", run]).run().ok();
        world
            .call(["commit", "links"])
            .env("RECANT_STEPS", steps.replace("LOG", &world.root().join("steps").display().to_string()))
            .run();
        world
    };
    let log = std::fs::read_to_string(killed("log:LOG").root().join("steps")).expect("a log of steps");
    let n = 1 + log.lines().position(|step| step.contains("renameat2") && step.contains("/tree/")).expect("a step");
    let mut joined = 0;
    for (taken, n) in [false, true].into_iter().flat_map(|taken| (n + 1..n + 8).map(move |n| (taken, n))) {
        let world = killed(&format!("kill:{n}"));
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
    assert!(joined > 0, "{log}");
}

/// What was beside a path to be swapped with it goes with their directory; the store has a copy of either.
#[test]
fn what_went_with_its_directory_can_be_had_again_between_two_file_systems() {
    for verb in ["commit", "rollback"] {
        let scene = Scene::new(verb, true);
        let swap = scene.step_of("renameat2 EXCHANGE", "in/edited");
        for killed_before in [swap, swap + 1] {
            scene.reset();
            scene.kill_before(killed_before);
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
                let again = scene.world.recant(&format!("rollback {} --force", scene.id)).ok();
                assert_eq!(scene.world.read("in/edited"), "old", "{what}: {said} {again}");
            }
        }
    }
}

#[test]
fn readers_call_an_operation_that_was_cut_off_interrupted_and_never_damage() {
    for n in common::steps().step_by(2) {
        let world = World::new();
        world.write("f", "old");
        let id = world.begin();
        world.stage_write(&id, "f", "new").stage_write(&id, "made", "made");
        let killed = world.call(["commit", &id]).env("RECANT_STEPS", format!("kill:{n}")).run();
        let mut refused = 0;
        for words in [&["diff", &*id][..], &["cat", &id, "f"], &["cat", &id, "f", "--before"], &["cat", &id, "made"]] {
            let said = world.call(words).run();
            assert!([0, 7].contains(&said.status), "killed before step {n}: {said}");
            assert!(said.status == 0 || said.stderr().contains(&format!("recant recover {id}")), "{said}");
            refused += i32::from(said.status == 7);
        }
        if killed.status == 0 {
            assert!(n > 10 && refused == 0, "{n} steps: {killed}");
            world.call(["rollback", &id]).run().ok();
            world.call(["discard", &id, "-y"]).run().ok();
            let said = world.call(["cat", &id, "made"]).run().with(1);
            assert!(said.stderr().contains("is discarded"), "{said}");
            break;
        }
    }
}

/// Whatever somebody did to what was put there is his, also where neither size nor time nor mode tells of it.
#[test]
fn what_was_put_is_taken_back_only_if_neither_its_content_nor_its_attributes_were_changed() {
    let write = "touch -r tree/F ref; sleep 0.1; printf NEW > tree/F; touch -r ref tree/F";
    for deed in ["setfattr -n user.mine -v 1 tree/F", write] {
        for (verb, name) in [("commit", "edited"), ("commit", "new"), ("rollback", "edited"), ("rollback", "gone")] {
            let scene = Scene::new(verb, false).interrupted();
            // Old enough that the fingerprints are not doubtful.
            let deed = deed.replace("tree/F", &format!("tree/{name}"));
            let (deed, theirs) = match verb {
                "rollback" => (deed.replace("NEW", if name == "gone" { "AWAY" } else { "OLD" }), "AWAY OLD"),
                _ => (deed, "NEW"),
            };
            scene.shell(&deed);
            let put = scene.world.manifest().0[name.as_bytes()].clone();
            let said = scene.recover("").with(4);
            assert!(said.stdout().contains(&format!("{} (somebody changed", scene.world.path(name).display())), "{deed}: {said}");
            assert_eq!(scene.world.manifest().0.get(name.as_bytes()), Some(&put), "{deed}: {said}");
            scene.assert_over(&deed);
            let on = scene.world.recant(&format!("{} {} --force", onward(verb), scene.id));
            assert!(!deed.contains("printf") || theirs.contains(&scene.displaced(name)), "{deed}: {on}");
            let again = scene.world.recant(&format!("{verb} {}", scene.id));
            assert_ne!(again.status, 5, "no content that somebody changed is held: {deed}: {again}");
        }
    }
}

#[test]
fn what_goes_on_with_what_was_left_gives_back_the_times_of_directories_too() {
    for verb in ["commit", "rollback"] {
        for name in ["edited", "in/edited"] {
            let scene = Scene::new(verb, false).interrupted();
            scene.shell(&format!("printf theirs >> tree/{name}"));
            scene.recover("").with(4);
            scene.world.recant(&format!("{} {} --force", onward(verb), scene.id)).ok();
            scene.before.assert_same(&scene.world.manifest(), verb);
            scene.assert_over(verb);
        }
    }
}

/// Neither the manifest that has not got its name yet, nor an original that is on its way, is damage.
#[test]
fn what_an_interrupted_operation_left_half_done_is_not_said_to_be_damage() {
    for verb in ["commit", "rollback"] {
        let scene = Scene::new(verb, false);
        let named = scene.step_of("renameat ", "checkpoint/manifest.jsonl.new");
        let taken = scene.steps_of("renameat2 ", "/tree/").into_iter().next_back().map_or(named, |last| last + 1);
        for n in [taken, named] {
            scene.reset();
            scene.kill_before(n);
            for look in ["checkpoint verify", "checkpoint verify ID", "checkpoint show ID"] {
                let said = scene.world.recant(&look.replace("ID", &scene.id));
                let what = format!("{verb} killed before step {n}, {look}: {said}");
                assert!(said.status == 0 || said.status == 7 && said.stderr().contains("is not recovered"), "{what}");
                assert!(!said.stderr().contains("damaged") && !said.stderr().contains("missing"), "{what}");
            }
        }
        scene.world.recant("recover").ok();
        scene.world.recant("checkpoint verify").ok();
    }
}

/// What is missing of the manifest when it is settled is taken from the former one, as long as that is kept.
#[test]
fn a_manifest_that_is_missing_when_a_second_part_is_settled_keeps_the_lines_of_the_first() {
    let scene = Scene::new("commit", false);
    let edited = scene.world.path("edited").display().to_string();
    scene.world.call(["commit", &scene.id, &edited]).run().ok();
    let n = scene.step_of("renameat ", "checkpoint/manifest.jsonl.new");
    scene.kill_before(n);
    std::fs::remove_file(scene.world.session(&scene.id).join("checkpoint/manifest.jsonl")).expect("the manifest");
    scene.world.recant("recover").ok();
    scene.world.recant(&format!("rollback {}", scene.id)).ok();
    scene.before.assert_same(&scene.world.manifest(), "rolled back");
}

#[test]
fn what_somebody_put_where_metadata_was_to_be_set_is_named() {
    for (deed, status) in [("printf theirs > t; mv t tree/moded", 4), ("rm tree/moded", 0)] {
        let scene = Scene::new("commit", false).interrupted();
        scene.shell(deed);
        let said = scene.recover("").with(status);
        assert_eq!(said.stdout().contains("moded"), status == 4, "{deed}: {said}");
        assert_eq!(scene.world.read("edited"), "old", "all else is undone: {deed}: {said}");
        scene.assert_over(deed);
    }
}

/// A journal that somebody gave another session's name to would have its objects looked for in that one.
#[test]
fn a_journal_of_another_session_is_taken_for_nobodys() {
    let scene = Scene::new("commit", false);
    let other = scene.world.begin();
    let scene = scene.interrupted();
    let journals = scene.store().join("journals");
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
    let scene = Scene::new("commit", false);
    let n = scene.step_of("fallocate", "");
    for (error, status) in [(28, 1), (95, 0)] {
        scene.reset();
        let said = scene.world.call(["commit", &scene.id]).env("RECANT_STEPS", format!("fail:{n}:{error}")).run().with(status);
        assert_eq!(said.stderr().contains("keep room for a rollback"), status == 1, "{said}");
        assert_eq!(scene.world.read("edited"), if status == 1 { "old" } else { "new" }, "{said}");
        scene.assert_over(&format!("{said}"));
    }
}

/// Once a disk has said that it could not write something, a later call that succeeds tells nothing of that (D7).
/// It is held with the metadata of when it was written, and put with that which it got later: the undo has to know it by the latter.
#[test]
fn what_was_put_with_other_metadata_than_it_was_held_with_is_taken_back() {
    let world = World::new();
    world.write("edited", "old").write("calm", "old");
    let before = world.manifest();
    let id = world.begin();
    for name in ["edited", "made"] {
        world.stage_write(&id, name, "new");
        world.recant(&format!("session chmod {id} 0640 {name}")).ok();
    }
    // What is made ready keeps the metadata that it got for that.
    let hold = || {
        let held = std::fs::read_dir(world.session(&id).join("held/objects")).expect("what is held");
        held.for_each(|held| {
            drop(world.program("chmod", ["0600".as_ref(), held.expect("a name").path().as_os_str()]).run().ok())
        });
    };
    let n = (1..).find(|n| {
        hold();
        world.call(["commit", &id]).env("RECANT_STEPS", format!("kill:{n}")).run().with(137);
        let all_is_put = world.read("edited") == "new" && world.exists("made");
        let said = world.recant("recover").ok();
        calm(&before).assert_same(&calm(&world.manifest()), &format!("killed before step {n}: {said}"));
        world.assert_tidy("recovered");
        all_is_put
    });
    assert!(n.is_some());
}

/// What is kept for the rollback of all that is in is no less than what that writes before its seal, and not many times as much.
#[test]
fn the_reserve_has_the_room_that_a_rollback_of_all_that_is_in_takes() {
    let world = World::new();
    let id = world.begin();
    let names = |directory: &str| (0..300).map(|i| format!("{directory}/{i}")).collect::<Vec<_>>();
    let all: Vec<String> = ["a", "b"].into_iter().flat_map(names).collect();
    all.iter().for_each(|name| {
        world.write(name, "old");
    });
    let shell = |command: &str| world.program("sh", ["-c", command]).cwd(world.root()).run().ok();
    world.recant(&format!("session delete {id} a -r")).ok();
    world.recant(&format!("session delete {id} b -r")).ok();
    let session = world.session(&id);
    let size = |path: &Path| path.metadata().map_or(0, |meta| meta.len());
    let check = |what: &str| {
        let kept = size(&session.join("reserve"));
        shell("rm -rf saved && mkdir saved && cp -a tree store saved");
        let log = world.root().join("steps");
        world.call(["rollback", &id]).env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
        let steps = std::fs::read_to_string(&log).expect("a log of steps");
        let seal =
            1 + steps.lines().position(|step| step.contains("renameat ") && step.contains("session.json.new")).expect("a seal");
        shell("rm -rf tree store && cp -a saved/tree saved/store .");
        world.call(["rollback", &id]).env("RECANT_STEPS", format!("kill:{seal}")).run().with(137);
        let of_it = ["session.json.new", "checkpoint/manifest.jsonl.new"].map(|name| size(&session.join(name)));
        let written = of_it.iter().sum::<u64>() + size(&world.store().join("journals").join(&id));
        assert!(written > 100_000, "{what}: {written} bytes");
        assert!(kept >= written && kept < 8 * written, "{what}: {kept} bytes are kept for {written}");
        shell("rm -rf tree store && cp -a saved/tree saved/store .");
    };
    world.recant(&format!("commit {id} a")).ok();
    check("a part");
    world.recant(&format!("commit {id} b")).ok();
    check("the other part as well");
    world.recant(&format!("rollback {id} a/7")).ok();
    check("all but one");
}

#[test]
fn a_sync_that_fails_before_the_seal_is_never_made_up_for_by_another() {
    for verb in ["commit", "rollback"] {
        let scene = Scene::new(verb, false);
        let seal = scene.step_of("renameat ", "session.json.new");
        let syncs: Vec<usize> = scene.steps_of("fsync ", "").into_iter().filter(|n| *n < seal).collect();
        assert!(syncs.len() > 6, "{verb}: {syncs:?}");
        for n in syncs {
            scene.reset();
            let said = scene.world.call([verb, &scene.id]).env("RECANT_STEPS", format!("fail:{n}:5")).run().with(1);
            assert!(said.stderr().contains("input/output error"), "{verb}, {n}: {said}");
            calm(&scene.before).assert_same(&calm(&scene.world.manifest()), &format!("{verb}, {n}: {said}"));
            scene.assert_over(&format!("{verb}, {n}"));
        }
    }
}

/// A power cut may take back the name of `changes.jsonl` where it has the hashes, and leave all that was done after it on another file
/// system.
#[test]
fn what_was_taken_back_can_be_committed_again_though_its_hashes_had_not_got_their_name() {
    if !common::can_run() {
        return common::skip("files of which a run knows no hash: recant run does not work here");
    }
    let (mut undone, mut settled) = (0, 0);
    for n in common::steps() {
        let world = World::new();
        world.write("edited", "old").write("gone", "away");
        until_old(&world, "gone");
        world.call(["run", "--", "sh", "-c", "echo new > edited; rm gone"]).run().ok();
        let before = world.manifest();
        let list = world.recant("list --jsonl").ok().stdout();
        let list: serde_json::Value = serde_json::from_str(&list).expect("one session");
        let id = list["id"].as_str().expect("its id");
        let changes = world.session(id).join("changes.jsonl");
        let text = std::fs::read(&changes).expect("its changes");
        let killed = world.call(["commit", id]).env("RECANT_STEPS", format!("kill:{n}")).run();
        if killed.status == 0 {
            break;
        }
        let is_journaled = world.journals().contains(&id.to_owned());
        if world.status(id) == "pending" || is_journaled {
            std::fs::write(&changes, &text).expect("without hashes");
        }
        let said = world.recant("recover").ok();
        if world.status(id) == "committed" {
            let back = world.recant(&format!("rollback {id}"));
            assert_eq!(back.status, 0, "settled, killed before step {n}: {said}{back}");
            before.assert_same(&world.manifest(), "rolled back");
            settled += usize::from(is_journaled);
            continue;
        }
        undone += usize::from(is_journaled);
        before.assert_same(&world.manifest(), &format!("killed before step {n}: {said}"));
        let again = world.recant(&format!("commit {id}"));
        assert_eq!(again.status, 0, "taken back before step {n}: {said}{again}");
    }
    assert!(undone > 3 && settled > 1, "{undone} {settled}");
}

/// The lines that it learns again are written before anything is undone: a recovery that is killed there begins once more.
#[test]
fn a_recovery_killed_while_it_learns_hashes_again_is_ended_by_the_next_one() {
    if !common::can_run() {
        return common::skip("files of which a run knows no hash: recant run does not work here");
    }
    let scene = || {
        let world = World::new();
        world.write("edited", "old").write("gone", "away");
        until_old(&world, "gone");
        world.call(["run", "--", "sh", "-c", "echo new > edited; rm gone"]).run().ok();
        let list = world.recant("list --jsonl").ok().stdout();
        let list: serde_json::Value = serde_json::from_str(&list).expect("one session");
        let id = list["id"].as_str().expect("its id").to_owned();
        (world, id)
    };
    let (whole, id) = scene();
    let log = whole.root().join("steps");
    whole.call(["commit", &id]).env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
    let steps = std::fs::read_to_string(&log).expect("a log of steps");
    let seal =
        1 + steps.lines().position(|step| step.contains("renameat ") && step.contains("session.json.new")).expect("a seal");
    let mut killed_at = 0;
    for m in common::steps() {
        let (world, id) = &scene();
        let before = world.manifest();
        let changes = world.session(id).join("changes.jsonl");
        let text = std::fs::read(&changes).expect("its changes");
        // All is on the tree, and nothing sealed.
        world.call(["commit", id]).env("RECANT_STEPS", format!("kill:{seal}")).run().with(137);
        assert!(world.journals().contains(id) && world.status(id) == "pending", "it is interrupted");
        std::fs::write(&changes, &text).expect("without hashes");
        let killed = world.call(["recover"]).env("RECANT_STEPS", format!("kill:{m}")).run();
        let said = world.recant("recover").ok();
        before.assert_same(&world.manifest(), &format!("killed before step {m}: {said}"));
        world.assert_tidy(&format!("killed before step {m}"));
        world.recant(&format!("commit {id}")).ok();
        if killed.status == 0 {
            break;
        }
        killed_at = m;
    }
    assert!(killed_at > 5, "{killed_at}");
}

/// Of what is younger than the clock of files ticks a run takes the hash itself: waits until a time tells.
fn until_old(world: &World, name: &str) {
    use std::os::unix::fs::MetadataExt;
    let time = |name: &str| {
        let meta = world.path(name).metadata().expect("a file");
        (meta.ctime() * 1_000_000_000) + meta.ctime_nsec()
    };
    let probe = world.root().join("probe");
    loop {
        std::fs::write(&probe, "now").expect("a file");
        if time("../probe") - time(name) > 30_000_000 {
            return;
        }
        std::thread::yield_now();
    }
}

/// F13: after a cut a file system may show a file in a new directory again that an undo has taken out of it.
#[test]
fn a_name_that_comes_back_into_a_new_directory_is_nobodys() {
    let scene = || {
        let world = World::new();
        let id = world.begin();
        world.recant(&format!("session mkdir {id} d")).ok();
        world.stage_write(&id, "d/e", "the held one");
        (world, id)
    };
    let commit = |(world, id): &(World, String), steps: &str| world.call(["commit", id]).env("RECANT_STEPS", steps).run();
    let done = scene();
    let log = done.0.root().join("steps");
    commit(&done, &format!("log:{}", log.display())).ok();
    let steps = std::fs::read_to_string(&log).expect("a log");
    let seal = 1 + steps.lines().position(|step| step.contains("session.json.new")).expect("the seal");
    let mut came_back = 0;
    for n in common::steps() {
        let scene = scene();
        commit(&scene, &format!("kill:{seal}")).with(137);
        let (world, id) = &scene;
        let killed = world.call(["recover"]).env("RECANT_STEPS", format!("kill:{n}")).run();
        let back = "set -- $(find held -type f -exec grep -l 'the held one' {} +); \
                    for d in held/objects/*/; do test -d $d && test -n \"$1\" && ln $1 ${d}e && echo $d; done; true";
        let session = world.store().join("sessions").join(id);
        let brought_back = || world.program("sh", ["-c", back]).cwd(&session).run().ok().stdout();
        let linked = if killed.status == 137 { brought_back() } else { String::new() };
        came_back += usize::from(!linked.is_empty());
        let what = format!("recovery killed before step {n}, {linked}: {killed}");
        let recovered = world.recant("recover").ok();
        assert!(!format!("{recovered}").contains("worked in the directory"), "{what}{recovered}");
        world.recant(&format!("commit {id}")).ok();
        assert_eq!(world.read("d/e"), "the held one", "{what}");
        world.recant(&format!("rollback {id}")).ok();
        world.assert_tidy(&what);
        if killed.status == 0 {
            assert!(came_back > 2, "{came_back}");
            return;
        }
    }
}

/// The undo sets its mode, and leaves what is his: the content, and the time of that.
#[test]
fn what_is_written_after_a_kill_into_a_file_that_changes_by_metadata_alone_keeps_its_time() {
    let mut set = 0;
    for n in common::steps() {
        let world = World::new();
        world.write("f", "old\n").set_mtime("f", 1_500_000_000, 0);
        let id = world.begin();
        world.recant(&format!("session chmod {id} 600 f")).ok();
        let state = || world.manifest().0[&b"f"[..]].clone();
        let mode = state().mode;
        let killed = world.call(["commit", &id]).env("RECANT_STEPS", format!("kill:{n}")).run();
        if killed.status == 0 {
            assert!(set > 0);
            return;
        }
        set += usize::from(state().mode == 0o600);
        world.write("f", "old\nmine\n");
        let written = state().mtime;
        let recovered = world.recant("recover").ok();
        let is_done = recovered.stdout().contains("settled");
        let want = if is_done { 0o600 } else { mode };
        assert_eq!((state().mtime, state().mode, world.read("f")), (written, want, "old\nmine\n".into()), "{n}: {recovered}");
    }
}

/// Of an ACL chmod changes the mask, and no more.
#[test]
fn an_acl_that_somebody_sets_after_a_kill_is_named() {
    let acl = |world: &World, words: &str| {
        world.program("sh", ["-c", &format!("setfacl {words} f")]).cwd(world.tree()).run().status == 0
    };
    let mut named = 0;
    for n in common::steps() {
        let world = World::new();
        world.write("f", "old");
        if !acl(&world, "-m u:1:rw") {
            return common::skip("an ACL that somebody sets: none here");
        }
        let id = world.begin();
        world.recant(&format!("session chmod {id} 600 f")).ok();
        let killed = world.call(["commit", &id]).env("RECANT_STEPS", format!("kill:{n}")).run();
        if killed.status == 0 {
            assert!(named > 0);
            return;
        }
        if world.manifest().0[&b"f"[..]].mode != 0o600 {
            continue;
        }
        assert!(acl(&world, "--set u::rw,g::-,o::-,u:2:r,m::-"));
        let set = world.manifest();
        let recovered = world.recant("recover");
        named += usize::from(recovered.status == 4);
        set.assert_same(&world.manifest(), &format!("killed before step {n}: {recovered}"));
    }
}

/// A prune may take what the recovery needs, and would count what is half done as it is.
#[test]
fn every_prune_recovers_first() {
    for words in ["prune -y", "snapshot prune --keep 99", "session prune --keep 99 -y", "checkpoint prune --keep 99 -y"] {
        let world = World::new();
        world.write("a", "old").recant("snapshot create").ok();
        let id = world.begin();
        world.stage_write(&id, "a", "new");
        for n in common::steps() {
            world.call(["commit", &id]).env("RECANT_STEPS", format!("kill:{n}")).run().with(137);
            if !world.journals().is_empty() {
                break;
            }
        }
        let said = world.recant(words).ok();
        assert!(said.stderr().contains("interrupted operation of session"), "{words}: {said}");
        assert_eq!(world.journals().len(), 0, "{words}: {said}");
        assert_eq!(world.read("a"), "old", "{words}");
    }
}
