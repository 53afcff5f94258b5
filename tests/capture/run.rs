//! `recant run` and `recant shell`, the real binary: what becomes of a command's changes, its exit status and its
//! session. Each test runs as root and as an ordinary user; without root the user's half alone, which is said.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use crate::common::{self, Said, manifest, sweep, until};
use crate::desk::{Desk, USER, Who, each, has, is_root, settled};
use crate::killed;
use crate::mounts::own_mounts;

/// What `run --json` says last.
fn last_json(said: &Said) -> serde_json::Value {
    serde_json::from_str(said.stderr().lines().last().unwrap()).unwrap()
}

#[test]
fn the_command_s_own_status_is_that_of_run() {
    each(|desk| {
        for (script, status) in [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -9 $$", 137), ("kill -TERM $$", 143)] {
            desk.run(script).with(status);
        }
        assert!(desk.ids().is_empty(), "a run without changes leaves no session");
        assert!(desk.recant("run sh -c true").ok().stderr().contains("no file change"), "'--' may be left out");
    });
}

#[test]
fn changes_of_the_mtime_or_of_metadata_alone_are_counted_in_words_that_say_so() {
    each(|desk| {
        desk.made("echo 1 > one; echo 2 > two; echo 3 > three");
        let said = desk.run("touch -d @1 one two; chmod 600 three; echo > four").ok();
        let counts = "1 created, 1 of metadata, 2 of the mtime alone";
        assert!(said.stderr().contains(&format!("recant: {counts}\n")), "{said}");
        let said = desk.run("touch -d @2 one two").ok();
        assert!(said.stderr().contains("2 changes (2 of the mtime alone) held"), "{said}");
        desk.recant("discard last").ok();
        let said = desk.recant(&format!("show {}", desk.ids()[0])).ok();
        assert!(said.stdout().contains(&format!("changes     {counts}\n")), "{said}");
    });
}

#[test]
fn what_a_failed_command_changed_stays_pending_and_its_status_is_shown() {
    each(|desk| {
        let said = desk.run("echo half > half; exit 3").with(3);
        let id = desk.id();
        assert!(said.stderr().contains(&format!("held in session {} (the command exited with 3)", &id[16..])), "{said}");
        assert_eq!(desk.status(&id), "pending");
        assert!(!desk.world.exists("half"));
        let tail = &id[16..];
        for verb in ["diff", "commit", "discard"] {
            assert!(said.stderr().contains(&format!("recant {verb} {tail}")), "{said}");
        }
        let refused = desk.recant(&format!("commit {id}")).with(1).stderr();
        assert!(refused.contains(&format!("session {tail}: failed (3), so its changes may be incomplete")), "{refused}");
        // Nothing is asked about what cannot be committed in any case.
        desk.recant(&format!("discard {id}")).ok();
        let refused = desk.recant(&format!("commit {id} half")).with(1).stderr();
        assert!(refused.contains("discarded") && !refused.contains("failed (3)"), "{refused}");
        desk.recant(&format!("undo {id} -y")).ok();
        for words in ["", "list"] {
            assert!(desk.recant(words).ok().stdout().contains("failed (3)"), "{words}");
        }
        assert_eq!(desk.recant("list --json").ok().json()["sessions"][0]["failed"]["exited"], 3);
        assert!(!desk.world.exists("half"));
        desk.recant(&format!("commit {id} -y")).ok();
        assert_eq!(desk.world.read("half"), "half\n");
    });
}

#[test]
fn a_command_that_can_not_start_leaves_no_session() {
    each(|desk| {
        desk.made("echo text > text");
        desk.recant("run -- no-such-program").with(127);
        desk.recant("run -- ./text").with(126);
        desk.recant("run -- ./text/below").with(127);
        desk.recant("run --commit -- no-such-program").with(127);
        assert!(desk.ids().is_empty());
        let left = || std::fs::read_dir(desk.world.store().join("sessions")).unwrap().map(|entry| entry.unwrap().file_name());
        let names = || left().map(|name| name.into_string().unwrap());
        let left = || names().filter(|name| name != ".numbering").collect::<Vec<_>>();
        assert_eq!(left(), Vec::<String>::new());
        desk.run("echo new > new").ok();
        assert_eq!(left(), desk.ids());
    });
}

#[test]
fn what_can_not_be_captured_is_not_started() {
    each(|desk| {
        desk.made("mkdir -p gone");
        let store = desk.world.store();
        desk.recant("session new").ok();
        // In the store, which is hidden in the run.
        let said = desk.call(["run", "--", "touch", "made"]).cwd(store.join("sessions")).run().with(125);
        assert!(said.stderr().contains("was not started"), "{said}");
        // A directory as standard input is a way around the capture.
        let mut command = desk.held("", "true").command();
        let directory = std::fs::File::open(desk.world.tree()).unwrap();
        let output = command.stdin(Stdio::from(directory)).output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{}", String::from_utf8_lossy(&output.stderr));
        // A working directory without a path.
        let script = format!("cd gone && rmdir ../gone && exec {} run -- true", desk.binary.display());
        desk.give(desk.world.program("sh", ["-c", &script])).run().with(125);
        desk.recant("run --hide no-such-directory -- true").with(125);
        if desk.who == Who::User {
            let said = desk.recant("run -- sudo touch made").with(125);
            assert!(said.stderr().contains("sudo recant run"), "{said}");
        }
        assert_eq!(desk.ids().len(), 1, "only the session that was there");
    });
}

#[test]
fn settings_and_a_store_that_can_not_be_meant_keep_a_command_from_being_started_as_all_else_does() {
    each(|desk| {
        let tree = desk.world.tree();
        let all =
            [&["run", "--", "touch", "made"][..], &["run", "--in", tree.to_str().unwrap(), "--", "touch", "made"], &["shell"]];
        let not_started = |said: Said, why: &str| {
            let said = said.with(125);
            assert!(said.stderr().contains(why) && said.stderr().contains("was not started"), "{said}");
        };
        let shell = |words: &[&str]| desk.call(words.iter().copied()).env("SHELL", "/bin/true");
        for words in all {
            not_started(shell(words).env("RECANT_STORE", "rel").run(), "RECANT_STORE=rel: the store's path has to be absolute");
        }
        desk.world.config("colour = 'never'\n");
        for words in all {
            not_started(shell(words).run(), "unknown key \"colour\"");
        }
        assert!(!desk.world.exists("made"));
        let said = desk.recant("run --json -- true").with(125);
        assert_eq!(said.json_err()["kind"], "refused", "what it was stands in the JSON: {said}");
        desk.recant("list").with(1);
    });
}

#[test]
fn commit_follows_a_good_command_alone() {
    each(|desk| {
        let before = desk.made("echo old > kept");
        desk.held("--commit", "echo new > kept; exit 5").run().with(5);
        desk.world.manifest().assert_same(&before, "a command that failed is not committed");
        let failed = desk.id();
        assert_eq!(desk.status(&failed), "pending");
        desk.held("--commit", "echo new > kept; echo more > more").run().ok();
        assert_eq!(desk.world.read("kept"), "new\n");
        assert_eq!(desk.status("last"), "committed");
        desk.recant("rollback last").ok();
        desk.world.manifest().assert_same(&before, "rolled back");
    });
}

#[test]
fn a_commit_that_conflicts_gives_its_own_status_and_keeps_what_is_held() {
    each(|desk| {
        desk.made("echo old > kept");
        let waiting = desk.start("--commit", "echo ready; read go; echo mine > kept");
        desk.made("echo theirs > kept");
        let mut waiting = waiting;
        waiting.child.stdin.take().unwrap().write_all(b"\n").unwrap();
        assert_eq!(waiting.child.wait().unwrap().code(), Some(3));
        assert_eq!(desk.world.read("kept"), "theirs\n");
        let id = desk.id();
        assert_eq!(desk.status(&id), "pending");
        desk.recant(&format!("commit {id} --force")).ok();
        assert_eq!(desk.world.read("kept"), "mine\n");
        desk.recant(&format!("rollback {id}")).ok();
        assert_eq!(desk.world.read("kept"), "theirs\n");
    });
}

#[test]
fn a_name_given_to_a_run_names_its_session() {
    each(|desk| {
        desk.held("-n first", "echo new > new").run().ok();
        assert_eq!(desk.status("first"), "pending");
        for (name, why) in [("first", "taken"), ("1st", "letter"), ("last", "last")] {
            let said = desk.held(&format!("-n {name}"), "echo started; echo other > other").run().with(125);
            assert_eq!(said.stdout(), "", "not started: {said}");
            assert!(said.stderr().contains("the command was not started") && said.stderr().contains(why), "{name}: {said}");
            let goes_on = "recant run --session first -- COMMAND goes on in it; or take another name";
            assert_eq!(said.stderr().contains(goes_on), name == "first", "{said}");
        }
        desk.recant("commit first").ok();
        assert_eq!(desk.world.read("new"), "new\n");
    });
}

#[test]
fn a_session_in_which_a_further_command_was_not_started_is_as_it_was() {
    each(|desk| {
        // An ordinary user's files that are closed to their owner are opened up in the session.
        let before = desk.made("mkdir sub; echo old > a; echo text > text; echo x > x");
        desk.held("--pass x", "echo new > a; echo k > b; chmod 200 b; exit 3").run().with(3);
        let id = desk.id();
        let told = || {
            let mut shown = desk.recant(&format!("show {id} --json")).ok().json();
            shown["session"]["changed"].take();
            let kept = std::fs::read(desk.world.session(&id).join("run.json")).unwrap();
            let kept: serde_json::Value = serde_json::from_slice(&kept).unwrap();
            (shown, [kept["argv"].clone(), kept["ending"].clone(), kept["notes"].clone(), kept["coverage"].clone()])
        };
        let was = told();
        let go_on = |directory: &str, words: &[&str]| {
            let call = desk.call([&["run", "--session", &id][..], words].concat());
            call.cwd(desk.world.path(directory)).run()
        };
        for (status, words) in [(127, &["--", "no-such-program"][..]), (126, &["./text"]), (125, &["--hide", "none", "true"])] {
            let said = go_on(".", words).with(status);
            assert_eq!(told(), was, "{said}");
            let listed = desk.recant("list").ok();
            assert!(listed.stdout().contains("pending") && !listed.stdout().contains("ended"), "{listed}");
            assert!(!desk.recant("diff last").ok().stderr().contains("cut off"));
        }
        // A place more, whose upper stays, where a set-up that was cut off has left one.
        let record = std::fs::read(desk.world.session(&id).join("run.json")).unwrap();
        let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
        let next = record["places"].as_array().unwrap().iter().map(|place| place["k"].as_u64().unwrap() + 1).max().unwrap();
        let left = desk.world.session(&id).join(format!("held/upper/{next}"));
        desk.bare(&desk.world.store(), &format!("mkdir {0}; echo left > {0}/left", left.display()));
        desk.world.config("[capture]\nalso = ['/usr/share']\n");
        go_on("sub", &["--", "no-such-program"]).with(127);
        assert_eq!(told(), was);
        go_on("sub", &["--", "sh", "-c", "echo c > ../c && cat ../a"]).ok();
        assert_eq!(desk.paths(&id), ["a", "b", "c"]);
        if desk.who == Who::User {
            // Which that user cannot take back.
            go_on(".", &["--", "chmod", "600", "b"]).ok();
        }
        desk.recant(&format!("commit {id}")).ok();
        assert_eq!((desk.world.read("a"), desk.world.read("c")), ("new\n".into(), "c\n".into()));
        desk.recant(&format!("rollback {id}")).ok();
        desk.world.manifest().assert_same(&before, "rolled back");
    });
}

#[test]
fn what_the_first_run_of_a_session_said_stays_said_in_the_further_ones() {
    each(|desk| {
        desk.made("echo old > a; mkdir -p d/in; echo x > d/in/x; echo pp > pp; echo qq > qq");
        let is_root = desk.who == Who::Root;
        if is_root {
            desk.bare(&desk.world.tree(), "mknod d/none c 0 0");
        }
        desk.held("--pass pp", "echo new > a; if [ -e d/none ] || [ $(id -u) = 0 ]; then mv d e; fi").run().ok();
        let id = desk.id();
        let shown = || desk.recant(&format!("show {id} -v")).ok().stdout();
        let real = desk.world.path("pp").display().to_string();
        let once = |text: &str| {
            let shown = shown();
            assert_eq!(shown.matches(text).count(), 1, "{text}: {shown}");
        };
        let lost = "a device 0:0 cannot move with the renamed directory";
        for script in ["true", "echo b > b", "echo c > c"] {
            let said = desk.held(&format!("--session {id} --pass qq"), script).run().ok();
            assert!(shown().lines().any(|line| line.starts_with("real") && line.contains(&real)), "{}", shown());
            once(&format!("{real}: in an earlier run: --pass"));
            if is_root {
                once(&format!("in an earlier run: {}: {lost}", desk.world.path("d/none").display()));
                assert!(!said.stderr().contains(lost), "it is no news: {said}");
            }
        }
        desk.recant(&format!("run --session {id} -- no-such-program")).with(127);
        once(&format!("{real}: in an earlier run: --pass"));
    });
}

/// What becomes of two runs of a session, and of what somebody does between them.
enum Ends {
    /// The second says this; a commit and a rollback of both are exact.
    Fits(&'static str),
    /// These paths stand against a commit. By force it ends with 0; with 4, as it leaves out what has no directory any more; or with 3, where
    /// something that the session does not hold is in the way.
    Against(&'static [&'static str], i32),
}

#[test]
fn what_somebody_does_between_two_runs_of_a_session_is_seen_by_the_second_or_is_a_conflict() {
    use Ends::{Against, Fits};
    // `equal` is copied up and no change in the end: it does not stay in the session.
    let several = "echo one > one; echo two > two; echo equal > equal; mkdir d; echo d > d/d";
    let nested = "mkdir c; echo old > c/d; echo old > e";
    let precious = "echo precious > c/d; echo mine > e; echo other > other";
    let seen = "mkdir -p d/sub; echo f > d/f; echo g > d/sub/g; echo other > other";
    let seen_first = "echo first > other; cat d/f";
    let seen_theirs = "echo theirs >> d/f; echo new > d/new; chmod 700 d/sub; echo h > d/sub/h";
    let files = "echo f > f; echo g > g; touch -d 2001-01-01 f";
    let directories = "mkdir d full; echo in > full/in";
    each(|desk| {
        let rename = if desk.who == Who::Root && has("perl") { "perl -e 'rename \"d\", \"e\" or die'" } else { "mv d e" };
        // Made, the first run, somebody, the second run.
        for (n, (made, first, theirs, second, ends)) in [
            (
                several,
                "echo 1 > one; chmod 600 equal; chmod 644 equal; rm -r d",
                "echo theirs > one; echo theirs > equal; echo theirs > d/new",
                "echo 2 > two",
                Against(&["d/new", "one"], 3),
            ),
            (nested, precious, "rm -r c", "echo hi > unrelated", Against(&["c/d"], 4)),
            (nested, precious, "rm -r c; echo theirs > c", "echo hi > unrelated", Against(&["c/d"], 4)),
            // What both have removed is none.
            (nested, precious, "rm -r c", "chmod 700 c; rm c/d", Against(&["c"], 4)),
            (nested, precious, "rm e; mkdir e; echo theirs > e/x", "rm e; echo z > e", Against(&["e"], 3)),
            (nested, precious, "rm -r c; mkdir -p c/d/f; echo theirs > c/d/f/g", "rm c/d; echo z > c/d", Against(&["c/d"], 3)),
            // What the first run has touched lies in its upper as well, though it is no change: it was the tree's all the time.
            (files, "chmod 600 g; chmod 644 g; echo first > other", "true", "echo mine > g", Fits("")),
            // A directory that the first run left alone was seen by the second as it is.
            (seen, seen_first, seen_theirs, rename, Fits("")),
            (seen, seen_first, seen_theirs, "rm -r d", Fits("")),
            (seen, seen_first, seen_theirs, "rm d/f d/new", Fits("")),
            (seen, seen_first, seen_theirs, "echo mine > d/f; mv d/f d/new", Fits("")),
            (seen, seen_first, seen_theirs, "rm d/f; mv -T d/new d/f", Fits("")),
            // A copy that is no change does not stay in the first run's upper.
            (files, "true <> f; echo first > other", "echo theirs > f", "cat f; rm f", Fits("theirs\n")),
            (files, "true <> f; echo first > other", "echo theirs > f", "cat f; mv g f", Fits("theirs\n")),
            (
                files,
                "echo x > f; echo f > f; touch -d 2001-01-01 f; echo first > other",
                "echo theirs > f",
                "cat f; rm f",
                Fits("theirs\n"),
            ),
            (files, "ln f h; rm h; echo first > other", "echo theirs > f", "cat f; rm f", Fits("theirs\n")),
            // A directory that the first run made anew hides the tree from the second without being a change.
            (directories, "rmdir d; mkdir d; echo first > other", "echo theirs > d/x", "rmdir d", Against(&["d/x"], 3)),
            (
                directories,
                "rmdir d; mkdir d; echo first > other",
                "echo theirs > d/x",
                "rmdir d; mkdir d; echo mine > d/x",
                Against(&["d/x"], 0),
            ),
            (directories, "rm -r full", "echo theirs > full/x", "mkdir full; echo mine > full/x", Against(&["full/x"], 0)),
        ]
        .into_iter()
        .enumerate()
        {
            let what = format!("{:?}: {first} | {theirs} | {second}", desk.who);
            desk.made(&format!("mkdir {n}; cd {n}; {made}"));
            desk.run(&format!("cd {n}; {first}")).ok();
            let id = desk.ids().pop().unwrap();
            desk.made(&format!("cd {n}; {theirs}"));
            let now = desk.world.manifest();
            let said = desk.held(&format!("--session {id}"), &format!("cd {n}; {second}")).run().ok();
            let commit = |options: &str| desk.recant(&format!("commit {id} {options}"));
            match ends {
                Fits(seen) => {
                    assert_eq!(said.stdout(), seen, "{what}");
                    commit("").ok();
                }
                Against(paths, forced) => {
                    let paths: Vec<String> =
                        paths.iter().map(|path| desk.world.path(format!("{n}/{path}")).display().to_string()).collect();
                    assert_eq!(commit("--json").with(3).against(), paths, "{what}");
                    desk.world.manifest().assert_same(&now, &what);
                    let said = commit("--force");
                    assert_eq!(said.status, forced, "{what}: {said}");
                    if forced == 3 {
                        desk.world.manifest().assert_same(&now, &what);
                        desk.recant(&format!("discard {id}")).ok();
                        continue;
                    }
                }
            }
            assert!(desk.world.exists(format!("{n}/other")) || first == "rm -r full", "{what}");
            desk.recant(&format!("rollback {id}")).ok();
            desk.world.manifest().assert_same(&now, &what);
        }
    });
}

