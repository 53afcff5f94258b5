//! `run --in` whose recant is killed: what the command changed becomes the session that it would have become, once, whoever recovers, and
//! wherever that is killed.

use crate::mounts;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::common::{self, Manifest, World};
use crate::desk::{Desk, Who, is_root};
use serde_json::Value;

/// A world outside of /tmp, where a confined command may write; `None` where nothing can be confined, which is said.
fn world() -> Option<World> {
    let world = World::on(Path::new("/var/tmp"));
    let said = world.recant("run --in . -- true");
    if said.status == 125 {
        common::skip(&format!("no confinement here: {}", said.stderr().trim()));
        return None;
    }
    // That was snapshot 0.
    filled(&world);
    Some(world)
}

fn filled(world: &World) {
    world.write("edited", "old").write("gone/x", "x").link("gone/x", "again").symlink("edited", "link");
    world.write("other/f", "1").set_mtime("gone", 1_000_000_000, 5);
}

/// One whose store is still to come, where something can be confined.
fn fresh() -> World {
    let world = World::on(Path::new("/var/tmp"));
    filled(&world);
    world
}

const SCRIPT: &str = "echo new > edited; rm -r gone; chmod 600 again; echo m > made; ln -sf other link";

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}: not within 30 s");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A command that has changed the tree and goes on; with its pid.
fn under_way(world: &World, options: &[&str]) -> (Child, u32) {
    let script = format!("{SCRIPT}; echo $$ > going-on; exec sleep 600");
    let words = [&["run", "--in", "."], options, &["--", "sh", "-c", &script]].concat();
    let mut command = world.call(words).command();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let told = || std::fs::read_to_string(world.path("going-on")).ok().and_then(|pid| pid.trim().parse().ok());
    until("the command", || told().is_some());
    (child, told().expect("a pid"))
}

/// recant is killed, as the machine's memory killer or a person does it.
fn killed_under_way(world: &World, options: &[&str]) -> u32 {
    let (mut child, pid) = under_way(world, options);
    child.kill().expect("a kill");
    child.wait().expect("its end");
    pid
}

fn sessions(world: &World) -> Vec<Value> {
    world.recant("list --all --json").ok().json()["sessions"].as_array().expect("a list").clone()
}

