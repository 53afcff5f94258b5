//! Every kind of object, with all that it has, goes onto the tree and off it exactly: pairs of kinds, modes, owners, times,
//! xattrs, ACLs, hard links, names, depth.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::common::{self, Manifest, World, elsewhere, is_root, name};
use crate::{old_times, round_trip, step_of, whole};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Absent,
    File,
    Empty,
    Full,
    Symlink,
    Fifo,
}

use Kind::*;

const KINDS: [Kind; 6] = [Absent, File, Empty, Full, Symlink, Fifo];

fn pairs() -> impl Iterator<Item = (Kind, Kind, String)> {
    KINDS.into_iter().flat_map(|from| KINDS.map(|to| (from, to, format!("{from:?}-{to:?}/it"))))
}

fn make(world: &World, path: &str, kind: Kind) {
    world.mkdir(Path::new(path).parent().expect("a directory"));
    match kind {
        Absent => {}
        File => drop(world.write(path, "old").chmod(path, 0o640)),
        Empty => drop(world.mkdir(path).chmod(path, 0o750)),
        Full => drop(world.write(format!("{path}/in"), "old in").write(format!("{path}/sub/deep"), "old deep")),
        Symlink => drop(world.symlink("/nowhere/old", path)),
        Fifo => drop(world.fifo(path).chmod(path, 0o620)),
    }
}

/// Lines that stage `to` where `from` is. What is to become a FIFO is staged as a link first.
fn lines(path: &str, from: Kind, to: Kind) -> Vec<String> {
    let lines: &[&str] = match (from, to) {
        (Absent, Absent) => &[],
        (_, Absent) => &["delete PATH"],
        (_, File) => &["write PATH new"],
        (Empty, Empty) | (Fifo, Fifo) => &["chmod 0700 PATH"],
        (_, Symlink) => &["symlink /nowhere/new PATH"],
        (_, Fifo) => &["symlink becomes-a-fifo PATH"],
        (_, Empty) => &["mkdir PATH", "chmod 0711 PATH"],
        (_, Full) => &["mkdir PATH", "chmod 0711 PATH", "write PATH/in new in", "write PATH/other/deep new deep"],
    };
    lines.iter().map(|line| line.replace("PATH", path)).collect()
}

/// Staging by hand makes no FIFO; a run does. The record is all there is of one.
fn with_fifos(world: &World, id: &str) {
    let file = world.session(id).join("changes.jsonl");
    let text = std::fs::read_to_string(&file).expect("the changes");
    let lines = text.lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).expect("a line");
        let after = &mut line["change"]["after"];
        if after["target"] == "becomes-a-fifo" {
            after["kind"] = "fifo".into();
            after["mode"] = "0604".into();
            after.as_object_mut().expect("a state").remove("target");
        }
        line.to_string() + "\n"
    });
    std::fs::write(&file, lines.collect::<String>()).expect("the changes");
}

fn shape(manifest: &Manifest, path: &str) -> Vec<String> {
    let rows = manifest.0.iter().filter(|(at, _)| at.starts_with(path.as_bytes()));
    rows.map(|(at, row)| format!("{}: {}", at.escape_ascii(), row.content)).collect()
}

fn shape_of(kind: Kind, path: &str) -> Vec<String> {
    let lines: &[&str] = match kind {
        Absent => &[],
        File => &[": file \"new\""],
        Empty => &[": directory"],
        Full => &[": directory", "/in: file \"new in\"", "/other: directory", "/other/deep: file \"new deep\""],
        Symlink => &[": link to /nowhere/new"],
        Fifo => &[": fifo"],
    };
    lines.iter().map(|line| format!("{path}{line}")).collect()
}

/// Where store and tree lie on one file system, and where they lie on two.
fn on_one_and_on_two_file_systems(test: impl Fn(&World)) {
    test(&World::new());
    let Some(store) = elsewhere() else { return };
    // The journals are looked for where World::store says: a link leads there.
    let world = World::new();
    std::os::unix::fs::symlink(store.path(), world.store()).expect("a link to the store");
    test(&world);
}

#[test]
fn every_kind_becomes_every_other_and_goes_back_exactly() {
    on_one_and_on_two_file_systems(|world| {
        for (from, _, path) in pairs() {
            make(world, &path, from);
        }
        old_times(world);
        let before = world.manifest();
        let id = world.begin();
        let all: Vec<String> = pairs().flat_map(|(from, to, path)| lines(&path, from, to)).collect();
        world.stage(&id, all.iter().map(String::as_str));
        with_fifos(world, &id);
        let after = round_trip(world, &id, &before, "all pairs of kinds at once", whole);
        for (_, to, path) in pairs() {
            assert_eq!(shape(&after, &path), shape_of(to, &path), "{path}");
        }
    });
}

