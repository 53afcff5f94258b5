//! What the kernel refuses a command because of its run is told, with what helps; nothing is told of other failures.

use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;

use crate::common::{self, Said};
use crate::desk::{Desk, USER, Who, each, has, is_root};

/// recant's own lines, without what it says of the changes.
fn told(said: &Said) -> Vec<String> {
    let own = said.stderr().lines().filter_map(|line| line.strip_prefix("recant: ").map(str::to_owned)).collect::<Vec<_>>();
    own.into_iter()
        .filter(|line| {
            !line.contains("no file change")
                && !line.contains("held in session")
                && !line.contains("change dropped")
                && !line.contains("recant diff ")
        })
        .collect()
}

/// A directory that no run of a user holds, and that the desk's user may write to.
fn beyond(desk: &Desk) -> tempfile::TempDir {
    let made = tempfile::Builder::new().prefix("recant-beyond-").tempdir_in("/opt").unwrap();
    if desk.other() {
        std::os::unix::fs::chown(made.path(), Some(USER), Some(USER)).unwrap();
    }
    made
}

/// Connects to a socket, by a path.
fn connects(desk: &Desk, options: &str, path: &str, sort: &str) -> Said {
    let script = format!(
        "import socket\ns = socket.socket(socket.AF_UNIX, socket.{sort})\ntry: s.connect({path:?}); print('connected')\n\
         except OSError as error: print(error.strerror)"
    );
    desk.call(["run"].into_iter().chain(options.split_whitespace()).chain(["--", "/usr/bin/python3", "-c", &script])).run().ok()
}

#[test]
fn a_failure_that_is_not_the_run_s_is_told_no_reason() {
    if !has("python3") {
        return;
    }
    each(|desk| {
        desk.made("mkdir d; echo 1 > f; ln -s nowhere l");
        let stale = UnixListener::bind(desk.world.path("stale")).unwrap();
        drop(stale);
        for script in [
            "false",
            "cat nothing",
            "mkdir d",
            "rm nothing",
            "rmdir f",
            "echo x > d",
            "echo x > nowhere/f",
            "mv f d/f/g",
            "ln f f",
            "ls /proc/self/fd/77",
            "touch /proc/new /sys/new",
            "echo x > /dev/null; echo x > /usr/bin/recant-test/none",
        ] {
            assert_eq!(told(&desk.run(script)), [""; 0], "{:?}: {script}", desk.who);
        }
        for path in ["stale", "nothing", "f", "d", "\\0recant-test-abstract"] {
            assert_eq!(told(&connects(desk, "", path, "SOCK_STREAM")), [""; 0], "{:?}: {path}", desk.who);
        }
        // A server of the run's own, where one outside has the same name.
        let _outside = UnixListener::bind(desk.world.path("both")).unwrap();
        let own = "import socket, os\nos.unlink('both')\ns = socket.socket(socket.AF_UNIX); s.bind('both'); s.listen()\n\
                   c = socket.socket(socket.AF_UNIX); c.connect('both'); print('connected')";
        let said = desk.call(["run", "--discard", "--", "/usr/bin/python3", "-c", own]).run().ok();
        assert_eq!((said.stdout(), told(&said)), ("connected\n".to_owned(), vec![]), "{said}");
    });
    let desk = &Desk::new(Who::User);
    // Without recant, too, this user may not write there.
    for script in ["touch /usr/new", "mkdir /usr/new", "ln -s x /usr/new", "rm /bin/true", "echo x >> /etc/passwd"] {
        assert_eq!(told(&desk.run(script)), [""; 0], "{script}");
    }
}

