//! `snapshot restore`: what it is asked for, what prevents it, and what it says of that.

use std::fs::OpenOptions;
use std::process::Command;
use std::time::Duration;

use crate::common::{World, close, is_root, recant};
use crate::damage::HARMS;
use crate::{blob, owned, restore, series, sessions};

/// Files in snapshot 0, and others now.
fn changed() -> World {
    let world = World::new();
    world.write("f", "1").write("key.pem", "1").write("large", vec![1; 200_000]).write("d/in", "1");
    world.recant("snapshot create").ok();
    world.write("f", "22").write("key.pem", "22").write("large", vec![2; 190_000]).write("d/in", "22").write("new", "n");
    world
}

/// Makes something stand against a restore, until what it gives is dropped; `None` where it cannot be had here.
type Hinder = fn(&World) -> Option<Box<dyn FnOnce()>>;

fn open_for_writing(world: &World) -> Option<Box<dyn FnOnce()>> {
    let file = OpenOptions::new().append(true).open(world.path("f")).expect("a file");
    Some(Box::new(move || close(file)))
}

fn denied(world: &World) -> Option<Box<dyn FnOnce()>> {
    world.config("[commit]\ndeny = ['*.pem']\n");
    Some(Box::new(|| {}))
}

fn immutable(world: &World) -> Option<Box<dyn FnOnce()>> {
    let path = world.path("key.pem");
    let chattr = |how: &str| Command::new("chattr").arg(how).arg(&path).status().is_ok_and(|status| status.success());
    if !is_root("an immutable file") || !chattr("+i") {
        return None;
    }
    let path = path.clone();
    Some(Box::new(move || drop(Command::new("chattr").arg("-i").arg(path).status())))
}

/// A restore that is refused, and a dry run of it: both say the same, of the snapshot, and leave everything.
#[track_caller]
fn assert_refused(world: &World, status: i32, what: &str) {
    let before = world.manifest();
    let (dry, said) = (restore(world, "0 --dry-run"), restore(world, "0"));
    assert_eq!((dry.status, said.status), (status, status), "{what}: {dry}\n{said}");
    // The session that it was to be done by is gone.
    let told = |word| said.stderr().contains(word);
    assert!(told("cannot restore snapshot 0") || status == 5 && told("the snapshot is damaged"), "{what}: {said}");
    assert!(!said.stderr().contains("recant diff") && !said.stderr().contains("cannot commit"), "{what}: {said}");
    assert!(dry.stderr() == said.stderr() || status == 5, "{what}: {dry}\n{said}");
    before.assert_same(&world.manifest(), what);
    assert_eq!(sessions(world), 0, "{what}: no session stays");
}

#[test]
fn a_dry_run_is_refused_where_the_restore_would_be() {
    let hindrances: [(&str, i32, Hinder); 2] =
        [("a file is open for writing", 3, open_for_writing), ("a path is denied", 1, denied)];
    for (what, status, hinder) in hindrances {
        let world = changed();
        let Some(away) = hinder(&world) else {
            println!("skipped: {what}");
            continue;
        };
        assert_refused(&world, status, what);
        if status == 3 {
            restore(&world, "0 --force").ok();
            assert_eq!((world.read("f"), world.read("d/in")), ("1".into(), "1".into()));
        }
        away();
    }
    let world = changed();
    for file in [series(&world).join("0.pack"), blob(&world)] {
        let whole = std::fs::read(&file).expect("content");
        for (harm, damage) in HARMS {
            damage(&file);
            assert_refused(&world, 5, &format!("{}: {harm}", file.display()));
            let told = restore(&world, "0").stderr();
            assert!(told.contains("prune") && !told.contains("commit"), "{harm}: {told}");
            std::fs::write(&file, &whole).expect("the content again");
        }
    }
    restore(&world, "0").ok();
    assert_eq!((world.read("f"), world.bytes("large")), ("1".into(), vec![1; 200_000]));
}

#[test]
fn a_file_that_is_immutable_stays_and_the_rest_goes_back() {
    let world = changed();
    let Some(away) = immutable(&world) else { return };
    let before = world.read("key.pem");
    let (dry, said) = (restore(&world, "0 --dry-run").with(4), restore(&world, "0").with(4));
    assert_eq!(dry.stdout(), said.stdout());
    assert!(said.stdout().contains("skipped   key.pem: "), "{said}");
    assert_eq!((world.read("f"), world.read("key.pem")), ("1".into(), before));
    away();
}

