//! Originals that are written to while they are moved into the checkpoint, or afterwards: by whoever had them open, mapped, or knows them
//! by another name. What is written is never lost: it is on the tree, in the session, or its file conflicts; and it is said.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::sweep::{Came, Sweep, is_due, is_whole, steps_of};
use crate::common::{self, Said, World, skip};
use crate::{Scene, numbers, seal};

/// Somebody has a file of the tree open, and appends to it.
fn writer(scene: &Scene, name: &str) -> File {
    File::options().append(true).open(scene.world.path(name)).expect("the file")
}

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
                    "committed" => "rollback",
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
    let scene = Scene::of_a_file("old", false).expect("one file system");
    let mut writer = writer(&scene, "f");
    scene.ok("commit --force");
    let then = writer.metadata().and_then(|found| found.modified()).expect("a time");
    writer.write_all(b" and late").and_then(|()| writer.set_modified(then)).expect("a write");
    drop(writer);
    let said = scene.call("checkpoint verify").run().with(3);
    assert!(said.stdout().contains("was written to since") || said.stderr().contains("was written to since"), "{said}");
    let said = scene.call("rollback").run().with(3);
    assert!(said.stderr().contains("was written to since by a process that had it open"), "{said}");
    scene.ok("rollback --force");
    assert_eq!(scene.world.read("f"), "old and late");
}

/// Between the step that moved it and the end, or later: the commit itself says so, and the rollback.
#[test]
fn what_is_written_through_a_name_outside_of_the_session_is_found_and_comes_back_with_its_group() {
    use std::os::unix::fs::MetadataExt;
    let staged = || {
        let mut scene = Scene::new(false).expect("one file system");
        scene.world.write("inside", "old").link("inside", "../outside");
        scene.begin(["write inside new"]);
        scene
    };
    let scene = staged();
    let sealed = seal(&steps_of(|| scene.call("commit")));
    for is_done in [false, true] {
        let scene = staged();
        let world = &scene.world;
        let ino = |name: &str| world.path(name).metadata().expect("a file").ino();
        let late = format!("printf late >> {}", world.path("../outside").display());
        let said = if is_done { scene.ok("commit") } else { scene.run("commit", format!("run:{sealed}:{late}")).ok() };
        assert!(said.stderr().contains("/inside: the original has hard links outside the session"), "{said}");
        let is_said = said.stderr().contains("/inside: the previous object was written to after it was moved");
        assert_eq!(is_said, !is_done, "{said}");
        if is_done {
            assert_eq!((world.read("inside"), world.read("../outside")), ("new".into(), "old".into()));
            scene.shell(&late);
        }
        let said = scene.call("rollback").run().with(3);
        assert!(said.stderr().contains("/inside") && said.stderr().contains("written to since"), "{said}");
        assert_eq!((world.read("inside"), world.read("../outside")), ("new".into(), "oldlate".into()));
        scene.ok("rollback --force");
        assert_eq!((world.read("inside"), ino("inside")), ("oldlate".into(), ino("../outside")));
    }
}

/// Between two file systems a copy of the original is kept. Whoever had the original itself open wrote to what goes.
#[test]
fn what_is_written_to_an_original_after_it_was_copied_is_named_and_stays() {
    for (write, before, late) in [("' and late' >>", "old", "old and late"), ("late 1<>", "mine", "late")] {
        let Some(scene) = Scene::of_a_file(before, true) else { return };
        let sealed = seal(&scene.steps("commit"));
        // What came off the tree lies beside it until it is let go.
        let said =
            scene.run("commit", format!("run:{sealed}:printf {write} $(ls -d {}/.recant-*)", scene.world.tree().display()));
        assert!(said.status == 0 && said.stderr().contains("its last content is kept as"), "{said}");
        assert_eq!((scene.kept(), scene.world.read("f")), (vec![late.to_owned()], "new".into()), "{said}");
        // Nothing that is done later takes that name, or what lies there.
        for verb in ["rollback", "redo", "rollback"] {
            scene.ok(verb);
            assert_eq!(scene.kept(), [late], "{verb}");
        }
        assert_eq!(scene.world.read("f"), before);
    }
}