#[test]
fn a_session_that_is_named_is_begun_by_its_first_run_and_gone_on_in_by_the_others() {
    each(|desk| {
        let said = desk.held("--session work", "echo 1 > one").run().ok();
        let id = desk.id();
        assert!(said.stderr().starts_with(&format!("recant: new session {}, named work\n", &id[16..])), "{said}");
        let said = desk.held("--session work", "cat one; echo 2 > two").run().ok();
        let goes_on = format!("recant: step 2 of session {}: 1 change (1 created), 2 in all\n", &id[16..]);
        assert_eq!((said.stdout(), said.stderr()), ("1\n".into(), goes_on));
        // By its id, and as the newest, it is the same session; `shell` names it likewise.
        desk.held(&format!("--session {}", &id[16..]), "cat two; echo 3 > three").run().ok();
        desk.held("--session last", "cat three; echo 4 > four").run().ok();
        let shell = |words: &[&str]| desk.call([&["shell"], words].concat()).env("SHELL", "/bin/sh").stdin("cat four\n").run();
        let said = shell(&["--session", "work"]).ok();
        let goes_on = format!("recant: going on in session {}, named work: 4 changes so far\n", &id[16..]);
        assert!(said.stdout() == "4\n" && said.stderr().starts_with(&goes_on), "{said}");
        assert_eq!(shell(&["work"]).ok().stdout(), "4\n");
        assert_eq!((desk.id(), desk.paths(&id)), (id, ["four", "one", "three", "two"].map(Into::into).to_vec()));
        // One that was begun for nothing is gone again: it was never called new. Quiet runs say nothing of which it is.
        for (options, status, want) in [("", 3, "recant: no file change (the command exited with 3)\n"), ("-q", 0, "")] {
            let said = desk.held(&format!("--session nothing {options}"), &format!("exit {status}")).run().with(status);
            let is_quiet = want.is_empty() == said.err.is_empty();
            assert!(is_quiet && said.stderr().ends_with(want) && desk.ids().len() == 1, "{said}");
            assert!(!said.stderr().contains("new session"), "{said}");
        }
        let said = desk.call(["run", "--session", "nothing", "--", "no-such-command"]).run().with(127);
        assert!(!said.stderr().contains("new session"), "{said}");
        let said = desk.held("--session dropped --discard", "touch made").run().ok();
        assert!(!said.stderr().contains("new session"), "{said}");
        // A shell in a new one says so before it begins.
        let said = shell(&["--session", "other"]).with(1);
        let begins = "recant: other is a new session, which the first change begins\nrecant: a shell with every file change held";
        assert!(said.stderr().starts_with(begins) && said.stderr().matches("new session").count() == 1, "{said}");
    });
}

#[test]
fn of_runs_that_name_a_session_at_once_one_begins_it_and_the_others_join() {
    each(|desk| {
        let waiting = desk.start("--session work", "echo 1 > one; echo ready; read go");
        for words in ["run --session work -- cat one", "shell work", "shell --session work"] {
            let said = desk.call(words.split(' ')).stdin("cat one\n").env("SHELL", "/bin/sh").run().ok();
            assert_eq!(said.stdout(), "1\n", "{said}");
        }
        waiting.go();
        desk.held("--session work", "cat one").run().ok();
        let calls: Vec<_> = (0..6)
            .map(|n| desk.held("--session many -q", &format!("echo {n} > {n}; sleep 0.3")).command())
            .map(|mut command| command.stderr(Stdio::null()).spawn().unwrap())
            .collect();
        let good = calls.into_iter().filter_map(|mut call| call.wait().unwrap().success().then_some(())).count();
        assert_eq!((good, desk.ids().len(), desk.paths("many").len()), (6, 2, 6));
    });
}

#[test]
fn a_session_that_no_run_can_go_on_in_is_refused_with_the_reason_and_what_to_do() {
    each(|desk| {
        desk.made("echo one > one; echo two > two");
        let refused = |key: &str, why: &str| {
            for words in [format!("run --session {key} -- echo started"), format!("shell {key}")] {
                let said = desk.recant(&words).with(125);
                // Nothing else is said: no banner before it.
                assert!(said.out.is_empty() && said.stderr().lines().count() == 3, "{said}");
                assert!(said.stderr().contains(why) && said.stderr().contains("the command was not started"), "{said}");
            }
        };
        desk.held("--session work", "echo 1 > one; echo 2 > two").run().ok();
        let id = desk.id();
        // A part leaves it open.
        desk.recant(&format!("commit {id} one")).ok();
        desk.held("--session work", "cat one; echo 3 > two").run().ok();
        desk.recant(&format!("commit {id}")).ok();
        refused(&id, "it is committed");
        refused(&id[16..], "--session NAME");
        // What was committed is gone.
        desk.bare(&desk.world.tree(), "echo mine > two");
        desk.recant(&format!("rollback {id} --force")).ok();
        refused(&id, "it is rolled back");
        desk.run("echo 3 > three").ok();
        let dropped = desk.ids().pop().unwrap();
        desk.recant(&format!("discard -y {dropped}")).ok();
        refused(&dropped, "it is discarded");
        refused(&dropped, "recant undo");
        let staged = desk.recant("session new -n staged").ok().id();
        refused(&staged, "it was staged by hand");
        refused("staged", "it was staged by hand");
        assert_eq!(desk.status(&id), "rolled_back");
        // What can be no name gets no session.
        for (name, why) in [("1a", "it does not start with a letter"), ("a/b", "letters, digits"), ("", "letter")] {
            let said = desk.call(["run", "--session", name, "--", "echo", "started"]).run().with(125);
            assert!(said.out.is_empty() && said.stderr().contains(why), "{said}");
            assert!(
                said.stderr().ends_with("a name begins with a letter; letters, digits, '.', '_' and '-' follow, 64 at most\n")
            );
        }
    });
}

#[test]
fn a_session_of_which_a_file_cannot_be_read_is_not_gone_on_in_and_the_command_is_not_started() {
    each(|desk| {
        desk.held("-n work", "echo 1 > one").run().ok();
        let id = desk.id();
        let directory = desk.world.session(&id);
        for name in ["session.json", "changes.jsonl", "run.json"] {
            let whole = std::fs::read(directory.join(name)).expect("a file of the session");
            for damage in ["printf { > F", "mv F F.aside && mkdir F"] {
                desk.bare(&directory, &damage.replace('F', name));
                let said = desk.call(["run", "--session", &id, "--", "echo", "started"]).run().with(125);
                assert!(said.out.is_empty() && said.stderr().contains("the command was not started"), "{name}, {damage}: {said}");
                assert!(said.stderr().contains(name), "{name}, {damage}: {said}");
                desk.bare(&directory, &"if [ -d F ]; then rmdir F && mv F.aside F; fi".replace('F', name));
                desk.world.write(directory.join(name), &whole);
            }
        }
        desk.call(["run", "--session", &id, "--", "cat", "one"]).run().ok();
    });
}

#[test]
fn an_imported_session_is_not_gone_on_in() {
    each(|desk| {
        desk.run("echo 1 > one").ok();
        let id = desk.id();
        let stream = desk.recant(&format!("session export {id}")).ok().out;
        let other = desk.world.root().join("other");
        let other = ["--store", other.to_str().unwrap()];
        desk.call([&other[..], &["session", "import"]].concat()).stdin(stream).run().ok();
        let said = desk.call([&other[..], &["run", "--session", &id, "--", "echo", "started"]].concat()).run().with(125);
        assert!(said.out.is_empty() && said.stderr().contains("it was imported\n"), "{said}");
    });
}

#[test]
fn inside_a_run_a_run_just_runs_and_the_tree_is_not_recant_s() {
    each(|desk| {
        desk.run("echo first > first").ok();
        let held = desk.id();
        let me = desk.binary.display().to_string();
        let store = desk.world.store().display().to_string();
        let script = format!(
            "{me} run -- sh -c 'echo deep > deep; exit 4'; echo run $?
             {me} commit {held}; echo commit $?; {me} rollback {held}; echo rollback $?; {me} redo {held}; echo redo $?
             ls -A {store} 2>&1 | grep -c sessions; rm -rf {store} 2>&1 >/dev/null | head -c 1 | wc -c"
        );
        let said = desk.run(&script).ok();
        let (first, second) = (held.clone(), desk.ids()[1].clone());
        let out = said.stdout();
        assert!(out.starts_with("run 4\ncommit 1\nrollback 1\nredo 1\n0\n"), "{said}");
        let (notes, refused) = (said.stderr(), said.stderr().matches("inside").count());
        assert!(notes.contains(&second) && refused >= 4, "each says that it is inside: {said}");
        assert_eq!(desk.paths(&second), ["deep"], "the store is no change");
        assert_eq!(desk.status(&first), "pending");
        desk.recant(&format!("commit {first}")).ok();
    });
}

/// Programs tell by that name what manages services, as Ansible does.
#[test]
fn pid_1_of_a_run_has_the_name_of_the_machine_s() {
    each(|desk| {
        let machines = std::fs::read_to_string("/proc/1/comm").unwrap();
        assert_eq!(desk.run("cat /proc/1/comm").ok().stdout(), machines);
        assert_eq!(desk.held("", "cat /proc/1/comm").run().ok().stdout(), machines);
    });
}

/// Starts a held script with nothing on its descriptors, in a process group of its own.
fn in_a_group(desk: &Desk, options: &str, script: &str) -> (std::process::Child, rustix::process::Pid) {
    use std::os::unix::process::CommandExt;
    let mut command = desk.held(options, script).command();
    let child = command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    (child, pid)
}

fn is_stopped(pid: rustix::process::Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap();
    stat.rsplit(") ").next().unwrap().starts_with('T')
}

#[test]
fn a_command_that_stopped_itself_goes_on_with_recant() {
    each(|desk| {
        let (mut child, pid) = in_a_group(desk, "--commit", "kill -STOP $$; echo on > went");
        until("recant stops with its command", || is_stopped(pid));
        // To recant alone, as somebody does who knows of no other process.
        rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
        until("the command goes on", || child.try_wait().unwrap().is_some());
        assert!(child.wait().unwrap().success());
        assert_eq!(desk.world.read("went"), "on\n");
    });
}

#[test]
fn a_command_that_stops_again_as_soon_as_it_is_continued_with_its_group_stays_stopped() {
    const STOPS: u32 = 30;
    each(|desk| {
        let (mut child, pid) = in_a_group(desk, "-q", &format!("for n in $(seq {STOPS}); do kill -STOP $$; done; exit 9"));
        for n in 0..STOPS {
            until(&format!("recant stops with its command, after {n}"), || is_stopped(pid));
            rustix::process::kill_process_group(pid, rustix::process::Signal::CONT).unwrap();
        }
        assert_eq!(child.wait().unwrap().code(), Some(9));
    });
}

#[test]
fn a_killed_recant_takes_the_command_along_and_what_it_wrote_is_collected_by_the_next_verb() {
    each(|desk| {
        for (n, verb) in ["diff", "commit", "show"].into_iter().enumerate() {
            desk.made("echo old > old");
            let before = desk.world.manifest();
            // Nobody else sleeps for so long.
            let sleeps = format!("sleep 7{}{n}", std::process::id());
            let script =
                format!("echo new > old; mkdir d; echo made > d/made; ({sleeps} &); echo ready; {sleeps}; echo late > late");
            let id = format!("by-{verb}");
            let waiting = desk.start(&format!("-n {id}"), &script);
            let so_far = desk.recant(&format!("{} {id}", if verb == "commit" { "diff" } else { verb })).ok();
            assert!(so_far.stderr().contains("this is what it has changed so far"), "{so_far}");
            assert!(so_far.stdout().contains("d/made") && so_far.stdout().contains("old"), "{so_far}");
            let listed = desk.recant("list").ok();
            assert!(!listed.stdout().contains("ended"), "it is under way: {listed}");
            killed(desk, waiting);
            let left = desk.world.program("pgrep", ["-xf", &sleeps]).run();
            assert!(left.out.is_empty(), "no process is left: {left}");
            let said = desk.recant(&format!("{verb} {id}")).with(i32::from(verb == "commit"));
            assert!(said.stderr().contains("cut off; what it had changed is held: 3 changes"), "{verb}: {said}");
            desk.world
                .manifest()
                .without_directory_times()
                .assert_same(&before.clone().without_directory_times(), "nothing was changed");
            assert_eq!(desk.paths(&id), ["d", "d/made", "old"]);
            desk.recant(&format!("commit {id} -y")).ok();
            assert_eq!((&*desk.world.read("old"), &*desk.world.read("d/made")), ("new\n", "made\n"));
            desk.recant(&format!("rollback {id}")).ok();
            desk.world.manifest().without_directory_times().assert_same(&before.without_directory_times(), "rolled back");
        }
    });
}

#[test]
fn what_a_discarded_run_held_is_said_to_be_gone_also_where_a_part_is_on_the_tree() {
    each(|desk| {
        desk.run("echo a > a; echo b > b").ok();
        let id = desk.id();
        desk.recant(&format!("commit {id} a")).ok();
        desk.recant(&format!("prune --checkpoints {id}")).ok();
        desk.recant(&format!("discard {id}")).ok();
        assert_eq!(desk.recant(&format!("cat {id} b")).ok().stdout(), "b\n", "it is kept");
        desk.recant("prune --discarded -y").ok();
        let said = desk.recant(&format!("cat {id} b")).with(1);
        assert!(said.stderr().contains("is discarded"), "{said}");
        assert!(desk.world.exists("a") && !desk.world.exists("b"));
    });
}

#[test]
fn last_is_a_run_that_was_cut_off_and_no_run_that_is_under_way_or_left_nothing() {
    each(|desk| {
        desk.run("echo older > older").ok();
        let waiting = desk.start("", "echo newer > newer; echo ready; sleep 1000");
        let (older, newer) = (desk.ids()[0].clone(), desk.ids()[1].clone());
        let said = desk.recant("diff last --name-only").ok();
        assert!(
            said.stdout().ends_with("/older\n") && said.stderr().contains(&format!("session {newer} is under way")),
            "{said}"
        );
        killed(desk, waiting);
        desk.start("", "echo ready; sleep 1000").kill();
        until("that one, too", || desk.recant("list").ok().stdout().matches("cut off").count() == 2);
        // Nobody has seen what was collected just now.
        let said = desk.recant("commit last").with(1);
        let tail = newer.rsplit('-').next().unwrap();
        assert!(said.stderr().contains(&format!("recant diff {tail} shows it; recant commit {tail} commits it")), "{said}");
        assert!(said.stderr().contains("nothing was changed"), "{said}");
        assert!(!desk.world.exists("newer") && !desk.world.exists("older"), "{said}");
        let said = desk.recant("commit last -y").ok();
        assert!(desk.world.exists("newer") && !desk.world.exists("older"), "{said}");
        assert_eq!((desk.status(&older), desk.status(&newer)), ("pending".into(), "committed".into()));
    });
}

#[test]
fn recover_names_the_runs_that_were_cut_off_and_commit_of_a_part_waits_until_somebody_has_seen_it() {
    each(|desk| {
        let cut = || {
            killed(desk, desk.start("", "echo new > new; echo more > more; echo ready; sleep 1000"));
            desk.ids().last().unwrap().clone()
        };
        let id = cut();
        let held = format!("the run of session {id} was cut off; what it had changed is held: 2 changes\n");
        let told =
            format!("{:<12} {}: what its command had changed is held: recant show", "cut off", id.rsplit('-').next().unwrap());
        let tells = || desk.recant("status").ok().stdout().contains(&told);
        assert!(tells(), "before anything recovers it");
        assert_eq!(desk.recant("recover").ok().stdout(), held);
        assert_eq!((desk.status(&id), tells()), ("pending".into(), true));
        let said = desk.recant("recover").ok();
        assert!(said.stdout().is_empty() && said.stderr().contains("nothing was interrupted"), "{said}");
        let id = cut();
        let said = desk.recant(&format!("recover {id} --json")).ok().json();
        let row = &said["recovered"][0];
        assert_eq!(
            (&row["session"], &row["verb"], &row["result"]),
            (&id.clone().into(), &"run".into(), &"collected".into()),
            "{said}"
        );
        let id = cut();
        let said = desk.recant("recover last").ok();
        assert!(said.stderr().contains(&held.trim_end()[..20]) && !said.stderr().contains("nothing was interrupted"), "{said}");
        assert_eq!(desk.status(&id), "pending");
        let id = cut();
        desk.recant(&format!("commit {id} new")).with(1);
        assert!(!desk.world.exists("new"));
        desk.recant(&format!("commit {id} new -y")).ok();
        assert!(desk.world.exists("new") && !desk.world.exists("more"));
        // One that is under way stays so.
        let waiting = desk.start("", "echo ready; read go");
        assert!(desk.recant("recover").ok().stderr().contains("nothing was interrupted"));
        waiting.go();
    });
}

