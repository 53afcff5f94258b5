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
        assert!(desk.recant(act).with(6).stderr().contains("a command is running"), "{act}");
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
