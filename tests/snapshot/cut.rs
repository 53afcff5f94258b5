//! `run --in` whose recant is killed: what the command changed becomes the session that it would have become, once, whoever recovers, and
//! wherever that is killed.

use std::path::Path;
use std::process::{Child, Stdio};

use crate::common::sweep::{Came, Sweep, steps_of};
use crate::common::{self, Call, Manifest, World, until};
use crate::desk::Desk;
use crate::run::world_with;
use crate::{confined, mounts, series, sessions as directories_of_sessions, whos};
use serde_json::Value;

/// A world with a tree to change; `None` where nothing can be confined, which is said.
fn world() -> Option<World> {
    confined().inspect(fill)
}

fn fill(world: &World) {
    world.write("edited", "old").write("gone/x", "x").link("gone/x", "again").symlink("edited", "link");
    world.write("other/f", "1").set_mtime("gone", 1_000_000_000, 5);
}

const SCRIPT: &str = "echo new > edited; rm -r gone; chmod 600 again; echo m > made; ln -sf other link";

/// A command on the real tree, once it says its number in the file `going-on`.
fn begun(call: Call, going_on: &Path) -> (Child, u32) {
    let mut command = call.command();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let told = || std::fs::read_to_string(going_on).ok().and_then(|pid| pid.trim().parse().ok());
    until("the command", || told().is_some());
    (child, told().expect("a pid"))
}

/// As the machine's memory killer or a person does it.
fn killed(mut child: Child) {
    child.kill().expect("a kill");
    child.wait().expect("its end");
}

/// A command that has changed the tree and goes on; with its pid.
fn under_way(world: &World, options: &[&str]) -> (Child, u32) {
    let script = format!("{SCRIPT}; echo $$ > going-on; exec sleep 600");
    let words = [&["run", "--in", "."], options, &["--", "sh", "-c", &script]].concat();
    begun(world.call(words), &world.path("going-on"))
}

/// One whose recant is killed; with the command's pid.
fn killed_under_way(world: &World, options: &[&str]) -> u32 {
    let (child, pid) = under_way(world, options);
    killed(child);
    // Its processes end a moment after it, and hold the session until then.
    until("it counts as cut off", || world.recant("status").ok().stdout().contains("was cut off"));
    pid
}

fn sessions(world: &World) -> Vec<Value> {
    world.recant("list --all --json").ok().json()["sessions"].as_array().expect("a list").clone()
}

#[test]
fn what_a_command_changed_whose_recant_was_killed_becomes_its_session() {
    let Some(world) = world() else { return };
    let before = world.manifest();
    let pid = killed_under_way(&world, &["-n", "work"]);
    // Who looks is told.
    let said = world.call([""; 0]).run().ok();
    assert!(
        said.stdout().contains("a command on the real tree was cut off") && said.stdout().contains("recant recover "),
        "{said}"
    );
    let status = world.recant("status").ok();
    assert!(
        status.stdout().contains("interrupted  ") && status.stdout().contains(" was cut off; the next verb that"),
        "{status}"
    );
    let interrupted = world.recant("status --json").ok().json()["interrupted"].clone();
    assert_eq!(interrupted, serde_json::json!(world.running()));
    let listed = world.recant("list").ok();
    assert!(listed.stderr().contains(" was cut off; ") && listed.stderr().contains("recant recover does it now"), "{listed}");
    assert_eq!(sessions(&world).len(), 0, "who only looks makes none");

    // It is of the project that the run was begun in.
    let said = world.call(["recover"]).cwd(world.root()).run().ok();
    assert!(!Path::new("/proc").join(pid.to_string()).exists(), "it goes on: {said}");
    let text = said.stdout();
    assert!(
        text.contains("the run of sh -c echo new > edited") && text.contains(" was cut off; what has changed there"),
        "{said}"
    );
    assert!(text.contains(" takes it back; what others have changed there is in it, too: recant diff "), "{said}");
    let made = sessions(&world);
    assert_eq!((made.len(), &made[0]["status"], &made[0]["name"]), (1, &"committed".into(), &"work".into()));
    assert_eq!(serde_json::json!([made[0]["id"]]), interrupted, "the id that was told");
    world.assert_tidy("recovered");
    let after = world.manifest();
    world.recant("rollback last").ok();
    before.assert_same(&world.manifest(), "taken back");
    world.recant("redo last").ok();
    after.assert_same(&world.manifest(), "done again");
    assert!(world.recant("recover").ok().stderr().contains("nothing was interrupted"));
    world.recant("checkpoint verify last").ok();
}

