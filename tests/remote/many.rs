//! `-H` with several machines: blocks, a table, JSON lines, lists from files and Ansible, some at a time.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::sweep::{Came, Sweep};
use crate::common::{self, World};
use crate::ssh;
use crate::{interruptible, machines_of};
use rustix::process::{Pid, Signal};

#[test]
fn each_machine_s_words_are_a_block_and_a_table_tells_how_it_went() {
    let Some((world, _, hosts)) = machines_of(["a", "b", "c"]) else { return };
    hosts.iter().for_each(|host| host.write("f", "old\n"));
    world.recant("-H a,b,c session new -n one").ok();
    world.call(["-H", "a,b,c", "session", "write", "one", "f"]).stdin("new\n").run().ok();
    hosts[1].write("f", "somebody's\n");
    // Without --dry-run it is one act of all machines: remote_commit.rs.
    let said = world.recant("-H a,b,c commit one --dry-run").with(3);
    let text = said.stdout();
    assert_eq!(hosts.each_ref().map(|host| host.read("f")), ["old\n", "somebody's\n", "old\n"]);
    let table =
        "host  exit  changes  result\na        0        1  done\nb        3        -  conflict\nc        0        1  done\n";
    assert_eq!(text, format!("== a\nmodified  ~/f\n== b\n== c\nmodified  ~/f\n\n{table}"), "{said}");
    let messages = said.stderr();
    assert!(messages.contains("a: recant: session ") && messages.contains("b: recant: "), "{said}");
    assert!(messages.lines().all(|line| ["a: ", "b: ", "c: "].iter().any(|host| line.starts_with(host))), "{said}");
    // As JSON; on one the session is dropped, and one is gone by now.
    world.recant("-H b discard one -y").ok();
    let [_a, _b, c] = hosts;
    drop(c);
    let said = world.recant("-H a,b,c diff one --json");
    let rows = said.json_lines();
    assert_eq!((said.status, rows.len()), (1, 3), "{said}");
    let brief =
        |n: usize| (rows[n]["host"].as_str().unwrap(), rows[n]["exit"].as_u64().unwrap(), rows[n]["result"].as_str().unwrap());
    assert_eq!([brief(0), brief(1), brief(2)], [("a", 0, "done"), ("b", 1, "refused"), ("c", 1, "no connection")]);
    let document = &rows[0]["documents"][0];
    assert_eq!((&rows[0]["schema"], &document["session"]["name"]), (&2.into(), &"one".into()), "{said}");
    assert_eq!((&rows[1]["errors"][0]["kind"], &rows[2]["errors"][0]["kind"]), (&"refused".into(), &"refused".into()), "{said}");
    let said = world.recant("-H a,b,c shell").with(1);
    assert!(said.stderr().contains("a shell is on one machine, and -H names 3 machines"), "{said}");
}

#[test]
fn what_a_run_ended_with_is_its_command_s_and_none_of_recant_s_words() {
    let Some((world, _, _hosts)) = machines_of(["a", "b"]) else { return };
    if !common::can_run() {
        return;
    }
    for (status, result) in [(0, "done"), (3, "status 3"), (5, "status 5")] {
        let said = world.call(["-H", "a,b", "--json", "run", "-q", "--", "sh", "-c", &format!("exit {status}")]).run();
        assert_eq!((said.status, &said.json_lines()[1]["result"]), (status, &result.into()), "{said}");
    }
}

