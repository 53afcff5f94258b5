//! Ctrl-C, SIGTERM and SIGHUP, sent right before each step of an operation: before its first effect they end it, then it is undone
//! or finished, and says which, and no signal keeps it from saying so; nothing is left to the next recant. Needs the feature
//! crash-points.

use std::fmt::Debug;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::sweep::{COMMIT, Came, REDO, ROLLBACK, Sweep, Tally, Verb, is_due, is_whole, steps_of};
use crate::common::{self, Call, Manifest, Said, World, until};
use crate::{SEAL, step_of};

const TERM: &str = "run:N:kill -TERM $PPID";

/// A world that is put back as it was before each try.
struct Scene {
    world: World,
    /// Its sessions: `A` and `B` in words.
    ids: Vec<String>,
    before: Manifest,
    stdin: Vec<u8>,
}

impl Scene {
    fn new(world: World, ids: impl IntoIterator<Item = String>) -> Self {
        let scene = Self { before: world.manifest(), world, ids: ids.into_iter().collect(), stdin: Vec::new() };
        scene.shell("mkdir saved && cp -a tree store home saved");
        scene
    }

    /// A session of all kinds of steps, at which a verb is the next.
    fn before(verb: Verb) -> Self {
        let world = World::new();
        world.write("edited", "old").write("gone", "away").write("moded", "x").write("full/a", "1");
        let id = world.begin();
        let lines =
            ["write edited new", "write new new", "write made/deep/new new", "delete gone", "chmod 0640 moded", "delete full"];
        world.stage(&id, lines);
        verb.first.iter().for_each(|done| drop(world.call([*done, &id]).run().ok()));
        Self::new(world, [id])
    }

    /// One session, or more: each gives a file new content.
    fn edited(files: &[&str]) -> Self {
        let world = World::new();
        let ids: Vec<String> = files.iter().map(|file| world.edited(file)).collect();
        Self::new(world, ids)
    }

    fn id(&self) -> &str {
        &self.ids[0]
    }

    fn shell(&self, command: &str) -> String {
        self.world.program("sh", ["-c", command]).cwd(self.world.root()).run().ok().stdout()
    }

    fn save(&self) {
        self.shell("rm -rf saved && mkdir saved && cp -a tree store home saved");
    }

    fn again(&self, words: &str) -> Call {
        // A user's uppers have directories that are closed.
        self.shell("chmod -R u+rwX store && rm -rf tree store home && cp -a saved/. .");
        self.call(words)
    }

    /// Signals are heeded, also where who started the tests ignores them.
    fn call(&self, words: &str) -> Call {
        let words = words.replace('A', self.id()).replace('B', self.ids.last().expect("a session"));
        let heeding = ["--default-signal=INT,TERM,HUP", common::recant()];
        self.world.program("env", heeding.into_iter().chain(words.split(' '))).stdin(&self.stdin)
    }

    /// A signal before each step of what words ask for.
    fn sweep<T: Ord + Debug>(&self, words: &str, order: &str, mut judge: impl FnMut(&Said, &str) -> T) -> Tally<T> {
        let row = Sweep { name: words, scene: &|| Some(self), verb: &|scene: &&Self| scene.again(words), order };
        row.run(|_, said, what| Came::Unchanged(judge(said, what)))
    }

    /// A commit is cut off before the step that makes it count.
    fn cut_off(&self, seal: usize) -> &Self {
        self.again("commit A").env("RECANT_STEPS", format!("kill:{seal}")).run().with(137);
        self
    }
}

fn timeless(manifest: Manifest) -> Manifest {
    let mut manifest = manifest.without_directory_times();
    manifest.0.values_mut().filter(|row| row.content.starts_with("file \"new")).for_each(|row| row.mtime = (0, 0));
    manifest
}

