//! Ways out of a run, each tried as root and as an ordinary user: none reaches the real tree or the store. What is tried
//! is in `tests/escapes/attempts.py`. A root that sets out to break away, and daemons asked over passed sockets, are outside.

use crate::common;
use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::desk::{Desk, USER, Who, each, has, is_root};

fn closed(who: Who, road: &str, way: &str) {
    common::way(way, who, road, "closed");
}

/// Of one that stays open, and that a person is told of.
fn said(who: Who, road: &str, way: &str, where_told: &str) {
    common::way(way, who, road, &format!("said: {where_told}"));
}

/// A process outside the run, with a directory and a writable file open.
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

/// Both users in worlds outside of /tmp: it may be written to in `run --in`, where no store may lie then.
fn each_on_disk(test: impl Fn(&Desk)) {
    for who in [Who::Root, Who::User].into_iter().filter(|who| is_root() || *who == Who::User) {
        test(&Desk::on(who, Path::new("/var/tmp")));
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
        // Their directory's name would say where to look for it; the socket lies in a captured place.
        desk.made("echo real > real; mkdir directory");
        let listener = UnixListener::bind(desk.world.root().join("listening")).unwrap();
        let name = SocketAddr::from_abstract_name(desk.world.root().join("listening").as_os_str().as_bytes()).unwrap();
        let _abstract = UnixListener::bind_addr(&name).unwrap();
        let outside = Outside::start(desk);
        let before = desk.world.manifest();
        let script = desk.world.root().join("attempts.py");
        std::fs::write(&script, include_str!("escapes/attempts.py")).unwrap();
        let pids = [outside.0.id(), std::process::id(), 1].map(|pid| pid.to_string());
        let (tree, store) = (desk.world.tree(), desk.world.store());
        let words = ["run", "--discard", "--", "/usr/bin/python3"].into_iter().map(ToOwned::to_owned);
        let paths = [&script, &tree, &store, &desk.world.root().join("listening")].map(|path| path.to_str().unwrap().to_owned());
        let words: Vec<String> = words.chain(paths).chain(pids).collect();
        // 3 is a directory, 4 a file to write, 5 a file to read: as a careless caller leaves them open.
        let inherit = "exec 3< directory 4>> real 5< real; exec \"$@\"";
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
        if said.contains("abstract done") {
            println!("skipped: abstract sockets: the kernel has no scopes of Landlock");
        }
        assert!(said.contains("clone3 ENOSYS"), "{said}");
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
            "cgroup namespace",
            "in a namespace: cgroup",
        ] {
            let row = said.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap_or_else(|| panic!("{name}: {said}"));
            assert!(!row.ends_with(" done") && !row.contains("not tried"), "{:?}: {row}", desk.who);
        }
        for way in
            ["mounts and namespaces", "handles and device nodes", "processes outside", "cgroups", "inherited descriptors above 2"]
        {
            closed(desk.who, "run", way);
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
fn what_listens_outside_is_dead_whatever_its_name_and_however_late_it_comes() {
    if !is_root() || !has("python3") || !has("setpriv") {
        return println!("skipped: sockets that an ordinary user does not capture are made by root");
    }
    each(|desk| {
        let script = desk.world.root().join("servers.py");
        std::fs::write(&script, include_str!("escapes/servers.py")).unwrap();
        let place = |top: &str| {
            let made = tempfile::Builder::new().prefix("recant-test-").tempdir_in(top).unwrap();
            std::fs::set_permissions(made.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            made
        };
        let (run, other) = (place("/run"), place("/var/lib"));
        let ids = [format!("--reuid={USER}"), format!("--regid={USER}"), "--clear-groups".to_owned()];
        let apart = ["-m", "--propagation", "private", "/usr/bin/python3"].map(str::to_owned).to_vec();
        let places = [script.as_path(), run.path(), other.path()].map(|path| path.to_str().unwrap().to_owned());
        let user = if desk.other() { [&["setpriv".to_owned()][..], &ids].concat() } else { Vec::new() };
        let command = [desk.binary.to_str().unwrap(), "run", "--discard", "--"].map(str::to_owned);
        let words = [apart, places.to_vec(), user, command.to_vec()].concat();
        let said = desk.world.program("unshare", words.iter().map(String::as_str)).run().ok();
        let text = said.stdout();
        let asked = text.lines().find_map(|line| line.strip_prefix("asked ")?.parse::<u32>().ok());
        assert!(asked.is_some_and(|n| n > 20) && text.contains("tried all"), "{:?}: {said}", desk.who);
        let open: Vec<&str> = text.lines().filter(|line| line.starts_with(|c: char| c.is_uppercase())).collect();
        assert!(open.is_empty(), "{:?}: {open:#?}: {said}", desk.who);
        for way in [
            "a socket outside that was renamed, or hard-linked (ssh's ControlMaster)",
            "a socket outside bound by a relative path, or seen through a bind mount",
            "a socket outside in another network namespace",
            "a socket outside bound anew during the run",
            "a FIFO outside, in /run or beside a socket",
        ] {
            closed(desk.who, "run", way);
        }
        self::said(Who::User, "run", "FIFOs in other read-only places", "limits");
    });
}

#[test]
fn where_too_much_lies_in_run_beside_a_mount_doctor_tells_it_and_names_still_count() {
    if !is_root() || !has("python3") || !has("setpriv") {
        return println!("skipped: mounting over /run needs root");
    }
    let desk = Desk::new(Who::User);
    let (binary, server) = (
        desk.binary.to_str().unwrap(),
        "import socket; s = socket.socket(socket.AF_UNIX); s.bind('/run/here'); s.listen(); input()",
    );
    let ask = "import socket; socket.socket(socket.AF_UNIX).connect('/run/here')";
    let script = format!(
        "mount -t tmpfs recant-test /run; mkdir $(seq -f /run/%g 301); mount -t tmpfs recant-test /run/1; mkfifo /run/end; umask 0; \
         /usr/bin/python3 -c \"{server}\" <> /run/end & while [ ! -e /run/here ]; do sleep .05; done; \
         for n in 1 2; do setpriv --reuid={USER} --regid={USER} --clear-groups {binary} run --discard -- /usr/bin/python3 -c \"{ask}\"; done; setpriv --reuid={USER} --regid={USER} --clear-groups {binary} doctor --json; echo > /run/end"
    );
    let said =
        desk.world.program("unshare", ["-m", "--propagation", "private", "sh", "-c", &script]).cwd(desk.world.tree()).run();
    let told = "more than 300 files and directories beside mounts";
    assert_eq!((said.stderr().matches(told).count(), said.stdout().matches(told).count()), (0, 1), "{said}");
    assert_eq!(said.stderr().matches("/run/here: a socket of a program outside, dead in a run").count(), 2, "{said}");
    assert_eq!(said.stderr().matches("Connection refused").count(), 2, "{said}");
}

#[test]
fn without_the_list_of_sockets_no_command_is_started() {
    if !is_root() {
        return println!("skipped: /proc/net/unix is hidden by root alone");
    }
    let world = common::World::new();
    let script = format!("mount -t tmpfs none /proc/$$/net && exec {} run -- touch made", common::recant());
    let said = world.program("unshare", ["-m", "sh", "-c", &script]).run().with(125);
    assert!(said.stderr().contains("/proc/net/unix") && said.stderr().contains("not started"), "{said}");
    assert!(world.recant("list").ok().stdout().is_empty() && !world.exists("made"), "{said}");
}

/// What a shell runs: recant with these words, redirected.
fn redirected(desk: &Desk, script: &str) -> common::Said {
    desk.give(desk.world.program("sh", ["-c", script, desk.binary.to_str().unwrap()])).run()
}

#[test]
fn a_file_that_a_stream_reads_is_held_like_any_other() {
    if !has("python3") {
        return;
    }
    each(|desk| {
        desk.made("echo real > data");
        let before = desk.world.manifest();
        let set = "import os; os.fchmod(FD, 0o600); os.utime(FD, (1, 1)); os.setxattr(FD, 'user.x', b'1')";
        for (fd, redirection) in [(0, "< data"), (2, "2< data"), (1, "1< data")] {
            let write =
                format!("\"$0\" run -- sh -c 'echo pwned > /proc/self/fd/{fd}; chmod 600 /proc/self/fd/{fd}' {redirection}");
            redirected(desk, &write);
            desk.world.manifest().assert_same(&before, &format!("{:?}: {write}", desk.who));
            let held = desk.call(["diff", "last", "--stat"]).run().ok();
            assert!(held.stdout().contains("data"), "{:?}: {held}", desk.who);
            desk.call(["discard", "last", "-y"]).run().ok();
            let set = set.replace("FD", &fd.to_string());
            redirected(desk, &format!("\"$0\" run --discard -- /usr/bin/python3 -c \"{set}\" {redirection}"));
            desk.world.manifest().assert_same(&before, &format!("{:?}: {set}", desk.who));
        }
        closed(desk.who, "run", "a file that a standard stream reads");
    });
}

#[test]
fn a_file_that_a_stream_reads_outside_the_writable_directories_is_not_written_to() {
    each_on_disk(|desk| {
        desk.made("mkdir in; echo real > data");
        for (fd, redirection) in [(0, "< data"), (2, "2< data"), (1, "1< data")] {
            let words = format!("\"$0\" run --in in -- sh -c 'echo pwned > /proc/self/fd/{fd}' {redirection}");
            redirected(desk, &words);
            assert_eq!(desk.world.read("data"), "real\n", "{:?}: {words}", desk.who);
        }
        closed(desk.who, "--in", "a file that a standard stream reads");
        // Landlock has no word for that, by whatever name.
        let told = desk.call(["run", "-v", "--in", "in", "--", "true"]).run().ok().stderr();
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains("not denied elsewhere: ") && told.contains("mode, owner, times and attributes"), "{told}");
        self::said(desk.who, "--in", "metadata of files outside", "-v, limits");
        assert!(told.contains("asked over a socket"), "{told}");
        self::said(desk.who, "--in", "sockets of processes outside", "-v, limits");
    });
}

#[test]
fn a_stream_is_read_on_where_the_command_stopped_as_bare() {
    each(|desk| {
        desk.made("seq 1 20000 > data; cp data gone");
        for script in [
            "(RUN head -n 3; cat) < data",
            "(head -n 2 > /dev/null; RUN sh -c 'read a; echo got $a'; RUN sh -c 'read a; echo got $a'; cat) < data",
            "while read line; do RUN cat; done < data",
            "RUN cat < data",
        ] {
            // head and read leave the offset behind the last line that they took.
            let bare = redirected(desk, &script.replace("RUN", ""));
            let run = redirected(desk, &script.replace("RUN", "\"$0\" run --discard --"));
            assert_eq!(run.stdout(), bare.stdout(), "{:?}: {script}", desk.who);
        }
        // What another file is there for in the run is fed: what the caller has opened is what is read.
        let said =
            redirected(desk, "exec < data; mv gone data; \"$0\" run --discard -- sha256sum; sha256sum < data | sed 's/ .*//'");
        let sums: Vec<String> = said.stdout().lines().map(|line| line[..64].to_owned()).collect();
        assert_eq!(sums.len(), 2, "{said}");
        assert_eq!(sums[0], sums[1], "{said}");
    });
}

#[test]
fn a_file_that_the_run_hides_is_read_through_a_pipe_and_cannot_be_written_to() {
    each(|desk| {
        desk.made("mkdir private; seq 1 20000 > private/data");
        let before = desk.world.manifest();
        let read =
            redirected(desk, "\"$0\" run --hide private --discard -- sh -c 'cat; echo pwned > /proc/self/fd/0' < private/data");
        let bare = desk.world.read("private/data");
        assert_eq!(read.stdout(), bare, "{:?}: {}", desk.who, read.stderr());
        // More than a pipe holds, and a command that reads none of it.
        redirected(desk, "\"$0\" run --hide private --discard -- true < private/data").ok();
        desk.world.manifest().assert_same(&before, &format!("{:?}", desk.who));
        closed(desk.who, "run", "a hidden file that a standard stream reads");
    });
}

#[test]
fn a_block_device_that_a_stream_reads_is_not_written_to() {
    if !is_root() || !Path::new(LOSETUP).exists() {
        return println!("skipped: a block device on standard input needs root and losetup");
    }
    let desk = Desk::new(Who::Root);
    desk.made("head -c 1M /dev/zero | tr '\\0' x > disk");
    let device = desk.world.program(LOSETUP, ["-f", "--show", "disk"]).cwd(desk.world.tree()).run();
    if device.status != 0 {
        return println!("skipped: no loop device: {}", device.stderr());
    }
    let device = device.stdout().trim().to_owned();
    let said = redirected(
        &desk,
        &format!("\"$0\" run --discard -- sh -c 'head -c 9; cat > /dev/null; echo pwned > /proc/self/fd/0' < {device}"),
    );
    let content = std::fs::read(&device).unwrap();
    desk.world.program(LOSETUP, ["-d", &device]).run().ok();
    assert_eq!(said.stdout(), "xxxxxxxxx", "{said}");
    assert!(content.iter().all(|b| *b == b'x'), "{said}");
    closed(Who::Root, "run", "a block device that a standard stream reads");
}

const LOSETUP: &str = "/usr/sbin/losetup";

/// A disk of the tests' own that a group may write to, by one node in /dev and one elsewhere.
struct Disk {
    device: String,
    nodes: [std::path::PathBuf; 2],
}

const DISK_GROUP: &str = "4444";

impl Disk {
    fn of(image: &Path) -> Option<Self> {
        let made = Command::new(LOSETUP).args(["-f", "--show"]).arg(image).output().unwrap();
        if !made.status.success() {
            eprintln!("skipped: no loop device: {}", String::from_utf8_lossy(&made.stderr));
            return None;
        }
        let device = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        let name = format!("recant-test-{}", std::process::id());
        let disk = Self { nodes: [Path::new("/dev").join(&name), Path::new("/run").join(&name)], device };
        for node in &disk.nodes {
            let script = "mknod -m 660 $0 b $(stat -c '0x%t 0x%T' $1) && chgrp $2 $0";
            let script = Command::new("sh").args(["-c", script]).arg(node).args([&disk.device, DISK_GROUP]).status();
            assert!(script.unwrap().success(), "{}", node.display());
        }
        Some(disk)
    }

    fn starts_with(&self, word: &[u8]) -> bool {
        std::fs::read(&self.device).unwrap().starts_with(word)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        for node in &self.nodes {
            std::fs::remove_file(node).unwrap();
        }
        assert!(Command::new(LOSETUP).args(["-d", &self.device]).status().unwrap().success());
    }
}

#[test]
fn a_device_that_a_group_may_write_to_is_out_of_reach_but_where_it_is_passed() {
    if !is_root() || !Path::new(LOSETUP).exists() || !has("setpriv") {
        return println!("skipped: a disk of a group needs root, losetup and setpriv");
    }
    each(|desk| {
        desk.made("truncate -s 1M disk");
        let Some(disk) = Disk::of(&desk.world.path("disk")) else { return };
        let user = if desk.who == Who::Root { 0 } else { USER }.to_string();
        let write = |node: &Path, word: &str, options: &[&str]| {
            let script = format!("echo {word} 1<> {0} >&1 && sync {0}", node.display());
            let ids = ["--reuid", &user, "--regid", &user, "--groups", DISK_GROUP];
            let run = [&[desk.binary.to_str().unwrap(), "run", "--discard"], options, &["--", "sh", "-c", &script]].concat();
            desk.world.program("setpriv", [&ids[..], &run].concat()).cwd(desk.world.tree()).run()
        };
        for node in &disk.nodes {
            let said = write(node, "pwned", &[]);
            assert!(said.status != 0 && !disk.starts_with(b"pwned"), "{:?}: {}: {said}", desk.who, node.display());
            let word = format!("passed-{}", node.parent().unwrap().file_name().unwrap().display());
            write(node, &word, &["--pass", node.to_str().unwrap()]).ok();
            assert!(disk.starts_with(word.as_bytes()), "{:?}: {}", desk.who, node.display());
        }
        closed(desk.who, "run", "device nodes that a group may write to");
    });
}

#[test]
fn the_caller_s_other_terminals_are_out_of_reach() {
    if !has("python3") {
        return;
    }
    each(|desk| {
        let script = "import os, subprocess, sys\n\
            m, s = os.openpty()\n\
            run = [sys.argv[1], 'run', '--discard', '--', 'sh', '-c', f'echo pwned > {os.ttyname(s)}']\n\
            done = subprocess.run(run, stdin=subprocess.DEVNULL)\n\
            os.set_blocking(m, False)\n\
            try: print('REACHED', os.read(m, 99))\n\
            except BlockingIOError: print('nothing came', done.returncode)";
        let words = ["-c", script, desk.binary.to_str().unwrap()];
        let said = desk.give(desk.world.program("python3", words)).run().ok();
        assert!(said.stdout().starts_with("nothing came 2"), "{:?}: {said}", desk.who);
        closed(desk.who, "run", "the caller's other terminals");
    });
}

#[test]
fn what_processes_share_beside_files_stays_in_a_run() {
    if !has("python3") {
        return;
    }
    each_on_disk(|desk| {
        let script = desk.world.root().join("shared.py");
        std::fs::write(&script, include_str!("escapes/shared.py")).unwrap();
        for (road, words) in [("run", &["--discard"][..]), ("--in", &["--in", "."])] {
            let run = [&[script.to_str().unwrap(), desk.binary.to_str().unwrap(), "run"], words, &["--"]].concat();
            let said = desk.give(desk.world.program("python3", run)).run().ok();
            assert!(said.stdout().trim() == "tried all", "{:?}: {road}: {said}", desk.who);
            closed(desk.who, road, "SysV memory, semaphores, queues, and the session keyring");
        }
        self::said(desk.who, "run", "keys of the user keyring", "limits");
    });
}

#[test]
fn what_is_set_of_a_file_that_the_output_goes_to_is_said() {
    each(|desk| {
        desk.made("echo old > out; chmod 644 out");
        let said = redirected(desk, "\"$0\" run -- sh -c 'chmod 600 /proc/self/fd/1; echo x > f' > out").ok();
        let line = "out: it is the command's output, so it is real: the command set its mode 0600, before 0644";
        assert!(said.stderr().contains(line), "{:?}: {said}", desk.who);
        assert!(desk.call(["show", "last"]).run().ok().stdout().contains("set its mode 0600"), "{:?}", desk.who);
        let said = redirected(desk, "\"$0\" run -- sh -c 'echo more; echo x > g' > out").ok();
        assert!(!said.stderr().contains("as its output") && desk.world.read("out") == "more\n", "{:?}: {said}", desk.who);
        // Not every file system has flags for chattr, and few that an ordinary user may set: d is for dump(8).
        let flag = "import fcntl, struct; now, = struct.unpack('L', fcntl.ioctl(1, 0x80086601, bytes(8))); \
            fcntl.ioctl(1, 0x40086602, struct.pack('L', now | 0x40))";
        if has("python3") && redirected(desk, &format!("python3 -c \"{flag}\" > other")).status == 0 {
            let said =
                redirected(desk, &format!("\"$0\" run -- sh -c '/usr/bin/python3 -c \"$1\"; echo x > h' sh \"{flag}\" > out"));
            let line = "out: it is the command's output, so it is real: the command set its flags (chattr)";
            assert!(said.status == 0 && said.stderr().contains(line), "{:?}: {said}", desk.who);
        }
        self::said(desk.who, "run", "metadata of a file that the output goes to", "the run's lines, show, limits");
    });
}

#[test]
fn what_is_set_of_a_device_or_fifo_that_a_stream_is_reaches_nothing_real_or_is_said() {
    if !has("python3") {
        return;
    }
    let set = "import os, sys; fd = int(sys.argv[1]); os.utime(fd, (1, 1)) if os.geteuid() == 0 else None";
    let time = |path: &str| std::fs::metadata(path).unwrap().modified().unwrap();
    each(|desk| {
        for (fd, redirection) in [(0, "< /dev/null"), (1, "> /dev/null"), (2, "2> /dev/zero")] {
            let before = (time("/dev/null"), time("/dev/zero"));
            redirected(desk, &format!("\"$0\" run --discard -- /usr/bin/python3 -c '{set}' {fd} {redirection}"));
            assert_eq!(before, (time("/dev/null"), time("/dev/zero")), "{:?}: {redirection}", desk.who);
        }
        closed(desk.who, "run", "metadata of a device that a standard stream is");
        desk.bare(&desk.world.tree(), "mkfifo pipe; chmod 600 pipe");
        let said =
            redirected(desk, "exec 3<> pipe; \"$0\" run -- sh -c 'chmod 622 /proc/self/fd/0; echo x > f' < pipe 3>&-").ok();
        let line = "pipe: it is the command's input, so it is real: the command set its mode 0622, before 0600";
        assert!(said.stderr().contains(line), "{:?}: {said}", desk.who);
        self::said(desk.who, "run", "metadata of a FIFO that a standard stream is", "the run's lines, show, limits");
        desk.made("echo old > out");
        let said = redirected(desk, "\"$0\" run -- sh -c 'touch -d 2001-01-01 /proc/self/fd/1; echo x > g' > out").ok();
        assert!(
            said.stderr().contains("out: it is the command's output, so it is real: the command set its time"),
            "{:?}: {said}",
            desk.who
        );
    });
}

#[test]
fn the_kernel_s_log_and_its_accounting_stay_as_they_are() {
    if !is_root() || !has("python3") {
        return println!("skipped: the kernel's log: emptying it is root's");
    }
    let desk = Desk::on(Who::Root, "/var/tmp".as_ref());
    // syslog(2) with SYSLOG_ACTION_CONSOLE_LEVEL and a level that there is none of: EINVAL of one who may, EPERM of one who may not.
    let script = "import ctypes, errno; libc = ctypes.CDLL(None, use_errno=True)
libc.klogctl(8, None, 99); print(errno.errorcode[ctypes.get_errno()])
libc.acct(b'/nowhere/at/all'); print(errno.errorcode[ctypes.get_errno()])";
    assert!(desk.world.program("python3", ["-c", script]).run().ok().stdout().starts_with("EINVAL"));
    for (road, words) in [("run", &["--discard"][..]), ("--in", &["--in", "."])] {
        let said = desk.call([&["run"], words, &["--", "/usr/bin/python3", "-c", script]].concat()).run().ok();
        assert_eq!(said.stdout(), "EPERM\nEPERM\n", "{road}: {said}");
        closed(Who::Root, road, "the kernel's log, process accounting");
    }
}

/// The output leads to the real mount, and a root may open every file of it by its handle.
#[test]
fn no_file_is_opened_by_its_handle_through_the_real_output() {
    if !is_root() || !has("python3") {
        return println!("skipped: open_by_handle_at(2) is root's");
    }
    let desk = Desk::new(Who::Root);
    desk.made("echo real > real");
    let script = "import ctypes, errno, os, sys\n\
        libc = ctypes.CDLL(None, use_errno=True)\n\
        if len(sys.argv) == 1:\n\
        \x20   handle, mount = ctypes.create_string_buffer(bytes([128]) + bytes(135), 136), ctypes.c_int()\n\
        \x20   if libc.name_to_handle_at(-100, b'real', handle, ctypes.byref(mount), 0): sys.exit('none')\n\
        \x20   print(handle.raw.hex())\n\
        else:\n\
        \x20   fd = libc.open_by_handle_at(1, bytes.fromhex(sys.argv[1]), os.O_WRONLY)\n\
        \x20   print(errno.errorcode[ctypes.get_errno()] if fd < 0 else os.write(fd, b'pwned'), file=sys.stderr)";
    let told = desk.world.program("python3", ["-c", script]).cwd(desk.world.tree()).run();
    if told.status != 0 {
        return println!("skipped: no handles on this file system");
    }
    let handle = told.stdout().trim().to_owned();
    let open = ["\"$1\" run --discard -- /usr/bin/python3 -c \"$2\" $3 > out", "/usr/bin/python3 -c \"$2\" $3 > out"];
    for (open, outcome, content) in [(open[0], "EPERM", "real\n"), (open[1], "5", "pwned")] {
        let words = ["-c", open, "sh", desk.binary.to_str().unwrap(), script, &handle];
        let said = desk.world.program("sh", words).cwd(desk.world.tree()).run().ok();
        assert!(said.stderr().contains(outcome) && desk.world.read("real").starts_with(content), "{open}: {said}");
    }
    closed(Who::Root, "run", "a handle opened through the redirected output");
}

#[test]
fn nothing_is_typed_into_the_terminal_for_whoever_reads_it_next() {
    if !has("python3") || !has("script") {
        return;
    }
    let try_it = "import errno, fcntl
for name, call in (('TIOCSTI', lambda: fcntl.ioctl(0, 0x5412, b'x')), ('TIOCLINUX', lambda: fcntl.ioctl(0, 0x541c, b'\\x03'))):
    try: call(); print(name, 'done')
    except OSError as error: print(name, errno.errorcode[error.errno])";
    each_on_disk(|desk| {
        desk.world.write("try.py", try_it);
        desk.made("mkdir -p in");
        let at_terminal = |words: &str| {
            let command = format!("{} {words} /usr/bin/python3 {}", desk.binary.display(), desk.world.path("try.py").display());
            desk.give(desk.world.program("script", ["-qec", &command, "/dev/null"])).env("TERM", "dumb").run()
        };
        for words in ["run --discard --", "run --in in --"] {
            let said = at_terminal(words);
            let all = said.stdout();
            assert!(all.contains("TIOCSTI EPERM") && all.contains("TIOCLINUX EPERM"), "{:?}: {words}: {said}", desk.who);
            closed(desk.who, if words.contains("--in") { "--in" } else { "run" }, "keystrokes put back into the terminal");
        }
    });
}

/// The command is in its caller's process group, which README says: nothing of what it had changed is lost by that.
#[test]
fn a_signal_to_the_command_s_own_group_leaves_what_it_had_changed_held() {
    if !has("setsid") {
        return;
    }
    each(|desk| {
        for (signal, status) in [("TERM", 143), ("INT", 130), ("KILL", 137)] {
            let script = format!("\"$0\" run -- sh -c 'echo new > {signal}; kill -{signal} 0'; echo the caller goes on");
            let binary = desk.binary.to_str().unwrap();
            let said = desk.give(desk.world.program("setsid", ["-w", "sh", "-c", &script, binary])).run();
            assert_eq!(said.status, status, "{:?}: {said}", desk.who);
            assert!(!said.stdout().contains("goes on") && !desk.world.exists(signal), "{:?}: {said}", desk.who);
            let held = desk.call(["diff", "last"]).run().ok();
            assert!(held.stdout().contains(signal) && held.stdout().contains("+new"), "{:?}: {held}", desk.who);
        }
        said(desk.who, "run", "kill 0", "limits");
    });
}