#[test]
fn ten_empty_files_and_a_group_of_links_come_back_as_ten_and_one() {
    on_one_and_on_two_file_systems(|world| {
        for i in 0..10 {
            let file = format!("empty{i}");
            world.write(&file, "").chmod(&file, 0o600 + i).set_mtime(&file, 1_000_000_000, i64::from(i));
        }
        world.write("first", "").link("first", "second").link("first", "third").chmod("first", 0o444);
        world.set_mtime("first", 999_999_999, 999_999_999).set_mtime("", 1_000_000_000, 1);
        let before = world.manifest();
        let paths: Vec<String> =
            before.0.keys().filter(|path| *path != b".").map(|path| path.escape_ascii().to_string()).collect();
        for verb in ["delete PATH", "write PATH new"] {
            let id = world.begin();
            let lines: Vec<String> = paths.iter().map(|path| verb.replace("PATH", path)).collect();
            world.stage(&id, lines.iter().map(String::as_str));
            round_trip(world, &id, &before, verb, whole);
            let files = (0..10).map(|i| world.path(format!("empty{i}")).metadata().expect("a file").ino());
            let inodes: std::collections::BTreeSet<u64> = files.collect();
            assert_eq!(inodes.len(), 10, "{verb}: ten files");
            assert_eq!(world.path("first").metadata().expect("a file").nlink(), 3, "{verb}: one group");
        }
    });
}

#[test]
fn a_0600_file_is_readable_by_nobody_else_at_any_step() {
    on_one_and_on_two_file_systems(|world| {
        world.write("secret", "the secret").chmod("secret", 0o600).write("gone", "the secret").chmod("gone", 0o600);
        let id = world.begin();
        world
            .stage(&id, ["write new the secret", "write secret the secret, changed", "delete gone"])
            .stage(&id, ["chmod 0600 new"]);
        let (script, seen) = (world.root().join("look"), world.root().join("seen"));
        // The store may be a link.
        let look = format!(
            "find {}/ {}/ -type f -perm /077 -exec grep -l 'the secret' {{}} + >> {} 2>/dev/null; true\n",
            world.tree().display(),
            world.store().display(),
            seen.display()
        );
        std::fs::write(&script, look).expect("a script");
        for verb in ["commit", "rollback", "redo"] {
            let log = world.root().join("log");
            world.call([verb, &id, "--dry-run"]).run().ok();
            // One run with the look before every step that there could be.
            let orders: Vec<String> = (1..200).map(|n| format!("run:{n}:sh {}", script.display())).collect();
            let orders = format!("log:{};{}", log.display(), orders.join(";"));
            world.call([verb, &id]).env("RECANT_STEPS", orders).run().ok();
            let steps = std::fs::read_to_string(&log).expect("a log").lines().count();
            assert!((10..200).contains(&steps), "{verb}: {steps} steps");
            std::fs::remove_file(&log).expect("the log");
            let found = std::fs::read_to_string(&seen).unwrap_or_default();
            assert_eq!(found, "", "{verb}: readable by others in between");
        }
    });
}

/// Whether a tool is there and did what it was asked for.
fn tool(world: &World, program: &str, args: &[&str]) -> bool {
    let which = world.program("sh", ["-c", &format!("command -v {program}")]).run();
    if which.status != 0 {
        println!("skipped: {program}: not installed");
        return false;
    }
    let said = world.program(program, args).run();
    if said.status != 0 {
        println!("skipped: {program} {args:?}: {said}");
    }
    said.status == 0
}

fn metadata(world: &World) {
    world.write("xattr", "x").write("acl", "x").write("suid", "x").write("sticky/in", "x").write("default/in", "x");
    if world.set_xattr("xattr", "user.one", b"1") {
        world.set_xattr("xattr", "user.two", b"\0\xff");
    }
    tool(world, "setfacl", &["-m", "u:1:rw,g:2:r", "acl"]);
    tool(world, "setfacl", &["-d", "-m", "u:1:rwx,g:2:rx", "default"]);
    world.chmod("suid", 0o4755).chmod("sticky", 0o1777);
    if is_root("owners, capabilities and devices") {
        world.write("owned", "x").write("capable", "x");
        std::os::unix::fs::chown(world.path("owned"), Some(12), Some(34)).expect("another owner");
        world.chmod("owned", 0o6711);
        tool(world, "setcap", &["cap_net_raw+ep", "capable"]);
        tool(world, "mknod", &["device", "c", "1", "3"]);
        world.set_xattr("owned", "trusted.mark", b"t");
    }
    old_times(world);
    let before = world.manifest();
    let tops = before.0.keys().filter(|path| *path != b"." && !path.contains(&b'/'));
    let names: Vec<String> = tops.map(|path| path.escape_ascii().to_string()).collect();
    // Deleted and brought back; then, what is a file, replaced and brought back; then other bits.
    for verb in ["delete PATH", "write PATH other", "chmod 0710 PATH"] {
        let is_meant = |path: &&String| !verb.starts_with("write") || world.path(path).symlink_metadata().expect("it").is_file();
        let lines: Vec<String> = names.iter().filter(is_meant).map(|path| verb.replace("PATH", path)).collect();
        let id = world.begin();
        world.stage(&id, lines.iter().map(String::as_str));
        round_trip(world, &id, &before, verb, whole);
    }
}

