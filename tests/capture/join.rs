//! Commands that join the one which runs in their session: one view, one step.

use std::process::{Child, Stdio};
use std::time::SystemTime;

use crate::common::until;
use crate::desk::{Desk, Who, each, has, is_root, settled};

/// What waits for the file `stop`, and then writes.
const SERVER: &str = "echo up > up; while [ ! -e stop ]; do sleep 0.02; done; echo down > down";

/// Starts a command, and waits until `path` is seen in its session.
fn serve(desk: &Desk, options: &str, script: &str, seen: &str) -> Child {
    let mut command = desk.held(&format!("--session s {options}"), script).command();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    until("the first command runs", || {
        let said = desk.recant("diff s --name-only");
        said.status == 0 && said.stdout().contains(seen)
    });
    child
}

fn own() -> Desk {
    Desk::new(if is_root() { Who::Root } else { Who::User })
}

fn ended(mut child: Child) -> (i32, String) {
    use std::io::Read;
    use std::os::unix::process::ExitStatusExt;
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let status = child.wait().unwrap();
    (status.code().unwrap_or_else(|| 128 + status.signal().unwrap()), said)
}

#[test]
fn a_server_and_ten_edits_beside_it_are_one_step() {
    each(|desk| {
        let before = desk.made_before("mkdir d; echo 0 > f", "f");
        let since = SystemTime::now();
        let server = serve(desk, "", SERVER, "up");
        for n in 1..=10 {
            let said = desk.held("--session s", &format!("cat up; tail -n 1 f; echo {n} >> f; echo {n} > d/{n}; exit {n}")).run();
            assert_eq!((said.status, said.stdout()), (n, format!("up\n{}\n", n - 1)), "{said}");
            // What was said once is not said again.
            let told = said.stderr();
            assert!(told.starts_with("recant: beside sh -c") == (n == 1) && told.chars().count() <= 81, "{said}");
            assert_eq!(told.lines().count(), usize::from(n == 1), "{said}");
        }
        let running = desk.recant("steps s --json").ok().json();
        assert_eq!(running["running"]["beside"].as_array().unwrap().len(), 10, "{running}");
        // Nothing of those that have ended is left in the init.
        let threads = || desk.held("--session s", "ls /proc/1/task").run().ok().stdout().lines().count();
        until("their threads end", || threads() <= 3);
        desk.held("--session s", "mv d e; touch stop").run().ok();
        assert_eq!(ended(server).0, 0);
        let told = desk.recant("steps s --json").ok().json();
        let steps = told["steps"].as_array().unwrap();
        let ends: Vec<_> = steps[0]["beside"].as_array().unwrap().iter().map(|row| row["ending"]["exited"].clone()).collect();
        assert_eq!((steps.len(), &ends[..10]), (1, &(1..=10).map(serde_json::Value::from).collect::<Vec<_>>()[..]), "{told}");
        assert_eq!(ends.last(), Some(&0.into()), "the one that ended it is told whole: {told}");
        let said = desk.recant("steps s").ok();
        assert!(said.stdout().lines().nth(10).is_some_and(|line| line.starts_with('|') && line.contains("exit 10")), "{said}");
        desk.recant("commit s").ok();
        let committed = settled(desk.world.manifest(), since);
        desk.recant("rollback s").ok();
        desk.world.manifest().assert_same(&before, "taken back");
        let edits =
            "for n in $(seq 10); do echo $n >> f; echo $n > d/$n; done; mv d e; echo up > up; touch stop; echo down > down";
        desk.bare(&desk.world.tree(), edits);
        committed.assert_same(&settled(desk.world.manifest(), since), "held and bare");
    });
}

#[test]
fn a_killed_recant_takes_its_own_command_along_and_the_first_one_all() {
    each(|desk| {
        let server = serve(desk, "", SERVER, "up");
        let mut second = serve(desk, "", "echo in > in; sleep 60; echo never > never", "in");
        second.kill().unwrap();
        second.wait().unwrap();
        until("its command ends", || !desk.held("--session s", "ps ax").run().ok().stdout().contains("sleep 60"));
        desk.held("--session s", "touch stop").run().ok();
        assert_eq!(ended(server).0, 0);
        assert_eq!(desk.paths("s"), ["down", "in", "stop", "up"]);

        desk.recant("discard s --now -y").ok();
        let mut server = serve(desk, "", SERVER, "up");
        let second = serve(desk, "", "echo in > in; sleep 60; echo never > never", "in");
        server.kill().unwrap();
        server.wait().unwrap();
        assert_eq!(ended(second).0, 137, "it ended with the run");
        until("the run is over", || !desk.recant("list").ok().stdout().contains("running"));
        desk.recant("recover").ok();
        assert_eq!(desk.paths("s"), ["in", "up"]);
    });
}

