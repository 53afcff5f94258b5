//! What the surroundings do to an operation: signals at any moment, limits on descriptors, stack and file sizes, no inodes left, an
//! edit between a kill and the recovery, an original that cannot be read.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;

use crate::common::sweep::{Came, Sweep, is_due, steps_of};
use crate::common::{self, Manifest, Said, World, can_run, is_root, skip};
use crate::{SEAL, has_strace, step_of};

/// A copy of recant in the world, by a program of its own: one that is open here for writing while another thread forks is busy.
fn copy_recant(world: &World) {
    let to = world.root().join("recant");
    world.program("cp", [Path::new(common::recant()), &to]).run().ok();
}

/// So many files edited, some removed and some made.
fn scene(world: &World, files: usize) -> (String, Manifest) {
    for i in 0..files {
        world.write(format!("some/{}/{i}", i % 7), format!("old {i}"));
    }
    world.write("gone/1", "away");
    for path in world.manifest().0.keys() {
        world.set_mtime(common::name(path), 1_000_000_000, 7);
    }
    let id = world.begin();
    let lines: Vec<String> = (0..files).map(|i| format!("write some/{}/{i} new and longer {i}", i % 7)).collect();
    world.stage(&id, lines.iter().map(String::as_str).chain(["write made/deep n", "delete gone"]));
    (id, world.manifest())
}

/// The times of what an operation has made differ from run to run.
fn timeless(mut manifest: Manifest) -> Manifest {
    let late = |row: &&mut common::Row| row.content == "directory" && row.mtime.0 > 1_500_000_000;
    manifest.0.values_mut().filter(late).for_each(|row| row.mtime = (0, 0));
    manifest
}

/// Done in full, or undone and said: never a mixture.
#[track_caller]
fn done_or_undone(world: &World, id: &str, before: &Manifest, said: &Said, what: &str) {
    match said.status {
        0 => assert_eq!(world.status(id), "committed", "{what}: {said}"),
        1 => {
            assert!(!said.stderr().is_empty(), "{what}");
            before.assert_same(&world.manifest(), &format!("{what}: {said}"));
        }
        status => panic!("{what}: exit {status}: {said}"),
    }
    world.assert_tidy(what);
}

/// With a shell's limits set first.
fn limited(world: &World, limit: &str, words: &str) -> Said {
    let script = format!("{limit}; exec {} {words}", common::recant());
    world.program("/bin/sh", ["-c", &script]).run()
}

#[test]
fn few_descriptors_a_small_stack_and_little_memory_are_enough_or_it_is_undone() {
    // From too few to look at anything to enough: on the way there is a number that lets the steps begin, and not end.
    let descriptors = (12..=34).filter(|n| is_due(*n)).map(|n| format!("ulimit -n {n}"));
    for limit in &descriptors.chain(["ulimit -s 1024".into(), "ulimit -v 200000".into()]).collect::<Vec<_>>() {
        let world = World::new();
        let deep: String = (0..150).map(|_| "d/").collect();
        world.write(format!("{deep}leaf"), "old");
        let (id, _) = scene(&world, 60);
        world.stage_write(&id, format!("{deep}leaf"), "new");
        let before = world.manifest();
        let said = limited(&world, limit, &format!("commit {id}"));
        done_or_undone(&world, &id, &before, &said, limit);
        println!("{limit}: exit {}", said.status);
        if said.status != 0 {
            world.recant(&format!("commit {id}")).ok();
        }
        let said = limited(&world, limit, &format!("rollback {id}"));
        if said.status != 0 {
            world.recant(&format!("rollback {id}")).ok();
        }
        before.assert_same(&world.manifest(), &format!("{limit}: after a rollback: {said}"));
    }
}

