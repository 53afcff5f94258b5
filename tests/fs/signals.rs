//! Ctrl-C, SIGTERM and SIGHUP, sent right before each step of an operation: before its first effect they end it, then it is undone
//! or finished, and says which, and no signal keeps it from saying so; nothing is left to the next recant. Needs the feature

use crate::common::{self, Manifest, Said, World};

/// A world with a session of all kinds of steps, committed or not, to be put back as often as it is needed.
struct Scene {
    world: World,
    id: String,
    verb: &'static str,
    before: Manifest,
}

impl Scene {
    fn new(verb: &'static str) -> Self {
        let world = World::new();
        world.write("edited", "old").write("gone", "away").write("moded", "x").write("full/a", "1");
        let id = world.begin();
        for name in ["edited", "new", "made/deep/new"] {
            world.stage_write(&id, name, "new");
        }
        for words in ["delete ID gone", "chmod ID 0640 moded", "delete ID full -r"] {
            world.recant(&format!("session {}", words.replace("ID", &id))).ok();
        }
        for done in
            ["commit", "rollback"].iter().take(["commit", "rollback", "redo"].iter().position(|v| *v == verb).unwrap_or(0))
        {
            world.recant(&format!("{done} {id}")).ok();
        }
        let scene = Self { before: world.manifest(), world, id, verb };
        scene.shell("mkdir ../saved && cp -a ../tree ../store ../saved");
        scene
    }

    fn shell(&self, command: &str) -> Said {
        self.world.program("sh", ["-c", command]).run().ok()
    }

    fn reset(&self) {
        self.world.program("sh", ["-c", "rm -rf tree store && cp -a saved/. ."]).cwd(self.world.root()).run().ok();
    }

    fn steps(&self, steps: &str) -> Said {
        self.world.call([self.verb, &self.id]).env("RECANT_STEPS", steps).run()
    }

    fn kill_before_seal(&self) {
        let log = self.world.root().join("steps");
        self.steps(&format!("log:{}", log.display())).ok();
        let steps = std::fs::read_to_string(&log).expect("a log of steps");
        let at = steps.lines().position(|step| step.contains("renameat ") && step.contains("session.json.new"));
        self.reset();
        let killed = self.steps(&format!("kill:{}", at.expect("a seal") + 1));
        assert_eq!(killed.status, 137, "{killed}");
    }
}

fn timeless(manifest: Manifest) -> Manifest {
    let mut manifest = manifest.without_directory_times();
    manifest.0.values_mut().filter(|row| row.content.starts_with("file \"new")).for_each(|row| row.mtime = (0, 0));
    manifest
}