#[test]
fn the_step_ends_with_the_last_of_them_and_only_what_the_first_left_is_ended() {
    each(|desk| {
        let first =
            serve(desk, "--no-wait", "echo up > up; while [ ! -e stop ]; do sleep 0.02; done; tail -f /dev/null & exit 5", "up");
        let second = serve(desk, "", "echo in > in; while [ ! -e stop2 ]; do sleep 0.02; done; echo late > late", "in");
        desk.held("--session s", "touch stop").run().ok();
        let names = || desk.held("--session s", "ps -e -o comm=").run().ok().stdout();
        until("what the first one left is ended", || !names().lines().any(|name| name == "tail"));
        desk.held("--session s", "touch stop2").run().ok();
        assert_eq!((ended(second).0, ended(first).0), (0, 5));
        assert_eq!(desk.paths("s"), ["in", "late", "stop", "stop2", "up"]);
        assert_eq!(desk.recant("steps s --json").ok().json()["head"], 1);
    });
}

#[test]
fn a_signal_reaches_the_command_of_the_recant_that_got_it() {
    each(|desk| {
        let server = serve(desk, "", SERVER, "up");
        let second = serve(desk, "", "trap 'echo got > got; exit 7' TERM; echo in > in; while :; do sleep 0.02; done", "in");
        let pid = rustix::process::Pid::from_raw(second.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert_eq!(ended(second).0, 7);
        desk.held("--session s", "touch stop").run().ok();
        assert_eq!(ended(server).0, 0);
        assert_eq!(desk.paths("s"), ["down", "got", "in", "stop", "up"]);
    });
}

#[test]
fn a_limit_of_size_is_that_of_all_of_them() {
    each(|desk| {
        let server = serve(desk, "--max-size 8M", SERVER, "up");
        let second = desk.held("--session s", "head -c 64M /dev/zero > large; sleep 60; echo never > never").run();
        assert_eq!(second.status, 137, "{second}");
        assert_eq!(ended(server).0, 137);
    });
}

#[test]
fn what_only_the_first_command_can_have_is_refused_by_name() {
    let desk = &own();
    let server = serve(desk, "", SERVER, "up");
    for option in ["--commit", "--discard", "--max-size 1G", "--no-network", "--pass /dev/null", "--hide /etc", "--scratch x"] {
        let said = desk.held(&format!("--session s {option}"), "touch never").run().with(125);
        assert!(said.stderr().contains(option.split(' ').next().unwrap()), "{said}");
    }
    for act in ["commit s", "discard s -y", "rewind s 0"] {
        assert!(desk.recant(act).with(6).stderr().contains("has run in it since "), "{act}");
    }
    desk.held("--session s", "touch stop").run().ok();
    assert_eq!(ended(server).0, 0);
    assert_eq!(desk.paths("s"), ["down", "stop", "up"]);
}

/// `--wait` waits for the end instead, and gets a step of its own.
#[test]
fn who_waits_gets_a_step_of_its_own() {
    let desk = &own();
    let server = serve(desk, "", "echo up > up; sleep 0.3; echo down > down", "up");
    assert_eq!(desk.held("--session s --wait 30s", "ls").run().ok().stdout(), "down\nup\n");
    assert_eq!(ended(server).0, 0);
}

#[test]
fn older_directories_are_renamed_beside_a_server_too() {
    if !has("python3") {
        return;
    }
    let desk = &Desk::new(Who::User);
    desk.made("mkdir -p d/in; echo 1 > d/in/f");
    let server = serve(desk, "", SERVER, "up");
    let script = "import os; os.rename('d', 'e'); open('stop', 'w')";
    desk.call(["run", "--session", "s", "--", "/usr/bin/python3", "-c", script]).run().ok();
    assert_eq!(ended(server).0, 0);
    assert_eq!(desk.recant("cat s e/in/f").ok().stdout(), "1\n");
}

/// The files of the session that only a run under way has.
fn of_running(desk: &Desk) -> Vec<String> {
    let session = desk.world.session(&desk.id());
    let names = std::fs::read_dir(session).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let is_of_it = |name: &String| name == "join" || name.starts_with("beside.") || name.starts_with("present.");
    names.filter(is_of_it).collect()
}

#[test]
fn nothing_of_the_run_is_left_when_it_has_ended() {
    each(|desk| {
        let server = serve(desk, "", SERVER, "up");
        desk.held("--session s", "touch stop").run().ok();
        assert_eq!(ended(server).0, 0);
        assert_eq!(of_running(desk), [""; 0]);
    });
}

#[test]
fn a_command_that_is_killed_together_with_the_run_is_told_as_cut_off() {
    let desk = &own();
    let first = desk.start("--session s", "echo up > up; echo ready; read go");
    let mut second = desk.start("--session s", "echo in > in; echo ready; read go").child;
    // Neither can tell how it ended.
    let stands = rustix::process::Pid::from_child(&second);
    rustix::process::kill_process(stands, rustix::process::Signal::STOP).unwrap();
    first.kill();
    until("the run is over", || desk.recant("list").ok().stdout().contains("cut off"));
    assert_eq!(desk.paths("s"), ["in", "up"]);
    let said = desk.recant("steps s").ok();
    assert_eq!(said.stdout().matches("cut off").count(), 2, "{said}");
    rustix::process::kill_process(stands, rustix::process::Signal::CONT).unwrap();
    assert_eq!(second.wait().unwrap().code(), Some(137));
    assert_eq!(of_running(desk), [""; 0], "what it notes late is nothing");
}

#[test]
fn a_command_that_never_began_is_no_line_of_the_step() {
    let desk = &own();
    let server = serve(desk, "", SERVER, "up");
    desk.call(["run", "--session", "s", "--", "no-such-program"]).run().with(127);
    assert_eq!(desk.recant("steps s --json").ok().json()["running"].get("beside"), None);
    desk.held("--session s", "touch stop").run().ok();
    assert_eq!(ended(server).0, 0);
}

#[test]
fn what_fails_when_a_joined_command_has_run_is_not_told_as_a_failed_start() {
    let desk = &own();
    let server = serve(desk, "", SERVER, "up");
    let (mut ran_and_failed, mut not_started) = (0, 0);
    for n in 1.. {
        let said = desk.held("--session s", &format!("echo {n} > ran-{n}")).env("RECANT_STEPS", format!("fail:{n}:5")).run();
        assert!(n < 50, "no end");
        let has_run = desk.recant("diff s --name-only").ok().stdout().contains(&format!("/ran-{n}\n"));
        match (has_run, said.status) {
            (true, 0) => break,
            (true, status) => {
                assert!(status == 4 && said.stderr().contains("the command has run, and ended with 0"), "{n}: {said}");
                ran_and_failed += 1;
            }
            (false, status) => {
                assert_eq!(status, 125, "{n}: {said}");
                not_started += 1;
            }
        }
    }
    assert!(ran_and_failed > 0 && not_started > 0, "{ran_and_failed} and {not_started}");
    desk.held("--session s", "touch stop").run().ok();
    assert_eq!(ended(server).0, 0);
}

#[test]
fn who_cannot_act_hears_which_commands_run_and_since_when() {
    let desk = &own();
    let server = serve(desk, "", SERVER, "up");
    for act in ["commit s", "discard s -y", "rewind s 0", "fork s"] {
        let said = desk.recant(act).with(6);
        assert!(said.stderr().contains(": \"sh -c echo up > up;…\" has run in it since "), "{act}: {said}");
        assert!(said.stderr().lines().all(|line| line.chars().count() <= 80), "{act}: {said}");
    }
    let other = desk.start("--session s", "echo ready; read go");
    let said = desk.recant("commit s").with(6);
    assert!(said.stderr().contains("\"sh -c echo ready; re…\": has run in it since "), "{said}");
    assert!(said.stderr().contains("2 commands run in it"), "{said}");
    // Who was killed is not there any more.
    other.kill();
    until("it is gone", || !desk.recant("commit s").with(6).stderr().contains("echo ready"));
    desk.held("--session s", "touch stop").run().ok();
    assert_eq!(ended(server).0, 0);
}