#[test]
fn a_signal_before_any_step_ends_an_operation_undoes_it_or_comes_too_late() {
    for (verb, signal, ended) in [(COMMIT, "INT", 130), (ROLLBACK, "TERM", 143), (REDO, "HUP", 129)] {
        let (scene, words) = (Scene::before(verb), format!("{} A", verb.name));
        let all = steps_of(|| scene.again(&words)).len();
        let after = timeless(scene.world.manifest());
        let mut seen = Vec::new();
        for n in (1..=all + 1).filter(|n| is_due(*n)) {
            // The second one, by somebody who does not want to wait, changes nothing.
            let second = if n % 3 == 0 { format!(";run:{}:kill -INT $PPID", n + 1) } else { String::new() };
            let said = scene.again(&words).env("RECANT_STEPS", format!("run:{n}:kill -{signal} $PPID{second}")).run();
            let what = format!("{words}, SIG{signal} before step {n} of {all}: {said}");
            let now = scene.world.manifest();
            match said.status {
                0 => after.assert_same(&timeless(now), &what),
                status => {
                    assert_eq!(status, ended, "{what}");
                    scene.before.assert_same(&now, &what);
                }
            }
            scene.world.assert_tidy(&what);
            assert_eq!(scene.world.status(scene.id()), if said.status == 0 { verb.to } else { verb.from }, "{what}");
            let how = match said.status {
                0 => How::Finished,
                _ if said.stderr().is_empty() => How::Ended,
                _ => How::Undone,
            };
            let says = |words: &str| said.stderr().contains(words);
            match how {
                How::Undone => {
                    assert!(says(&format!("stopped by SIG{signal}")), "{what}");
                    assert!(says("the tree is as it was") || says("nothing was changed"), "{what}");
                }
                // The last steps are those of the log, and of the end without a signal.
                How::Finished => assert!(says(&format!("SIG{signal} came too late")) || n + 5 > all, "{what}"),
                How::Ended => {}
            }
            seen.push(how);
        }
        let count = |how: How| seen.iter().filter(|seen| **seen == how).count();
        let [ended, undone, finished] = [How::Ended, How::Undone, How::Finished].map(count);
        println!("{words}: {ended} ended, {undone} undone, {finished} finished");
        assert!(!is_whole() || ended > 0 && undone > 10 && finished > 5, "{words}: {seen:?}");
        assert!(seen.is_sorted(), "{words}: {seen:?}");
    }
}

/// What became of an operation that a signal came to, in the order of its moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum How {
    /// By the signal, without a word.
    Ended,
    Undone,
    Finished,
}

/// What comes behind the last step of an operation, and before it is said: the word that is waited for, the line of the log, the verb
/// that was meant.
#[test]
fn who_ends_without_a_word_has_changed_nothing() {
    let as_it_is = |_: &World, _: &str| {};
    let waits = |world: &World, id: &str| {
        world.call(["commit", id, "--confirm-within", "1h"]).run().ok();
        let header = world.session(id).join("session.json");
        let text = std::fs::read_to_string(&header).expect("a header");
        let mut json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        json["deadline"]["due"] = "2020-01-01T00:00:00.000000000Z".into();
        json["deadline"]["due_since_boot"] = "1970-01-01T00:00:00.000000001Z".into();
        std::fs::write(header, json.to_string()).expect("a header whose time is over");
    };
    let taken = |world: &World, _: &str| {
        world.call(["snapshot", "create", "."]).run().ok();
        world.write("f", "later");
    };
    // The file's content before and after.
    for (words, prepare, [before, after]) in [
        ("commit A --confirm-within 1h", &as_it_is as &dyn Fn(&World, &str), ["old", "new"]),
        ("session new", &waits, ["new", "old"]),
        ("snapshot restore 0 . -y", &taken, ["later", "old"]),
    ] {
        let mut scene = Scene::edited(&["f"]);
        scene.world.set("RECANT_CONFIRM_BY", "nobody");
        prepare(&scene.world, scene.id());
        scene.save();
        let all = steps_of(|| scene.again(words)).len();
        assert_eq!(scene.world.read("f"), after, "{words}");
        // A second one, before anything is said.
        for order in [TERM.to_owned(), format!("{TERM};run:{all}:kill -TERM $PPID")] {
            let tally = scene.sweep(words, &order, |said, what| {
                let content = scene.world.read("f");
                assert!([0, 143].contains(&said.status), "{what}");
                assert!([before, after].contains(&&*content), "{what}");
                if said.out.is_empty() && said.err.is_empty() {
                    assert_eq!((said.status, &*content), (143, before), "{what}");
                    "ended"
                } else if !said.err.is_empty() && content == after {
                    "told that it is done"
                } else {
                    "undone"
                }
            });
            tally.saw("ended", 1).saw("told that it is done", 3);
        }
    }
}

