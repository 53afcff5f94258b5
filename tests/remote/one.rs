//! `-H`: what a verb says and does on another machine is what it says and does here. Each machine is a real sshd.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Stdio};

use crate::common::{self, Said, World, can_run};
use crate::ssh::{self, Net, kill};
use crate::{interruptible, machine};
use rustix::process::Signal;

#[test]
fn every_verb_says_there_what_it_says_here() {
    let Some((world, _, host)) = machine() else { return };
    host.write("app.conf", "port = 80\n");
    let far = |words: &str| world.call(["-H", "web1"].into_iter().chain(words.split_whitespace())).run();
    let id = far("session new -n upgrade").ok().id();
    world.call(["-H", "web1", "session", "write", "upgrade", "app.conf"]).stdin("port = 81\n").run().ok();
    far("session mkdir upgrade new").ok();
    assert_eq!(host.read("app.conf"), "port = 80\n");
    let alike = |words: &str| {
        let near = host.here(&world, words.split_whitespace()).run();
        let far = far(words);
        // But for the machine, which commands in messages name, and its home directory, where the reader is not.
        let nameless = |text: String| text.replace("recant -H web1 ", "recant ").replace("~/", "");
        assert_eq!(far.status, near.status, "{words}");
        assert_eq!((nameless(far.stdout()), nameless(far.stderr())), (near.stdout(), near.stderr()), "{words}");
    };
    let looks = "list --all; show last; diff upgrade; diff upgrade --stat; status --json; config; log; commit upgrade --dry-run; \
                 cat upgrade app.conf; checkpoint list; show nothing; recover; completions bash; man diff";
    looks.split("; ").for_each(alike);
    far("commit upgrade").ok();
    assert_eq!(host.read("app.conf"), "port = 81\n");
    looks.split("; ").for_each(alike);
    alike(&format!("checkpoint show {id}"));
    alike("checkpoint verify");
    host.write("new/foreign", "x");
    far("rollback upgrade --dry-run").with(4);
    far("rollback upgrade").with(4);
    assert_eq!(host.read("app.conf"), "port = 80\n");
    far("redo upgrade").ok();
    host.write("app.conf", "somebody's\n");
    let conflict = far("rollback upgrade");
    assert_eq!(conflict.status, 3, "{conflict}");
    far("snapshot create new").ok();
    alike("snapshot list new");
    far("prune --checkpoints upgrade").ok();
    far("discard upgrade").with(1);
    assert!(!world.store().exists(), "the near side has made a store");
    assert!(host.store().join("sessions").join(&id).is_dir());
}

/// It is a directory of that machine, which is said where there is none.
#[test]
fn a_store_that_is_named_is_one_of_the_other_machine() {
    let Some((world, _, host)) = machine() else { return };
    let near = world.path("store").display().to_string();
    world.call(["--store", &near, "session", "new", "-n", "here"]).run().ok();
    let elsewhere = format!("{near}-elsewhere");
    std::fs::rename(&near, &elsewhere).unwrap();
    for words in ["show here", "commit here"] {
        let said = world.call(["-H", "web1", "--store", &near].into_iter().chain(words.split(' '))).run().with(1).stderr();
        let why = format!("there is no store at {near}; with -H, --store is a directory of that machine");
        assert!(said.split_whitespace().collect::<Vec<_>>().join(" ").contains(&why), "{said}");
    }
    assert!(!host.store().exists() && !std::path::Path::new(&near).exists(), "and none is made");
}

#[test]
fn what_is_chosen_there_is_of_all_projects_there_and_wants_a_word() {
    let Some((world, _, host)) = machine() else { return };
    let far = |words: &str| world.call(["-H", "web1"].into_iter().chain(words.split_whitespace())).run();
    for project in ["src", "web"] {
        host.write(&format!("{project}/Makefile"), "all:\n");
        let id = far("session new").ok().id();
        world.call(["-H", "web1", "session", "write", &id, &format!("{project}/f")]).stdin("new").run().ok();
    }
    let said = far("discard --all").with(2);
    assert!(said.stderr().contains("2 pending sessions of all projects with 2 held changes"), "{said}");
    assert!(far("discard --all -y").ok().stderr().contains("2 sessions discarded"));
    assert!(far("discard --all -y").ok().stderr().contains("no pending session on this machine"));
    far("snapshot create web").ok();
    host.write("web/Makefile", "none:\n");
    far("snapshot create web").ok();
    host.write(".config/recant/config.toml", "[snapshot]\nkeep = 1\n");
    assert!(far("prune").with(2).stderr().contains("prune drops 1 snapshot"));
    assert!(far("prune -y").ok().stderr().contains("1 snapshot pruned"));
}