#[test]
fn a_write_beyond_the_held_places_is_told_each_time_with_the_setting_that_holds_it() {
    if !is_root() {
        return common::skip("a directory of a user's in /opt takes root");
    }
    let desk = &Desk::new(Who::User);
    let beyond = beyond(desk);
    let top = beyond.path().display();
    desk.bare(beyond.path(), "mkdir -p in/deep; echo 1 > in/f");
    for (script, path) in [
        ("echo x > {}/in/new", "in/new"),
        ("echo x >> {}/in/f", "in/f"),
        ("cp /etc/passwd {}/in/copy", "in/copy"),
        ("mkdir {}/in/d", "in/d"),
        ("cd {}/in/deep && mkdir ../e", "in/e"),
        ("ln -s x {}/in/l", "in/l"),
        ("cd {}; touch in/t", "in/t"),
    ] {
        let said = desk.run(&script.replace("{}", &top.to_string()));
        let line = format!("{top}/{path}: not held, so read-only for the command; capture.also = ['{top}'] holds it");
        assert_eq!(told(&said), [line], "{script}: {said}");
    }
    let said = desk.run(&format!("cd {top}; for n in 1 2 3 4 5 6 7 8 9; do echo x > $n; echo x > $n; done"));
    let lines = told(&said);
    assert_eq!((lines.len(), &*lines[3]), (4, "6 other paths were refused to the command because of the run"), "{said}");
    desk.world.config(&format!("[capture]\nalso = ['{top}']\n"));
    let said = desk.run(&format!("echo x > {top}/in/new")).ok();
    assert!(told(&said).is_empty() && said.stderr().contains("1 created"), "{said}");
    assert!(!beyond.path().join("in/new").exists(), "it is held");
}

#[test]
fn a_file_in_a_closed_directory_beyond_is_told_with_the_option_that_leaves_it_real() {
    if !is_root() {
        return common::skip("a user's file in a directory of root's takes root");
    }
    let desk = &Desk::new(Who::User);
    let beyond = beyond(desk);
    let file = beyond.path().join("f");
    desk.bare(beyond.path(), "echo 1 > f");
    std::os::unix::fs::chown(beyond.path(), Some(0), Some(0)).unwrap();
    let file = file.display();
    let line = format!("{file}: not held, so read-only for the command; --pass {file} leaves it real");
    assert_eq!(told(&desk.run(&format!("echo 2 > {file}"))), [line]);
    desk.held(&format!("--pass {file}"), &format!("echo 2 > {file}")).run().ok();
    assert_eq!(std::fs::read_to_string(beyond.path().join("f")).unwrap(), "2\n");
}

#[test]
fn a_rename_or_link_between_two_held_places_is_told_unless_the_program_did_it_otherwise() {
    if !is_root() || !has("python3") {
        return common::skip("a directory of a user's in /opt takes root, python3");
    }
    let desk = &Desk::of(Who::User, common::World::on(Path::new("/var/tmp")));
    let beyond = beyond(desk);
    let device = |path: &Path| std::os::unix::fs::MetadataExt::dev(&std::fs::metadata(path).unwrap());
    if device(beyond.path()) != device(&desk.world.tree()) {
        return common::skip("/opt and /var/tmp in one mount");
    }
    desk.world.config(&format!("[capture]\nalso = ['{}']\n", beyond.path().display()));
    desk.made("echo 1 > f; mkdir d; echo 2 > g");
    let to = beyond.path().join("to").display().to_string();
    let f = desk.world.path("f").display().to_string();
    let python = |script: &str| {
        desk.call(["run", "--discard", "--", "/usr/bin/python3", "-c", &format!("import os, shutil\n{script}")]).run()
    };
    let apart = |what: &str, from: &str, copies: &str| {
        format!("{from}: {what} {to}: a run holds the two places apart (cross-device link); {copies} copies")
    };
    assert_eq!(told(&python(&format!("os.rename('f', '{to}')")).with(1)), [apart("not renamed to", &f, "mv")]);
    assert_eq!(told(&python(&format!("os.link('f', '{to}')")).with(1)), [apart("not linked as", &f, "cp")]);
    let d = desk.world.path("d").display().to_string();
    assert_eq!(told(&python(&format!("os.rename('d', '{to}')")).with(1)), [apart("not renamed to", &d, "mv")]);
    // What helps, and helps by itself.
    for script in [format!("mv f {to}"), format!("mv d {to}"), format!("cp f {to}; ln f f2; mv f2 f3; mv -T d e")] {
        let said = desk.held("--discard", &script).run().ok();
        assert!(!said.stderr().contains("apart"), "{script}: {said}");
    }
    let said = python(&format!("shutil.move('f', '{to}')")).ok();
    assert!(!said.stderr().contains("apart"), "{said}");
}