/// What a run holds lies as deep in the store as on the tree, and goes with few descriptors and a small stack too.
#[test]
fn what_is_held_of_deep_directories_is_removed_with_few_descriptors() {
    let Some(world) = can_run().then(World::new) else { return skip("deep directories: recant run does not work here") };
    let script = "for i in $(seq 300); do mkdir d; cd -P d; done; echo new > leaf";
    let run = |world: &World| world.call(["run", "-q", "--", "sh", "-ec", script]).run().ok();
    let limit = "ulimit -n 40; ulimit -s 1024";
    let before = world.manifest();
    run(&world);
    for verb in ["commit", "rollback", "redo", "rollback"] {
        limited(&world, limit, &format!("{verb} last")).ok();
        assert!(world.journals().is_empty(), "{verb}");
    }
    before.assert_same(&world.manifest(), "rolled back");
    run(&world);
    limited(&world, limit, "discard --now -y last").ok();
    limited(&world, limit, "prune --sessions --keep 0 --yes").ok();
    let left = std::fs::read_dir(world.store().join("sessions")).expect("the store").count();
    assert_eq!(left, 0, "sessions");
}

/// A part leaves, joins again and leaves once more, and a session opens again, with no descriptor for each of their files or directories.
#[test]
fn parts_of_many_files_and_directories_go_with_few_descriptors() {
    let Some(world) = can_run().then(World::new) else { return skip("parts of many files: recant run does not work here") };
    world.mkdir("many/kept").write("text", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let before = world.manifest();
    let script = "for i in $(seq 80); do mkdir many/$i; echo $i > many/$i/a; echo $i > many/b$i; done; echo x > other; sed -i s/2/two/ text";
    world.call(["run", "-q", "-n", "m", "--", "sh", "-ec", script]).run().ok();
    let few = |words: &str| limited(&world, "ulimit -n 40", words).ok();
    few("commit m many text:1");
    few("rollback last");
    few("redo last");
    few("rollback last");
    few("discard m other");
    let whole = world.recant("show m --json").ok().json()["session"]["changes"].clone();
    few("commit m");
    few("rollback m");
    few("rewind m 1");
    few("commit m");
    world.write("text", "1\ntwo\n3\n4\n5\n6\n7\nnew\n9\n");
    few("rollback m --merge many/1 many/2 text");
    few("undo -y");
    world.write("text", "1\ntwo\n3\n4\n5\n6\n7\n8\n9\n");
    few("rollback m --force");
    before.assert_same(&world.manifest(), "all of it is taken back");
    // A command over what is left of many directories.
    world
        .call([
            "run",
            "-q",
            "-n",
            "n",
            "--",
            "sh",
            "-ec",
            "for i in $(seq 300); do mkdir -p d/$i; echo $i > d/$i/a; done; echo x > k",
        ])
        .run()
        .ok();
    few("discard n d");
    let seen = limited(&world, "ulimit -n 200", "run -q --session n -- ls").ok().stdout();
    assert!(seen.contains("k\n") && !seen.contains("d\n"), "{seen}");
    assert!(whole.as_u64().is_some_and(|n| n > 240), "{whole}");
}

/// A failure at any step of what gives up or prunes: what is done is done and named, also where not all that was held can be removed, which
/// goes later; and who says that nothing was changed has changed nothing.
#[test]
fn a_discard_or_prune_that_fails_says_what_was_given_up() {
    for (words, first, error) in [
        ("discard A --now -y", &[][..], 5),
        ("prune --sessions A B -y", &["commit", "rollback"], 5),
        ("prune --checkpoints A B -y", &["commit"], 5),
        // A header that is not written gives nothing up, also where there is nothing to give up.
        ("prune --checkpoints A", &[], 28),
    ] {
        let verb = words.split(" A").next().expect("a verb");
        let scene = || {
            let world = World::new();
            let ids = ["a", "b"].map(|name| world.edited(name));
            ids.iter().for_each(|id| first.iter().for_each(|done| drop(world.call([*done, id]).run().ok())));
            Some((world, ids))
        };
        // What is there of the sessions, and whether the log tells of the verb.
        let state = |world: &World, ids: &[String; 2]| {
            let header = |id: &String| std::fs::read(world.session(id).join("session.json")).ok();
            (ids.each_ref().map(header), world.recant("log").ok().stdout().contains(verb))
        };
        let row = Sweep {
            name: words,
            scene: &|| scene().map(|(world, ids)| (state(&world, &ids), world, ids)),
            verb: &|(_, world, ids)| world.call(words.replace('A', &ids[0]).replace('B', &ids[1]).split(' ')),
            order: &format!("fail:N:{error}"),
        };
        let tally = row.run(|(before, world, ids), said, what| {
            let (headers, is_told) = state(world, ids);
            let is_given_up = headers != before.0;
            assert_eq!(said.stderr().contains("nothing was changed"), said.status == 1, "{what}");
            match said.status {
                0 => assert!(is_given_up, "{what}"),
                1 => assert!(!is_given_up && !is_told, "{what}"),
                // A prune that failed has no line in the log.
                status => assert_eq!((status, is_given_up, is_told || verb == "prune --sessions"), (4, true, true), "{what}"),
            }
            if verb == "discard" && said.status == 4 {
                let says = |text: &str| said.stderr().contains(text);
                assert!(says("is discarded; some of what it held could not be removed"), "{what}");
                assert!(says(&format!("recant prune --sessions {} removes the rest", ids[0])), "{what}");
                world.recant(&format!("prune --sessions {} --yes", ids[0])).ok();
                assert!(!world.session(&ids[0]).exists(), "{what}");
            }
            if is_given_up || is_told { Came::Used(said.status) } else { Came::Unchanged(said.status) }
        });
        tally.saw(1, 1).saw(4, 1).saw(0, 1);
    }
}

/// Root may have any number of processes: for it a user without an account does the work.
#[test]
fn where_no_thread_can_be_had_one_does_all() {
    let world = World::new();
    copy_recant(&world);
    let is_root = rustix::process::geteuid().is_root();
    let given_away = || {
        let words = ["-R".as_ref(), "65534:65534".as_ref(), world.root().as_os_str()];
        is_root.then(|| world.program("chown", words).run().ok());
    };
    (1..=140).for_each(|i| _ = world.write(i.to_string(), "old"));
    given_away();
    let id = world.begin();
    let lines: Vec<String> = (1..=140).map(|i| format!("write {i} new")).collect();
    world.stage(&id, lines.iter().map(String::as_str));
    given_away();
    let before = world.manifest();
    let by_user = if is_root { "setpriv --reuid 65534 --regid 65534 --clear-groups" } else { "" };
    let alone = |verb: &str| {
        let script = format!("exec {by_user} sh -c 'ulimit -u 1; exec ../recant {verb} {id}'");
        world.program("sh", ["-c", &script]).run().ok();
    };
    alone("commit");
    (1..=140).for_each(|i| assert_eq!(world.read(i.to_string()), "new"));
    alone("rollback");
    before.assert_same(&world.manifest(), "rolled back");
}

/// A write over `ulimit -f` fails with EFBIG, as on a full disk: SIGXFSZ ends no operation in its midst.
#[test]
fn a_write_cut_short_by_a_limit_on_file_sizes_is_undone_and_said() {
    // Blocks of 512 bytes.
    let mut undone = 0;
    for blocks in [0, 1, 2, 4, 8, 16, 24, 32, 48, 64] {
        let (mut world, other) = (World::new(), common::elsewhere());
        world.set("RECANT_STORE", other.as_ref().map_or(world.root(), tempfile::TempDir::path).join("store"));
        world.write("large", vec![b'o'; 20_000]);
        let (id, _) = scene(&world, 3);
        world.stage_write(&id, "large", vec![b'n'; 20_000]);
        let before = world.manifest();
        let said = limited(&world, &format!("ulimit -f {blocks}"), &format!("commit {id}"));
        let what = format!("ulimit -f {blocks}");
        done_or_undone(&world, &id, &before, &said, &what);
        if said.status == 1 {
            assert!(said.stderr().contains("ulimit -f"), "{what}: {said}");
            undone += 1;
        }
        world.recant("status").ok();
    }
    assert!(undone > 3, "{undone} of 10");
}

#[test]
fn a_command_in_a_run_is_ended_by_a_limit_on_file_sizes_as_it_is_bare() {
    let Some(world) = common::can_run().then(World::new) else {
        return common::skip("a limit on file sizes in a run: recant run does not work here");
    };
    let large = "ulimit -f 1; head -c 100000 /dev/zero >large; echo $?";
    for (trap, status) in [("", "153\n"), ("trap '' XFSZ; ", "1\n")] {
        let script = format!("{trap}exec {} run -q -- sh -c '{large}'", common::recant());
        let said = world.program("/bin/sh", ["-c", &script]).run();
        assert_eq!(said.stdout(), status, "{trap}: {said}");
    }
}

#[test]
fn an_interrupted_operation_is_recovered_by_the_next_whatever_signal_ended_it() {
    let world = World::new();
    let (id, before) = scene(&world, 150);
    world.recant(&format!("commit {id}")).ok();
    let after = timeless(world.manifest());
    world.recant(&format!("rollback {id}")).ok();
    let begun = std::time::Instant::now();
    world.recant(&format!("redo {id}")).ok();
    let whole = begun.elapsed();
    let rounds: u32 = std::env::var("RECANT_STATES").map_or(3, |text| text.parse::<u32>().expect("a number") * 10);
    let mut caught = 0;
    let kinds = [Signal::INT, Signal::TERM, Signal::HUP, Signal::KILL];
    for round in 0..rounds {
        for (i, signal) in kinds.into_iter().enumerate() {
            let verb = if world.status(&id) == "committed" { "rollback" } else { "redo" };
            let mut command = world.call([verb, &id]).command();
            // The whole group of processes, as a terminal or a service manager does it.
            let child = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
            std::thread::sleep(whole * (round * 4 + u32::try_from(i).expect("small")) / (rounds * 4));
            let group = rustix::process::Pid::from_child(&child);
            // It may have come to its end before.
            let _ended = rustix::process::kill_process_group(group, signal);
            let ended = child.wait_with_output().expect("its end");
            caught += u32::from(!ended.status.success());
            if signal != Signal::KILL {
                // It has undone or finished itself, and said so, or has not begun.
                world.assert_tidy(&format!("{verb}, {signal:?}"));
                let status = ended.status.code().or(ended.status.signal().map(|signal| 128 + signal)).expect("a status");
                let done = world.status(&id) == if verb == "redo" { "committed" } else { "rolled_back" };
                let want = if done { 0 } else { 128 + signal.as_raw() };
                assert_eq!(status, want, "{verb}, {signal:?}: {ended:?}");
                assert!(!done || !ended.stderr.is_empty(), "{verb}, {signal:?}: it did not say so");
            }
            let said = world.recant("recover").ok();
            let what = format!("{verb}, {signal:?}: {said}");
            world.assert_tidy(&what);
            match &*world.status(&id) {
                "committed" => after.assert_same(&timeless(world.manifest()), &what),
                "rolled_back" => before.assert_same(&world.manifest(), &what),
                status => panic!("{what}: {status}"),
            }
        }
    }
    println!("{caught} of {} operations were cut off", rounds * 4);
}

/// From the first moment on: what its owner cannot open would stand against every later verb of his.
#[test]
fn what_is_recant_s_own_is_its_owner_s_under_any_umask_also_where_recant_is_killed() {
    let row = Sweep {
        name: "session new, umask 0777",
        scene: &|| {
            let mut world = World::new();
            world.umask(0o777);
            Some(world)
        },
        verb: &|world: &World| world.call(["session", "new"]),
        order: "kill:N",
    };
    let tally = row.run(|world, said, what| {
        // All that is less than its owner's.
        let less = "test ! -e ../store || find ../store '(' -type d ! -perm 700 -o -type f ! -perm 600 ')' -print";
        assert_eq!(world.umask(0o022).program("sh", ["-c", less]).run().ok().stdout(), "", "{what}");
        Came::Used(said.status)
    });
    assert!(tally.steps > 10, "{}", tally.steps);
}

/// Also where the umask takes everything from everybody; what is the user's follows it.
#[test]
fn what_is_recant_s_own_is_private_and_usable_under_any_umask() {
    let root = rustix::process::geteuid().is_root();
    let users: &[Option<u32>] = if root { &[None, Some(65_534)] } else { &[None] };
    for (umask, user) in [0, 0o077, 0o477, 0o777].into_iter().flat_map(|umask| users.iter().map(move |user| (umask, *user))) {
        let what = format!("umask {umask:04o}, user {user:?}");
        let mut world = World::new();
        copy_recant(&world);
        world.write("f", "old");
        let home = world.root().join("any-home");
        std::fs::create_dir(&home).expect("a home");
        if let Some(user) = user {
            world.program("chown", ["-R".as_ref(), format!("{user}:{user}").as_ref(), world.root().as_os_str()]).run().ok();
        }
        world.umask(umask).set("HOME", &home).unset("RECANT_STORE").unset("XDG_DATA_HOME");
        let recant = |words: &str| {
            let call = world.program(world.root().join("recant"), words.splitn(6, ' ')).stdin("new");
            let said = if let Some(user) = user { call.user(user, user).run() } else { call.run() };
            assert_eq!(said.status, 0, "{what}: {words}: {said}");
            said
        };
        let id = recant("session new").id();
        recant(&format!("session write {id} made"));
        let shown = recant(&format!("show {id} --json")).json();
        assert_eq!(shown["changes"][0]["after"]["mode"], format!("{:04o}", 0o666 & !umask), "{what}");
        recant(&format!("session write --mode 0644 {id} made"));
        recant(&format!("session write {id} f"));
        recant(&format!("commit {id}"));
        recant(&format!("rollback {id}"));
        recant(&format!("redo {id}"));
        recant("snapshot create .");
        world.write("f", "later");
        recant("snapshot restore 0 . -y");
        assert_eq!(world.read("f"), "new", "{what}");
        if common::can_run() {
            assert_eq!(recant("run --discard -- sh -c umask").stdout(), format!("{umask:04o}\n"), "{what}");
            recant("run --commit -- sh -c echo>by-run;chmod\t644\tby-run");
        }
        // Content has modes of its own, and so has what the kernel makes for an overlay.
        let is_content =
            |path: &[u8]| [&b"held/"[..], b"checkpoint/"].iter().any(|part| path.windows(part.len()).any(|at| at == *part));
        for (path, row) in common::manifest(&home.join(".local")).0.iter().filter(|(path, _)| !is_content(path)) {
            let want = if row.content == "directory" { 0o700 } else { 0o600 };
            assert_eq!(row.mode & 0o777, want, "{what}: {}", path.escape_ascii());
        }
    }
}

#[test]
fn an_original_that_cannot_be_read_is_refused_before_anything_is_changed() {
    if rustix::process::geteuid().is_root() {
        return skip("an original that cannot be read: root reads everything; make test-all runs this as an ordinary user");
    }
    let world = World::new();
    world.write("secret", "mine").write("calm", "old");
    let id = world.begin();
    world.stage_write(&id, "calm", "new");
    world.recant(&format!("session delete {id} secret")).ok();
    world.chmod("secret", 0o000);
    world.recant(&format!("commit {id}")).with(3);
    // By force it may have another mode, but nothing that goes can be kept unread.
    let said = world.recant(&format!("commit {id} --force")).with(1);
    assert!(said.stderr().contains("secret: you may not read it"), "{said}");
    assert_eq!((world.read("calm"), world.exists("secret")), ("old".into(), true));
}

#[test]
fn what_somebody_changes_between_a_kill_and_the_recovery_stays_and_is_named() {
    let scene = || {
        let world = World::new();
        ["edited", "removed", "again", "calm", "gone"].iter().for_each(|name| _ = world.write(name, "old"));
        let id = world.begin();
        let lines =
            ["write edited new", "write removed new", "write again new", "write calm new", "write made new", "delete gone"];
        world.stage(&id, lines);
        (world, id)
    };
    let (twin, id) = scene();
    let seal = step_of(|| twin.call(["commit", &id]), &SEAL);
    let (world, id) = scene();
    world.call(["commit", &id]).env("RECANT_STEPS", format!("kill:{seal}")).run().with(137);
    assert_eq!((world.read("edited"), world.exists("gone")), ("new".into(), false), "it was killed after the last step");
    world.write("edited", "somebody's own").remove("removed").remove("again").write("again", "made again");
    let shown = world.recant("status");
    assert!(shown.stdout().contains("interrupted"), "{shown}");
    let said = world.recant("recover").with(4);
    for (name, is_named) in
        [("edited", true), ("removed", true), ("again", true), ("calm", false), ("gone", false), ("made", false)]
    {
        assert_eq!(said.stdout().contains(&format!("tree/{name}")), is_named, "{name}: {said}");
    }
    // It has come to its end.
    assert!(world.recant("recover").ok().stderr().contains("nothing was interrupted"), "{said}");
    assert_eq!((world.read("edited"), world.read("again")), ("somebody's own".into(), "made again".into()));
    assert!(!world.exists("removed") && !world.exists("made"));
    assert_eq!((world.read("calm"), world.read("gone")), ("old".into(), "old".into()));
    // The old bytes of all three are still in the session.
    let entries = walkdir::WalkDir::new(world.session(&id)).into_iter().filter_map(Result::ok);
    let kept =
        entries.filter(|entry| entry.file_type().is_file() && std::fs::read(entry.path()).is_ok_and(|bytes| bytes == b"old"));
    assert_eq!(kept.count(), 3);
}

#[test]
fn a_prune_killed_before_any_step_leaves_a_session_whole_or_gone_and_no_other_touched() {
    let row = Sweep {
        name: "prune --sessions",
        scene: &|| {
            let world = World::new();
            let [kept, gone] = ["kept", "gone"].map(|name| world.edited(name));
            for words in [format!("commit {kept}"), format!("commit {gone}"), format!("rollback {gone}")] {
                world.recant(&words).ok();
            }
            Some((world, kept, gone))
        },
        verb: &|(world, _, gone)| world.call(["prune", "--sessions", gone, "-y"]),
        order: "kill:N",
    };
    let tally = row.run(|(world, kept, gone), _, what| {
        world.recant("recover").ok();
        let there = std::fs::read_dir(world.store().join("sessions")).expect("the sessions");
        let names = there.map(|name| name.expect("a name").file_name().to_string_lossy().into_owned());
        let names: Vec<String> = names.filter(|name| name != ".numbering").collect();
        assert!(names.iter().all(|name| name == kept || name == gone), "{what}: {names:?}");
        let is_whole = names.contains(gone);
        if is_whole {
            world.recant(&format!("redo {gone}")).ok();
            assert_eq!(world.read("gone"), "new", "{what}");
            world.recant(&format!("rollback {gone}")).ok();
        }
        world.recant(&format!("checkpoint verify {kept}")).ok();
        world.recant(&format!("rollback {kept}")).ok();
        assert_eq!(world.read("kept"), "old", "{what}");
        world.recant(&format!("redo {kept}")).ok();
        if is_whole { Came::Unchanged("whole") } else { Came::Used("gone") }
    });
    tally.saw("whole", 2).saw("gone", 2);
}

#[test]
fn nobody_waits_forever_for_a_holder_that_was_killed() {
    let world = World::new();
    let (id, _) = scene(&world, 3);
    // It holds both locks and stands still; a kill frees them, and no file has to be removed by hand.
    let held = std::process::Command::new("flock")
        .args([world.store().join("lock").as_os_str(), "-c".as_ref(), "sleep 100".as_ref()])
        .process_group(0)
        .spawn();
    let Ok(mut holder) = held else { return common::skip("a killed holder: no flock here") };
    let lock = std::fs::File::open(world.store().join("lock")).expect("the lock");
    while rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockShared).is_ok() {
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::Unlock).expect("a lock given back");
        std::thread::yield_now();
    }
    let group = rustix::process::Pid::from_child(&holder);
    let waiting = std::thread::spawn({
        let mut command = world.call(["commit", &id]).command();
        move || command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("its end")
    });
    std::thread::sleep(Duration::from_millis(300));
    assert!(!waiting.is_finished(), "the store is held");
    rustix::process::kill_process_group(group, Signal::KILL).expect("it is there");
    assert!(waiting.join().expect("no panic").success());
    drop(holder.wait());
}