/// A user writes to nobody else's directory and gives nothing away: that is found before anything is made, also by a dry run; the rest goes
/// back.
#[test]
fn what_a_user_has_no_right_to_do_stays_and_is_named() {
    if !is_root("files of another user") {
        return;
    }
    for (path, why) in [("d/in", "d: the directory is read-only for you"), ("theirs", "theirs: the new object belongs to user 0")]
    {
        let world = World::new();
        world.write("f", "1").write(path, "1");
        let as_user = owned(&world, &["f"]);
        as_user("snapshot create").ok();
        world.write("f", "22").write(path, "22");
        for (words, f) in [("snapshot restore 0 --dry-run", "22"), ("snapshot restore 0", "1")] {
            let said = as_user(words).with(4);
            assert!(said.stdout().contains(why), "{said}");
            assert_eq!((world.read("f"), world.read(path)), (f.into(), "22".into()));
        }
        let said = as_user(&format!("snapshot restore 0 {path}")).with(1);
        assert!(said.stderr().contains("cannot restore snapshot 0"), "{said}");
    }
}

#[test]
fn a_dry_run_reads_nothing_into_the_store_and_leaves_no_session() {
    let world = changed();
    // No room for any content.
    let limit = |words: &str| {
        let script = format!("ulimit -f 100; \"$0\" snapshot restore 0 {words}");
        world.program("sh", ["-c", &script, recant()]).run()
    };
    limit("--dry-run").ok();
    assert_eq!(sessions(&world), 0);
    assert_ne!(limit("").status, 0, "the limit holds");
}

#[test]
fn what_has_no_directory_any_more_is_left_with_it_where_edits_are_kept() {
    for now in ["rmdir d", "rmdir d; echo mine > d", "rmdir d; ln -s other d"] {
        let world = World::new();
        world.write("d/x", "1").write("d/deep/y", "1").write("other", "keep");
        world.recant("snapshot create").ok();
        world.remove("d/x").remove("d/deep").write("other", "step");
        world.recant("snapshot create").ok();
        world.program("sh", ["-ec", now]).cwd(world.tree()).run().ok();
        let before = world.manifest();
        let dry = restore(&world, "0 --safe --dry-run").with(4);
        before.assert_same(&world.manifest(), now);
        let said = restore(&world, "0 --safe").with(4);
        assert_eq!(dry.stdout(), said.stdout(), "{now}");
        for left in ["d: it was edited since", "d/x: its directory is gone", "d/deep/y: its directory"] {
            assert!(said.stdout().contains(left), "{now}: {said}");
        }
        assert_eq!(world.read("other"), "keep", "{now}: {said}");
        world.recant("rollback last").ok();
        before.assert_same(&world.manifest(), now);
    }
}

#[test]
fn a_named_path_that_is_not_compared_is_left_and_said() {
    let world = World::new();
    world.write("a", "1").write("x.log", "l").write("n/j", "j").write("n/deep/k", "k");
    world.recant("snapshot create --exclude n --exclude *.log").ok();
    world.write("a", "2").write("x.log", "mine").write("n/j", "mine");
    for named in ["x.log", "n/j", "n", "n/deep/k"] {
        let left = format!("{named}: left out by the rules of the snapshot");
        for words in [format!("0 {named} --dry-run"), format!("0 {named}")] {
            let said = restore(&world, &words).with(4);
            assert!(said.stdout().contains(&left) && said.stderr().contains(", 1 skipped"), "{said}");
        }
        let said = world.recant(&format!("snapshot diff 0 -- {named}")).ok();
        assert!(said.stderr().contains(&format!("{named}: not compared: left out")), "{said}");
    }
    // Beside one that is compared, and where nobody asks for them.
    let said = restore(&world, "0 a n/j").with(4);
    assert!(said.stdout().contains("restored") && said.stdout().contains("n/j: left out by the rules"), "{said}");
    let said = restore(&world, "0").ok();
    assert!(!said.stdout().contains("left out"), "{said}");
    restore(&world, "0 none").with(1);
    assert_eq!((world.read("a"), world.read("x.log"), world.read("n/j")), ("1".into(), "mine".into(), "mine".into()));
}

