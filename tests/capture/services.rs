//! Services: commands that go on in the background of their session until they are stopped.

use std::io::Read;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::SystemTime;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::at_terminal;
use crate::common::{Said, until};
use crate::desk::{Desk, Who, each, is_root, settled};

/// What goes on until it is asked to end.
const SERVER: &str = "echo listening; echo up > up; while :; do sleep 0.05; done";
/// What does not end then.
const STUBBORN: &str = "trap '' TERM; echo up > up; while :; do sleep 0.05; done";

/// The services of a session end with the test, however it ends.
struct Ends<'d>(&'d Desk);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.recant("discard s --now -y");
    }
}

fn own() -> Desk {
    Desk::new(if is_root() { Who::Root } else { Who::User })
}

/// Begins a service. The caller gets an end of its streams, though the service goes on.
fn serve(desk: &Desk, name: &str, script: &str) -> Said {
    desk.held(&format!("--session s --serve {name}"), script).env("RECANT_STOP_AFTER", "1").run()
}

fn steps(desk: &Desk) -> Value {
    desk.recant("steps s --json").ok().json()
}

/// The files of the session that only a run under way has.
fn of_running(desk: &Desk) -> Vec<String> {
    let session = desk.world.session(&desk.id());
    let names = std::fs::read_dir(session).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let is_of_it = |name: &String| name == "join" || name.starts_with("beside.") || name.starts_with("present.");
    names.filter(is_of_it).collect()
}

/// The process that tends a service.
fn recant_of(name: &str) -> Pid {
    let is_it = |proc: &PathBuf| {
        let has = std::fs::read(proc.join("cmdline")).is_ok_and(|words| {
            let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
            words.windows(2).any(|pair| pair == [&b"--serve"[..], name.as_bytes()])
        });
        // The init of its run has another name.
        has && std::fs::read(proc.join("comm")).is_ok_and(|comm| comm == b"recant\n")
    };
    let all = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let found = all.filter(is_it).find_map(|proc| proc.file_name()?.to_str()?.parse().ok());
    Pid::from_raw(found.expect("a process that tends it")).unwrap()
}

#[test]
fn a_service_and_ten_edits_beside_it_are_one_step() {
    each(|desk| {
        let _ends = Ends(desk);
        let before = desk.made_before("mkdir d; echo 0 > f", "f");
        let since = SystemTime::now();
        let said = serve(desk, "web", SERVER).ok();
        let told = said.stderr();
        let lines: Vec<&str> = told.lines().collect();
        assert!(lines[1].starts_with("recant: web runs in session ") && lines[1].ends_with("--stop web ends it"), "{said}");
        assert!(lines[1].len() <= 80 && lines.len() == 3, "{said}");
        let output = desk.world.session(&desk.id()).join("output.web");
        assert!(lines[2].ends_with("/output.web") && std::fs::read(&output).unwrap() == b"listening\n", "{said}");
        for n in 1..=10 {
            let said = desk.held("--session s", &format!("cat up; tail -n 1 f; echo {n} >> f; echo {n} > d/{n}; exit {n}")).run();
            assert_eq!((said.status, said.stdout()), (n, format!("up\n{}\n", n - 1)), "{said}");
        }
        let running = &steps(desk)["running"];
        assert_eq!(
            (&running["service"]["name"], running["beside"].as_array().map(Vec::len)),
            (&"web".into(), Some(10)),
            "{running}"
        );
        assert_eq!(desk.recant("list --json").ok().json()["sessions"][0]["services"][0]["name"], "web");
        assert_eq!(desk.recant("status --json").ok().json()["running"][0]["services"][0]["name"], "web");
        assert_eq!(desk.recant("--json").ok().json()["sessions"][0]["services"][0]["name"], "web");
        assert!(desk.recant("").ok().stdout().contains(", web since "));
        assert!(desk.recant("status").ok().stdout().contains("web since "));
        assert_eq!(desk.recant("run --session s --stop web").ok().stdout(), "web is stopped (SIGTERM)\n");
        let told = steps(desk);
        assert_eq!((&told["head"], &told["steps"][0]["service"]["stopped"]), (&1.into(), &"asked".into()), "{told}");
        assert_eq!(told["session"].get("failed"), None, "it was stopped: {told}");
        assert_eq!(of_running(desk), [""; 0]);
        desk.recant("commit s").ok();
        let committed = settled(desk.world.manifest(), since);
        desk.recant("rollback s").ok();
        desk.world.manifest().assert_same(&before, "taken back");
        let edits = "for n in $(seq 10); do echo $n >> f; echo $n > d/$n; done; echo up > up";
        desk.bare(&desk.world.tree(), edits);
        committed.assert_same(&settled(desk.world.manifest(), since), "held and bare");
    });
}