#[test]
fn a_run_there_is_held_there_and_ends_as_its_command_does() {
    let Some((world, _, host)) = machine().filter(|_| can_run()) else { return };
    host.write("f", "old\n");
    let script = "echo new > f; echo out; echo err >&2; cat; exit 7";
    let said = world.call(["-H", "web1", "run", "--", "sh", "-c", script]).stdin("from here").run();
    assert_eq!((said.status, said.stdout()), (7, "out\nfrom here".into()), "{said}");
    assert!(said.stderr().starts_with("err\n") && said.stderr().contains("held in session"), "{said}");
    assert!(said.stderr().contains("recant: recant -H web1 diff "), "what is held there is reached there: {said}");
    assert_eq!(host.read("f"), "old\n");
    world.recant("-H web1 commit last -y").ok();
    assert_eq!(host.read("f"), "new\n");
    world.recant("-H web1 undo").with(2);
    world.recant("-H web1 undo -y").ok();
    assert_eq!(host.read("f"), "old\n");
    for (script, status) in [("exit 255", 255), ("exit 213", 213), ("kill -9 $$", 137), ("exit 127", 127)] {
        assert_eq!(world.call(["-H", "web1", "run", "--", "sh", "-c", script]).run().status, status, "{script}");
    }
    world.recant("-H web1 run -- /nowhere/at/all").with(127);
}

#[test]
fn a_service_there_goes_on_when_the_connection_is_cut() {
    let Some((world, _, host)) = machine().filter(|_| can_run()) else { return };
    let begin = ["-H", "web1", "run", "--session", "s", "--serve", "web", "--", "sh", "-c", "echo up > up; exec sleep 60"];
    let said = world.call(begin).run().ok();
    assert!(said.stderr().contains("recant -H web1 run --session ") && said.stderr().contains("--stop web ends it"), "{said}");
    host.cut();
    assert_eq!(world.recant("-H web1 run --session s -- cat up").ok().stdout(), "up\n");
    let said = world.recant("-H web1 commit s").with(6);
    assert!(said.stderr().contains("web: \"sh -c "), "{said}");
    assert_eq!(world.recant("-H web1 run --session s --stop web").ok().stdout(), "web is stopped (SIGTERM)\n");
}

#[test]
fn words_of_any_bytes_arrive_as_they_are() {
    let Some((world, _, host)) = machine() else { return };
    let names: [&[u8]; 9] = [
        b"a b",
        b"it's",
        b"\"q\"",
        b"$(touch x)`id`;&|<>",
        b"new\nline",
        b"\\back",
        b"\xff\xfe",
        b"-n",
        "\u{fc}!*?[~".as_bytes(),
    ];
    let id = world.recant("-H web1 session new").ok().id();
    for name in names {
        let words = ["-H".as_bytes(), b"web1", b"session", b"write", id.as_bytes(), b"--", name].map(OsStr::from_bytes);
        world.call(words).stdin(name).run().ok();
        let words = ["-H".as_bytes(), b"web1", b"cat", id.as_bytes(), b"--", name].map(OsStr::from_bytes);
        assert_eq!(world.call(words).run().ok().out, name, "{}", name.escape_ascii());
    }
    world.call(["-H", "web1", "commit", &id]).run().ok();
    for name in names {
        assert_eq!(std::fs::read(host.home.join(OsStr::from_bytes(name))).unwrap(), name, "{}", name.escape_ascii());
    }
}

