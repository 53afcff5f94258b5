//! Originals that are written to while they are moved into the checkpoint, or afterwards: by whoever had them open, mapped, or knows them
//! by another name. What is written is never lost: it is on the tree, in the session, or its file conflicts; and it is said.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{self, Said, World, skip};

/// Tells the writer to stop, also where the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Lines that begin like this, in any file below `directory`.
fn lines_below(directory: &Path, begins: &str, found: &mut BTreeSet<u64>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten() {
        let entry = entry.expect("a name");
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() {
            lines_below(&entry.path(), begins, found);
        } else if kind.is_file() {
            let bytes = std::fs::read(entry.path()).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            found.extend(text.lines().filter_map(|line| line.strip_prefix(begins)?.parse::<u64>().ok()));
        }
    }
}

#[test]
fn a_writer_that_appends_all_the_time_loses_no_line() {
    // One that keeps the file open, and one that opens it for each line, so that the kernel mostly tells of no writer; lines all the time,
    // or with pauses in which an operation comes to its end.
    for (keeps, pause) in [(true, 0), (false, 0), (true, 500), (false, 500), (true, 15_000), (false, 15_000)] {
        let world = World::new();
        world.write("log", "").write("calm", "old");
        let id = world.begin();
        world.stage_write(&id, "log", "new content\n").stage_write(&id, "calm", "new").stage_write(&id, "made", "m");
        let (stop, written) = (AtomicBool::new(false), Mutex::new(BTreeSet::new()));
        let (mut conflicts, mut done) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let open = || std::fs::File::options().append(true).open(world.path("log"));
                let mut held = Some(open().expect("the log"));
                // Bounded: nobody's disk is to be filled.
                for n in 0..50_000 {
                    if stop.load(Ordering::SeqCst) {
                        break;
                    }
                    if held.is_none() {
                        held = open().ok();
                    }
                    let Some(file) = &mut held else { continue };
                    file.write_all(format!("line {n}\n").as_bytes()).expect("a line");
                    written.lock().expect("no panic").insert(n);
                    held.take_if(|_| !keeps);
                    std::thread::sleep(std::time::Duration::from_micros(pause));
                }
            });
            let _stop = Stop(&stop);
            for round in 0..16 {
                let force = if round % 2 == 1 { "--force" } else { "" };
                let verb = match &*world.status(&id) {
                    "pending" => "commit",
                    "committed" | "partial" => "rollback",
                    _ => "redo",
                };
                let said = world.recant(&format!("{verb} {id} {force}"));
                match said.status {
                    // It was put for a moment, and met the writer: it stays there.
                    4 if said.stderr().contains("undone except for") => {
                        assert!(said.stderr().contains("/log: "), "{said}");
                        conflicts += 1;
                    }
                    0 | 4 => done += 1,
                    3 => {
                        conflicts += 1;
                        assert!(said.stderr().contains("/log"), "{said}");
                    }
                    1 if said.stderr().contains("/log: cannot read: it changes while it is read") => conflicts += 1,
                    status => panic!("{verb} {force}: exit {status}: {said}"),
                }
                world.assert_tidy(verb);
            }
        });
        let wanted = written.into_inner().expect("no panic");
        let mut found = BTreeSet::new();
        lines_below(&world.tree(), "line ", &mut found);
        lines_below(&world.store(), "line ", &mut found);
        let lost: Vec<_> = wanted.difference(&found).take(5).collect();
        assert!(lost.is_empty(), "keeps it open: {keeps}: lost {lost:?} of {} lines", wanted.len());
        println!(
            "{} lines, {done} operations done, {conflicts} conflicts; kept open: {keeps}, a pause of {pause} µs",
            wanted.len()
        );
        assert!(conflicts > 0 || !keeps, "nobody ever conflicted");
    }
}