/// The same for who writes only once the commit is done: until then nothing tells but that he has it open.
#[test]
fn what_is_written_to_an_original_that_was_copied_once_all_is_done_is_still_somewhere() {
    for force in [false, true] {
        let Some(scene) = Scene::of_a_file("old", true) else { return };
        // By force: open all the time. Else: opened when planning, which asks for a lease, is over.
        let mut writer = force.then(|| writer(&scene, "f"));
        let [ready, go, hook] = ["ready", "go", "hook"].map(|name| scene.world.root().join(name));
        let script = format!(
            "(exec 7>> f; touch {ready}; until test -e {go}; do sleep 0.02; done; printf ' and late' >&7; rm {go}) > /dev/null 2>&1 &\n\
             until test -e {ready}; do sleep 0.02; done\n",
            ready = ready.display(),
            go = go.display()
        );
        std::fs::write(&hook, script).expect("a script");
        let said = if force {
            scene.ok("commit --force")
        } else {
            scene.run("commit", format!("run:12:sh {} < /dev/null", hook.display())).ok()
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
        assert_eq!((scene.kept(), scene.world.read("f")), (vec!["old and late".to_owned()], "new".into()), "{force}: {said}");
        scene.kill_before("rollback", 14);
        scene.world.recant("recover").ok();
        scene.ok("rollback");
        assert_eq!((scene.kept(), scene.world.read("f")), (vec!["old and late".to_owned()], "old".into()), "{force}: {said}");
    }
}

/// The path in it is quoted once.
#[test]
fn what_was_put_aside_stands_in_the_log_as_it_was_said() {
    for name in ["a\nb", "a\u{202e}b", "a b"] {
        let Some(mut scene) = Scene::new(true) else { return };
        scene.world.write(name, "old");
        scene.id = scene.world.begin();
        scene.world.stage_write(&scene.id, name, "new");
        let _writer = writer(&scene, name);
        let said = scene.ok("commit --force").stderr();
        let note = said.lines().find_map(|line| line.strip_prefix("recant: ").filter(|line| line.contains(" is kept as ")));
        let log = scene.world.recant("log").ok().stdout();
        assert!(log.lines().any(|line| line.strip_prefix("  ") == note), "{said}{log}");
    }
}

/// The settling that put it aside was cut off: the recovery says so. Where a rename has no flags, it has both names for a moment.
#[test]
fn what_was_put_aside_before_a_kill_is_named_by_the_recovery() {
    let Some(first) = Scene::of_a_file("old", true) else { return };
    let cut_off = |orders: &str| {
        let scene = Scene::of_a_file("old", true)?;
        let mut writer = writer(&scene, "f");
        scene.run("commit --force", orders).with(137);
        writer.write_all(b" and late").expect("a write");
        Some(scene)
    };
    let open = writer(&first, "f");
    let steps = steps_of(|| first.call("commit --force"));
    drop(open);
    // Behind the journal's end nothing is left for a recovery to find: there is the log.
    let scene = cut_off(&format!("kill:{}", steps.len())).expect("two file systems");
    let recovered = scene.world.recant("recover").ok();
    assert!(format!("{recovered}").contains("nothing was interrupted"), "{recovered}");
    let noted = scene.world.recant("log last").ok();
    let [kept] = &scene.world.leftovers()[..] else { panic!("one file is put aside: {:?}", scene.kept()) };
    assert!(noted.stdout().contains(&format!(" is kept as {}", scene.world.path(kept).display())), "{noted}");
    let aside = numbers(&steps, "", "-kept-")[0];
    for (name, orders) in [("renamed", format!("kill:{}", aside + 1)), ("linked", format!("fail:{aside}:22;kill:{}", aside + 2))]
    {
        // Killed again before each of its own steps, the journal's end and the line of the log among them.
        let verb = |scene: &Scene| scene.world.call(["recover"]);
        let row = Sweep { name, scene: &|| cut_off(&orders), verb: &verb, order: "kill:N" };
        let tally = row.run(|scene, said, what| {
            let recovered = scene.world.recant("recover").ok();
            let noted = scene.world.recant("log last").ok();
            assert_eq!(scene.kept(), ["old and late"], "{what}{recovered}");
            assert!(noted.stdout().contains(" is kept as "), "{what}{recovered}{noted}");
            assert!(said.status == 137 || format!("{said}").contains(" is kept as "), "{what}");
            Came::Used(())
        });
        assert!(tally.steps >= 5, "{name}: {} steps", tally.steps);
    }
}

/// A session that is imported begins to count anew, and so does one whose store was copied back: what was kept stays, and is in nobody's
/// way.
#[test]
fn what_was_put_aside_is_in_the_way_of_no_later_commit_of_an_imported_session() {
    let Some(scene) = Scene::of_a_file("old", true) else { return };
    for late in [" and late", " and later"] {
        let mut writer = writer(&scene, "f");
        scene.ok("commit --force");
        writer.write_all(late.as_bytes()).expect("a write");
        scene.ok("rollback --force");
        let stream = scene.ok("session export").out;
        scene.ok("prune --sessions --yes");
        scene.world.call(["session", "import"]).stdin(stream).run().ok();
    }
    let kept: BTreeSet<_> = scene.kept().into_iter().collect();
    assert_eq!(kept, ["old and late".to_owned(), "old and later".into()].into());
    assert_eq!(scene.world.read("f"), "old");
}

/// A time that the commit itself sets under one name is that of the inode which goes under the other.
#[test]
fn what_recant_sets_under_another_name_is_not_said_to_be_somebody_s_write() {
    if !common::can_run() {
        return skip("a time and a name: recant run does not work here");
    }
    let captured = |two| {
        let scene = Scene::new(two)?;
        scene.world.write("f", "one").link("f", "g");
        scene.world.call(["run", "-q", "--", "sh", "-c", "rm f; touch -d 2001-01-01 g"]).run().ok();
        Some(scene)
    };
    // So it is where originals are copied: nothing is kept aside that nobody has written to.
    for scene in [false, true].into_iter().filter_map(captured) {
        let said = scene.world.recant("commit last").ok();
        assert!(!said.stderr().contains("was written to"), "{said}");
        assert_eq!(scene.world.leftovers(), [""; 0], "{said}");
    }
    // What somebody does write then shows in the size.
    let scene = captured(false).expect("one file system");
    let sealed = seal(&steps_of(|| scene.world.call(["commit", "last"])));
    let scene = captured(false).expect("one file system");
    let order = format!("run:{sealed}:echo more >> {}", scene.world.path("g").display());
    let said = scene.world.call(["commit", "last"]).env("RECANT_STEPS", order).run().ok();
    assert!(said.stderr().contains("/f: the previous object was written to after"), "{said}");
}

/// Somebody has put the content back himself: with the one that is kept would go what is written to that.
#[test]
fn what_is_written_to_an_original_is_not_let_go_where_its_content_is_back() {
    let scene = Scene::of_a_file("old", false).expect("one file system");
    let mut writer = writer(&scene, "f");
    scene.ok("commit --force");
    scene.world.write("f", "old");
    let refused = || {
        let said = scene.call("rollback").run().with(3);
        assert!(said.stderr().contains("was written to since by a process that had it open"), "{said}");
    };
    // It has it open still.
    refused();
    writer.write_all(b" and late").expect("a write");
    drop(writer);
    refused();
    scene.ok("rollback --force");
    assert_eq!((scene.world.read("f"), scene.displaced("f")), ("old and late".into(), "old".into()));
}

/// The same at a redo, of what was committed.
#[test]
fn what_is_written_to_held_content_is_not_let_go_where_it_is_there_again() {
    let mut scene = Scene::new(false).expect("one file system");
    scene.begin(["write f new"]);
    scene.ok("commit");
    let mut writer = writer(&scene, "f");
    scene.ok("rollback --force");
    scene.world.write("f", "new");
    writer.write_all(b" and late").expect("a write");
    drop(writer);
    let said = scene.call("redo").run().with(3);
    assert!(said.stderr().contains("the held content: it was written to since"), "{said}");
    assert_eq!(scene.world.read("f"), "new");
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
        assert!(said.stderr().contains("d: the kept original: something was put into it since"), "{said}");
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

/// Somebody works in a directory that an operation moves, and makes something in it before some step.
struct Working {
    scene: Scene,
    verb: &'static str,
    /// What happens besides.
    orders: String,
    /// Where the directory lies on its way.
    spots: String,
    /// How the verb ends where it was there then, and what it says of other paths.
    status: i32,
    says: &'static str,
    /// What is done afterwards, and takes nothing of it.
    then: &'static [&'static str],
}

impl Working {
    /// A directory goes for good at the end of an operation, as a copy is kept of it, or it is there already.
    fn let_go(two: bool) -> Option<Self> {
        let mut scene = Scene::new(two)?;
        scene.world.mkdir("d");
        scene.begin(["delete d"]);
        if !two {
            scene.ok("commit");
            scene.world.mkdir("d");
        }
        let spots = if two { scene.world.path(".recant-*/") } else { scene.session().join("checkpoint/objects/*/") };
        let (verb, spots) = (if two { "commit" } else { "rollback" }, spots.display().to_string());
        Some(Self { scene, verb, orders: String::new(), spots, status: 0, says: "", then: &["prune --sessions --keep 0"] })
    }

    /// A new directory comes off the tree again, as the commit fails at a later step; beside a file that somebody writes to, if `has_more`,
    /// which has to stay.
    fn taken_back(two: bool, has_more: bool, fails: usize) -> Option<Self> {
        let mut scene = Scene::new(two)?;
        scene.begin(["mkdir d", "write e new"]);
        let mut orders = format!("fail:{fails}:5;");
        if has_more {
            // Put before the directory, and taken back behind it: its content has to be there still.
            scene.world.stage(&scene.id, ["write c new"]);
            orders += &format!("run:{}:echo more >> {};", fails + 1, scene.world.path("c").display());
        }
        let spots = if two { scene.world.path(".recant-*/") } else { scene.session().join("held/objects/*/") };
        let (says, then): (_, &[_]) = match has_more {
            true => ("c: another process changed", &[]),
            // It is nobody's obstacle.
            false => ("", &["recover", "session write ID f", "commit ID", "prune --sessions --keep 0"]),
        };
        Some(Self { scene, verb: "commit", orders, spots: spots.display().to_string(), status: 4, says, then })
    }

    /// The verb, with something put into the directory right before step `n`.
    fn run(&self, n: usize, then: &str) -> Said {
        self.scene.run(self.verb, format!("{}run:{n}:ls -d {} 2>&- | xargs -I% touch %late{then}", self.orders, self.spots))
    }

    /// The directory in which that is now; none where it was not there to be put in.
    fn late(&self) -> Option<String> {
        let find = [self.scene.store.as_path(), &self.scene.world.path(""), Path::new("-name"), Path::new("late")];
        self.scene.world.program("find", find).run().ok().stdout().trim_end().strip_suffix("/late").map(String::from)
    }

    /// Whether the directory is named as the place of what came late.
    fn is_named(&self, directory: &str, said: &str) -> bool {
        let place = directory.split_once(&format!("{}/", self.scene.id)).map_or(directory, |(_, below)| below);
        match self.status {
            0 => said.contains(&format!("is kept in {place}")) || said.contains(&format!("is kept as {place}")),
            _ => said.contains(&format!("{directory}: a process that worked in the directory")),
        }
    }
}

/// From step `first` on something is put into the directory. Then the verb is killed behind that: who settles it names it, or the log does.
fn sweep_late(name: &str, first: usize, stage: &dyn Fn() -> Option<Working>) {
    let mut seen = Vec::new();
    for n in (first..first + 100).filter(|n| is_due(*n)) {
        let Some(working) = stage() else { return };
        let (said, late) = (working.run(n, ""), working.late());
        let what = format!("{name}, before step {n}: {said}");
        match late {
            Some(directory) if said.status == working.status => {
                seen.push(n);
                // Beside others it is named by its path in the tree or the store.
                let name = if working.says.is_empty() { None } else { directory.rsplit('/').next() };
                let is_named = working.is_named(name.unwrap_or(&directory), &said.stderr());
                assert!(is_named && said.stderr().contains(working.says), "{directory}: {what}");
                working
                    .then
                    .iter()
                    .for_each(|words| drop(working.scene.world.recant(&words.replace("ID", &working.scene.id)).ok()));
                assert!(Path::new(&directory).join("late").exists(), "{what}, then {:?}", working.then);
            }
            // It came before the operation began.
            Some(_) => assert!(working.status == 0 && [3, 7].contains(&said.status), "{what}"),
            None if !seen.is_empty() => break,
            None => assert!([working.status, if first > 1 { 1 } else { 0 }].contains(&said.status), "{what}"),
        }
    }
    let Some(last) = seen.last().copied() else { return assert!(!is_whole(), "{name}: at no step something could be put there") };
    let mut killed = 0;
    for m in (last + 1..last + 100).filter(|m| is_due(*m)) {
        let working = stage().expect("a scene that could be had before");
        let said = working.run(last, &format!(";kill:{m}"));
        if said.status != 137 {
            break;
        }
        killed += 1;
        let (recovered, log) = (working.scene.world.recant("recover"), working.scene.world.recant("log").ok());
        let told = [recovered.stdout(), recovered.stderr(), log.stdout()].concat();
        let directory = working.late().expect("it stays");
        let what = format!("{name}, killed before step {m}: {recovered}{log}");
        assert!(working.is_named(&directory, &told), "{directory}: {what}");
        let ended = match (working.status, working.says) {
            (0, _) => recovered.status == 0,
            (_, "") => [0, 4].contains(&recovered.status),
            _ => recovered.status == 4 || recovered.stderr().contains("nothing was interrupted"),
        };
        assert!(ended, "{what}");
    }
    println!("{name}: {} kept, {killed} killed", seen.len());
    assert!(!is_whole() || seen.len() > 3 && killed > 3, "{name}: {seen:?}, {killed} killed");
}

#[test]
fn what_is_made_in_a_directory_that_is_let_go_stays_and_is_named() {
    for two in [true, false] {
        sweep_late(&format!("let go, two file systems: {two}"), 1, &|| Working::let_go(two));
    }
}

#[test]
fn what_is_made_in_a_new_directory_that_an_undo_takes_back_stays_and_is_named() {
    sweep_taken_back(false);
}

/// So it is where something else has to stay on the tree, and a journal of that alone is left.
#[test]
fn what_is_made_in_a_new_directory_is_named_beside_what_cannot_be_taken_back() {
    sweep_taken_back(true);
}

fn sweep_taken_back(has_more: bool) {
    for two in [true, false] {
        let Some(working) = Working::taken_back(two, has_more, 0) else { continue };
        // The step that puts what comes after the directory.
        let fails = numbers(&steps_of(|| working.scene.call("commit")), "renameat2", "tree/e")[0];
        let stage = || Working::taken_back(two, has_more, fails);
        sweep_late(&format!("taken back, two file systems: {two}, more: {has_more}"), fails + 2, &stage);
    }
}

/// Between two file systems what goes lies on its way beside the tree, where somebody may tidy up after a kill.
#[test]
fn what_somebody_removes_on_its_way_is_named_with_the_copy_of_the_session() {
    let row = Sweep {
        name: "commit",
        scene: &|| {
            let mut scene = Scene::new(true)?;
            scene.world.write("f", "the only one");
            scene.begin(["delete f"]);
            Some(scene)
        },
        verb: &|scene| scene.call("commit"),
        order: "kill:N",
    };
    let tally = row.run(|scene, _, what| {
        let world = &scene.world;
        let on_its_way = world.leftovers().into_iter().find(|name| !world.exists("f") && world.read(name) == "the only one");
        if let Some(name) = &on_its_way {
            world.remove(name);
        }
        let recovered = world.recant("recover");
        if on_its_way.is_none() || recovered.status == 0 && recovered.stdout().contains("was done, and is finished now") {
            assert_eq!(recovered.status, 0, "{what}{recovered}");
            assert_eq!(scene.status() == "pending", world.exists("f"), "{what}{recovered}");
            return Came::Used("none removed that is needed");
        }
        let recovered = recovered.with(4);
        assert!(recovered.stderr().contains("/tree/f: another process removed it"), "{what}: {recovered}");
        assert_eq!(scene.displaced("f"), "the only one", "{what}");
        world.assert_tidy(what);
        Came::Used("removed")
    });
    tally.saw("removed", 1);
}
