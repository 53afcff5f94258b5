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
fn a_tool_gets_copies_of_what_was_and_what_is_and_they_are_gone_afterwards() {
    let (world, id) = world();
    let said = listed(&world, &id, &[]).ok();
    assert_snapshot!(said, @r#"
    status 0
    --- stdout
    -r-------- old/world/tree/changed -> 
    -r-------- old/world/tree/gone -> 
    -r-------- old/world/tree/tool -> 
    -rw------- new/world/tree/changed -> 
    -rw------- new/world/tree/sub dir/made -> 
    -rwx------ new/world/tree/tool -> 
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
fn what_a_tool_does_to_its_copies_otherwise_reaches_neither_the_store_nor_the_tree() {
    let (world, id) = world();
    let (tree, session) = (world.manifest(), common::manifest(&world.session(&id)));
    let wild = r#"cd "$NEW/.." && chmod -R u+w . && find . -type f -exec sh -c 'echo x > "$1"' sh {} \; ; find . -type f -delete
                  ln -s "$WORLD/tree" into; mkdir -p deep/er; chmod 0 deep; exit 3"#;
    let said = world.call(["diff", &id, "--tool", wild]).env("WORLD", world.root()).run().ok();
    assert!(said.stderr().contains("3 files that the tool removed: held as before"), "{said}");
    tree.assert_same(&world.manifest(), "the tree");
    session.assert_same(&common::manifest(&world.session(&id)), "the store");
    assert_eq!(left(&world), 0);
}

/// A session `w` that changed `conf` in its only step, and its world; a tool writes to `$HELD` and `$WAS`, its copies.
fn held() -> Option<(World, &'static str)> {
    let mut world = can_run().then(World::new)?;
    let temporary = world.root().join("temporary");
    world.mkdir(&temporary);
    world.set("TMPDIR", &temporary);
    world.write("conf", "old\n").write("gone", "bye\n");
    world.call(["run", "-q", "-n", "w", "--", "sh", "-c", "echo new > conf; rm gone; ln -s conf also"]).run().ok();
    Some((world, "HELD=\"$NEW$PWD/conf\" WAS=\"$OLD$PWD/conf\"; "))
}

#[test]
fn what_a_tool_writes_to_the_held_side_is_a_step_and_the_original_stays() {
    let Some((world, names)) = held() else { return skip("what a tool writes: recant run does not work here") };
    let tree = world.manifest();
    let tool =
        |words: &[&str], script: &str| world.call([&["diff"], words, &["--tool", &format!("{names}{script}")]].concat()).run();
    let said = tool(&["w"], "printf 'by hand\\n' >> \"$HELD\"; chmod u+w \"$WAS\"; echo wrong > \"$WAS\"").ok();
    assert!(said.stderr().ends_with("holds the edited conf\n"), "{said}");
    assert_eq!(world.recant("cat w conf").ok().stdout(), "new\nby hand\n");
    tree.assert_same(&world.manifest(), "the tree");
    // An editor may put another file in its place.
    let said = tool(&["w", "conf"], "echo other > \"$HELD.new\"; mv \"$HELD.new\" \"$HELD\"").ok();
    assert!(said.stderr().ends_with("holds the edited conf\n"), "{said}");
    assert_eq!(world.recant("cat w conf").ok().stdout(), "other\n");
    assert_eq!(world.recant("steps w --json").ok().json()["head"], 3);
    let log = world.recant("log w --json").ok().json();
    assert_eq!((&log["entries"][0]["verb"], &log["entries"][0]["paths"]), (&"edit".into(), &1.into()), "{log}");
    world.call(["await", "w", "--for", "1s"]).env("CLAUDECODE", "1").run().with(6);
    world.recant("rewind w 2").ok();
    // The edit is no decision, but told with one.
    let said = world.call(["await", "w"]).env("CLAUDECODE", "1").run().ok();
    assert!(said.stdout().contains("session w had 1 file edited by a person\nsession w was rewound to step 2"), "{said}");
    assert_eq!(world.recant("cat w conf").ok().stdout(), "new\nby hand\n");
    // Nothing is written where nothing is: no step.
    tool(&["w"], "touch \"$HELD\"").ok();
    assert_eq!(world.recant("steps w --json").ok().json()["head"], 2);
    assert_eq!(left(&world), 0);
}

#[test]
fn what_a_tool_makes_beside_its_copies_is_kept_and_named() {
    let Some((world, names)) = held() else { return skip("what a tool writes: recant run does not work here") };
    let tool = |script: &str| world.call(["diff", "w", "--tool", &format!("{names}{script}")]).run().ok().stderr();
    let said = tool("cp \"$HELD\" \"$HELD~\"; cp \"$HELD\" \"$HELD.orig\"; echo mine >> \"$HELD\"");
    assert!(said.ends_with("holds the edited conf\n") && !said.contains("made"), "{said}");
    assert_eq!(left(&world), 0, "copies that an editor leaves");
    let said = tool("echo mine > \"$(dirname \"$HELD\")/notes\"");
    let kept =
        said.split("1 file that the tool made: in no session, but kept in ").nth(1).unwrap_or_else(|| panic!("{said}")).trim();
    assert_eq!(world.read(format!("{kept}{}", world.path("notes").display())), "mine\n");
}

#[test]
fn a_tool_may_not_write_to_sides_that_are_no_session_as_it_is_held() {
    let Some((world, names)) = held() else { return skip("what a tool writes: recant run does not work here") };
    let writes = format!("{names}stat -c %a \"$HELD\"; chmod u+w \"$HELD\"; echo wrong > \"$HELD\"");
    let first = world.recant("cat w conf").ok().stdout();
    world.call(["run", "-q", "--session", "w", "--", "sh", "-c", "echo more > second"]).run().ok();
    for words in ["diff w --since 0", "diff w --step 1"] {
        let said = world.call(words.split(' ').chain(["--tool", &writes])).run().ok();
        assert_eq!(said.stdout(), "400\n", "{words}");
        assert_eq!(world.recant("cat w conf").ok().stdout(), first, "{words}");
    }
    world.recant("commit w -y").ok();
    let tree = world.manifest();
    let said = world.call(["diff", "w", "--tool", &writes]).run().ok();
    assert_eq!(said.stdout(), "400\n", "it is committed");
    tree.assert_same(&world.manifest(), "it is committed");
    assert_eq!(left(&world), 0);
}

#[test]
fn what_a_tool_wrote_is_kept_where_the_session_does_not_take_it() {
    for (n, (line, why)) in [
        ("run -q --session w -- sh -c 'echo theirs > conf'", "the edit is not held: the session changed meanwhile"),
        ("discard -y w", ""),
        ("commit -y w", ""),
        ("rewind w 0", "the edit is not held: the session changed meanwhile"),
    ]
    .into_iter()
    .enumerate()
    {
        let Some((world, names)) = held() else { return skip("what a tool writes: recant run does not work here") };
        let script = format!("{names}echo mine >> \"$HELD\"; {} {line}", common::recant());
        let said = world.call(["diff", "w", "--tool", &script]).run().with(1).stderr();
        assert!(said.contains(why), "{said}");
        let kept = said.split("what was written is kept: ").nth(1).unwrap_or_else(|| panic!("{line}: {said}")).trim();
        let kept = format!("{kept}{}", world.path("conf").display());
        assert_eq!(world.read(&kept), "new\nmine\n");
        if n == 0 {
            assert_eq!(world.recant("cat w conf").ok().stdout(), "theirs\n");
        }
        assert_eq!(left(&world), 1);
    }
}

#[test]
fn what_a_tool_wrote_is_kept_where_a_service_began_meanwhile() {
    let Some((world, names)) = held() else { return skip("what a tool writes: recant run does not work here") };
    let serve = "run -q --session w --serve web -- sh -c 'while :; do sleep 0.05; done' > /dev/null 2>&1";
    let script = format!("{names}echo mine >> \"$HELD\"; {} {serve}", common::recant());
    let said = world.call(["diff", "w", "--tool", &script]).env("RECANT_STOP_AFTER", "1").run();
    world.call(["discard", "w", "--now", "-y"]).env("RECANT_STOP_AFTER", "1").run().ok();
    let said = said.with(6).stderr();
    let kept = said.split("what was written is kept: ").nth(1).unwrap_or_else(|| panic!("{said}")).trim();
    assert_eq!(world.read(format!("{kept}{}", world.path("conf").display())), "new\nmine\n");
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
    -r-------- old/world/tree/dir/file -> 
    -rw------- new/world/tree/other -> 
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
    program(
        &mut world,
        "vimdiff",
        r#"[ "$1" != -R ] || { echo "$1" >> "$WORLD/seen"; shift; }
                  echo "$(cat "$1") | $(cat "$2")" >> "$WORLD/seen"; ! grep -qs bye "$1" || exit 1"#,
    );
    let said = world.call(["diff", &id, "--tool", "vimdiff"]).env("WORLD", world.root()).run().ok();
    assert_eq!(world.read(world.root().join("seen")), "old | new\nbye | \n");
    let left_out = format!("recant: 3 paths with no content that a tool could show: see recant diff {}\n", &id[16..]);
    assert_eq!((said.stdout(), said.stderr()), (String::new(), left_out));
    // Where nothing may be written, it is told so.
    world.recant("snapshot create").ok();
    world.remove(world.root().join("seen")).write("changed", "by hand\n");
    world.call(["snapshot", "diff", "last", "--tool", "vimdiff"]).env("WORLD", world.root()).run().ok();
    assert_eq!(world.read(world.root().join("seen")), "-R\nold | by hand\n");
    assert_eq!(left(&world), 0);
}

#[test]
fn the_settings_name_the_tool_and_the_call_goes_first() {
    let (world, id) = world();
    assert_snapshot!(on_stderr(&world.call(["diff", &id, "--tool"]).run(), 2), @"
    recant: no tool is named, and diff.tool is not set
            recant diff --tool meld; recant config --help explains the setting
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
    let said = world.call(["--far", ":::-H web1", "diff", &id, "--tool", "true"]).run().with(2);
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
