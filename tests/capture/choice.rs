//! A person's choice in a session: `discard ID PATH…` takes a part out of it, as a step of its own, which `rewind` takes back. Later commands see what is on the tree there; a commit of the rest, and its rollback, are exact.

use std::cell::Cell;

use crate::VIEW;
use crate::common::{self, sweep::is_due};
use crate::desk::{Desk, each};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// The names of files that have several.
const NAMES: &str = r#"find t -type f -links +1 -printf '%i %p\n' | sort -k 2 |
    awk '{n[$1] = n[$1] " " $2} END {for (i in n) if (n[i] ~ / .* /) print n[i]}' | sort"#;

/// What every tree here begins as.
const MADE: &str = "
    mkdir -p t/d/s t/full; echo one > t/one; echo two > t/two; echo x > t/d/x; echo y > t/d/s/y; ln -s one t/link; mkfifo t/fifo
    for i in 1 2 3; do echo $i > t/full/$i; done; echo l > t/l1; ln t/l1 t/l2; chmod 640 t/two
    find t -depth -exec touch -h -d 2020-01-01 {} +";

fn go_on(desk: &Desk, script: &str) -> common::Said {
    desk.call(["run", "--session", "w", "--", "sh", "-ec", script]).run()
}

fn view(desk: &Desk) -> String {
    go_on(desk, VIEW).ok().stdout()
}

fn view_of(desk: &Desk, id: &str) -> String {
    desk.call(["run", "--session", id, "--", "sh", "-ec", VIEW]).run().ok().stdout()
}

fn real_view(desk: &Desk) -> String {
    desk.give(desk.world.program("sh", ["-ec", VIEW])).cwd(desk.world.tree()).run().ok().stdout()
}

fn discard(desk: &Desk, paths: &[&str]) -> common::Said {
    desk.call([&["discard", "w"], paths].concat()).cwd(desk.world.tree()).run()
}

/// Commits what is left, compares with what a command saw, and takes it back.
fn commit_and_back(desk: &Desk, what: &str) {
    let (seen, before) = (view(desk), desk.world.manifest());
    desk.recant("commit w").ok();
    assert_eq!(real_view(desk), seen, "{:?}: {what}: committed", desk.who);
    desk.recant("rollback w").ok();
    assert_eq!(desk.world.manifest(), before, "{:?}: {what}: rolled back", desk.who);
}