#[test]
fn every_login_shell_will_do_and_what_it_says_first_is_no_answer() {
    let mut world = World::new();
    let Some(net) = Net::new(&mut world) else { return };
    for shell in ["bash", "dash", "zsh", "tcsh", "fish", "ksh"] {
        let Some(path) =
            ["/bin", "/usr/bin"].map(|dir| format!("{dir}/{shell}")).into_iter().find(|path| std::fs::exists(path).unwrap())
        else {
            println!("skipped: {shell} as a login shell: it is not installed");
            continue;
        };
        let host = net.host_with_shell(shell, &path);
        let said = world.call(["-H", shell, "session", "new", "-n", "a"]).run().ok();
        assert_eq!(said.stderr(), "", "{shell}");
        host.write(".noise", "echo welcome; printf 'no newline: '");
        let said = world.call(["-H", shell, "list", "--json"]).run().ok();
        assert_eq!(said.stderr(), "welcome\nno newline: ", "{shell}");
        assert_eq!(said.json()["sessions"][0]["name"], "a", "{shell}");
    }
}

#[test]
fn machines_have_a_store_in_the_settings_and_the_environment_names_one() {
    let Some((world, net, host)) = machine() else { return };
    let ssh = net.settings().display().to_string();
    let store = host.home.join("other store");
    let text = format!("[remote]\nssh = ['ssh', '-F', '{ssh}']\n[remotes.web1]\nstore = '{}'\n", store.display());
    world.config(&text);
    world.recant("-H web1 session new -n there").ok();
    assert!(store.join("sessions").is_dir() && !host.store().exists());
    let by_env = world.call(["list", "--json"]).env("RECANT_HOST", "web1").run().ok();
    assert_eq!(by_env.json()["sessions"][0]["name"], "there");
    // --store goes before what the settings say, and is relative to the home there.
    world.recant("-H web1 --store third session new").ok();
    assert!(host.home.join("third/sessions").is_dir());
    let here = world.call(["-H", "local", "list", "--json"]).env("RECANT_HOST", "web1").run().ok();
    assert_eq!(here.json()["sessions"].as_array().unwrap().len(), 0);
    let name = world.program("id", ["-un"]).run().ok().stdout();
    world.call(["-H", &format!("{}@127.0.0.1:{}", name.trim(), host.port), "status"]).run().ok();
    let shown = world.recant("config").ok().stdout();
    assert!(shown.contains("remotes.web1") && shown.contains("other store"), "{shown}");
}

#[test]
fn who_is_no_host_or_cannot_be_reached_is_named() {
    let Some((world, _, host)) = machine() else { return };
    let port = host.port;
    for words in ["-oProxyCommand=touch", "a b", "u@", "h:x"] {
        let said = world.call([&*format!("--host={words}"), "status"]).run().with(2);
        assert!(said.stderr().contains(&format!("{words:?} is not a host")), "{said}");
    }
    // An unset variable means no machine, and least of all this one; in the environment it means none but this one.
    for words in [&["-H", "", "session", "new"], &["-H", " ", "session", "new"]] {
        let said = world.call(words).run().with(2);
        assert!(said.stderr().contains("-H names no machine: it is empty"), "{said}");
    }
    assert!(!world.store().exists());
    assert!(world.call(["list", "--json"]).env("RECANT_HOST", "").run().ok().json()["sessions"].is_array());
    drop(host);
    let said = world.recant("-H web1 commit last").with(1);
    assert!(said.stderr().contains(&format!("port {port}: Connection refused")), "{said}");
    assert!(said.stderr().contains("web1: no connection"), "{said}");
    assert!(said.stderr().contains("nothing is known to have been done on web1"), "{said}");
    world.config("[remote]\nssh = '/nowhere/ssh'\n");
    let said = world.recant("-H web1 status").with(1);
    assert!(said.stderr().contains("cannot start /nowhere/ssh: no such file or directory"), "{said}");
}

#[test]
fn a_list_of_machines_is_refused_before_anything_is_done() {
    let world = World::new();
    let started = world.root().join("started");
    world.write("an-ssh", format!("#!/bin/sh\n: > {}\n", started.display()));
    world.chmod("an-ssh", 0o755);
    world.config(&format!("[remote]\nssh = '{}'\n", world.path("an-ssh").display()));
    let refused = |hosts: &str, said: Said| {
        let why = format!("recant: -H {hosts}: one machine at a time; docs/ansible.md has a playbook for several\n");
        assert_eq!((said.status, said.stdout(), said.stderr()), (2, String::new(), why), "{hosts}");
    };
    for hosts in ["web1,web2", "web1,", "@hosts", "@ansible:web"] {
        for words in [&["list"][..], &["session", "new"], &["commit", "last"], &["doctor"]] {
            refused(hosts, world.call(["-H", hosts].iter().chain(words)).run());
        }
        refused(hosts, world.call(["session", "new"]).env("RECANT_HOST", hosts).run());
    }
    assert!(!started.exists() && !world.store().exists());
}