#[test]
fn so_it_does_for_root_and_for_an_ordinary_user() {
    for who in whos() {
        let Some(world) = confined() else { return };
        let desk = Desk::of(*who, world);
        let before = desk.made("echo old > f; mkdir d; echo x > d/x");
        let script = "echo new > f; rm -r d; echo $$ > going-on; exec sleep 600";
        let (child, pid) = begun(desk.call(["run", "--in", ".", "--", "sh", "-c", script]), &desk.world.path("going-on"));
        killed(child);
        desk.recant("rollback last").ok();
        assert!(!Path::new("/proc").join(pid.to_string()).exists(), "{who:?}: it goes on");
        before.assert_same(&desk.world.manifest(), &format!("{who:?}"));
        desk.world.assert_tidy("taken back");
    }
}

/// recant is gone, and the init that ends what it started is not yet: what would be changed until then would be in no session.
#[test]
fn what_the_command_left_running_is_waited_for() {
    use std::io::{BufRead, BufReader};

    use rustix::process::{Pid, Signal, kill_process};

    let Some(world) = world() else { return };
    let before = world.manifest();
    let (child, pid) = under_way(&world, &[]);
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)).and_then(|pid| pid.parse().ok());
    let init = parent.and_then(Pid::from_raw).expect("its init");
    kill_process(init, Signal::STOP).expect("it is there");
    killed(child);
    let mut rollback = {
        let mut command = world.call(["rollback", "last"]).command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let mut said = BufReader::new(rollback.stderr.take().expect("a pipe")).lines();
    let line = said.next().expect("a line").expect("UTF-8");
    assert!(line.contains("waiting until the run of sh -c"), "{line}");
    std::fs::write(world.path("edited"), "by what still runs").expect("it is written");
    kill_process(init, Signal::CONT).expect("it is there");
    let rest: Vec<String> = said.map(|line| line.expect("UTF-8")).collect();
    assert!(rollback.wait().expect("its end").success(), "{rest:?}");
    assert!(!Path::new("/proc").join(pid.to_string()).exists(), "it goes on: {rest:?}");
    before.assert_same(&world.manifest(), "taken back");
    world.assert_tidy("taken back");
}

#[test]
fn every_verb_that_changes_something_makes_it_first() {
    let prunes = ["prune -y", "prune --snapshots --keep 99"];
    for words in ["rollback last", "session new", "snapshot create", "run --in . -- true", "undo -y"].into_iter().chain(prunes) {
        let Some(world) = world() else { return };
        let before = world.manifest();
        let pid = killed_under_way(&world, &[]);
        // As long as its command goes on, the run is under way.
        until("its command's end", || !Path::new("/proc").join(pid.to_string()).exists());
        let said = world.recant(words).ok();
        assert!(said.stderr().contains(" was cut off; what has changed there"), "{words}: {said}");
        if !["rollback last", "undo -y"].contains(&words) {
            let id = sessions(&world).iter().find(|row| row["status"] == "committed").expect("one")["id"].clone();
            world.recant(&format!("rollback {}", id.as_str().expect("an id"))).ok();
        }
        before.assert_same(&world.manifest(), words);
        world.assert_tidy(words);
    }
}

