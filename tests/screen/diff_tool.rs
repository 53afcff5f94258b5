//! `diff` in other programs: tools that compare two directories or files, and the pager of differences.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{self, Said, World, can_run, skip};
use crate::on_stderr;
use insta::assert_snapshot;

/// A session with a change of each kind, and a directory for temporary files.
fn world() -> (World, String) {
    let mut world = World::new();
    let temporary = world.root().join("temporary");
    world.mkdir(&temporary);
    world.set("TMPDIR", &temporary);
    world.write("changed", "old\n").write("gone", "bye\n").write("tool", "#!\n").symlink("/etc", "link").mkdir("d");
    world.write("mode", "as it is\n").write("secret", "outside\n");
    let id = world.begin();
    world.stage_write(&id, "changed", "new\n").stage_write(&id, "sub dir/made", "hello\n");
    world.call(["session", "delete", &id, "gone"]).run().ok();
    world.call(["session", "write", &id, "tool", "--mode", "0755"]).stdin("#!/bin/sh\n").run().ok();
    world.stage(&id, [&*format!("symlink {} link", world.path("secret").display()), "chmod 0600 mode"]);
    (world, id)
}

/// The names that are left for tools.
fn left(world: &World) -> usize {
    std::fs::read_dir(world.root().join("temporary")).expect("the directory for temporary files").count()
}

/// A program of this name in a directory that PATH begins with.
fn program(world: &mut World, name: &str, script: &str) {
    let directory = world.root().join("bin");
    world.write(directory.join(name), format!("#!/bin/sh\n{script}\n"));
    world.chmod(directory.join(name), 0o755);
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").expect("a path"));
    world.set("PATH", path);
}

/// A listing of the directory that it is given, without the world's own name.
const LIST: &str =
    r#"cd "$OLD/.." && find . -not -type d -printf '%M %P -> %l\n' | sed "s,$WORLD,/world,g; s,${WORLD#/},world,g" | sort"#;

fn listed(world: &World, id: &str, words: &[&str]) -> Said {
    let call = world.call([&["diff", id, "--tool", LIST], words].concat());
    call.env("WORLD", world.root()).run()
}