/// What is given up is given up whole, and said; of several, those that are left stay. Those that are damaged are pruned after the others,
/// and each of them is a session, too.
#[test]
fn a_signal_to_what_gives_up_sessions_leaves_each_whole_or_given_up_and_said() {
    for (words, first) in [
        ("discard A", ""),
        ("prune --checkpoints A B -y", "commit"),
        ("prune --sessions A B -y", "commit"),
        ("prune --sessions A B -y", "damage"),
    ] {
        let scene = Scene::edited(&["f", "g"]);
        let header = |id: &String| scene.world.session(id).join("session.json");
        for id in &scene.ids {
            match first {
                "commit" => drop(scene.world.call([first, id]).run().ok()),
                "damage" => drop(scene.world.write(header(id), "{")),
                _ => {}
            }
        }
        scene.save();
        let given_up = || {
            let read = |id: &String| std::fs::read_to_string(header(id));
            let gone = |id: &&String| read(id).map_or(true, |text| text.contains("pruned") || text.contains("discarded\":\""));
            scene.ids.iter().filter(gone).count()
        };
        scene.again(words).run().ok();
        let whole = given_up();
        let tally = scene.sweep(words, TERM, |said, what| {
            let count = given_up();
            match said.status {
                0 => {
                    assert!(count == whole && !said.err.is_empty(), "{what}");
                    "told that it is done"
                }
                4 => {
                    assert!(count == 1 && whole == 2 && said.stderr().contains("pruned before it"), "{what}");
                    "gave up the first"
                }
                status => {
                    assert_eq!((status, count), (143, 0), "{what}");
                    "ended"
                }
            }
        });
        tally.saw("ended", 1).saw("gave up the first", whole - 1).saw("told that it is done", 3);
    }
}

#[test]
fn a_signal_to_what_changes_the_store_alone_leaves_nothing_or_all_of_it_and_says_which() {
    let as_it_is = |_: &mut Scene| {};
    let content = |scene: &mut Scene| scene.stdin = b"new content".to_vec();
    let exported = |scene: &mut Scene| {
        scene.stdin = scene.call("session export A").run().ok().out;
        scene.call("prune --sessions A -y").run().ok();
    };
    let one = |scene: &mut Scene| {
        scene.call("snapshot create .").run().ok();
        scene.world.write("f", "2");
    };
    let snapshots = |scene: &mut Scene| {
        for text in ["1", "2", "3"] {
            scene.world.write("f", text).recant("snapshot create .").ok();
        }
    };
    for (words, prepare) in [
        ("session new -n other", &as_it_is as &dyn Fn(&mut Scene)),
        ("session rename A other", &as_it_is),
        ("session write A f", &content),
        ("session write A new/deep -p", &content),
        ("session delete A full -r", &as_it_is),
        ("session mkdir A made/deep -p", &as_it_is),
        ("session symlink A f link", &as_it_is),
        ("session chmod A 0600 f", &as_it_is),
        ("session import", &exported),
        ("snapshot create . --label one", &one),
        ("snapshot create . --keep 2", &snapshots),
        ("prune --snapshots . --number 0", &snapshots),
        ("prune --snapshots . --all -y", &snapshots),
    ] {
        let mut scene = Scene::edited(&["f"]);
        scene.world.write("full/a", "1").write("full/b", "2");
        prepare(&mut scene);
        scene.save();
        // Of what is there for people, what it is called and how much it holds; and what is there for nobody.
        let state = || {
            let row = |row: &serde_json::Value| format!("{} {} {} {}", row["name"], row["changes"], row["n"], row["label"]);
            let lists = ["list --json", "snapshot list . --json"].map(|list| scene.world.recant(list).ok().rows());
            let mut rows: Vec<String> = lists.iter().flatten().map(row).collect();
            rows.sort();
            let names = "find store ! -name log.jsonl ! -name lock ! -name numbering | sed s/[0-9]*-[0-9]*-[a-z0-9]*/ID/ | sort";
            (rows, scene.shell(names))
        };
        let before = state();
        let all = steps_of(|| scene.again(words)).len();
        let after = state();
        assert!(before != after || words.contains("chmod A") || words.contains(" f"), "{words}");
        let tally = scene.sweep(words, TERM, |said, what| {
            let is_done = said.status == 0;
            assert!(is_done || said.status == 143, "{what}");
            assert_eq!(&state(), if is_done { &after } else { &before }, "{what}");
            let is_behind_the_end = what.contains(&format!("run:{}:", all + 1));
            assert_eq!(is_done && !is_behind_the_end, said.stderr().contains("SIGTERM came too late"), "{what}");
            is_done
        });
        tally.saw(true, 2);
    }
}

