//! Who did something, by the environment of an agent.

mod common;

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Said, World};
use insta::assert_snapshot;
use serde_json::{Value, json};

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
    let begun = Instant::now();
    while !world.exists("h") {
        assert!(begun.elapsed() < Duration::from_secs(30), "the command does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("a kill");
    child.wait().expect("its end");
    world.unset("CLAUDECODE").unset("RECANT_TURN");
    world.recant("recover").ok();
    let sessions = world.recant("list --json").ok().json();
    assert_eq!(sessions["sessions"].as_array().map(Vec::len), Some(2), "{sessions}");
    assert_eq!(newest(&world), json!({"agent": "claude", "turn": 7}));
}