#[test]
fn a_path_that_is_discarded_is_as_on_the_tree_for_later_commands_and_back_after_a_rewind() {
    if !common::can_run() {
        return;
    }
    // Each in a tree of its own.
    let rows = [
        ("a file", "echo 1 > t/one; echo 2 > t/two", &["t/one"][..]),
        ("a new file", "echo 1 > t/new; echo 2 > t/two", &["t/new"]),
        ("a new directory", "mkdir -p t/n/m; echo 1 > t/n/m/f; echo 2 > t/two", &["t/n"]),
        ("a deleted file", "rm t/one t/d/x", &["t/one"]),
        ("a deleted directory", "rm -r t/full; echo 2 > t/two", &["t/full"]),
        ("a file of a deleted directory", "rm -r t/full", &["t/full/2"]),
        ("a directory made again", "rm -r t/full; mkdir t/full; echo f > t/full/f; echo 2 > t/two", &["t/full"]),
        ("a file of it", "rm -r t/full; mkdir t/full; echo f > t/full/f", &["t/full/f"]),
        ("a renamed file", "mv t/one t/three", &["t/one", "t/three"]),
        ("its new name", "mv t/one t/three", &["t/three"]),
        ("a renamed directory", "mv t/d t/e; echo 2 > t/two", &["t/d", "t/e"]),
        ("metadata", "chmod 600 t/one; touch -d 2021-01-01 t/two; chmod 700 t/d; echo 1 > t/d/n", &["t/one", "t/two"]),
        ("a directory's metadata", "chmod 700 t/d; echo 2 > t/two", &["t/d"]),
        ("a file in place of a directory", "rm -r t/d; echo d > t/d; echo 2 > t/two", &["t/d"]),
        ("what lay in a directory that is a file now", "rm -r t/d; echo d > t/d", &["t/d/x"]),
        ("a directory in place of a file", "rm t/one; mkdir t/one; echo 1 > t/one/1; echo 2 > t/two", &["t/one"]),
        ("a link and a FIFO", "ln -sf two t/link; rm t/fifo; echo 2 > t/two", &["t/link", "t/fifo"]),
        ("hard links", "rm t/l1 t/l2; echo 2 > t/two", &["t/l1", "t/l2"]),
        ("a further hard link", "ln t/one t/more; echo 2 > t/two", &["t/more"]),
    ];
    let in_each = |script: &dyn Fn(usize) -> &'static str| -> String {
        (0..rows.len()).map(|n| format!("mkdir -p t/{n}; (cd t/{n}; {})\n", script(n))).collect()
    };
    let in_tree = |n: usize, path: &str| format!("t/{n}/{path}");
    // The lines of a view that tell of what lies at a path, and below it.
    let lines = |view: &str, path: &str| -> Vec<String> {
        let is_of = |line: &str| {
            let (_, of) = line.split_once("  ").unwrap_or(("", line));
            of.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '|']))
        };
        view.lines().filter(|line| is_of(line)).map(str::to_owned).collect()
    };
    each(|desk| {
        desk.made(&in_each(&|_| MADE));
        let real = view_without(desk);
        go_on(desk, &in_each(&|n| rows[n].1)).ok();
        let with = view(desk);
        let paths: Vec<String> = (0..rows.len()).flat_map(|n| rows[n].2.iter().map(move |path| in_tree(n, path))).collect();
        discard(desk, &paths.iter().map(|path| &**path).collect::<Vec<_>>()).ok();
        let (without, held) = (view(desk), desk.paths("w"));
        assert_eq!(desk.recant("steps w --json").ok().json()["head"], 2);
        for (n, (what, _, paths)) in rows.iter().enumerate() {
            let what = format!("{:?}: {what}", desk.who);
            let tree = in_tree(n, "t");
            assert_ne!(lines(&without, &tree), lines(&with, &tree), "{what}");
            for path in paths.iter().map(|path| in_tree(n, path)) {
                assert_eq!(lines(&without, &path), lines(&real, &path), "{what}: {path}");
                assert!(!held.contains(&path), "{what}: {path} is still held");
            }
            if what.ends_with(": hard links") {
                let names = go_on(desk, NAMES).ok().stdout();
                assert!(names.contains(&format!(" {tree}/l1 {tree}/l2\n")), "{what}: they are one file again: {names}");
            }
        }
        discard(desk, &["t"]).ok();
        assert_eq!(view(desk), real, "{:?}: all", desk.who);
        for (step, seen) in [(1, &with), (2, &without), (3, &real), (2, &without)] {
            desk.recant(&format!("rewind w {step}")).ok();
            assert_eq!(view(desk), *seen, "{:?}: gone to step {step}", desk.who);
        }
        commit_and_back(desk, "what is left of all");
    });
}

/// What a command sees of the tree without a session's changes.
fn view_without(desk: &Desk) -> String {
    desk.call(["run", "--", "sh", "-ec", VIEW]).run().ok().stdout()
}

/// A change of the tree of one path, which may fail.
fn change() -> impl Strategy<Value = String> {
    let path = prop::sample::select(vec![
        "one", "two", "d", "d/x", "d/s", "d/s/y", "full", "full/1", "full/2", "l1", "l2", "link", "new", "new/a",
    ]);
    (0..8_u8, path.clone(), path).prop_map(|(what, path, other)| match what {
        0 => format!("echo {what}{other} > t/{path}"),
        1 => format!("rm -rf t/{path}"),
        2 => format!("mkdir -p t/{path} && echo in > t/{path}/in"),
        3 => format!("mv t/{path} t/{other}"),
        // On one name of a file with several, it is set for all of them (docs/DECISIONS.md, Capture).
        4 => format!("{{ [ -d t/{path} ] || [ \"$(stat -Lc %h t/{path})\" = 1 ]; }} && chmod 700 t/{path}"),
        5 => format!("ln t/{path} t/{other}"),
        6 => format!("rm -rf t/{path} && ln -s {other} t/{path}"),
        _ => format!("echo more >> t/{path}"),
    })
}