/// A call that runs in the background, with its first line of output read.
fn begun(call: common::Call) -> (Child, BufReader<std::process::ChildStdout>, String) {
    let mut command = call.command();
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a child with pipes");
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a child with pipes");
    (child, stdout, line)
}

#[test]
fn signals_reach_the_command_there() {
    let Some((world, _, _host)) = machine().filter(|_| can_run()) else { return };
    // As from a terminal: to all of the group; as from kill(1): to recant, which ends its run by it.
    for (signal, script, status) in [
        (Signal::INT, "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.05; done", 9),
        (Signal::INT, "echo ready; exec sleep 600", 130),
        (Signal::TERM, "echo ready; exec sleep 600", 143),
    ] {
        // A verb that does not read, and more on its way than all pipes hold: the signal goes past it.
        let (mut child, mut stdout, line) = begun(interruptible(&world, &["-H", "web1", "run", "--", "sh", "-c", script]));
        assert_eq!(line, "ready\n", "{signal:?}");
        let mut input = child.stdin.take().unwrap();
        let feed = std::thread::spawn(move || drop(input.write_all(&vec![b'x'; 8 << 20])));
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, signal).unwrap();
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        let ended = child.wait().unwrap();
        assert_eq!((ended.code(), &*rest), (Some(status), if status == 9 { "caught\n" } else { "" }), "{signal:?} {script}");
        feed.join().unwrap();
    }
}

#[test]
fn streams_of_any_size_go_through_and_a_closed_one_is_closed_there() {
    let Some((world, _, host)) = machine() else { return };
    let id = world.recant("-H web1 session new").ok().id();
    let large: Vec<u8> = (0..5_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    world.call(["-H", "web1", "session", "write", &id, "large"]).stdin(&large).run().ok();
    let got = world.call(["-H", "web1", "cat", &id, "large"]).run().ok().out;
    assert!(got == large, "{} bytes of {} came back", got.len(), large.len());
    // What reads nothing leaves the list of a loop alone.
    let script = "printf 'web1\\nweb1\\n' | while read -r host; do \"$0\" -H $host status > /dev/null; echo $host; done";
    let said = world.program("sh", ["-c", script, common::recant()]).run().ok();
    assert_eq!(said.stdout(), "web1\nweb1\n");
    if can_run() {
        let script = "\"$0\" -H web1 run -q -- sh -c 'yes; echo $? > ended' | head -n 1";
        let said = world.program("sh", ["-c", script, common::recant()]).run().ok();
        assert_eq!(said.stdout(), "y\n");
        world.recant("-H web1 commit last").ok();
        assert_eq!(host.read("ended"), "141\n");
    }
}

#[test]
fn what_cannot_be_written_here_is_no_success() {
    let Some((world, _, _host)) = machine() else { return };
    let id = world.recant("-H web1 session new").ok().id();
    world.call(["-H", "web1", "session", "write", &id, "large"]).stdin(vec![b'x'; 3 << 20]).run().ok();
    let nowhere = |words: &str| {
        let script = format!("exec \"$0\" -H {words} > /dev/full");
        world.program("sh", ["-c", &script, common::recant()]).run()
    };
    let mut reads = ["web1 list", "web1 doctor"].map(str::to_owned).to_vec();
    reads.extend([format!("web1 cat {id} large"), format!("web1 session export {id}")]);
    for words in &reads {
        let said = nowhere(words);
        assert_eq!(said.status, 1, "{words}: {said}");
        assert!(said.stderr().contains("standard output: cannot write: no space left on device"), "{words}: {said}");
    }
    // As here: done, and not reported.
    let said = nowhere("web1 session new");
    assert!(said.status == 4 && said.stderr().contains("only the report is lost"), "{said}");
    if can_run() {
        let said = nowhere("web1 run -q -- echo short").with(1);
        assert!(said.stderr().contains("cannot write") && said.stderr().contains("cut off here"), "{said}");
        let said = nowhere("web1 run -q -- head -c 9000000 /dev/zero");
        assert!(said.status != 0 && said.stderr().contains("cannot write"), "{said}");
    }
}

#[test]
fn content_that_is_cut_off_is_not_taken_for_all() {
    let Some((world, _, host)) = machine() else { return };
    let id = world.recant("-H web1 session new").ok().id();
    for who in ["ssh", "sshd", "relay"] {
        let mut command = world.call(["-H", "web1", "session", "write", &id, "f"]).command();
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(&vec![b'x'; 3 << 20]).unwrap();
        let writer = host.writer();
        match who {
            "ssh" => kill(ssh::children(child.id())[0]),
            "sshd" => host.cut(),
            _ => kill(ssh::parent(writer)),
        }
        let said = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(1), "{who}: {text}");
        assert!(text.contains("web1: the connection was cut, and whether it ended there is unknown"), "{who}: {text}");
        assert!(text.contains("recant -H web1 status shows what was done"), "{who}: {text}");
        common::until("the writer has ended", || !std::path::Path::new(&format!("/proc/{writer}")).exists());
        let shown = world.call(["-H", "web1", "show", &id, "--json"]).run().ok().json();
        assert_eq!(shown["session"]["changes"], 0, "{who}");
        drop(input);
    }
    world.call(["-H", "web1", "session", "write", &id, "f"]).stdin("whole").run().ok();
    world.call(["-H", "web1", "commit", &id]).run().ok();
    assert_eq!(host.read("f"), "whole");
}