#[test]
fn a_session_in_which_a_further_run_is_under_way_is_last_and_no_older_one_is_taken_for_it() {
    each(|desk| {
        let before = desk.made("echo old > a");
        desk.run("echo older > a").ok();
        desk.run("echo newer > b").ok();
        let ids = desk.ids();
        let waiting = desk.start(&format!("--session {}", ids[1]), "echo ready; read go; echo more > c");
        for (status, words) in [(6, "discard -y last"), (6, "commit last"), (0, "diff last")] {
            let call = desk.recant(words);
            assert_eq!(call.status, status, "{words}: {call}");
            let tail = |id: &str| id.rsplit('-').next().unwrap().to_owned();
            assert!(call.stderr().contains(&tail(&ids[1])) && !call.stderr().contains(&tail(&ids[0])), "{words}: {call}");
        }
        assert_eq!(desk.status(&ids[0]), "pending");
        desk.world.manifest().assert_same(&before, "nothing is done");
        waiting.go();
        desk.recant("commit last").ok();
        assert_eq!((desk.world.read("a"), desk.world.read("c")), ("old\n".into(), "more\n".into()));
    });
}

#[test]
fn what_happens_on_the_real_tree_during_the_run_is_a_conflict_at_commit() {
    each(|desk| {
        // Root renames a directory; a user's mv copies it.
        let renamed = |outside, path| ("mkdir -p f/d; echo a > f/a; echo b > f/d/b", "mv f e; echo x > e/x", outside, path);
        let of_root = [
            renamed("rm -r f", "e"),
            renamed("echo theirs > f/a", "f/a"),
            renamed("echo theirs > f/new", "f/new"),
            renamed("mkdir e", "e"),
            renamed("chmod 700 f", "f"),
        ];
        let cases = [
            // made first, the run, the real tree meanwhile, the path that stands against it
            ("echo a > f", "echo mine > f", "echo theirs > f", "f"),
            ("echo a > f", "echo mine >> f", "sed -i s/a/b/ f", "f"),
            ("echo a > f", "echo mine > f", "chmod 600 f", "f"),
            ("echo a > f", "rm f", "echo theirs > f", "f"),
            ("echo a > f", "chmod 600 f", "echo theirs > f", "f"),
            ("true", "echo mine > f", "echo theirs > f", "f"),
            ("true", "mkdir f; echo mine > f/f", "echo theirs > f", "f"),
            ("true", "mkdir f", "mkdir -m 700 f", "f"),
            ("true", "mkdir f; echo a > f/a", "mkdir f", "f"),
            ("true", "ln -s mine f", "ln -s theirs f", "f"),
            ("echo a > f", "echo mine >> f", "rm f", "f"),
            ("echo a > f; echo b > g", "echo mine >> f; rm g", "rm f", "f"),
            ("echo a > f", "chmod 600 f", "rm f", "f"),
            ("echo a > f", "echo mine >> f", "rm f; mkdir f", "f"),
            ("mkdir f; echo a > f/a", "rm -r f", "echo theirs > f/new", "f/new"),
            ("mkdir f; echo a > f/a", "rm -r f", "echo theirs > f/a", "f/a"),
            ("mkdir -p f/d; echo a > f/d/a", "rm -r f; mkdir f; echo b > f/b", "echo theirs > f/d/a", "f/d/a"),
            ("mkdir f; echo a > f/a", "echo b > f/a", "rm -r f", "f/a"),
            ("mkdir f; echo a > f/a", "echo mine > f/new", "chmod 700 f; echo theirs > f/theirs", "f"),
        ];
        let of_root = of_root.into_iter().filter(|_| desk.who == Who::Root);
        for (n, (made, run, outside, path)) in cases.into_iter().chain(of_root).enumerate() {
            let inner = |script: &str| format!("cd {n}; {script}");
            desk.made(&format!("mkdir {n}; {}", inner(made)));
            let id = desk.meanwhile(&inner(run), &inner(outside));
            let after = desk.world.manifest();
            let said = desk.recant(&format!("commit {id}")).with(3);
            assert!(said.stderr().contains(&format!("{n}/{path}: ")), "{run} | {outside}: {said}");
            desk.world.manifest().assert_same(&after, "a conflict changes nothing");
            desk.recant(&format!("commit {id} --dry-run")).with(3);
        }
    });
}

#[test]
fn a_conflict_over_a_time_alone_does_not_say_that_the_content_is_another() {
    each(|desk| {
        desk.world.config("capture.keep_before = false");
        desk.made_before("echo a > f", "f");
        let id = desk.meanwhile("echo mine >> f", "true");
        desk.made("touch -d 2001-02-03 f");
        let said = desk.recant(&format!("commit {id}")).with(3);
        let why = "written to or touched since the run";
        assert!(said.stderr().contains(why), "{said}");
        // Without a copy from before the run nothing merges.
        assert!(said.stderr().contains("--force goes on") && !said.stderr().contains("--merge"), "{said}");
    });
}

#[test]
fn what_was_made_right_before_the_run_is_no_conflict_and_what_changes_right_after_its_start_is_one() {
    each(|desk| {
        desk.made("mkdir real; mkfifo real/there real/back");
        for n in 0..8 {
            desk.made(&format!("echo a > early{n}; stat early{n} > /dev/null; echo b > late{n}"));
            let script = format!("echo mine > early{n}");
            desk.held("--commit", &script).run().ok();
            // Somebody outside who acts when the command has hardly begun.
            let script = format!("read go < real/there; echo theirs > late{n}; echo done > real/back");
            let outside = desk.give(desk.world.program("sh", ["-c", &script])).command().spawn().unwrap();
            let script = format!("echo go > real/there; read done < real/back; echo mine > late{n}");
            desk.held("--pass real --commit", &script).run().with(3);
            let mut outside = outside;
            outside.wait().unwrap();
        }
    });
}

#[test]
fn metadata_of_files_with_several_names_is_committed_and_comes_off() {
    each(|desk| {
        desk.made("mkdir -p d/f; echo 1 > d/1; ln d/1 d/f/l; ln d/1 d/f/m; echo 2 > d/2; ln d/2 d/f/n; echo 3 > d/3; ln d/3 d/o");
        let before = desk.world.manifest();
        for (script, rows) in [
            ("chmod -R go-rwx d", &[("d/1", 0o600, 3), ("d/f/l", 0o600, 3), ("d/3", 0o600, 2)][..]),
            // The names go apart: each gets its own.
            ("chmod 600 d/1; chmod 640 d/f/l", &[("d/1", 0o600, 1), ("d/f/l", 0o640, 1), ("d/f/m", 0o644, 1)]),
            ("chmod 600 d/2; echo new > d/f/n", &[("d/2", 0o600, 1), ("d/f/n", 0o644, 1)]),
            ("touch -d 2001-01-01 d/3 d/o", &[("d/3", 0o644, 2), ("d/o", 0o644, 2)]),
        ] {
            desk.run(script).ok();
            desk.recant("commit last").ok();
            for (name, mode, names) in rows {
                let stat = std::fs::metadata(desk.world.path(name)).unwrap();
                assert_eq!((stat.mode() & 0o7777, stat.nlink().min(*names)), (*mode, *names), "{script}: {name}");
            }
            desk.recant("rollback last").ok();
            desk.world.manifest().assert_same(&before, script);
        }
    });
}

/// Overlayfs does not tell a name that was parted from its file from one that its owner has changed: both are one name's new metadata.
#[test]
fn metadata_that_one_of_several_names_got_is_said_to_be_that_of_all() {
    each(|desk| {
        let before = desk.made("printf 11 > x; ln x y; printf 22 > alone");
        for script in ["cp y y.new; chmod 600 y.new; mv y.new y", "chmod 600 y alone"] {
            desk.run(script).ok();
            let said = desk.recant("commit last").ok();
            let note = format!(
                "{}: the file has other hard links, which get its mode, owner and time as well",
                desk.world.path("y").display()
            );
            assert_eq!(said.stderr().matches(&note).count(), 1, "{script}: {said}");
            assert!(!said.stderr().contains("alone:") && !said.stderr().contains("more"), "{script}: {said}");
            let said = desk.recant("rollback last").ok();
            assert!(!said.stderr().contains("other names"), "{script}: {said}");
            desk.world.manifest().assert_same(&before, script);
        }
        desk.run("rm y; chmod 600 x").ok();
        let said = desk.recant("commit last").ok();
        assert!(!said.stderr().contains("other names"), "none is left: {said}");
    });
}

#[test]
fn metadata_of_a_file_made_right_before_the_run_comes_off_whatever_its_ctime_is_by_then() {
    each(|desk| {
        for n in 0..5 {
            // So young that its fingerprint proves nothing, its content is read when it is held, and not again at commit.
            desk.made(&format!("echo a > f{n}"));
            desk.held("--commit", &format!("chmod 600 f{n}")).run().ok();
            // Its metadata is what was put, its ctime is not: only the content tells that nobody wrote to it.
            desk.made(&format!("chmod 600 f{n}"));
            desk.recant("rollback last").ok();
            assert_eq!(std::fs::metadata(desk.world.path(format!("f{n}"))).unwrap().mode() & 0o777, 0o644);
        }
    });
}

#[test]
fn a_file_of_several_names_that_is_written_to_or_gets_a_further_one_is_said_to_be_parted_from_the_others() {
    each(|desk| {
        let before = desk.made("echo 1 > f; ln f fl; ln f fm; mkdir src; echo s > src/s; cp -al src bak; echo x > x");
        for (script, parted) in [("ln f fn", "f"), ("echo 2 >> f", "f"), ("cp -al src bak2; ln x y", "src/s")] {
            desk.run(script).ok();
            let id = desk.ids().pop().unwrap();
            let said = desk.recant(&format!("show {id} --json")).ok().json();
            let rows = said["changes"].as_array().unwrap().iter();
            let broken: Vec<_> = rows.filter(|row| row["link_broken"] == true).map(|row| row["path"].clone()).collect();
            assert_eq!(broken, [desk.world.path(parted).display().to_string()], "{said:#}");
            let said = desk.recant(&format!("diff {id}")).ok();
            assert!(said.stdout().contains("link broken"), "{said}");
            desk.recant(&format!("commit {id}")).ok();
            desk.recant(&format!("rollback {id}")).ok();
            desk.world.manifest().assert_same(&before, script);
            desk.recant(&format!("discard {id}")).ok();
        }
    });
}

#[test]
fn a_command_without_network_has_a_loopback_alone() {
    if !has("python3") {
        return;
    }
    each(|desk| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let ask = format!("import socket; socket.create_connection(('127.0.0.1', {port}), 3)");
        let own = "import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname(), 3); open('made', 'w')";
        let run = |options: &[&str], script: &str| {
            desk.call([&["run", "--discard", "--json"], options, &["--", "/usr/bin/python3", "-c", script]].concat()).run()
        };
        let open = run(&[], &ask).ok();
        assert_eq!(last_json(&open)["beyond_files"]["network"], true);
        let closed = run(&["--no-network"], &ask).with(1);
        assert_eq!(last_json(&closed)["beyond_files"]["network"], false);
        run(&["--no-network"], own).ok();
    });
}

/// A daemon that resolves names does so in the machine's network.
#[test]
fn name_services_are_open_to_a_run_on_the_machine_s_network_alone() {
    if !common::is_root("a daemon in /run") || !has("python3") {
        return;
    }
    own_mounts();
    let run = tempfile::tempdir().unwrap();
    std::fs::create_dir(run.path().join("nscd")).unwrap();
    rustix::mount::mount_bind(run.path(), "/run").unwrap();
    let daemon = std::os::unix::net::UnixListener::bind("/run/nscd/socket").unwrap();
    // The C library waits for an answer, or an end.
    std::thread::spawn(move || daemon.incoming().for_each(drop));
    for (path, mode) in [("/run", 0o755), ("/run/nscd", 0o755), ("/run/nscd/socket", 0o666)] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
    let ask = "import socket; s = socket.socket(socket.AF_UNIX); exit(s.connect_ex('/run/nscd/socket') != 0)";
    each(|desk| {
        for (options, want) in [("--no-wait", 0), ("--no-network", 1), ("--network=web.test", 1)] {
            desk.call(["run", options, "--", "/usr/bin/python3", "-c", ask]).run().with(want);
        }
    });
}

/// Files to change, of every kind.
const AWKWARD: &str = r#"
    umask 022
    mkdir -p keep gone/deep/er moved/in/side again opaque empty full closed links
    for n in 1 2 3 4 5; do echo "line $n" > keep/$n; done
    seq 1 5000 > big; seq 1 100 > append; seq 1 1000 > cut; seq 1 50 > edited
    : > hollow; printf 'no newline' > bare
    echo gone > gone/a; echo gone > gone/deep/b; echo gone > gone/deep/er/c; ln -s a gone/link; mkfifo gone/fifo
    echo m > moved/m; echo in > moved/in/in; echo side > moved/in/side/side; ln -s ../m moved/in/link
    echo a > again/a; echo b > again/b; echo x > opaque/x
    echo f > full/f; echo c > closed/c; chmod 500 closed
    echo group > links/one; ln links/one links/two; echo pair > links/p; ln links/p links/q
    ln -s edited link; ln -s nowhere dangling; mkfifo pipe; chmod 640 pipe
    echo todirectory > todirectory; mkdir tofile; echo x > tofile/x; ln -s big tolink2; echo tolink > tolink; mkdir linkdir; ln -s keep directorylink
    printf odd > "$(printf 'new\nline')"; printf odd > "$(printf 'quote"back\\slash')"; printf odd > "$(printf 'invalid\377\376')"; printf odd > ' blank '
    printf odd > -dash; printf odd > "$(printf 'n%.0s' $(seq 255))"
    chmod 4755 keep/1; chmod 600 keep/2; chmod 0 keep/3; chmod 2775 full
    touch -d 2001-02-03T04:05:06.123456789 keep/4 big moved/m; touch -h -d 1999-01-01 link
    touch -d 2002-02-02T02:02:02.2 gone/deep moved/in moved again keep empty
    mkdir kinds; make() { case $1 in f) echo f > $2;; d) mkdir $2;; n) mkdir $2; echo x > $2/in;; l) ln -s x $2;; p) mkfifo $2;; esac; }
    for a in f d n l p; do for b in f d n l p; do make $a kinds/$a$b; done; done
"#;

/// Changes to them, of every kind, with the tools that people use; every kind becomes every other, and its own.
const CHANGES: &str = r#"
    sed -i 's/line/LINE/' keep/1; sed -i 5d edited
    rm -rf gone; mkdir gone; echo fresh > gone/fresh
    rm -r opaque; mkdir opaque
    mv moved elsewhere; mv elsewhere/in/link elsewhere/link; echo more >> elsewhere/m; mkdir moved; echo other > moved/other
    mv again/a again/z; mv again/b keep/b; mv keep/5 top5
    ln keep/4 keep/4also; ln -s keep/4 keep/tofour; ln -s /absolute/nowhere abs
    echo made > made1; ln made1 made2; mkdir deep; ln made1 deep/made3
    mkfifo newpipe; rm pipe; chmod 600 keep/1; chmod 444 keep/4; chmod 711 empty
    touch -d 2003-03-03T03:03:03.333333333 hollow; touch -d 2004-04-04 empty
    : > cut; echo appended >> append; truncate -s 100 big; truncate -s 1M hole; printf x > hollow
    : > newempty; mkdir -p newdir/sub; rmdir empty/none 2>/dev/null || :
    make() { case $1 in f) echo f > $2;; d) mkdir $2;; n) mkdir $2; echo x > $2/in;; l) ln -s x $2;; p) mkfifo $2;; esac; }; for a in f d n l p; do for b in f d n l p; do rm -r kinds/$a$b; make $b kinds/$a$b; done; done
    rm todirectory; mkdir todirectory; echo in > todirectory/in; rm -r tofile; echo file > tofile; rm tolink; ln -s big tolink
    rm tolink2; echo file > tolink2; rmdir linkdir; ln -s keep linkdir; rm directorylink; mkdir directorylink; echo f > directorylink/f
    echo changed > "$(printf 'new\nline')"; rm "$(printf 'quote"back\\slash')"; mv "$(printf 'invalid\377\376')" "$(printf '\377more')"
    echo changed >> ' blank '; rm -- -dash; echo changed > "$(printf 'n%.0s' $(seq 255))"
    rm links/p; echo new > links/r; ln links/r links/s
    chmod 700 closed; echo d > closed/d; rm closed/c; chmod 500 closed
    rm dangling; ln -s elsewhere dangling; ln -sfn other link
    cp -p keep/2 keep/2copy; echo x > keep/2; chmod 600 keep/2copy; rm -f keep/3; echo 3 > keep/3; chmod 0 keep/3