#[test]
fn whatever_is_discarded_a_command_sees_what_a_commit_of_the_rest_makes() {
    if !common::can_run() {
        return;
    }
    // Of 28, those that are due; `RECANT_ROUNDS=n` plays n others.
    let rounds = std::env::var("RECANT_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let cases = Config { cases: rounds.unwrap_or(28), failure_persistence: None, ..Config::default() };
    let played = Cell::new(0);
    let steps = prop::collection::vec(prop::collection::vec(change(), 1..5), 1..3);
    let chosen = prop::collection::vec(any::<prop::sample::Index>(), 1..4);
    let mut runner = match rounds {
        Some(_) => TestRunner::new(cases),
        None => TestRunner::new_with_rng(cases, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    };
    runner
        .run(&(steps, chosen), |(steps, chosen)| {
            played.set(played.get() + 1);
            if rounds.is_none() && !is_due(played.get()) {
                return Ok(());
            }
            each(|desk| {
                desk.made(MADE);
                for step in &steps {
                    go_on(desk, &step.iter().map(|change| format!("{{ {change}; }} 2>&- || true\n")).collect::<String>()).ok();
                }
                if desk.ids().is_empty() {
                    return;
                }
                let (with, held) = (view(desk), desk.paths("w"));
                if held.is_empty() {
                    return;
                }
                let paths: Vec<&str> = chosen.iter().map(|index| &**index.get(&held)).collect();
                let out = discard(desk, &paths).ok();
                let left = desk.paths("w");
                assert!(paths.iter().all(|path| !left.iter().any(|left| left == path)), "{steps:?} {paths:?}: {left:?} {out}");
                let seen = view(desk);
                desk.recant("rewind w 1").ok();
                let head = desk.recant("steps w --json").ok().json()["steps"].as_array().map_or(0, Vec::len);
                desk.recant(&format!("rewind w {}", head - 1)).ok();
                assert_eq!(view(desk), with, "{steps:?} {paths:?}: gone back");
                desk.recant(&format!("rewind w {head}")).ok();
                assert_eq!(view(desk), seen, "{steps:?} {paths:?}: and forward");
                commit_and_back(desk, &format!("{steps:?} {paths:?}"));
            });
            Ok(())
        })
        .expect("each case holds");
}

/// The lines of a view that tell of the object at a path.
fn lines_at<'v>(view: &'v str, path: &str) -> Vec<&'v str> {
    let (facts, hash) = (format!("{path}|"), format!("  {path}"));
    view.lines().filter(|line| line.starts_with(&facts) || line.ends_with(&hash)).collect()
}

#[test]
fn whatever_is_committed_of_it_a_command_sees_the_tree_there_at_each_step() {
    if !common::can_run() {
        return;
    }
    let rounds = std::env::var("RECANT_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let cases = Config { cases: rounds.unwrap_or(42), failure_persistence: None, ..Config::default() };
    let played = Cell::new(0);
    let steps = prop::collection::vec(prop::collection::vec(change(), 1..5), 1..4);
    let chosen = prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 1..4), 1..3);
    let mut runner = match rounds {
        Some(_) => TestRunner::new(cases),
        None => TestRunner::new_with_rng(cases, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    };
    runner
        .run(&(steps, chosen), |(steps, chosen)| {
            played.set(played.get() + 1);
            if rounds.is_none() && !is_due(played.get()) {
                return Ok(());
            }
            each(|desk| part_by_part(desk, &steps, &chosen));
            Ok(())
        })
        .expect("each case holds");
}