#[test]
fn a_rollback_sends_1_kib_at_most_whatever_the_sizes() {
    let Some((world, net, host)) = machine() else { return };
    host.write("large", vec![b'o'; 20 << 20]);
    let id = world.recant("-H web1 session new").ok().id();
    world.call(["-H", "web1", "session", "write", &id, "large"]).stdin(vec![b'n'; 20 << 20]).run().ok();
    // Keeps what goes to the far side: the words on ssh's command line, and what it reads.
    let sent = world.root().join("sent");
    let script = format!(
        "#!/bin/sh\nprintf '%s ' \"$@\" > {0}\ntee -a {0} | ssh -F {1} \"$@\"\n",
        sent.display(),
        net.settings().display()
    );
    world.write("counting-ssh", script);
    world.chmod("counting-ssh", 0o755);
    world.config(&format!("[remote]\nssh = '{}'\n", world.path("counting-ssh").display()));
    let mut most = 0;
    for words in ["commit", "rollback --dry-run", "rollback", "redo"] {
        let words: Vec<&str> = ["-H", "web1"].into_iter().chain(words.split(' ')).chain([&*id]).collect();
        world.call(&words).run().ok();
        let bytes = std::fs::metadata(&sent).unwrap().len();
        assert!(
            (300..=1024).contains(&bytes),
            "{words:?}: {bytes} bytes: {}",
            String::from_utf8_lossy(&std::fs::read(&sent).unwrap())
        );
        most = most.max(bytes);
    }
    println!("{most} bytes at most were sent for a commit, a conflict check, a rollback and a redo of 20 MiB");
    host.write("large", "somebody's");
    world.call(["-H", "web1", "rollback", &id]).run().with(3);
    assert!(std::fs::metadata(&sent).unwrap().len() <= 1024);
}