"#;

/// Adds xattrs, which a script has no common tool for.
fn attribute(path: &Path, name: &str, value: &[u8]) {
    rustix::fs::lsetxattr(path, name, value, rustix::fs::XattrFlags::empty()).unwrap();
}

/// Runs scripts one after the other in a session, and bare in a copy of the tree: they leave the same, and come off exactly.
fn as_bare(desk: &Desk, scripts: &[&str]) {
    let copy = desk.copy();
    let before = desk.world.manifest();
    manifest(&copy).assert_same(&before, "the copy is one");
    std::thread::sleep(Duration::from_millis(25));
    let since = SystemTime::now();
    std::thread::sleep(Duration::from_millis(25));
    desk.bare(&copy, &scripts.join("\n"));
    for (n, script) in scripts.iter().enumerate() {
        desk.held(if n == 0 { "" } else { "--session last" }, &format!("set -e\n{script}")).run().ok();
    }
    desk.world.manifest().assert_same(&before, "the run leaves the tree as it was");
    desk.recant("commit last").ok();
    let after = desk.world.manifest();
    settled(after.clone(), since).assert_same(&settled(manifest(&copy), since), "as the bare command");
    desk.recant("rollback last").ok();
    desk.world.manifest().assert_same(&before, "rolled back");
    desk.recant("redo last").ok();
    desk.world.manifest().assert_same(&after, "made again");
    desk.recant("rollback last").ok();
    desk.world.manifest().assert_same(&before, "rolled back again");
}

#[test]
fn a_run_that_is_committed_leaves_what_the_same_command_leaves_bare_and_comes_off_exactly() {
    for runs in [1, 2] {
        each(|desk| {
            desk.made(&desk.fitting(AWKWARD));
            for name in ["keep/1", "keep/4", "append", "moved/m", "gone/a", "moved", "empty"] {
                attribute(&desk.world.path(name), "user.mark", name.as_bytes());
            }
            let changes = desk.fitting(CHANGES);
            let lines: Vec<&str> = changes.lines().collect();
            let parts: Vec<String> = lines.chunks(lines.len().div_ceil(runs)).map(|lines| lines.join("\n")).collect();
            as_bare(desk, &parts.iter().map(|part| &**part).collect::<Vec<_>>());
        });
    }
}

#[test]
fn paths_of_a_run_are_committed_and_taken_back_one_by_one() {
    each(|desk| {
        let before = desk.made("mkdir -p a b; echo a > a/a; echo b > b/b; echo l > l1; ln l1 l2");
        let script = "echo 1 > a/a; rm -r b; echo n > a/n; mkdir -p new/deep; echo d > new/deep/d; echo x >> l1; ln a/n new/n";
        desk.held("-n work", script).run().ok();
        let id = desk.id();
        for paths in ["a/a", "b", "new/deep"] {
            desk.recant(&format!("commit work {paths}")).ok();
        }
        // The names of a file go together.
        let said = desk.recant("commit work a/n").ok();
        assert!(said.stderr().contains("/new/n: included, because it is a hard link to a named path"), "{said}");
        desk.recant("commit work l1").ok();
        assert_eq!(desk.status(&id), "committed");
        let inode = |path: &str| std::fs::metadata(desk.world.path(path)).unwrap().ino();
        assert_eq!(inode("a/n"), inode("new/n"));
        // Each part goes back by its own, the latest first.
        for _ in ["l1", "a/n", "new/deep", "b", "a/a"] {
            desk.recant("rollback work").ok();
        }
        assert!(desk.recant("rollback work").with(1).stderr().contains("nothing to roll back"));
        assert_eq!((desk.status(&id), desk.paths(&id).len()), ("pending".into(), 9), "it holds all again");
        desk.world.manifest().without_directory_times().assert_same(&before.without_directory_times(), "all are off");
    });
}

/// Renames of directories that were there before, by rename(2) itself: `mv` copies where that fails.
const RENAMES: &str = r#"
    ren() { perl -e 'rename($ARGV[0], $ARGV[1]) or die "$ARGV[0]: $!\n"' "$1" "$2"; }
    ren moved elsewhere; echo more >> elsewhere/m; rm elsewhere/in/in; echo new > elsewhere/in/side/new; ln elsewhere/in/side/new elsewhere/new
    ren keep kept; ren kept again/kept; ren again/kept/4 four; echo x > again/kept/1; rm again/kept/2; chmod 750 again/kept
    ren gone/deep deep; ren deep/er er; rm -r deep/b; ren gone other; rm -rf full; ren closed full; ren full/c c
    mkdir new; ren links new/links; ren opaque new/opaque; ren new newer; rm newer/opaque/x; echo y > newer/opaque/y; mkdir newer/opaque/z
    ren linkdir gone; rmdir empty; ren tofile empty; rm -r empty/x; mkdir -p moved/in; touch -d 2005-05-05 er moved/in newer/links
    mkdir closed; ren side closed/side; ren closed/side/s side; ren a/b/c a/c; ren a/b a/c/b; ren a aa; ren aa/c/b/f f
"#;

#[test]
fn directories_are_renamed_in_a_run_of_root_as_bare() {
    if !is_root() {
        return eprintln!("skipped: renaming old directories in a run takes root");
    }
    if !has("perl") {
        return;
    }
    let lines: Vec<&str> = RENAMES.lines().collect();
    // In one run, and in several: the first three lines and their function, then each line.
    let several: Vec<String> = lines[4..].iter().map(|line| format!("{}\n{line}", lines[1])).collect();
    let first = lines[..4].join("\n");
    for scripts in [vec![RENAMES], [&*first].into_iter().chain(several.iter().map(|line| &**line)).collect()] {
        let desk = Desk::new(Who::Root);
        desk.made(AWKWARD);
        desk.made("mkdir -p side/s/t; echo t > side/s/t/t; mkdir -p a/b/c/d; echo f > a/b/f; echo d > a/b/c/d/d; touch -d 2000-01-01 a/b a/b/c");
        for name in ["keep/1", "keep/4", "moved/m", "gone/a", "moved", "moved/in", "links/one", "a/b/c"] {
            attribute(&desk.world.path(name), "user.mark", name.as_bytes());
        }
        std::os::unix::fs::chown(desk.world.path("moved/in/in"), Some(7), None).unwrap();
        as_bare(&desk, &scripts);
    }
}

#[test]
fn what_lies_in_a_directory_that_may_be_written_and_not_listed_is_committed_and_comes_off() {
    each(|desk| {
        desk.bare(&desk.world.tree(), "mkdir real; echo r > real/r; chmod 300 real");
        for script in [
            "echo y > real/y; echo z >> real/r",
            "echo y > real/y; mkdir real/d; echo z > real/d/z",
            "echo y > real/y; chmod 700 real",
            "rm real/r",
        ] {
            let listable = |mode: &str| desk.bare(&desk.world.tree(), &format!("chmod {mode} real"));
            listable("700");
            let before = desk.world.manifest();
            listable("300");
            desk.run(script).ok();
            desk.recant("commit last").ok();
            let mode = |name: &str| std::fs::symlink_metadata(desk.world.path(name)).map(|meta| meta.mode() & 0o777).ok();
            let after = mode("real");
            desk.recant("rollback last").ok();
            desk.recant("redo last").ok();
            assert_eq!(mode("real"), after, "{script}");
            desk.recant("rollback last").ok();
            assert_eq!(mode("real"), Some(0o300), "{script}");
            listable("700");
            desk.world.manifest().assert_same(&before, script);
            listable("300");
        }
    });
}

#[test]
fn a_directory_that_was_renamed_after_something_in_it_was_removed_can_be_removed_by_a_further_run() {
    if !is_root() {
        return eprintln!("skipped: renaming old directories in a run takes root");
    }
    if !has("perl") {
        return;
    }
    let desk = Desk::new(Who::Root);
    let before = desk.made("mkdir -p d/c; echo f > d/c/f; echo g > d/c/g; touch -d 2001-01-01 d/c d");
    for further in ["rm -r n", "rm -r n/c", "mkdir n/c/f; mv n/c/f n/f; rm n/c/g; rmdir n/c"] {
        desk.run("set -e; rm d/c/f; perl -e 'rename(\"d\", \"n\") or die'").ok();
        let seen = desk.held("--session last", &format!("set -e; ls n/c; {further}; find n 2> /dev/null || true")).run().ok();
        assert!(seen.stdout().starts_with("g\n") && !seen.stdout().contains('?'), "{seen}");
        let now = seen.stdout().lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
        desk.recant("commit last").ok();
        let there = desk.give(desk.world.program("find", ["n"])).run().stdout();
        assert_eq!(there.lines().collect::<Vec<_>>(), now, "{further}");
        assert!(!desk.world.exists("d"), "{further}");
        desk.recant("rollback last").ok();
        desk.world.manifest().assert_same(&before, further);
    }
}

/// What a container engine keeps in the layers that it mounts: overlayfs shows none of it in a run.
#[test]
fn what_overlayfs_leaves_in_layers_on_the_tree_is_exact_or_named() {
    each(|desk| {
        let prefix = if desk.who == Who::Root { "trusted" } else { "user" };
        if !has("setfattr") {
            return;
        }
        let mark = |value: &str, path: &str| format!("setfattr -n {prefix}.overlay.recant-test -v {value} {path}");
        let script = format!(
            "mkdir -p u/d c; echo f > u/d/f; echo g > g; echo h > h; ln h i; echo r > r; {}; {}; {}; {}; {}; {}",
            mark("y", "u"),
            mark("z", "u/d"),
            mark("f", "u/d/f"),
            mark("g", "g"),
            mark("c", "c"),
            mark("h", "h"),
        );
        if desk.give(desk.world.program("sh", ["-ec", &script])).cwd(desk.world.tree()).run().status != 0 {
            return eprintln!("skipped: {:?}: no {prefix}.overlay. xattrs can be set here", desk.who);
        }
        let before = desk.world.manifest();
        // The same as bare: what is changed keeps what the command did not see, and what is removed takes it along.
        let script = "rm -r u; chmod 700 c; echo more >> g; chmod 600 h; echo n > c/n";
        let copy = desk.copy();
        desk.bare(&copy, script);
        let since = SystemTime::now() - Duration::from_secs(60);
        let wanted = settled(manifest(&copy), since);
        let said = desk.held("--commit", script).run().ok();
        assert!(!said.stderr().contains("conflict"), "{said}");
        settled(desk.world.manifest(), since).assert_same(&wanted, "committed");
        desk.recant("rollback last").ok();
        desk.world.manifest().assert_same(&before, "rolled back");
        if desk.who == Who::User {
            return;
        }
        // A renamed directory takes along what can be in an upper.
        desk.bare(&copy, "rm -r c; cp -a ../tree/. .; mv u v; echo n > v/d/n");
        let wanted = settled(manifest(&copy), since);
        if desk.world.program("sh", ["-ec", "mknod u/w c 0 0; mknod u/d/gone c 0 0"]).cwd(desk.world.tree()).run().status != 0 {
            return eprintln!("skipped: a device 0:0 can not be made here");
        }
        let before = desk.world.manifest();
        let said = desk.held("--commit", "mv u v; echo n > v/d/n").run().ok();
        for path in ["u/w", "u/d/gone"] {
            let line = format!("{}: a device 0:0", desk.world.path(path).display());
            assert!(said.stderr().contains(&line), "{line}: {said}");
        }
        settled(desk.world.manifest(), since).assert_same(&wanted, "renamed");
        desk.recant("rollback last").ok();
        desk.world.manifest().assert_same(&before, "rolled back again");
    });
}

/// This thread's programs see no mount that comes or goes from now on, and a /tmp of their own: what is there takes a run some
/// steps. The directory that is to be kept meanwhile.
fn hold_still() -> Option<tempfile::TempDir> {
    if !is_root() {
        return None;
    }
    own_mounts();
    let own = tempfile::Builder::new().prefix("recant-still-").tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(own.path(), std::os::unix::fs::PermissionsExt::from_mode(0o1777)).unwrap();
    rustix::mount::mount_bind(own.path(), "/tmp").unwrap();
    Some(own)
}

/// One wait for the disk for all that the command wrote and what is noted of it, one for the header's name; and in this order.
#[test]
fn what_a_run_holds_is_durable_before_its_header_has_its_name_by_one_sync() {
    each(|desk| {
        // The store is made by the first run of all, and what that leaves is swept by the second.
        desk.run("true").ok();
        desk.held("--discard", "echo new > new").run().ok();
        let steps = |script: &str| {
            let log = desk.world.root().join("log");
            desk.held("", script).env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
            let text = std::fs::read_to_string(&log).unwrap();
            std::fs::remove_file(&log).unwrap();
            text
        };
        let is_sync = |line: &&str| line.contains("sync");
        let nothing = steps("true");
        assert_eq!(nothing.lines().filter(is_sync).collect::<Vec<_>>(), Vec::<&str>::new(), "nothing was held");
        let held = steps("for i in $(seq 50); do echo $i > new-$i; done");
        let lines: Vec<&str> = held.lines().collect();
        let last = |what: &str| lines.iter().rposition(|line| line.contains(what)).unwrap();
        let syncs: Vec<usize> = (0..lines.len()).filter(|i| is_sync(&lines[*i])).collect();
        let (all, header) = (last("syncfs"), last("session.json.new"));
        assert_eq!(syncs, [all, last("fsync")], "{held}");
        // All three lie under other names while they are synced, and get theirs afterwards, the header last, and once the others last: D1,
        // D5.
        let named: Vec<&str> = lines[all..].iter().copied().filter(|line| line.contains("renameat")).collect();
        assert_eq!(named.len(), 3, "{held}");
        for (name, line) in ["changes.jsonl.new", "run.json.new", "session.json.new"].iter().zip(&named) {
            assert!(line.contains(name), "{held}");
        }
        assert!(header > last("fsync"), "{held}");
    });
}

/// recant is killed before each step that it takes once the command has ended; the next verb collects all the same, and
/// is killed itself somewhere the first time.
#[test]
fn a_run_whose_collecting_is_cut_off_anywhere_is_collected_as_if_it_had_not_been() {
    let _still = hold_still();
    each(|desk| {
        desk.made("mkdir -p d/e/f c; echo a > d/a; ln d/a d/e/a; ln -s a d/l; mkfifo d/e/p; echo b > d/e/f/b; echo c > c/c; touch -d 2001-01-01 d d/e d/e/f d/a");
        let mut script = "echo 1 >> c/c; rm -rf c/none; echo new > new; chmod 700 c; mkdir m; echo m > m/m".to_owned();
        if desk.who == Who::Root {
            script += "; mv d r; mv r/e r/x; echo z > r/x/z; rm r/l; touch -d 2002-02-02 r/x";
        } else {
            script += "; rm -r d/e";
        }
        let before = desk.world.manifest();
        let log = desk.world.root().join("log");
        let run = |name: &str, steps: &str| desk.held(&format!("-n {name}"), &script).env("RECANT_STEPS", steps).run();
        let since = SystemTime::now();
        std::thread::sleep(Duration::from_millis(25));
        // The store is made by the first run of all, and what that leaves is swept by the second.
        desk.run("true").ok();
        desk.held("--discard", "echo new > new").run().ok();
        run("whole", &format!("log:{}", log.display())).ok();
        desk.recant("commit last").ok();
        let after = settled(desk.world.manifest(), since);
        desk.recant("rollback last").ok();
        desk.world.manifest().assert_same(&before, "rolled back");
        let steps = std::fs::read_to_string(&log).unwrap();
        // run.json is written by four steps, and then the command starts.
        let started = steps.lines().position(|line| line.contains("run.json")).unwrap();
        // What else goes on in the captured places (/tmp) makes a step more or less from run to run.
        for n in sweep::steps().skip_while(|n| *n < started + 5) {
            let id = format!("cut{n}");
            let killed = run(&id, &format!("kill:{n}"));
            if killed.status == 0 {
                assert!(n > started + 20, "only {n} of about {} steps: {killed}", steps.lines().count());
                break;
            }
            assert_eq!(killed.status, 137, "{n}: {killed}");
            let second = desk.call(["diff", &id]).env("RECANT_STEPS", format!("kill:{}", 1 + n * 7 % 40)).run();
            assert!([0, 137].contains(&second.status), "{n}: {second}");
            desk.recant(&format!("diff {id}")).ok();
            if desk.who == Who::Root && n % 3 == 0 {
                // What was removed before its directory was renamed is no broken name to a further run.
                desk.held(&format!("--session {id}"), "find r -ls").run().ok();
            }
            desk.recant(&format!("commit {id} -y")).ok();
            settled(desk.world.manifest(), since).assert_same(&after, &format!("killed before step {n}"));
            desk.recant(&format!("rollback {id}")).ok();
            desk.world.manifest().assert_same(&before, &format!("rolled back after {n}"));
        }
    });
}