#[test]
fn a_signal_before_any_step_ends_an_operation_undoes_it_or_comes_too_late() {
    for (verb, signal, ended) in [("commit", "INT", 130), ("rollback", "TERM", 143), ("redo", "HUP", 129)] {
        let scene = Scene::new(verb);
        scene.steps("log:/dev/null").ok();
        let after = timeless(scene.world.manifest());
        let mut seen = Vec::new();
        for n in common::steps() {
            scene.reset();
            // The second one, by somebody who does not want to wait, changes nothing.
            let mut orders = format!("run:{n}:kill -{signal} $PPID");
            if n % 3 == 0 {
                orders = format!("{orders};run:{}:kill -INT $PPID", n + 1);
            }
            let said = scene.steps(&orders);
            let what = format!("{verb}, SIG{signal} before step {n}: {said}");
            let now = scene.world.manifest();
            match said.status {
                0 => after.assert_same(&timeless(now), &what),
                status => {
                    assert_eq!(status, ended, "{what}");
                    scene.before.assert_same(&now, &what);
                }
            }
            scene.world.assert_tidy(&what);
            let nothing = if verb == "commit" {
                "pending"
            } else if verb == "rollback" {
                "committed"
            } else {
                "rolled_back"
            };
            let all = if verb == "rollback" { "rolled_back" } else { "committed" };
            assert_eq!(scene.world.status(&scene.id), if said.status == 0 { all } else { nothing }, "{what}");
            let late = said.stderr().contains(&format!("SIG{signal} came when all was done"));
            let how = How::of(&said);
            match how {
                How::Undone => {
                    assert!(said.stderr().contains(&format!("stopped by SIG{signal}")), "{what}");
                    let state = ["the tree is as it was", "nothing was changed"];
                    assert!(state.iter().any(|state| said.stderr().contains(state)), "{what}");
                }
                // The last steps are those of the log, and of the end without a signal.
                How::Finished => assert!(late || seen.iter().filter(|how| **how == How::Finished).count() > 2, "{what}"),
                How::Ended => {}
            }
            seen.push(how);
            if said.status == 0 && !late {
                break;
            }
        }
        let count = |how: How| seen.iter().filter(|seen| **seen == how).count();
        let [ended, undone, finished] = [How::Ended, How::Undone, How::Finished].map(count);
        println!("{verb}: {ended} ended, {undone} undone, {finished} finished");
        assert!(ended > 0 && undone > 10 && finished > 5, "{verb}: {seen:?}");
        assert!(seen.is_sorted(), "{verb}: {seen:?}");
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

impl How {
    fn of(said: &Said) -> Self {
        match said.status {
            0 => How::Finished,
            _ if said.stderr().is_empty() => How::Ended,
            _ => How::Undone,
        }
    }
}

/// What comes behind the last step of an operation, and before it is said: the word that is waited for, the line of the log, the verb
/// that was meant.
#[test]
fn who_ends_without_a_word_has_changed_nothing() {
    let waits = |world: &World, id: &str| {
        world.call(["commit", id, "--confirm-within", "1h"]).env("RECANT_CONFIRM_BY", "nobody").run().ok();
        let record = world.store().join("unconfirmed").join(id);
        let text = std::fs::read_to_string(&record).expect("a record");
        let mut json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        json["due"] = "2020-01-01T00:00:00.000000000Z".into();
        json["due_since_boot"] = "1970-01-01T00:00:00.000000001Z".into();
        std::fs::write(record, json.to_string()).expect("a record whose time is over");
    };
    let taken = |world: &World, _: &str| {
        world.call(["snapshot", "create", "."]).run().ok();
        world.write("f", "later");
    };
    // The file's content before and after.
    for (words, prepare, [before, after]) in [
        ("commit ID --confirm-within 1h", None, ["old", "new"]),
        ("session new", Some(&waits as &dyn Fn(&World, &str)), ["new", "old"]),
        ("snapshot restore 0 . -y", Some(&taken), ["later", "old"]),
    ] {
        let world = World::new();
        let id = world.edited("f");
        prepare.inspect(|prepare| prepare(&world, &id));
        let words = words.replace("ID", &id);
        let shell = |command: &str| world.program("sh", ["-c", command]).cwd(world.root()).run().ok();
        shell("mkdir saved && cp -a tree store saved");
        let steps =
            |steps: String| world.call(words.split(' ')).env("RECANT_STEPS", steps).env("RECANT_CONFIRM_BY", "nobody").run();
        let log = world.root().join("steps");
        steps(format!("log:{}", log.display())).ok();
        assert_eq!(world.read("f"), after, "{words}");
        let all = std::fs::read_to_string(&log).expect("a log of steps").lines().count();
        let (mut ended, mut told) = (0, 0);
        // A second one, before anything is said.
        let again = format!(";run:{all}:kill -TERM $PPID");
        for (n, again) in (1..=all + 1).map(|n| (n, "")).chain((1..all).map(|n| (n, again.as_str()))) {
            shell("rm -rf tree store && cp -a saved/. .");
            let said = steps(format!("run:{n}:kill -TERM $PPID{again}"));
            let what = format!("{words}, SIGTERM before step {n}{again} of {all}: {said}");
            assert!([0, 143].contains(&said.status), "{what}");
            assert!([before, after].contains(&&*world.read("f")), "{what}");
            if said.out.is_empty() && said.err.is_empty() {
                assert_eq!((said.status, &*world.read("f")), (143, before), "{what}");
                ended += 1;
            }
            told += usize::from(!said.err.is_empty() && world.read("f") == after);
        }
        println!("{words}: {ended} ended, {told} told that it is done, of {all}");
        assert!(ended > 0 && told > 2, "{words}");
    }
}

/// What is given up is given up whole, and said; of several, those that are left stay.
#[test]
fn a_signal_to_what_gives_up_sessions_leaves_each_whole_or_given_up_and_said() {
    for verb in ["discard A", "checkpoint prune A B -y", "session prune A B -y"] {
        let world = World::new();
        let ids = ["f", "g"].map(|name| world.edited(name));
        if verb != "discard A" {
            ids.iter().for_each(|id| drop(world.recant(&format!("commit {id}")).ok()));
        }
        let words = verb.replace('A', &ids[0]).replace('B', &ids[1]);
        let given_up = || {
            let read = |id: &String| std::fs::read_to_string(world.store().join("sessions").join(id).join("session.json"));
            let gone =
                |id: &&String| read(id).map_or(true, |header| header.contains("pruned") || header.contains("discarded\":\""));
            ids.iter().filter(gone).count()
        };
        let shell = |command: &str| world.program("sh", ["-c", command]).cwd(world.root()).run().ok();
        shell("mkdir saved && cp -a tree store saved");
        let steps = |steps: String| world.call(words.split(' ')).env("RECANT_STEPS", steps).run();
        let log = world.root().join("steps");
        steps(format!("log:{}", log.display())).ok();
        let (whole, all) = (given_up(), std::fs::read_to_string(&log).expect("a log of steps").lines().count());
        let (mut ended, mut some, mut told) = (0, 0, 0);
        for n in 1..=all {
            shell("rm -rf tree store && cp -a saved/. .");
            let said = steps(format!("run:{n}:kill -TERM $PPID"));
            let what = format!("{words}, SIGTERM before step {n} of {all}: {said}");
            match said.status {
                0 => {
                    assert_eq!(given_up(), whole, "{what}");
                    assert!(!said.err.is_empty(), "{what}");
                    told += 1;
                }
                4 => {
                    assert!(said.stderr().contains("pruned before it") && (1..whole).contains(&given_up()), "{what}");
                    some += 1;
                }
                status => {
                    assert_eq!((status, given_up()), (143, 0), "{what}");
                    ended += 1;
                }
            }
            world.recant("session list").ok();
        }
        println!("{verb}: {ended} ended, {some} gave up the first, {told} told that it is done, of {all}");
        assert!(told > 2 && (some > 0) == (whole > 1), "{verb}: {ended} {some} {told}");
    }
}

/// Every other verb that changes something in the store: it is done and said, or nothing of it is there.
#[test]
fn a_signal_to_what_changes_the_store_alone_leaves_nothing_or_all_of_it_and_says_which() {
    let exported = |world: &World, id: &str| {
        let stream = world.recant(&format!("session export {id}")).ok().out;
        world.recant(&format!("session prune {id} -y")).ok();
        stream
    };
    let content = |_: &World, _: &str| b"new content".to_vec();
    let snapshots = |world: &World, _: &str| {
        for text in ["1", "2", "3"] {
            world.write("f", text);
            world.recant("snapshot create .").ok();
        }
        Vec::new()
    };
    let one = |world: &World, _: &str| {
        world.write("f", "1").recant("snapshot create .").ok();
        world.write("f", "2");
        Vec::new()
    };
    let none = |_: &World, _: &str| Vec::new();
    for (words, prepare) in [
        ("session new -n other", &none as &dyn Fn(&World, &str) -> Vec<u8>),
        ("session rename ID other", &none),
        ("session write ID f", &content),
        ("session write ID new/deep -p", &content),
        ("session delete ID full -r", &none),
        ("session mkdir ID made/deep -p", &none),
        ("session symlink ID f link", &none),
        ("session chmod ID 0600 f", &none),
        ("session import", &exported),
        ("snapshot create . --label one", &one),
        ("snapshot create . --keep 2", &snapshots),
        ("snapshot prune . --number 0", &snapshots),
        ("snapshot prune . --all -y", &snapshots),
    ] {
        let world = World::new();
        world.write("full/a", "1").write("full/b", "2");
        let id = world.edited("f");
        let stdin = prepare(&world, &id);
        let words = words.replace("ID", &id);
        let shell = |command: &str| world.program("sh", ["-c", command]).cwd(world.root()).run().ok().stdout();
        shell("mkdir saved && cp -a tree store saved");
        let steps = |steps: String| world.call(words.split(' ')).stdin(&stdin).env("RECANT_STEPS", steps).run();
        // Of what is there for people, what it is called and how much it holds; and what is there for nobody.
        let visible = || {
            let row = |row: &serde_json::Value| format!("{} {} {} {}", row["name"], row["changes"], row["n"], row["label"]);
            let rows = ["session list --jsonl", "snapshot list . --jsonl"].map(|list| world.recant(list).ok().stdout());
            let mut rows: Vec<String> = rows.iter().flat_map(|rows| rows.lines()).map(|line| row(&json(line))).collect();
            rows.sort();
            rows
        };
        let names =
            || shell("find store ! -name log.jsonl ! -name lock ! -name numbering | sed s/[0-9]*-[0-9]*-[a-z0-9]*/ID/ | sort");
        let (before, names_before) = (visible(), names());
        let log = world.root().join("steps");
        steps(format!("log:{}", log.display())).ok();
        let (after, names_after) = (visible(), names());
        assert!(before != after || words.contains("chmod ID") || words.contains(" f"), "{words}");
        let all = std::fs::read_to_string(&log).expect("a log of steps").lines().count();
        let (mut ended, mut told) = (0, 0);
        for n in 1..=all + 1 {
            shell("rm -rf tree store && cp -a saved/. .");
            let said = steps(format!("run:{n}:kill -TERM $PPID"));
            let what = format!("{words}, SIGTERM before step {n} of {all}: {said}");
            let is_done = match said.status {
                0 => true,
                status => {
                    assert_eq!(status, 143, "{what}");
                    false
                }
            };
            assert_eq!(names(), if is_done { &*names_after } else { &*names_before }, "{what}");
            assert_eq!(visible(), if is_done { &after[..] } else { &before[..] }, "{what}");
            assert_eq!(is_done && n <= all, said.stderr().contains("SIGTERM came when all was done"), "{what}");
            ended += usize::from(!is_done);
            told += usize::from(is_done);
        }
        println!("{words}: {ended} ended, {told} done and told, of {all}");
        assert!(told > 1, "{words}");
    }
}

/// Before the command there is nothing, and it is not started; what it has changed is in a session that needs nobody to collect it.
#[test]
fn a_signal_before_a_command_keeps_it_from_being_started_and_one_after_it_loses_nothing() {
    if !common::can_run() {
        return common::skip("signals to a run: recant run does not work here");
    }
    for (words, [status, content]) in [("run", ["pending", "old"]), ("run --in .", ["committed", "new"])] {
        // Not below /tmp, where a command on the real tree may write.
        let world = World::on(std::path::Path::new("/var/tmp"));
        world.write("f", "old");
        let begun = world.begin();
        world.recant("snapshot create .").ok();
        let words = words.split(' ').chain(["--", "sh", "-c", "printf new > f"]);
        let shell = |command: &str| world.program("sh", ["-c", command]).cwd(world.root()).run().ok().stdout();
        shell("mkdir saved && cp -a tree store saved");
        let steps = |steps: String| world.call(words.clone()).env("RECANT_STEPS", steps).run();
        let log = world.root().join("steps");
        steps(format!("log:{}", log.display())).ok();
        let all = std::fs::read_to_string(&log).expect("a log of steps").lines().count();
        let sessions = || shell("ls -A store/sessions").lines().count();
        let (mut not_started, mut collected) = (0, 0);
        for n in 1..=all {
            shell("rm -rf tree store && cp -a saved/. .");
            let said = steps(format!("run:{n}:kill -TERM $PPID"));
            let what = format!("run, SIGTERM before step {n} of {all}: {said}");
            if said.status == 0 {
                let newest = shell(&format!("ls store/sessions | grep -v {begun}"));
                let header = std::fs::read_to_string(world.session(newest.trim()).join("session.json")).expect("its header");
                assert!(!header.contains("uncollected") && sessions() == 2, "{what}");
                assert!(said.stderr().contains(&newest.trim()[16..]), "{what}");
                assert_eq!((&*world.status(newest.trim()), &*world.read("f")), (status, content), "{what}");
                collected += 1;
            } else {
                assert_eq!(said.status, 125, "{what}");
                assert!(said.stderr().contains("stopped by SIGTERM"), "{what}");
                assert_eq!((sessions(), &*world.read("f")), (1, "old"), "{what}");
                not_started += 1;
            }
        }
        println!("run: {not_started} not started, {collected} collected, of {all}");
        assert!(not_started > 5 && collected > 40, "{not_started} {collected}");
    }
}

/// What reads from somebody who writes nothing, and what waits for a lock, is ended by the first signal, and leaves nothing.
#[test]
fn a_signal_ends_what_waits_for_input_or_for_a_lock() {
    use rustix::process::{Pid, Signal, kill_process};
    let world = World::new();
    let id = world.edited("f");
    let store = world.store();
    let locked = std::fs::OpenOptions::new().append(true).create(true).open(store.join("numbering")).expect("the file of a lock");
    for (words, sent) in [("session write ID g", &b"half"[..]), ("session import", b""), ("session new", b"")] {
        let words = words.replace("ID", &id);
        let before = tree_of(&store);
        if words == "session new" {
            rustix::fs::flock(&locked, rustix::fs::FlockOperation::LockExclusive).expect("a lock");
        }
        let mut command = world.call(words.split(' ')).command();
        let mut child = command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut stdin = child.stdin.take().expect("its input");
        std::io::Write::write_all(&mut stdin, sent).expect("it reads");
        // It has its handlers, and waits.
        let caught = |status: &str| {
            let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t")).expect("what it catches");
            u64::from_str_radix(mask, 16).expect("hex") & 1 << 14 != 0
        };
        let start = std::time::Instant::now();
        while !caught(&std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("its state")) {
            assert!(start.elapsed().as_secs() < 30, "{words}: it catches no SIGTERM");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        kill_process(Pid::from_child(&child), Signal::TERM).expect("it waits");
        let out = child.wait_with_output().expect("its end");
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(143), "{words}: {said}");
        assert!(said.contains("stopped by SIGTERM") && said.contains("nothing was changed"), "{words}: {said}");
        assert_eq!(tree_of(&store), before, "{words}");
        drop(stdin);
    }
}

/// The names below a directory, but for those of the files that are locked.
fn tree_of(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let found = walkdir::WalkDir::new(directory).sort_by_file_name().into_iter().map(|entry| entry.expect("a name").into_path());
    found.filter(|path| !path.ends_with("lock") && !path.ends_with("numbering")).collect()
}

fn json(line: &str) -> serde_json::Value {
    serde_json::from_str(line).expect("JSON")
}

/// Those that are damaged are pruned after the others, and each of them is a session, too.
#[test]
fn a_signal_between_two_damaged_sessions_that_are_pruned_leaves_the_second() {
    let world = World::new();
    let ids = ["f", "g"].map(|name| world.edited(name));
    for id in &ids {
        world.write(world.session(id).join("session.json"), "{");
    }
    let left = || ids.iter().filter(|id| world.session(id).exists()).count();
    let shell = |command: &str| world.program("sh", ["-c", command]).cwd(world.root()).run().ok();
    shell("mkdir saved && cp -a tree store saved");
    let steps = |steps: String| world.call(["session", "prune", &ids[0], &ids[1], "-y"]).env("RECANT_STEPS", steps).run();
    let log = world.root().join("steps");
    steps(format!("log:{}", log.display())).ok();
    let all = std::fs::read_to_string(&log).expect("a log of steps").lines().count();
    let mut seen = [0; 3];
    for n in 1..=all {
        shell("rm -rf tree store && cp -a saved/. .");
        let said = steps(format!("run:{n}:kill -TERM $PPID"));
        let wanted = [0, 4, 143][left()];
        assert_eq!(said.status, wanted, "SIGTERM before step {n} of {all}: {said}");
        seen[left()] += 1;
    }
    assert!(seen.iter().all(|times| *times > 0), "{seen:?}");
}

/// A reader that does not read keeps it where it says what is done, and not one of the signals takes that away.
#[test]
fn a_report_that_waits_for_its_reader_is_whole_whatever_signal_comes() {
    use rustix::process::Signal;
    use std::io::Read;
    let mut words = vec!["commit ID", "commit ID --json", "rollback ID --json", "redo ID", "recover"];
    if common::can_run() {
        words.push("run --commit -- sh -c echo>made");
    } else {
        common::skip("the report of a run: recant run does not work here");
    }
    for (words, signal) in words.into_iter().zip([Signal::INT, Signal::TERM, Signal::HUP].into_iter().cycle()) {
        let scene = Scene::new(words.split(' ').next().filter(|verb| *verb != "run" && *verb != "recover").unwrap_or("commit"));
        let mut waiting = Waiting::of(&scene, words);
        waiting.signal(signal);
        let mut said = vec![0; waiting.filled];
        waiting.reader.read_exact(&mut said).expect("what was in the pipe");
        said.clear();
        waiting.reader.read_to_end(&mut said).expect("the report");
        let said = String::from_utf8(said).expect("text");
        assert_eq!(waiting.child.wait().expect("its end").code(), Some(0), "{words}: {said}");
        assert!(said.len() > 40 && said.ends_with('\n'), "{words}: {said}");
        scene.world.assert_tidy(words);
    }
}

/// A loop of a shell goes on where what it runs ended otherwise than by Ctrl-C.
#[test]
fn an_interrupted_operation_ends_the_shell_s_loop() {
    if !std::path::Path::new("/bin/bash").exists() {
        return common::skip("a loop of bash: there is no bash");
    }
    let scene = Scene::new("commit");
    let script = format!(
        "set -m; (for i in 1 2 3; do RECANT_STEPS=\"run:20:trap '' INT && kill -INT -\\$(ps -o pgid= -p \\$PPID | tr -d ' ')\" {} commit {}; echo next; done); echo after",
        common::recant(),
        scene.id
    );
    let said = scene.world.program("/bin/bash", ["-c", &script]).run();
    assert!(!said.stdout().contains("next"), "{said}");
}

/// recant, which has done what `words` ask for and writes its report into a full pipe.
struct Waiting {
    child: std::process::Child,
    reader: std::io::PipeReader,
    /// Bytes that were in the pipe.
    filled: usize,
}

impl Waiting {
    fn of(scene: &Scene, words: &str) -> Self {
        use std::io::Write;
        use std::process::Stdio;
        if words == "recover" {
            scene.reset();
            scene.kill_before_seal();
        }
        let (reader, mut pipe) = std::io::pipe().expect("a pipe");
        rustix::fs::fcntl_setfl(&pipe, rustix::fs::OFlags::NONBLOCK).expect("it does not wait");
        let mut filled = 0;
        while let Ok(n) = pipe.write(&[b'.'; 512]) {
            filled += n;
        }
        rustix::fs::fcntl_setfl(&pipe, rustix::fs::OFlags::empty()).expect("it waits");
        let mut command = scene.world.call(words.replace("ID", &scene.id).splitn(6, ' ')).command();
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
        let start = std::time::Instant::now();
        let at = || std::fs::read_to_string(format!("/proc/{}/syscall", child.id())).expect("what it waits in");
        while at().split(' ').nth(1) != Some(&writes) {
            assert!(start.elapsed().as_secs() < 30, "{words}: it does not write: {}", at());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        Self { child, reader, filled }
    }

    fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).expect("it waits");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_recovery_that_is_asked_to_end_comes_to_its_end_first() {
    let scene = Scene::new("commit");
    for n in common::steps() {
        scene.reset();
        scene.kill_before_seal();
        let said = scene.world.call(["recover"]).env("RECANT_STEPS", format!("run:{n}:kill -INT $PPID")).run();
        let what = format!("SIGINT before step {n}: {said}");
        if said.status == 130 {
            // Before its first effect.
            assert_eq!(scene.world.journals(), [&*scene.id], "{what}");
            scene.world.recant("recover").ok();
        } else {
            assert_eq!(said.status, 0, "{what}");
        }
        scene.before.assert_same(&scene.world.manifest(), &what);
        scene.world.assert_tidy(&what);
        if n > 20 && said.stdout().is_empty() || n > 60 {
            break;
        }
    }
}

#[test]
fn what_is_to_come_after_a_recovery_is_not_begun() {
    let scene = Scene::new("commit");
    scene.reset();
    let second = scene.world.begin();
    scene.world.stage_write(&second, "other", "o");
    scene.shell("rm -rf ../saved && mkdir ../saved && cp -a ../tree ../store ../saved");
    let mut not_begun = 0;
    for n in common::steps().step_by(3) {
        scene.reset();
        scene.kill_before_seal();
        let said = scene.world.call(["commit", &second]).env("RECANT_STEPS", format!("run:{n}:kill -TERM $PPID")).run();
        let what = format!("SIGTERM before step {n}: {said}");
        let recovered = scene.world.journals().is_empty();
        if recovered {
            scene.world.assert_tidy(&what);
        }
        assert_eq!(scene.world.exists("other"), said.status == 0, "{what}");
        if said.status == 0 {
            assert!(recovered && not_begun > 3, "{what}");
            break;
        }
        assert_eq!(said.status, 143, "{what}");
        not_begun += usize::from(recovered && said.stderr().contains("stopped by SIGTERM"));
    }
    // A command that is to be run is not started either.
    scene.reset();
    scene.kill_before_seal();
    let log = scene.world.root().join("steps of the recovery");
    scene.world.call(["recover"]).env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
    let steps = std::fs::read_to_string(&log).expect("a log of steps").lines().count();
    scene.reset();
    scene.kill_before_seal();
    let orders = format!("run:{}:kill -TERM $PPID", steps / 2);
    let said = scene.world.call(["run", "--", "touch", "made"]).env("RECANT_STEPS", orders).run().with(125);
    assert!(said.stderr().contains("stopped by SIGTERM") && !scene.world.exists("made"), "{said}");
    scene.world.assert_tidy("before a run");
    assert_eq!(scene.world.recant("list --jsonl").ok().stdout().lines().count(), 2);
}

#[test]
fn a_signal_that_is_ignored_stays_ignored() {
    let scene = Scene::new("commit");
    let script = format!("trap '' HUP INT; exec {} commit {}", common::recant(), scene.id);
    let orders = "run:30:kill -HUP $PPID && kill -INT $PPID";
    scene.world.program("sh", ["-c", &script]).env("RECANT_STEPS", orders).run().ok();
    assert_eq!(scene.world.status(&scene.id), "committed");
}

/// A prune whose parts go one after the other: what went before the signal is said, whichever part it came in.
#[test]
fn a_prune_that_is_ended_says_what_went_before() {
    let world = World::new();
    let ids = ["a", "b"].map(|name| world.edited(name));
    for verb in ["commit", "rollback"] {
        ids.iter().for_each(|id| drop(world.call([verb, id]).run().ok()));
    }
    for dir in ["one", "two"] {
        for n in ["0", "1"] {
            world.write(format!("{dir}/f"), n);
            world.recant(&format!("snapshot create {dir}")).ok();
        }
    }
    world.config("[retention]\nkeep = 0\n[snapshot]\nkeep = 1\n");
    let shell = |command: &str| world.program("sh", ["-c", command]).cwd(world.root()).run().ok();
    shell("mkdir saved && cp -a store saved");
    let held = || {
        let count = |words: &str, key: &str| world.recant(words).ok().json()[key].as_array().map_or(0, Vec::len);
        let snapshots = ["one", "two"].map(|dir| count(&format!("snapshot list {dir} --json"), "snapshots"));
        (count("list --json", "sessions"), snapshots.iter().sum::<usize>())
    };
    let all = held();
    let mut seen = std::collections::BTreeSet::new();
    for n in common::steps() {
        shell("rm -rf store && cp -a saved/store .");
        let said = world.call(["prune", "-y"]).env("RECANT_STEPS", format!("run:{n}:kill -TERM $PPID")).run();
        let left = held();
        let what = format!("SIGTERM before step {n}, {left:?} left of {all:?}: {said}");
        match said.status {
            0 => assert_eq!(left, (0, 2), "{what}"),
            4 => assert!(said.stderr().contains(" pruned before it") && left != all, "{what}"),
            status => {
                assert_eq!(status, 143, "{what}");
                assert_eq!(left, all, "{what}");
            }
        }
        seen.insert((said.status, left));
        if said.status == 0 && !said.stderr().contains("came when all was done") {
            break;
        }
    }
    println!("{seen:?}");
    assert!(seen.contains(&(4, (0, 4))) && seen.contains(&(4, (0, 3))) && seen.contains(&(4, (1, 4))), "{seen:?}");
}

/// The history of a shell is made for it, empty, before it starts.
#[test]
fn a_signal_before_a_held_shell_has_started_leaves_no_history_that_was_made_for_it() {
    if !common::can_run() || !std::path::Path::new("/bin/bash").exists() {
        return common::skip("signals to a shell: recant run does not work here, or there is no bash");
    }
    let world = World::new();
    world.edited("f");
    let shell = |command: &str| world.program("sh", ["-c", command]).cwd(world.root()).run().ok().stdout();
    shell("mkdir -p home saved && cp -a tree store home saved");
    let steps = |steps: String| {
        let call = world.call(["shell"]).env("SHELL", "/bin/bash").env("RECANT_STEPS", steps);
        call.stdin("ls -A ~; HISTFILE=\n").run()
    };
    let log = world.root().join("steps");
    let said = steps(format!("log:{}", log.display())).ok();
    assert!(said.stdout().contains(".bash_history"), "{said}");
    let all = std::fs::read_to_string(&log).expect("a log of steps").lines().count();
    let mut not_started = 0;
    for n in 1..=all {
        shell("rm -rf tree store home && cp -a saved/. .");
        let said = steps(format!("run:{n}:kill -TERM $PPID"));
        // A session that has lost its name is swept up by the next verb.
        let left = shell("ls -A home; ls store/sessions");
        assert!(left.lines().count() == 1, "SIGTERM before step {n} of {all}: {said}\n{left}");
        not_started += usize::from(said.status == 125);
    }
    assert!(not_started > 5, "{not_started} of {all}");
}

/// A hole is hashed as the zeros that it is, which takes half an hour for a large one: that is said before, and Ctrl-C is heeded in the
/// midst of it.
#[test]
fn a_signal_while_a_hole_of_a_tebibyte_is_hashed_ends_at_once_and_nothing_is_changed() {
    if !common::can_run() {
        return common::skip("a signal while content is hashed: recant run does not work here");
    }
    let world = World::new();
    world.write("before", "b");
    let said = world.call(["run", "-q", "--", "truncate", "-s", "1T", "large"]).run();
    if said.status != 0 {
        return common::skip("a signal while content is hashed: no file of 1 TiB can be made here");
    }
    let before = world.manifest();
    for (signal, ended) in [("INT", 2), ("TERM", 15)] {
        let mut command = world.call(["commit", "last"]).command();
        let mut child = command.stderr(std::process::Stdio::piped()).spawn().expect("recant");
        let mut heard = std::io::BufReader::new(child.stderr.take().expect("its messages"));
        let mut said = String::new();
        while !said.contains("Ctrl-C ends it") {
            let got = std::io::BufRead::read_line(&mut heard, &mut said).expect("what it says");
            assert!(got > 0, "it goes on for minutes: {said}");
        }
        assert!(said.contains("large: to hash 1.0 TiB takes long"), "{said}");
        std::thread::sleep(std::time::Duration::from_millis(300));
        let pid = child.id().to_string();
        world.program("kill", [&format!("-{signal}"), &pid]).run().ok();
        let asked = std::time::Instant::now();
        let status = child.wait().expect("its end");
        assert!(asked.elapsed() < std::time::Duration::from_secs(5), "it ends {:?} after SIG{signal}", asked.elapsed());
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(ended), "{status}");
        before.assert_same(&world.manifest(), "after a signal while it hashed");
        world.assert_tidy("a signal while it hashed");
    }
    assert!(world.recant("status").ok().stdout().contains("pending"));
}