#[test]
fn a_signal_before_a_command_keeps_it_from_being_started_and_one_after_it_loses_nothing() {
    if !common::can_run() {
        return common::skip("signals to a run: recant run does not work here");
    }
    for (words, [status, content]) in
        [("run -- sh change", ["pending", "old"]), ("run --in . -- sh change", ["committed", "new"])]
    {
        // Not below /tmp, where a command on the real tree may write.
        let world = World::on(Path::new("/var/tmp"));
        world.write("f", "old").write("change", "printf new > f");
        let begun = world.begin();
        world.recant("snapshot create .").ok();
        let scene = Scene::new(world, [begun]);
        let tally = scene.sweep(words, TERM, |said, what| {
            let sessions = scene.shell("ls -A store/sessions").lines().count();
            let is_collected = said.status == 0;
            if is_collected {
                let newest = scene.shell(&format!("ls store/sessions | grep -v {}", scene.id()));
                let newest = newest.trim();
                let header = std::fs::read_to_string(scene.world.session(newest).join("session.json")).expect("its header");
                assert!(!header.contains("uncollected") && sessions == 2, "{what}");
                assert!(said.stderr().contains(&newest[16..]), "{what}");
                assert_eq!((&*scene.world.status(newest), &*scene.world.read("f")), (status, content), "{what}");
            } else {
                assert_eq!((said.status, sessions, &*scene.world.read("f")), (125, 1, "old"), "{what}");
                assert!(said.stderr().contains("stopped by SIGTERM"), "{what}");
            }
            is_collected
        });
        tally.saw(false, 6).saw(true, 41);
    }
}

/// The line of proc(5) that tells a set of signals of a process.
fn signals(child: &Child, set: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("its state");
    let mask = status.lines().find_map(|line| line.strip_prefix(set)?.strip_prefix(":\t")).expect("a set of signals");
    u64::from_str_radix(mask, 16).expect("hex")
}

#[test]
fn a_signal_ends_what_waits_for_input_or_for_a_lock() {
    use std::process::Stdio;
    let scene = Scene::edited(&["f"]);
    let file = scene.world.store().join("numbering");
    let locked = std::fs::OpenOptions::new().append(true).create(true).open(file).expect("the file of a lock");
    for (words, sent) in [("session write A g", &b"half"[..]), ("session import", b""), ("session new", b"")] {
        let names = || scene.shell("find store ! -name lock ! -name numbering | sort");
        let before = names();
        if words == "session new" {
            rustix::fs::flock(&locked, rustix::fs::FlockOperation::LockExclusive).expect("a lock");
        }
        let mut command = scene.call(words).command();
        let command = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("its input");
        std::io::Write::write_all(&mut stdin, sent).expect("it reads");
        // It has its handlers, and waits.
        until(&format!("{words}: it catches no SIGTERM"), || signals(&child, "SigCgt") & 1 << 14 != 0);
        kill_process(Pid::from_child(&child), Signal::TERM).expect("it waits");
        let out = child.wait_with_output().expect("its end");
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(143), "{words}: {said}");
        assert!(said.contains("stopped by SIGTERM") && said.contains("nothing was changed"), "{words}: {said}");
        assert_eq!(names(), before, "{words}");
        drop(stdin);
    }
}