#[test]
fn what_lay_in_a_directory_that_is_an_unreadable_file_now_is_left_with_it() {
    if !is_root("files of another user") {
        return;
    }
    let world = World::new();
    world.write("d/x", "1").write("other", "keep");
    let as_user = owned(&world, &["other", "d", "d/x"]);
    as_user("snapshot create").ok();
    world.write("other", "step").remove("d/x");
    as_user("snapshot create").ok();
    world.remove("d").write("d", "somebody's").chmod("d", 0o600);
    for words in ["snapshot restore 0 --safe --dry-run", "snapshot restore 0 --safe", "snapshot restore 0 d/x --safe"] {
        let said = as_user(words).with(4);
        assert!(said.stdout().contains("d: it cannot be read") || said.stdout().contains("d/x: it cannot be read"), "{said}");
    }
    assert_eq!((world.read("other"), world.read("d")), ("keep".into(), "somebody's".into()));
}

/// Whatever its size, and however long ago it was changed: a young one is read in any case, to tell whether it is another one.
#[test]
fn what_differs_and_cannot_be_read_is_left_and_the_rest_comes_back() {
    if !is_root("files of another user") {
        return;
    }
    let world = World::new();
    world.write("small", "1").write("large", "1").write("other", "keep");
    let as_user = owned(&world, &["small", "large", "other"]);
    as_user("snapshot create").ok();
    world.write("small", "22").write("large", "2".repeat(1 << 20)).write("other", "step");
    world.chmod("small", 0).chmod("large", 0);
    let changed = std::fs::metadata(world.path("large")).and_then(|found| found.modified()).expect("a time");
    while changed.elapsed().is_ok_and(|age| age < Duration::from_secs(1)) {
        std::thread::sleep(Duration::from_millis(50));
    }
    for words in ["snapshot restore 0 --dry-run", "snapshot restore 0"] {
        let said = as_user(words).with(4);
        for name in ["small", "large"] {
            assert!(said.stdout().contains(&format!("{name}: it cannot be read")), "{said}");
        }
    }
    assert_eq!((world.read("other"), world.read("small")), ("keep".into(), "22".into()));
}

/// The index has its hash, from when it could be read: nothing of the file has changed since.
#[test]
fn what_can_be_read_no_more_is_left_also_where_the_index_knows_its_content() {
    if !is_root("files of another group") {
        return;
    }
    let world = World::new();
    world.write("theirs", "1").write("same", "1").write("other", "keep").link("same", "same too");
    let _as_user = owned(&world, &["other"]);
    for name in ["theirs", "same"] {
        std::os::unix::fs::chown(world.path(name), Some(0), Some(4242)).expect("another owner");
        world.chmod(name, 0o640);
    }
    let as_member = |words: &str, group| world.call(words.split_whitespace()).user(65534, group).run();
    as_member("snapshot create", 4242).ok();
    world.write("theirs", "22").write("other", "step");
    std::thread::sleep(Duration::from_millis(100));
    as_member("snapshot create", 4242).ok();
    for words in ["snapshot restore 0 --dry-run", "snapshot restore 0"] {
        let said = as_member(words, 65534).with(4);
        assert!(said.stdout().contains("theirs: it cannot be read"), "{said}");
        assert!(!said.stdout().contains(" same"), "what is the same need not be read: {said}");
    }
    assert_eq!((world.read("other"), world.read("theirs")), ("keep".into(), "22".into()));
}

#[test]
fn what_its_owner_closed_is_left_with_what_opens_it_and_named_by_its_whole_path() {
    let world = World::new();
    world.write("sub/f", "x").write("sub/.recantignore", "out\n");
    world.recant("snapshot create").ok();
    let shown = world.recant("snapshot show 0").ok().stdout();
    assert!(shown.contains(&world.path("sub/.recantignore").display().to_string()), "{shown}");
    world.chmod("sub/f", 0);
    if std::fs::File::open(world.path("sub/f")).is_ok() {
        println!("skipped: root reads what is closed");
        return;
    }
    let said = world.recant("snapshot restore 0").with(4);
    let path = world.path("sub/f");
    assert!(said.stdout().contains(&format!("chmod u+rX {} first", path.display())), "{said}");
}