#[test]
fn a_lock_file_that_is_removed_or_replaced_while_it_is_held_keeps_others_out_all_the_same() {
    for how in ["rm LOCK", "rm LOCK && touch LOCK", "cp LOCK LOCK.2 && mv LOCK.2 LOCK"] {
        let world = World::new();
        let (id, _) = scene(&world, 4);
        let other = world.begin();
        world.stage_write(&other, "other", "o");
        let before = world.manifest();
        let steps = steps_of(|| world.call(["commit", &id])).len();
        let after = timeless(world.manifest());
        world.recant(&format!("rollback {id}")).ok();
        // Two others come: one to the same session, which ends at once, and one to another, which waits and says so.
        let gone = |lock: &Path| how.replace("LOCK", &lock.display().to_string());
        let (store, session) = (gone(&world.store().join("lock")), gone(&world.session(&id).join("lock")));
        let (said, recant) = (world.root().join("said"), common::recant());
        let others = format!(
            "{store} && {session} || exit 1\n{recant} discard -y {id} 2> /dev/null; test $? = 6 || exit 1; \
             ({recant} commit {other} > {0} 2>&1; echo ended >> {0}) & until test -s {0}; do sleep 0.02; done",
            said.display()
        );
        let script = world.root().join("others");
        std::fs::write(&script, others).expect("a script");
        // The first steps open the locks.
        for n in (5..steps).step_by(steps / 3) {
            let what = format!("{how}, before step {n} of {steps}");
            let verb = if n == 5 { "commit" } else { "redo" };
            let said_first = world.call([verb, &id]).env("RECANT_STEPS", format!("run:{n}:sh {}", script.display())).run();
            assert_eq!(said_first.status, 0, "{what}: {said_first}");
            while !std::fs::read_to_string(&said).expect("its words").ends_with("ended\n") {
                std::thread::sleep(Duration::from_millis(5));
            }
            assert_eq!((world.status(&id), world.status(&other)), ("committed".into(), "committed".into()), "{what}");
            world.recant(&format!("rollback {other}")).ok();
            after.assert_same(&timeless(world.manifest()), &what);
            world.assert_tidy(&what);
            world.recant(&format!("rollback {id}")).ok();
            before.assert_same(&world.manifest(), &what);
            std::fs::remove_file(&said).expect("its words");
        }
    }
}