/// recant, which has done what words ask for and writes its report into a full pipe; its reader, and how many bytes were in the pipe.
fn waiting(scene: &Scene, words: &str) -> (Child, std::io::PipeReader, usize) {
    use std::io::Write;
    use std::process::Stdio;
    let (reader, mut pipe) = std::io::pipe().expect("a pipe");
    rustix::fs::fcntl_setfl(&pipe, rustix::fs::OFlags::NONBLOCK).expect("it does not wait");
    let mut filled = 0;
    while let Ok(n) = pipe.write(&[b'.'; 512]) {
        filled += n;
    }
    rustix::fs::fcntl_setfl(&pipe, rustix::fs::OFlags::empty()).expect("it waits");
    let mut command = scene.call(words).command();
    // Standard output is a run's command's.
    let fd = if words.starts_with("run") { 2 } else { 1 };
    if fd == 2 {
        command.stderr(pipe).stdout(Stdio::null());
    } else {
        command.stdout(pipe).stderr(Stdio::null());
    }
    let child = command.spawn().expect("it starts");
    drop(command);
    // proc(5): the call's number, then what it was given, first the descriptor.
    let writes = format!("{fd:#x}");
    let at = || std::fs::read_to_string(format!("/proc/{}/syscall", child.id())).expect("what it waits in");
    until(&format!("{words}: it does not write"), || at().split(' ').nth(1) == Some(&writes));
    (child, reader, filled)
}

#[test]
fn a_report_that_waits_for_its_reader_is_whole_whatever_signal_comes() {
    use std::io::Read;
    let mut rows = vec![
        ("commit A", COMMIT),
        ("commit A --json", COMMIT),
        ("rollback A --json", ROLLBACK),
        ("redo A", REDO),
        ("recover", COMMIT),
    ];
    if common::can_run() {
        rows.push(("run --commit -- sh -c echo>made", COMMIT));
    } else {
        common::skip("the report of a run: recant run does not work here");
    }
    for ((words, verb), signal) in rows.into_iter().zip([Signal::INT, Signal::TERM, Signal::HUP].into_iter().cycle()) {
        let scene = Scene::before(verb);
        if words == "recover" {
            scene.cut_off(step_of(|| scene.again("commit A"), &SEAL));
        }
        let (mut child, mut reader, filled) = waiting(&scene, words);
        kill_process(Pid::from_child(&child), signal).expect("it waits");
        until(&format!("{words}: the signal does not come"), || signals(&child, "ShdPnd") == 0);
        let mut said = vec![0; filled];
        reader.read_exact(&mut said).expect("what was in the pipe");
        said.clear();
        reader.read_to_end(&mut said).expect("the report");
        let said = String::from_utf8(said).expect("text");
        assert_eq!(child.wait().expect("its end").code(), Some(0), "{words}: {said}");
        assert!(said.len() > 40 && said.ends_with('\n'), "{words}: {said}");
        scene.world.assert_tidy(words);
    }
}

/// A loop of a shell goes on where what it runs ended otherwise than by Ctrl-C.
#[test]
fn an_interrupted_operation_ends_the_shell_s_loop() {
    if !Path::new("/bin/bash").exists() {
        return common::skip("a loop of bash: there is no bash");
    }
    let scene = Scene::before(COMMIT);
    let script = format!(
        "set -m; (for i in 1 2 3; do RECANT_STEPS=\"run:20:trap '' INT && kill -INT -\\$(ps -o pgid= -p \\$PPID | tr -d ' ')\" {} commit {}; echo next; done); echo after",
        common::recant(),
        scene.id()
    );
    let said = scene.world.program("env", ["--default-signal=INT", "/bin/bash", "-c", &script]).run();
    assert!(!said.stdout().contains("next"), "{said}");
}

#[test]
fn a_recovery_that_is_asked_to_end_comes_to_its_end_first() {
    let scene = Scene::before(COMMIT);
    let seal = step_of(|| scene.again("commit A"), &SEAL);
    let row = Sweep {
        name: "recover",
        scene: &|| Some(&scene),
        verb: &|scene: &&Scene| scene.cut_off(seal).call("recover"),
        order: "run:N:kill -2 $PPID",
    };
    let tally = row.run(|scene, said, what| {
        if said.status == 130 {
            // Before its first effect.
            assert_eq!(scene.world.journals(), [scene.id()], "{what}");
            scene.world.recant("recover").ok();
        } else {
            assert_eq!(said.status, 0, "{what}");
        }
        scene.before.assert_same(&scene.world.manifest(), what);
        scene.world.assert_tidy(what);
        Came::Unchanged(said.status)
    });
    assert!(tally.steps > 20, "{}", tally.steps);
    tally.saw(0, 15);
}