#[test]
fn a_file_that_is_mapped_for_writing_is_a_conflict_and_what_is_written_into_it_later_is_found() {
    let world = World::new();
    let earlier = world.begin();
    world.stage_write(&earlier, "mapped", "old_content");
    world.recant(&format!("commit {earlier}")).ok();
    let id = world.begin();
    world.stage_write(&id, "mapped", "new");
    // The descriptor is closed: the mapping alone leads to the file.
    let script = "import mmap,os,sys\nfd=os.open('mapped',os.O_RDWR); m=mmap.mmap(fd,0); os.close(fd)\n\
                  print('ready',flush=True); sys.stdin.readline()\nm[0:4]=b'LATE'; m.flush(); m.close()\n";
    let mut command = world.program("python3", ["-c", script]).command();
    let Ok(mut writer) = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
        return skip("a mapped file: no python3");
    };
    let mut ready = [0; 6];
    std::io::Read::read_exact(writer.stdout.as_mut().expect("a pipe"), &mut ready).expect("ready");
    let said = world.recant(&format!("commit {id}")).with(3);
    assert!(said.stderr().contains("open for writing"), "{said}");
    assert!(!said.stderr().contains("rolled back first"), "the earlier session is not to blame: {said}");
    let said = world.recant(&format!("commit {id} --force")).ok();
    assert!(said.stderr().contains("/mapped") && said.stderr().contains("open for writing"), "{said}");
    writer.stdin.take().expect("a pipe").write_all(b"go\n").expect("it reads");
    assert!(writer.wait().expect("its end").success());
    let said = world.recant(&format!("rollback {id}")).with(3);
    assert!(said.stderr().contains("was written to since by a process that had it open"), "{said}");
    assert_eq!(world.read("mapped"), "new");
    world.recant(&format!("rollback {id} --force")).ok();
    assert_eq!(world.read("mapped"), "LATEcontent");
}

/// A write in the tick of the clock in which the original's time was taken leaves that as it is.
#[test]
fn what_is_appended_without_another_time_is_no_damage() {
    let world = World::new();
    world.write("f", "old");
    let id = world.begin();
    world.stage_write(&id, "f", "new");
    let mut writer = std::fs::File::options().append(true).open(world.path("f")).expect("the file");
    world.recant(&format!("commit {id} --force")).ok();
    let then = writer.metadata().and_then(|found| found.modified()).expect("a time");
    writer.write_all(b" and late").and_then(|()| writer.set_modified(then)).expect("a write");
    drop(writer);
    let said = world.recant(&format!("checkpoint verify {id}")).with(3);
    assert!(said.stdout().contains("was written to since") || said.stderr().contains("was written to since"), "{said}");
    let said = world.recant(&format!("rollback {id}")).with(3);
    assert!(said.stderr().contains("was written to since by a process that had it open"), "{said}");
    world.recant(&format!("rollback {id} --force")).ok();
    assert_eq!(world.read("f"), "old and late");
}

#[test]
fn what_is_written_through_a_name_outside_of_the_session_is_found_and_comes_back_with_its_group() {
    use std::os::unix::fs::MetadataExt;
    let world = World::new();
    world.write("inside", "old").link("inside", "../outside");
    let ino = |name: &str| world.path(name).metadata().expect("a file").ino();
    let id = world.begin();
    world.stage_write(&id, "inside", "new");
    let said = world.recant(&format!("commit {id}")).ok();
    assert!(said.stderr().contains("/inside: the original has hard links outside the session"), "{said}");
    assert_eq!((world.read("inside"), world.read("../outside")), ("new".into(), "old".into()));
    world.write("../outside", "written later");
    let said = world.recant(&format!("rollback {id}")).with(3);
    assert!(said.stderr().contains("/inside") && said.stderr().contains("written to since"), "{said}");
    assert_eq!((world.read("inside"), world.read("../outside")), ("new".into(), "written later".into()));
    world.recant(&format!("rollback {id} --force")).ok();
    assert_eq!((world.read("inside"), ino("inside")), ("written later".into(), ino("../outside")));
}

/// Between the step that moved it and the end: the commit itself says so, and the rollback.
#[test]
fn what_is_written_to_an_original_that_has_just_been_moved_is_named_at_the_end_of_the_commit() {
    let world = World::new();
    world.write("inside", "old").link("inside", "../outside");
    let id = world.begin();
    world.stage_write(&id, "inside", "new");
    let log = world.root().join("steps");
    world.call(["commit", &id]).env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
    world.recant(&format!("rollback {id}")).ok();
    world.call(["redo", &id]).env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
    world.recant(&format!("rollback {id}")).ok();
    let steps = std::fs::read_to_string(log).expect("the steps");
    let is_seal = |step: &str| step.contains("renameat ") && step.contains("session.json.new");
    let sealed = 1 + steps.lines().position(is_seal).expect("the seal");
    let late = format!("run:{sealed}:printf late >> {}", world.path("../outside").display());
    let said = world.call(["redo", &id]).env("RECANT_STEPS", late).run().ok();
    assert!(said.stderr().contains("/inside: the previous object was written to after it was moved"), "{said}");
    let said = world.recant(&format!("rollback {id}")).with(3);
    assert!(said.stderr().contains("/inside") && said.stderr().contains("written to since"), "{said}");
    world.recant(&format!("rollback {id} --force")).ok();
    assert_eq!(world.read("inside"), "oldlate");
}