#[test]
fn another_user_s_machine_is_worked_on_as_that_user() {
    let mut world = World::new();
    let Some(net) = Net::new(&mut world) else { return };
    let Some(account) = ssh::ordinary() else { return };
    let host = net.host_of("web1", &account);
    host.write("f", "old\n");
    let id = world.recant("-H web1 session new").ok().id();
    world.call(["-H", "web1", "session", "write", &id, "f"]).stdin("new\n").run().ok();
    world.call(["-H", "web1", "session", "write", &id, "g"]).stdin("made\n").run().ok();
    // Nobody but root may make that.
    let other = world.recant("-H web1 session new").ok().id();
    world.call(["-H", "web1", "session", "write", &other, "/etc/by-recant"]).stdin("x").run().ok();
    assert_eq!(world.call(["-H", "web1", "commit", &other]).run().status, 1);
    world.call(["-H", "web1", "commit", &id]).run().ok();
    let owner = |name: &str| std::os::unix::fs::MetadataExt::uid(&host.home.join(name).metadata().unwrap());
    assert_eq!((host.read("f"), owner("f"), owner("g")), ("new\n".into(), account.uid, account.uid));
    if can_run() {
        let said = world.call(["-H", "web1", "run", "--commit", "--", "sh", "-c", "id -un; echo run > f"]).run();
        if said.status == 125 {
            println!("skipped: a run of another user's machine: {}", said.stderr().lines().next().unwrap_or_default());
        } else {
            assert_eq!((said.status, said.stdout().lines().next()), (0, Some(&*account.name)), "{said}");
            assert_eq!(host.read("f"), "run\n");
            world.recant("-H web1 rollback last").ok();
        }
    }
    world.call(["-H", "web1", "rollback", &id]).run().ok();
    assert_eq!(host.read("f"), "old\n");
    assert!(!host.home.join("g").exists());
}

#[test]
fn a_person_at_a_terminal_works_there_as_at_home() {
    let mut world = World::new();
    let Some(net) = Net::new(&mut world).filter(|_| can_run()) else { return };
    let bash = std::fs::exists("/bin/bash").unwrap();
    let host = net.host_with_shell("web1", if bash { "/bin/bash" } else { "/bin/sh" });
    let settings = net.settings();
    let bare =
        world.program("ssh", [OsStr::new("-F"), settings.as_os_str(), OsStr::new("-tt"), OsStr::new("web1"), OsStr::new("true")]);
    if bare.run().status != 0 {
        return common::skip("a person at a terminal: the sshd of an ordinary user can give none here (devpts without gid=5)");
    }
    for (name, text) in [
        ("far.py", include_str!("../capture/terminals/far.py")),
        ("terminal.py", include_str!("../capture/terminals/terminal.py")),
    ] {
        world.write(world.root().join(name), text);
    }
    let script = world.root().join("far.py");
    let words = [script.as_os_str(), OsStr::new(common::recant()), OsStr::new("web1"), host.home.as_os_str()];
    let output = world.program("python3", words).command().stdin(Stdio::null()).output().unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.lines().count() >= 4, "{said}{errors}");
    errors.lines().for_each(|line| println!("{line}"));
}

#[test]
fn standard_input_that_cannot_be_read_ends_the_verb_and_is_named() {
    let Some((world, _, host)) = machine() else { return };
    host.write("app.conf", "old");
    world.call(["-H", "web1", "session", "new", "-n", "s"]).run().ok();
    // A directory can be opened, and not be read.
    let script = "timeout -k 1 30 \"$0\" -H web1 session write s app.conf < /";
    let said = world.program("sh", ["-c", script, common::recant()]).run().with(1);
    assert!(said.stderr().contains("web1: cannot read standard input"), "{said}");
    let shown = world.call(["-H", "web1", "show", "s", "--json"]).run().ok();
    assert_eq!(shown.json()["session"]["changes"], 0, "{shown}");
}

#[test]
fn more_words_than_a_connection_carries_are_refused_by_name() {
    let Some((world, _, _host)) = machine() else { return };
    let long = "x".repeat(100 << 10);
    let words = ["-H", "web1", "run", "--", "true"].into_iter().chain(std::iter::repeat_n(&*long, 12));
    let said = world.call(words).run().with(1);
    assert!(said.stderr().contains("a connection carries at most 1048576"), "{said}");
}

#[test]
fn sudo_is_asked_where_the_settings_say_so_and_its_refusal_is_told_as_one() {
    let Some((world, net, host)) = machine() else { return };
    let ssh = net.settings().display().to_string();
    world.config(&format!("[remote]\nssh = 'ssh -F {ssh}'\n[remotes.web1]\nsudo = true\n"));
    host.write(".noise", "PATH=$HOME/bin:$PATH\n");
    let sudo = |text: &str| {
        host.write("bin/sudo", format!("#!/bin/sh\n{text}\n"));
        world.program("chmod", ["755".as_ref(), host.home.join("bin/sudo").as_os_str()]).run().ok();
    };
    sudo("[ \"$1\" = -n ] || exit 9; shift; : > $HOME/asked; exec \"$@\"");
    world.call(["-H", "web1", "session", "new", "-n", "s"]).run().ok();
    assert!(host.home.join("asked").exists());
    sudo("echo 'sudo: a password is required' >&2; exit 1");
    let said = world.call(["-H", "web1", "list"]).run().with(1);
    assert!(said.stderr().contains("a password is required") && said.stderr().contains("sudo -n refused"), "{said}");
    assert!(!said.stderr().contains("cannot be installed there"), "{said}");
}

