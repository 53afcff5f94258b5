//! A far side that says nothing, or nothing more: within `remote.timeout` the near side ends with what is true, and leaves nothing behind. What
//! takes long, is stopped here, or asks a person is none.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{self, World, can_run};
use crate::machine;
use crate::ssh::{self, Net, children};
use rustix::process::{Pid, Signal};

/// Makes a script the world's ssh: what stands in the place of a far side that never speaks.
fn script(world: &World, text: &str, timeout: &str) {
    let path = world.root().join("an-ssh");
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a script");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("its mode");
    world.config(&format!("[remote]\nssh = '{}'\ntimeout = '{timeout}'\n", path.display()));
}

/// Real machines, with less patience than most.
fn patient(world: &World, net: &Net, timeout: &str) {
    world.config(&format!("[remote]\nssh = 'ssh -F {}'\ntimeout = '{timeout}'\n", net.settings().display()));
}

fn is_there(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

fn signal(pid: i32, signal: Signal) {
    rustix::process::kill_process(Pid::from_raw(pid).expect("a process"), signal).expect("it is there");
}

/// All that a process has started.
fn below(pid: i32) -> Vec<i32> {
    let mut all = vec![pid];
    let mut next = 0;
    while let Some(pid) = all.get(next) {
        all.extend(children(*pid as u32));
        next += 1;
    }
    all
}

#[test]
fn a_far_side_that_never_speaks_is_named_in_time_and_its_ssh_goes() {
    let world = World::new();
    let pid = world.root().join("pid");
    // Nothing; a hello that breaks off; one that ignores what asks it to end.
    for text in ["exec sleep 600", "printf 'motd\\nrecant-fa'; exec sleep 600", "trap '' TERM; while :; do sleep 0.1; done"] {
        script(&world, &format!("echo $$ > {}\n{text}", pid.display()), "2s");
        let start = Instant::now();
        let said = world.recant("-H web1 list").with(1);
        assert!(said.stderr().contains("recant: web1: no answer for 2 s"), "{said}");
        assert!(said.stderr().contains("nothing is known to have been done on web1"), "{said}");
        assert!(said.stderr().contains("remote.timeout"), "{said}");
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
        let pid = std::fs::read_to_string(&pid).expect("it was started").trim().parse().expect("a number");
        assert!(!is_there(pid), "{text}: its ssh is still there");
    }
}

#[test]
fn a_login_that_hangs_is_a_far_side_that_never_speaks() {
    let Some((world, net, host)) = machine() else { return };
    patient(&world, &net, "4s");
    host.write(".noise", "echo welcome; exec sleep 600");
    let said = world.recant("-H web1 session new").with(1);
    assert!(said.stderr().contains("welcome\n") && said.stderr().contains("web1: no answer for 4 s"), "{said}");
    assert!(!host.store().exists());
    host.write(".noise", "");
    world.recant("-H web1 session new").ok();
}

/// A verb that is under way on a machine, and has said something.
fn running(world: &World, words: &[&str]) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut command = world.call(["-H", "web1"].iter().chain(words)).command();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("recant starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a first line");
    assert_eq!(line, "begun\n");
    (child, stdout)
}

#[test]
fn a_connection_that_stalls_is_told_from_a_verb_that_takes_long() {
    let Some((world, net, host)) = machine() else { return };
    if !can_run() {
        return common::skip("a stalled run on another machine: recant run does not work here");
    }
    patient(&world, &net, "3s");
    // Longer than a silence may be.
    let start = Instant::now();
    world.call(["-H", "web1", "run", "--", "sleep", "5"]).run().ok();
    assert!(start.elapsed() > Duration::from_secs(5));
    for who in ["sshd", "relay"] {
        let (child, _stdout) = running(&world, &["run", "--", "sh", "-c", "echo begun; exec sleep 600"]);
        let writer = host.writer();
        let stopped: Vec<i32> = match who {
            // Its own processes alone: what they have started goes on.
            "sshd" => host.connections().into_iter().flat_map(below).filter(|pid| is_sshd(*pid)).collect(),
            _ => vec![ssh::parent(writer)],
        };
        stopped.iter().for_each(|pid| signal(*pid, Signal::STOP));
        let start = Instant::now();
        let ended = child.wait_with_output().expect("its end");
        let text = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{who}: {text}");
        assert!(text.contains("web1: nothing came from there for 3 s, and whether it ended is unknown"), "{who}: {text}");
        assert!(text.contains("recant -H web1 status shows what was done"), "{who}: {text}");
        assert!(start.elapsed() < Duration::from_secs(30), "{who}: {:?}", start.elapsed());
        // Once it goes on it sees that the connection is gone; one that is shared stays with ssh.
        stopped.iter().for_each(|pid| signal(*pid, Signal::CONT));
        host.cut();
        common::until("the run has ended there", || !is_there(writer));
    }
}

