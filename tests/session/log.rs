//! `log`: who did something, by the environment of an agent; what was done, in lines that are chained; what changed a path, and the
//! command that takes that back.

use std::path::Path;
use std::process::Stdio;

use crate::common::sweep::steps_of;
use crate::common::{self, Said, World, until};
use crate::on_stderr;
use insta::assert_snapshot;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A world in which Claude Code calls, in its session `s1`.
fn with_agent() -> World {
    let mut world = World::new();
    world.set("CLAUDECODE", "1").set("CLAUDE_CODE_SESSION_ID", "s1");
    world
}

/// Notes, as the agent's hooks do, that its session is in this turn.
fn in_turn(world: &World, turn: u64) {
    // The first 16 digits of the SHA-256 of `s1`.
    let name = "agents/sessions/claude-e8bc163c82eee187.json";
    let pointer = json!({"agent": "claude", "session": "s1", "folder": world.tree(), "turn": turn, "later": true});
    world.write(world.store().join(name), pointer.to_string());
}

/// The output with each `Nov 26 04:56` as `<when>`, and ids masked.
fn dateless(said: &Said) -> String {
    let text = said.to_string();
    let is_when = |at: usize| {
        let form = |(b, want): (&u8, &u8)| match want {
            b'A' => b.is_ascii_alphabetic(),
            b'9' => b.is_ascii_digit(),
            _ => b == want,
        };
        text.as_bytes().get(at..at + 12).is_some_and(|part| part.iter().zip(b"AAA 99 99:99").all(form))
    };
    let mut masked = String::new();
    let mut skipped = 0;
    for (at, c) in text.char_indices() {
        if is_when(at) {
            masked.push_str("<when>      ");
            skipped = 12;
        }
        if skipped == 0 { masked.push(c) } else { skipped -= 1 }
    }
    masked
}

/// Who made the newest session, by `list`.
fn newest(world: &World) -> Value {
    world.recant("list --json --all").ok().json()["sessions"][0]["by"].clone()
}

#[test]
fn what_an_agent_begins_says_whose_it_is_and_what_a_person_begins_does_not() {
    let mut world = with_agent();
    world.recant("session new").ok();
    assert_eq!(newest(&world), json!({"agent": "claude", "session": "s1"}));
    in_turn(&world, 7);
    world.recant("session new").ok();
    assert_eq!(newest(&world), json!({"agent": "claude", "session": "s1", "turn": 7}));
    // What is set for recant goes before what the agent sets.
    let said = world.call(["session", "new"]).env("RECANT_AGENT", "other").env("RECANT_TURN", "9").run().ok();
    assert_eq!(newest(&world), json!({"agent": "other", "turn": 9}), "{said}");
    world.call(["session", "new"]).env("RECANT_AGENT_SESSION", "s2").run().ok();
    assert_eq!(newest(&world), json!({"agent": "claude", "session": "s2"}));
    for (variable, value, agent) in [
        ("CODEX_THREAD_ID", "t", "codex"),
        ("CODEX_SANDBOX", "seatbelt", "codex"),
        ("GEMINI_CLI", "1", "gemini"),
        ("COPILOT_CLI", "1", "copilot"),
        ("OPENCODE", "1", "opencode"),
        ("PI_CODING_AGENT", "true", "pi"),
        ("AI_AGENT", "some\tthing", "some thing"),
    ] {
        world.call(["session", "new"]).without("CLAUDECODE").env(variable, value).run().ok();
        assert_eq!(newest(&world)["agent"], agent);
    }
    // A pointer that is garbled, or another session's, tells nothing.
    world.write(world.store().join("agents/sessions/claude-e8bc163c82eee187.json"), "{\"agent\":\"claude\"");
    world.recant("session new").ok();
    assert_eq!(newest(&world), json!({"agent": "claude", "session": "s1"}));
    world.unset("CLAUDECODE");
    world.recant("session new").ok();
    assert_eq!(newest(&world), Value::Null);
}