/// What its owner may not read is opened up to be collected; killed before any step, the next verb finds the modes that the command left.
#[test]
fn what_a_command_closed_is_held_with_its_mode_wherever_collecting_is_cut_off() {
    let _still = hold_still();
    let desk = Desk::new(Who::User);
    let closed = [("key", "0200"), ("kez", "0200"), ("pd", "0300"), ("pd/in", "0000"), ("pd/in/s", "0644")];
    let script = "echo k > key; ln key kez; mkdir -p pd/in; echo s > pd/in/s; chmod 200 key; chmod 300 pd; chmod 0 pd/in";
    let modes = |id: &str| {
        let said = desk.recant(&format!("show {id} --json")).ok().json();
        let mode = |path: &str| {
            let path = desk.world.path(path).display().to_string();
            let rows = said["changes"].as_array().unwrap();
            rows.iter().find(|row| row["path"] == path).unwrap()["after"]["mode"].as_str().unwrap().to_owned()
        };
        closed.map(|(path, _)| (path, mode(path)))
    };
    let wanted = closed.map(|(path, mode)| (path, mode.to_owned()));
    let log = desk.world.root().join("log");
    desk.run("true").ok();
    desk.held("--discard", "echo new > new").run().ok();
    desk.held("--discard -n whole", script).env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
    let steps = std::fs::read_to_string(&log).unwrap();
    let started = steps.lines().position(|line| line.contains("run.json")).unwrap();
    // No mode is changed before the note of it is durable: one sync for all that is seen at once.
    let reading = steps.lines().skip(started).take_while(|line| !line.contains("changes.jsonl"));
    let of_modes = reading.filter(|line| line.contains("/held/upper"));
    let order: Vec<&str> = of_modes.filter_map(|line| line.split(' ').nth(1)).filter(|step| *step != "unlinkat").collect();
    let round = ["openat", "write", "fsync", "fsync", "fchmodat"];
    assert_eq!(order, [&round[..], &["fchmodat"], &round].concat(), "{steps}");
    for n in sweep::steps().skip_while(|n| *n < started + 5) {
        let id = format!("cut{n}");
        let killed = desk.held(&format!("-n {id}"), script).env("RECANT_STEPS", format!("kill:{n}")).run();
        if killed.status == 0 {
            assert!(n > started + 15, "only {n} of about {} steps: {killed}", steps.lines().count());
            break;
        }
        assert_eq!(killed.status, 137, "{n}: {killed}");
        let second = desk.call(["diff", &id]).env("RECANT_STEPS", format!("kill:{}", 1 + n % 9)).run();
        assert!([0, 137].contains(&second.status), "{n}: {second}");
        assert_eq!(modes(&id), wanted, "killed before step {n}");
        desk.recant(&format!("discard {id}")).ok();
    }
    // Neither is it opened up to a further run, nor does that make its modes others.
    let id = desk.ids().pop().unwrap();
    let asked = "stat -c %a key pd; chmod 700 pd; stat -c %a pd/in; chmod 300 pd";
    let said = desk.held(&format!("--session {id}"), asked).run().ok();
    assert_eq!(said.stdout(), "200\n300\n0\n", "{said}");
    assert_eq!(modes(&id), wanted, "after a further run");
}

#[test]
fn root_s_command_cannot_set_the_clock() {
    if !is_root() {
        return eprintln!("skipped: the clock is root's");
    }
    let desk = Desk::new(Who::Root);
    // To what it is, in case it can.
    let said = desk.held("", "date -u -s \"@$(date +%s.%N)\"").run().with(1);
    assert!(said.stderr().contains("Operation not permitted"), "{said}");
}

/// How much is overwritten is told as far as it may be seen.
#[test]
fn a_directory_that_is_closed_to_its_owner_is_no_obstacle_to_a_forced_rollback() {
    let desk = Desk::new(Who::User);
    desk.bare(&desk.world.tree(), "echo old > d");
    desk.run("echo new > d").ok();
    desk.recant("commit last").ok();
    desk.bare(&desk.world.tree(), "rm d; mkdir d; echo mine > d/x; chmod 000 d");
    desk.recant("rollback last --force --dry-run").ok();
    desk.recant("rollback last --force").ok();
    assert_eq!(desk.world.read("d"), "old\n");
}

#[test]
fn a_captured_directory_that_a_command_closed_to_its_owner_is_read_all_the_same() {
    if !is_root() || !Path::new("/srv").is_dir() {
        return eprintln!("skipped: a directory of a user that lies alone needs root, and /srv");
    }
    let desk = Desk::new(Who::User);
    let own = tempfile::Builder::new().prefix("recant-own-").tempdir_in("/srv").unwrap();
    std::os::unix::fs::chown(own.path(), Some(USER), Some(USER)).unwrap();
    let run = |options: &[&str], script: &str| {
        desk.call([&["run"], options, &["--", "sh", "-c", script]].concat()).cwd(own.path()).run().ok()
    };
    run(&[], "echo k > k; echo s > s; chmod 200 k; chmod 300 .");
    let id = desk.id();
    let shown = || desk.recant(&format!("show {id} --json")).ok().json()["changes"].clone();
    let mode = |name: &str| {
        let path = own.path().join(name).components().collect::<std::path::PathBuf>();
        let changes = shown();
        let change = changes.as_array().unwrap().iter().find(|row| row["path"] == path.to_str().unwrap()).unwrap().clone();
        change["after"]["mode"].as_str().unwrap().to_owned()
    };
    let modes = || [mode(""), mode("k"), mode("s")];
    assert_eq!(modes(), ["0300", "0200", "0644"]);
    assert!(desk.recant(&format!("cat {id} {}/k", own.path().display())).ok().stdout().contains('k'));
    let said = run(&["--session", &id], "stat -c %a . k; echo t > t");
    assert_eq!(said.stdout(), "300\n200\n", "{said}");
    assert_eq!(modes(), ["0300", "0200", "0644"]);
    desk.recant(&format!("discard {id}")).ok();
}

/// An ordinary user could not take it back: what closes itself is named before anything is changed, and the rest is at hand.
#[test]
fn what_a_command_closed_to_its_owner_is_shown_and_named_at_commit() {
    let desk = Desk::new(Who::User);
    let before = desk.made("echo old > old; mkdir d");
    desk.run(
        "echo o > other; mkdir -p pd/in; echo s > pd/in/s; chmod 0 pd/in; chmod 200 pd; chmod 0 old; echo y > d/y; chmod 0 d",
    )
    .ok();
    let id = desk.id();
    let said = desk.recant(&format!("diff {id}")).ok();
    assert!(said.stdout().contains("+s") && said.stdout().contains("+y"), "{said}");
    let said = desk.recant(&format!("commit {id}")).with(1);
    for path in ["old", "pd", "pd/in", "d"] {
        assert!(said.stderr().lines().any(|line| line.starts_with(&format!("{path}: with mode 0"))), "{path}: {said}");
    }
    assert!(said.stderr().contains("4 paths that prevent it"), "{said}");
    desk.world.manifest().assert_same(&before, "refused");
    desk.recant(&format!("commit {id} other")).ok();
    assert_eq!(desk.world.read("other"), "o\n");
    desk.recant("undo -y").ok();
    desk.world.manifest().assert_same(&before, "rolled back");
}

/// In a run an ordinary user's command can open up a directory of the tree; from outside nobody but its owner's chmod can.
#[test]
fn what_lies_in_a_directory_that_is_closed_on_the_tree_is_named_and_the_rest_is_held() {
    let desk = Desk::new(Who::User);
    let named = |said: &str, paths: &[&str], what: &str| {
        for path in paths {
            let whole = desk.world.path(path);
            let is_named = |line: &str| {
                [format!("{path}: {what}"), format!("{}: {what}", whole.display())].iter().any(|named| line.contains(named))
            };
            assert!(said.lines().any(is_named), "{path}: {what} in: {said}");
        }
    };
    for (made, script, held, closed, removed, refused) in [
        (
            "mkdir P; echo r > P/r; echo y > P/y; chmod 0 P",
            "chmod 755 P; echo y > P/y; rm P/r; mkdir P/n; echo z > P/n/z; chmod 0 P; echo o > other",
            &["P/n", "P/n/z", "P/y", "other"][..],
            &["P/n", "P/y"][..],
            &["P/r"][..],
            &["P/n", "P/n/z", "P/y"][..],
        ),
        (
            "mkdir -p d/sub e/sub l; echo s | tee d/s d/sub/s e/sub/s > l/s; chmod 0 d/sub e/sub d; chmod 600 l",
            "chmod -R u+rwx d e l; rm -rf d e; rm -r l; echo file > l; echo o > other",
            &["d", "e", "e/sub", "l", "other"],
            &[],
            &[],
            &["d", "e/sub", "l"],
        ),
    ] {
        desk.bare(&desk.world.tree(), made);
        let said = desk.run(script).ok();
        named(&said.stderr(), closed, "you may not enter its directory on the tree");
        named(&said.stderr(), removed, "you may not enter its directory on the tree: its removal");
        if closed.is_empty() {
            named(&said.stderr(), refused, "you may not list it on the tree");
        }
        let id = desk.ids().pop().unwrap();
        assert_eq!(desk.paths(&id), held, "{script}");
        let said = desk.recant(&format!("commit {id}")).with(1);
        named(&said.stderr(), refused, "you cannot");
        desk.recant(&format!("commit {id} other")).ok();
        assert_eq!(desk.world.read("other"), "o\n");
        desk.recant("undo -y").ok();
        desk.recant(&format!("discard {id}")).ok();
    }
}

#[test]
fn a_working_directory_of_another_group_or_below_one_is_refused_with_what_to_do() {
    if !is_root() {
        return eprintln!("skipped: giving a directory to another group takes root");
    }
    let desk = Desk::new(Who::User);
    desk.made("mkdir -p .git theirs/mine");
    std::os::unix::fs::chown(desk.world.path("theirs"), None, Some(USER + 1)).unwrap();
    for cwd in ["theirs", "theirs/mine"] {
        let said = desk.call(["run", "--", "touch", "made"]).cwd(desk.world.path(cwd)).run().with(125);
        assert!(said.stderr().contains("tree/theirs") && said.stderr().contains("recant run --in"), "{said}");
        assert!(!said.stderr().contains("add-subgids"), "the user is not in it: {said}");
    }
}

#[test]
fn a_second_run_from_another_directory_keeps_what_the_first_held_elsewhere() {
    each(|desk| {
        let far = tempfile::Builder::new().prefix("recant-far-").tempdir_in("/var/tmp").unwrap();
        let far = far.path().canonicalize().unwrap();
        if desk.other() {
            std::os::unix::fs::chown(&far, Some(USER), Some(USER)).unwrap();
        }
        desk.call(["run", "--", "sh", "-c", "echo first > first"]).cwd(&far).run().ok();
        let id = desk.id();
        desk.held(&format!("--session {id}"), "echo second > second").run().ok();
        let said = desk.recant(&format!("diff {id} --name-only")).ok();
        assert_eq!(said.stdout().lines().count(), 2, "{said}");
        desk.recant(&format!("commit {id}")).ok();
        assert_eq!(std::fs::read_to_string(far.join("first")).unwrap(), "first\n");
        assert_eq!(desk.world.read("second"), "second\n");
    });
}

/// The disk is full, say, when the command has ended.
#[test]
fn a_run_that_can_not_be_collected_keeps_its_session() {
    let _still = hold_still();
    each(|desk| {
        // The second sweeps what the first, which left nothing, had no time for.
        desk.run("true").ok();
        desk.held("--discard", "echo new > new").run().ok();
        let log = desk.world.root().join("log");
        desk.held("--discard", "echo new > new").env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
        let steps = std::fs::read_to_string(&log).unwrap();
        let write = 1 + steps.lines().position(|line| line.contains("changes.jsonl")).unwrap();
        for n in [write, write + 1, write + 2] {
            let call = desk.held(&format!("-n full{n}"), "echo new > new; exit 3");
            let said = call.env("RECANT_STEPS", format!("fail:{n}:28")).run().with(1);
            assert!(said.stderr().contains("exited with 3") && said.stderr().contains("recant diff"), "{n}: {said}");
            let id = format!("full{n}");
            assert_eq!(desk.recant(&format!("cat {id} new")).ok().stdout(), "new\n");
            desk.recant(&format!("commit {id} -y")).ok();
            desk.recant(&format!("rollback {id}")).ok();
        }
    });
}

/// Root's desk; `None` where no mounts can be made, which is said.
fn with_mounts() -> Option<Desk> {
    if !is_root() || !has("unshare") {
        eprintln!("skipped: mounting needs root");
        return None;
    }
    Some(Desk::new(Who::Root))
}

/// Runs a script that mounts, in a mount namespace of its own; `$0` is recant.
fn mounting(desk: &Desk, script: &str) -> Said {
    desk.world.program("unshare", ["-m", "sh", "-c", script, desk.binary.to_str().unwrap()]).run()
}

#[test]
fn the_time_of_a_mount_s_own_directory_that_somebody_else_set_is_no_change_of_the_command() {
    let Some(desk) = with_mounts() else { return };
    desk.made("mkdir disk; mkfifo go ready");
    // The first mount that recant finds is one that nobody writes to directly: its upper holds what is below it alone.
    let script = r#"mount -t tmpfs disk disk; mkdir disk/d; touch -d 2000-01-01 disk
        "$0" run -- sh -c 'echo x > disk/d/new; echo ready; read go' < go > ready &
        exec 8> go 9< ready
        read line <&9; touch -d 2001-01-01 disk; echo go >&8; wait $! || exit 9
        "$0" show -v; touch -d 2000-01-01 disk
        "$0" run -- sh -c 'echo x > disk/d/new; touch -d 2002-02-02 disk'; "$0" show -v"#;
    let said = mounting(&desk, script).ok();
    let times: Vec<bool> =
        said.stdout().split("session  ").map(|session| session.lines().any(|line| line == "times     directory  disk")).collect();
    assert_eq!(times, [false, false, true], "before the first, of the first, of the second: {said}");
}

#[test]
fn a_mount_that_goes_while_a_run_starts_is_no_change_of_the_command() {
    let Some(desk) = with_mounts() else { return };
    let script = r#"mkdir disk; n=0
        while n=$((n + 1)); mount -t tmpfs -o mode=711 disk disk; do
            RECANT_STEPS="run:$n:umount -l disk" "$0" run -q -- sh -c 'echo x > f' || exit 9
            "$0" show last --json | grep -o '"path":"[^"]*disk","change"'
            "$0" discard last -q -y
            if umount disk 2> /dev/null; then echo "$n steps"; exit; fi
        done"#;
    let said = mounting(&desk, script).ok();
    assert!(said.stdout().lines().count() == 1 && said.stdout().ends_with(" steps\n"), "{said}");
    println!("{}", said.stdout());
}

#[test]
fn what_readme_names_as_limits_of_a_run_is_refused_in_one() {
    each(|desk| {
        if !has("python3") {
            return;
        }
        desk.made("printf old > mapped; touch file");
        let script = "import ctypes, errno, mmap, os\n\
            libc = ctypes.CDLL(None, use_errno=True)\n\
            mapping = mmap.mmap(os.open('mapped', os.O_RDONLY), 3, mmap.MAP_SHARED, mmap.PROT_READ)\n\
            assert mapping[:3] == b'old'\n\
            os.pwrite(os.open('mapped', os.O_WRONLY), b'new', 0)\n\
            assert (mapping[:3], open('mapped', 'rb').read()) == (b'old', b'new')\n\
            assert os.pathconf('.', 'PC_LINK_MAX') == 127\n\
            assert libc.renameat2(-100, b'file', -100, b'other', 4) == -1 and ctypes.get_errno() == errno.EINVAL\n\
            try:\n    os.mknod('zero', 0o20600, 0)\n    raise SystemExit('a node 0:0 was made')\n\
            except PermissionError:\n    pass\n";
        desk.call(["run", "--discard", "--", "python3", "-c", script]).run().ok();
        if desk.who == Who::User {
            return;
        }
        let refused = ["unshare -m true", "mount -t tmpfs none .", "mknod null c 1 3; cat null"];
        for script in refused {
            assert!(desk.held("--discard", script).run().status != 0, "{script}");
        }
        desk.held("--discard", "mknod null c 1 3; test -c null").run().ok();
    });
    if !is_root() || !has("chattr") {
        return eprintln!("skipped: immutable files need root and chattr");
    }
    let desk = Desk::new(Who::Root);
    desk.made("echo i > fixed; echo a > growing; mkdir directory; echo x > directory/x");
    if desk.world.program("chattr", ["+i", "fixed"]).cwd(desk.world.tree()).run().status != 0 {
        return eprintln!("skipped: immutable files: this file system has none");
    }
    desk.bare(&desk.world.tree(), "chattr +a growing");
    let said = desk.run("echo more >> growing && ! rm fixed && ! sh -c 'echo x >> fixed' && ! sh -c 'echo x > growing'").ok();
    assert_eq!(desk.paths(&desk.id()), ["growing"], "{said}");
    desk.recant(&format!("discard {}", desk.id())).ok();
    // Root's run can take it off, for itself.
    desk.run("chattr -i fixed && echo x >> fixed && echo other > other").ok();
    let said = desk.recant("commit last").with(1);
    assert!(said.stderr().contains("fixed") && said.stderr().contains("immutable"), "{said}");
    desk.recant("commit last other").ok();
    let said = desk.run("echo y > directory/y; chattr +i directory").ok();
    assert!(said.stderr().contains("directory: the attribute 'i' (chattr) is not part of the change"), "{said}");
    desk.bare(&desk.world.tree(), "chattr -i fixed; chattr -a growing");
}