#[test]
fn owners_modes_times_xattrs_acls_and_capabilities_come_back() {
    on_one_and_on_two_file_systems(metadata);
}

/// Between two system calls a file has its new owner and not its new mode, or the other way round: nobody is to have rights then that he
/// has neither before nor after.
#[test]
fn while_its_owner_changes_a_file_lets_nobody_do_more_than_before_or_after() {
    if !common::is_root("another owner") || !common::can_run() {
        return;
    }
    let mode = |world: &World| world.path("f").metadata().expect("a file").mode() & 0o7777;
    for (old, new, between) in [(0o666, 0o640, 0o640), (0o4755, 0o2750, 0o750), (0o640, 0o666, 0o640), (0o4755, 0o4755, 0o4755)] {
        let world = World::new();
        world.write("f", "as it is").chmod("f", old);
        let script = format!("chown 12:34 f; chmod {new:o} f");
        let said = world.call(["run", "--", "sh", "-c", &script]).run().ok();
        assert_eq!(mode(&world), old, "{said}");
        let id = world.recant("show --json").ok().json()["session"]["id"].as_str().expect("an id").to_owned();
        for (verb, mode_then) in [("commit", new), ("rollback", old)] {
            world.recant(&format!("{verb} {id}")).ok();
            assert_eq!(mode(&world), mode_then);
        }
        let owner = step_of(|| world.call(["redo", &id]), &["fchownat "]);
        world.recant(&format!("rollback {id}")).ok();
        let script = format!("stat -c %a {} >> {}", world.path("f").display(), world.path("seen").display());
        world.call(["redo", &id]).env("RECANT_STEPS", format!("run:{owner}:{script}")).run().ok();
        assert_eq!(world.read("seen"), format!("{between:o}\n"), "{old:o} to {new:o}");
    }
}

/// chmod(2) changes the mask of an ACL, and so does what stands for it.
#[test]
fn a_mode_that_is_staged_for_a_file_with_an_acl_is_set_as_chmod_sets_it() {
    let world = World::new();
    world.write("bare", "x").write("staged", "x");
    if !["bare", "staged"].iter().all(|name| tool(&world, "setfacl", &["-m", "u:1:rw,g:2:r", name])) {
        return;
    }
    old_times(&world);
    let before = world.manifest();
    let id = world.begin();
    world.recant(&format!("session chmod {id} 0710 staged")).ok();
    world.recant(&format!("commit {id}")).ok();
    world.chmod("bare", 0o710);
    let after = world.manifest();
    let (bare, staged) = (&after.0[&b"bare"[..]], &after.0[&b"staged"[..]]);
    assert_eq!((staged.mode, &staged.xattrs), (bare.mode, &bare.xattrs));
    assert_eq!(staged.mode & 0o777, 0o710);
    world.recant(&format!("rollback {id}")).ok();
    world.program("setfacl", ["-m", "u:1:rw,g:2:r", "bare"]).cwd(world.tree()).run().ok();
    world.chmod("bare", 0o664);
    before.assert_same(&world.manifest(), "the rollback");
}

#[test]
fn a_directory_with_a_default_acl_gives_it_to_what_is_staged_below_it_and_only_then() {
    let world = World::new();
    world.mkdir("default");
    if !tool(&world, "setfacl", &["-d", "-m", "u:1:rwx,g:2:rx", "default"]) {
        return;
    }
    world.write("default/made", "by the kernel");
    let id = world.begin();
    world.stage_write(&id, "default/staged", "by recant");
    world.recant(&format!("commit {id}")).ok();
    let manifest = world.manifest();
    let row = |path: &str| {
        let row = &manifest.0[path.as_bytes()];
        (row.mode, row.owner, row.xattrs.clone())
    };
    assert_eq!(row("default/staged"), row("default/made"));
}