#[test]
fn where_nothing_can_be_locked_nothing_is_changed() {
    let Some(world) = has_strace("locks that are refused").then(World::new) else { return };
    let (id, before) = scene(&world, 2);
    let recant = common::recant();
    for error in ["ENOLCK", "ENOSYS", "EOPNOTSUPP", "EIO"] {
        // The session's file and directory, then the store's.
        for nth in 1..=4 {
            let inject = format!("inject=flock:error={error}:when={nth}");
            let words = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=flock", "-e", &inject, recant, "commit", &id];
            let said = world.program("strace", words).run().with(1);
            assert!(said.stderr().contains("/lock: cannot lock: "), "{error} {nth}: {said}");
            before.assert_same(&world.manifest(), &format!("{error} {nth}"));
            world.assert_tidy(error);
        }
    }
    world.recant(&format!("commit {id}")).ok();
}

#[test]
fn where_openat2_is_missing_nothing_is_less_safe() {
    if !has_strace("a kernel without openat2") {
        return;
    }
    // An old kernel's answer, and that of a sandbox which does not know the call.
    for error in ["ENOSYS", "EPERM"] {
        let world = World::new();
        let recant = |words: &str| {
            let inject = format!("inject=openat2:error={error}");
            let strace = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=openat2", "-e", &inject, common::recant()];
            world.program("strace", strace.into_iter().chain(words.split_whitespace())).run()
        };
        let (id, before) = scene(&world, 20);
        recant(&format!("commit {id}")).ok();
        let after = world.manifest();
        assert_eq!((world.read("some/1/1"), world.exists("gone")), ("new and longer 1".into(), false), "{error}");
        recant(&format!("rollback {id}")).ok();
        before.assert_same(&world.manifest(), error);
        recant(&format!("redo {id}")).ok();
        timeless(after.clone()).assert_same(&timeless(world.manifest()), error);
        recant(&format!("checkpoint verify {id}")).ok();
        // A directory on the way has become a link to its own content elsewhere: as unsafe as before, and as refused.
        std::fs::rename(world.path("some"), world.root().join("elsewhere")).expect("moved away");
        world.symlink("../elsewhere", "some");
        let swapped = world.manifest();
        recant(&format!("rollback {id}")).with(3);
        swapped.assert_same(&world.manifest(), error);
        world.assert_tidy(error);
        let taken = recant(&format!("snapshot create {}", world.tree().display())).ok();
        assert_eq!(taken.stdout(), "0\n", "{error}");
    }
}

