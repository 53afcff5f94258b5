//! What the surroundings do to an operation: signals at any moment, limits on descriptors, stack and file sizes, no inodes left, an
//! edit between a kill and the recovery, an original that cannot be read.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::common::{self, Manifest, Said, World, assert_done_or_not, can_run, is_root, skip};

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
    for i in 0..files {
        world.stage_write(&id, format!("some/{}/{i}", i % 7), format!("new and longer {i}"));
    }
    world.stage_write(&id, "made/deep", "n");
    world.recant(&format!("session delete {id} gone -r")).ok();
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
    let descriptors = (12..=34).step_by(2).map(|n| format!("ulimit -n {n}"));
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
    if !can_run() {
        return skip("deep directories: recant run does not work here");
    }
    let world = World::new();
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
    limited(&world, limit, "discard -y last").ok();
    limited(&world, limit, "session prune --keep 0 --yes").ok();
    let left = std::fs::read_dir(world.store().join("sessions")).expect("the store").count();
    assert_eq!(left, 0, "sessions");
}

/// What is given up is given up, also where not all that was held can be removed: that is said, and goes later.
#[test]
fn a_discard_that_cannot_remove_all_says_that_it_is_discarded() {
    let mut told = [0, 0];
    for n in common::steps() {
        let world = World::new();
        let id = world.begin();
        world.stage_write(&id, "new", "n").stage_write(&id, "more", "m");
        let said = world.call(["discard", "-y", &id]).env("RECANT_STEPS", format!("fail:{n}:5")).run();
        if said.status == 0 {
            break;
        }
        let stderr = said.stderr();
        let is_discarded = world.recant("list").ok().stdout().contains("discarded");
        told[usize::from(is_discarded)] += 1;
        assert_eq!(said.status, if is_discarded { 4 } else { 1 }, "{n}: {said}");
        assert_eq!(world.recant("log").ok().stdout().contains("discard"), is_discarded, "{n}");
        let wanted = if is_discarded { "is discarded; not all that it held is removed" } else { "nothing was changed" };
        assert!(stderr.contains(wanted), "{n}: {said}");
        if is_discarded {
            assert!(stderr.contains(&format!("recant session prune {id} removes the rest")), "{n}: {said}");
            world.recant(&format!("session prune {id} --yes")).ok();
            assert!(!world.store().join("sessions").join(&id).exists(), "{n}");
        }
    }
    assert!(told.iter().all(|times| *times > 0), "{told:?}");
}

/// So it is with every session of a prune: who says that nothing was changed has changed nothing.
#[test]
fn a_prune_that_fails_says_what_was_pruned() {
    for verb in ["session prune", "checkpoint prune"] {
        for n in common::steps() {
            let world = World::new();
            world.write("a", "old").write("b", "old");
            let ids = ["a", "b"].map(|name| {
                let id = world.begin();
                world.stage_write(&id, name, "new");
                world.recant(&format!("commit {id}")).ok();
                if verb == "session prune" {
                    world.recant(&format!("rollback {id}")).ok();
                }
                id
            });
            let list = || {
                let list = world.recant("list --json").ok().json();
                let sessions = list["sessions"].as_array().expect("sessions").clone();
                sessions.into_iter().map(|row| (row["id"].to_string(), row["checkpoint"].to_string())).collect::<Vec<_>>()
            };
            let before = list();
            let words = format!("{verb} {} {} -y", ids[0], ids[1]);
            let said = world.call(words.split(' ')).env("RECANT_STEPS", format!("fail:{n}:5")).run();
            if said.status == 0 && list() != before && !said.stderr().contains("log") {
                break;
            }
            let what = format!("{words}, step {n}: {said}");
            let stderr = said.stderr();
            assert_eq!(stderr.contains("nothing was changed"), said.status == 1, "{what}");
            if said.status == 1 {
                assert!(before == list(), "{what}");
            } else if said.status == 4 {
                assert!(before != list(), "{what}");
            }
        }
    }
}