/// Commits parts of what the steps made, a person edits what left, and each step shows it. What is left is exact, there and back, and so are
/// the parts, the latest first.
fn part_by_part(desk: &Desk, steps: &[Vec<String>], chosen: &[Vec<prop::sample::Index>]) {
    desk.made(MADE);
    for step in steps {
        go_on(desk, &step.iter().map(|change| format!("{{ {change}; }} 2>&- || true\n")).collect::<String>()).ok();
    }
    if desk.ids().is_empty() {
        return;
    }
    let before = desk.world.manifest();
    let (whole, mut parts, mut gone) = (desk.id(), 0, Vec::new());
    for chosen in chosen {
        let held = desk.paths("w");
        if held.is_empty() {
            break;
        }
        let (with, paths): (String, Vec<&str>) = (view(desk), chosen.iter().map(|index| &**index.get(&held)).collect());
        let what = format!("{:?} {steps:?} {paths:?}", desk.who);
        desk.call([&["commit", "w"], &*paths].concat()).cwd(desk.world.tree()).run().ok();
        if desk.paths("w") == held && desk.status(&whole) == "pending" {
            // A directory alone that goes with what lies in it.
            continue;
        }
        parts += 1;
        if desk.status(&whole) == "committed" {
            break;
        }
        assert_eq!(view(desk), with, "{what}");
        let left = desk.paths("w");
        // Taken back before the session went on, it is in it again; redone, it has left again.
        for (verb, paths) in [("rollback", &held), ("redo", &left)] {
            desk.recant(&format!("{verb} last")).ok();
            assert_eq!((&desk.paths("w"), view(desk)), (paths, with.clone()), "{what}: {verb}");
        }
        gone.extend(held.iter().filter(|path| !left.contains(path)).cloned());
    }
    let what = format!("{:?} {steps:?} {gone:?}", desk.who);
    if desk.status(&whole) == "pending" {
        if chosen.len() == 1 {
            edited_then_seen(desk, &gone, &what);
        }
        commit_and_back(desk, &what);
        desk.recant(&format!("discard {whole}")).ok();
    }
    if chosen.len() > 1 {
        for _ in 0..parts {
            desk.recant("rollback w").ok();
        }
        desk.world.manifest().without_directory_times().assert_same(&before.without_directory_times(), &what);
    }
}

/// A person edits what left; each step from before shows that.
fn edited_then_seen(desk: &Desk, gone: &[String], what: &str) {
    let head = desk.recant("steps w --json").ok().json()["head"].as_u64().expect("a head");
    let is_file = |path: &&String| desk.world.path(path).symlink_metadata().is_ok_and(|meta| meta.is_file());
    let edited: Vec<&String> = gone.iter().filter(is_file).collect();
    edited.iter().for_each(|path| desk.bare(&desk.world.tree(), &format!("echo mine >> {path}")));
    let real = real_view(desk);
    for step in (1..=head).rev() {
        desk.recant(&format!("rewind w {step}"));
        let seen = view(desk);
        // At an earlier step what it lies in may be something else.
        for path in edited.iter().filter(|path| step == head || !lines_at(&seen, path).is_empty()) {
            assert_eq!(lines_at(&seen, path), lines_at(&real, path), "{what}: {path} at step {step}");
        }
    }
    desk.recant(&format!("rewind w {head}"));
}