#[test]
fn names_of_a_link_a_fifo_or_a_device_are_one_object_again() {
    let world = World::new();
    world.symlink("target", "l1").link("l1", "l2").link("l1", "l3").fifo("p1").link("p1", "p2").symlink("x", "alone");
    world.symlink("same", "s1").link("s1", "s2").mkdir("d").link("p1", "d/p3");
    world.write("f", "1");
    if is_root("a device") {
        let dev = rustix::fs::makedev(1, 3);
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        rustix::fs::mknodat(rustix::fs::CWD, world.path("n1"), rustix::fs::FileType::CharacterDevice, mode, dev).expect("a node");
    } else {
        world.fifo("n1");
    }
    world.link("n1", "n2");
    world.recant("snapshot create").ok();
    let before = world.manifest();
    let upset: [&dyn Fn(); 6] = [
        &|| {
            world.remove("l1").remove("l2").remove("l3").remove("d").remove("p1").remove("p2").remove("n1").remove("n2");
        },
        &|| {
            world.remove("l2").remove("p2").remove("n2").symlink("target", "l2").fifo("p2");
        },
        &|| {
            world.remove("l1").remove("p1").write("l1", "a file").write("p1", "a file");
        },
        &|| {
            world.remove("l1").remove("l2").remove("l3").symlink("other", "l1").link("l1", "l2").link("l1", "l3");
        },
        &|| {
            world.remove("alone").link("l1", "alone").link("p1", "new");
        },
        &|| {
            world.set_mtime("l1", 1_000_000_000, 0).chmod("p1", 0o600).set_mtime("p1", 1_000_000_000, 0);
        },
    ];
    for (i, upset) in upset.iter().enumerate() {
        upset();
        let upset = world.manifest();
        assert_ne!(upset, before, "{i}");
        restore(&world, "0 --dry-run").ok();
        upset.assert_same(&world.manifest(), &format!("{i}: asked"));
        restore(&world, "0").ok();
        before.assert_same(&world.manifest(), &format!("{i}: restored"));
        assert_eq!(world.recant("snapshot diff 0").ok().stdout(), "", "{i}");
        world.recant("rollback last").ok();
        upset.assert_same(&world.manifest(), &format!("{i}: taken back"));
        world.recant("redo last").ok();
        before.assert_same(&world.manifest(), &format!("{i}: done again"));
    }
}

/// What went is a name of the file still: only so is a rollback exact. What that costs is said.
#[test]
fn a_name_that_goes_where_another_stays_is_joined_again_and_what_was_written_meanwhile_is_found() {
    for (words, paths) in [("0 b", 1), ("0 b c", 2), ("0 a", 1), ("0 a --keep-new", 1)] {
        let world = World::new();
        world.write("a", "1");
        world.recant("snapshot create").ok();
        world.write("a", "2").link("a", "b").link("a", "c");
        let before = world.manifest();
        let said = restore(&world, words).ok();
        let more = if paths > 1 { " (so has what was at 1 more path)" } else { "" };
        let path = words.split(' ').nth(1).unwrap_or_default();
        let wanted = format!("{}: what was there has another name that stays{more}: ", world.path(path).display());
        assert!(said.stderr().contains(&wanted), "{words}: {said}");
        let restored = world.manifest();
        world.recant("rollback last").ok();
        before.assert_same(&world.manifest(), words);
        world.recant("redo last").ok();
        restored.assert_same(&world.manifest(), words);

        let stays = if path == "a" { "b" } else { "a" };
        world.write(stays, "meanwhile");
        world.recant("checkpoint verify last").with(3);
        let said = world.recant("rollback last").with(3);
        assert!(said.stderr().contains("was written to since"), "{words}: {said}");
        world.recant("rollback last --force").ok();
        assert_eq!(
            (world.read("a"), world.read("b"), world.read("c")),
            ("meanwhile".into(), "meanwhile".into(), "meanwhile".into())
        );
        assert_eq!(world.recant("checkpoint verify last").ok().status, 0);
    }
    let world = World::new();
    world.write("a", "1").link("a", "b");
    world.recant("snapshot create").ok();
    world.write("a", "2");
    let said = restore(&world, "0").ok();
    assert!(!said.stderr().contains("another name"), "all of them went: {said}");
}