#[test]
fn services_join_what_runs_and_each_ends_by_itself() {
    each(|desk| {
        let _ends = Ends(desk);
        serve(desk, "one", SERVER).ok();
        let second = "trap 'echo got > got; exit 0' TERM; cat up; while :; do sleep 0.05; done";
        let said = serve(desk, "two", second).ok();
        assert!(said.stderr().starts_with("recant: two runs in session "), "{said}");
        // The first one ends; the run goes on.
        assert_eq!(desk.recant("run --session s --stop one").ok().stdout(), "one is stopped (SIGTERM)\n");
        let running = &steps(desk)["running"];
        assert_eq!((&running["service"]["stopped"], &running["ending"]["signaled"]), (&"asked".into(), &15.into()), "{running}");
        assert!(desk.recant("run --session s --stop one").with(1).stderr().contains("no service one runs"));
        desk.held("--session s", "echo late > late").run().ok();
        // Its name is free again.
        serve(desk, "one", "exec sleep 60").ok();
        assert_eq!(desk.recant("run --session s --stop two --json").ok().json()["stopped"], "asked");
        assert_eq!(desk.recant("run --session s --stop one").ok().stdout(), "one is stopped (SIGTERM)\n");
        until("the run is collected", || steps(desk)["head"] == 1);
        assert_eq!(desk.paths("s"), ["got", "late", "up"]);
        let told = steps(desk);
        let beside = told["steps"][0]["beside"].as_array().unwrap();
        assert_eq!(beside.iter().filter(|row| row["service"]["stopped"] == "asked").count(), 2, "{told}");
    });
}

#[test]
fn what_does_not_end_when_it_is_asked_to_is_killed_and_named() {
    each(|desk| {
        let _ends = Ends(desk);
        serve(desk, "web", STUBBORN).ok();
        serve(desk, "other", STUBBORN).ok();
        let said = desk.recant("run --session s --stop other").ok();
        assert_eq!(said.stdout(), "other did not end within 10 s of SIGTERM, and is killed (SIGKILL)\n");
        let said = desk.recant("commit s -y").ok();
        assert!(said.stderr().contains("web did not end within 10 s of SIGTERM, and is killed"), "{said}");
        assert!(desk.world.exists("up"));
        let told = steps(desk);
        assert_eq!(told["steps"][0]["service"]["stopped"], "killed", "{told}");
    });
}