#[test]
fn what_belongs_to_a_further_group_that_subgid_grants_can_be_changed_in_a_run() {
    if !is_root() || ["setpriv", "unshare", "newgidmap"].iter().any(|program| !has(program)) {
        return eprintln!("skipped: granting a group needs root, setpriv, unshare and newgidmap (package uidmap)");
    }
    // Not in /tmp, where a confined command may write.
    let desk = Desk::of(Who::User, common::World::on(Path::new("/var/tmp")));
    let (root, tree) = (desk.world.root().to_owned(), desk.world.tree());
    // An /etc of the test's own: newgidmap takes a user of /etc/passwd alone.
    let etc = format!(
        "cp -a /etc etc; echo 'recant-ann:x:{USER}:{USER}::/:/bin/sh' >> etc/passwd; \
         printf 'recant-ann:x:{USER}:\nrecant-devs:x:4444:recant-ann\n' >> etc/group; : > etc/subgid"
    );
    desk.world.program("sh", ["-ec", &etc]).cwd(&root).run().ok();
    let granted = |line: &str| std::fs::write(root.join("etc/subgid"), line).unwrap();
    let inside = |cwd: &Path, words: &[&str]| {
        let mount = format!("mount --bind {}/etc /etc; exec \"$@\"", root.display());
        let user = USER.to_string();
        let start = ["-m", "sh", "-ec", &mount, "sh", "setpriv", "--reuid", &user, "--regid", &user, "--groups", "4444"];
        desk.world.program("unshare", [&start[..], words].concat()).cwd(cwd).run()
    };
    let binary = desk.binary.to_str().unwrap();
    let run = |cwd: &Path, script: &str| inside(cwd, &[binary, "run", "--", "sh", "-ec", script]);
    let made = format!(
        "echo a > shared; mkdir mine theirs; touch mine/old own; chown -R {USER}:{USER} .; chown {USER}:4444 shared; chmod 664 shared; \
         chown -R {USER}:4444 mine; chown 0:4444 theirs; chmod 2775 mine theirs"
    );
    desk.world.program("sh", ["-ec", &made]).cwd(&tree).run().ok();
    let before = desk.world.manifest();
    let script = "echo b >> shared; chmod 660 shared; mkdir mine/new; echo n > mine/new/f; mv mine/old mine/older; chgrp 4444 own; mkdir d; chgrp 4444 d; chmod 2770 d; \
                  echo x > d/x; id -G";
    // Not granted: doctor names what would do it, and never sg.
    let said = run(&tree, "echo b >> shared").with(2);
    assert!(!said.stderr().contains("sg 4444"), "{said}");
    let plain = |said: &Said| said.stdout().split_whitespace().collect::<Vec<_>>().join(" ");
    let said = inside(&tree, &[binary, "doctor"]).ok();
    assert!(plain(&said).contains("4444 recant-devs: usermod --add-subgids 4444-4444 recant-ann"), "{said}");
    assert!(plain(&said).contains("for good"), "its price: {said}");
    granted("recant-ann:4444:1\n");
    // What it grants cannot be told where it cannot be read.
    let subgid = root.join("etc/subgid");
    std::fs::set_permissions(&subgid, std::fs::Permissions::from_mode(0o600)).unwrap();
    let said = run(&tree, "echo b >> shared").with(2);
    let why = "cannot read /etc/subgid: permission denied";
    assert!(said.stderr().contains(&format!("{why}: files of your other groups cannot be changed in this run")), "{said}");
    let said = inside(&tree, &[binary, "doctor"]).ok();
    assert!(plain(&said).contains(why) && !said.stdout().contains("usermod"), "{said}");
    std::fs::set_permissions(&subgid, std::fs::Permissions::from_mode(0o644)).unwrap();
    let said = inside(&tree, &[binary, "doctor", "-v"]).ok();
    assert!(plain(&said).contains("a run can change their files: 4444 recant-devs"), "{said}");
    let said = run(&tree, script).ok();
    assert_eq!(said.stdout(), format!("{USER} 4444\n"), "{said}");
    before.assert_same(&desk.world.manifest(), "it is held");
    inside(&tree, &[binary, "commit", "last"]).ok();
    let groups = |paths: &str| {
        let said = desk.world.program("sh", ["-ec", &format!("stat -c '%g %a %n' {paths}")]).cwd(&tree).run().ok();
        said.stdout()
    };
    let want = "4444 660 shared\n4444 2755 mine/new\n4444 644 mine/new/f\n4444 644 mine/older\n4444 644 own\n4444 2770 d\n4444 644 d/x\n";
    assert_eq!(groups("shared mine/new mine/new/f mine/older own d d/x"), want);
    inside(&tree, &[binary, "rollback", "last"]).ok();
    before.assert_same(&desk.world.manifest(), "rolled back");
    // In a directory of somebody else's that hands its group on; and in the session again, whose uppers are there.
    let theirs = tree.join("theirs");
    run(&theirs, "echo x > x").ok();
    inside(&theirs, &[binary, "run", "--session", "last", "--", "sh", "-ec", "echo y >> x; echo z > z"]).ok();
    inside(&theirs, &[binary, "commit", "last"]).ok();
    assert_eq!(
        (groups("theirs/x theirs/z"), desk.world.read("theirs/x")),
        ("4444 644 theirs/x\n4444 644 theirs/z\n".into(), "x\ny\n".into())
    );
    inside(&theirs, &[binary, "rollback", "last"]).ok();
    // Its time is its owner's.
    assert!(!desk.world.exists("theirs/x") && !desk.world.exists("theirs/z"));
    // On the real tree, in the user namespace that its /dev/shm takes.
    inside(&tree, &[binary, "run", "--in", ".", "--", "chgrp", "4444", "own"]).ok();
    assert_eq!(groups("own"), "4444 644 own\n");
    // What newgidmap refuses is said, and the run goes on without.
    granted(&format!("{USER}:4444:1\n"));
    let passwd = std::fs::read_to_string(root.join("etc/passwd")).unwrap();
    std::fs::write(root.join("etc/passwd"), passwd.replace("recant-ann", "recant-ben").replace(&format!(":{USER}:"), ":54399:"))
        .unwrap();
    let said = run(&tree, "echo new > new").ok();
    assert!(said.stderr().contains("newgidmap: ") && said.stderr().contains("cannot be changed in this run"), "{said}");
}

#[test]
fn root_of_a_user_namespace_runs_as_an_ordinary_user_does() {
    each(|desk| {
        let inside = |words: &[&str]| desk.give(desk.world.program("unshare", [&["-U", "-r", "--"], words].concat())).run();
        if !has("unshare") || inside(&["true"]).status != 0 {
            return println!("skipped: root of a user namespace: unshare -U -r does not work here");
        }
        desk.made("echo old > a");
        let binary = desk.binary.to_str().unwrap();
        let recant = |words: &[&str]| inside(&[&[binary], words].concat()).ok();
        recant(&["run", "sh", "-c", "echo new > a; mkdir b; echo 1 > b/c"]);
        assert_eq!(desk.world.read("a"), "old\n");
        recant(&["commit", "last"]);
        assert_eq!((desk.world.read("a"), desk.world.read("b/c")), ("new\n".into(), "1\n".into()));
        recant(&["rollback", "last"]);
        assert_eq!(desk.world.read("a"), "old\n");
        assert!(!desk.world.path("b").exists());
    });
}

#[test]
fn a_store_in_a_place_that_is_private_in_a_run_is_refused_with_what_to_do() {
    each(|desk| {
        let store = tempfile::Builder::new().prefix("recant-test-").tempdir_in("/dev/shm").unwrap();
        if is_root() && desk.who == Who::User {
            std::os::unix::fs::chown(store.path(), Some(USER), None).unwrap();
        }
        let said = desk.held(&format!("--store {}/store", store.path().display()), "echo a > a").run().with(125);
        assert!(said.stderr().contains("is private in a run") && said.stderr().contains("--store DIR"), "{said}");
        assert!(!desk.world.tree().join("a").exists());
    });
}

/// Whether a run has said that it does not see a pending session.
fn hints_at_pending(said: &common::Said) -> bool {
    said.stderr().contains(" is pending, not seen by this run: recant run --session ")
}

#[test]
fn what_a_run_was_to_commit_and_could_not_is_told_of_by_the_next() {
    each(|desk| {
        desk.world.config("[commit]\ndeny = ['*.key']\n");
        desk.held("--name one", "echo 1 > one").run().ok();
        let said = desk.held("--commit", "echo k > z.key").run();
        assert!(said.stderr().contains("z.key") && hints_at_pending(&said), "{said}");
        // Of two of the same second either may be the newest.
        desk.recant("discard one").ok();
        let said = desk.run("echo 3 > three").ok();
        assert!(hints_at_pending(&said), "{said}");
    });
}

#[test]
fn a_run_says_that_it_does_not_see_what_a_pending_session_here_holds() {
    each(|desk| {
        desk.made("mkdir elsewhere; mkdir elsewhere/.git");
        let elsewhere = |script: &str| desk.held("", script).cwd(desk.world.tree().join("elsewhere")).run().ok();
        let said = desk.run("echo a > a").ok();
        assert!(!hints_at_pending(&said), "{said}");
        let id = desk.id();
        assert!(!hints_at_pending(&desk.held("--session last", "cat a").run().ok()));
        assert!(!hints_at_pending(&desk.held("-q", "true").run().ok()), "what is not said is not said for the last time");
        let said = desk.run("cat a").with(1);
        assert!(hints_at_pending(&said) && said.stderr().contains(&format!(" run --session {}\n", &id[16..])), "{said}");
        assert!(!hints_at_pending(&desk.run("cat a").with(1)), "once is enough");
        desk.recant(&format!("commit {id}")).ok();
        // A session that is committed is seen; another project's is none of this one's business.
        assert!(!hints_at_pending(&desk.run("cat a").ok()));
        desk.run("echo b > b").ok();
        let said = elsewhere("true");
        assert!(hints_at_pending(&said), "its directory lies in the one that the session is of: {said}");
        elsewhere("echo c > c");
        let other = desk.world.root().join("other");
        desk.bare(desk.world.root(), "mkdir other");
        assert!(!hints_at_pending(&desk.held("", "true").cwd(&other).run().ok()));
    });
}

#[test]
fn a_loop_of_commands_is_told_once_of_what_is_pending() {
    each(|desk| {
        let binary = desk.binary.to_str().unwrap();
        // Every second one changes something, in a session of its own.
        let command = "if [ $(($0 % 2)) = 0 ]; then echo > $0; fi";
        let script = format!("n=0; while [ $n -lt 10 ]; do {binary} run -- sh -c '{command}' $n || exit; n=$((n+1)); done");
        let in_a_loop = || desk.give(desk.world.program("sh", ["-c", &script])).run().ok();
        let told = |said: &common::Said| said.stderr().matches(" is pending, not seen by this run: ").count();
        let said = in_a_loop();
        assert_eq!((told(&said), desk.ids().len()), (1, 5), "{said}");
        assert!(said.stderr().lines().all(|line| line.chars().count() <= 80), "{said}");
        assert_eq!(told(&in_a_loop()), 0, "what was begun by somebody who had been told is no news");
    });
}

#[test]
fn a_loop_of_commands_in_one_session_is_told_once_how_to_go_on_and_then_what_is_new() {
    each(|desk| {
        let binary = desk.binary.to_str().unwrap();
        let command = "if [ $(($0 % 2)) = 0 ]; then echo > $0; fi";
        let script =
            format!("n=0; while [ $n -lt 10 ]; do {binary} run --session job -- sh -c '{command}' $n || exit; n=$((n+1)); done");
        let said = desk.give(desk.world.program("sh", ["-c", &script])).run().ok();
        let id = desk.id();
        let tail = &id[16..];
        let new =
            |step: u64, changes: &str, all: u64| format!("recant: step {step} of session {tail}: {changes}, {all} in all\n");
        let mut wanted = format!("recant: new session {tail}, named job\n");
        wanted.push_str(&format!("recant: 1 change (1 created) held in session {tail}\n"));
        wanted.push_str(&format!("recant: recant diff {tail}    recant commit {tail}    recant discard {tail}\n"));
        (2..=5).for_each(|step| wanted.push_str(&new(step, "1 change (1 created)", step)));
        assert_eq!(said.stderr(), wanted);
        // What is changed once more is counted, and so is what is no change any more.
        let said = desk.held("--session job", "echo more >> 0; rm 2").run().ok();
        assert_eq!(said.stderr(), new(6, "2 changes (1 modified, 1 deleted)", 4));
        let said = desk.held("--session job", "rm 0 4 6 8").run().ok();
        assert_eq!(said.stderr(), new(7, "4 changes (4 deleted)", 0));
    });
}

/// The words of a text that are numbers of four digits and more without commas, but for years.
fn ungrouped(text: &str) -> Vec<String> {
    let words = text.split_whitespace().map(|word| word.trim_matches(|c: char| "+-~(),;:".contains(c)));
    let is_long = |word: &&str| word.len() > 3 && word.bytes().all(|b| b.is_ascii_digit());
    words.filter(is_long).filter(|word| !word.starts_with("20")).map(str::to_owned).collect()
}

#[test]
fn what_is_held_is_said_in_lines_of_80_characters_and_numbers_of_thousands_have_a_comma_in_all_that_people_read() {
    let desk = Desk::new(Who::User);
    desk.made("mkdir d; for n in $(seq 1234); do echo $n >> big; echo $n > d/m$n; done; echo > t");
    desk.recant("snapshot create d -q").ok();
    let script = "rm big; for m in d/m*; do echo new > d/c${m#d/m}; echo new > $m; done; touch t; exit 143";
    let said = desk.run(script).with(143);
    assert!(said.stderr().contains("2,470 changes held in session "), "{said}");
    assert!(said.stderr().lines().all(|line| line.chars().count() <= 80), "{said}");
    let mut all = vec![said];
    let calls = "list; show; diff --stat -v; commit last --dry-run; commit last -y; status; checkpoint list; checkpoint show; \
                 snapshot create d; snapshot list d; snapshot show last --dir d; snapshot diff 1 --dir d --stat; log";
    all.extend(calls.split(';').map(|words| desk.recant(words).ok()));
    desk.bare(&desk.world.path("d"), "for n in $(seq 1234); do echo theirs > c$n; echo theirs > m$n; done");
    let said = desk.recant("rollback last").with(3);
    assert!(said.stderr().contains(": 2,468 conflicts\n"), "{said}");
    all.push(said);
    all.push(desk.recant("rollback last --force").ok());
    for said in all {
        let found = [ungrouped(&said.stdout()), ungrouped(&said.stderr())].concat();
        assert!(found.is_empty(), "{found:?} in {said}");
    }
}

#[test]
fn show_has_the_table_of_what_was_held_where() {
    each(|desk| {
        desk.run("echo a > a").ok();
        let short = desk.recant("show").ok();
        assert!(short.stderr().contains("what the run held, by place: recant show "), "{short}");
        let said = desk.recant("show -v").ok();
        let rows: Vec<String> = said.stdout().lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let at = rows.iter().position(|row| row == "what the run held, by place:").unwrap_or_else(|| panic!("no table: {said}"));
        let top = if desk.who == Who::Root { "held /: the whole tree" } else { "read-only /: everything else" };
        assert!(rows[at..].iter().any(|row| row.starts_with(top)), "{said}");
        assert!(rows[at..].contains(&format!("hidden {}: recant's store", desk.world.store().display())), "{said}");
        let json = desk.recant("show --json").ok().json();
        assert!(json["run"]["coverage"].as_array().unwrap().len() >= 3, "{json}");
    });
}

#[test]
fn a_place_that_is_passed_has_one_row_and_is_no_reason_to_refuse_a_run() {
    each(|desk| {
        let rows = |path: &str| -> Vec<serde_json::Value> {
            let shown = desk.recant("show last --json").ok().json();
            let coverage = shown["run"]["coverage"].as_array().unwrap().clone();
            coverage.into_iter().filter(|row| row["path"] == path).map(|row| row["how"].clone()).collect()
        };
        desk.held("--pass /dev/shm", "echo x > x").run().ok();
        assert_eq!(rows("/dev/shm"), ["passed"]);
        desk.held("", "echo x > x").run().ok();
        assert_eq!(rows("/dev/shm"), ["private"]);
        if !desk.other() {
            return;
        }
        // In a directory of somebody else's that anybody may write to.
        let theirs = tempfile::Builder::new().prefix("recant-far-").tempdir_in("/var/tmp").unwrap();
        std::fs::set_permissions(theirs.path(), std::os::unix::fs::PermissionsExt::from_mode(0o1777)).unwrap();
        let mine = theirs.path().join("mine");
        std::fs::create_dir(&mine).unwrap();
        std::os::unix::fs::chown(&mine, Some(USER), Some(USER)).unwrap();
        desk.held("--pass .", "echo real > real").cwd(&mine).run().ok();
        assert_eq!(std::fs::read_to_string(mine.join("real")).unwrap(), "real\n");
    });
}