#[test]
fn a_tool_gets_copies_that_are_read_only_of_what_was_and_what_is_and_they_are_gone_afterwards() {
    let (world, id) = world();
    let said = listed(&world, &id, &[]).ok();
    assert_snapshot!(said, @r#"
    status 0
    --- stdout
    -r-------- new/world/tree/changed -> 
    -r-------- new/world/tree/sub dir/made -> 
    -r-------- old/world/tree/changed -> 
    -r-------- old/world/tree/gone -> 
    -r-------- old/world/tree/tool -> 
    -r-x------ new/world/tree/tool -> 
    lrwxrwxrwx new/world/tree/link -> /world/tree/secret
    lrwxrwxrwx old/world/tree/link -> /etc
    --- stderr
    recant: 2 paths with no content that a tool could show: see recant diff <id1~>
    "#);
    assert_eq!(left(&world), 0);
    let said = world.call(["diff", &id, "--tool", "diff -r --no-dereference"]).run().ok();
    let lines: Vec<String> = said.stdout().lines().filter(|line| line.starts_with(['<', '>'])).map(str::to_owned).collect();
    assert_eq!(lines, ["< old", "> new", "< #!", "> #!/bin/sh"]);
    // The same of a snapshot, of two sessions, and of conflicts.
    world.recant("snapshot create").ok();
    world.write("changed", "by hand\n");
    for words in ["snapshot diff last", &format!("diff {id} --conflicts")] {
        let said = world.call(words.split(' ').chain(["--tool", "find \"$OLD\" -name changed -exec cat {} +"])).run().ok();
        let then = if words.starts_with("snapshot") { "old\n" } else { "by hand\n" };
        assert_eq!(said.stdout(), then, "{said}");
    }
    assert_eq!(left(&world), 0);
}

#[test]
fn what_a_tool_does_to_its_copies_reaches_neither_the_store_nor_the_tree() {
    let (world, id) = world();
    let (tree, session) = (world.manifest(), common::manifest(&world.session(&id)));
    let wild = r#"cd "$NEW/.." && chmod -R u+w . && find . -type f -exec sh -c 'echo x > "$1"' sh {} \; ; find . -type f -delete
                  ln -s "$WORLD/tree" into; mkdir -p deep/er; chmod 0 deep; exit 3"#;
    world.call(["diff", &id, "--tool", wild]).env("WORLD", world.root()).run().ok();
    tree.assert_same(&world.manifest(), "the tree");
    session.assert_same(&common::manifest(&world.session(&id)), "the store");
    assert_eq!(left(&world), 0);
}

#[test]
fn a_copied_link_leads_no_copy_out_of_the_directory() {
    if !can_run() {
        return skip("a link in place of a directory: recant run does not work here");
    }
    let (mut world, _) = world();
    world.write("dir/file", "old\n").write("outside/file", "untouched\n");
    let script = "rm -r dir; ln -s outside dir; echo new > other";
    world.call(["run", "-q", "-n", "swapped", "--", "sh", "-c", script]).run().ok();
    let said = listed(&world, "swapped", &[]).ok();
    assert_snapshot!(said.stdout(), @"
    -r-------- new/world/tree/other -> 
    -r-------- old/world/tree/dir/file -> 
    lrwxrwxrwx new/world/tree/dir -> outside
    ");
    assert_eq!(world.read("outside/file"), "untouched\n");
    // One that fails half way leaves nothing.
    program(&mut world, "vimdiff", "exit 0");
    world.chmod(world.root().join("temporary"), 0o500);
    let said = world.recant("diff swapped --tool vimdiff");
    world.chmod(world.root().join("temporary"), 0o700);
    if !rustix::process::geteuid().is_root() {
        let said = said.with(1).stderr();
        assert!(said.contains("/temporary/recant-diff-") && said.contains("permission denied"), "{said}");
    }
    assert_eq!(left(&world), 0);
}

#[test]
fn vimdiff_gets_file_by_file_until_one_ends_in_failure() {
    let (mut world, id) = world();
    program(&mut world, "vimdiff", r#"shift; echo "$(cat "$1") | $(cat "$2")" >> "$WORLD/seen"; ! grep -qs bye "$1" || exit 1"#);
    let said = world.call(["diff", &id, "--tool", "vimdiff"]).env("WORLD", world.root()).run().ok();
    assert_eq!(world.read(world.root().join("seen")), "old | new\nbye | \n");
    let left_out = format!("recant: 3 paths with no content that a tool could show: see recant diff {}\n", &id[16..]);
    assert_eq!((said.stdout(), said.stderr()), (String::new(), left_out));
    assert_eq!(left(&world), 0);
}

#[test]
fn the_settings_name_the_tool_and_the_call_goes_first() {
    let (world, id) = world();
    assert_snapshot!(on_stderr(&world.call(["diff", &id, "--tool"]).run(), 2), @"
    recant: no tool is named, and diff.tool is not set
            recant diff --tool meld; recant config --help tells of the setting
    ");
    world.config("[diff]\ntool = 'echo of the settings; true'\n");
    let last = |words: &[&str]| world.call([&["diff", &*id], words].concat()).run().ok().stdout();
    assert_eq!(last(&["--tool"]), "of the settings\n");
    assert_eq!(last(&["--tool", "echo of the call; true"]), "of the call\n");
    assert_eq!(last(&["--tool=echo of the call; true"]), "of the call\n");
    assert!(last(&[]).starts_with("diff --git"));
    // A shell tells of a directory in PATH that is closed, if there is one.
    assert_snapshot!(on_stderr(&world.call(["diff", &id, "--tool", "no-such-tool"]).env("PATH", "/usr/bin:/bin").run(), 1), @"
    recant: 2 paths with no content that a tool could show: see recant diff <id1~>
    /bin/sh: 1: no-such-tool: not found
    recant: no-such-tool: the tool cannot be run
            nothing was changed
            install it, or name another: --tool NAME, or diff.tool in the settings
    ");
    assert_snapshot!(on_stderr(&world.call(["diff", &id, "--tool", "true", "--json"]).run(), 2), @r#"
    {"schema":2,"kind":"usage","message":"a tool shows no JSON","path":null,"state":null,"remedy":"recant diff --json shows the changes"}
    "#);
    let said = world.call(["--far", "::-H web1", "diff", &id, "--tool", "true"]).run().with(2);
    assert!(said.stderr().ends_with("\n        recant -H web1 diff prints the patch\n"), "{said}");
    assert_eq!(left(&world), 0);
}

#[test]
fn a_signal_ends_the_tool_and_removes_the_copies() {
    let (world, id) = world();
    for (signal, status) in [(rustix::process::Signal::TERM, 143), (rustix::process::Signal::HUP, 129)] {
        let call = world.call(["diff", &id, "--tool", "echo $$ > \"$WORLD/pid\"; exec sleep 60; :"]).env("WORLD", world.root());
        let pid_file = world.root().join("pid");
        // recant itself, not the shell that sets the umask.
        let mut child = call.command().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let start = Instant::now();
        let is_there = || std::fs::read_to_string(&pid_file).is_ok_and(|pid| pid.ends_with('\n'));
        while !is_there() {
            assert!(start.elapsed() < Duration::from_secs(20), "the tool was not started");
            std::thread::sleep(Duration::from_millis(10));
        }
        let tool = world.read(&pid_file);
        assert_eq!(left(&world), 1);
        let pid = rustix::process::Pid::from_raw(child.id().try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(status));
        assert!(start.elapsed() < Duration::from_secs(40));
        assert_eq!(left(&world), 0, "{signal:?}");
        assert!(!std::path::Path::new("/proc").join(tool.trim()).exists(), "the tool goes on");
        world.remove(&pid_file);
    }
}

#[test]
fn differences_have_a_pager_of_their_own_and_else_that_of_all() {
    let (world, id) = world();
    if world.program("script", ["-V"]).command().output().is_err() {
        return skip("script makes the terminal");
    }
    let first = |words: &str| {
        let command = format!("{} --color never {words}", common::recant());
        let said = world.program("script", ["-qec", &command, "/dev/null"]).env("TERM", "dumb").run().ok();
        said.stdout().split(':').next().unwrap().to_owned()
    };
    let of_diff =
        [format!("diff {id}"), format!("diff {id} --stat"), format!("diff {id} --name-only"), format!("diff {id} --conflicts")];
    world.write("changed", "by hand\n").config("pager = 'sed s/^/all:/'\n");
    for words in &of_diff {
        assert_eq!(first(words), "all", "{words}");
    }
    world.config("pager = 'sed s/^/all:/'\n[diff]\npager = 'sed s/^/own:/'\n");
    world.recant("snapshot create").ok();
    world.write("changed", "by hand again\n");
    for words in of_diff.iter().map(String::as_str).chain(["snapshot diff last"]) {
        assert_eq!(first(words), "own", "{words}");
    }
    assert_eq!(first("list"), "all");
    world.config("pager = 'sed s/^/all:/'\n[diff]\npager = ''\n");
    assert!(first(&of_diff[0]).starts_with("# "), "an empty one is none");
    let rows = |key: &str| {
        let rows = world.recant("config --json").ok().rows();
        let row = rows.iter().find(|row| row["key"] == key).unwrap().clone();
        (row["value"].clone(), row["from"].clone())
    };
    world.config("pager = 'less'\n");
    assert_eq!(rows("diff.pager"), ("less".into(), "file".into()));
}
