//! Every kind of object, with all that it has, goes onto the tree and off it exactly: pairs of kinds, modes, owners, times,
//! xattrs, ACLs, hard links, names, depth.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::common::{self, Manifest, World, is_root, name};

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

/// Stages `to` where `from` is. What is to become a FIFO is staged as a link first.
fn stage(world: &World, id: &str, path: &str, from: Kind, to: Kind) {
    let say = |words: &str| drop(world.recant(&format!("session {}", words.replace("ID", id).replace("PATH", path))).ok());
    match (from, to) {
        (Absent, Absent) => {}
        (_, Absent) => say("delete ID PATH -r"),
        (_, File) => drop(world.call(["session", "write", "-r", id, path]).stdin("new").run().ok()),
        (Empty, Empty) | (Fifo, Fifo) => say("chmod ID 0700 PATH"),
        (_, Symlink) => say("symlink ID -r /nowhere/new PATH"),
        (_, Fifo) => say("symlink ID -r becomes-a-fifo PATH"),
        (_, Empty | Full) => {
            if from != Absent {
                say("delete ID PATH -r");
            }
            say("mkdir ID PATH --mode 0711");
            if to == Full {
                world.stage_write(id, format!("{path}/in"), "new in").stage_write(id, format!("{path}/other/deep"), "new deep");
            }
        }
    }
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

/// Commit, rollback, redo and rollback give the states before and after, each time exactly.
fn round_trip(world: &World, id: &str, before: &Manifest, what: &str) -> Manifest {
    world.recant(&format!("commit {id}")).ok();
    let after = world.manifest();
    for (verb, want) in [("rollback", before), ("redo", &after), ("rollback", before)] {
        world.recant(&format!("{verb} {id}")).ok();
        want.assert_same(&world.manifest(), &format!("{what}: {verb}"));
        world.assert_tidy(&format!("{what}: {verb}"));
    }
    after
}

fn old_times(world: &World) {
    let rows = world.manifest();
    for (i, path) in rows.0.keys().rev().enumerate() {
        world.set_mtime(name(path), 1_000_000_000 + i as i64, 123_456_789);
    }
}

#[test]
fn every_kind_becomes_every_other_and_goes_back_exactly() {
    for (from, to, path) in pairs().filter(|(from, to, _)| (*from, *to) != (Absent, Absent)) {
        let world = World::new();
        make(&world, &path, from);
        old_times(&world);
        let before = world.manifest();
        let id = world.begin();
        stage(&world, &id, &path, from, to);
        with_fifos(&world, &id);
        let what = format!("{from:?} to {to:?}");
        let after = round_trip(&world, &id, &before, &what);
        assert_eq!(shape(&after, &path), shape_of(to, &path), "{what}");
    }
}

fn all_at_once(world: &World) {
    for (from, _, path) in pairs() {
        make(world, &path, from);
    }
    old_times(world);
    let before = world.manifest();
    let id = world.begin();
    for (from, to, path) in pairs() {
        stage(world, &id, &path, from, to);
    }
    with_fifos(world, &id);
    let after = round_trip(world, &id, &before, "all pairs of kinds at once");
    for (_, to, path) in pairs() {
        assert_eq!(shape(&after, &path), shape_of(to, &path), "{path}");
    }
}

#[test]
fn all_pairs_of_kinds_go_there_and_back_in_one_session() {
    all_at_once(&World::new());
}

/// A world whose store lies on another file system than its tree.
fn on_two_file_systems() -> Option<(World, tempfile::TempDir)> {
    let shm = Path::new("/dev/shm");
    let dev = |path: &Path| path.metadata().map(|meta| meta.dev()).ok();
    if !shm.is_dir() || dev(shm) == dev(&std::env::temp_dir()) {
        println!("skipped: store and tree on two file systems: /dev/shm is none of its own");
        return None;
    }
    let store = tempfile::tempdir_in(shm).expect("a directory");
    // The journals are looked for where World::store says: a link leads there.
    let world = World::new();
    std::os::unix::fs::symlink(store.path(), world.store()).expect("a link to the store");
    Some((world, store))
}

#[test]
fn all_pairs_of_kinds_go_there_and_back_between_two_file_systems() {
    if let Some((world, _store)) = on_two_file_systems() {
        all_at_once(&world);
    }
}

fn ten_empty_files_and_a_group(world: &World) {
    for i in 0..10 {
        let file = format!("empty{i}");
        world.write(&file, "").chmod(&file, 0o600 + i).set_mtime(&file, 1_000_000_000, i64::from(i));
    }
    world.write("first", "").link("first", "second").link("first", "third").chmod("first", 0o444);
    world.set_mtime("first", 999_999_999, 999_999_999).set_mtime("", 1_000_000_000, 1);
    let before = world.manifest();
    for verb in ["delete", "write"] {
        let id = world.begin();
        for path in before.0.keys().filter(|path| *path != b".") {
            let args = ["session", verb, &id].map(Path::new).into_iter();
            world.call(args.chain([Path::new(&name(path))])).stdin("new").run().ok();
        }
        round_trip(world, &id, &before, verb);
        let files = (0..10).map(|i| world.path(format!("empty{i}")).metadata().expect("a file").ino());
        let inodes: std::collections::BTreeSet<u64> = files.collect();
        assert_eq!(inodes.len(), 10, "{verb}: ten files");
        assert_eq!(world.path("first").metadata().expect("a file").nlink(), 3, "{verb}: one group");
    }
}

#[test]
fn ten_empty_files_and_a_group_of_links_come_back_as_ten_and_one() {
    ten_empty_files_and_a_group(&World::new());
}

#[test]
fn so_they_do_between_two_file_systems() {
    if let Some((world, _store)) = on_two_file_systems() {
        ten_empty_files_and_a_group(&world);
    }
}

#[test]
fn an_existing_empty_file_is_restored_as_an_empty_file() {
    let world = World::new();
    world.write("empty", "").chmod("empty", 0o604);
    old_times(&world);
    let before = world.manifest();
    let id = world.begin();
    world.stage_write(&id, "empty", "filled");
    round_trip(&world, &id, &before, "an empty file");
    assert_eq!(world.read("empty"), "");
}

fn never_readable(world: &World, places: &[&Path]) {
    world.write("secret", "the secret").chmod("secret", 0o600).write("gone", "the secret").chmod("gone", 0o600);
    let id = world.begin();
    world.call(["session", "write", "--mode", "0600", &id, "new"]).stdin("the secret").run().ok();
    world.call(["session", "write", &id, "secret"]).stdin("the secret, changed").run().ok();
    world.recant(&format!("session delete {id} gone")).ok();
    let shown: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    let seen = world.root().join("seen");
    let script = world.root().join("look");
    let look = format!(
        "find {} -type f -perm /077 -exec grep -l 'the secret' {{}} + >> {} 2>/dev/null; true\n",
        shown.join(" "),
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
}

#[test]
fn a_0600_file_is_readable_by_nobody_else_at_any_step() {
    let world = World::new();
    never_readable(&world, &[&world.tree(), &world.store()]);
}

#[test]
fn a_0600_file_is_readable_by_nobody_else_at_any_step_between_two_file_systems() {
    if let Some((world, store)) = on_two_file_systems() {
        never_readable(&world, &[&world.tree(), store.path()]);
    }
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
    let names: Vec<_> = before.0.keys().filter(|path| *path != b"." && !path.contains(&b'/')).map(|path| name(path)).collect();
    // Deleted and brought back; then, what is a file, replaced and brought back; then other bits.
    for verb in ["delete", "write", "chmod"] {
        let id = world.begin();
        for path in &names {
            let kind = world.path(path).symlink_metadata().expect("it").file_type();
            match verb {
                "delete" => {
                    drop(world.call(["session", "delete", "-r", &id].map(Path::new).iter().chain(&[Path::new(path)])).run().ok())
                }
                "write" if kind.is_file() => drop(world.stage_write(&id, path, "other")),
                "chmod" => {
                    drop(world.call(["session", "chmod", &id, "0710"].map(Path::new).iter().chain(&[Path::new(path)])).run().ok())
                }
                _ => {}
            }
        }
        round_trip(world, &id, &before, verb);
    }
}

#[test]
fn owners_modes_times_xattrs_acls_and_capabilities_come_back() {
    metadata(&World::new());
}

#[test]
fn owners_modes_times_xattrs_acls_and_capabilities_come_back_between_two_file_systems() {
    if let Some((world, _store)) = on_two_file_systems() {
        metadata(&world);
    }
}

/// Between two system calls a file has its new owner and not its new mode, or the other way round: nobody is to have rights then that he
/// has neither before nor after.
#[test]
fn while_its_owner_changes_a_file_lets_nobody_do_more_than_before_or_after() {
    if !common::is_root("another owner") || !common::can_run() {
        return;
    }
    let mode = |world: &World| std::os::unix::fs::MetadataExt::mode(&world.path("f").metadata().expect("a file")) & 0o7777;
    for (old, new, between) in [(0o666, 0o640, 0o640), (0o4755, 0o2750, 0o750), (0o640, 0o666, 0o640), (0o4755, 0o4755, 0o4755)] {
        let world = World::new();
        world.write("f", "as it is").chmod("f", old);
        let script = format!("chown 12:34 f; chmod {new:o} f");
        let said = world.call(["run", "--", "sh", "-c", &script]).run().ok();
        assert_eq!(mode(&world), old, "{said}");
        let id = world.recant("list --json").ok().json()["sessions"][0]["id"].as_str().expect("an id").to_owned();
        world.recant(&format!("commit {id}")).ok();
        assert_eq!(mode(&world), new);
        world.recant(&format!("rollback {id}")).ok();
        assert_eq!(mode(&world), old);
        let script = format!("stat -c %a {} >> {}", world.path("f").display(), world.path("seen").display());
        let log = world.root().join("steps");
        world.call(["redo", &id]).env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
        world.recant(&format!("rollback {id}")).ok();
        let steps = std::fs::read_to_string(log).expect("the steps");
        let owner = 1 + steps.lines().position(|step| step.contains("fchownat ")).expect("another owner");
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
    for path in names {
        let args = ["session", "write", &id, "--"].map(PathBuf::from).into_iter().chain([PathBuf::from(name(path))]);
        world.call(args).stdin("new").run().ok();
        let below = Path::new("deep").join(name(path));
        world.call(["session", "delete", "-r", &id, "--"].map(PathBuf::from).into_iter().chain([below])).run().ok();
        let created = Path::new("made").join(name(path));
        let args = ["session", "write", "-p", &id, "--"].map(PathBuf::from).into_iter().chain([created]);
        world.call(args).stdin("new").run().ok();
    }
    world.recant(&format!("commit {id}")).ok();
    assert!(!world.recant(&format!("show {id}")).ok().out.contains(&1), "control bytes are escaped");
    for verb in ["rollback", "redo", "rollback"] {
        let said = world.recant(&format!("{verb} {id}")).ok();
        assert!(!said.out.contains(&1), "{verb}: control bytes are escaped");
    }
    before.assert_same(&world.manifest(), "awkward names");
}

/// Goes down `levels` directories of the same name, one call each: no single path is longer than the kernel takes.
fn go_down(world: &World, part: &str, levels: usize, make: bool) -> rustix::fd::OwnedFd {
    use rustix::fs::{Mode, OFlags};
    let open = |at: rustix::fd::BorrowedFd<'_>, name: &Path| {
        rustix::fs::openat(at, name, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).expect("the directory below")
    };
    let mut at = open(rustix::fs::CWD, &world.tree());
    for _ in 0..levels {
        if make {
            rustix::fs::mkdirat(&at, part, Mode::from_raw_mode(0o755)).expect("a new directory");
        }
        at = open(std::os::fd::AsFd::as_fd(&at), Path::new(part));
    }
    at
}

#[test]
fn a_path_longer_than_path_max_is_handled_or_refused_by_name() {
    use rustix::fs::{Mode, OFlags};
    let (world, part, levels) = (World::new(), "d".repeat(200), 25);
    let file = |flags| {
        let directory = go_down(&world, &part, levels, false);
        std::fs::File::from(rustix::fs::openat(directory, "file", flags, Mode::from_raw_mode(0o644)).expect("the deep file"))
    };
    drop(go_down(&world, &part, levels, true));
    std::io::Write::write_all(&mut file(OFlags::WRONLY | OFlags::CREATE), b"deep").expect("its content");
    let content = || std::io::read_to_string(file(OFlags::RDONLY)).expect("its content");
    let deep = std::iter::repeat_n(&*part, levels).collect::<PathBuf>().join("file");
    let id = world.begin();
    let args = ["session", "write", &id].map(PathBuf::from).into_iter().chain([deep]);
    let said = world.call(args).stdin("new").run();
    if said.status == 0 {
        world.recant(&format!("commit {id}")).ok();
        assert_eq!(content(), "new");
        world.recant(&format!("rollback {id}")).ok();
    } else {
        assert_eq!(said.status, 1, "{said}");
        assert!(said.stderr().contains("recant: ") && said.stderr().contains("too long"), "{said}");
    }
    assert_eq!(content(), "deep", "never cut, never another file");
    // The directory as a whole.
    let id = world.begin();
    let said = world.recant(&format!("session delete {id} {part} -r"));
    if said.status == 0 {
        world.recant(&format!("commit {id}")).ok();
        assert!(!world.exists(&part));
        world.recant(&format!("rollback {id}")).ok();
    } else {
        assert_eq!(said.status, 1, "{said}");
    }
    assert_eq!(content(), "deep");
    world.program("rm", ["-rf", &part]).run().ok();
}

#[test]
fn a_users_own_directory_without_w_is_no_obstacle() {
    let root = rustix::process::geteuid().is_root();
    let world = World::new();
    world.write("closed/edited", "old").write("closed/gone", "old").write("closed/sub/in", "old").write("dark/in", "old");
    old_times(&world);
    world.chmod("closed/sub", 0o500).chmod("closed", 0o555);
    if root {
        // Whoever may not list it cannot compare it either.
        world.chmod("dark", 0o311);
    }
    let (uid, gid) = (65534, 65534);
    if root {
        let everything = world.program("chown", ["-R", "65534:65534"].map(Path::new).into_iter().chain([world.root()])).run();
        everything.ok();
        if world.call(["--version"]).user(uid, gid).cwd("/").run().status != 0 {
            println!("skipped: a user's own 0555 directory: user {uid} cannot run {}", common::recant());
            return;
        }
    }
    let call = |words: &str, input: &str| {
        let call = world.call(words.split(' ')).stdin(input);
        if root { call.user(uid, gid) } else { call }.run()
    };
    let before = world.manifest();
    let id = call("session new", "").ok().id();
    for (words, input) in [
        ("session write ID closed/edited", "new"),
        ("session write ID closed/made", "new"),
        ("session delete ID closed/gone", ""),
        ("session delete ID closed/sub -r", ""),
        ("session write ID dark/in", "new"),
    ] {
        call(&words.replace("ID", &id), input).ok();
    }
    call(&format!("commit {id}"), "").ok();
    let after = world.manifest();
    assert_eq!(after.0[&b"closed"[..]].mode, 0o555);
    assert_eq!(after.0[&b"dark"[..]].mode, before.0[&b"dark"[..]].mode);
    assert_eq!(world.read("closed/edited"), "new");
    for (verb, want) in [("rollback", &before), ("redo", &after), ("rollback", &before)] {
        call(&format!("{verb} {id}"), "").ok();
        want.assert_same(&world.manifest(), verb);
    }
    // And one that comes with the session and is closed at last.
    let id = call("session new", "").ok().id();
    call(&format!("session mkdir {id} new --mode 0500"), "").ok();
    call(&format!("session write {id} new/in"), "new").ok();
    call(&format!("commit {id}"), "").ok();
    let after = world.manifest();
    assert_eq!(after.0[&b"new"[..]].mode, 0o500);
    for (verb, want) in [("rollback", &before), ("redo", &after), ("rollback", &before)] {
        call(&format!("{verb} {id}"), "").ok();
        want.assert_same(&world.manifest(), verb);
    }
    assert_eq!(world.path("closed").as_os_str().as_bytes().last(), Some(&b'd'));
}

/// The kernel lets an owner set no `user.*` attribute on a file that he may not write to.
#[test]
fn attributes_of_a_file_that_its_owner_may_not_write_to_go_there_and_back() {
    let world = World::new();
    world.write("closed", "x");
    if !world.set_xattr("closed", "user.a", "1") {
        return common::skip("extended attributes: the file system has none");
    }
    world.chmod("closed", 0o444);
    if !common::can_run() {
        return common::skip("attributes that a command sets: recant run does not work here");
    }
    let before = world.manifest();
    let change = "chmod u+w closed; python3 -c 'import os; os.setxattr(\"closed\", \"user.a\", b\"2\")' && chmod u-w closed";
    let said = world.call(["run", "--", "sh", "-c", change]).run();
    if said.status == 127 {
        return common::skip("python3 is missing");
    }
    world.recant("commit last").ok();
    let after = world.manifest();
    assert!(!before.difference(&after).is_empty(), "{said}");
    world.recant("rollback last").ok();
    before.assert_same(&world.manifest(), "back");
    world.recant("redo last").ok();
    after.assert_same(&world.manifest(), "and forward");
}

/// The times of directories come back as they were, in whatever parts a session goes onto the tree and off it.
#[test]
fn the_time_of_a_directory_comes_back_whatever_parts_it_was_changed_in() {
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
            let (verb, path) = words.split_once(' ').unwrap_or((words, ""));
            world.recant(&format!("{verb} {id} {path}")).ok();
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
        world.stage_write(&id, "k/y", "new");
        for words in ["chmod ID 0700 k", "delete ID k/4"] {
            world.recant(&format!("session {}", words.replace("ID", &id))).ok();
        }
        go(&world, &id, verbs);
        before.assert_same(&world.manifest(), &verbs.join(", "));
    }

    // Its time is no part of that change: it stays, whatever comes and goes in it.
    let (world, before) = scene();
    let id = world.begin();
    world.stage_write(&id, "k/y", "new");
    for words in ["chmod ID 0700 k", "delete ID k/4"] {
        world.recant(&format!("session {}", words.replace("ID", &id))).ok();
    }
    for verb in ["commit", "rollback k", "redo k/y", "rollback k/y", "redo k/4", "redo", "rollback k/y", "rollback"] {
        go(&world, &id, &[verb]);
        assert_eq!(world.manifest().0[&b"k"[..]].mtime, before.0[&b"k"[..]].mtime, "{verb}");
    }

    // One of which the time alone is changed.
    if !common::can_run() {
        return common::skip("the time of a directory alone: no run here");
    }
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
