//! A clock that is set while recant is at work: nothing rests on it going forward. `faketime` sets that of one process, and of what it
//! starts; the kernel stamps files by the real one.

use crate::common::{Call, World, can_run, skip};

const LIBRARIES: [&str; 3] = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"];

/// The library that sets a process's clock; its absence is said.
fn library(what: &str) -> Option<String> {
    let found = LIBRARIES.iter().map(|directory| format!("{directory}/faketime/libfaketime.so.1"));
    let found = found.into_iter().find(|path| std::path::Path::new(path).exists());
    if found.is_none() {
        skip(&format!("{what}: no libfaketime here"));
    }
    found
}

/// A call whose clock is off by `shift` (`-1d`), or set to `@2106-02-07 06:28:10`.
fn shifted(library: &str, call: Call, shift: &str) -> Call {
    let names = [("LD_PRELOAD", library), ("FAKETIME", shift), ("FAKETIME_DONT_FAKE_MONOTONIC", "1"), ("FAKETIME_NO_CACHE", "1")];
    names.into_iter().fold(call, |call, (name, value)| call.env(name, value)).env("NO_FAKE_STAT", "1")
}

#[test]
#[ignore = "long: rare; libfaketime sets the clock"]
fn a_clock_set_during_an_operation_changes_nothing_of_what_it_does() {
    let Some(library) = library("a clock set during an operation") else { return };
    let world = World::new();
    for file in ["a", "b", "gone"] {
        world.write(format!("in/{file}"), format!("old {file}"));
    }
    world.set_mtime("in/a", 4_000_000_000, 7).set_mtime("in/b", 1_000_000_000, 7);
    let id = world.begin();
    world.stage(&id, ["write in/a new a", "write in/b new b", "write made/c new c", "delete in/gone"]);
    let before = world.manifest();
    // From its n-th question on the clock is a day behind, or ahead.
    for shift in ["-1d", "+1d"] {
        for n in [0, 1, 2, 3, 5, 8, 13, 21, 34, 55] {
            for verb in ["commit", "rollback", "redo", "rollback"] {
                let verb = if verb == "commit" && world.status(&id) == "rolled_back" { "redo" } else { verb };
                let call = shifted(&library, world.call([verb, &id]), shift);
                let call = if n == 0 { call } else { call.env("FAKETIME_START_AFTER_NUMCALLS", n.to_string()) };
                let said = call.run();
                assert_eq!(said.status, 0, "{verb}, {shift} from question {n} on: {said}");
                if verb == "rollback" {
                    before.assert_same(&world.manifest(), &format!("{shift} from question {n} on"));
                } else {
                    assert_eq!((world.read("in/b"), world.exists("in/gone")), ("new b".into(), false));
                }
            }
        }
    }
    world.assert_tidy("afterwards");
}

#[test]
#[ignore = "long: rare; libfaketime sets the clock"]
fn sessions_of_a_moment_or_of_a_clock_set_back_keep_their_order_and_expire_none_too_early() {
    let Some(library) = library("sessions of a clock set back") else { return };
    let world = World::new();
    let mut ids = Vec::new();
    let times =
        ["@2030-01-01 00:00:00", "@2030-01-01 00:00:00", "@2029-12-31 00:00:00", "@1970-01-01 00:00:01", "@2106-02-07 06:28:20"];
    for time in times {
        let id = shifted(&library, world.call(["session", "new"]), time).run().ok().id();
        shifted(&library, world.call(["session", "write", &id, "f", "--from", "/dev/null"]), time).run().ok();
        ids.push(id);
    }
    let rows = world.recant("list --json").ok().json();
    let listed: Vec<_> =
        rows["sessions"].as_array().expect("a list").iter().rev().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(listed, ids, "by number, not by time");
    assert!(world.recant("show last").stderr().contains(&ids[4]));
    // The latest first: a discard frees what was discarded long before it.
    for at in [4, 0, 1, 2, 3] {
        shifted(&library, world.call(["discard", "-y", &ids[at]]), times[at]).run().ok();
    }
    // Only the one of 1970 is older than a day; those of later years are not younger than nothing.
    let said = world.recant("prune --sessions --older-than 1d --dry-run --json").ok().json();
    let text = said.to_string();
    assert_eq!(ids.iter().filter(|id| text.contains(id.as_str())).collect::<Vec<_>>(), [&ids[3]], "{text}");
}

/// What was edited at 13:30 by a clock that was then set back to 12:30 has a time that is still to come.
#[test]
#[ignore = "long: rare; libfaketime sets the clock"]
fn what_was_edited_before_the_clock_was_set_back_is_no_work_of_somebody_during_a_run() {
    let Some(library) = library("a run after the clock was set back").filter(|_| can_run()) else { return };
    let world = World::new();
    for name in ["edited", "untouched", "gone", "moded", "dir/below"] {
        world.write(name, "old");
    }
    let before = world.manifest();
    let script = "echo new >edited; touch untouched; rm gone; chmod 640 moded; chmod 700 dir; echo more >>dir/below";
    shifted(&library, world.call(["run", "--", "sh", "-c", script]), "-1h").run().ok();
    shifted(&library, world.call(["commit", "last"]), "-1h").run().ok();
    assert_eq!((world.read("edited"), world.exists("gone")), ("new\n".into(), false));
    shifted(&library, world.call(["rollback", "last"]), "-1h").run().ok();
    before.assert_same(&world.manifest(), "taken back by a clock that was set back");
}

#[test]
#[ignore = "long: rare; libfaketime sets the clock"]
fn what_somebody_changes_during_a_run_is_a_conflict_that_names_the_clock_which_was_set_back_meanwhile() {
    let Some(library) = library("a clock set back during a run").filter(|_| can_run()) else { return };
    let world = World::new();
    world.write("edited", "old").write("kept", "old");
    // What was changed within the day by which the clock goes back cannot be told from what is changed during the run.
    let long_ago = world.program("touch", ["-d", "2020-01-01", "edited", "kept"]);
    long_ago.run().ok();
    // A day ahead until half a second has gone by; the command goes on once it sees the true time again.
    let script = "echo mine > edited; until test \"$(date +%Y%m%d)\" = \"$0\"; do sleep 0.02; done; echo ready >&2; read go";
    let today = String::from_utf8(world.program("date", ["+%Y%m%d"]).run().ok().out).expect("digits");
    let call = shifted(&library, world.call(["run", "--", "sh", "-c", script, today.trim()]), "+1d");
    let mut command = call.env("FAKETIME_STOP_AFTER_SECONDS", "1").command();
    use std::io::{BufRead, BufReader, Read, Write};
    use std::process::Stdio;
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut said = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    while line != "ready\n" {
        line.clear();
        assert!(said.read_line(&mut line).expect("its words") > 0, "it ended early");
    }
    world.write("edited", "theirs");
    child.stdin.take().expect("a pipe").write_all(b"go\n").expect("it reads");
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("its words");
    assert!(child.wait().expect("its end").success(), "{rest}");
    // By the clock as it was before, this may have been done hours before the command.
    let said = world.recant("commit last").with(3);
    assert!(said.stderr().contains("changed during or before the run: the clock was set back"), "{said}");
    assert_eq!(world.read("edited"), "theirs");
}