#[test]
fn awkward_names_go_there_and_back() {
    let world = World::new();
    let long = [b'x'; 255];
    let names: [&[u8]; 12] = [
        b"\xff\xfe not utf-8",
        b"new\nline",
        b"-leading-dash",
        b"--force",
        b" ",
        b"trailing ",
        b"\x01",
        b"tab\t\"quote\" \\back",
        &long,
        b".git",
        b".recant-not-ours",
        b"last",
    ];
    for path in names {
        world.write(name(path), "old");
        world.write(Path::new("deep").join(name(path)).join(name(path)), "old");
    }
    old_times(&world);
    let before = world.manifest();
    let id = world.begin();
    let session = |words: &[&str], path: PathBuf| {
        let args = [&["session"], words, &[&id, "--"]].concat();
        world.call(args.into_iter().map(PathBuf::from).chain([path])).stdin("new").run().ok();
    };
    for path in names.map(name) {
        session(&["delete", "-r"], Path::new("deep").join(&path));
        session(&["write", "-p"], Path::new("made").join(&path));
        session(&["write"], path.into());
    }
    world.recant(&format!("commit {id}")).ok();
    assert!(!world.recant(&format!("show {id}")).ok().out.contains(&1), "control bytes are escaped");
    for verb in ["rollback", "redo", "rollback"] {
        let said = world.recant(&format!("{verb} {id}")).ok();
        assert!(!said.out.contains(&1), "{verb}: control bytes are escaped");
    }
    before.assert_same(&world.manifest(), "awkward names");
}

#[test]
fn the_time_of_a_directory_comes_back_whatever_parts_it_was_changed_in() {
    const CHANGED: [&str; 3] = ["write k/y new", "chmod 0700 k", "delete k/4"];
    let scene = || {
        let world = World::new();
        world.write("d/f", "1").write("d/g", "1").write("k/4", "4").chmod("k", 0o755).write("t/in", "1");
        for (s, name) in (1_000_000_000..).zip(["d", "k", "t", ""]) {
            world.set_mtime(name, s, 7);
        }
        let before = world.manifest();
        (world, before)
    };
    let go = |world: &World, id: &str, verbs: &[&str]| {
        for words in verbs {
            match words.split_once(' ') {
                Some(("commit", path)) => assert_eq!(world.commit_half(id, &[path], false), 0),
                Some((verb, path)) => drop(world.recant(&format!("{verb} {id} {path}")).ok()),
                None => drop(world.recant(&format!("{words} {id}")).ok()),
            }
        }
    };
    // A directory that goes itself, after what lay in it.
    let (world, before) = scene();
    let id = world.begin();
    world.recant(&format!("session delete -r {id} d")).ok();
    go(&world, &id, &["commit d/f", "commit", "rollback"]);
    before.assert_same(&world.manifest(), "a directory that went after its file");
    go(&world, &id, &["redo d/g", "redo", "rollback d/f", "rollback"]);
    before.assert_same(&world.manifest(), "and came back before it");

    // One whose metadata is a change.
    let parts: [&[&str]; 3] = [
        &["commit k", "rollback k/y", "rollback k"],
        &["commit k/y", "commit", "rollback k/y", "rollback"],
        &["commit", "rollback k/y", "redo k/y", "rollback"],
    ];
    for verbs in parts {
        let (world, before) = scene();
        let id = world.begin();
        world.stage(&id, CHANGED);
        go(&world, &id, verbs);
        before.assert_same(&world.manifest(), &verbs.join(", "));
    }

    // Its time is no part of that change: it stays, whatever comes and goes in it.
    let (world, before) = scene();
    let id = world.begin();
    world.stage(&id, CHANGED);
    for verb in ["commit", "rollback k", "redo k/y", "rollback k/y", "redo k/4", "redo", "rollback k/y", "rollback"] {
        go(&world, &id, &[verb]);
        assert_eq!(world.manifest().0[&b"k"[..]].mtime, before.0[&b"k"[..]].mtime, "{verb}");
    }

    // One of which the time alone is changed.
    if !common::can_run() {
        return common::skip("the time of a directory alone: no run here");
    }
    // Parts that are sessions of their own: exact the latest first.
    let (world, before) = scene();
    let id = world.recant("session new -n parts").id();
    world.recant(&format!("session delete -r {id} d")).ok();
    world.stage(&id, CHANGED);
    for path in ["d/f", "k/y", "k", ""] {
        world.recant(&format!("commit parts {path}")).ok();
    }
    for _ in 0..4 {
        world.recant("rollback parts").ok();
    }
    before.assert_same(&world.manifest(), "part by part, the latest first");

    let (world, before) = scene();
    world.call(["run", "--", "sh", "-c", "touch -d @5 t; echo y > k/y; echo y > d/y"]).run().ok();
    go(&world, "last", &["commit"]);
    let after = world.manifest();
    assert_eq!(after.0[&b"t"[..]].mtime.0, 5);
    go(&world, "last", &["rollback k/y", "rollback d/y"]);
    before.assert_same(&world.manifest(), "path by path until all was out");
    go(&world, "last", &["redo k/y", "redo d/y"]);
    assert_eq!(world.manifest().0[&b"t"[..]].mtime.0, 5, "path by path until all was in");
}
