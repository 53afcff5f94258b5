//! What the snapshots of turns cover, and what becomes of the rest: it is named, and nothing goes that was there before.

use std::fmt::Write as _;

use crate::agent::{Agent, pause, run};
use crate::common::{Said, World};
use serde_json::Value;

/// A repository with something of each kind. What git ignores: `config/` with two files, `uploads/` with many, `small.log`, `large.log`, `x.o`.
fn world() -> World {
    let world = World::new();
    world.write(".gitignore", "config/\nuploads/\n*.log\n*.o\nignored\n");
    world.write("a", "a\n").write("build/tool.js", "tracked\n").write(".env.example", "A=\n").write("ignored", "tracked\n");
    run(&world, "git init -q . && git add . && git add -f build ignored && git -c user.name=a -c user.email=a@b commit -qm one");
    world.write(".env", "KEY=1\n").write("config/key", "key\n").write("config/deep/er", "er\n").write("small.log", "log\n");
    world
        .write("build/app", "built\n")
        .write("dist/app", "built\n")
        .write("target/debug/app", "built\n")
        .write("x.o", "object\n");
    world.write("large.log", "0123456789abcdef".repeat((1 << 16) + 1));
    run(&world, "mkdir uploads; cd uploads; seq 1001 | xargs touch");
    pause();
    world
}

/// A turn that runs a script, and what an undo of it says.
fn undone(world: &World, script: &str) -> Said {
    let agent = Agent::begin(world, "claude", "s");
    agent.prompt("go");
    agent.shell(script);
    agent.stop();
    world.recant("agent undo -y --json")
}

/// Its lines about what is not covered: what became of which path.
fn named(said: &Said, world: &World) -> Vec<String> {
    let tree = format!("{}/", world.tree().display());
    let mut lines = Vec::new();
    for row in said.json()["not_covered"].as_array().expect("a list") {
        let mut line = format!("{} {}", row["what"].as_str().expect("a word"), below(&row["path"], &tree));
        for name in ["to", "made", "gone"] {
            match &row[name] {
                Value::String(_) => write!(line, " {name} {}", below(&row[name], &tree)).expect("a string"),
                Value::Array(names) => write!(line, " {name} {}", Value::from(names.clone())).expect("a string"),
                _ => {}
            }
        }
        lines.push(line);
    }
    lines
}

fn below(path: &Value, tree: &str) -> String {
    path.as_str().expect("a path").trim_start_matches(tree).to_owned()
}

#[test]
fn what_cannot_be_got_back_elsewhere_goes_back_and_the_rest_is_named() {
    let all = "build .env.example ignored .env config small.log dist target x.o large.log uploads";
    let world = world();
    let before = world.manifest();
    let said = undone(&world, &format!("rm -r {all}")).with(4);
    assert_eq!(
        named(&said, &world),
        ["deleted build/app", "deleted dist", "deleted large.log", "deleted target", "deleted uploads", "deleted x.o"]
    );
    let mut now = before.clone();
    for gone in ["build/app", "dist", "large.log", "target", "uploads", "x.o"] {
        now.0.retain(|path, _| path != gone.as_bytes() && !path.starts_with(format!("{gone}/").as_bytes()));
    }
    world.manifest().without_directory_times().assert_same(&now.without_directory_times(), "undone");
}