#[test]
fn lists_come_from_files_and_from_ansible() {
    let Some((world, _, _hosts)) = machines_of(["a", "b", "c"]) else { return };
    let named = |words: &str| -> Vec<String> {
        let said = world.recant(&format!("-H {words} session list --json")).ok();
        said.json_lines().iter().map(|row| row["host"].as_str().expect("a host").to_owned()).collect()
    };
    world.write("machines", "# ours\na\n\n  c # far away\na\n");
    assert_eq!(named("@machines"), ["a", "c"]);
    assert_eq!(named("b,@machines"), ["b", "a", "c"]);
    let fake = "#!/bin/sh\n[ \"$*\" = --list ] || exit 9\ncat <<EOF\n{\"_meta\":{\"hostvars\":{\"x\":{\"ansible_host\":\"b\"}}},\"web\":{\"hosts\":[\"a\",\"x\"]}}\nEOF\n";
    world.write("bin/ansible-inventory", fake);
    world.chmod("bin/ansible-inventory", 0o755);
    let path = format!("{}:{}", world.path("bin").display(), std::env::var("PATH").expect("a PATH"));
    let of_web = |call: common::Call| call.env("PATH", &path).run();
    let said = of_web(world.call(["-H", "@ansible:web", "list", "--json"])).ok();
    assert_eq!(said.json_lines().iter().map(|row| row["host"].clone()).collect::<Vec<_>>(), ["a", "x"]);
    let said = of_web(world.call(["-H", "@ansible:db", "list"])).with(1);
    assert!(said.stderr().contains("the inventory has no group \"db\"; it has web"), "{said}");
    let said = world.call(["-H", "@ansible:web", "list"]).env("PATH", "/nowhere").run().with(1);
    assert!(said.stderr().contains("ansible-inventory: it cannot be started"), "{said}");
    world.recant("-H @nowhere list").with(1);
    world.write("machines", "a\n# ours\n\nc d # not a name\n");
    let said = world.recant("-H b,@machines list").with(2);
    assert!(said.stderr().contains("recant: machines:4: \"c d\" is no host: that is no host's name"), "{said}");
}

#[test]
fn an_inventory_of_ansible_s_own_is_read() {
    let Some((world, _, hosts)) = machines_of(["a", "b"]) else { return };
    let real = world.program("sh", ["-c", "command -v ansible-inventory"]).run();
    if real.status != 0 {
        return println!("skipped: an inventory of Ansible's own: ansible-inventory is not installed");
    }
    let text = format!("[web]\na\nother ansible_host=127.0.0.1 ansible_port={}\n", hosts[1].port);
    world.write("inventory", text);
    let said = world.call(["-H", "@ansible:web", "list", "--json"]).env("ANSIBLE_INVENTORY", world.path("inventory")).run().ok();
    assert_eq!(said.json_lines().iter().map(|row| row["host"].clone()).collect::<Vec<_>>(), ["a", "other"]);
}

#[test]
fn so_many_machines_are_worked_on_at_once_as_are_asked_for() {
    let Some((world, _, hosts)) = machines_of(["a", "b", "c"]) else { return };
    let meeting = world.root().join("meeting");
    std::fs::create_dir(&meeting).expect("a directory");
    std::fs::set_permissions(&meeting, PermissionsExt::from_mode(0o777)).expect("open to all");
    let all = |script: &str| {
        hosts.iter().for_each(|host| host.write(".noise", script.replace("MEETING", &meeting.display().to_string())))
    };
    // Each waits until all three are there.
    all(
        "cd MEETING; : > $$; n=0; while [ $(ls | wc -l) -lt 3 ] && [ $n -lt 2000 ]; do sleep 0.01; n=$((n+1)); done; [ $n -lt 2000 ] || exit 1; cd $HOME",
    );
    world.recant("-H a,b,c --forks 3 list").ok();
    // Each leaves before the next comes.
    all("mkdir MEETING/alone || exit 1; sleep 0.1; rmdir MEETING/alone");
    world.recant("-H a,b,c --forks 1 list").ok();
}

#[test]
fn a_signal_ends_what_runs_and_nothing_more_is_begun() {
    let Some((world, _, hosts)) = machines_of(["a", "b"]) else { return };
    let begun = world.root().join("begun");
    // It ends with the world.
    let noise = format!(": > {0}; while [ -e {0} ]; do sleep 0.05; done", begun.display());
    hosts[0].write(".noise", noise);
    let mut command = interruptible(&world, &["-H", "a,b", "--forks", "1", "session", "new"]).command();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    ssh::until("the first is begun", || begun.exists());
    rustix::process::kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("its end");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.contains("a      130        -  asked to end\nb      130        -  asked to end\n"), "{text}");
    assert!(!hosts[1].store().exists());
}

