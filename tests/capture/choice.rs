//! A person's choice in a session: `discard ID PATH…` takes a part out of it, as a step of its own, which `rewind` takes back. Later commands see what is on the tree there; a commit of the rest, and its rollback, are exact.

use std::cell::Cell;

use crate::VIEW;
use crate::common::{self, sweep::is_due};
use crate::desk::{self, Desk, each};
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
        4 => format!("{{ [ -d t/{path} ] || [ \"$(stat -c %h t/{path})\" = 1 ]; }} && chmod 700 t/{path}"),
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
        let own = desk.recant("diff w --step 3 --name-only").ok().stdout();
        assert!(own.trim_end().ends_with("t/one") && own.lines().count() == 1, "{own}");
        let said = discard(desk, &["t/nothing"]).with(1);
        assert!(said.stderr().contains("holds no change there"), "{said}");
        // A word that is a session and a path of it has to be told apart.
        desk.call(["run", "-n", "amb", "--", "sh", "-c", "echo a > amb"]).run().ok();
        go_on(desk, "echo b > amb").ok();
        let said = discard(desk, &["amb"]).with(1);
        assert!(said.stderr().contains("is a session, and a path"), "{said}");
        discard(desk, &["./amb"]).ok();
        let said = discard(desk, &["amb", "t/two"]).with(1);
        assert!(said.stderr().contains("each takes a call of its own"), "{said}");
        // Of what was committed nothing is chosen.
        desk.call(["commit", "w", "t/three"]).cwd(desk.world.tree()).run().ok();
        let said = discard(desk, &["t/two"]).with(1);
        assert!(said.stderr().contains("some of it is on the tree"), "{said}");
    });
}

/// The choices of a merge and of a commit of a part, as the library makes them: another `before`, and content of its own.
#[test]
fn a_choice_has_its_own_before_and_its_own_content() {
    use recant::internals::{AbsPath, Arg, Content, Fs, Id, SessionChoice as Choice, Store, What, choose};
    if !common::can_run() || !desk::is_root() {
        println!("skipped: the choices of the library (no root)");
        return;
    }
    let desk = Desk::new(desk::Who::Root);
    desk.made(MADE);
    go_on(&desk, "echo held > t/one; echo held > t/two").ok();
    // Old enough for their fingerprints to tell.
    let before = desk.made_before("echo theirs > t/one; echo theirs > t/two", "t/two");
    desk.recant("commit w").with(3);

    let fs = Fs::new();
    let path =
        AbsPath::parse(desk.world.store().canonicalize().expect("the store").as_os_str().as_encoded_bytes()).expect("a path");
    let store = Store::open(&path).expect("the store").expect("it is there");
    let mut session = store.lock_session(&fs, &Id::parse(&desk.id()).expect("an id")).expect("the session");
    let changes = session.changes().expect("its changes");
    let choices = changes.list.iter().map(|change| {
        let now = Choice::out(&session, change).expect("what is on the tree").before;
        let (path, mut after) = (change.path.clone(), change.after.clone());
        let content = if path.name() == b"one" { Content::AsHeld } else { Content::Bytes(b"merged\n".to_vec()) };
        if let (Content::Bytes(bytes), Some(What::File { size, hash, .. })) =
            (&content, after.as_mut().map(|after| &mut after.what))
        {
            (*size, *hash) = (bytes.len() as u64, None);
        }
        // Of the same size and time as what is on the tree, by chance.
        if let (Some(after), Some(now)) = (&mut after, &now.object) {
            after.meta.mtime = now.meta.mtime;
        }
        Choice { path, before: now, after, content }
    });
    let choices = choices.collect();
    let chosen = choose(&fs, &store, &mut session, vec![Arg(b"merge".to_vec())], choices).expect("it is made");
    assert_eq!((chosen.step, chosen.changes), (Some(2), 2));
    drop(session);

    assert_eq!(go_on(&desk, "cat t/one t/two").ok().stdout(), "held\nmerged\n");
    assert_eq!(desk.recant("diff w --step 2 --name-only").ok().stdout().lines().count(), 1, "only one has another content");
    desk.recant("rewind w 1").ok();
    desk.recant("commit w").with(3);
    desk.recant("rewind w 2").ok();
    desk.recant("commit w").ok();
    assert_eq!((desk.world.read("t/one"), desk.world.read("t/two")), ("held\n".into(), "merged\n".into()));
    desk.recant("rollback w").ok();
    assert_eq!(desk.world.manifest(), before, "what was on the tree is back");
}