/// A header that is not written gives nothing up, also where there is nothing to give up.
#[test]
fn a_checkpoint_that_is_none_is_not_said_to_be_given_up_where_no_header_is_written() {
    let mut told = [0, 0];
    for n in common::steps() {
        let world = World::new();
        let id = world.begin();
        world.stage_write(&id, "new", "n");
        let header = || std::fs::read(world.session(&id).join("session.json")).expect("the header");
        let before = header();
        let said = world.call(["checkpoint", "prune", &id]).env("RECANT_STEPS", format!("fail:{n}:28")).run();
        if said.status == 0 {
            break;
        }
        let is_written = before != header();
        told[usize::from(is_written)] += 1;
        assert_eq!(said.status, if is_written { 4 } else { 1 }, "{n}: {said}");
        assert_eq!(said.stderr().contains("nothing was changed"), !is_written, "{n}: {said}");
        assert_eq!(world.recant("log").ok().stdout().contains("checkpoint prune"), is_written, "{n}: {said}");
    }
    assert!(told.iter().all(|times| *times > 0), "{told:?}");
}

/// Root may have any number of processes: for it a user without an account does the work.
#[test]
fn where_no_thread_can_be_had_one_does_all() {
    let world = World::new();
    copy_recant(&world);
    let by_user = if rustix::process::geteuid().is_root() {
        world.program("chown", ["-R".as_ref(), "65534:65534".as_ref(), world.root().as_os_str()]).run().ok();
        "setpriv --reuid 65534 --regid 65534 --clear-groups sh -c"
    } else {
        "sh -c"
    };
    let run = |script: &str| world.program("/bin/sh", ["-c", &format!("exec {by_user} '{script}'")]).run().ok();
    let made = run("for i in $(seq 140); do echo old > $i; done; id=$(../recant session new) && \
                    for i in $(seq 140); do echo new | ../recant session write $id $i || exit; done; echo $id");
    let before = world.manifest();
    let id = made.stdout().lines().last().expect("an id").to_string();
    run(&format!("ulimit -u 1; exec ../recant commit {id}"));
    (1..=140).for_each(|i| assert_eq!(world.read(i.to_string()), "new\n"));
    run(&format!("ulimit -u 1; exec ../recant rollback {id}"));
    before.assert_same(&world.manifest(), "rolled back");
}