#[test]
fn what_all_of_them_get_is_not_held_in_memory() {
    let Some((mut world, _, hosts)) = machines_of(["a", "b"]) else { return };
    let kept = temporary(&mut world);
    const MIB: usize = 1 << 20;
    let id = world.begin();
    world.stage_write(&id, "large", vec![b'x'; 64 * MIB]);
    let stream = world.root().join("stream");
    let export = format!("exec \"$0\" session export {id} > {}", stream.display());
    world.program("sh", ["-c", &export, common::recant()]).run().ok();
    assert!(std::fs::metadata(&stream).expect("a stream").len() > 64 * MIB as u64);
    // Heap, stacks of its threads and private mappings: less than the stream.
    let import = format!("ulimit -d {} && exec \"$0\" -H a,b session import --json < {}", 48 << 10, stream.display());
    let said = world.program("sh", ["-c", &import, common::recant()]).run().ok();
    for (row, host) in said.json_lines().iter().zip(&hosts) {
        assert_eq!((&row["host"], &row["documents"][0]["session"]), (&host.name.as_str().into(), &id.as_str().into()), "{said}");
    }
    assert_eq!(names(&kept), [""; 0]);
}

/// A directory of the world's own for what is kept in the meantime.
fn temporary(world: &mut World) -> PathBuf {
    let directory = world.root().join("temporary");
    std::fs::create_dir(&directory).expect("a directory");
    world.set("TMPDIR", &directory);
    directory
}

fn names(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).expect("a directory");
    names.map(|name| name.expect("a name").file_name().to_string_lossy().into_owned()).collect()
}

/// The process has begun to keep what it reads: a file without a name.
fn keeps(pid: u32, directory: &Path) -> bool {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.into_iter().any(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to.starts_with(directory)))
}

#[test]
fn a_signal_while_standard_input_for_all_is_read_ends_it_and_none_is_begun() {
    let Some((mut world, _, hosts)) = machines_of(["a", "b"]) else { return };
    let kept = temporary(&mut world);
    for (signal, status) in [(Signal::INT, Some(130)), (Signal::TERM, Some(143)), (Signal::KILL, None)] {
        let mut command = interruptible(&world, &["-H", "a,b", "session", "import"]).command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        // It stays open: no end of it comes.
        let mut stdin = child.stdin.take().expect("a pipe");
        std::io::Write::write_all(&mut stdin, b"the beginning of what never comes whole").expect("it is taken");
        ssh::until("it is kept", || keeps(child.id(), &kept));
        assert_eq!(names(&kept), [""; 0], "{signal:?}: it has a name");
        rustix::process::kill_process(Pid::from_child(&child), signal).expect("it runs");
        let output = child.wait_with_output().expect("its end");
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), status, "{text}");
        if status.is_some() {
            assert_eq!(text.matches("asked to end").count(), 2, "{signal:?}: {text}");
        }
        drop(stdin);
        assert_eq!(names(&kept), [""; 0], "{signal:?}");
        assert!(hosts.iter().all(|host| !host.store().exists()), "{signal:?}: one was begun");
    }
}

/// Killed before any of its own steps, it leaves no name either.
#[test]
fn what_is_kept_for_all_leaves_nothing_when_its_process_is_killed_before_any_step() {
    let scene = || {
        let (mut world, _, hosts) = machines_of(["a", "b"])?;
        Some((temporary(&mut world), world, hosts))
    };
    let row = Sweep {
        name: "session import on two machines",
        scene: &scene,
        verb: &|(_, world, _)| world.call(["-H", "a,b", "session", "import"]),
        order: "kill:N",
    };
    // The verb on a machine has steps of its own: its end is told in the table.
    let tally = row.run(|(kept, ..), said, what| {
        assert_eq!(names(kept), [""; 0], "{what}");
        Came::Unchanged(said.status == 137 && !said.stdout().contains("137"))
    });
    tally.saw(true, 1);
}

/// What a machine costs: one ssh, over which that machine's shell becomes recant; the verb is this one's only child.
#[test]
fn each_machine_costs_one_ssh_and_one_look_for_recant() {
    let Some((world, net, hosts)) = machines_of(["a", "b"]) else { return };
    let (started, script) = (world.root().join("started"), world.root().join("an-ssh"));
    let text = format!("#!/bin/sh\necho ssh >> {}\nexec ssh -F {} \"$@\"\n", started.display(), net.settings().display());
    std::fs::write(&script, text).expect("a script");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("its mode");
    world.config(&format!("[remote]\nssh = '{}'\n", script.display()));
    for host in &hosts {
        // In the place of recant, who counts and becomes it.
        let real = std::fs::read_link(host.recant()).expect("a link");
        std::fs::remove_file(host.recant()).expect("the link");
        let name = host.recant().strip_prefix(&host.home).expect("below the home").display().to_string();
        host.write(&name, format!("#!/bin/sh\necho recant >> {}\nexec {} \"$@\"\n", started.display(), real.display()));
        std::fs::set_permissions(host.recant(), std::fs::Permissions::from_mode(0o755)).expect("its mode");
    }
    let id = world.begin();
    world.stage_write(&id, "made", "new");
    // One that has to be sent: the verb that lacks it, its import, and the verb.
    for (words, each) in [("-H a,b list", 2), ("-H a,b session new", 2), (&*format!("-H a, commit {id}"), 3)] {
        std::fs::write(&started, "").expect("an empty list");
        world.recant(words).ok();
        let all = std::fs::read_to_string(&started).expect("a list");
        let count = |what: &str| all.lines().filter(|line| *line == what).count();
        // The verb is started by its own file, past the script.
        assert_eq!((count("ssh"), count("recant")), (each, each), "{words}: {all}");
    }
}