#[test]
fn what_is_not_covered_is_named_by_what_became_of_it() {
    for (script, fates) in [
        ("echo x > large.log", &["overwritten large.log"][..]),
        ("echo x > large.new; mv large.new large.log", &["overwritten large.log"]),
        ("mv dist public", &["moved dist to public"]),
        ("mkdir sub; mv large.log sub/big.log", &["moved large.log to sub/big.log"]),
        ("mv dist ../dist", &["deleted dist"]),
        ("mkdir node_modules; touch node_modules/one node_modules/two", &["made node_modules"]),
        (
            "rm target/debug/app; rmdir target/debug; touch target/a target/b",
            &[r#"entries target made ["a","b"] gone ["debug"]"#],
        ),
        ("chmod 700 target", &["metadata target"]),
        // One thing: what is done deeper in it is not looked for.
        ("echo x > target/debug/app", &[]),
        ("echo x > x.o", &["overwritten x.o"]),
        ("mv .git git", &["moved .git to git"]),
        // It has grown out of what is kept, and is kept still.
        ("head -c 3000000 /dev/zero > small.log", &[]),
        ("cd config; seq 2000 | xargs touch", &[]),
    ] {
        let world = world();
        let before = world.manifest();
        let said = undone(&world, &format!("echo b > a; {script}"));
        assert_eq!(named(&said, &world), fates, "{script}: {said}");
        assert_eq!(said.status, if fates.is_empty() { 0 } else { 4 }, "{script}: {said}");
        if fates.is_empty() && !script.contains("target") {
            world.manifest().assert_same(&before, script);
        }
    }
}

#[test]
fn nothing_that_was_there_before_a_turn_goes_with_its_undo() {
    for (script, there) in [
        ("mv dist public; echo x >> public/app", &[("public/app", "built\nx\n")][..]),
        ("mkdir conf; mv .env conf/production.env", &[(".env", "KEY=1\n")]),
        ("mv dist/app a", &[("a", "built\n")]),
        ("ln dist/app name", &[("name", "built\n")]),
        ("mv ../mine mine", &[("mine/work", "work\n")]),
        ("mv target/debug moved; rm a", &[("moved/app", "built\n"), ("a", "a\n")]),
        ("mkdir new; mv target/debug/app new/app; echo x > new/x", &[("new/app", "built\n")]),
        // What the snapshot knows goes back to where it was, and is there but once.
        ("echo x >> a; mv a b", &[("a", "a\n")]),
        ("mv config conf", &[("config/key", "key\n")]),
    ] {
        let world = world();
        world.write("../mine/work", "work\n");
        pause();
        let said = undone(&world, script);
        for (name, content) in there {
            assert_eq!(world.read(name), *content, "{script}: {said}");
        }
        for gone in ["b", "conf", "new/x"] {
            assert!(!world.exists(gone), "{script}: {gone} {said}");
        }
    }
}

#[test]
fn a_snapshot_s_restore_and_a_run_s_rollback_remove_nothing_that_was_there_before() {
    let world = World::new();
    world.write("a", "a\n").write(".recantignore", "kept\n").write("kept", "left out\n").write("dir/kept", "left out\n");
    pause();
    world.recant("snapshot create").ok();
    pause();
    run(&world, "mv kept moved; mv dir/kept dir/moved; mv a b; echo new > new");
    let said = world.recant("snapshot restore last -y").with(4);
    assert!(said.stdout().contains("moved: it was there before"), "{said}");
    let is = |name: &str| world.path(name).exists().then(|| world.read(name));
    let left = Some("left out\n".to_owned());
    let found = ["moved", "dir/moved", "a", "b", "new"].map(is);
    assert_eq!(found, [left.clone(), left.clone(), Some("a\n".to_owned()), None, None], "{said}");

    run(&world, "mv moved kept; mv dir/moved dir/kept");
    pause();
    let said =
        world.call(["run", "--in", ".", "--", "sh", "-c", "mv kept moved; mv dir/kept dir/moved; mv a b; echo new > new"]).run();
    if said.status == 125 {
        return crate::common::skip(&format!("run --in: {}", said.stderr().trim()));
    }
    assert!(said.stderr().contains("moved: it was there before"), "{said}");
    world.recant("rollback last -y").ok();
    assert_eq!(
        ["moved", "dir/moved", "a", "b", "new"].map(is),
        [left.clone(), left, Some("a\n".to_owned()), None, None],
        "{said}"
    );
}

#[test]
fn a_repository_in_the_project_stays_whole_also_when_nothing_shows_any_more_that_it_is_one() {
    let world = world();
    run(&world, "git clone -q --bare . remote.git; git init -q nested; touch nested/file");
    pause();
    let said = undone(&world, "rm remote.git/HEAD; mv nested/.git nested/git; rm nested/file").with(4);
    assert_eq!(named(&said, &world), ["moved nested/.git to nested/git", "head remote.git"]);
    assert!(world.exists("remote.git/objects") && world.exists("nested/git/HEAD") && world.exists("nested/file"), "{said}");
}

#[test]
fn the_line_that_is_named_moves_head_back_and_leaves_the_files_alone() {
    let git = "git -c user.name=a -c user.email=a@b";
    for script in [
        format!("echo b > a; {git} commit -qam two"),
        format!("git checkout -qb topic; echo b > a; {git} commit -qam two"),
        format!("git checkout -q --detach; {git} commit -q --allow-empty -m two"),
        "git update-ref -d HEAD".to_owned(),
    ] {
        let world = world();
        let state = || {
            let text = "git rev-parse HEAD; git symbolic-ref HEAD; git status --porcelain";
            world.program("sh", ["-c", text]).run().ok().stdout()
        };
        let before = state();
        let said = undone(&world, &script).with(4);
        let row = &said.json()["not_covered"][0];
        assert_eq!(row["what"], "head", "{script}: {said}");
        assert_ne!(state(), before, "{script}");
        run(&world, row["remedy"].as_str().expect("a command"));
        assert_eq!(state(), before, "{script}: {said}");
    }
}

#[test]
fn what_is_lost_is_told_when_the_turn_ends_and_shown_by_its_diff() {
    let world = world();
    let agent = Agent::begin(&world, "claude", "s");
    agent.prompt("go");
    agent.shell("rm large.log; mkdir node_modules; mv dist public; echo x > a; echo x > x.o");
    let said = agent.stops();
    let told = said.json()["systemMessage"].as_str().expect("a message").to_owned();
    assert!(told.contains("large.log: deleted (1.0 MiB), and not kept: git ignores it, and it is larger than 1 MiB"), "{told}");
    assert!(told.contains("public") && !told.contains("node_modules") && !told.contains("x.o"), "{told}");
    let said = world.recant("agent diff").ok().stderr();
    for line in
        ["large.log: deleted", "dist: moved to public; back: mv public dist", "node_modules: made", "1 file that compilers"]
    {
        assert!(said.contains(line), "{line}: {said}");
    }
}

#[test]
fn what_recantignore_names_is_left_out_and_what_it_takes_back_in_is_covered() {
    let world = world();
    world.write(".recantignore", "/a\n!large.log\n!dist/\n");
    pause();
    let said = undone(&world, "echo x > a; rm -r dist large.log").with(4);
    assert_eq!(named(&said, &world), ["overwritten a"]);
    assert_eq!((world.read("a"), world.read("dist/app"), world.exists("large.log")), ("x\n".into(), "built\n".into(), true));
}