#[test]
fn what_is_to_come_after_a_recovery_is_not_begun() {
    let mut scene = Scene::before(COMMIT);
    scene.ids.push(scene.world.begin());
    scene.world.stage(&scene.ids[1], ["write other o"]);
    scene.save();
    let seal = step_of(|| scene.again("commit A"), &SEAL);
    let row = Sweep {
        name: "commit after a recovery",
        scene: &|| Some(&scene),
        verb: &|scene: &&Scene| scene.cut_off(seal).call("commit B"),
        order: TERM,
    };
    let tally = row.run(|scene, said, what| {
        let is_recovered = scene.world.journals().is_empty();
        if is_recovered {
            scene.world.assert_tidy(what);
        }
        let is_done = said.status == 0;
        assert_eq!(scene.world.exists("other"), is_done, "{what}");
        assert!(is_recovered && is_done || said.status == 143, "{what}");
        Came::Unchanged(match () {
            () if is_done => "done",
            () if is_recovered && said.stderr().contains("stopped by SIGTERM") => "not begun",
            () => "ended",
        })
    });
    tally.saw("not begun", 12).saw("done", 1);
    // A command that is to be run is not started either.
    let half = steps_of(|| scene.cut_off(seal).call("recover")).len() / 2;
    let call = scene.cut_off(seal).call("run -- touch made").env("RECANT_STEPS", TERM.replace('N', &half.to_string()));
    let said = call.run().with(125);
    assert!(said.stderr().contains("stopped by SIGTERM") && !scene.world.exists("made"), "{said}");
    scene.world.assert_tidy("before a run");
    assert_eq!(scene.world.recant("list --json").ok().rows().len(), 2);
}

#[test]
fn a_signal_that_is_ignored_stays_ignored() {
    let scene = Scene::before(COMMIT);
    let script = format!("trap '' HUP INT; exec {} commit {}", common::recant(), scene.id());
    let orders = "run:30:kill -HUP $PPID && kill -INT $PPID";
    scene.world.program("sh", ["-c", &script]).env("RECANT_STEPS", orders).run().ok();
    assert_eq!(scene.world.status(scene.id()), "committed");
}

#[test]
fn a_prune_that_is_ended_says_what_went_before() {
    let scene = Scene::edited(&["a", "b"]);
    let world = &scene.world;
    for verb in ["commit", "rollback"] {
        scene.ids.iter().for_each(|id| drop(world.call([verb, id]).run().ok()));
    }
    for dir in ["one", "two"] {
        for n in ["0", "1"] {
            world.write(format!("{dir}/f"), n);
            world.recant(&format!("snapshot create {dir}")).ok();
        }
    }
    world.config("[retention]\nkeep = 0\n[snapshot]\nkeep = 1\n");
    scene.save();
    let held = || {
        let count = |words: &str, key: &str| world.recant(words).ok().json()[key].as_array().map_or(0, Vec::len);
        let snapshots = ["one", "two"].map(|dir| count(&format!("snapshot list {dir} --json"), "snapshots"));
        (count("list --json", "sessions"), snapshots.iter().sum::<usize>())
    };
    let all = held();
    let tally = scene.sweep("prune -y", TERM, |said, what| {
        let left = held();
        let what = format!("{left:?} left of {all:?}: {what}");
        match said.status {
            0 => assert_eq!(left, (0, 2), "{what}"),
            4 => assert!(said.stderr().contains(" pruned before it") && left != all, "{what}"),
            status => assert_eq!((status, left), (143, all), "{what}"),
        }
        (said.status, left)
    });
    tally.saw((4, (1, 4)), 1).saw((4, (0, 4)), 1).saw((4, (0, 3)), 1);
}