#[test]
fn a_write_to_what_is_another_user_s_is_told() {
    if !is_root() {
        return common::skip("another user's file takes root");
    }
    let desk = &Desk::new(Who::User);
    desk.world.write("theirs", "root's");
    desk.made("mkdir d");
    std::fs::create_dir(desk.world.path("open")).unwrap();
    let mode = |path: &str, mode| {
        std::fs::set_permissions(desk.world.path(path), std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap()
    };
    mode("theirs", 0o666);
    mode("open", 0o777);
    let line = |path: &str| {
        let path = desk.world.path(path);
        format!(
            "{}: of user 0, so a run cannot change it; recant run --in DIR changes files for real, between two snapshots",
            path.display()
        )
    };
    let said = desk.run("echo x > theirs");
    assert!(said.stderr().contains("Value too large"), "{said}");
    assert_eq!(told(&said), [line("theirs")]);
    // An agent is not invited out of the hold.
    let said = desk.held("", "echo x > theirs").env("RECANT_AGENT", "test").run();
    let theirs = desk.world.path("theirs");
    assert_eq!(told(&said), [format!("{}: of user 0, so a run cannot change it", theirs.display())], "{said}");
    assert_eq!(told(&desk.run("echo x > open/new")), [line("open")]);
    assert_eq!(told(&desk.run("mkdir open/new")), [line("open")]);
    mode("theirs", 0o644);
    assert_eq!(told(&desk.run("echo x > theirs")), [""; 0], "that fails without recant, too");
}

#[test]
fn a_dead_socket_is_told_with_the_option_that_reaches_it() {
    if !has("python3") {
        return;
    }
    each(|desk| {
        let sockets =
            tempfile::Builder::new().prefix("recant-socket-").tempdir_in(if is_root() { "/run" } else { "/tmp" }).unwrap();
        desk.made("mkdir d");
        // Absolute in a held place, beside it, and in a place that is covered.
        let (held, far) = (desk.world.path("db.sock"), sockets.path().join("docker.sock"));
        let _servers = [UnixListener::bind(&held).unwrap(), UnixListener::bind(&far).unwrap()];
        let _datagrams = UnixDatagram::bind(desk.world.path("log")).unwrap();
        std::os::unix::fs::symlink("db.sock", desk.world.path("link")).unwrap();
        for path in [&held, &far, &desk.world.path("log")] {
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        }
        std::fs::set_permissions(sockets.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        for (path, named, sort) in [
            ("db.sock", &held, "SOCK_STREAM"),
            (&*held.display().to_string(), &held, "SOCK_STREAM"),
            (&*far.display().to_string(), &far, "SOCK_STREAM"),
            ("log", &desk.world.path("log"), "SOCK_DGRAM"),
        ] {
            let named = named.display();
            let line = format!("{named}: a socket of a program outside, dead in a run; recant run --pass {named} … reaches it");
            for _ in 0..2 {
                let said = connects(desk, "", path, sort);
                assert_eq!(
                    (told(&said), said.stdout() == "connected\n"),
                    (vec![line.clone()], false),
                    "{:?}: {path}: {said}",
                    desk.who
                );
            }
            let said = connects(desk, &format!("--pass {named}"), path, sort);
            let own = told(&said).into_iter().filter(|line| !line.contains("open to it, and not held")).count();
            assert_eq!((own, said.stdout()), (0, "connected\n".to_owned()), "{:?}: {path}: {said}", desk.who);
        }
        // Its server outside was bound by a relative path, and runs in a network of its own for the command.
        let server = "import socket, sys\ns = socket.socket(socket.AF_UNIX); s.bind('relative'); s.listen(); print('ready', flush=True); sys.stdin.read()";
        let mut outside = desk.give(desk.world.program("/usr/bin/python3", ["-c", server])).cwd(desk.world.tree()).command();
        let mut outside = outside.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
        std::io::Read::read_exact(outside.stdout.as_mut().unwrap(), &mut [0; 6]).unwrap();
        for options in ["", "--no-network"] {
            let said = connects(desk, options, "relative", "SOCK_STREAM");
            assert!(
                matches!(&told(&said)[..], [line] if line.contains("/relative: a socket of a program outside")),
                "{options}: {said}"
            );
        }
        drop(outside.stdin.take());
        outside.wait().unwrap();
    });
}

/// The last call of a process that then ends at once; run after run.
#[test]
fn the_last_call_before_the_end_is_looked_at_too() {
    if !is_root() {
        return common::skip("a directory of a user's in /opt takes root");
    }
    let desk = &Desk::new(Who::User);
    let beyond = beyond(desk);
    for _ in 0..8 {
        let said = desk.call(["run", "--", "mkdir", &beyond.path().join("d").display().to_string()]).run().with(1);
        assert_eq!(told(&said).len(), 1, "{said}");
    }
}

#[test]
fn output_to_a_file_of_the_project_is_said_to_be_real() {
    each(|desk| {
        desk.made("git init -q . 2>/dev/null || mkdir .git; mkdir logs");
        let binary = desk.binary.display();
        let shell = |line: &str| {
            desk.give(desk.world.program("sh", ["-c", &line.replace("RUN", &format!("{binary} run --"))]))
                .cwd(desk.world.tree())
                .run()
                .ok()
        };
        let said = shell("RUN echo hi > logs/out");
        let path = desk.world.path("logs/out");
        assert!(
            matches!(&told(&said)[..], [line] if line.ends_with("logs/out: written at once, not held, because it is the command's stdout")),
            "{said}"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "hi\n");
        shell("RUN echo hi > logs/out 2>&1");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("the command's stdout and stderr\n"), "{text}");
        let elsewhere = desk.world.root().join("log").display().to_string();
        for line in ["RUN echo hi > /dev/null", "RUN echo hi | cat", &format!("RUN echo hi > {elsewhere}")] {
            assert_eq!(told(&shell(line)), [""; 0], "{line}");
        }
    });
}

#[test]
fn the_setting_that_is_named_can_be_written_down() {
    let desk = &Desk::new(Who::User);
    let beyond = beyond(desk);
    let beyond = beyond.path();
    for (name, written) in [("it's", r#"["TOP/it's"]"#), ("a\"b\\c", r#"['TOP/a"b\c']"#), ("n\nl", r#"["TOP/n\nl"]"#)] {
        let directory = beyond.join(name);
        std::fs::create_dir(&directory).unwrap();
        if desk.other() {
            std::os::unix::fs::chown(&directory, Some(USER), Some(USER)).unwrap();
            std::os::unix::fs::chown(beyond, Some(0), Some(0)).unwrap();
        }
        let script = "echo x > \"$IT/f\" || true";
        let said = desk.held("", script).env("IT", &directory).run().ok();
        let setting = format!("capture.also = {}", written.replace("TOP", &beyond.to_string_lossy()));
        if desk.other() {
            assert!(told(&said)[0].contains(&format!("; {setting} holds it")), "{said}");
        }
    }
}

/// The kernel ends what waits for an answer only after whoever answers.
#[test]
fn what_is_ended_with_its_run_sees_no_call_fail() {
    let desk = &Desk::new(Who::User);
    for _ in 0..12 {
        let script = "exec 8>&1; (while :; do echo x > new || echo lost >&8; done) 2>/dev/null & sleep 0.1";
        let said = desk.held("--discard --no-wait", script).run().ok();
        assert_eq!(said.stdout(), "", "{said}");
    }
}
