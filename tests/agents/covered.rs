//! What the snapshots of turns cover, and what becomes of the rest: it is named, and nothing goes that was there before.

use std::fmt::Write as _;

use crate::agent::{Agent, pause, run};
use crate::common::{Said, World};
use crate::desk::{Desk, Who};
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
    world.write("z", "z\n");
    // All else is newer than what is built, which therefore has nothing to say about its time.
    run(&world, "touch -d '1 hour ago' build/app dist/app target/debug/app");
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
        ("rm uploads/7", &["names uploads"]),
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
        let said = undone(&world, &format!("echo b > z; {script}"));
        assert_eq!(named(&said, &world), fates, "{script}: {said}");
        // One number, wherever it is told.
        let turn = world.recant("agent turns --json").ok().json()["turns"][0].clone();
        let paths = said.json()["paths"].as_array().map_or(0, Vec::len) + said.json()["skipped"].as_array().map_or(0, Vec::len);
        assert_eq!((&turn["paths"], &turn["not_covered"]), (&paths.into(), &fates.len().into()), "{script}: {said}");
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
        ("cp -a dist public; rm -r dist; echo x > z", &[("public/app", "built\n")]),
        ("cp -a large.log sub; rm large.log; mv sub other.txt; echo x > z", &[("z", "z\n")]),
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
    // A confined command may write to /tmp, where no store may lie then.
    let world = World::on(std::path::Path::new("/var/tmp"));
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
fn the_lines_that_are_named_take_a_repository_back_and_leave_the_files_alone() {
    let git = "git -c user.name=a -c user.email=a@b";
    let two = format!("echo b > a; {git} commit -qam two");
    for (script, fates) in [
        (two.clone(), &["head .git"][..]),
        (format!("git checkout -qb topic; {two}"), &["head .git", "made .git/refs/heads/topic"]),
        (format!("git checkout -q --detach; {git} commit -q --allow-empty -m two"), &["head .git"]),
        ("git update-ref -d HEAD".to_owned(), &["head .git"]),
        (
            "git branch -D side; git tag -d old; git gc -q".to_owned(),
            &["deleted .git/refs/heads/side", "deleted .git/refs/tags/old"],
        ),
        (format!("git checkout -q side; {two}; git checkout -q -"), &["changed .git/refs/heads/side"]),
        ("echo b > z; git add z".to_owned(), &["changed .git/index"]),
        (
            format!("git checkout -q side; {two}; git checkout -q -; echo c > a; {git} commit -qam three; {git} merge side || :"),
            &["head .git", "made .git/MERGE_HEAD", "changed .git/refs/heads/side"],
        ),
        ("echo true > .git/hooks/pre-commit".to_owned(), &["made .git/hooks/pre-commit"]),
        ("git stash -q".to_owned(), &["made .git/refs/stash"]),
        ("git config a.b c; echo x > .git/info/exclude".to_owned(), &["changed .git/config", "changed .git/info/exclude"]),
        ("git status; git branch x; git branch -D x; git pack-refs --all".to_owned(), &[]),
    ] {
        let world = world();
        run(&world, "git branch side; git tag old; echo person > a");
        pause();
        let state = || {
            let text =
                "git rev-parse HEAD; git symbolic-ref HEAD; git status --porcelain; git show-ref; ls .git/hooks/pre-commit";
            world.program("sh", ["-c", text]).run().stdout()
        };
        let before = state();
        let said = undone(&world, &format!("echo x > new; {script}"));
        assert_eq!(named(&said, &world), fates, "{script}: {said}");
        for row in said.json()["not_covered"].as_array().expect("a list") {
            row["remedy"].as_str().into_iter().for_each(|remedy| run(&world, remedy));
        }
        let is_helped = !fates.iter().any(|fate| fate.ends_with("stash"));
        assert!(!is_helped || state() == before, "{script}: {said}{before}{}", state());
        assert_eq!(world.read("a"), "person\n", "{script}: {said}");
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

#[test]
fn what_was_built_from_what_goes_back_is_built_anew() {
    let build = "make -s && cat build/app";
    let world = World::new();
    world.write("Makefile", "build/app: main.txt\n\tmkdir -p build; cp main.txt build/app\n").write("main.txt", "good\n");
    world.write("beside/other.txt", "good\n").write("other/main.txt", "good\n");
    run(
        &world,
        "touch -d '1 hour ago' main.txt beside/other.txt other/main.txt Makefile; make -s; touch -d '30 min ago' build/app",
    );
    run(&world, "mv other/main.txt other/a; touch -d '1 hour ago' other/a");
    let time = |name: &str| world.path(name).metadata().expect("a file").modified().expect("a time");
    let (untouched, restored) = (time("other/a"), time("main.txt"));
    let said = undone(&world, "echo bad > main.txt; echo bad > beside/other.txt; make -s").ok();
    let made = world.program("sh", ["-ec", build]).run().ok();
    assert_eq!((made.stdout().as_str(), time("other/a")), ("good\n", untouched), "{said}");
    assert!(time("main.txt") > restored && time("beside/other.txt") > restored);
    // A rollback of the undo, and what else restores, give the times of before.
    let id = said.json()["session"].as_str().expect("an id").to_owned();
    world.recant(&format!("rollback {id}")).ok();
    let n = world.recant("snapshot list --json").ok().json()["snapshots"].as_array().expect("a list").len();
    assert!(n > 0);
    world.recant("snapshot restore 0 -y main.txt").ok();
    assert_eq!(time("main.txt"), restored);
}

#[test]
fn what_was_moved_stays_where_it_is_if_its_place_is_gone() {
    let world = world();
    let agent = Agent::begin(&world, "claude", "s");
    turns_of(&world, &[agent], &[(0, "mv build/tool.js public; echo b > a")]);
    run(&world, "rm -r build");
    let said = world.recant("agent undo -y").with(4);
    assert_eq!((world.read("a"), world.read("public")), ("a\n".into(), "tracked\n".into()), "{said}");
    assert!(said.stdout().contains("stays     public: it was at build/tool.js before, which is not restored"), "{said}");
}

#[test]
fn names_of_one_file_that_go_back_to_two_snapshots_have_each_what_it_had() {
    let world = world();
    let agents = ["s", "t"].map(|session| Agent::begin(&world, "claude", session));
    // The second name is another conversation's, made of what the first had written by then.
    turns_of(&world, &agents, &[(0, "echo 1 > a"), (1, "ln a two"), (0, "rm two; echo 3 > a")]);
    let said = world.recant("agent undo 1 -y --json");
    assert!([0, 4].contains(&said.status), "{said}");
    assert_eq!((world.read("a"), world.read("two")), ("a\n".into(), "1\n".into()), "{said}");
}

#[test]
fn what_lay_in_a_directory_stays_out_if_what_stays_took_the_directorys_place() {
    let world = world();
    world.write("public/f", "f\n").write("public/deep/g", "g\n");
    let agent = Agent::begin(&world, "claude", "s");
    turns_of(&world, &[agent], &[(0, "rm -r public; mv large.log public; echo b > a")]);
    let said = world.recant("agent undo -y --json").with(4);
    assert_eq!((world.read("a"), world.path("public").is_file()), ("a\n".into(), true), "{said}");
    let skipped = said.json()["skipped"].to_string();
    for path in ["public/f", "public/deep", "public/deep/g"] {
        let row = format!("{}\",\"why\":\"its directory is gone, and is not restored", world.path(path).display());
        assert!(skipped.contains(&row), "{path}: {said}");
    }
}

#[test]
fn what_was_moved_over_another_file_stays_if_its_own_place_is_gone() {
    let world = world();
    world.write("n", "n\n");
    let agent = Agent::begin(&world, "claude", "s");
    turns_of(&world, &[agent], &[(0, "mv build/tool.js n; echo b > a")]);
    run(&world, "rm -r build");
    let said = world.recant("agent undo -y").with(4);
    assert_eq!((world.read("a"), world.read("n")), ("a\n".into(), "tracked\n".into()), "{said}");
    assert!(said.stdout().contains("stays     n: it was at build/tool.js before, which is not restored"), "{said}");
}

/// A conversation's turns, each of which writes to files: its name, and these.
fn turns_of(world: &World, agents: &[Agent<'_>], turns: &[(usize, &str)]) {
    for (n, (who, script)) in turns.iter().enumerate() {
        let agent = &agents[*who];
        agent.prompt(&format!("turn {}", n + 1));
        agent.shell(script);
        agent.stop();
        pause();
    }
    assert_eq!(world.recant("agent turns --json").ok().json()["turns"].as_array().map(Vec::len), Some(turns.len()));
}

#[test]
fn an_undo_reaches_later_turns_of_its_conversation_alone_or_the_turn_alone_or_the_whole_conversation() {
    let all = [(0, "echo 1 > one"), (1, "echo 2 > two"), (0, "echo 3 > three"), (1, "echo 4 > four"), (0, "echo 5 > one")];
    for (words, gone, one) in [
        ("undo 3", &["three"][..], "1\n"),
        ("undo 1", &["three", "one"], ""),
        ("undo 3 --only", &["three"], "5\n"),
        ("undo 3 --session", &["three", "one"], ""),
        ("undo 2 --only", &["two"], "5\n"),
    ] {
        let world = world();
        let agents = ["s", "t"].map(|session| Agent::begin(&world, "claude", session));
        turns_of(&world, &agents, &all);
        let said = world.recant(&format!("agent {words} -y --json")).ok();
        for name in ["one", "two", "three", "four"] {
            assert_eq!(world.exists(name), !gone.contains(&name), "{words}: {name}: {said}");
        }
        assert!(gone.contains(&"one") || world.read("one") == one, "{words}: {said}");
    }
    let world = world();
    let agents = ["s", "t"].map(|session| Agent::begin(&world, "claude", session));
    turns_of(&world, &agents, &all);
    let said = world.recant("agent undo 1 --only -y --json").with(4);
    assert!(said.json()["skipped"].to_string().contains("it was changed since turn 1, by turn 5 of claude"), "{said}");
    world.recant("agent undo 1 --only --session -y").with(2);
}

#[test]
fn a_turn_alone_is_taken_out_of_what_later_ones_and_a_person_made_of_a_text() {
    let world = world();
    run(&world, "seq 9 | tee f > g; head -c 99 /dev/zero > b");
    let agents = [Agent::begin(&world, "claude", "s")];
    turns_of(
        &world,
        &agents,
        &[(0, "sed -i s/2/two/ f g; chmod 600 g; echo b > b"), (0, "sed -i s/8/eight/ f; sed -i s/two/2/ g")],
    );
    run(&world, "sed -i s/5/five/ f; echo c >> b");
    let would = world.recant("agent undo 1 --only --dry-run").with(4);
    let said = world.recant("agent undo 1 --only -y").with(4);
    assert!(said.stdout().contains("merged    f\nmetadata  g\nstays     b: "), "{said}{would}");
    let merged = "1\n2\n3\n4\nfive\n6\n7\neight\n9\n";
    assert_eq!((world.read("f"), world.read("b")), (merged.into(), "b\nc\n".into()), "{said}");
    let said = world.recant("agent undo 1 --only -y").with(4);
    assert_eq!(world.read("f"), merged, "{said}");
    world.recant("rollback last").ok();
    assert_eq!(world.read("f"), merged.replacen('2', "two", 1));
    let said = world.recant("agent undo 2 --only -y").ok();
    assert_eq!(world.read("f"), "1\ntwo\n3\n4\nfive\n6\n7\n8\n9\n", "{said}");
}

#[test]
fn turns_of_a_project_inside_and_of_one_around_it_are_asked_whose_a_change_is() {
    let world = world();
    world.write("api/f", "f\n");
    run(&world, "git init -q api");
    pause();
    let (outer, inner) = (Agent::begin(&world, "claude", "s"), Agent::begin(&world, "claude", "t").within("api"));
    outer.prompt("build");
    outer.starts("Bash", &serde_json::json!({ "command": "make" }));
    world.write("a", "by the outer\n");
    inner.prompt("edit");
    inner.edit("api/f", "by the inner\n");
    pause();
    inner.stop();
    outer.ends("Bash", &serde_json::json!({ "command": "make" }));
    outer.stop();
    let said = world.recant("agent undo 1 -y --json").with(4);
    assert_eq!((world.read("a"), world.read("api/f")), ("a\n".into(), "by the inner\n".into()), "{said}");
    let why = said.json()["skipped"].to_string();
    assert!(why.contains("turn 1 of claude in ") && why.contains("/api may have changed it, too"), "{said}");
    let said = world.call(["agent", "undo", "1", "-y"]).cwd(world.path("api")).run().ok();
    assert_eq!(world.read("api/f"), "f\n", "{said}");
}

#[test]
fn a_project_that_was_moved_is_said_and_another_one_at_its_path_is_not_it() {
    let world = World::new();
    // A project below the tree, as the tree itself stays.
    let script = "mkdir p; cd p; git init -q .; echo a > a";
    run(&world, script);
    let inner = Agent::begin(&world, "claude", "u").within("p");
    inner.prompt("go");
    inner.edit("p/a", "x\n");
    inner.stop();
    run(&world, "mv p q");
    let said = world.call(["agent", "undo", "-y"]).cwd(world.path("q")).run().with(1);
    assert!(said.stderr().contains("tree/p, before it was moved") && said.stderr().contains("mv "), "{said}");
    run(&world, script);
    let said = world.call(["agent", "undo", "-y"]).cwd(world.path("p")).run().with(1);
    assert!(said.stderr().contains("no turn here"), "{said}");
    run(&world, "rm -r p; mv q p");
    world.call(["agent", "undo", "-y"]).cwd(world.path("p")).run().ok();
    assert_eq!(world.read("p/a"), "a\n");
}

#[test]
fn hooks_in_two_settings_tell_of_one_turn_and_a_turn_that_was_dropped_is_told_with_its_setting() {
    let world = world();
    // Its events have no name for a turn.
    let twice = |name: &str, fields: Value| {
        let mut event = serde_json::json!({ "session_id": "s", "cwd": world.tree(), "hook_event_name": name });
        event.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        let hook = format!("echo '{event}' | {} hook gemini >/dev/null", crate::common::recant());
        run(&world, &format!("{hook} & {hook} & {hook} & {hook}; wait"));
    };
    let tool = serde_json::json!({ "tool_name": "run_shell_command", "tool_input": { "command": "x" } });
    for n in 1..=3 {
        twice("BeforeAgent", serde_json::json!({ "prompt": format!("number {n}") }));
        twice("BeforeTool", tool.clone());
        world.write("a", format!("{n}\n"));
        twice("AfterTool", tool.clone());
        twice("AfterAgent", serde_json::json!({}));
        pause();
    }
    assert_eq!(world.recant("agent turns --json").ok().json()["turns"].as_array().map(Vec::len), Some(3));
    world.recant("agent undo 2 -y").ok();
    assert_eq!(world.read("a"), "1\n");
    world.config("[agent]\nkeep = 2\n");
    twice("BeforeAgent", serde_json::json!({ "prompt": "number 4" }));
    // On a busy machine that goes on behind the hook.
    let kept = || world.recant("agent turns --json").ok().json()["turns"].as_array().map(Vec::len);
    assert!(
        (0..200).any(|_| kept() == Some(2) || {
            pause();
            false
        }),
        "{:?}",
        kept()
    );
    let said = world.recant("agent undo 1 -y").with(1);
    assert!(said.stderr().contains("no turn 1 here") && said.stderr().contains("agent.keep"), "{said}");
}

#[test]
fn what_cannot_be_taken_back_stays_and_the_rest_goes_back() {
    if !rustix::process::geteuid().is_root() {
        return crate::common::skip("root's half: a directory that belongs to somebody else");
    }
    let world = world();
    run(&world, "chown -R 65534:65534 .; chmod 777 ..; rm -f ../out");
    let user = |words: &[&str], input: &str| world.call(words).user(65534, 65534).stdin(input).run();
    let event = |name: &str, fields: Value| {
        let mut event = serde_json::json!({ "session_id": "s", "prompt_id": "p", "cwd": world.tree(), "hook_event_name": name });
        event.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        user(&["hook", "claude"], &event.to_string()).ok();
    };
    let tool = serde_json::json!({ "tool_name": "Bash", "tool_use_id": "t", "tool_input": { "command": "docker run" } });
    event("UserPromptSubmit", serde_json::json!({ "prompt": "go" }));
    event("PreToolUse", tool.clone());
    run(&world, "echo x > a; mkdir out; echo root > out/file");
    event("PostToolUse", tool);
    event("Stop", serde_json::json!({}));
    let said = user(&["agent", "undo", "-y"], "").with(4);
    assert_eq!(world.read("a"), "a\n", "{said}");
    assert!(world.exists("out/file") && said.stdout().contains("stays     out: "), "{said}");
}

#[test]
fn a_command_that_is_named_does_no_harm_and_force_takes_back_what_something_older_has_replaced() {
    for (script, remedy) in [
        ("mv dist public", Some("mv public dist")),
        // What goes back lies in the new place; the old one is taken; it is another name, which was there before.
        ("rm -r config; mv dist config", None),
        ("mv dist public; echo x > dist", None),
        ("rm hard.log", None),
    ] {
        let world = world();
        run(&world, "ln large.log name.bin; mv name.bin hard.log");
        pause();
        let said = undone(&world, &format!("echo b > z; {script}")).with(4);
        let row = said.json()["not_covered"][0].clone();
        assert_eq!(row["remedy"].as_str(), remedy, "{script}: {said}");
        if let Some(remedy) = remedy {
            run(&world, remedy);
            assert_eq!(world.read("dist/app"), "built\n");
        }
    }
    let world = world();
    let said = undone(&world, "echo b > z; mv dist/app a").with(4);
    assert!(said.json()["skipped"].to_string().contains("--force removes it, and keeps a copy"), "{said}");
    assert_eq!(world.read("a"), "built\n");
    let said = world.recant("agent undo 1 --force -y --json");
    assert_eq!(world.read("a"), "a\n", "{said}");
    let id = said.json()["session"].as_str().expect("an id").to_owned();
    world.recant(&format!("rollback {id}")).ok();
    assert_eq!(world.read("a"), "built\n", "it is kept");
}

#[test]
fn what_was_made_between_turns_is_older_than_the_turn_that_moves_it() {
    let world = World::new();
    run(&world, "git init -q .");
    world.write("a", "a\n");
    let agent = Agent::begin(&world, "claude", "s");
    agent.prompt("one");
    agent.shell("echo 1 > a; echo 1 > made");
    agent.stop();
    pause();
    run(&world, "mkdir dist; echo built > dist/app");
    pause();
    agent.prompt("two");
    agent.shell("mv dist public; mv made moved");
    agent.stop();
    let said = world.recant("agent undo 1 -y --json").with(4);
    assert_eq!(named(&said, &world), ["moved dist to public"]);
    assert_eq!((world.read("public/app"), world.read("a")), ("built\n".into(), "a\n".into()), "{said}");
    assert!(!world.exists("moved") && !world.exists("made"), "{said}");
}

#[test]
fn what_cannot_be_read_is_told_at_install_and_in_status() {
    let desk = Desk::new(Who::User);
    desk.bare(&desk.world.tree(), "mkdir closed open; echo x > closed/x; chmod 0 closed; git init -q");
    let [installed, status] = ["agent install claude -y", "agent status claude"].map(|words| desk.recant(words));
    assert!(installed.stderr().contains("turns here do not cover closed: it cannot be read"), "{installed}");
    assert!(status.stdout().contains("  closed: it cannot be read") && !status.stdout().contains("  open"), "{status}");
    desk.bare(&desk.world.tree(), "chmod 700 closed");
}