/// Runs a script after chroot(2) into a directory that is no mount point, so that no line of mountinfo has its root.
const CHROOT: &str = r#"
set -e
for name in usr bin sbin lib lib64 dev proc; do
    if [ -L "/$name" ]; then cp -P "/$name" "$1/"; elif [ -d "/$name" ]; then mkdir "$1/$name"; mount --rbind "/$name" "$1/$name"; fi
done
exec chroot "$1" /bin/sh -ec "$2"
"#;

#[test]
fn in_a_chroot_whose_root_is_no_mount_point_changes_are_committed_and_taken_back() {
    let Some(world) = is_root("a chroot").then(World::new) else { return };
    copy_recant(&world);
    world.write("root/srv/app/conf", "port = 80\n").write("root/srv/app/old", "x").write("root/tmp/none", "");
    world.program("cp", [world.root().join("recant"), world.path("root/recant")]).run().ok();
    let before = common::manifest(&world.path("root/srv"));
    let script = "export HOME=/ XDG_CONFIG_HOME=/none RECANT_STORE=/store PATH=/:/usr/bin:/bin
        ! cut -d' ' -f5 /proc/self/mountinfo | grep -qx / || exit 9
        cd /srv/app; id=$(recant session new)
        echo port = 81 | recant session write $id conf; recant session delete $id old
        recant snapshot create .
        recant commit $id; test \"$(cat conf)\" = 'port = 81'; test ! -e old
        recant snapshot restore -y last; test -e old; recant rollback last; test ! -e old
        recant rollback $id";
    let root = world.path("root");
    let words = ["-m", "sh", "-c", CHROOT, "sh", root.to_str().expect("a UTF-8 path"), script];
    world.program("unshare", words).run().ok();
    before.assert_same(&common::manifest(&world.path("root/srv")), "taken back in a chroot");
}