#[test]
fn what_is_written_in_a_scratch_place_is_dropped_at_the_end_and_counted() {
    each(|desk| {
        let before = desk.made("mkdir -p build/deep old; echo o > build/o; echo k > old/k; echo f > file");
        let script = "echo new > build/deep/new; rm build/o; mkdir build/d; echo n > new; echo x > scratch.txt; mv new moved; ln moved build/link";
        let said = desk.held("--scratch build --scratch scratch.txt", script).run().ok();
        assert!(said.stderr().contains("5 changes in scratch places dropped"), "{said}");
        let id = desk.id();
        assert_eq!(desk.paths(&id), ["moved"]);
        let shown = desk.recant("show -v").ok();
        assert!(
            shown.stdout().contains(&format!("dropped at the end    {}", desk.world.tree().join("build").display())),
            "{shown}"
        );
        // A further run in the session does not see it, nor does what it drops come back by the next.
        desk.held(&format!("--session {id} --scratch old"), "cat build/o && ! ls build/deep/new && echo y > old/y").run().ok();
        let said = desk.held(&format!("--session {id}"), "! ls old/y && cat moved").run().ok();
        assert!(!said.stderr().contains("dropped"), "{said}");
        desk.recant(&format!("commit {id}")).ok();
        assert_eq!((desk.world.read("moved"), desk.world.read("build/o")), ("n\n".into(), "o\n".into()));
        desk.recant(&format!("rollback {id}")).ok();
        desk.world.manifest().assert_same(&before, "rolled back");
        desk.made("mkdir far; ln -s far near");
        let said = desk.held("--scratch near", "echo w > near/w").run().ok();
        assert!(said.stderr().contains("1 change in scratch places dropped"), "{said}");
        // Nothing but scratch: no session. A directory above that goes takes it along, which is said.
        assert!(desk.held("--scratch build", "rm -r build").run().ok().stderr().contains("no file change"));
        let said = desk.held("--scratch old/k", "rm -r old").run().ok();
        assert!(said.stderr().contains("old/k: its changes are kept"), "{said}");
        let id = desk.ids().pop().unwrap();
        assert_eq!(desk.paths(&id), ["old", "old/k"]);
        // What a killed run left there is dropped by whoever collects it.
        let script = "echo w > build/w; echo held > held; echo ready; read go";
        desk.start("--scratch build", script).kill();
        let id = desk.ids().pop().unwrap();
        until("the run is over", || desk.recant(&format!("diff {id} --name-only")).status == 0);
        assert_eq!(desk.paths(&id), ["held"]);
        let said = desk.held(&format!("--session {id}"), "! ls build/w && cat held").run().ok();
        assert!(said.stdout().contains("held"), "{said}");
    });
}

#[test]
fn a_command_that_writes_more_than_it_may_is_ended_and_nothing_is_committed() {
    each(|desk| {
        let before = desk.made("echo a > a");
        let script = "n=0; while :; do n=$((n + 1)); head -c 1000000 /dev/zero > zeros$n; done";
        let said = desk.held("--max-size 4M --commit", script).run().with(137);
        assert!(said.stderr().contains("which is more than --max-size 4.0 MiB"), "{said}");
        desk.world.manifest().assert_same(&before, "nothing is on the tree");
        assert_eq!(desk.status(&desk.id()), "pending");
        desk.recant(&format!("discard {}", desk.id())).ok();
        // One that may have ended by itself before anybody looked.
        let said = desk.held("--max-size 10K --commit --json", "head -c 100000 /dev/zero > quick").run();
        let last = last_json(&said);
        // It gets the same status then.
        said.with(137);
        assert!(last["result"] == "pending" && last["too_much"].as_u64().unwrap() >= 100_000, "{last}");
        let said = desk.held("--max-size 1M", "echo little > little").run().ok();
        assert!(!said.stderr().contains("max-size"), "{said}");
        // Of an earlier run, what there is counts for nothing.
        desk.held("-n large", "head -c 3000000 /dev/zero > large").run().ok();
        desk.held("--session large --max-size 1M", "echo little > little").run().ok();
        desk.held("--max-size 1X", "true").run().with(2);
    });
}

#[test]
fn what_a_run_is_ended_for_is_measured_once_it_writes_no_more() {
    each(|desk| {
        let said = desk.held("--max-size 2M --json", "head -c 16M /dev/zero > zeros; sleep 100").run();
        let last = last_json(&said);
        let held = desk.recant(&format!("diff {} --json", desk.id())).ok().json();
        let held = held["changes"][0]["after"]["size"].as_u64().unwrap_or_else(|| panic!("{held}"));
        assert!(last["too_much"].as_u64().unwrap() >= held, "{held} bytes are held: {last}");
    });
}

#[test]
fn max_size_holds_also_where_no_thread_can_be_had_to_measure() {
    if !has("prlimit") {
        return eprintln!("skipped: a limit for a process that runs needs prlimit");
    }
    // Root has as many as it likes.
    let desk = Desk::new(Who::User);
    let begun = std::time::Instant::now();
    let script = "echo ready; read go; head -c 5000000 /dev/zero > zeros; sleep 30";
    let mut waiting = desk.start("--max-size 1M", script);
    let pid = waiting.child.id().to_string();
    desk.give(desk.world.program("prlimit", ["--pid", &pid, "--nproc=1:1"])).run().ok();
    waiting.child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert_eq!(waiting.child.wait().unwrap().code(), Some(137));
    assert!(begun.elapsed() < Duration::from_secs(25), "it was ended while it slept");
}

#[test]
fn a_run_is_ended_by_max_size_also_while_somebody_else_frees_as_much_room() {
    each(|desk| {
        let ballast = desk.world.root().join("ballast");
        desk.bare(desk.world.root(), "head -c 160M /dev/zero > ballast");
        let script = "for n in $(seq 60); do head -c 1M /dev/zero > zeros$n; echo ready; read go; done";
        let mut command = desk.held("--max-size 20M", script).command();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (mut go, out) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        // Twice as much is freed as is written, before the next MiB is.
        let file = std::fs::OpenOptions::new().write(true).open(&ballast).unwrap();
        let mut written: u64 = 0;
        for _ in out.lines() {
            written += 1;
            file.set_len((160 - 2 * written) << 20).unwrap();
            std::thread::sleep(Duration::from_millis(20));
            if go.write_all(b"go\n").is_err() {
                break;
            }
        }
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("which is more than --max-size 20 MiB") && (20..60).contains(&written), "{written} MiB: {said}");
    });
}

#[test]
fn what_the_command_leaves_running_is_waited_for_as_long_as_asked() {
    each(|desk| {
        let said = desk.held("--wait-background 10m -n ends", "(sleep 0.2; echo late > late) & echo now > now").run().ok();
        assert!(!said.stderr().contains("left it running") && desk.paths("ends") == ["late", "now"], "{said}");
        let said = desk.held("--wait-background 1s -n stays", "tail -f /dev/null & echo now > then").run().ok();
        assert!(said.stderr().contains("ended, because the command left it running: tail"), "{said}");
        assert_eq!(desk.paths("stays"), ["then"]);
        for other in ["--no-wait", "--session x --serve y"] {
            desk.held(&format!("--wait-background 1s {other}"), "true").run().with(2);
        }
    });
}

#[test]
fn a_hidden_path_cannot_be_read_made_or_removed_by_root_either() {
    each(|desk| {
        let before = desk.made("echo secret > file; mkdir directory; echo in > directory/in");
        let closed = format!("--hide {0}/file --hide {0}/directory --hide {0}/directory/in", desk.world.tree().display());
        // Redirections that fail end a shell: each has one of its own.
        let script = "for way in 'echo lost > file' 'echo lost >> file' 'echo lost > directory/new' 'mkdir directory/new' 'rm file' 'mv file to' \
                      'ln file to' 'rmdir directory' 'mv directory to' 'chmod 600 file' 'touch file' 'truncate -s 1 file' 'cat file' \
                      'cat directory/in' 'test -e file' 'ls directory/*'; do sh -c \"$way\" 2>> said && echo \"went well: $way\"; done; \
                      cat said; rm said; stat -c %a directory; ls -A directory";
        let said = desk.held(&closed, script).run();
        let out = said.stdout();
        assert!(!out.contains("went well") && !out.contains("secret") && out.contains("\n0\n"), "{said}");
        // A user may not follow where it leads; root, who may, finds nothing.
        let (none, denied) = (out.matches("No such file").count(), out.matches("Permission denied").count());
        assert!(if desk.who == Who::Root { none >= 5 && denied == 0 } else { denied >= 5 }, "{said}");
        desk.world.manifest().assert_same(&before, "the tree is as it was");
        assert!(desk.ids().is_empty(), "and nothing is held");
        // Also where the command names it as a file that it creates.
        let said = desk.held(&closed, "echo lost > file").run();
        assert!(said.status != 0 && !said.stderr().contains("--open"), "{said}");
    });
}

#[test]
fn a_conflict_where_it_is_of_no_weight_is_left_out_and_stops_nothing_else() {
    each(|desk| {
        desk.made("mkdir -p cache/sub outer/cache; echo s > cache/sub/s; echo o > outer/cache/o; echo a > a");
        let tree = desk.world.tree();
        // A directory of its own for temporary files, so that it is none of this machine's.
        desk.world.config(&format!("[commit]\nminor = ['{0}/cache', '{0}/outer/cache']\n", tree.display()));
        let elsewhere = desk.world.root().join("project");
        desk.bare(desk.world.root(), "mkdir project");
        let run = |script: &str| {
            desk.held("", &format!("cd {}; {script}", tree.display())).cwd(&elsewhere).run().ok();
            desk.ids().pop().unwrap()
        };
        let script =
            "echo mine > cache/new; echo ok > cache/fine; mkdir cache/d; echo d > cache/d/d; rm -r cache/sub; echo b > a";
        let id = run(script);
        desk.bare(&tree, "echo theirs > cache/new; mkdir cache/d; echo theirs > cache/sub/theirs");
        let dry = desk.recant(&format!("commit {id} --dry-run --json")).with(4).json();
        let left: Vec<&str> =
            dry["skipped"].as_array().unwrap().iter().map(|skipped| skipped["path"].as_str().unwrap()).collect();
        let names = ["cache/d", "cache/d/d", "cache/new", "cache/sub"].map(|name| tree.join(name).display().to_string());
        assert_eq!(left, names, "{dry}");
        let said = desk.recant(&format!("commit {id}")).with(4);
        assert!(said.stdout().contains("skipped") && said.stdout().contains("created since"), "{said}");
        let read = |name: &str| desk.world.read(name);
        assert_eq!((read("a"), read("cache/fine"), read("cache/new")), ("b\n".into(), "ok\n".into(), "theirs\n".into()));
        assert!(!desk.world.exists("cache/sub/s") && desk.world.exists("cache/sub/theirs"));
        let shown = desk.recant(&format!("show {id} --json")).ok().json();
        assert_eq!(
            (&shown["session"]["status"], &shown["session"]["in"]),
            (&"committed".into(), &(shown["session"]["changes"].as_u64().unwrap() - 4).into())
        );
        desk.recant(&format!("rollback {id}")).ok();
        assert_eq!((read("a"), read("cache/sub/s")), ("a\n".into(), "s\n".into()));
        // One conflict that counts is enough to stop it all; so is one where the command was meant to work.
        let id = run("echo mine > cache/more; echo c > a");
        desk.bare(&tree, "echo theirs > cache/more; echo x > a");
        assert_eq!(desk.recant(&format!("commit {id} --json")).with(3).against().len(), 2);
        let id = {
            desk.held("", "echo mine > here").cwd(tree.join("cache")).run().ok();
            desk.ids().pop().unwrap()
        };
        desk.bare(&tree, "echo theirs > cache/here");
        desk.recant(&format!("commit {id}")).with(3);
        // Below where it was meant to work it is of no weight all the same.
        let id = {
            desk.held("", "echo mine > cache/below; echo d > a").cwd(&tree).run().ok();
            desk.ids().pop().unwrap()
        };
        desk.bare(&tree, "echo theirs > cache/below");
        desk.recant(&format!("commit {id}")).with(4);
        assert_eq!((read("a"), read("cache/below")), ("d\n".into(), "theirs\n".into()));
        // One name of several does not go without the others, nor a directory that counts for what lies in it.
        let id = run("echo mine > cache/linked; ln cache/linked linked");
        desk.bare(&tree, "echo theirs > cache/linked");
        desk.recant(&format!("commit {id}")).with(3);
        assert!(!desk.world.exists("linked"));
        let id = run("rm -r outer");
        desk.bare(&tree, "echo theirs > outer/cache/theirs");
        desk.recant(&format!("commit {id}")).with(3);
        assert!(desk.world.exists("outer/cache/o"));
        // So does a run that commits.
        let wait = "echo mine > TREE/cache/last; echo ready; read go".replace("TREE", tree.to_str().unwrap());
        let mut child = desk.held("--commit", &wait).cwd(&elsewhere).command();
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        until("it is ready", || std::io::Read::read(child.stdout.as_mut().unwrap(), &mut [0; 6]).unwrap() > 0);
        desk.bare(&tree, "echo theirs > cache/last");
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(4));
    });
}

#[test]
fn of_many_changes_the_first_twenty_are_listed_and_the_counts_tell_of_all() {
    each(|desk| {
        desk.made("mkdir full old; for n in $(seq 600); do echo $n > old/$n; done");
        let said = desk.held("-q", "for n in $(seq 650); do echo new $n > full/$n; done; rm old/*; echo a > a").run().ok();
        assert_eq!((said.stdout(), said.stderr()), (String::new(), String::new()), "-q prints problems alone");
        let id = desk.id();
        let whole = format!("… and 1,231 more: recant show {} -v", &id[16..]);
        let said = desk.recant("show").ok();
        assert!(said.stdout().contains("651 created, 600 deleted") && said.stdout().ends_with(&format!("{whole}\n")), "{said}");
        let all = desk.recant("show -v").ok().stdout();
        assert!(all.contains("full/77") && all.contains("old/77"), "{all}");
        let paths = desk.recant(&format!("commit {id} --json")).ok().json();
        assert_eq!(paths["paths"].as_array().map(Vec::len), Some(1251));
        for (verb, summary) in [
            ("rollback", "1,251 changes would be rolled back"),
            ("rollback", "1,251 changes rolled back"),
            ("redo", "1,251 changes redone"),
        ] {
            let dry = if summary.contains("would") { " --dry-run" } else { "" };
            let said = desk.recant(&format!("{verb} {id}{dry}")).ok();
            let (listed, messages) = (said.stdout(), said.stderr());
            assert!(listed.lines().count() == 21 && messages.lines().count() <= 3, "{said}");
            assert!(listed.lines().chain(messages.lines()).all(|line| line.chars().count() <= 80), "{said}");
            assert!(messages.contains(summary), "{said}");
            let last =
                if dry.is_empty() { whole.clone() } else { whole.replace("show", "rollback").replace("-v", "--dry-run -v") };
            assert_eq!(listed.lines().last(), Some(&*last), "{said}");
        }
        assert_eq!(desk.recant(&format!("rollback {id} -v")).ok().stdout().lines().count(), 1251);
        assert_eq!(desk.recant(&format!("redo {id} -v")).ok().stdout().lines().count(), 1251);
        let quiet = desk.recant(&format!("rollback {id} -q")).ok();
        assert_eq!((quiet.stdout(), quiet.stderr()), (String::new(), String::new()));
    });
}

#[test]
fn a_name_goes_on_to_the_next_session_once_the_one_that_had_it_is_committed() {
    each(|desk| {
        desk.held("--session work", "echo 1 > a").run().ok();
        let first = desk.id();
        desk.recant("commit work").ok();
        let said = desk.held("--session work", "echo 2 > a").run().ok();
        assert!(said.stderr().contains("new session") && said.stderr().contains("named work"), "{said}");
        let second = desk.ids().into_iter().find(|id| *id != first).expect("another one");
        // The older one is meant by its id alone.
        desk.recant("commit work").ok();
        desk.recant("rollback work").ok();
        assert_eq!((desk.world.read("a"), desk.status(&second)), ("1\n".into(), "rolled_back".into()));
        let said = desk.recant("rollback work").with(1);
        assert!(said.stderr().contains(&format!("the one before it: recant rollback {first}")), "{said}");
        desk.recant(&format!("rollback {first}")).ok();
        assert!(!desk.world.exists("a"));
        // One of which a part is committed keeps it.
        desk.held("--session part", "echo 1 > b; echo 1 > c").run().ok();
        desk.recant("commit part b").ok();
        let said = desk.held("--session part", "cat b c; echo 2 > b").run().ok();
        assert_eq!(said.stdout(), "1\n1\n");
    });
}

#[test]
fn a_commit_of_some_says_of_how_many_and_names_what_stands_against_it_briefly() {
    each(|desk| {
        desk.run("for n in $(seq 71); do echo $n > $n; done").ok();
        let (id, tail) = (desk.id(), desk.id()[16..].to_owned());
        let some: Vec<String> = (1..=26).map(|n| n.to_string()).collect();
        let said = desk.recant(&format!("commit {id} {}", some.join(" "))).ok();
        assert!(said.stderr().contains(": 26 changes committed"), "{said}");
        assert!(said.stderr().contains(&format!("is a part of session {tail}, which holds the rest: 45 changes")), "{said}");
        let part = desk.ids().into_iter().find(|other| *other != id).expect("the part");
        let said = desk.recant(&format!("rollback {part} 1 2")).ok();
        assert!(said.stderr().contains("2 of 26 changes rolled back, 24 still on the tree"), "{said}");
        desk.bare(&desk.world.tree(), "for n in $(seq 71); do echo theirs > $n; done");
        let said = desk.recant(&format!("commit {id}")).with(3);
        assert!(said.stderr().contains("… and 25 more: -v names them all"), "{said}");
        assert!(said.stderr().lines().count() == 24, "twenty paths, the count, and the three lines of an error: {said}");
        assert_eq!(desk.recant(&format!("commit {id} -v")).with(3).stderr().lines().count(), 45 + 3);
        assert_eq!(desk.recant(&format!("commit {id} --json")).with(3).json_err()["paths"].as_array().map(Vec::len), Some(45));
    });
}