#[test]
fn a_commit_that_nobody_confirms_is_taken_back_there_and_a_confirmed_one_stays() {
    let Some((world, _, host)) = machine() else { return };
    host.write("f", "old");
    let id = world.recant("-H web1 session new").ok().id();
    world.call(["-H", "web1", "session", "write", &id, "f"]).stdin("new").run().ok();
    let commit = |within: &str| world.call(["-H", "web1", "commit", &id, "--confirm-within", within]).run().ok();
    let waits = || host.store().join("unconfirmed").join(&id).exists();
    commit("1s");
    // The connection has ended: the machine is by itself.
    common::until("the rollback", || !waits());
    assert_eq!(host.read("f"), "old");
    commit("1h");
    assert!(waits());
    world.call(["-H", "web1", "confirm", &id]).run().ok();
    assert!(!waits());
    assert_eq!(host.read("f"), "new");
}

#[test]
fn a_signal_before_the_machine_has_answered_gives_it_up() {
    let Some((world, _, host)) = machine() else { return };
    let begun = world.root().join("begun");
    // It ends with the world.
    host.write(".noise", format!(": > {0}; while [ -e {0} ]; do sleep 0.05; done", begun.display()));
    let mut command = interruptible(&world, &["-H", "web1", "session", "new"]).command();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    common::until("the login has begun", || begun.exists());
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{text}");
    assert!(text.contains("web1: ended by a signal before the far side had answered"), "{text}");
    assert!(!host.store().exists());
}

/// A verb costs one ssh, over which that machine's shell becomes recant; the verb is this one's only child.
#[test]
fn a_verb_costs_one_ssh_and_one_look_for_recant() {
    let Some((world, net, host)) = machine() else { return };
    let started = world.root().join("started");
    let script = format!("#!/bin/sh\necho ssh >> {}\nexec ssh -F {} \"$@\"\n", started.display(), net.settings().display());
    world.write("an-ssh", script);
    world.chmod("an-ssh", 0o755);
    world.config(&format!("[remote]\nssh = '{}'\n", world.path("an-ssh").display()));
    // In the place of recant, who counts and becomes it.
    let real = std::fs::read_link(host.recant()).unwrap();
    std::fs::remove_file(host.recant()).unwrap();
    let counts = format!("#!/bin/sh\necho recant >> {}\nexec {} \"$@\"\n", started.display(), real.display());
    host.write(host.recant().strip_prefix(&host.home).unwrap().to_str().unwrap(), counts);
    std::fs::set_permissions(host.recant(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for words in ["-H web1 list", "-H web1 session new"] {
        std::fs::write(&started, "").unwrap();
        world.recant(words).ok();
        // The verb is started by its own file, past the script.
        assert_eq!(std::fs::read_to_string(&started).unwrap(), "ssh\nrecant\n", "{words}");
    }
}

#[test]
fn what_goes_to_a_machine_and_comes_from_it_is_not_held_in_memory() {
    let Some((world, _, host)) = machine() else { return };
    const MIB: usize = 1 << 20;
    let id = world.begin();
    world.stage_write(&id, "large", vec![b'x'; 64 * MIB]);
    let stream = world.root().join("stream");
    // Heap, stacks of its threads and private mappings: less than the stream.
    let bounded = |words: &str| {
        let script = format!("ulimit -d {} && exec \"$0\" {words}", 48 << 10);
        world.program("sh", ["-c", &script, common::recant()]).run().ok()
    };
    bounded(&format!("session export {id} > {}", stream.display()));
    bounded(&format!("-H web1 session import < {}", stream.display()));
    assert!(host.store().join("sessions").join(&id).is_dir());
    bounded(&format!("-H web1 session export {id} > {}", stream.display()));
    assert!(std::fs::metadata(&stream).unwrap().len() > 64 * MIB as u64);
}