#[test]
fn a_command_that_is_under_way_is_left_alone_with_what_its_session_is_to_be_made_from() {
    for is_recant_killed in [false, true] {
        let Some(world) = world() else { return };
        world.config("[snapshot]\nkeep = 1\n");
        let before = world.manifest();
        let (mut child, pid) = under_way(&world, &[]);
        assert!(world.recant("recover").ok().stderr().contains("nothing was interrupted"));
        let id = world.running().pop().expect("its record");
        let said = world.recant(&format!("recover {id}")).with(6);
        assert!(said.stderr().contains("is under way"), "{said}");
        world.write("mine", "1").recant("snapshot create").ok();
        world.recant("prune --snapshots --keep 1").ok();
        for words in ["prune --snapshots --number 0", &format!("prune --snapshots {} --all", world.tree().display())] {
            let said = world.recant(words).with(1);
            let why = "snapshot 0 is needed for the session of a command on the real tree";
            assert!(said.stderr().contains(why), "{said}");
        }
        world.recant("prune -y").ok();
        assert_eq!(sessions(&world).len(), 0);
        if is_recant_killed {
            killed(child);
        } else {
            let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
            assert_eq!(child.wait().expect("its end").code(), Some(137));
            world.assert_tidy("ended");
        }
        world.recant("rollback last").ok();
        before.assert_same(&world.manifest(), "taken back");
        world.recant("prune --snapshots --keep 1").ok();
        assert_eq!(world.recant("snapshot list --json").ok().rows().len(), 1, "nothing needs it any more");
    }
}

#[test]
fn a_name_that_somebody_took_meanwhile_is_no_reason_to_have_no_session() {
    let Some(world) = world() else { return };
    let before = world.manifest();
    let (child, _) = under_way(&world, &["-n", "work"]);
    world.recant("session new -n work").ok();
    killed(child);
    let said = world.recant("recover").ok();
    assert!(said.stderr().contains("the session gets no name"), "{said}");
    world.recant("rollback last").ok();
    before.assert_same(&world.manifest(), "taken back");
    // One that is taken is refused before anything is done.
    let said = world.recant("run --in . -n work -- touch made-by-it").with(125);
    assert!(said.stderr().contains("work") && !world.exists("made-by-it"), "{said}");
    world.assert_tidy("refused");
}

#[test]
fn what_cannot_be_made_a_session_is_named_until_somebody_gives_it_up() {
    type Harm = fn(&World, &Path);
    let cases: [(&str, Harm, i32, &str); 5] = [
        (
            "gone",
            |_, series| std::fs::remove_file(series.join("0.jsonl")).expect("it was there"),
            7,
            "its snapshot 0, which was taken",
        ),
        ("all gone", |_, series| std::fs::remove_dir_all(series).expect("it was there"), 7, "its snapshot 0, which was taken"),
        (
            "another one has its number",
            |world, series| {
                std::fs::remove_dir_all(series).expect("it was there");
                world.recant("snapshot create").ok();
                world.write("mine", "1").recant("snapshot create").ok();
            },
            7,
            "its snapshot 0, which was taken",
        ),
        (
            "damaged",
            |_, series| {
                let file = series.join("0.jsonl");
                let text = std::fs::read_to_string(&file).expect("a manifest");
                std::fs::write(&file, text.replace("\"mode\":\"0", "\"mode\":\"1")).expect("damage");
            },
            5,
            "0.jsonl: the snapshot is damaged",
        ),
        (
            "garbled",
            |world, _| {
                let id = world.running().pop().expect("a record");
                std::fs::write(world.store().join("running").join(id).join("run.json"), "{").expect("damage");
            },
            5,
            "run.json: the store is damaged",
        ),
    ];
    for (what, harm, status, why) in cases {
        let Some(world) = world() else { return };
        killed_under_way(&world, &[]);
        harm(&world, &series(&world));
        let after = world.manifest();
        let id = world.running().pop().expect("a record");
        for words in ["recover", &format!("recover {id}")] {
            let said = world.recant(words).with(status);
            assert!(said.stdout().contains(why), "{what}: {said}");
            assert!(said.stdout().contains(&format!("recant recover {id} --finish ends it without a session")), "{what}: {said}");
        }
        let json = world.recant("recover --json").with(status).json();
        assert_eq!((&json["recovered"][0]["result"], &json["recovered"][0]["verb"]), (&"failed".into(), &"run".into()), "{json}");
        // A verb that is about something else says so, and goes on.
        let said = world.recant("session new").ok();
        assert!(said.stderr().contains(why), "{what}: {said}");
        for decision in ["--undo", "--give-up-unmounted"] {
            world.recant(&format!("recover {id} {decision}")).with(2);
        }
        assert_eq!(world.running(), std::slice::from_ref(&id), "{what}: nothing is dropped");
        let said = world.recant(&format!("recover {id} --finish")).ok();
        assert!(said.stdout().contains("is given up: its changes stay, without a session"), "{what}: {said}");
        after.assert_same(&world.manifest(), what);
        world.assert_tidy(what);
        assert!(world.recant("recover").ok().stderr().contains("nothing was interrupted"));
    }
}