#[test]
fn what_changed_below_a_session_is_named_before_a_command_goes_on_in_it() {
    each(|desk| {
        desk.made("for n in 1 2 3 4 5 6 7; do echo $n > $n; done; echo calm > calm");
        desk.run("for n in 1 2 3 4 5 6 7; do echo held > $n; done; echo new > new; echo held > calm").ok();
        let id = desk.id();
        let go_on = || desk.held(&format!("--session {id}"), "cat 1 new calm; echo x > x$(ls | wc -l)").run().ok();
        assert!(!go_on().stderr().contains("changed on the tree"), "nothing did");
        desk.bare(&desk.world.tree(), "for n in 1 2 3 4 5 6; do echo other >> $n; done; rm 7; echo theirs > new");
        let said = go_on();
        assert_eq!(said.stdout(), "held\nnew\nheld\n");
        assert_eq!(said.stderr().matches(": changed on the tree since the session held it").count(), 5, "{said}");
        assert!(said.stderr().contains("so did 3 other paths"), "{said}");
        assert!(said.stderr().find("changed on the tree") < said.stderr().find("1 change (1 created), "), "{said}");
    });
}

#[test]
fn what_was_open_to_the_command_beyond_files_is_said_where_something_stayed_real() {
    each(|desk| {
        desk.made("echo real > real");
        let said = desk.held("--pass real", "echo n > new").run().ok();
        let path = desk.world.tree().join("real").display().to_string();
        assert!(
            said.stderr().contains(&format!("open to it, and not held: {path}, the network; whether it was used is not known")),
            "{said}"
        );
        assert!(desk.recant("show").ok().stdout().contains(&format!("real        {path}: not held")));
        let said = desk.held("--pass real --no-network", "echo n > new2").run().ok();
        assert!(said.stderr().contains(&format!("not held: {path}; whether")), "{said}");
        assert!(!desk.held("", "echo n > new3").run().ok().stderr().contains("the network"));
        assert!(desk.held("-v", "echo n > new4").run().ok().stderr().contains("not held: the network"));
    });
}

#[test]
fn the_prompt_of_a_shell_says_in_which_session_it_runs() {
    if !has("script") {
        return;
    }
    each(|desk| {
        for shell in ["/bin/bash", "/bin/dash", "/usr/bin/fish"] {
            if !Path::new(shell).exists() {
                eprintln!("skipped: {shell} is not installed");
                continue;
            }
            // A terminal, so that there is a prompt; the home's own prompt stays behind it.
            // Without that directory fish reads all manual pages first, in a process that the run waits for.
            let home =
                "echo \"PS1='mine> '\" > .bashrc; mkdir -p ../data/fish/generated_completions .cache/fish/generated_completions";
            desk.bare(&desk.world.root().join("home"), home);
            let binary = desk.binary.to_str().unwrap();
            let words = ["-qec", &format!("{binary} shell"), "/dev/null"];
            let call = desk.give(desk.world.program("script", words)).env("SHELL", shell).env("TERM", "dumb");
            let said = call.stdin("echo made > made\nexit\n").run().ok();
            let id = desk.ids().pop().unwrap();
            let wanted = format!("(recant {}) {}", &id[16..], if shell.ends_with("bash") { "mine> " } else { "" });
            assert!(said.stdout().contains(&wanted), "{:?}, {shell}: {wanted}: {said}", desk.who);
        }
    });
}

#[test]
fn a_renamed_file_is_one_row_and_two_changes() {
    each(|desk| {
        let before = desk.made("mkdir d; seq 9 > d/a; seq 99 > d/b; cp -p d/b d/c; echo same > s; touch empty");
        desk.run("mv d/a moved; mkdir e; mv d/b d/c e/; rm s; echo diff > new; mv empty other").ok();
        let id = desk.id();
        let tree = desk.world.tree().display().to_string();
        for state in ["pending", "committed"] {
            let said = desk.recant("show").ok();
            let text = said.stdout();
            let rows: Vec<&str> = text.lines().filter(|row| row.starts_with("renamed")).collect();
            let names: Vec<&str> = rows.iter().map(|row| row.rsplit_once("  ").unwrap().1).collect();
            assert_eq!(names, ["d/b → e/b", "d/c → e/c", "d/a → moved"], "{:?}, {state}: {said}", desk.who);
            assert!(said.stdout().contains("3 deleted") || said.stdout().contains("5 deleted"), "{said}");
            assert!(!said.stdout().contains("  d/a\n"), "its deletion is in that row: {said}");
            let said = desk.recant("diff last").ok();
            let said = said.stdout().replace(&tree[1..], "").replace(&tree, "");
            assert!(said.contains("moved: renamed from") && said.contains("d/a: renamed to"), "{said}");
            let json = desk.recant("show --json").ok().json();
            let renamed = json["changes"].as_array().unwrap().iter().filter(|row| row["renamed_from"].is_string()).count();
            assert_eq!(renamed, 3, "{json}");
            if state == "pending" {
                desk.recant(&format!("commit {id}")).ok();
            }
        }
        desk.recant(&format!("rollback {id}")).ok();
        desk.world.manifest().assert_same(&before, "rolled back");
    });
}

#[test]
fn a_hard_link_is_no_renamed_file_of_the_same_content() {
    each(|desk| {
        desk.made("seq 9 > c; cp -p c d");
        desk.run("ln c c2; mv d e").ok();
        let said = desk.recant("show").ok();
        assert!(said.stdout().contains("d → e") && !said.stdout().contains("→ c2"), "{:?}: {said}", desk.who);
        let diff = desk.recant("diff last").ok();
        assert!(diff.stdout().contains("e: renamed from") && !diff.stdout().contains("c2: renamed"), "{:?}: {diff}", desk.who);
    });
}

#[test]
fn where_the_store_can_hold_no_run_it_lies_in_memory_and_is_carried_over() {
    let Some(desk) = with_mounts() else { return };
    let before = desk.made(
        "mkdir d old gone; echo one > d/one; echo two > d/two; ln d/two d/link; echo x > gone/x; seq 9 > old/a; chmod 640 d/one; touch -d 2001-01-01 d/one; \
         mkdir old/special; mkfifo -m 640 old/special/pipe; mknod old/special/null c 1 3; touch -d 2001-01-01 old/special/*",
    );
    let change = "echo more >> d/one; rm -r gone; mv old renamed; mkdir new; echo n > new/n; ln new/n new/m; ln -s n new/l; chmod 600 d/two; \
                  truncate -s 3M new/sparse; setfattr -n user.mark -v value new/n 2>/dev/null; chmod 4711 new/n; mkfifo -m 600 new/pipe; true";
    let store = desk.world.store();
    // A store on an overlay, as a container's own disk is one.
    let mounts = "mkdir -p \"$S\" \"$S.low\" \"$S.up\"; mount -t tmpfs up \"$S.up\"; mkdir \"$S.up/u\" \"$S.up/w\"; chmod 700 \"$S.up/u\"; \
                  mount -t overlay -o \"lowerdir=$S.low,upperdir=$S.up/u,workdir=$S.up/w\" store \"$S\"";
    let inside = |script: &str| {
        let script = format!("set -e; S={}; {mounts}; {script}", store.display());
        mounting(&desk, &script)
    };
    let (state, tree) = (
        "find . -printf '%P %y %m %n %s %l\\n' | sort; cat d/* new/n renamed/a; stat -c '%n %Y %t:%T' renamed/special/*",
        desk.world.tree(),
    );
    let script = format!(
        "\"$0\" run -- sh -c '{change}'; cat gone/x; \"$0\" diff last --stat > ../stat; \"$0\" run --session last -- true || echo refused $? >&2; \"$0\" commit last > ../said; {state}; \
         \"$0\" rollback last > ../said; \"$0\" redo last > ../said; \"$0\" rollback last > ../said; \
         \"$0\" run --max-size 1M -- sh -c 'head -c 5000000 /dev/zero > full' || echo too much; \
         \"$0\" run -- sh -c 'mkfifo pipe; echo p > p; mv old/special moved'; \"$0\" commit last > ../said; \"$0\" rollback last > ../said"
    );
    let said = inside(&script).ok();
    for part in ["lies in memory until it has ended", "at most 1.0 MiB", "No space left"] {
        assert!(said.stderr().contains(part), "{part}: {said}");
    }
    assert!(said.stderr().contains("its run was in memory") && said.stderr().contains("refused 125"), "{said}");
    desk.world.manifest().assert_same(&before, "rolled back");
    desk.bare(&tree, change);
    let bare = desk.world.program("sh", ["-c", state]).run().ok().stdout();
    let held = said.stdout();
    let held = held.strip_prefix("x\n").unwrap_or_else(|| panic!("the tree was as it was: {held}"));
    let held = held.split("too much").next().unwrap();
    assert_eq!(held, bare, "{said}");
}

/// A sync of the file system would wait for all that others write to it.
#[test]
fn a_run_waits_for_no_write_of_others_until_it_holds_something_and_a_large_one_is_written_out_early() {
    if !has("strace") {
        return;
    }
    each(|desk| {
        let log = desk.world.root().join("calls");
        let syncs = |script: &str, foreign: &str| {
            let binary = desk.binary.to_str().unwrap();
            let words =
                ["-f", "-qq", "-e", "trace=syncfs,fsync,fdatasync", "-o", log.to_str().unwrap(), binary, "run", "--", "sh", "-c"];
            let script = format!("{script}; echo ready; read go");
            let mut command = desk.give(desk.world.program("strace", [&words[..], &[&script]].concat())).command();
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
            let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
            let mut line = String::new();
            std::io::BufRead::read_line(&mut out, &mut line).unwrap();
            assert_eq!(line, "ready\n");
            // Where the store is.
            desk.bare(desk.world.root(), foreign);
            child.stdin.take().unwrap().write_all(b"go\n").unwrap();
            assert!(child.wait().unwrap().success());
            let calls = std::fs::read_to_string(&log).unwrap();
            desk.bare(desk.world.root(), "rm -f foreign calls");
            calls.matches("syncfs(").count() + calls.matches("sync(").count()
        };
        // What the first run makes, the store, is durable before it.
        desk.run("true").ok();
        // More than makes a run write out early.
        let foreign = "head -c 80000000 /dev/zero > foreign";
        assert_eq!(syncs("true", foreign), 0, "nothing was held");
        assert_eq!(syncs("echo gone > gone; rm gone", foreign), 0, "nothing is held");
        // All that is held, and the name of the header.
        assert_eq!(syncs("echo little > little", foreign), 2, "little was held");
        let early = syncs("head -c 80000000 /dev/zero > large", "true");
        assert!(early >= 3, "{early}");
    });
}

/// What is replaced when a run goes on in a session that holds something: durable before it gets its name, as what it replaces was.
#[test]
fn a_run_that_goes_on_leaves_what_was_held_durable_at_every_moment() {
    each(|desk| {
        desk.run("echo one > one").ok();
        let id = desk.id();
        let log = desk.world.root().join("log");
        desk.held(&format!("--session {id}"), "echo two > two").env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
        let text = std::fs::read_to_string(&log).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let mut named = 0;
        for (i, line) in lines.iter().enumerate().filter(|(_, line)| line.contains("renameat") && line.contains(".new")) {
            // A power cut that takes the note of the command leaves the session at its last step.
            if line.contains("/step.") {
                continue;
            }
            let made = (0..i).rev().find(|k| !lines[*k].contains("renameat") && !lines[*k].contains("sync")).unwrap();
            assert!(lines[made..i].iter().any(|line| line.contains("sync")), "{line}: not synced before:\n{text}");
            named += 1;
        }
        assert!(named >= 2, "{named}:\n{text}");
    });
}

#[test]
fn a_directory_that_was_renamed_and_renamed_back_is_as_it_was_with_the_mounts_in_it() {
    let Some(desk) = with_mounts() else { return };
    let before = desk.made("mkdir -p d/deep/on; echo old > d/old; echo in > d/deep/in; touch -d 2001-01-01 d/deep d");
    let script = "set -e; mount -t tmpfs disk d/deep/on; echo real > d/deep/on/there; \
                  \"$0\" run -n one -- sh -ec 'mv d e; mv e/deep e/d2; echo 1 > e/d2/new; mv e d; mv d/d2 d/deep; cat d/old d/deep/on/there'; \
                  \"$0\" run --session one -- sh -ec 'cat d/old d/deep/in d/deep/new d/deep/on/there; echo 2 > d/deep/on/made'; \
                  \"$0\" diff one --name-only; \"$0\" commit one; cat d/deep/new d/deep/on/made; \"$0\" rollback one; ls d/deep/on; umount d/deep/on";
    let said = mounting(&desk, script).ok();
    let paths = said.stdout().lines().filter(|line| line.contains('/')).map(str::to_owned).collect::<Vec<_>>();
    assert!(paths.iter().all(|path| path.ends_with("d/deep/new") || path.ends_with("d/deep/on/made")), "{said}");
    assert!(!said.stderr().contains("cannot move with the renamed"), "{said}");
    let plain: Vec<String> = said.stdout().lines().filter(|line| !line.contains([' ', '/'])).map(str::to_owned).collect();
    assert_eq!(plain, ["old", "real", "old", "in", "1", "real", "1", "2", "there"], "{said}");
    desk.world.manifest().assert_same(&before, "rolled back");
}

#[test]
fn a_mount_that_the_session_hides_is_not_dropped_silently() {
    let Some(desk) = with_mounts() else { return };
    desk.world.write("x/file", "below");
    let script = "set -e; \"$0\" run -n one -- rm -rf x; mount -t tmpfs disk x; \
                  \"$0\" run --session one -- sh -c 'mkdir -p x; echo new > x/onmount' || echo ended $?";
    let said = mounting(&desk, script).ok();
    assert!(said.stdout().contains("ended 125") && said.stderr().contains("something was mounted over it since"), "{said}");
}

#[test]
fn a_mount_that_is_not_captured_is_named_before_the_command_starts() {
    let Some(desk) = with_mounts() else { return };
    let tree = desk.world.tree();
    let inside = |script: &str| {
        let script = format!("set -e; mkdir disks; {script}");
        mounting(&desk, &script).ok()
    };
    desk.world.write("mounted", "below");
    let said = inside(
        "mkfifo pipe; mount --bind pipe mounted; \"$0\" run -- sh -c 'chmod 600 mounted || echo kept >&2'; umount mounted; rm -r pipe disks",
    );
    let told = format!(
        "recant: {}: not captured, so read-only for the command (recant doctor says why)\n",
        tree.join("mounted").display()
    );
    assert!(said.stderr().starts_with(&told) && said.stderr().contains("kept"), "{said}");
    assert_eq!(desk.world.read("mounted"), "below");
    // Of many that are not, some are named, and the rest is counted.
    let many = "for i in $(seq 40); do mkdir disks/$i; mount -t tmpfs disk disks/$i; done; \"$0\" run -- true; umount disks/*; rm -r disks";
    let said = inside(many).stderr();
    assert!(said.lines().any(|line| line.contains(" more mounts: not captured, so read-only for the command")), "{said}");
}

/// Between two looks at one name, when the run has ended.
#[test]
fn what_somebody_takes_away_while_it_is_collected_ends_no_collecting() {
    each(|desk| {
        let made = "mkdir d; echo old > d/f; echo old > f";
        for (n, (name, command, somebody)) in [
            ("f", "echo new > f", "rm f"),
            ("f", "echo new > f", "rm f && mkdir f"),
            ("f", "rm f", "rm f"),
            ("f", "rm f; mkdir f", "rm f"),
            ("d", "chmod 700 d", "rm -r d"),
            ("d", "rm -r d", "rm -r d"),
            ("d", "rm -r d; echo new > d", "rm -r d"),
            ("f", "chmod 600 f", "rm f && ln -s d f"),
        ]
        .into_iter()
        .enumerate()
        {
            let what = format!("{:?}: {command}, then {somebody}", desk.who);
            // Each time right before the run: at what is older it looks another number of times.
            let make = || drop(desk.made(&format!("rm -rf d f; {made}")));
            let log = |which: &str| desk.world.root().join(format!("steps-{which}-{n}"));
            let between = format!(" between {}", desk.world.path(name).display());
            let step_of = |log: &Path| {
                let log = std::fs::read_to_string(log).unwrap();
                log.lines()
                    .find_map(|line| line.strip_suffix(&between).map(str::to_owned))
                    .unwrap_or_else(|| panic!("{what}: {log}"))
            };
            // What is said once a project makes the first run's steps others than the second's.
            for which in ["first", "second"] {
                make();
                let orders = format!("log:{}", log(which).display());
                desk.held("", command).env("RECANT_STEPS", orders).run().ok();
                desk.recant("discard last -y").ok();
            }
            let deed = format!("cd {} && {somebody}", desk.world.tree().display());
            let mut step = step_of(&log("second"));
            // On a busy machine it looks another number of times now and then: once more then.
            let done_then = |attempt| {
                let again = log(&format!("again-{attempt}"));
                make();
                let orders = format!("log:{};run:{step}:{deed}", again.display());
                let said = desk.held("", command).env("RECANT_STEPS", orders).run();
                let was = std::mem::replace(&mut step, step_of(&again));
                if was != step {
                    desk.call(["discard", "last", "-y"]).run();
                }
                (was == step).then_some(said)
            };
            let said = (0..8).find_map(done_then).unwrap_or_else(|| panic!("{what}: it was never done then"));
            assert_eq!(said.status, 0, "{what}: {said}");
            assert!(said.stderr().contains(" held in session ") || said.stderr().contains("no file change"), "{what}: {said}");
            if said.stderr().contains(" held in session ") {
                desk.recant("discard last -y").ok();
            }
        }
    });
}