/// The history of a shell is made for it, empty, before it starts.
#[test]
fn a_signal_before_a_held_shell_has_started_leaves_no_history_that_was_made_for_it() {
    if !common::can_run() || !Path::new("/bin/bash").exists() {
        return common::skip("signals to a shell: recant run does not work here, or there is no bash");
    }
    let mut scene = Scene::edited(&["f"]);
    scene.world.set("SHELL", "/bin/bash");
    scene.stdin = b"ls -A ~; HISTFILE=\n".to_vec();
    let said = scene.again("shell").run().ok();
    assert!(said.stdout().contains(".bash_history"), "{said}");
    let all = steps_of(|| scene.again("shell")).len();
    let tally = scene.sweep("shell", TERM, |said, what| {
        // A session that has lost its name is swept up by the next verb.
        let left = scene.shell("ls -A home; ls store/sessions");
        let is_behind_the_end = what.contains(&format!("run:{}:", all + 1));
        assert!(is_behind_the_end || left.lines().count() == 1, "{what}\n{left}");
        said.status
    });
    tally.saw(125, 6);
}

/// A hole is hashed as the zeros that it is, which takes half an hour for a large one: that is said before, and Ctrl-C is heeded in the
/// midst of it.
#[test]
fn a_signal_while_a_hole_of_a_tebibyte_is_hashed_ends_at_once_and_nothing_is_changed() {
    if !common::can_run() {
        return common::skip("a signal while content is hashed: recant run does not work here");
    }
    let mut scene = Scene::edited(&["before"]);
    let said = scene.call("run -q -- truncate -s 1T large").run();
    if said.status != 0 {
        return common::skip("a signal while content is hashed: no file of 1 TiB can be made here");
    }
    scene.ids = vec![scene.world.recant("show --json").ok().json()["session"]["id"].as_str().expect("an id").to_owned()];
    for signal in [Signal::INT, Signal::TERM] {
        let mut command = scene.call("commit A").command();
        let mut child = command.stderr(std::process::Stdio::piped()).spawn().expect("recant");
        let mut heard = std::io::BufReader::new(child.stderr.take().expect("its messages"));
        let mut said = String::new();
        while !said.contains("Ctrl-C ends it") {
            let got = std::io::BufRead::read_line(&mut heard, &mut said).expect("what it says");
            assert!(got > 0, "it goes on for minutes: {said}");
        }
        assert!(said.contains("large: hashing 1.0 TiB takes a while"), "{said}");
        // In the midst of it.
        std::thread::sleep(Duration::from_millis(300));
        kill_process(Pid::from_child(&child), signal).expect("it hashes");
        let asked = Instant::now();
        let status = child.wait().expect("its end");
        assert!(asked.elapsed() < Duration::from_secs(5), "it ends {:?} after {signal:?}", asked.elapsed());
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(signal.as_raw()), "{status}");
        scene.before.assert_same(&scene.world.manifest(), "after a signal while it hashed");
        scene.world.assert_tidy("a signal while it hashed");
    }
    assert!(scene.world.recant("status").ok().stdout().contains("pending"));
}

#[test]
fn what_a_command_left_running_is_named_and_ends_when_recant_is_asked_to() {
    if !common::can_run() {
        return common::skip("what a command left running: recant run does not work here");
    }
    let world = common::World::new();
    for (agent, way) in [("", "Ctrl-C ends it"), ("1", "--no-wait ends it, --serve keeps it")] {
        let call = world.call(["run", "--session", "s", "--", "sh", "-c", "sleep 60 & true"]);
        let mut command = call.env("CLAUDECODE", agent).command();
        let mut child = command.stderr(std::process::Stdio::piped()).spawn().expect("recant");
        let mut heard = std::io::BufReader::new(child.stderr.take().expect("its messages"));
        let mut said = String::new();
        while !said.contains("waiting for what the command left running") {
            let got = std::io::BufRead::read_line(&mut heard, &mut said).expect("what it says");
            assert!(got > 0, "it waits for nothing: {said}");
        }
        assert!(said.contains(&format!("left running: sleep ({way})")), "{said}");
        kill_process(Pid::from_child(&child), Signal::TERM).expect("it waits");
        std::io::Read::read_to_string(&mut heard, &mut said).expect("the rest");
        assert!(said.contains("ended, because the command left it running: sleep"), "{said}");
        assert!(child.wait().expect("its end").success(), "{said}");
    }
}