#[test]
fn whatever_leaves_and_comes_back_a_command_sees_what_a_commit_makes() {
    if !common::can_run() {
        return;
    }
    let rounds = std::env::var("RECANT_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let cases = Config { cases: rounds.unwrap_or(56), failure_persistence: None, ..Config::default() };
    let played = Cell::new(0);
    let acts = prop::collection::vec((0..12_u8, any::<prop::sample::Index>(), change()), 3..10);
    let mut runner = match rounds {
        Some(_) => TestRunner::new(cases),
        None => TestRunner::new_with_rng(cases, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    };
    runner
        .run(&acts, |acts| {
            played.set(played.get() + 1);
            if rounds.is_none() && !is_due(played.get()) {
                return Ok(());
            }
            each(|desk| {
                desk.made(MADE);
                go_on(desk, "echo 1 > t/one; rm t/d/x; mkdir t/new; echo a > t/new/a").ok();
                let whole = desk.id();
                for (kind, index, change) in &acts {
                    let held = desk.paths(&whole);
                    let said = match kind {
                        0..3 => go_on(desk, &format!("{{ {change}; }} 2>&- || true")),
                        3..6 if !held.is_empty() => {
                            desk.call(["commit", &whole, &**index.get(&held)]).cwd(desk.world.tree()).run()
                        }
                        6 if !held.is_empty() => desk.call(["discard", &whole, &**index.get(&held)]).cwd(desk.world.tree()).run(),
                        7 => desk.recant(&format!("rewind {whole} {}", index.index(6))),
                        8 => desk.recant("rollback last"),
                        9 => desk.recant("redo last"),
                        _ => match desk.recant(&format!("commit {whole} -y")) {
                            // Open again with the next command.
                            said if said.status == 0 => desk.recant(&format!("rollback {whole}")).ok(),
                            said => said,
                        },
                    };
                    assert!(matches!(said.status, 0 | 1 | 3 | 4), "{acts:?}: {said}");
                    if !["pending", "rolled_back"].contains(&&*desk.status(&whole)) {
                        return;
                    }
                }
                let (seen, what) = (view_of(desk, &whole), format!("{:?} {acts:?}", desk.who));
                // What stands on a part that was rolled back is a conflict.
                if desk.recant(&format!("commit {whole} -y")).status == 0 {
                    assert_eq!(real_view(desk), seen, "{what}");
                }
            });
            Ok(())
        })
        .expect("each case holds");
}

#[test]
fn what_is_said_and_what_is_refused() {
    if !common::can_run() {
        return;
    }
    each(|desk| {
        desk.made(MADE);
        go_on(desk, "echo 1 > t/one; rm -r t/full; echo 2 > t/two").ok();
        go_on(desk, "echo 3 > t/three").ok();
        let before = view(desk);
        let dry = desk.call(["discard", "w", "t/full/1", "--dry-run", "--json"]).cwd(desk.world.tree()).run().ok().json();
        assert_eq!((&dry["dry_run"], &dry["left"], &dry["step"]), (&true.into(), &5.into(), &serde_json::Value::Null));
        assert_eq!(dry["discarded"].as_array().map(Vec::len), Some(2), "the file, and the directory that it needs: {dry}");
        assert_eq!(view(desk), before, "{:?}", desk.who);
        let json = desk.call(["discard", "w", "t/one", "--json"]).cwd(desk.world.tree()).run().ok().json();
        assert_eq!((&json["step"], &json["left"], &json["dry_run"]), (&3.into(), &6.into(), &false.into()), "{json}");
        let steps = desk.recant("steps w --json").ok().json();
        let last = &steps["steps"][0];
        assert_eq!(last["argv"][1], "discard", "{steps}");
        assert_eq!(last["left"], 1, "{steps}");
        let said = discard(desk, &["t/nothing"]).with(1);
        assert!(said.stderr().contains("holds no change there"), "{said}");
        // A word that is a session and a path of it has to be told apart.
        desk.call(["run", "-n", "amb", "--", "sh", "-c", "echo a > amb"]).run().ok();
        go_on(desk, "echo b > amb").ok();
        let said = discard(desk, &["amb"]).with(1);
        assert!(said.stderr().contains("is a session, and a path"), "{said}");
        discard(desk, &["./amb"]).ok();
        let said = discard(desk, &["amb", "t/two"]).with(1);
        assert!(said.stderr().contains("use one call for each"), "{said}");
        // What is left of a session goes on; of what was committed nothing is chosen.
        desk.call(["commit", "w", "t/three"]).cwd(desk.world.tree()).run().ok();
        discard(desk, &["t/two"]).ok();
        desk.recant("commit w").ok();
        let said = desk.recant("discard w --patch").with(1);
        assert!(said.stderr().contains("it is committed"), "{said}");
    });
}