fn directories_of_sessions(world: &World) -> usize {
    std::fs::read_dir(world.store().join("sessions")).expect("a directory").count()
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
    let all = [Who::Root, Who::User].into_iter().filter(|who| is_root() || *who == Who::User);
    for desk in all.map(|who| Desk::on(who, Path::new("/var/tmp"))) {
        if desk.recant("run --in . -- true").status == 125 {
            return common::skip("no confinement here");
        }
        let before = desk.made("echo old > f; mkdir d; echo x > d/x");
        let script = "echo new > f; rm -r d; echo $$ > going-on; exec sleep 600";
        let mut command = desk.call(["run", "--in", ".", "--", "sh", "-c", script]).command();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let told = || std::fs::read_to_string(desk.world.path("going-on")).ok().filter(|pid| pid.ends_with('\n'));
        until("the command", || told().is_some());
        child.kill().expect("a kill");
        child.wait().expect("its end");
        let pid = told().unwrap_or_default();
        desk.recant("rollback last").ok();
        assert!(!Path::new("/proc").join(pid.trim()).exists(), "{:?}: it goes on", desk.who);
        before.assert_same(&desk.world.manifest(), &format!("{:?}", desk.who));
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
    let (mut child, pid) = under_way(&world, &[]);
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)).and_then(|pid| pid.parse().ok());
    let init = parent.and_then(Pid::from_raw).expect("its init");
    kill_process(init, Signal::STOP).expect("it is there");
    child.kill().expect("a kill");
    child.wait().expect("its end");
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
    let prunes = ["prune -y", "snapshot prune --keep 99"];
    for words in ["rollback last", "session new", "snapshot create", "run --in . -- true", "undo -y"].into_iter().chain(prunes) {
        let Some(world) = world() else { return };
        let before = world.manifest();
        killed_under_way(&world, &[]);
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
fn a_command_that_is_under_way_is_left_alone() {
    let Some(world) = world() else { return };
    let before = world.manifest();
    let (mut child, pid) = under_way(&world, &[]);
    assert!(world.recant("recover").ok().stderr().contains("nothing was interrupted"));
    let id = world.running().pop().expect("its record");
    let said = world.recant(&format!("recover {id}")).with(6);
    assert!(said.stderr().contains("is under way"), "{said}");
    world.write("mine", "1").recant("snapshot create").ok();
    world.recant("prune").ok();
    assert_eq!(sessions(&world).len(), 0);
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
    assert_eq!(child.wait().expect("its end").code(), Some(137));
    world.assert_tidy("ended");
    world.recant("rollback last").ok();
    before.assert_same(&world.manifest(), "taken back");
}

#[test]
fn nothing_prunes_what_a_session_is_still_to_be_made_from() {
    let Some(world) = world() else { return };
    world.config("[snapshot]\nkeep = 1\n");
    let before = world.manifest();
    let (mut child, _) = under_way(&world, &[]);
    world.write("mine", "1").recant("snapshot create").ok();
    world.recant("snapshot prune --keep 1").ok();
    for words in ["snapshot prune --number 1", &format!("snapshot prune {} --all", world.tree().display())] {
        let said = world.recant(words).with(1);
        assert!(said.stderr().contains("the session of a command on the real tree is to be made from snapshot 1"), "{said}");
    }
    world.recant("prune -y").ok();
    child.kill().expect("a kill");
    child.wait().expect("its end");
    world.recant("rollback last").ok();
    before.assert_same(&world.manifest(), "taken back");
    world.recant("snapshot prune --keep 1").ok();
    assert_eq!(world.recant("snapshot list --jsonl").ok().json_lines().len(), 1, "nothing needs it any more");
}

#[test]
fn a_name_that_somebody_took_meanwhile_is_no_reason_to_have_no_session() {
    let Some(world) = world() else { return };
    let before = world.manifest();
    let (mut child, _) = under_way(&world, &["-n", "work"]);
    world.recant("session new -n work").ok();
    child.kill().expect("a kill");
    child.wait().expect("its end");
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
    let series = |world: &World| -> PathBuf {
        let all = std::fs::read_dir(world.store().join("snapshots")).expect("a directory").next();
        all.expect("one").expect("a name").path()
    };
    type Harm = fn(&World, &Path);
    let cases: [(&str, Harm, i32, &str); 5] = [
        (
            "gone",
            |_, series| std::fs::remove_file(series.join("1.jsonl")).expect("it was there"),
            7,
            "its snapshot 1, which was taken",
        ),
        ("all gone", |_, series| std::fs::remove_dir_all(series).expect("it was there"), 7, "its snapshot 1, which was taken"),
        (
            "another one has its number",
            |world, series| {
                std::fs::remove_dir_all(series).expect("it was there");
                world.recant("snapshot create").ok();
                world.write("mine", "1").recant("snapshot create").ok();
            },
            7,
            "its snapshot 1, which was taken",
        ),
        (
            "damaged",
            |_, series| {
                let file = series.join("1.jsonl");
                let text = std::fs::read_to_string(&file).expect("a manifest");
                std::fs::write(&file, text.replace("\"mode\":\"0", "\"mode\":\"1")).expect("damage");
            },
            5,
            "1.jsonl: the snapshot is damaged",
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
        assert!(said.stdout().contains("is given up: what it has changed stays, in no session"), "{what}: {said}");
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
    let way = format!("recant snapshot restore 1 --with-vcs --dir {} goes back to before it", world.tree().display());
    assert!(said.stdout().contains(&way), "{said}");
    assert_eq!(sessions(&world).len(), 0);
    world.recant("snapshot restore 1 --with-vcs").ok();
    before.assert_same(&world.manifest(), "by the snapshot");
}

#[test]
fn caches_that_were_made_for_it_go_where_they_are_empty() {
    let Some(mut world) = world() else { return };
    let bin = world.root().join("bin");
    for name in ["sh", "rm", "chmod", "ln", "sleep"] {
        let search = std::env::var_os("PATH").expect("a PATH");
        let found = std::env::split_paths(&search).map(|dir| dir.join(name)).find(|path| path.exists());
        world.mkdir(&bin).symlink(found.expect("a program"), bin.join(name));
    }
    world.symlink("/bin/true", bin.join("npm"));
    world.set("PATH", &bin);
    killed_under_way(&world, &[]);
    let cache = world.root().join("home/.npm/_cacache");
    assert!(cache.exists());
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
    let script = "echo 2 > other/f; echo m > other/made; exec sleep 600";
    let mut command = world.call(["run", "--in", "other", "--", "sh", "-c", script]).command();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    until("the command", || world.exists("other/made"));
    child.kill().expect("a kill");
    child.wait().expect("its end");
    let kept = world.root().join("kept");
    world.mkdir(&kept);
    let text = |path: &Path| std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).expect("no NUL");
    rustix::mount::mount_move(&*text(&point), &*text(&kept)).expect("it is mounted elsewhere");
    let said = world.recant("recover").with(7);
    assert!(said.stdout().contains("nothing is mounted at ") && said.stdout().contains("mount it; "), "{said}");
    rustix::mount::mount_move(&*text(&kept), &*text(&point)).expect("it is mounted again");
    world.recant("recover").ok();
    world.recant("rollback last").ok();
    before.assert_same(&common::manifest(&point), "taken back");
    rustix::mount::unmount(&point, rustix::mount::UnmountFlags::DETACH).expect("it was mounted");
}

/// The steps of a run, and before which of them it is killed once the command has changed the tree.
fn steps_of_a_run(world: &World) -> (Vec<String>, usize) {
    let log = world.root().join("steps");
    run(world, &format!("log:{}", log.display())).ok();
    let text = std::fs::read_to_string(&log).expect("a log of steps");
    let steps: Vec<String> = text.lines().map(str::to_owned).collect();
    let begun = steps.iter().position(|step| step.contains("NOREPLACE") && step.contains("/running/")).expect("its record");
    // The directory of the records is synced, then the command starts.
    (steps, begun + 3)
}

fn run(world: &World, steps: &str) -> common::Said {
    world.call(["run", "--in", ".", "--", "sh", "-c", SCRIPT]).env("RECANT_STEPS", steps).run()
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

#[test]
fn killed_before_any_step_it_becomes_one_session_or_has_changed_nothing() {
    if world().is_none() {
        return;
    }
    for step in common::steps() {
        let world = fresh();
        let before = world.manifest();
        let said = run(&world, &format!("kill:{step}"));
        let what = format!("killed before step {step}");
        // Every other one is recovered by a verb that has something else to do.
        if step % 2 == 0 {
            world.recant("recover").ok();
        } else {
            let said = world.recant("snapshot create --if-changed").ok();
            assert!(!said.stderr().contains("no session can be made"), "{what}: {said}");
            world.recant("recover").ok();
        }
        assert_recovered(&world, &before, &what);
        if said.status == 0 {
            assert!(step > 60, "{what}: {said}");
            return;
        }
        assert_eq!(said.status, 137, "{what}: {said}");
    }
}

/// With one of the recovery killed before each step after each of several kills of the run.
#[test]
fn a_recovery_that_is_killed_before_any_step_is_done_again_and_makes_no_second_session() {
    if world().is_none() {
        return;
    }
    let first = fresh();
    let (steps, begun) = steps_of_a_run(&first);
    let last = |word: &str| 1 + steps.iter().rposition(|step| step.contains(word)).expect("such a step");
    // Nothing is collected yet; its session is filled, but for its header; it is sealed.
    for kill in [begun, last("session.json.new"), last("/session.json") + 1] {
        for step in common::steps() {
            let world = fresh();
            let before = world.manifest();
            run(&world, &format!("kill:{kill}")).with(137);
            let said = world.call(["recover"]).env("RECANT_STEPS", format!("kill:{step}")).run();
            let what = format!("the run killed before step {kill} ({}), its recovery before {step}", steps[kill - 1]);
            world.recant("recover").ok();
            assert!(!before.difference(&world.manifest()).is_empty(), "{what}: the command has run");
            assert_recovered(&world, &before, &what);
            if said.status == 0 {
                break;
            }
            assert_eq!(said.status, 137, "{what}: {said}");
        }
    }
}

/// Whatever fails, what the command changed is in its session, at once or by `recover`.
#[test]
fn where_its_session_cannot_be_made_the_next_recovery_makes_it() {
    if world().is_none() {
        return;
    }
    let first = fresh();
    let (steps, begun) = steps_of_a_run(&first);
    let mut failed = 0;
    for step in begun..=steps.len() {
        let world = fresh();
        let before = world.manifest();
        let said = run(&world, &format!("fail:{step}:28"));
        let what = format!("no room at step {step}: {said}");
        if said.stderr().contains("no session was made of what it changed") {
            failed += 1;
            assert!(said.stderr().contains(" tries again; else "), "{what}");
        }
        world.recant("recover").ok();
        assert_recovered(&world, &before, &what);
    }
    assert!(failed > 20, "{failed}");
}

/// A signal is for what would come next.
#[test]
fn a_recovery_of_two_runs_that_a_signal_comes_to_in_the_first_makes_both_sessions() {
    let Some(world) = world() else { return };
    let begin = |dir: &str| {
        world.write(format!("{dir}/f"), "old");
        let script = "echo new > f; echo $$ > going-on; exec sleep 600";
        let mut command = world.call(["run", "--in", ".", "--", "sh", "-c", script]).cwd(world.path(dir)).command();
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        until("the command", || world.exists(format!("{dir}/going-on")));
        child
    };
    for mut child in ["one", "two"].map(begin) {
        child.kill().expect("a kill");
        child.wait().expect("its end");
    }
    let shell = |command: &str| world.program("sh", ["-c", command]).cwd(world.root()).run().ok();
    shell("mkdir saved && cp -a tree store saved");
    let log = world.root().join("steps");
    world.call(["recover"]).env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
    let steps = std::fs::read_to_string(&log).expect("a log of steps").lines().count();
    shell("rm -rf tree store && cp -a saved/. .");
    let orders = format!("run:{}:kill -TERM $PPID", steps / 3);
    let said = world.call(["recover"]).env("RECANT_STEPS", orders).run().ok();
    assert_eq!((said.stdout().matches(" was cut off; ").count(), sessions(&world).len()), (2, 2), "{said}");
    world.assert_tidy("recovered");
}