/// Between two file systems a copy of the original is kept. Whoever had the original itself open wrote to what goes.
#[test]
fn what_is_written_to_an_original_after_it_was_copied_is_named_and_stays() {
    let shm = Path::new("/dev/shm");
    if !shm.is_dir() {
        skip("two file systems: there is no /dev/shm");
        return;
    }
    for (write, before, late) in [("' and late' >>", "old", "old and late"), ("late 1<>", "mine", "late")] {
        let mut world = World::on(shm);
        let store = tempfile::tempdir().expect("a directory of another file system");
        world.set("RECANT_STORE", store.path().join("store"));
        world.write("f", before);
        let id = world.begin();
        world.stage_write(&id, "f", "new");
        world.recant(&format!("commit {id}")).ok();
        let redo = |steps: String| {
            world.recant(&format!("rollback {id}")).ok();
            world.call(["redo", &id]).env("RECANT_STEPS", steps).run().ok()
        };
        let log = world.root().join("steps");
        redo(format!("log:{}", log.display()));
        let steps = std::fs::read_to_string(log).expect("the steps");
        let is_seal = |step: &str| step.contains("renameat ") && step.contains("session.json.new");
        let sealed = 1 + steps.lines().position(is_seal).expect("the seal");
        // What came off the tree lies beside it until it is let go.
        let said = redo(format!("run:{sealed}:printf {write} $(ls -d {}/.recant-*)", world.tree().display()));
        assert!(said.stderr().contains("its last content is kept as"), "{said}");
        let kept: Vec<_> = world.leftovers().into_iter().map(|name| world.read(name)).collect();
        assert_eq!(kept, [late], "{said}");
        assert_eq!(world.read("f"), "new");
        // Nothing that is done later takes that name, or what lies there.
        for verb in ["rollback", "redo", "rollback"] {
            world.recant(&format!("{verb} {id}")).ok();
            let kept: Vec<_> = world.leftovers().into_iter().map(|name| world.read(name)).collect();
            assert_eq!(kept, [late], "{verb}");
        }
        assert_eq!(world.read("f"), before);
    }
}