fn is_sshd(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().starts_with("sshd")
}

#[test]
fn a_near_side_that_was_stopped_itself_goes_on() {
    let Some((world, net, host)) = machine() else { return };
    if !can_run() {
        return common::skip("a near side that is stopped: recant run does not work here");
    }
    patient(&world, &net, "3s");
    let (child, mut stdout) =
        running(&world, &["run", "--", "sh", "-c", "echo begun; while [ ! -e go ]; do sleep 0.1; done; echo done"]);
    // As Ctrl-Z does: to recant and to its ssh.
    let stopped = below(i32::try_from(child.id()).expect("a number"));
    stopped.iter().for_each(|pid| signal(*pid, Signal::STOP));
    // More than the limit is what this is about.
    std::thread::sleep(Duration::from_secs(5));
    // recant first: what it finds is a pipe that was silent for all that time.
    stopped.iter().for_each(|pid| signal(*pid, Signal::CONT));
    let writer = host.writer();
    let inside = format!("/proc/{}/root{}/go", children(writer as u32)[0], host.home.display());
    std::fs::write(&inside, "").expect("the run sees it");
    let mut rest = String::new();
    stdout.read_line(&mut rest).expect("what it says then");
    let ended = child.wait_with_output().expect("its end");
    assert_eq!((rest.as_str(), ended.status.code()), ("done\n", Some(0)), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn a_person_who_is_asked_by_ssh_may_take_longer() {
    let Some((world, net, _host)) = machine() else { return };
    let keys = world.root().join("ssh");
    let key = keys.join("locked");
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "a passphrase", "-f"]).arg(&key).status();
    assert!(made.is_ok_and(|made| made.success()));
    let public = std::fs::read_to_string(keys.join("locked.pub")).expect("the key");
    std::fs::write(keys.join("authorized"), public).expect("the only key that is let in");
    let settings = std::fs::read_to_string(net.settings()).expect("settings");
    let settings = settings.replace("BatchMode yes", "BatchMode no").replace("/ssh/user\n", "/ssh/locked\n");
    let settings = settings.replace("ControlMaster auto", "ControlMaster no");
    std::fs::write(net.settings(), settings).expect("other settings");
    patient(&world, &net, "3s");
    let shown = world.root().join("shown");
    let recant = common::recant();
    // Typed later than a silence may last; the terminal stays open to the end.
    let script = format!(
        "(sleep 4; echo 'a passphrase'; until [ -e ended ]; do sleep 0.05; done) | \
         {{ script -qec '{recant} -H web1 session new' /dev/null > {} 2>&1; : > ended; }}",
        shown.display()
    );
    let said = world.program("sh", ["-c", &script]).without("SSH_ASKPASS").without("DISPLAY").run();
    let text = std::fs::read_to_string(&shown).expect("what was shown");
    assert!(text.contains("Enter passphrase") && !text.contains("no answer"), "{text}{said}");
    assert!(world.root().join("hosts/web1/home/.local/share/recant/sessions").exists(), "{text}");
}

/// As with a shared connection, whose process stays for the next: what it has to say by then is said.
#[test]
fn an_ssh_that_stays_after_the_last_word_keeps_nobody_waiting() {
    let world = World::new();
    let pid = world.root().join("stays");
    let recant = common::recant();
    let stays = format!("{recant} far; echo $$ > {}; exec sleep 60", pid.display());
    script(&world, &stays, "1h");
    let start = Instant::now();
    world.recant("-H web1 session new").ok();
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    let stayed = std::fs::read_to_string(&pid).expect("it has ended there").trim().parse().expect("a number");
    // It may be what others go through.
    assert!(is_there(stayed), "it was ended");
    signal(stayed, Signal::KILL);
}

#[test]
fn a_login_that_writes_without_end_is_given_up_and_ends() {
    let Some((world, net, host)) = machine() else { return };
    // Not this is what ends it.
    patient(&world, &net, "30s");
    for noise in ["while :; do echo babble; done", "exec cat /dev/zero", "while :; do echo >&2 babble; echo babble; done"] {
        host.write(".noise", noise);
        let start = Instant::now();
        let said = world.recant("-H web1 session new").with(1);
        assert!(said.stderr_lossy().contains("web1: its login scripts write without end"), "{noise}");
        assert!(said.stderr_lossy().contains("nothing is known to have been done on web1"), "{noise}");
        assert!(start.elapsed() < Duration::from_secs(60), "{noise}: {:?}", start.elapsed());
        let writes = |pid: i32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !stat.contains(") Z ") && !is_sshd(pid) && !stat.is_empty()
        };
        common::until("it has ended there", || host.connections().into_iter().flat_map(below).all(|pid| !writes(pid)));
    }
    assert!(!host.store().exists());
    host.write(".noise", "");
    world.recant("-H web1 session new").ok();
}
