//! What bash, zsh and fish offer for words of recant's: asked of the shells themselves.

use std::path::Path;

use crate::common::{self, World};

/// A world in which `recant` is the one that is tested.
fn world() -> World {
    let mut world = World::new();
    let directory = Path::new(common::recant()).parent().expect("a directory").to_owned();
    let path =
        std::env::join_paths([directory].into_iter().chain(std::env::split_paths(&std::env::var("PATH").expect("a PATH"))))
            .expect("names without colons");
    world.set("PATH", path).set("TERM", "xterm");
    world
}

/// A pending session `edit` of `src/main.rs`, `src/lib.rs` and some in `docs`, and a committed one `done` of `etc/app.conf`.
fn scene() -> (World, String, String) {
    let world = world();
    let done = world.recant("session new -n done").ok().id();
    world.stage_write(&done, "etc/app.conf", "x").call(["commit", &done]).run().ok();
    let edit = world.recant("session new -n edit").ok().id();
    world.stage_write(&edit, "src/main.rs", "x").stage_write(&edit, "src/lib.rs", "x").stage_write(&edit, "docs/a b", "x");
    world.stage_write(&edit, "docs/plain", "x").stage_write(&edit, "docs/`touch x`", "x");
    (world, edit, done)
}

fn has(shell: &str) -> bool {
    let there = std::process::Command::new(shell).arg("--version").output().is_ok();
    if !there {
        println!("skipped: completion in {shell}, which is not here");
    }
    there
}

/// What recant offers for these words, of which the last is being typed: each offer with what it is.
#[track_caller]
fn told(world: &World, words: &[&str]) -> Vec<(String, String)> {
    let said = world.call(["--"].into_iter().chain(words.iter().copied())).env("RECANT_COMPLETE", "fish").run().ok();
    assert!(said.err.is_empty(), "{said}");
    let offer = |line: &str| {
        let (value, help) = line.split_once('\t').unwrap_or((line, ""));
        (value.to_owned(), help.to_owned())
    };
    said.stdout().lines().map(offer).collect()
}

fn values(world: &World, words: &[&str]) -> Vec<String> {
    told(world, words).into_iter().map(|(value, _)| value).collect()
}

fn fish(world: &World, line: &str) -> Vec<String> {
    let script = format!("recant completions fish | source; complete --do-complete {}", quoted(line));
    let said = world.program("fish", ["--no-config", "-c", &script]).run().ok();
    assert!(said.err.is_empty(), "{line}: {said}");
    said.stdout().lines().map(str::to_owned).collect()
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "\\'"))
}

#[test]
fn sessions_are_offered_by_name_last_part_and_whole_id_those_first_that_the_verb_can_act_on() {
    let (world, edit, done) = scene();
    let unnamed = world.edited("f");
    let tail = |id: &str| id.rsplit('-').next().unwrap().to_owned();
    assert_eq!(values(&world, &["recant", "commit", ""]), ["last", &tail(&unnamed), "edit"]);
    assert_eq!(values(&world, &["recant", "rollback", ""]), ["last", "done"]);
    assert_eq!(values(&world, &["recant", "rollback", "edi"]), ["edit"]);
    assert_eq!(values(&world, &["recant", "show", "edi"]), ["edit"]);
    assert_eq!(values(&world, &["recant", "diff", &tail(&done)]), [tail(&done)]);
    let whole = values(&world, &["recant", "show", &edit[..4]]);
    assert!([&edit, &done, &unnamed].iter().all(|id| whole.contains(id)), "{whole:?}");
    // What it is stands beside it.
    assert_eq!(told(&world, &["recant", "commit", "edi"]), [("edit".to_owned(), "staged (pending)".to_owned())]);
    if common::can_run() {
        world.call(["run", "-n", "made", "--", "sh", "-c", "echo x > made"]).run().ok();
        assert!(told(&world, &["recant", "run", "--session", "m"])[0].1.starts_with("sh -c"), "the command is told");
        assert_eq!(values(&world, &["recant", "rewind", "made", ""]), ["1", "0"]);
        assert_eq!(told(&world, &["recant", "rewind", "made", "0"])[0].1, "the tree as it was");
        assert_eq!(values(&world, &["recant", "fork", "made", ""]), ["1"], "0 holds nothing");
    }
}

#[test]
fn the_paths_of_the_session_are_offered_a_directory_at_a_time_and_files_elsewhere() {
    let (world, ..) = scene();
    assert_eq!(values(&world, &["recant", "commit", "edit", ""]), ["docs/", "src/"]);
    assert_eq!(values(&world, &["recant", "diff", "edit", "src/"]), ["src/lib.rs", "src/main.rs"]);
    assert_eq!(values(&world, &["recant", "discard", "edit", "src/"]), ["src/lib.rs", "src/main.rs"]);
    // A shell would split or run such a name.
    assert_eq!(values(&world, &["recant", "cat", "edit", "docs/"]), ["docs/plain"]);
    assert_eq!(values(&world, &["recant", "rollback", "done", ""]), ["etc/app.conf"]);
    let whole = world.path("src/m");
    assert_eq!(
        values(&world, &["recant", "diff", "edit", whole.to_str().unwrap()]),
        [world.path("src/main.rs").to_str().unwrap()]
    );
    world.write("to be split", "x").write("`touch x`", "x").write("only-file", "x").mkdir("only-directory");
    assert_eq!(values(&world, &["recant", "commit", "edit", "no"]), Vec::<String>::new());
    assert_eq!(values(&world, &["recant", "session", "write", "edit", "only"]), ["only-directory/", "only-file"]);
    assert_eq!(values(&world, &["recant", "session", "write", "edit", "t"]), Vec::<String>::new());
    assert_eq!(values(&world, &["recant", "--store", "only"])[0], "only-directory/");
}