/// The same for who writes only once the commit is done: until then nothing tells but that he has it open.
#[test]
fn what_is_written_to_an_original_that_was_copied_once_all_is_done_is_still_somewhere() {
    let shm = Path::new("/dev/shm");
    if !shm.is_dir() {
        skip("two file systems: there is no /dev/shm");
        return;
    }
    for force in [false, true] {
        let mut world = World::on(shm);
        let store = tempfile::tempdir().expect("a directory of another file system");
        world.set("RECANT_STORE", store.path().join("store"));
        world.write("f", "old");
        let id = world.begin();
        world.stage_write(&id, "f", "new");
        let open = || std::fs::File::options().append(true).open(world.path("f")).expect("the file");
        // By force: open all the time. Else: opened when planning, which asks for a lease, is over.
        let mut writer = force.then(open);
        let (ready, go) = (world.root().join("ready"), world.root().join("go"));
        let script = format!(
            "(exec 7>> f; touch {ready}; until test -e {go}; do sleep 0.02; done; printf ' and late' >&7; rm {go}) > /dev/null 2>&1 &\n\
             until test -e {ready}; do sleep 0.02; done\n",
            ready = ready.display(),
            go = go.display()
        );
        let hook = world.root().join("hook");
        std::fs::write(&hook, script).expect("a script");
        let said = if force {
            world.recant(&format!("commit {id} --force")).ok()
        } else {
            let orders = format!("run:12:sh {} < /dev/null", hook.display());
            world.call(["commit", &id]).env("RECANT_STEPS", orders).run().ok()
        };
        match &mut writer {
            Some(file) => file.write_all(b" and late").expect("a write"),
            None => {
                std::fs::write(&go, "").expect("a word");
                while go.exists() {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
            }
        }
        drop(writer);
        assert!(said.stderr().contains("open for writing; the file with its writes is kept as"), "by force: {force}: {said}");
        let kept: Vec<_> = world.leftovers().into_iter().map(|name| world.read(name)).collect();
        assert_eq!(kept, ["old and late"], "by force: {force}: {said}");
        assert_eq!(world.read("f"), "new");
        let undone = world.call(["rollback", &id]).env("RECANT_STEPS", "kill:14").run().with(137);
        world.recant("recover").ok();
        world.recant(&format!("rollback {id}")).ok();
        assert_eq!(world.read("f"), "old");
        let kept: Vec<_> = world.leftovers().into_iter().map(|name| world.read(name)).collect();
        assert_eq!(kept, ["old and late"], "{undone}");
    }
}

/// The path in it is quoted once.
#[test]
fn what_was_put_aside_stands_in_the_log_as_it_was_said() {
    let shm = Path::new("/dev/shm");
    if !shm.is_dir() {
        skip("two file systems: there is no /dev/shm");
        return;
    }
    for name in ["a\nb", "a\u{202e}b", "a b"] {
        let mut world = World::on(shm);
        let store = tempfile::tempdir().expect("a directory of another file system");
        world.set("RECANT_STORE", store.path().join("store"));
        world.write(name, "old");
        let id = world.begin();
        world.stage_write(&id, name, "new");
        let _writer = std::fs::File::options().append(true).open(world.path(name)).expect("the file");
        let said = world.recant(&format!("commit {id} --force")).ok().stderr();
        let note = said.lines().find_map(|line| line.strip_prefix("recant: ").filter(|line| line.contains(" is kept as ")));
        let log = world.recant("log").ok().stdout();
        assert!(log.lines().any(|line| line.strip_prefix("  ") == note), "{said}{log}");
    }
}

/// The settling that put it aside was cut off: the recovery says so. Where a rename has no flags, it has both names for a moment.
#[test]
fn what_was_put_aside_before_a_kill_is_named_by_the_recovery() {
    let shm = Path::new("/dev/shm");
    if !shm.is_dir() {
        skip("two file systems: there is no /dev/shm");
        return;
    }
    let store = tempfile::tempdir().expect("a directory of another file system");
    let commit_with = |name: &str, steps: &str| {
        let mut world = World::on(shm);
        world.set("RECANT_STORE", store.path().join(name));
        world.write("f", "old");
        let id = world.begin();
        world.stage_write(&id, "f", "new");
        let mut writer = std::fs::File::options().append(true).open(world.path("f")).expect("the file");
        let said = world.call(["commit", &id, "--force"]).env("RECANT_STEPS", steps).run();
        writer.write_all(b" and late").expect("a write");
        (world, said)
    };
    let log = store.path().join("steps");
    commit_with("first", &format!("log:{}", log.display())).1.ok();
    let steps = std::fs::read_to_string(log).expect("the steps");
    // Behind the journal's end nothing is left for a recovery to find: there is the log.
    let (world, said) = commit_with("ended", &format!("kill:{}", steps.lines().count()));
    said.with(137);
    let recovered = world.recant("recover").ok();
    assert!(format!("{recovered}").contains("nothing was interrupted"), "{recovered}");
    let noted = world.recant("log last").ok();
    let [kept] = &world.leftovers()[..] else { panic!("one file is put aside: {:?}", world.leftovers()) };
    assert!(noted.stdout().contains(&format!(" is kept as {}", world.path(kept).display())), "{noted}");
    let aside = 1 + steps.lines().position(|step| step.contains("-kept-")).expect("it is put aside");
    for (name, steps) in [("renamed", format!("kill:{}", aside + 1)), ("linked", format!("fail:{aside}:22;kill:{}", aside + 2))] {
        let (world, said) = commit_with(name, &steps);
        said.with(137);
        let recovered = world.recant("recover").ok();
        assert!(format!("{recovered}").contains(" is kept as "), "{name}: {recovered}");
        let kept: Vec<_> = world.leftovers().into_iter().map(|name| world.read(name)).collect();
        assert_eq!(kept, ["old and late"], "{name}: {recovered}");
        // Killed again before each of its own steps, the journal's end and the line of the log among them.
        for n in common::steps() {
            let (world, _) = commit_with(&format!("{name} {n}"), &steps);
            let again = world.call(["recover"]).env("RECANT_STEPS", format!("kill:{n}")).run();
            let recovered = world.recant("recover").ok();
            let noted = world.recant("log last").ok();
            let kept: Vec<_> = world.leftovers().into_iter().map(|name| world.read(name)).collect();
            assert_eq!(kept, ["old and late"], "{name}, before step {n}: {again}{recovered}");
            assert!(noted.stdout().contains(" is kept as "), "{name}, before step {n}: {again}{recovered}{noted}");
            if again.status == 0 {
                assert!(n > 5, "{name}: {again}");
                break;
            }
        }
    }
}

/// A session that is imported begins to count anew, and so does one whose store was copied back: what was kept stays, and is in nobody's
/// way.
#[test]
fn what_was_put_aside_is_in_the_way_of_no_later_commit_of_an_imported_session() {
    let shm = Path::new("/dev/shm");
    if !shm.is_dir() {
        skip("two file systems: there is no /dev/shm");
        return;
    }
    let mut world = World::on(shm);
    let store = tempfile::tempdir().expect("a directory of another file system");
    world.set("RECANT_STORE", store.path().join("store"));
    world.write("f", "old");
    let id = world.begin();
    world.stage_write(&id, "f", "new");
    for late in [" and late", " and later"] {
        let mut writer = std::fs::File::options().append(true).open(world.path("f")).expect("the file");
        world.recant(&format!("commit {id} --force")).ok();
        writer.write_all(late.as_bytes()).expect("a write");
        world.recant(&format!("rollback {id} --force")).ok();
        let stream = world.recant(&format!("session export {id}")).ok().out;
        world.recant(&format!("session prune {id} --yes")).ok();
        world.call(["session", "import"]).stdin(stream).run().ok();
    }
    let kept: BTreeSet<_> = world.leftovers().into_iter().map(|name| world.read(name)).collect();
    assert_eq!(kept, ["old and late".to_owned(), "old and later".into()].into());
    assert_eq!(world.read("f"), "old");
}

/// A time that the commit itself sets under one name is that of the inode which goes under the other.
#[test]
fn what_recant_sets_under_another_name_is_not_said_to_be_somebody_s_write() {
    if !common::can_run() {
        return skip("a time and a name: recant run does not work here");
    }
    let world = World::new();
    world.write("f", "one").link("f", "g");
    let script = "rm f; touch -d 2001-01-01 g";
    world.call(["run", "-q", "--", "sh", "-c", script]).run().ok();
    let log = world.root().join("steps");
    let said = world.call(["commit", "last"]).env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
    assert!(!said.stderr().contains("was written to"), "{said}");
    world.recant("rollback last").ok();
    // What somebody does write then shows in the size.
    let steps = std::fs::read_to_string(log).expect("the steps");
    let sealed = 1 + steps.lines().position(|step| step.contains("session.json.new")).expect("a seal");
    world.call(["run", "-q", "--", "sh", "-c", script]).run().ok();
    let order = format!("run:{sealed}:echo more >> {}", world.path("g").display());
    let said = world.call(["commit", "last"]).env("RECANT_STEPS", order).run().ok();
    assert!(said.stderr().contains("/f: the previous object was written to after"), "{said}");
    // So it is where originals are copied: nothing is kept aside that nobody has written to.
    let shm = Path::new("/dev/shm");
    if !shm.is_dir() {
        return skip("two file systems: there is no /dev/shm");
    }
    let (mut world, store) = (World::on(shm), tempfile::tempdir().expect("a directory of another file system"));
    world.set("RECANT_STORE", store.path().join("store"));
    world.write("f", "one").link("f", "g");
    world.call(["run", "-q", "--", "sh", "-c", script]).run().ok();
    let said = world.recant("commit last").ok();
    assert!(!said.stderr().contains("was written to"), "{said}");
    assert_eq!(world.leftovers(), [""; 0], "{said}");
}

/// Somebody has put the content back himself: with the one that is kept would go what is written to that.
#[test]
fn what_is_written_to_an_original_is_not_let_go_where_its_content_is_back() {
    let world = World::new();
    world.write("f", "old");
    let id = world.begin();
    world.stage_write(&id, "f", "new");
    let mut writer = std::fs::File::options().append(true).open(world.path("f")).expect("the file");
    world.recant(&format!("commit {id} --force")).ok();
    world.write("f", "old");
    let refused = || {
        let said = world.recant(&format!("rollback {id}")).with(3);
        assert!(said.stderr().contains("was written to since by a process that had it open"), "{said}");
    };
    // It has it open still.
    refused();
    writer.write_all(b" and late").expect("a write");
    drop(writer);
    refused();
    world.recant(&format!("rollback {id} --force")).ok();
    assert_eq!(world.read("f"), "old and late");
    assert_eq!(world.call(["cat", &id, "f", "--displaced"]).run().ok().stdout(), "old");
}

/// The same at a redo, of what was committed.
#[test]
fn what_is_written_to_held_content_is_not_let_go_where_it_is_there_again() {
    let world = World::new();
    let id = world.begin();
    world.stage_write(&id, "f", "new");
    world.recant(&format!("commit {id}")).ok();
    let mut writer = std::fs::File::options().append(true).open(world.path("f")).expect("the file");
    world.recant(&format!("rollback {id} --force")).ok();
    world.write("f", "new");
    writer.write_all(b" and late").expect("a write");
    drop(writer);
    let said = world.recant(&format!("redo {id}")).with(3);
    assert!(said.stderr().contains("expected the held content as it was, found it was written to since"), "{said}");
    assert_eq!(world.read("f"), "new");
}

/// A directory that was moved away is still the working directory of who works in it: what he makes there lies in the store.
#[test]
fn what_is_made_in_a_directory_that_is_kept_comes_back_with_it_or_stays_there() {
    let world = World::new();
    world.write("d/f", "f");
    let id = world.begin();
    world.recant(&format!("session delete {id} d -r")).ok();
    let working = rustix::fs::openat(
        rustix::fs::CWD,
        world.path("d"),
        rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY,
        rustix::fs::Mode::empty(),
    )
    .expect("the directory");
    world.recant(&format!("commit {id}")).ok();
    let made = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
    drop(rustix::fs::openat(&working, "late", made, rustix::fs::Mode::from_raw_mode(0o644)).expect("a file"));
    let refused = || {
        let before = world.manifest();
        let said = world.recant(&format!("rollback {id}")).with(3);
        assert!(said.stderr().contains("d: conflict") && said.stderr().contains("was put into it since"), "{said}");
        before.assert_same(&world.manifest(), "a conflict");
    };
    refused();
    let said = world.call(["checkpoint", "verify", &id]).run();
    assert!(said.status != 0 && format!("{said}").contains("something was put into the kept directory"), "{said}");
    // A stream carries no directory with what is in it.
    let said = world.call(["session", "export", "--checkpoint", &id]).run().with(1);
    assert!(said.stderr().contains("/d: the kept directory is not empty"), "{said}");
    // Also where it has been made again, and nothing would have to be done.
    world.mkdir("d");
    refused();
    world.remove("d");
    let said = world.recant(&format!("rollback {id} --force")).ok();
    assert!(said.stderr().contains("/d: something was put into it since"), "{said}");
    assert!(world.read("d/f") == "f" && world.exists("d/late"));
}

/// A directory that goes for good at the end of an operation, as a copy is kept of it, or it is there already; and something is put into it
/// on its way.
struct LetGo {
    world: World,
    id: String,
    store: std::path::PathBuf,
    two: bool,
    _elsewhere: tempfile::TempDir,
}

impl LetGo {
    fn new(two: bool) -> Self {
        let mut world = World::new();
        let elsewhere = tempfile::tempdir_in("/dev/shm").expect("a directory of another file system");
        let store = if two { elsewhere.path().join("store") } else { world.store() };
        world.set("RECANT_STORE", &store);
        world.mkdir("d");
        let id = world.begin();
        world.recant(&format!("session delete {id} d")).ok();
        if !two {
            world.recant(&format!("commit {id}")).ok();
            world.mkdir("d");
        }
        Self { world, id, store, two, _elsewhere: elsewhere }
    }

    /// The operation, with something put in right before step `n`.
    fn run(&self, n: usize, then: &str) -> Said {
        let (store, tree) = (self.store.display(), self.world.path(""));
        let spots =
            if self.two { format!("{}/.recant-*/", tree.display()) } else { format!("{store}/sessions/*/checkpoint/objects/*/") };
        let steps = format!("run:{n}:ls -d {spots} 2>&- | xargs -I% touch %late{then}");
        let verb = if self.two { "commit" } else { "rollback" };
        self.world.call([verb, &self.id]).env("RECANT_STEPS", steps).run()
    }

    /// Where that is now; empty where it was not there to be put in.
    fn late(&self) -> String {
        let tree = self.world.path("");
        let find = [self.store.as_path(), &tree, Path::new("-name"), Path::new("late")];
        self.world.program("find", find).run().ok().stdout().trim_end().to_owned()
    }

    fn assert_named(&self, said: &str, what: &str) {
        let late = self.late();
        let directory = late.strip_suffix("/late").expect("its directory");
        let place = directory.split_once(&format!("{}/", self.id)).map_or(directory, |(_, below)| below);
        assert!(said.contains(&format!("is kept in {place}")) || said.contains(&format!("is kept as {place}")), "{late}: {what}");
    }
}

#[test]
fn what_is_made_in_a_directory_that_is_let_go_stays_and_is_named() {
    if !Path::new("/dev/shm").is_dir() {
        return skip("two file systems: there is no /dev/shm");
    }
    for two in [true, false] {
        let mut seen = Vec::new();
        for n in 1..100 {
            let scene = LetGo::new(two);
            let said = scene.run(n, "");
            let what = format!("two: {two}, before step {n}: {said}");
            match (scene.late().is_empty(), said.status) {
                (true, 0) if !seen.is_empty() => break,
                (true, 0) | (false, 3 | 7) => {}
                (false, 0) => {
                    seen.push(n);
                    scene.assert_named(&said.stderr(), &what);
                    scene.world.recant("session prune --keep 0").ok();
                    assert!(!scene.late().is_empty(), "pruned: {what}");
                }
                _ => panic!("{what}"),
            }
        }
        // Killed from there on: who settles it names it, or the log does.
        let (mut killed, n) = (0, *seen.last().expect("some"));
        for m in n + 1..n + 100 {
            let scene = LetGo::new(two);
            let said = scene.run(n, &format!(";kill:{m}"));
            if said.status != 137 {
                break;
            }
            killed += 1;
            let (recovered, log) = (scene.world.recant("recover").ok(), scene.world.recant("log").ok());
            let what = format!("two: {two}, killed before step {m}: {recovered} {log}");
            scene.assert_named(&format!("{}{}{}", recovered.stdout(), recovered.stderr(), log.stdout()), &what);
        }
        println!("two: {two}: {} kept, {killed} killed", seen.len());
        assert!(seen.len() > 3 && killed > 3);
    }
}

/// A new directory comes off the tree again, as the commit fails later on; who works in it goes on where it lies then.
struct TakenBack {
    world: World,
    id: String,
    two: bool,
    _elsewhere: tempfile::TempDir,
}

impl TakenBack {
    fn new(two: bool) -> Self {
        let elsewhere = tempfile::tempdir_in("/dev/shm").expect("a directory of another file system");
        let mut world = World::new();
        if two {
            world.set("RECANT_STORE", elsewhere.path().join("store"));
        }
        let id = world.begin();
        world.recant(&format!("session mkdir {id} d")).ok();
        world.stage_write(&id, "e", "new");
        Self { world, id, two, _elsewhere: elsewhere }
    }

    fn commit(&self, steps: &str) -> Said {
        self.world.call(["commit", &self.id]).env("RECANT_STEPS", steps).run()
    }

    /// The step that puts what comes after the directory.
    fn fails_at(&self) -> usize {
        let log = self.world.root().join("steps");
        self.commit(&format!("log:{}", log.display())).ok();
        let steps = std::fs::read_to_string(log).expect("a log");
        1 + steps.lines().position(|step| step.contains("renameat2") && step.ends_with("/e")).expect("the second one is put")
    }

    /// The order to put something into the directory, where it lies beside the tree at step `n`.
    fn put(&self, n: usize) -> String {
        let (tree, store) = (self.world.path(""), self.world.store());
        let spots = if self.two {
            format!("{}/.recant-*/", tree.display())
        } else {
            format!("{}/sessions/*/held/objects/*/", store.display())
        };
        format!("run:{n}:ls -d {spots} 2>&- | xargs -I% touch %late")
    }

    /// The directory in which that is now; none where it was not there to be put in.
    fn late(&self) -> Option<String> {
        let find = [self.world.root().as_os_str(), "-name".as_ref(), "late".as_ref()];
        let found = self.world.program("find", find).run().ok().stdout();
        found.trim_end().strip_suffix("/late").map(String::from)
    }
}

#[test]
fn what_is_made_in_a_new_directory_that_an_undo_takes_back_stays_and_is_named() {
    if !Path::new("/dev/shm").is_dir() {
        return skip("two file systems: there is no /dev/shm");
    }
    for two in [true, false] {
        let fails = TakenBack::new(two).fails_at();
        let mut seen = Vec::new();
        for n in fails + 1..fails + 60 {
            let scene = TakenBack::new(two);
            let said = scene.commit(&format!("fail:{fails}:5;{}", scene.put(n)));
            match scene.late() {
                None if !seen.is_empty() => break,
                None => {}
                Some(directory) => {
                    seen.push(n);
                    let named = said.stderr().contains(&format!("{directory}: a process that worked in the directory"));
                    assert!(said.status == 4 && named, "two: {two}, {directory}: {said}");
                    // It is nobody's obstacle.
                    scene.world.recant("recover").ok();
                    scene.world.recant(&format!("session write {} f", scene.id)).ok();
                    scene.world.recant(&format!("commit {}", scene.id)).ok();
                    scene.world.recant("session prune --keep 0").ok();
                    assert!(Path::new(&directory).join("late").exists());
                }
            }
        }
        let (n, mut killed) = (*seen.last().expect("some"), 0);
        for m in n + 1..n + 100 {
            let scene = TakenBack::new(two);
            let said = scene.commit(&format!("fail:{fails}:5;{};kill:{m}", scene.put(n)));
            if said.status != 137 {
                break;
            }
            killed += 1;
            let (recovered, log) = (scene.world.recant("recover"), scene.world.recant("log").ok());
            let directory = scene.late().expect("it stays");
            let said = [recovered.stdout(), recovered.stderr(), log.stdout()].concat();
            let named = said.contains(&format!("{directory}: a process that worked in the directory"));
            assert!([0, 4].contains(&recovered.status) && named, "two: {two}, {directory}, killed before step {m}: {said}");
        }
        println!("two: {two}: {} kept, {killed} killed", seen.len());
        assert!(killed > 3);
    }
}

/// So it is where something else has to stay on the tree, and a journal of that alone is left.
#[test]
fn what_is_made_in_a_new_directory_is_named_beside_what_cannot_be_taken_back() {
    if !Path::new("/dev/shm").is_dir() {
        return skip("two file systems: there is no /dev/shm");
    }
    for two in [true, false] {
        let scene = || {
            let scene = TakenBack::new(two);
            scene.world.stage_write(&scene.id, "c", "new");
            scene
        };
        let fails = scene().fails_at();
        // Put before the directory, and taken back behind it: its content has to be there still.
        let edit = |scene: &TakenBack| format!("run:{}:echo more >> {}", fails + 1, scene.world.path("c").display());
        let (mut last, mut named) = (None, 0);
        for n in fails + 2..fails + 60 {
            let scene = scene();
            let said = scene.commit(&format!("fail:{fails}:5;{};{}", edit(&scene), scene.put(n)));
            let Some(directory) = scene.late() else { continue };
            let name = directory.rsplit('/').next().expect("a name");
            let both = [format!("{name}: a process that worked in the directory"), "c: somebody changed".to_owned()];
            assert!(
                said.status == 4 && both.iter().all(|what| said.stderr().contains(what)),
                "two: {two}, before step {n}: {said}"
            );
            (last, named) = (Some(n), named + 1);
        }
        let (n, mut killed) = (last.expect("it was there"), 0);
        for m in n + 1..n + 100 {
            let scene = scene();
            let said = scene.commit(&format!("fail:{fails}:5;{};{};kill:{m}", edit(&scene), scene.put(n)));
            if said.status != 137 {
                break;
            }
            killed += 1;
            let (recovered, log) = (scene.world.recant("recover"), scene.world.recant("log").ok());
            let directory = scene.late().expect("it stays");
            let told = [recovered.stdout(), recovered.stderr(), log.stdout()].concat();
            let is_told = told.contains(&format!("{directory}: a process that worked in the directory"));
            let ended = recovered.status == 4 || recovered.stderr().contains("nothing was interrupted");
            assert!(ended && is_told, "two: {two}, {directory}, killed before step {m}: {recovered}{log}");
        }
        println!("two: {two}: {named} named, {killed} killed");
        assert!(killed > 3);
    }
}

/// Between two file systems what goes lies on its way beside the tree, where somebody may tidy up after a kill.
#[test]
fn what_somebody_removes_on_its_way_is_named_with_the_copy_of_the_session() {
    if !Path::new("/dev/shm").is_dir() {
        return skip("two file systems: there is no /dev/shm");
    }
    {
        let mut removed = 0;
        for n in common::steps() {
            let elsewhere = tempfile::tempdir_in("/dev/shm").expect("a directory of another file system");
            let mut world = World::new();
            world.set("RECANT_STORE", elsewhere.path().join("store")).write("f", "the only one");
            let id = world.begin();
            world.recant(&format!("session delete {id} f")).ok();
            let killed = world.call(["commit", &id]).env("RECANT_STEPS", format!("kill:{n}")).run();
            if killed.status == 0 {
                assert!(removed > 0, "it was on its way at some step");
                break;
            }
            let on_its_way = world.leftovers().into_iter().find(|name| world.read(name) == "the only one");
            let Some(name) = on_its_way.filter(|_| !world.exists("f")) else { continue };
            world.remove(&name);
            let what = format!("killed before step {n}");
            let recovered = world.recant("recover");
            if recovered.status == 0 && recovered.stdout().contains("was done; it is settled now") {
                continue;
            }
            removed += 1;
            let recovered = recovered.with(4);
            assert!(
                recovered.stderr().contains("/tree/f: somebody removed it, at its path or on its way"),
                "{what}: {recovered}"
            );
            let kept = world.recant(&format!("cat {id} f --displaced")).ok();
            assert_eq!(kept.stdout(), "the only one", "{what}");
            world.assert_tidy(&what);
        }
    }
}
