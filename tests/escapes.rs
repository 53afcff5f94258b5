//! Ways out of a run, each tried as root and as an ordinary user: none reaches the real tree or the store. What is tried
//! is in `tests/escapes/attempts.py`. A root that sets out to break away, and daemons asked over passed sockets, are outside.
#![allow(clippy::print_stdout, reason = "what is skipped is said")]
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests set up real files")]

mod common;
#[path = "common/desk.rs"]
mod desk;

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use desk::{Desk, USER, Who, each, has, is_root};

/// A process outside the run, with a folder and a writable file open.
struct Outside(Child);

impl Outside {
    fn start(desk: &Desk) -> Self {
        let mut command = if desk.other() { Command::new("setpriv") } else { Command::new("sh") };
        if desk.other() {
            command.args([&format!("--reuid={USER}"), &format!("--regid={USER}"), "--clear-groups", "sh"]);
        }
        command.args(["-c", "exec 3< . 4>> real; echo started; read end"]).current_dir(desk.world.tree());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0; 8]).unwrap();
        Self(child)
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn escaped_below(top: &Path) -> bool {
    let found = Command::new("find").arg(top).args(["-xdev", "-name", "escaped", "-not", "-path", "*/held/*"]).output().unwrap();
    !found.stdout.is_empty()
}

#[test]
fn no_way_out_of_a_run_reaches_the_tree() {
    if !has("python3") {
        return;
    }
    each(|desk| {
        // Their folder's name would say where to look for it; the socket lies in a captured place.
        desk.made("echo real > real; mkdir folder");
        let listener = UnixListener::bind(desk.world.root().join("listening")).unwrap();
        let outside = Outside::start(desk);
        let before = desk.world.manifest();
        let script = desk.world.root().join("attempts.py");
        std::fs::write(&script, include_str!("escapes/attempts.py")).unwrap();
        let pids = [outside.0.id(), std::process::id(), 1].map(|pid| pid.to_string());
        let (tree, store) = (desk.world.tree(), desk.world.store());
        let words = ["run", "--discard", "--", "/usr/bin/python3"].into_iter().map(ToOwned::to_owned);
        let paths = [&script, &tree, &store, &desk.world.root().join("listening")].map(|path| path.to_str().unwrap().to_owned());
        let words: Vec<String> = words.chain(paths).chain(pids).collect();
        // 3 is a folder, 4 a file to write, 5 a file to read: as a careless caller leaves them open.
        let inherit = "exec 3< folder 4>> real 5< real; exec \"$@\"";
        let binary = desk.binary.to_str().unwrap();
        let words: Vec<&str> = ["-c", inherit, "sh", binary].into_iter().chain(words.iter().map(String::as_str)).collect();
        let output = desk.give(desk.world.program("sh", words)).command().stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("tried all"), "{:?}: {said}{errors}", desk.who);
        assert!(!said.contains("ESCAPED"), "{:?}: {said}", desk.who);
        std::fs::remove_file(&script).unwrap();
        desk.world.manifest().assert_same(&before, &format!("{:?}: {said}", desk.who));
        assert!(!escaped_below(desk.world.root()), "{:?}: {said}", desk.who);
        drop(listener);
        // What must have been refused, by name; what is allowed (a chroot) ends in the run.
        for name in [
            "umount",
            "reveal the store",
            "move",
            "pivot_root",
            "guessed handle",
            "bpf",
            "init_module",
            "sysctl",
            "sysrq",
            "peer",
            "setns",
        ] {
            let row = said.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap_or_else(|| panic!("{name}: {said}"));
            assert!(!row.ends_with(" done") && !row.contains("not tried"), "{:?}: {row}", desk.who);
        }
    });
}

/// A server outside that answers whoever connects.
fn serve(path: &Path) -> std::thread::JoinHandle<usize> {
    let listener = UnixListener::bind(path).unwrap();
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    std::thread::spawn(move || {
        let mut served = 0;
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let mut word = [0; 4];
            if client.read_exact(&mut word).is_ok() && &word == b"quit" {
                return served;
            }
            served += 1;
            client.write_all(b"hello\n").unwrap();
        }
        served
    })
}

#[test]
fn sockets_of_processes_outside_are_dead_but_for_those_that_are_passed() {
    if !is_root() {
        return eprintln!("skipped: a socket that an ordinary user does not capture is made by root");
    }
    if !has("python3") {
        return;
    }
    each(|desk| {
        desk.made("mkdir sockets");
        // For the user one lies in a place that is not captured.
        let far = tempfile::Builder::new().prefix("recant-socket-").tempdir_in("/run").unwrap();
        std::fs::set_permissions(far.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        for path in [desk.world.path("sockets/near"), far.path().canonicalize().unwrap().join("far")] {
            let server = serve(&path);
            let ask = format!(
                "import socket; s = socket.socket(socket.AF_UNIX); s.connect('{}'); s.sendall(b'word'); print(s.recv(9))",
                path.display()
            );
            let held = |options: &[&str]| {
                let words = [&["run", "--discard"], options, &["--", "/usr/bin/python3", "-c", &ask]].concat();
                desk.call(words).run()
            };
            let dead = held(&[]);
            assert!(dead.status == 1 && dead.stderr().contains("refused"), "{:?}: {}: {dead}", desk.who, path.display());
            let passed = held(&["--pass", path.to_str().unwrap()]);
            assert_eq!(
                (passed.status, passed.stdout().trim()),
                (0, "b'hello\\n'"),
                "{:?}: {}: {passed}",
                desk.who,
                path.display()
            );
            std::os::unix::net::UnixStream::connect(&path).unwrap().write_all(b"quit").unwrap();
            assert_eq!(server.join().unwrap(), 1, "the one that was passed");
        }
        if desk.who == Who::User {
            desk.run("echo new > new").ok();
        }
    });
}

#[test]
fn without_the_list_of_sockets_no_command_is_started() {
    if !is_root() {
        return println!("skipped: /proc/net/unix is hidden by root alone");
    }
    let world = common::World::new();
    let script = format!("mount -t tmpfs none /proc/$$/net && exec {} run -- touch made", env!("CARGO_BIN_EXE_recant"));
    let said = world.program("unshare", ["-m", "sh", "-c", &script]).run().with(125);
    assert!(said.stderr().contains("/proc/net/unix") && said.stderr().contains("not started"), "{said}");
    assert!(world.recant("list").ok().stdout().is_empty() && !world.exists("made"), "{said}");
}

#[test]
fn a_server_and_its_client_inside_a_run_meet() {
    if !has("python3") {
        return;
    }
    each(|desk| {
        let script = "import os, socket\n\
            s = socket.socket(socket.AF_UNIX); s.bind('here'); s.listen()\n\
            if os.fork() == 0:\n c = socket.socket(socket.AF_UNIX); c.connect('here'); c.sendall(b'x'); os._exit(0)\n\
            a, _ = s.accept(); assert a.recv(1) == b'x'; os.wait()";
        desk.call(["run", "--", "/usr/bin/python3", "-c", script]).run().ok();
        assert!(!desk.world.exists("here"));
    });
}