#[test]
fn two_of_one_name_are_refused_by_it() {
    let desk = &own();
    let _ends = Ends(desk);
    serve(desk, "web", SERVER).ok();
    let said = serve(desk, "web", SERVER).with(125);
    assert!(said.stderr().contains("web runs already in session") && said.stderr().contains("--stop web"), "{said}");
    serve(desk, "two", SERVER).ok();
    assert!(serve(desk, "two", SERVER).with(125).stderr().contains("two runs already in session"));
    assert_eq!(steps(desk)["running"]["beside"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_service_that_fails_at_once_is_told_with_its_last_lines() {
    each(|desk| {
        let said = serve(desk, "web", "seq 30; echo bad >&2; exit 3").with(3);
        let told = said.stderr();
        assert!(told.contains("web ended at once (exit 3):\n  22\n") && told.contains("  30\n  bad\n"), "{said}");
        let said = desk.call(["run", "--session", "s", "--serve", "web", "--", "no-such-program"]).run().with(127);
        assert!(said.stderr().contains("no-such-program: command not found"), "{said}");
        assert!(desk.ids().is_empty(), "nothing was held");
        let _ends = Ends(desk);
        serve(desk, "web", SERVER).ok();
        assert!(serve(desk, "two", "echo bad; exit 4").with(4).stderr().contains("two ended at once (exit 4):\n  bad\n"));
        desk.call(["run", "--session", "s", "--serve", "two", "--", "no-such-program"]).run().with(127);
        // What never began is no line of the step.
        assert_eq!(steps(desk)["running"]["beside"].as_array().map(Vec::len), Some(1));
    });
}

#[test]
fn a_service_that_ends_by_itself_leaves_its_exit_in_the_steps() {
    each(|desk| {
        let _ends = Ends(desk);
        serve(desk, "web", "echo up > up; until [ -e stop ]; do sleep 0.02; done; exit 5").ok();
        desk.held("--session s", "touch stop").run().ok();
        until("it is collected", || steps(desk)["head"] == 1);
        let told = steps(desk);
        assert_eq!(
            (&told["steps"][0]["ending"]["exited"], &told["session"]["failed"]["exited"]),
            (&5.into(), &5.into()),
            "{told}"
        );
        assert!(desk.recant("steps s").ok().stdout().contains("exit 5"));
        desk.recant("run --session s --stop web").with(1);
    });
}

#[test]
fn nothing_is_stopped_for_an_act_unless_somebody_agrees() {
    each(|desk| {
        let _ends = Ends(desk);
        serve(desk, "web", SERVER).ok();
        for act in ["commit s", "discard s", "discard s up", "rewind s 0", "commit s up"] {
            let said = desk.recant(act).with(6);
            let told = said.stderr();
            assert!(told.contains(": web: \"sh -c ") && told.contains("\" has run in it since "), "{act}: {said}");
            assert!(told.contains("-y stops it first, as recant run --session ") && told.contains("--stop web does"), "{said}");
            assert!(told.lines().all(|line| line.chars().count() <= 80), "{act}: {said}");
        }
        let said = at_terminal(desk, "commit s", "n\n").run().with(1);
        assert!(said.stdout().contains("Stop it first?") && said.stdout().contains("web: \"sh -c "), "{said}");
        assert!(steps(desk)["running"].is_object(), "nobody agreed");
        // A dry run stops nothing either.
        desk.recant("commit s --dry-run -y").with(6);
        desk.recant("discard s --dry-run -y").with(6);
        let said = at_terminal(desk, "commit s", "y\n").run().ok();
        assert!(said.stdout().contains("web is stopped (SIGTERM)"), "{said}");
        assert_eq!(desk.world.read("up"), "up\n");
    });
}

#[test]
fn y_answers_for_every_act() {
    let desk = &own();
    let _ends = Ends(desk);
    for act in ["discard s -y", "rewind s 0 -y", "discard s up -y"] {
        serve(desk, "web", SERVER).ok();
        let said = desk.recant(act).ok();
        assert!(said.stderr().contains("web is stopped (SIGTERM)"), "{act}: {said}");
        assert!(!desk.recant("list --json").ok().stdout().contains("running"), "{act}");
        desk.recant("discard s --now -y");
    }
}

#[test]
fn beside_another_command_nothing_is_stopped_and_all_are_named() {
    let desk = &own();
    let _ends = Ends(desk);
    serve(desk, "web", SERVER).ok();
    let other = desk.start("--session s", "echo ready; read go");
    for act in ["commit s -y", "discard s -y", "rewind s 0 -y"] {
        let told = desk.recant(act).with(6).stderr();
        assert!(
            told.contains("web: \"sh -c ") && told.contains("\"sh -c echo ready; re…\": has run in it since "),
            "{act}: {told}"
        );
    }
    // Who was killed is not there any more.
    other.kill();
    until("it is gone", || !desk.recant("commit s").with(6).stderr().contains("echo ready"));
}

#[test]
fn an_agent_stops_what_agents_began_alone() {
    let desk = &own();
    let agent = |words: &str| desk.call(words.split(' ')).env("CLAUDECODE", "1").run();
    {
        let _ends = Ends(desk);
        serve(desk, "web", SERVER).ok();
        let said = agent("run --session s --stop web").with(6);
        assert!(said.stderr().contains("a person began web in session "), "{said}");
        agent("discard s -y").with(1);
        assert!(steps(desk)["running"].is_object());
    }
    let _ends = Ends(desk);
    let begun = desk.held("--session s --serve web", SERVER).env("CLAUDECODE", "1").run().ok();
    assert!(begun.stderr().contains("web runs in session"), "{begun}");
    agent("run --session s --stop web").ok();
    desk.held("--session s --serve web", SERVER).env("CLAUDECODE", "1").run().ok();
    assert!(agent("rewind s 0").with(6).stderr().contains("-y stops it first"));
    agent("rewind s 0 -y").ok();
}

#[test]
fn a_service_whose_recant_is_killed_is_cut_off_and_its_session_goes_on() {
    each(|desk| {
        let _ends = Ends(desk);
        let [first, second] = ["first", "second"].map(|name| format!("{name}-{:?}-{}", desk.who, std::process::id()));
        serve(desk, &first, SERVER).ok();
        // One that joined goes alone.
        serve(desk, &second, "echo in > in; exec sleep 61").ok();
        kill_process(recant_of(&second), Signal::KILL).unwrap();
        until("its command ends", || !desk.held("--session s", "ps ax").run().ok().stdout().contains("sleep 61"));
        assert!(desk.recant(&format!("run --session s --stop {second}")).with(1).stderr().contains("no service"));
        // With the one that began the run it is over.
        kill_process(recant_of(&first), Signal::KILL).unwrap();
        until("the run is over", || desk.recant("list").ok().stdout().contains("cut off"));
        assert_eq!(desk.paths("s"), ["in", "up"]);
        let told = steps(desk);
        assert_eq!(
            (&told["steps"][0]["ending"], &told["steps"][0]["beside"][0]["ending"]),
            (&Value::Null, &Value::Null),
            "{told}"
        );
        let said = desk.recant("steps s").ok();
        assert_eq!(said.stdout().matches("cut off").count(), 2, "{said}");
        assert_eq!(of_running(desk), [""; 0]);
        desk.held("--session s", "cat up in; echo on > on").run().ok();
        serve(desk, &first, "cat on; exec sleep 60").ok();
        desk.recant("commit s -y").ok();
        assert_eq!(desk.world.read("on"), "on\n");
    });
}

#[test]
fn a_service_outlives_the_terminal_it_was_begun_at() {
    each(|desk| {
        let _ends = Ends(desk);
        let words = "run --session s --serve web -- sh -c 'echo up > up; exec sleep 60'";
        let said = at_terminal(desk, words, "").run().ok();
        assert!(said.stdout().contains("web runs in session"), "{said}");
        // The terminal is gone by now.
        assert_eq!(desk.held("--session s", "cat up").run().ok().stdout(), "up\n");
        desk.recant("run --session s --stop web").ok();
    });
}

#[test]
fn who_waits_for_commands_does_not_wait_for_a_service() {
    let desk = &own();
    let _ends = Ends(desk);
    serve(desk, "web", SERVER).ok();
    let said = desk.held("--session s --wait 10m", "cat up").run().ok();
    assert_eq!(said.stdout(), "up\n");
    assert_eq!(steps(desk)["running"]["beside"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_a_service_cannot_have_is_refused_by_name() {
    let desk = &own();
    for options in ["--serve web", "--stop web"] {
        assert!(desk.recant(&format!("run {options} -- true")).with(2).stderr().contains("--session"));
    }
    for options in ["--wait 1m", "--in .", "--commit", "--discard", "--no-wait", "--name x", "--stop y"] {
        let said = desk.recant(&format!("run --session s --serve web {options} -- true")).with(2);
        assert!(said.stderr().contains(options.split(' ').next().unwrap()), "{said}");
    }
    desk.recant("run --session s --stop web -- true").with(2);
    desk.recant("run --session s --serve 1 -- true").with(2);
    desk.recant("run --session s").with(2);
    let said = desk.run(&format!("'{}' run --session x --serve web -- true", desk.binary.display())).with(125);
    assert!(said.stderr().contains("COMMAND &"), "{said}");
}

#[test]
fn what_a_service_started_ends_with_it() {
    each(|desk| {
        let _ends = Ends(desk);
        serve(desk, "web", "sleep 62 & setsid sleep 63 & echo up > up; wait").ok();
        let sleeps = || desk.held("--session s", "ps -e -o args=").run().ok().stdout();
        assert!(sleeps().contains("sleep 62") && sleeps().contains("sleep 63"));
        assert_eq!(desk.recant("run --session s --stop web").ok().stdout(), "web is stopped (SIGTERM)\n");
        assert_eq!(desk.paths("s"), ["up"]);
    });
}

#[test]
fn a_caller_that_is_gone_before_its_service_runs_has_begun_none() {
    each(|desk| {
        let _ends = Ends(desk);
        let mut caller = desk.held("--session s --serve web", SERVER).command();
        let mut caller = caller.stderr(Stdio::piped()).spawn().unwrap();
        until("it is begun", || desk.recant("diff s --name-only").stdout().contains("up"));
        caller.kill().unwrap();
        caller.wait().unwrap();
        until("it is stopped", || desk.recant("steps s --json").stdout().contains("\"stopped\":\"asked\""));
        let mut said = String::new();
        caller.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(!said.contains("web runs"), "{said}");
    });
}

#[test]
fn who_needs_the_session_alone_hears_how_services_are_ended() {
    let desk = &own();
    let _ends = Ends(desk);
    for name in ["web", "db"] {
        serve(desk, name, "echo up > up; sleep 600").ok();
    }
    let said = desk.held("--session s --pass /dev/null", "true").run().with(125);
    assert!(said.stderr().ends_with("--stop NAME ends each\n"), "{said}");
    for name in ["web", "db"] {
        desk.recant(&format!("run --session s --stop {name}")).ok();
    }
    until("the run is collected", || steps(desk)["head"] == 1);
    desk.held("--session s --pass /dev/null", "true").run().ok();
}