#[test]
fn the_agent_and_its_turn_are_shown_where_there_is_one() {
    if !common::can_run() {
        return;
    }
    let mut world = with_agent();
    world.write("f", "old");
    world.recant("session new").ok();
    in_turn(&world, 7);
    world.recant("run --session job -- cp f g").ok();
    in_turn(&world, 8);
    world.recant("run --session job -- cp f h").ok();
    world.unset("CLAUDECODE");
    world.recant("run --session job -- cp f i").ok();
    let by = |n: usize| world.recant("steps --json").ok().json()["steps"][3 - n]["by"]["turn"].clone();
    assert_eq!((by(1), by(2), by(3)), (json!(7), json!(8), Value::Null));
    assert_snapshot!(dateless(&world.recant("steps").ok()), @"
    status 0
    --- stdout
    * 3 (head)  <when>        +1            cp f i
    * 2         <when>        +1  claude 8  cp f h
    * 1         <when>        +1  claude 7  cp f g
    * 0                                     the tree as it was
    --- stderr
    recant: last is <id2>
    ");
    // A session is whose command is at its head.
    assert_eq!(newest(&world), Value::Null);
    world.recant("rewind job 2").ok();
    assert_snapshot!(dateless(&world.recant("list").ok()), @"
    status 0
    --- stdout
    ID    STATUS   CHANGES  SIZE  CHANGED       NAME  AGENT     COMMAND
    <id2~>  pending        2   9 B  <when>        job   claude 8  cp f h
    <id1~>  pending        0   0 B  <when>              claude
    ");
    let shown = world.recant("show").ok().stdout();
    assert!(shown.contains("agent       claude, turn 8, session s1\n"), "{shown}");
    assert_eq!(world.recant("show --json").ok().json()["run"]["by"]["turn"], 8);
    world.recant("fork job 1").ok();
    assert_eq!(newest(&world)["turn"], 7);
    // Elsewhere it is still that agent's.
    let stream = world.recant("session export job").ok().out;
    let there = World::new();
    there.call(["session", "import"]).env("RECANT_AGENT", "other").stdin(stream).run().ok();
    assert_eq!(newest(&there), json!({"agent": "claude", "session": "s1", "turn": 8}));
}

#[test]
fn a_snapshot_says_which_agent_took_it() {
    let mut world = with_agent();
    world.write("f", "1");
    world.recant("snapshot create").ok();
    in_turn(&world, 7);
    world.write("f", "2").recant("snapshot create").ok();
    world.recant("snapshot create --meta agent=mine").ok();
    world.unset("CLAUDECODE");
    world.recant("snapshot create").ok();
    let listed = world.recant("snapshot list --json").ok().json();
    let meta = |n: usize| listed["snapshots"][3 - n]["meta"].clone();
    assert_eq!(
        [meta(0), meta(1), meta(2), meta(3)],
        [json!({"agent": "claude"}), json!({"agent": "claude", "turn": "7"}), json!({"agent": "mine"}), json!({})]
    );
    assert_snapshot!(dateless(&world.recant("snapshot list").ok()), @"
    status 0
    --- stdout
    N  TIME          LABEL  AGENT     +  ~  -  SIZE  STORED  MESSAGE
    3  <when>                         0  0  0   1 B     0 B
    2  <when>               mine      0  0  0   1 B     0 B
    1  <when>               claude 7  0  1  0   1 B     1 B
    0  <when>               claude    1  0  0   1 B     1 B
    ");
    let shown = world.recant("snapshot show 1").ok().stdout();
    assert!(shown.contains("meta       agent=claude\nmeta       turn=7\n"), "{shown}");
}

#[test]
fn a_run_on_the_real_tree_says_whose_it_was_also_where_another_recant_makes_its_session() {
    let mut world = World::on(Path::new("/var/tmp"));
    world.set("CLAUDECODE", "1").set("RECANT_TURN", "7").write("f", "1");
    if world.recant("run --in . -- cp f g").status == 125 {
        return common::skip("run --in does not work here");
    }
    assert_eq!(newest(&world), json!({"agent": "claude", "turn": 7}));
    let script = "echo x > h; exec sleep 600";
    let mut command = world.call(["run", "--in", ".", "--", "sh", "-c", script]).command();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    until("the command", || world.exists("h"));
    child.kill().expect("a kill");
    child.wait().expect("its end");
    world.unset("CLAUDECODE").unset("RECANT_TURN");
    world.recant("recover").ok();
    let sessions = world.recant("list --json").ok().json();
    assert_eq!(sessions["sessions"].as_array().map(Vec::len), Some(2), "{sessions}");
    assert_eq!(newest(&world), json!({"agent": "claude", "turn": 7}));
}

/// The command that takes back what changed the path last, without `recant`, and how far back that was.
fn backs(world: &World, words: &str) -> Vec<(String, Value)> {
    let found = world.recant(&format!("log {words} --json")).ok().json();
    let row = |row: &Value| {
        let back = row["back"].as_str().map(|back| back.trim_start_matches("recant ").to_owned());
        (row["what"].as_str().expect("a kind").to_owned(), back.map_or(Value::Null, Value::from))
    };
    found["touched"].as_array().expect("a list").iter().map(row).collect()
}

fn tail(id: &str) -> &str {
    &id[16..]
}

#[test]
fn what_changed_a_path_is_listed_with_the_command_that_takes_it_back() {
    let world = World::new();
    world.write("Makefile", "").write("src/a.rs", "0").write("src/ab.rs", "0").write("other", "0");
    assert_snapshot!(on_stderr(&world.recant("log src/a.rs"), 0), @"
    recant: nothing that recant knows of changed /world/tree/src/a.rs
    ");
    world.recant("snapshot create -m start").ok();
    // Held and alone; with others; committed; of another path.
    let held = world.begin();
    world.stage_write(&held, "src/a.rs", "1");
    let both = world.begin();
    world.stage_write(&both, "src/a.rs", "2").stage_write(&both, "other", "2");
    let committed = world.begin();
    world.stage_write(&committed, "src/a.rs", "3").stage_write(&committed, "src/new/b.rs", "3");
    world.call(["commit", &committed]).run().ok();
    let elsewhere = world.begin();
    world.stage_write(&elsewhere, "src/ab.rs", "4");
    world.recant("snapshot create").ok();
    let [held, both, committed] = [&held, &both, &committed].map(|id| tail(id));
    assert_eq!(
        backs(&world, "src/a.rs"),
        [
            ("snapshot".into(), "snapshot restore 0 src/a.rs".into()),
            ("session".into(), format!("rollback {committed} src/a.rs").into()),
            ("session".into(), format!("discard {both} src/a.rs").into()),
            ("session".into(), format!("discard {held}").into()),
        ]
    );
    let said = dateless(&world.recant("log src/a.rs").ok());
    assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
    assert_snapshot!(said, @"
    status 0
    --- stdout
    <when>        modified  snapshot 1  recant snapshot restore 0 src/a.rs
    <when>        modified  staged      recant rollback <id3~> src/a.rs
    <when>        modified  staged      recant discard <id2~> src/a.rs
    <when>        modified  staged      recant discard <id1~>
    ");
    // Below a directory, and of several paths.
    assert_eq!(
        backs(&world, "src/new"),
        [
            ("snapshot".into(), "snapshot restore 0 src/new".into()),
            ("session".into(), Value::from(format!("rollback {committed} src/new"))),
        ]
    );
    assert_eq!(backs(&world, "src/new src/a.rs")[1].1, format!("rollback {committed}"));
    assert_eq!(backs(&world, "src other")[3].1, format!("discard {both}"));
    assert_eq!(backs(&world, ".").len(), 5);
    assert_eq!(world.recant("log . --json").ok().json()["touched"][0]["back"], "recant snapshot restore 0");
    // What is said works.
    world.write("src/a.rs", "5");
    let all = backs(&world, "src/a.rs");
    world.recant(all[0].1.as_str().expect("a command")).ok();
    assert_eq!(world.read("src/a.rs"), "0");
    world.write("src/a.rs", "3");
    world.recant(all[1].1.as_str().expect("a command")).ok();
    assert_eq!(world.read("src/a.rs"), "0");
    for back in [&all[2], &all[3]] {
        world.recant(back.1.as_str().expect("a command")).ok();
    }
    let found = world.recant("log src/a.rs --json").ok().json();
    let standings: Vec<&str> = found["touched"].as_array().unwrap().iter().map(|row| row["standing"].as_str().unwrap()).collect();
    assert_eq!(standings, ["committed", "seen", "rolled back", "discarded"], "{found}");
}

#[test]
fn a_word_that_is_no_session_is_a_path_where_something_is_there_or_was_changed() {
    let world = World::new();
    let id = world.edited("f");
    world.call(["commit", &id]).run().ok();
    assert_eq!(backs(&world, "f"), [("session".into(), Value::from(format!("rollback {}", tail(&id))))]);
    world.call(["rollback", &id]).run().ok();
    world.remove("f");
    assert_eq!(backs(&world, "f"), [("session".into(), Value::Null)]);
    let said = world.recant("log none").with(1);
    assert!(said.stderr().contains("none"), "{said}");
    assert_snapshot!(on_stderr(&world.recant("log ./none"), 0), @"
    recant: nothing that recant knows of changed /world/tree/none
    ");
    // A file that is called as a session is.
    world.write(tail(&id), "");
    assert!(world.call(["log", tail(&id), "--json"]).run().ok().json()["entries"].is_array());
    assert!(world.call(["log", &format!("./{}", tail(&id)), "--json"]).run().ok().json()["touched"].is_array());
}

#[test]
fn the_steps_of_a_session_that_changed_a_path_are_listed_each_with_the_way_back() {
    let Some(world) = common::can_run().then(World::new) else { return };
    let run = |script: &str| world.call(["run", "--session", "job", "--", "sh", "-c", script]).run().ok();
    for script in ["echo 1 > a", "echo 2 > b", "echo 3 > a", "rm b"] {
        run(script);
    }
    let id = world.recant("list --json").ok().json()["sessions"][0]["id"].as_str().unwrap().to_owned();
    let key = tail(&id);
    let rewinds = |steps: &[u32]| -> Vec<(String, Value)> {
        steps.iter().map(|n| ("step".to_owned(), Value::from(format!("rewind {key} {n}")))).collect()
    };
    assert_eq!(backs(&world, "a"), rewinds(&[2, 0]));
    // The net changes have nothing of it any more.
    assert_eq!(backs(&world, "b"), rewinds(&[3, 1]));
    let rows = world.recant("log b --json").ok().json()["touched"].clone();
    assert_eq!((&rows[0]["command"], &rows[0]["change"], &rows[0]["step"]), (&json!("sh -c rm b"), &json!("deleted"), &json!(4)));
    world.recant("rewind job 1").ok();
    run("echo 5 > c");
    assert_eq!(backs(&world, "a"), [("step".into(), Value::Null), ("step".into(), format!("rewind {key} 0").into())]);
    world.recant("commit job").ok();
    assert_eq!(backs(&world, "a"), [("step".into(), Value::Null), ("step".into(), Value::from(format!("rollback {key} a")))]);
    world.recant(&format!("rollback {key} a")).ok();
    assert!(!world.exists("a"));
}

/// Notes a turn, as the agent's hooks do.
fn turn(world: &World, directory: &str, n: u64, time: &str, paths: &[&str]) {
    let directory = if directory == "." { world.tree() } else { world.path(directory) };
    let key: String = Sha256::digest(directory.to_str().expect("a path")).iter().map(|byte| format!("{byte:02x}")).collect();
    let head = json!({"turn": {"n": n, "agent": "claude", "session": "s1", "folder": directory, "prompt": "make it so", "model": null, "time": time}});
    let seen: Vec<Value> = paths.iter().map(|path| json!({"path": path, "id": 1, "time": time})).collect();
    let of_tool = [
        json!({"later": {"path": "/src/a.rs"}}),
        json!({"tool": {"time": time, "name": "Bash"}}),
        json!({"seen": seen}),
        json!({"done": {"time": time, "name": "Bash"}}),
    ];
    let wrote = paths.iter().map(|path| json!({"wrote": {"path": path, "how": "tool"}}));
    let lines = [head].into_iter().chain(of_tool).chain(wrote).map(|line| line.to_string());
    let lines: Vec<String> = lines.chain(["{\"wrote\":{\"pa".to_owned()]).collect();
    world.write(world.store().join(format!("agents/turns/{}/{n}.jsonl", &key[..32])), lines.join("\n"));
}

#[test]
fn the_turns_that_wrote_a_path_are_listed_each_with_the_way_back() {
    let world = World::new();
    world.write("Makefile", "").write("sub/Makefile", "").write("src/a.rs", "0");
    let id = world.begin();
    world.stage_write(&id, "src/a.rs", "1");
    turn(&world, ".", 7, "2026-03-01T10:15:00.000000000Z", &["/src/a.rs", "/src/b.rs"]);
    turn(&world, ".", 8, "2026-03-01T10:16:00.000000000Z", &["/other", "/src/a.rs.new"]);
    turn(&world, "sub", 3, "2026-03-01T10:17:00.000000000Z", &["/x"]);
    let rows = world.recant("log src/a.rs --json").ok().json()["touched"].clone();
    assert_eq!(rows.as_array().map(Vec::len), Some(2), "{rows}");
    assert_eq!(&rows[1]["turn"], &json!(7));
    assert_eq!((&rows[1]["back"], &rows[1]["paths"]), (&json!("recant agent undo 7 src/a.rs"), &json!(1)));
    assert_eq!(&rows[1]["by"], &json!({"agent": "claude", "session": "s1", "turn": 7}));
    assert_eq!(&rows[1]["command"], &json!("make it so"));
    let rows = world.recant("log . --json").ok().json()["touched"].clone();
    let turns: Vec<&Value> = rows.as_array().unwrap().iter().map(|row| &row["turn"]).collect();
    assert_eq!(turns, [&Value::Null, &json!(3), &json!(8), &json!(7)]);
    let sub = world.path("sub");
    assert_eq!(rows[1]["back"], format!("cd {} && recant agent undo 3 {}", sub.display(), world.tree().display()));
    assert_eq!(world.recant("log . --json --agent claude").ok().json()["touched"].as_array().map(Vec::len), Some(3));
    assert_eq!(world.recant("log . --json --since 2026-03-02").ok().json()["touched"].as_array().map(Vec::len), Some(1));
}

#[test]
fn entries_say_whose_they_are_and_are_chosen_by_that() {
    let mut world = World::new();
    world.write("web/Makefile", "").write("api/Makefile", "").write("web/f", "old").write("api/f", "old");
    let staged = |world: &World, dir: &str, name: &str| {
        let id = world.call(["session", "new", "-n", name]).cwd(world.path(dir)).run().ok().id();
        world.call(["session", "write", &id, "f"]).cwd(world.path(dir)).stdin("new").run().ok();
        id
    };
    world.set("CLAUDECODE", "1").set("RECANT_TURN", "7");
    let web = staged(&world, "web", "mine");
    world.unset("CLAUDECODE").unset("RECANT_TURN");
    let api = staged(&world, "api", "hers");
    world.call(["commit", &web]).run().ok();
    world.call(["commit", &api]).run().ok();
    world.set("GEMINI_CLI", "1");
    world.call(["discard", &staged(&world, "web", "third")]).run().ok();
    world.unset("GEMINI_CLI");
    let rows = world.recant("log --all --json").ok().json()["entries"].clone();
    let user = rustix::process::geteuid().as_raw();
    assert_eq!((&rows[2]["name"], &rows[2]["uid"], &rows[2]["cwd"]), (&json!("mine"), &json!(user), &json!(world.path("web"))));
    assert_eq!((&rows[2]["made_by"], &rows[2]["by"]), (&json!({"agent": "claude", "turn": 7}), &Value::Null));
    assert_eq!((&rows[0]["made_by"]["agent"], &rows[0]["by"]["agent"]), (&json!("gemini"), &json!("gemini")));
    let names = |words: &str, dir: &str| -> Vec<String> {
        let said = world.call(words.split(' ').chain(["--json"])).cwd(world.path(dir)).run().ok().json();
        said["entries"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("log --all --agent claude", "."), ["mine"]);
    assert_eq!(names("log --all --agent gemini", "."), ["third"]);
    assert_eq!(names("log", "api"), ["hers"]);
    assert_eq!(names("log", "web"), ["third", "mine"]);
    assert_eq!(names("log -n 1", "web"), ["third"]);
    assert_eq!(names("log --all --since 1h", ".").len(), 3);
    assert!(names("log --since 2099-01-01", ".").is_empty());
    assert_snapshot!(world.recant("log --all"), @"
    status 0
    --- stdout
    <time>  discard  <id3~>  0 paths  done  gemini    third
    <time>  commit   <id2~>   1 path  done            hers
    <time>  commit   <id1~>   1 path  done  claude 7  mine
    ");
    assert_snapshot!(on_stderr(&world.recant("log --agent pi"), 0), @"
    recant: nothing was done that matches
    ");
}

#[test]
fn the_twenty_newest_lines_are_listed_and_the_others_counted() {
    let world = World::new();
    let id = world.edited("f");
    for _ in 0..11 {
        world.call(["commit", &id]).run().ok();
        world.call(["rollback", &id]).run().ok();
    }
    let said = world.recant("log --since 1h").ok().stdout();
    assert_eq!(said.lines().count(), 21, "{said}");
    assert!(said.ends_with("… and 2 more: recant log --since 1h -v\n"), "{said}");
    assert_eq!(world.recant("log --since 1h -v").ok().stdout().lines().count(), 22);
    for _ in 0..22 {
        world.stage(&world.begin(), ["write f new"]);
    }
    let said = world.recant("log f").ok().stdout();
    assert_eq!(said.lines().count(), 21, "{said}");
    assert!(said.ends_with("… and 3 more: recant log f -v\n"), "{said}");
}

/// The log's lines, without their newlines.
fn lines(world: &World) -> Vec<String> {
    std::fs::read_to_string(world.store().join("log.jsonl")).expect("the log").lines().map(str::to_owned).collect()
}

fn put(world: &World, lines: &[String]) {
    world.write(world.store().join("log.jsonl"), lines.iter().map(|line| format!("{line}\n")).collect::<String>());
}

/// A world with a log of five lines.
fn logged() -> World {
    let world = World::new();
    let id = world.edited("f");
    for verb in ["commit", "rollback", "commit", "rollback", "discard"] {
        world.call([verb, &id]).run().ok();
    }
    world
}

#[test]
fn a_log_in_which_a_line_is_another_or_missing_does_not_fit() {
    let world = logged();
    assert_snapshot!(world.recant("log --verify"), @"
    status 0
    --- stdout
    5 lines, none changed after the next one was written
    --- stderr
    recant: this cannot detect lines removed from the end, or a replaced last line
    ");
    let whole = lines(&world);
    let misfit = |lines: &[String], what: &str| {
        put(&world, lines);
        world.recant("log --verify").with(5).stderr().lines().next().expect(what).to_owned()
    };
    let changed = |n: usize, from: &str, to: &str| {
        let mut lines = whole.clone();
        assert!(lines[n].contains(from));
        lines[n] = lines[n].replacen(from, to, 1);
        lines
    };
    let without = |n: usize| [&whole[..n], &whole[n + 1..]].concat();
    let file = world.store().join("log.jsonl");
    let wrong = |n: &str| format!("recant: {}: line {n}: does not follow the line before it", file.display());
    // Garbled, so that it cannot be read; replaced by a line that is whole; gone; two in another order.
    assert_eq!(misfit(&changed(1, "rollback", "commit"), "changed"), wrong("3"));
    let mut replaced = whole.clone();
    replaced[1] = whole[3].clone();
    assert_eq!(misfit(&replaced, "replaced").replace("lines 2 and 3", "line 2"), wrong("2"));
    assert_eq!(misfit(&without(0), "without the first"), wrong("1"));
    assert_eq!(misfit(&without(2), "without the third"), wrong("3"));
    // That cannot be seen, and it is said.
    put(&world, &whole[..4]);
    assert!(world.recant("log --verify").ok().stderr().contains("this cannot detect lines removed from the end"));
    put(&world, &whole);
    world.recant("log --verify").ok();
}

#[test]
fn torn_lines_are_in_the_chain() {
    let world = logged();
    let file = world.store().join("log.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    world.write(&file, format!("{text}{}", &lines(&world)[4][..50]));
    let id = world.edited("g");
    ["commit", "rollback"].into_iter().for_each(|verb| drop(world.call([verb, &id]).run().ok()));
    assert_snapshot!(world.recant("log --verify"), @"
    status 4
    --- stdout
    8 lines, none changed after the next one was written
    --- stderr
    recant: this cannot detect lines removed from the end, or a replaced last line
    recant: /world/store/log.jsonl: 1 line cannot be read: 6
    ");
    assert_snapshot!(on_stderr(&world.recant("log -n 0"), 4), @"
    recant: /world/store/log.jsonl: 1 line cannot be read: 6
    ");
    assert_eq!(world.recant("log --verify --json").with(4).json()["unreadable"], json!([6]));
    // All of that is covered by the next line.
    let whole = lines(&world);
    for (n, misfit) in [(4, 7), (5, 7), (6, 8)] {
        let mut lines = whole.clone();
        lines[n] = lines[n].replacen("20", "19", 1);
        assert_ne!(lines, whole);
        put(&world, &lines);
        let said = world.recant("log --verify").with(5);
        assert!(said.stderr().contains(&format!("line {misfit}: ")), "{n}: {said}");
    }
}

#[test]
fn a_line_that_another_recant_adds_meanwhile_comes_behind_and_follows() {
    let world = World::new();
    let [first, second, third] = ["a", "b", "c"].map(|name| world.edited(name));
    let steps = steps_of(|| world.call(["discard", &first]));
    let of_log = |step: &String| step.contains("openat APPEND") && step.contains("log.jsonl");
    let n = steps.iter().position(of_log).unwrap_or_else(|| panic!("{steps:?}")) + 2;
    // Between what it read of the log and what it adds.
    let (script, recant, root) = (world.root().join("other.sh"), common::recant(), world.root().display());
    world.write(
        &script,
        format!("unset RECANT_STEPS\n({recant} discard {third} > {root}/said 2>&1; echo > {root}/over) &\nsleep 1\n"),
    );
    world.call(["discard", &second]).env("RECANT_STEPS", format!("run:{n}:sh {}", script.display())).run().ok();
    until("the other's end", || world.root().join("over").exists());
    world.recant("log --verify").ok();
    let sessions: Vec<Value> =
        lines(&world).iter().map(|line| serde_json::from_str::<Value>(line).expect("a line")["session"].clone()).collect();
    assert_eq!(sessions, [json!(first), json!(second), json!(third)]);
}

/// So many sessions more in the store, each with a change of a path of its own: copies of one that was made.
fn fill(world: &World, count: usize) {
    let id = world.begin();
    world.stage_write(&id, "src/unique-name.rs", "x");
    let header = std::fs::read_to_string(world.session(&id).join("session.json")).expect("a header");
    let changes = std::fs::read_to_string(world.session(&id).join("changes.jsonl")).expect("its changes");
    for n in 0..count {
        let word = |n: usize| char::from(b"abcdefghijklmnopqrstuvwxyz"[n % 26]);
        let tail: String = [n / 17576, n / 676, n / 26, n].map(word).iter().collect();
        let other = format!("20250101-000000-{tail}");
        let dir = world.session(&other);
        world.write(dir.join("session.json"), header.replace(&id, &other));
        world.write(dir.join("changes.jsonl"), changes.replace("unique-name", &format!("name-{n}")));
    }
}

#[test]
fn of_a_thousand_sessions_a_file_each_is_opened_and_more_only_of_those_that_name_the_path() {
    let world = World::new();
    let there = std::process::Command::new("strace").arg("-V").output().is_ok_and(|output| output.status.success());
    if !there {
        return common::skip("strace counts the files that are opened");
    }
    world.write("src/name-7.rs", "");
    fill(&world, 1000);
    let opened = |words: &[&str]| {
        let log = world.root().join("strace");
        let args = ["-f", "-e", "trace=openat,openat2", "-o", log.to_str().unwrap(), common::recant()];
        let said = world.program("strace", args.iter().chain(words)).run().ok();
        let calls = std::fs::read_to_string(&log).unwrap();
        let of = |name: &str| calls.lines().filter(|line| line.contains(name) && !line.contains("ENOENT")).count();
        (said, of("changes.jsonl"), of("session.json"))
    };
    let (said, changes, headers) = opened(&["log", "src/name-7.rs"]);
    assert_eq!(said.stdout().lines().count(), 1, "{said}");
    assert!(changes <= 1001 + 3 && headers <= 3, "{changes} files of changes, {headers} headers");
    let (_, changes, headers) = opened(&["log", "src/none.rs"]);
    assert!(changes <= 1001 && headers == 0, "{changes} files of changes, {headers} headers");
}

#[test]
fn a_long_way_back_is_whole_on_a_line_of_its_own() {
    let world = World::new();
    let long = "src/components/navigation/sidebar/entries.rs";
    world.write(long, "0");
    world.call(["snapshot", "create", "-m", "before the navigation is rewritten"]).run().ok();
    world.write(long, "1");
    world.call(["snapshot", "create", "-m", "after the navigation was rewritten"]).run().ok();
    let said = dateless(&world.call(["log", long]).run().ok());
    assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
    assert_snapshot!(said, @"
    status 0
    --- stdout
    <when>        modified  snapshot 1: after the navigation was rewritten
        recant snapshot restore 0 src/components/navigation/sidebar/entries.rs
    ");
}

#[test]
fn a_restore_has_one_line_in_the_log() {
    let world = World::new();
    world.write("f", "0");
    world.recant("snapshot create").ok();
    world.write("f", "1");
    world.recant("snapshot restore 0 --force").ok();
    let said = world.recant("log").ok().stdout();
    assert!(said.lines().count() == 1 && said.contains("snapshot restore 0"), "{said}");
    assert_eq!(world.recant("log --json").ok().json()["entries"].as_array().map(Vec::len), Some(2));
    let id = world.edited("f");
    world.call(["commit", &id]).run().ok();
    assert!(world.recant("log -n 1").ok().stdout().contains("commit"));
}