/// Settings with a far side that says `hello`, reads nothing and then does what the shell's text `then` says; `frame KIND TEXT` writes a
/// frame.
fn sly(world: &World, then: &str) {
    let script = world.root().join("sly-ssh");
    let text = format!(
        "#!/bin/bash\nframe() {{ printf \"$1\\\\x$(printf %02x $((${{#2}} >> 24 & 255)))\\\\x$(printf %02x $((${{#2}} >> 16 & 255)))\\\\x$(printf %02x $((${{#2}} >> 8 & 255)))\\\\x$(printf %02x $((${{#2}} & 255)))%s\" \"$2\"; }}\n\
         export LC_ALL=C\nprintf 'recant-far 2 9.9.9\\n'\n{then}\n"
    );
    world.write(&script, text);
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("a script");
    world.config(&format!("[remote]\nssh = '{}'\n", script.display()));
}

#[test]
fn what_a_machine_prints_gives_a_terminal_no_orders() {
    let world = World::new();
    sly(
        &world,
        "frame o $'\\e[32mfine\\e[0m\\n\\e[8mhidden\\e[2Kx\\rover\\x9b8m\\n'; frame x $'\\e[1A\\e[2Kgone\\n'; printf 'q\\0\\0\\0\\1\\1'",
    );
    let (piped, raw) = (world.recant("-H a,b diff").with(1).out, b"\x1b[8mhidden\x1b[2Kx\rover\x9b8m\n");
    assert!(piped.windows(raw.len()).any(|part| part == raw), "{}", piped.escape_ascii());
    if world.program("script", ["-V"]).command().output().is_err() {
        return common::skip("script makes the terminal");
    }
    let command = format!("{} -H a,b diff", common::recant());
    let said = world.program("script", ["-qec", &command, "/dev/null"]).env("TERM", "xterm").run().with(1);
    let shown = said.stdout();
    assert!(shown.contains("^[[8mhidden^[[2Kx^Mover<9B>8m") && shown.contains("a: ^[[1A^[[2Kgone"), "{said}");
    assert!(shown.contains("\u{1b}[32mfine\u{1b}[0m"), "{said}");
    // A commit of all of them tells in a line of its own why a machine could not.
    sly(&world, r#"frame x $'{"kind":"refused","message":"no \\u001b[8m \\u202e"}\n'; printf 'q\0\0\0\1\1'"#);
    world.edited("f");
    let said = world.recant("-H a,b commit last");
    assert!(!said.stdout().contains(['\u{1b}', '\u{202e}']) && !said.stderr().contains(['\u{1b}', '\u{202e}']), "{said}");
}

/// A far side, in Python, that prints `mib` MiB on the stream of frames of `kind`, made of `unit`, between `first` and `last`.
fn endless(world: &World, kind: char, unit: &str, mib: usize, first: &str, last: &str) {
    let unit = serde_json::json!(unit);
    let then = format!(
        "exec python3 -c '\nimport sys\nout=sys.stdout.buffer\nu={unit}.encode()\nm=u*((1<<20)//len(u))\n\
         def f(k,b): out.write(k.encode()+len(b).to_bytes(4,\"big\")+b)\n\
         f(\"{kind}\",{first:?}.encode())\nfor i in range({mib}): f(\"{kind}\",m)\nf(\"{kind}\",{last:?}.encode())\nf(\"q\",bytes([0]))\nout.flush()'"
    );
    sly(world, &then);
}

#[test]
#[ignore = "long: prints of many MiB, in each form"]
fn what_machines_print_without_end_takes_no_memory() {
    let mut world = World::new();
    if world.program("python3", ["-V"]).command().output().is_err() {
        return common::skip("python3 plays the far side");
    }
    let kept = temporary(&mut world);
    let out = world.root().join("out");
    const MIB: usize = 24;
    // Heap, stacks of its threads and private mappings: less than one of the two prints.
    let bounded = |mib: usize, words: &str| {
        let script = format!("ulimit -d {} && exec \"$0\" {words} > {} 2>&1", mib << 10, out.display());
        let said = world.program("sh", ["-c", &script, common::recant()]).run();
        assert_eq!(names(&kept), [""; 0]);
        (said.status, std::fs::read(&out).expect("what it printed"))
    };
    for (kind, unit) in
        [('o', "x"), ('o', "line\n"), ('x', "x"), ('x', "a line of many words, one after another, to the end of it\n")]
    {
        endless(&world, kind, unit, MIB, "", "");
        let (status, text) = bounded(20, "-H a,b diff");
        assert_eq!(status, 0, "{kind} {unit:?}: {}", String::from_utf8_lossy(&text[text.len().saturating_sub(2000)..]));
        assert!(text.len() >= (2 * MIB - 1) << 20, "{kind} {unit:?}: {}", text.len());
    }
    // As JSON: one document, no document, messages.
    for (kind, unit, first, last) in [('o', "x", "{\"a\":\"", "\"}\n"), ('o', "no document\n", "", ""), ('x', "words\n", "", "")]
    {
        endless(&world, kind, unit, MIB, first, last);
        let (status, text) = bounded(20, "--json -H a,b diff");
        let end = String::from_utf8_lossy(&text[text.len().saturating_sub(2000)..]).into_owned();
        assert_eq!(status, 0, "{kind} {unit:?}: {end}");
        let lines: Vec<&[u8]> = text.split(|b| *b == b'\n').filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), 2, "{kind} {unit:?}: {end}");
        for line in lines {
            assert!(line.len() >= (MIB - 1) << 20, "{kind} {unit:?}: {}", line.len());
            let row: serde_json::Value = serde_json::from_slice(line).unwrap_or_else(|error| panic!("{unit:?}: {error}: {end}"));
            let is = |key: &str| !row[key].is_null() && row[key] != serde_json::json!([]);
            let want = if kind == 'x' {
                "messages"
            } else if last.is_empty() {
                "output"
            } else {
                "documents"
            };
            assert!(is(want), "{kind} {unit:?}: {end}");
        }
    }
    // Characters that stand across the borders of what is kept where, and bytes that are none.
    endless(&world, 'o', "\u{9b}x\u{e4}", 1, "", "");
    let row = &world.recant("-H a,b --json diff").ok().json_lines()[0];
    assert!(row["output"].as_str().is_some_and(|text| text.ends_with("\u{9b}x\u{e4}\u{9b}x\u{e4}")), "{row}");
    sly(&world, "frame o $'a\\xffb'; printf 'q\\0\\0\\0\\1\\0'");
    assert_eq!(world.recant("-H a,b --json diff").ok().json_lines()[0]["output"]["b64"], "Yf9i");
    common::way("memory that other machines fill without end", common::this_user(), "-H", "closed");
    // What ssh itself says, past recant.
    sly(&world, "head -c 25165824 /dev/zero | tr '\\0' y >&2; printf 'q\\0\\0\\0\\1\\0'");
    let (status, text) = bounded(20, "-H a,b diff");
    assert!(status == 0 && String::from_utf8_lossy(&text).contains("more was said, and is left out"), "{status}");
    // A commit of all of them: the words of one that is neither ready nor at an end.
    world.edited("f");
    for (unit, last) in [("x", ""), ("[],", ""), ("{\"paths\":[]}\n", "")] {
        endless(&world, 'o', unit, 150, "", last);
        let (status, text) = bounded(120, "-H a,b commit last");
        assert!(text.len() < 10 << 10, "{unit:?}: {}", text.len());
        assert_eq!(status, 0, "{unit:?}: {}", String::from_utf8_lossy(&text));
    }
    // Without a place to keep it the end is missing, and that is said.
    world.set("TMPDIR", world.root().join("nowhere"));
    endless(&world, 'o', "line\n", 2, "", "");
    let said = world.recant("-H a,b diff").with(4);
    assert!(said.stderr().contains("a: the end of what it printed is missing: "), "{}", said.stderr());
}