#[test]
fn snapshots_verbs_options_and_their_values_are_offered_with_what_they_are() {
    let (world, ..) = scene();
    world.recant("snapshot create . -m first --label start").ok();
    world.write("later", "x").recant("snapshot create .").ok();
    let offers = told(&world, &["recant", "snapshot", "restore", "--dir", ".", ""]);
    assert_eq!(offers.iter().map(|(value, _)| &**value).collect::<Vec<_>>(), ["last", "1", "0", "start"]);
    assert!(offers[2].1.ends_with("first"), "{offers:?}");
    let verbs = told(&world, &["recant", "ro"]);
    assert_eq!(verbs, [("rollback".into(), "Take back a commit: the files are again as they were before".into())]);
    let all = values(&world, &["recant", ""]);
    assert!(all.contains(&"help".into()) && !all.iter().any(|verb| verb == "far" || verb.starts_with('-')), "{all:?}");
    assert_eq!(values(&world, &["recant", "ls"]), ["ls"]);
    let options = told(&world, &["recant", "commit", "--accept"]);
    assert!(options.iter().any(|(option, help)| option == "--accept-unsynced" && !help.is_empty()), "{options:?}");
    assert!(values(&world, &["recant", "commit", "--st"]).contains(&"--store".into()), "options of all verbs too");
    assert_eq!(values(&world, &["recant", "list", "--color", "a"]), ["auto", "always"]);
    assert_eq!(values(&world, &["recant", "help", "doc"]), ["doctor"]);
}

#[test]
fn a_store_that_is_named_is_the_one_that_is_asked_and_nothing_is_changed_or_said() {
    let (world, edit, _) = scene();
    let store = world.store().to_str().unwrap().to_owned();
    let before = common::manifest(&world.store());
    let mut elsewhere = world;
    elsewhere.set("RECANT_STORE", elsewhere.root().join("none").display().to_string());
    assert_eq!(values(&elsewhere, &["recant", "--store", &store, "show", "edi"]), ["edit"]);
    assert_eq!(values(&elsewhere, &["recant", "show", "--store", &store, &edit[..2]]).len(), 2);
    // Where there is no store, and where settings or the store are wrong: nothing is offered, made or said.
    let nothing_but_options = |world: &World, words: &[&str]| values(world, words).iter().all(|offer| offer.starts_with("--"));
    assert!(nothing_but_options(&elsewhere, &["recant", "show", ""]));
    assert!(!elsewhere.root().join("none").exists());
    elsewhere.config("colour = 3");
    elsewhere.write("file", "no store");
    for words in [
        &["recant", "show", ""][..],
        &["recant", "--store", "file", "commit", "x", ""],
        &["recant", "diff", "nothing", ""],
        &["recant", "-H", "far", "show", ""],
        &["recant"],
        &["recant", "no-such-verb", "x"],
    ] {
        assert!(words.len() == 1 || nothing_but_options(&elsewhere, words), "{words:?}");
    }
    before.assert_same(&common::manifest(Path::new(&store)), "completion only reads");
}

/// A variable that is there by chance ends no call in silence.
#[test]
fn a_shell_that_is_none_asks_for_nothing() {
    let world = World::new();
    for shell in ["", "0", "1", "csh"] {
        let said = world.call(["--version"]).env("RECANT_COMPLETE", shell).run();
        assert!(said.ok().stdout().starts_with("recant "), "{shell}");
    }
}

#[test]
fn fish_offers_what_recant_tells() {
    if !has("fish") {
        return;
    }
    let (world, ..) = scene();
    world.write("file one", "x").write("file2", "x").mkdir("directory");
    assert_eq!(fish(&world, "recant commit ")[1], "edit\tstaged (pending)");
    assert_eq!(fish(&world, "recant diff edit src/"), ["src/lib.rs", "src/main.rs"]);
    assert!(fish(&world, "recant sta").iter().any(|line| line.starts_with("status\tShow sessions")));
    assert_eq!(fish(&world, "recant session write edit fi"), ["file2"]);
}

#[test]
fn bash_and_zsh_offer_what_recant_tells() {
    // One offer alone is typed out, and more are listed.
    let lines = [
        ("recant commit edi", &["recant commit edit "][..]),
        ("recant show ", &["edit", "done", "last"]),
        ("recant ro", &["recant rollback "]),
        ("recant diff edit src/m", &["recant diff edit src/main.rs "]),
        ("recant diff edit ", &["docs", "src"]),
        ("recant session write edit only-fi", &["recant session write edit only-file "]),
        ("recant --store only-", &["recant --store only-directory/"]),
    ];
    let (world, ..) = scene();
    world.write("only-file", "x").mkdir("only-directory");
    for shell in ["bash", "zsh"].into_iter().filter(|shell| has(shell) && has("python3")) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/complete.py");
        let said = world.program("python3", ["-B", script, shell]).stdin(serde_json::json!(lines).to_string()).run().ok().json();
        for ((line, wanted), seen) in lines.iter().zip(said.as_array().expect("what each shows")) {
            let seen = seen.as_str().expect("a text");
            assert!(wanted.iter().all(|part| seen.contains(part)), "{shell}: {line}:\n{seen}");
            assert!(!seen.contains("recant: ") && !seen.contains("rror"), "{shell}: {line}:\n{seen}");
        }
    }
}