#[test]
fn one_that_could_be_made_a_session_can_be_given_up_too() {
    let Some(world) = world() else { return };
    let before = world.manifest();
    killed_under_way(&world, &[]);
    let id = world.running().pop().expect("a record");
    let said = world.recant(&format!("recover {id} --finish")).ok();
    let way = format!("recant snapshot restore 0 --with-vcs --dir {} goes back to before it", world.tree().display());
    assert!(said.stdout().contains(&way), "{said}");
    assert_eq!(sessions(&world).len(), 0);
    world.recant("snapshot restore 0 --with-vcs").ok();
    before.assert_same(&world.manifest(), "by the snapshot");
}

#[test]
fn caches_that_were_made_for_it_go_where_they_are_empty() {
    let Some(world) = world_with(&["npm", "chmod", "ln", "sleep"]) else { return };
    fill(&world);
    killed_under_way(&world, &[]);
    assert!(world.root().join("home/.npm/_cacache").exists());
    world.recant("recover").ok();
    assert!(!world.root().join("home/.npm").exists());
}

/// Without it every file in it would count as removed by the command.
#[test]
fn a_directory_whose_file_system_is_not_mounted_now_waits_for_that() {
    if !common::is_root("a mount of its own") {
        return;
    }
    mounts::own_mounts();
    let Some(world) = world() else { return };
    let point = world.path("other");
    rustix::mount::mount("none", &point, "tmpfs", rustix::mount::MountFlags::empty(), None).expect("a tmpfs");
    world.write("other/f", "1");
    let before = common::manifest(&point);
    let script = "echo 2 > other/f; echo $$ > other/made; exec sleep 600";
    killed(begun(world.call(["run", "--in", "other", "--", "sh", "-c", script]), &world.path("other/made")).0);
    let kept = world.root().join("kept");
    world.mkdir(&kept);
    let text = |path: &Path| std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).expect("no NUL");
    rustix::mount::mount_move(&*text(&point), &*text(&kept)).expect("it is mounted elsewhere");
    let said = world.recant("recover").with(7);
    assert!(said.stdout().contains("is no longer mounted") && said.stdout().contains("mount it; "), "{said}");
    rustix::mount::mount_move(&*text(&kept), &*text(&point)).expect("it is mounted again");
    world.recant("recover").ok();
    world.recant("rollback last").ok();
    before.assert_same(&common::manifest(&point), "taken back");
    rustix::mount::unmount(&point, rustix::mount::UnmountFlags::DETACH).expect("it was mounted");
}

fn run(world: &World) -> Call {
    world.call(["run", "--in", ".", "--", "sh", "-c", SCRIPT])
}

/// The world of a run, and its tree before that; killed before step `N` of it where there is one.
fn scene(kill: Option<usize>) -> Option<(World, Manifest)> {
    let world = world()?;
    let before = world.manifest();
    kill.iter().for_each(|n| drop(run(&world).env("RECANT_STEPS", format!("kill:{n}")).run().with(137)));
    Some((world, before))
}