/// A write over `ulimit -f` fails with EFBIG, as on a full disk: SIGXFSZ ends no operation in its midst.
#[test]
fn a_write_cut_short_by_a_limit_on_file_sizes_is_undone_and_said() {
    // Blocks of 512 bytes.
    let mut undone = 0;
    for blocks in [0, 1, 2, 4, 8, 16, 24, 32, 48, 64] {
        let (mut world, store) = (World::new(), tempfile::tempdir().expect("a directory"));
        let elsewhere = Path::new("/dev/shm");
        let other = elsewhere.is_dir().then(|| tempfile::tempdir_in(elsewhere).expect("a directory of another file system"));
        world.set("RECANT_STORE", other.as_ref().unwrap_or(&store).path().join("store"));
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
    if !common::can_run() {
        return common::skip("a limit on file sizes in a run: recant run does not work here");
    }
    let world = World::new();
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
    let rounds: u32 = std::env::var("RECANT_STATES").map_or(8, |text| text.parse::<u32>().expect("a number") * 10);
    let mut caught = 0;
    let kinds = [
        rustix::process::Signal::INT,
        rustix::process::Signal::TERM,
        rustix::process::Signal::HUP,
        rustix::process::Signal::KILL,
    ];
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
            if signal != rustix::process::Signal::KILL {
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
    for n in common::steps() {
        let mut world = World::new();
        let killed = world.umask(0o777).call(["session", "new"]).env("RECANT_STEPS", format!("kill:{n}")).run();
        // All that is less than its owner's.
        let less = ["(", "-type", "d", "!", "-perm", "700", "-o", "-type", "f", "!", "-perm", "600", ")", "-print"];
        let store = world.store();
        if store.exists() {
            let found = world.program("find", [&*store.to_string_lossy()].into_iter().chain(less)).run().ok();
            assert_eq!(found.stdout(), "", "killed before step {n}");
        }
        if killed.status == 0 {
            assert!(n > 10, "{n}");
            break;
        }
    }
}

/// Also where the umask takes everything from everybody; what is the user's follows it.
#[test]
fn what_is_recant_s_own_is_private_and_usable_under_any_umask() {
    let root = rustix::process::geteuid().is_root();
    let users: &[Option<u32>] = if root { &[None, Some(65_534)] } else { &[None] };
    for (umask, user) in
        [0, 0o022, 0o077, 0o477, 0o777].into_iter().flat_map(|umask| users.iter().map(move |user| (umask, *user)))
    {
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
fn without_a_free_inode_an_operation_is_done_or_refused_and_never_half() {
    if !is_root("a file system without a free inode") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let point = directory.path().display().to_string();
    let options = "size=64m,nr_inodes=400";
    let mounted = std::process::Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs", &point]).status();
    if !mounted.is_ok_and(|status| status.success()) {
        common::skip("a file system without a free inode: no tmpfs can be mounted");
        return;
    }
    let result = std::panic::catch_unwind(|| {
        let world = World::on(directory.path());
        let (id, before) = scene(&world, 12);
        let ballast = directory.path().join("ballast");
        let fill = || {
            std::fs::create_dir_all(&ballast).expect("a directory");
            (0..).find(|n| std::fs::write(ballast.join(n.to_string()), "").is_err()).expect("an end");
        };
        fill();
        let said = world.recant(&format!("commit {id}")).with(1);
        before.assert_same(&world.manifest(), &format!("{said}"));
        assert!(!said.stderr().contains(".recant-"), "a person's path is named: {said}");
        std::fs::remove_dir_all(&ballast).expect("inodes again");
        world.recant(&format!("commit {id}")).ok();
        let after = world.manifest();
        fill();
        let said = world.recant(&format!("rollback {id}"));
        println!("a rollback without a free inode ended with {}", said.status);
        assert_done_or_not(&said, &world, &before, &after);
        std::fs::remove_dir_all(&ballast).expect("inodes again");
        world.recant(&format!("rollback {id}")).ok();
        before.assert_same(&world.manifest(), "with inodes again");
    });
    drop(std::process::Command::new("umount").args(["-l", &point]).status());
    if let Err(failure) = result {
        std::panic::resume_unwind(failure);
    }
}

#[test]
fn an_original_that_cannot_be_read_is_refused_before_anything_is_changed() {
    let me = rustix::process::geteuid();
    if me.is_root() {
        common::skip("an original that cannot be read: root reads everything; make test-all runs this as an ordinary user");
        return;
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

mod stopped {
    use super::*;

    /// The number of the step that `call` on a name ending in `name` is.
    fn step_of(world: &World, words: &str, call: &str, name: &str) -> usize {
        let log = world.root().join("steps");
        world.call(words.split(' ')).env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
        let text = std::fs::read_to_string(&log).expect("the steps");
        let found = text.lines().position(|line| line.contains(call) && line.ends_with(name));
        found.unwrap_or_else(|| panic!("no {call} {name}:\n{text}")) + 1
    }

    fn scene() -> (World, String) {
        let world = World::new();
        for name in ["edited", "removed", "again", "calm", "gone"] {
            world.write(name, "old");
        }
        let id = world.begin();
        for name in ["edited", "removed", "again", "calm", "made"] {
            world.stage_write(&id, name, "new");
        }
        world.recant(&format!("session delete {id} gone")).ok();
        (world, id)
    }

    #[test]
    fn what_somebody_changes_between_a_kill_and_the_recovery_stays_and_is_named() {
        let (twin, id) = scene();
        let seal = step_of(&twin, &format!("commit {id}"), "renameat", "session.json");
        let (world, id) = scene();
        let killed = world.call(["commit", &id]).env("RECANT_STEPS", format!("kill:{seal}")).run();
        assert_eq!(killed.status, 137, "{killed}");
        assert_eq!((world.read("edited"), world.exists("gone")), ("new".into(), false), "it was killed after the last step");
        world.write("edited", "somebody's own").remove("removed").remove("again").write("again", "made again");
        let shown = world.recant("status");
        assert!(shown.stdout().contains("interrupted"), "{shown}");
        let said = world.recant("recover").with(4);
        for name in ["edited", "removed", "again"] {
            assert!(said.stdout().contains(&format!("tree/{name}")), "{name} is named: {said}");
        }
        for name in ["calm", "gone", "made"] {
            assert!(!said.stdout().contains(&format!("tree/{name}")), "{name} is none of them: {said}");
        }
        // It has come to its end.
        assert!(world.recant("recover").ok().stderr().contains("nothing was interrupted"), "{said}");
        assert_eq!((world.read("edited"), world.read("again")), ("somebody's own".into(), "made again".into()));
        assert!(!world.exists("removed") && !world.exists("made"));
        assert_eq!((world.read("calm"), world.read("gone")), ("old".into(), "old".into()));
        // The old bytes of all three are still in the session.
        let kept = walkdir::WalkDir::new(world.session(&id))
            .into_iter()
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_file() && std::fs::read(entry.path()).is_ok_and(|bytes| bytes == b"old"));
        assert_eq!(kept.count(), 3);
    }

    #[test]
    fn a_prune_killed_before_any_step_leaves_a_session_whole_or_gone_and_no_other_touched() {
        let make = || {
            let world = World::new();
            world.write("kept", "old").write("done", "old");
            let (kept, gone) = (world.begin(), world.begin());
            world.stage_write(&kept, "kept", "new").stage_write(&gone, "done", "new");
            for words in [format!("commit {kept}"), format!("commit {gone}"), format!("rollback {gone}")] {
                world.recant(&words).ok();
            }
            (world, kept, gone)
        };
        let (mut world, mut kept, mut gone) = make();
        for n in common::steps() {
            let killed = world.call(["session", "prune", &gone, "-y"]).env("RECANT_STEPS", format!("kill:{n}")).run();
            let what = format!("prune killed before step {n}: {killed}");
            world.recant("recover").ok();
            let there = std::fs::read_dir(world.store().join("sessions")).expect("the sessions");
            let names = there.map(|name| name.expect("a name").file_name().to_string_lossy().into_owned());
            let names: Vec<String> = names.filter(|name| name != ".numbering").collect();
            assert!(names.iter().all(|name| *name == kept || *name == gone), "{what}: {names:?}");
            if names.contains(&gone) {
                world.recant(&format!("redo {gone}")).ok();
                assert_eq!(world.read("done"), "new", "{what}");
                world.recant(&format!("rollback {gone}")).ok();
            }
            world.recant(&format!("checkpoint verify {kept}")).ok();
            world.recant(&format!("rollback {kept}")).ok();
            assert_eq!(world.read("kept"), "old", "{what}");
            world.recant(&format!("redo {kept}")).ok();
            if killed.status != 137 {
                assert_eq!(killed.status, 0, "{what}");
                assert!(n > 3, "a prune has more steps than {n}");
                break;
            }
            if !names.contains(&gone) {
                (world, kept, gone) = make();
            }
        }
    }
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
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).expect("it is there");
    assert!(waiting.join().expect("no panic").success());
    drop(holder.wait());
}

#[test]
fn a_lock_file_that_is_removed_or_replaced_while_it_is_held_keeps_others_out_all_the_same() {
    for how in ["rm", "rm && touch", "cp"] {
        let world = World::new();
        let (id, _) = scene(&world, 4);
        let other = world.begin();
        world.stage_write(&other, "other", "o");
        let before = world.manifest();
        let log = world.root().join("steps");
        world.call(["commit", &id]).env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
        let after = timeless(world.manifest());
        world.recant(&format!("rollback {id}")).ok();
        let steps = std::fs::read_to_string(&log).expect("the steps").lines().count();
        // Two others come: one to the same session, which ends at once, and one to another, which waits and says so.
        let gone = |lock: &Path| {
            let lock = lock.display();
            match how {
                "rm" => format!("rm {lock}"),
                "rm && touch" => format!("rm {lock} && touch {lock}"),
                _ => format!("cp {lock} {lock}.2 && mv {lock}.2 {lock}"),
            }
        };
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
    if std::process::Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        return common::skip("locks that are refused: no strace here");
    }
    let world = World::new();
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
    if std::process::Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        return common::skip("a kernel without openat2: no strace here");
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
    if !is_root("a chroot") {
        return;
    }
    let world = World::new();
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