/// That there is one session of what differs, or none where nothing does, and that nothing is left beside.
#[track_caller]
fn assert_recovered(world: &World, before: &Manifest, what: &str) {
    if !world.store().join("format").exists() {
        // Its store was not made yet.
        return before.assert_same(&world.manifest(), what);
    }
    let made = sessions(world);
    let is_changed = !before.difference(&world.manifest()).is_empty();
    assert_eq!(made.len(), usize::from(is_changed), "{what}: {made:?}");
    assert_eq!(directories_of_sessions(world), made.len(), "{what}: what it had begun is gone");
    world.assert_tidy(what);
    if is_changed {
        assert_eq!(made[0]["status"], "committed", "{what}");
        world.recant("checkpoint verify last").ok();
        world.recant("rollback last").ok();
    }
    before.assert_same(&world.manifest(), what);
}

/// Whatever fails, too: what the command changed is in its session, at once or by `recover`.
#[test]
fn killed_or_failing_at_any_step_it_becomes_one_session_or_has_changed_nothing() {
    for order in ["kill:N", "fail:N:28"] {
        let row = Sweep { name: "run --in", scene: &|| scene(None), verb: &|(world, _)| run(world), order };
        let mut by_recover = false;
        let tally = row.run(|(world, before), said, what| {
            let is_told = said.stderr().contains("no session was made of what it changed");
            assert!(!is_told || said.stderr().contains(" tries again; else "), "{what}");
            assert!(order != "kill:N" || [0, 137].contains(&said.status), "{what}");
            // Every other one is recovered by a verb that has something else to do.
            by_recover = !by_recover;
            if !by_recover {
                let said = world.recant("snapshot create --if-changed").ok();
                assert!(!said.stderr().contains("no session can be made"), "{what}: {said}");
            }
            world.recant("recover").ok();
            assert_recovered(world, before, what);
            Came::Used(if is_told { 1 } else { said.status })
        });
        assert!(tally.steps == 0 || tally.steps > 60, "{} steps", tally.steps);
        tally.saw(0, 1).saw(if order == "kill:N" { 137 } else { 1 }, 20);
    }
}

/// With one of the recovery killed before each step after each of several kills of the run.
#[test]
fn a_recovery_that_is_killed_before_any_step_is_done_again_and_makes_no_second_session() {
    let Some((world, _)) = scene(None) else { return };
    let steps = steps_of(|| run(&world));
    // The directory of the records is synced, then the command starts.
    let begun = 3 + steps.iter().position(|step| step.contains("NOREPLACE") && step.contains("/running/")).expect("its record");
    let last = |word: &str| 1 + steps.iter().rposition(|step| step.contains(word)).expect("such a step");
    // Nothing is collected yet; its session is filled, but for its header; it is sealed.
    for kill in [begun, last("session.json.new"), last("/session.json") + 1] {
        let row = Sweep {
            name: &format!("recovery of a run that was killed before {kill}, {}", steps[kill - 1]),
            scene: &|| scene(Some(kill)),
            verb: &|(world, _)| world.call(["recover"]),
            order: "kill:N",
        };
        row.run(|(world, before), said, what| {
            world.recant("recover").ok();
            assert!(!before.difference(&world.manifest()).is_empty(), "{what}: the command has run");
            assert_recovered(world, before, what);
            assert!([0, 137].contains(&said.status), "{what}");
            Came::Used(())
        });
    }
}

/// A signal is for what would come next.
#[test]
fn a_recovery_of_two_runs_that_a_signal_comes_to_in_the_first_makes_both_sessions() {
    let two = || {
        let world = world()?;
        let begin = |dir: &str| {
            world.write(format!("{dir}/f"), "old");
            let script = "echo new > f; echo $$ > going-on; exec sleep 600";
            let call = world.call(["run", "--in", ".", "--", "sh", "-c", script]).cwd(world.path(dir));
            begun(call, &world.path(dir).join("going-on")).0
        };
        ["one", "two"].map(begin).into_iter().for_each(killed);
        Some(world)
    };
    let (Some(first), Some(world)) = (two(), two()) else { return };
    let steps = steps_of(|| first.call(["recover"])).len();
    let orders = format!("run:{}:kill -TERM $PPID", steps / 3);
    let said = world.call(["recover"]).env("RECANT_STEPS", orders).run().ok();
    assert_eq!((said.stdout().matches(" was cut off; ").count(), sessions(&world).len()), (2, 2), "{said}");
    world.assert_tidy("recovered");
}
