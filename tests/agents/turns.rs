//! Turns of agents on the real tree: noted by their hooks, listed, and taken back exactly, but for what somebody else has written.

use crate::agent::{Agent, pause, repository, run};
use crate::common::{self, Manifest, World};
use insta::assert_snapshot;
use serde_json::{Value, json};

/// A world with a project.
fn world() -> World {
    let world = World::new();
    world.write("README", "about\n").write("src/main.rs", "fn main() {}\n").write("src/lib.rs", "pub fn one() {}\n");
    world.write("run.sh", "#!/bin/sh\n").chmod("run.sh", 0o755).symlink("README", "link").mkdir("empty");
    world.write("h1", "two names\n").link("h1", "h2");
    repository(&world);
    world
}

/// The tree without these paths, and without the times of directories in which a person works.
fn but(world: &World, paths: &[&str]) -> Manifest {
    let mut manifest = world.manifest();
    manifest.0.retain(|path, _| !path.starts_with(b".git") && !paths.iter().any(|name| path == name.as_bytes()));
    if paths.is_empty() { manifest } else { manifest.without_directory_times() }
}

fn turns(world: &World) -> Vec<Value> {
    let mut turns = world.recant("agent turns --json").ok().json()["turns"].as_array().expect("a list").clone();
    turns.reverse();
    turns
}

/// The paths that an undo left, in order.
fn skipped(said: &common::Said, world: &World) -> Vec<String> {
    let tree = format!("{}/", world.tree().display());
    let rows = said.json()["skipped"].as_array().expect("a list").clone();
    rows.iter().map(|row| row["path"].as_str().expect("a path").trim_start_matches(&*tree).to_owned()).collect()
}

/// Takes turns back, but for these paths.
#[track_caller]
fn leaves(world: &World, words: &str, paths: &[&str]) -> common::Said {
    let said = world.recant(&format!("agent undo {words} -y --json")).with(4);
    assert_eq!(skipped(&said, world), paths, "{said}");
    said
}

/// What was said, without ids and times.
fn masked(said: &common::Said) -> String {
    let mask = |text: String, before: &str, length: usize, mask: &str| match text.find(before) {
        Some(at) => {
            let from = at + before.len();
            format!("{}{mask}{}", &text[..from], &text[from + length..])
        }
        None => text,
    };
    let text = mask(said.to_string(), "recant rollback ", 4, "ID");
    let text = mask(text, "\n2  ", 12, "DAY  TIME   ");
    mask(text, "\n1  ", 12, "DAY  TIME   ")
}

/// A turn that edits one file.
fn edits(agent: &Agent<'_>, prompt: &str, name: &str, content: &str) {
    agent.prompt(prompt);
    agent.edit(name, content);
    agent.stop();
}

/// What an agent does in turn `n` of twenty: always something else.
fn turn(agent: &Agent<'_>, n: u32) {
    agent.prompt(&format!("do number {n}\nand more"));
    agent.event("PreToolUse", json!({ "tool_name": "Read", "tool_use_id": "r", "tool_input": { "file_path": "x" } }));
    match n % 5 {
        0 => {
            agent.edit("src/main.rs", &format!("fn main() {{ {n} }}\n"));
            agent.shell(&format!("mkdir -p gen/{n}/deep; echo {n} > gen/{n}/deep/file; ln -s file gen/{n}/deep/link"));
        }
        1 => agent.shell(&format!("echo {n} >> src/lib.rs; echo {n} > src/new{n}.rs; chmod 600 README")),
        2 => {
            agent.edit(&format!("docs/{n}.md"), "text\n");
            agent.shell("rm -rf empty; mv run.sh start.sh || mv start.sh run.sh");
        }
        3 => agent.shell("echo x >> h1; mkdir empty 2>/dev/null || rmdir empty; chmod 644 README"),
        _ => agent.shell(&format!("sed -i 's/one/two{n}/' src/lib.rs; rm -f src/new{}.rs", n - 3)),
    }
    agent.stop();
}

#[test]
fn of_twenty_turns_the_seventh_and_the_later_ones_go_back_exactly_and_come_again() {
    let world = world();
    let agent = Agent::begin(&world, "claude", "s");
    let mut before = Manifest::default();
    for n in 1..=20 {
        if n == 7 {
            before = but(&world, &[]);
        }
        turn(&agent, n);
    }
    let after = but(&world, &[]);
    let listed = turns(&world);
    assert_eq!(listed.len(), 20);
    assert!(listed.iter().all(|turn| turn["covered"] == true && turn["ended"] == true && turn["paths"].as_u64() > Some(0)));
    assert_eq!(listed[6]["prompt"], "do number 7");
    let said = world.recant("agent undo 7 -y --json").ok();
    but(&world, &[]).assert_same(&before, "undone");
    assert_eq!(said.json()["turns"].as_array().map(Vec::len), Some(14));
    assert!(turns(&world)[6]["undone"].is_string() && turns(&world)[5]["undone"].is_null());
    let id = said.json()["session"].as_str().expect("an id").to_owned();
    world.recant(&format!("rollback {id}")).ok();
    but(&world, &[]).assert_same(&after, "done again");
    assert!(turns(&world)[6]["undone"].is_null());
    world.recant("agent undo 7 -y").ok();
    but(&world, &[]).assert_same(&before, "undone again");
}

#[test]
fn what_a_person_writes_between_during_and_after_turns_stays_and_is_named() {
    let world = world();
    let agent = Agent::begin(&world, "claude", "s");
    turn(&agent, 1);
    run(&world, "echo mine > between");
    pause();
    agent.prompt("two");
    let theirs = ["between", "during", "src/lib.rs", "after", "docs/a.md"];
    let before = but(&world, &theirs);
    agent.edit("src/main.rs", "agent\n");
    pause();
    run(&world, "echo mine > during; echo mine >> src/lib.rs");
    pause();
    agent.shell("echo agent > made; mkdir docs; echo agent > docs/a.md; echo agent > docs/b.md");
    agent.stop();
    pause();
    run(&world, "echo mine > after; echo mine >> docs/a.md");
    let said = world.recant("agent undo 2 -y --json").with(4);
    let mut now = but(&world, &theirs);
    assert!(now.0.remove(&b"docs"[..]).is_some(), "it holds what a person has changed");
    now.assert_same(&before, "undone");
    assert_eq!(skipped(&said, &world), ["docs", "docs/a.md", "during", "src/lib.rs"], "what he has done since is of no interest");
    assert_eq!(world.read("docs/a.md"), "agent\nmine\n");
    assert_eq!(world.read("between"), "mine\n");
    let why = said.json()["skipped"].to_string();
    for part in ["another process changed it during the turn", "was changed since turn 2"] {
        assert!(why.contains(part), "{part}: {why}");
    }
    // What others wrote to the turn's own paths goes too, if it is asked for; it is in the session. What the turn never touched stays.
    let said = world.recant("agent undo 2 -y --force --json").ok();
    assert!(!world.exists("docs") && !world.exists("during") && world.exists("after"));
    let id = said.json()["session"].as_str().expect("an id").to_owned();
    world.recant(&format!("rollback {id}")).ok();
    assert_eq!(world.read("docs/a.md"), "agent\nmine\n");
}

#[test]
fn a_file_that_a_person_edits_before_or_after_the_agent_does_in_one_turn_stays() {
    let world = world();
    let agent = Agent::begin(&world, "claude", "s");
    agent.prompt("both");
    agent.edit("README", "agent\n");
    agent.edit("run.sh", "agent\n");
    // A formatter that the agent starts may still write within 6 s.
    std::thread::sleep(std::time::Duration::from_millis(6_100));
    run(&world, "echo mine >> README; echo mine >> src/main.rs");
    pause();
    agent.edit("src/main.rs", "mine, and the agent's\n");
    agent.stop();
    let said = leaves(&world, "", &["README", "src/main.rs"]);
    assert!(said.json()["skipped"].to_string().contains("during the turn, too"));
    assert_eq!(world.read("run.sh"), "#!/bin/sh\n");
}

#[test]
fn of_two_agents_at_once_each_ones_turn_goes_back_alone_and_what_both_may_have_written_stays() {
    let world = world();
    let (one, two) = (Agent::begin(&world, "claude", "a"), Agent::begin(&world, "codex", "b"));
    one.prompt("first");
    two.prompt("second");
    one.edit("src/main.rs", "claude\n");
    two.edit("src/lib.rs", "codex\n");
    one.shell("echo claude > from-claude");
    pause();
    // While both run a command, nobody can tell whose it is.
    let input = json!({ "command": "make" });
    one.starts("Bash", &input);
    two.starts("shell", &input);
    run(&world, "echo both > both");
    one.edit("named", "claude\n");
    two.ends("shell", &input);
    one.call_ends(3, "Bash");
    one.stop();
    two.stop();
    let said = world.recant("agent undo 2 -y --json").with(4);
    assert_eq!(said.json()["turns"], json!([2]));
    assert_eq!(skipped(&said, &world), ["both", "from-claude", "named", "src/main.rs"]);
    assert_eq!((world.read("src/lib.rs"), world.read("src/main.rs")), ("pub fn one() {}\n".into(), "claude\n".into()));
    leaves(&world, "1", &["both"]);
    assert_eq!(world.read("src/main.rs"), "fn main() {}\n");
    // What Claude's own tool named is not the other's, whatever ran meanwhile.
    assert!(world.exists("both") && !world.exists("from-claude") && !world.exists("named"));
}

/// Two turns follow within a tick of the clock, and a person edits after both.
#[test]
fn no_turn_is_named_for_what_a_person_has_changed_since() {
    let world = world();
    let one = Agent::begin(&world, "claude", "a");
    for (prompt, text) in [("first", "one\n"), ("second", "two\n"), ("third", "three\n")] {
        one.prompt(prompt);
        one.edit("README", text);
        one.stop();
    }
    world.recant("agent undo 3 -y").ok();
    for text in ["mine\n", "one\n", "three\n"] {
        world.write("README", text);
        let said = world.recant("agent undo 2 -y").with(4);
        assert!(said.stdout().contains("README: it was changed since turn 2\n"), "{text:?}: {said}");
        assert_eq!(world.read("README"), text);
    }
}

#[test]
fn a_path_that_another_agent_has_changed_since_stays_and_that_turn_is_named() {
    let world = world();
    let (one, two) = (Agent::begin(&world, "claude", "a"), Agent::begin(&world, "gemini", "b"));
    one.prompt("first");
    one.edit("src/main.rs", "claude\n");
    one.edit("README", "claude\n");
    one.stop();
    pause();
    two.prompt("second");
    two.edit("src/main.rs", "gemini\n");
    two.stop();
    let said = world.recant("agent undo 1 -y").with(4);
    assert_snapshot!(masked(&said), @r#"
    status 4
    --- stdout
    restored  README
    stays     src/main.rs: it was changed since turn 1, by turn 2 of gemini
    --- stderr
    recant: turn 1: 1 path taken back, 1 stays
    recant: to undo this: recant rollback ID
    recant: the conversation: claude --resume a
    recant: and in it /rewind to "first"
    "#);
    world.recant("agent undo 2 -y").ok();
    world.recant("agent undo 1 -y").ok();
    assert_eq!(world.read("src/main.rs"), "fn main() {}\n");
}

#[test]
fn an_undo_says_what_may_have_gone_back_with_it_only_for_what_a_command_changed() {
    let world = world();
    let agent = Agent::begin(&world, "claude", "s");
    let told = "this also restores any edit you made while a command ran";
    agent.prompt("edit");
    agent.edit("README", "agent\n");
    agent.stop();
    pause();
    let said = world.recant("agent undo -y").ok();
    assert!(!said.stderr().contains(told), "{said}");
    agent.prompt("run");
    agent.shell("echo agent > run.sh");
    agent.stop();
    let said = world.recant("agent undo -y").ok();
    assert!(said.stderr().contains(told), "{said}");
}

#[test]
fn a_turn_that_was_interrupted_goes_back_too_but_not_what_its_last_command_may_have_done() {
    let world = world();
    let agent = Agent::begin(&world, "claude", "s");
    agent.prompt("go");
    agent.edit("README", "agent\n");
    pause();
    agent.starts("Bash", &json!({ "command": "rm -r src" }));
    run(&world, "rm -r src");
    assert_eq!(turns(&world)[0]["ended"], false);
    let said = leaves(&world, "", &["src", "src/lib.rs", "src/main.rs"]);
    assert!(said.json()["skipped"].to_string().contains("whose end is unknown"));
    assert_eq!(world.read("README"), "about\n");
    world.recant("agent undo 1 -y --force").ok();
    assert_eq!(world.read("src/main.rs"), "fn main() {}\n");
}

#[test]
fn a_turn_whose_end_was_not_told_is_ended_by_the_next_one_of_its_session() {
    let world = world();
    let agent = Agent::begin(&world, "claude", "s");
    agent.prompt("one");
    agent.edit("README", "agent\n");
    agent.shell("echo agent > run.sh");
    pause();
    run(&world, "echo mine > mine; echo mine >> run.sh");
    pause();
    edits(&agent, "two", "README", "agent again\n");
    let listed = turns(&world);
    assert_eq!((&listed[0]["ended"], &listed[0]["paths"]), (&json!(true), &json!(1)));
    leaves(&world, "1", &["mine", "run.sh"]);
    assert_eq!(world.read("README"), "about\n");
}

#[test]
fn some_paths_of_a_turn_go_back_alone_and_the_rest_later() {
    let world = world();
    let before = but(&world, &[]);
    let agent = Agent::begin(&world, "claude", "s");
    agent.prompt("one");
    agent.edit("src/main.rs", "agent\n");
    agent.shell("rm README; echo new > src/new.rs");
    agent.stop();
    agent.prompt("nothing");
    agent.stop();
    let first = undo(&world, "1 README");
    assert_eq!((world.read("README"), world.read("src/main.rs")), ("about\n".into(), "agent\n".into()));
    let listed = turns(&world);
    assert_eq!((&listed[0]["partly"], &listed[1]["undone"]), (&json!(true), &Value::Null));
    let second = undo(&world, "src");
    but(&world, &[]).without_directory_times().assert_same(&before.without_directory_times(), "all of it");
    let said = world.recant("agent undo 1 -y").ok();
    assert_eq!(told(&said), format!("recant: turn 1: already undone by {} and {}", &first[16..], &second[16..]));
}

#[test]
fn a_turn_after_an_undo_stands_on_what_the_undo_left() {
    let world = world();
    let agent = Agent::begin(&world, "claude", "s");
    edits(&agent, "one", "README", "wrong\n");
    world.recant("agent undo -y").ok();
    agent.prompt("two");
    agent.edit("README", "right\n");
    agent.edit("src/main.rs", "right\n");
    agent.stop();
    world.recant("agent undo 1 README -y").ok();
    assert_eq!((world.read("README"), world.read("src/main.rs")), ("about\n".into(), "right\n".into()));
}

#[test]
fn a_turn_that_writes_before_its_snapshot_is_whole_is_not_covered_and_its_files_are_refused() {
    let world = world();
    let agent = Agent::begin(&world, "claude", "s");
    edits(&agent, "one", "README", "one\n");
    world.write(".recantignore", "x".repeat(2 << 20));
    let said = agent.prompt("two").json();
    assert!(said["systemMessage"].as_str().is_some_and(|text| text.contains("turn 2 cannot be undone")), "{said}");
    agent.edit("src/main.rs", "two\n");
    agent.stop();
    // It was told once.
    assert_eq!(agent.prompt("three").stdout(), "");
    assert_eq!(turns(&world)[1]["covered"], false);
    world.remove(".recantignore");
    let said = world.recant("agent undo 2 -y").with(1);
    assert!(said.stderr().contains("turn 2 is not covered"), "{said}");
    assert_eq!(world.read("src/main.rs"), "two\n");
}

#[test]
fn a_hook_never_fails_its_agent_whatever_happens() {
    let mut world = world();
    for (agent, input) in [
        ("claude", ""),
        ("claude", "[]"),
        ("claude", "{\"hook_event_name\":\"Later\",\"session_id\":\"s\"}"),
        ("codex", "{\"hook_event_name\":\"PreToolUse\"}"),
        ("gemini", "{"),
    ] {
        world.call(["hook", agent]).stdin(input).run().ok();
    }
    let event =
        json!({ "session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "x", "cwd": world.tree() }).to_string();
    world.call(["hook", "nobody"]).stdin(&event).run().ok();
    world.call(["hook", "claude", "--no-such-option"]).stdin(&event).run().ok();
    world.config("wrong = [\n");
    world.call(["hook", "claude"]).stdin(&event).run().ok();
    world.config("");
    // The store cannot be made: a file lies there.
    world.set("RECANT_STORE", world.path("README"));
    let said = world.call(["hook", "claude"]).stdin(&event).run().ok();
    assert!(said.stderr().contains("README"), "{said}");
}

#[test]
fn a_hook_records_events_as_they_came() {
    let world = world();
    let file = world.root().join("events");
    let record = |event: &str| world.call(["hook", "claude", "--record", file.to_str().expect("UTF-8")]).stdin(event).run().ok();
    record("{\"hook_event_name\":\"Later\",  \"session_id\":\"s\"}");
    record("not JSON\n");
    assert_eq!(
        std::fs::read_to_string(&file).expect("a file"),
        "{\"hook_event_name\":\"Later\",  \"session_id\":\"s\"}\nnot JSON\n"
    );
}

#[test]
fn the_oldest_turns_go_with_their_snapshots_and_a_persons_snapshots_stay() {
    let world = world();
    world.recant("snapshot create -m mine").ok();
    world.config("[agent]\nkeep = 3\n[snapshot]\nkeep = 2\n");
    let agent = Agent::begin(&world, "claude", "s");
    for n in 1..=6 {
        edits(&agent, &format!("number {n}"), "README", &format!("{n}\n"));
    }
    let numbers: Vec<_> = turns(&world).iter().map(|turn| turn["n"].as_u64()).collect();
    assert_eq!(numbers, [Some(4), Some(5), Some(6)]);
    world.recant("snapshot create -m mine").ok();
    let listed = world.recant("snapshot list --json").ok().json();
    let messages: Vec<&str> =
        listed["snapshots"].as_array().expect("a list").iter().filter_map(|row| row["message"].as_str()).collect();
    assert_eq!(messages.iter().filter(|message| **message == "mine").count(), 2, "{messages:?}");
    assert!(
        messages.contains(&"after turn 4: number 4") && !messages.iter().any(|text| text.contains("number 2")),
        "{messages:?}"
    );
    world.recant("agent undo 4 -y").ok();
    assert_eq!(world.read("README"), "3\n");
}

#[test]
fn a_turn_whose_snapshot_was_pruned_is_refused_before_anything_is_done() {
    let world = world();
    let agent = Agent::begin(&world, "claude", "s");
    for n in 1..=3 {
        edits(&agent, "one", "README", &format!("{n}\n"));
    }
    world.recant("prune --snapshots --keep 2 -y").ok();
    let said = world.recant("agent undo 1 -y").with(1);
    assert!(said.stderr().contains("snapshot 0, from before it, was pruned"), "{said}");
    world.recant("agent undo 3 -y").ok();
    assert_eq!(world.read("README"), "2\n");
}

#[test]
fn an_agent_cannot_undo_turns_by_itself() {
    let world = world();
    let agent = Agent::begin(&world, "claude", "s");
    edits(&agent, "one", "README", "agent\n");
    // The person is asked, and the turn has its number: by then another may be the newest.
    for (words, typed) in [
        (&["undo", "1", "-y"][..], "recant agent undo 1"),
        (&["undo", "-y"], "recant agent undo 1"),
        (&["undo", "--yes", "README"], "recant agent undo 1 README"),
    ] {
        let said = world.call([&["agent"], words].concat()).env("CLAUDECODE", "1").run().with(1);
        assert!(said.stderr().ends_with(&format!("in your own terminal: {typed}\n")), "{said}");
    }
    world.call(["agent", "undo", "1", "--dry-run"]).env("CLAUDECODE", "1").run().ok();
    assert_eq!(world.read("README"), "agent\n");
}

#[test]
fn turns_are_listed_and_one_is_shown() {
    let world = world();
    let agent = Agent::begin(&world, "claude", "s");
    agent.prompt("  \nchange what the program prints, and write about it\nplease");
    agent.edit("src/main.rs", "fn main() { print() }\n");
    pause();
    run(&world, "echo mine > mine");
    pause();
    agent.uses("Write", json!({ "file_path": "/nowhere/outside" }), || {});
    agent.stop();
    agent.prompt("what is this?");
    agent.stop();
    assert_snapshot!(masked(&world.recant("agent turns")), @"
    status 0
    --- stdout
    N  TIME          AGENT   PATHS  PROMPT
    2  DAY  TIME     claude      0  what is this?
    1  DAY  TIME     claude      1  change what the program prints, and write about…
    ");
    assert_snapshot!(world.recant("agent diff"), @"
    status 0
    --- stdout
    diff --git a/world/tree/mine b/world/tree/mine
    new file mode 100644
    --- /dev/null
    +++ b/world/tree/mine
    @@ -0,0 +1 @@
    +mine
    diff --git a/world/tree/src/main.rs b/world/tree/src/main.rs
    --- a/world/tree/src/main.rs
    +++ b/world/tree/src/main.rs
    @@ -1 +1 @@
    -fn main() {}
    +fn main() { print() }
    --- stderr
    recant: this is turn 1 of claude: change what the program prints, and write abo…
    recant: mine: another process changed it during the turn
    recant: /nowhere/outside: written by turn 1, but not covered: it lies outside of the project
    ");
    assert_snapshot!(world.recant("agent diff 2"), @"
    status 0
    --- stderr
    recant: turn 2 changed nothing
    ");
    assert_snapshot!(world.recant("agent undo 1 --dry-run"), @"
    status 4
    --- stdout
    restored  src/main.rs
    stays     mine: turn 1: another process changed it during the turn
    --- stderr
    recant: /nowhere/outside: written by turn 1, but not covered: it lies outside of the project
    recant: turn 1: 1 path would be taken back, 1 stays
    ");
    assert_snapshot!(world.recant("agent undo 9"), @"
    status 1
    --- stderr
    recant: no turn 9 here
            nothing was changed
            recant agent turns lists them
    ");
    assert_snapshot!(world.recant("agent undo 1"), @"
    status 2
    --- stderr
    recant: agent undo asks first, and there is no terminal
            nothing was changed
            recant agent undo 1 -y does not ask
    ");
}

#[test]
fn what_a_subagent_does_belongs_to_the_turn_even_after_its_end() {
    let world = world();
    // Codex gives a subagent's turn a name of its own, and tells its prompt.
    let agent = Agent::begin(&world, "codex", "s");
    agent.prompt("one");
    let inner = |name: &str, fields: Value| {
        let mut all = json!({ "agent_id": "inner", "turn_id": "another", "tool_name": "Bash", "tool_use_id": "i" });
        all.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        agent.event(name, all);
    };
    inner("UserPromptSubmit", json!({ "prompt": "your part" }));
    agent.stop();
    inner("PreToolUse", json!({ "tool_input": { "command": "make" } }));
    run(&world, "echo inner > inner; rm README");
    inner("PostToolUse", json!({}));
    inner("SubagentStop", json!({}));
    agent.event("SessionEnd", json!({ "reason": "other" }));
    assert_eq!(turns(&world).len(), 1);
    world.recant("agent undo 1 -y").ok();
    assert!(world.exists("README") && !world.exists("inner"));
}

#[test]
fn an_agent_that_goes_on_without_a_prompt_begins_a_turn() {
    let world = world();
    let agent = Agent::begin(&world, "gemini", "s");
    edits(&agent, "one", "README", "one\n");
    // The same session is woken up later, by something that no event tells.
    let fields = json!({ "prompt_id": "other", "tool_name": "Bash", "tool_use_id": "x", "tool_input": { "command": "x" } });
    agent.event("PreToolUse", fields.clone());
    run(&world, "echo two > README");
    agent.event("PostToolUse", fields);
    agent.event("Stop", json!({ "prompt_id": "other" }));
    assert_eq!(turns(&world).len(), 2);
    world.recant("agent undo 2 -y").ok();
    assert_eq!(world.read("README"), "one\n");
}

#[test]
fn a_directory_that_the_agent_moved_and_a_file_that_it_deleted_before_an_edit_beside_it_go_back() {
    let world = world();
    world.write("er/a/deep", "old\n").write("er/b", "old\n").write("gone.txt", "old\n").symlink("b", "er/link");
    pause();
    let before = but(&world, &[]);
    let agent = Agent::begin(&world, "codex", "s");
    agent.prompt("move");
    pause();
    agent.shell("mv er file-er; rm gone.txt");
    pause();
    // The edit is a rename in the same directory.
    agent.uses("Edit", json!({ "file_path": world.path("README") }), || run(&world, "echo agent > .new; mv .new README"));
    agent.stop();
    world.recant("agent undo 1 -y").ok();
    but(&world, &[]).assert_same(&before, "undone");
}

#[test]
fn the_files_that_claude_tells_of_a_command_are_its_own() {
    let world = world();
    let agent = Agent::begin(&world, "claude", "s");
    agent.prompt("delete");
    agent.starts("Bash", &json!({ "command": "rm README" }));
    run(&world, "rm README");
    let response = json!({ "bashEditDiff": { "changedFiles": [world.path("README")], "moreFiles": 0 } });
    let fields = json!({ "tool_name": "Bash", "tool_use_id": "s-call-1", "tool_input": {}, "tool_response": response });
    agent.event("PostToolUse", fields);
    pause();
    // A person's save, a rename in the same directory.
    run(&world, "echo mine > .new; mv .new mine");
    agent.stop();
    let said = world.recant("agent undo 1 -y --json").with(4);
    assert_eq!((skipped(&said, &world), world.read("README")), (vec!["mine".to_owned()], "about\n".into()));
}

#[test]
fn a_file_that_a_person_edits_in_a_turn_before_a_command_of_the_agent_changes_it_stays() {
    let world = world();
    let agent = Agent::begin(&world, "claude", "s");
    agent.prompt("format");
    agent.shell("echo agent > src/lib.rs");
    pause();
    run(&world, "echo mine >> src/main.rs");
    pause();
    agent.shell("sed -i 's/^/  /' src/*.rs");
    agent.stop();
    leaves(&world, "1", &["src/main.rs"]);
    assert_eq!(
        (world.read("src/main.rs"), world.read("src/lib.rs")),
        ("  fn main() {}\n  mine\n".into(), "pub fn one() {}\n".into())
    );
}

/// A turn in which a person acts between the agent's tools; what is left of the tree after an undo.
fn between(first: &str, person: &str, second: &str) -> (common::Said, World) {
    let world = world();
    world.write("d/x", "x\n").write("d/y", "y\n").write("a.txt", "a\n").write("b.txt", "b\n");
    let agent = Agent::begin(&world, "claude", "s");
    agent.prompt("go");
    agent.shell(first);
    pause();
    run(&world, person);
    pause();
    agent.shell(second);
    agent.stop();
    let said = world.recant("agent undo 1 -y --json");
    (said, world)
}

#[test]
fn what_a_person_did_between_tools_stays_whatever_the_agent_does_with_it() {
    // What the person does, what the agent does then, files that are there afterwards, and files that are not.
    for (person, agent, there, gone) in [
        ("echo mine >> a.txt", "mv a.txt c.txt", &["c.txt"][..], &["a.txt"][..]),
        ("echo mine > n.txt", "mv n.txt c.txt", &["c.txt"], &["n.txt"]),
        ("echo mine >> d/x", "mv d g", &["g/x", "d/y"], &["d/x", "g/y"]),
        ("mv d manual", "echo 1 > manual/gen", &["manual/x", "manual/y"], &["d", "manual/gen"]),
        ("mkdir ../out; echo mine > ../out/work; mv ../out mine", "echo 1 > mine/gen", &["mine/work"], &["mine/gen"]),
        ("rm a.txt; mv b.txt c.txt", "echo 1 > new", &["c.txt"], &["a.txt", "b.txt", "new"]),
        ("rm -r d", "echo 1 > new; mkdir e", &[], &["d", "new", "e"]),
        ("rm a.txt", "echo agent > a.txt", &["a.txt"], &[]),
        ("chmod 700 d", "echo 1 > d/gen", &["d/x"], &["d/gen"]),
    ] {
        let (said, world) = between("true", person, agent);
        let what = format!("{person}; {agent}: {said}");
        assert_eq!(said.status, 4, "{what}");
        assert!(there.iter().all(|name| world.exists(name)), "{what}");
        assert!(!gone.iter().any(|name| world.path(name).symlink_metadata().is_ok()), "{what}");
    }
    let (_, world) = between("true", "chmod 700 d", "echo 1 > d/gen");
    let mode = std::os::unix::fs::PermissionsExt::mode(&world.path("d").metadata().expect("a directory").permissions());
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_tool_that_was_refused_or_failed_claims_nothing_of_what_came_after() {
    let world = world();
    let agent = Agent::begin(&world, "claude", "s");
    agent.prompt("go");
    agent.starts("Bash", &json!({ "command": "refused" }));
    pause();
    run(&world, "echo mine >> src/lib.rs; echo mine > mine");
    pause();
    agent.edit("README", "agent\n");
    agent.stop();
    leaves(&world, "1", &["mine", "src/lib.rs"]);
    assert_eq!(world.read("README"), "about\n");
}

#[test]
fn an_edit_tool_goes_back_with_the_directories_that_it_made_and_by_the_links_that_it_went_through() {
    let world = world();
    let before = but(&world, &[]);
    let agent = Agent::begin(&world, "claude", "s");
    agent.prompt("go");
    agent.edit("docs/new/deep.md", "text\n");
    // A link to README, and one of two names.
    agent.uses("Write", json!({ "file_path": world.path("link") }), || drop(world.write("README", "through\n").tree()));
    agent.uses("Write", json!({ "file_path": world.path("h1") }), || drop(world.write("h1", "through\n").tree()));
    agent.stop();
    world.recant("agent undo 1 -y").ok();
    but(&world, &[]).assert_same(&before, "undone");
}

#[test]
fn what_comes_and_goes_in_the_turns_is_not_brought_back_by_a_second_undo() {
    let world = world();
    let agent = Agent::begin(&world, "claude", "s");
    agent.prompt("one");
    agent.shell("echo t > tmp; echo 1 >> README");
    agent.stop();
    agent.prompt("two");
    agent.shell("rm tmp; echo 2 >> README");
    agent.stop();
    world.recant("agent undo 1 -y").ok();
    assert!(turns(&world).iter().all(|turn| turn["partly"].is_null() && turn["undone"].is_string()));
    world.recant("agent undo -y").with(1);
    assert!(!world.exists("tmp"));
}

#[test]
fn a_path_that_nobody_knows_is_refused_and_turns_are_found_from_a_directory_below() {
    let world = World::new();
    world.write("README", "about\n").mkdir("sub");
    let agent = Agent::begin(&world, "claude", "s");
    edits(&agent, "one", "README", "agent\n");
    for (words, why) in [
        ("agent undo 1 nope -y", "neither in the turns nor in the project"),
        ("agent undo 99999999999999999999999 -y", "neither in the turns nor in the project"),
        ("agent undo 1 /etc -y", "name paths of"),
    ] {
        let said = world.recant(words).with(1);
        assert!(said.stderr().contains(why), "{said}");
    }
    world.call(["agent", "undo", "1", "-y"]).cwd(world.path("sub")).run().ok();
    assert_eq!(world.read("README"), "about\n");
}

#[test]
fn a_file_that_a_person_edits_between_two_turns_that_both_wrote_it_stays() {
    let world = world();
    let agent = Agent::begin(&world, "claude", "s");
    agent.prompt("one");
    agent.edit("README", "one\n");
    agent.shell("chmod 700 src empty");
    agent.stop();
    run(&world, "echo mine >> README");
    pause();
    agent.prompt("two");
    agent.shell("sed -i s/one/two/ README");
    agent.stop();
    let said = world.recant("agent undo 1 -y --json").with(4);
    assert_eq!((skipped(&said, &world), world.read("README")), (vec!["README".to_owned()], "two\nmine\n".into()));
    assert!(said.json()["skipped"].to_string().contains("changed between turns 1 and 2"));
    let mode =
        |name: &str| std::os::unix::fs::PermissionsExt::mode(&world.path(name).metadata().expect("it").permissions()) & 0o777;
    assert_eq!((mode("src"), mode("empty")), (0o755, 0o755));
    // The later turn by itself goes back to what the person has made of it.
    let id = said.json()["session"].as_str().expect("an id").to_owned();
    world.recant(&format!("rollback {id}")).ok();
    world.recant("agent undo 2 -y").ok();
    assert_eq!(world.read("README"), "one\nmine\n");
}

#[test]
fn nothing_goes_back_of_a_turn_of_which_a_line_is_garbled_and_a_cut_last_line_does_no_harm() {
    let world = world();
    let agent = Agent::begin(&world, "claude", "s");
    agent.prompt("one");
    agent.edit("README", "agent\n");
    agent.shell("echo agent > made");
    agent.stop();
    let all = world.store().join("agents/turns");
    let directory = std::fs::read_dir(&all).expect("turns").next().expect("one").expect("a name").path();
    let file = directory.join("1.jsonl");
    let text = std::fs::read_to_string(&file).expect("a turn");
    // A write that was cut off, on a full disk, and the next one behind it.
    world.write(&file, text.replace("{\"end\"", "{\"seen\":[{\"pa{\"end\""));
    let said = leaves(&world, "1", &["README", "made"]);
    assert!(said.json()["skipped"].to_string().contains("a hook was cut off"), "{said}");
    world.write(&file, format!("{text}{{\"seen\":[{{\"pa"));
    world.recant("agent undo 1 -y").ok();
    assert!(!world.exists("made"));
}

/// Three turns, which each write README and a file of their own.
fn three(world: &World) {
    let agent = Agent::begin(world, "claude", "s");
    for n in 1..=3 {
        agent.prompt(&format!("number {n}"));
        agent.edit("README", &format!("{n}\n"));
        agent.edit(&format!("new{n}"), "x\n");
        agent.stop();
    }
}

/// Takes turns back; the session.
fn undo(world: &World, words: &str) -> String {
    let said = world.recant(&format!("agent undo {words} -y --json")).ok();
    said.json()["session"].as_str().expect("an id").to_owned()
}

/// What was said on standard error, in one line.
fn told(said: &common::Said) -> String {
    said.stderr().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn of_several_undos_each_is_named_at_the_turn_that_it_took_back() {
    let world = world();
    three(&world);
    let undone: Vec<Value> = (0..3).map(|_| undo(&world, "").into()).collect();
    let named: Vec<Value> = turns(&world).iter().rev().map(|turn| turn["undone"].clone()).collect();
    assert_eq!(named, undone);
    let rows = world.recant("log --json").ok().json()["entries"].clone();
    let of = |id: &Value| rows.as_array().expect("a list").iter().filter(|row| row["session"] == *id).count();
    assert_eq!(of(&undone[0]), 2);
    // One that is undone already has no part in the next undo.
    world.recant(&format!("rollback {}", undone[2].as_str().expect("an id"))).ok();
    assert_eq!(world.recant("agent undo 1 --dry-run --json").ok().json()["turns"], json!([1]));
}

#[test]
fn undos_that_are_rolled_back_out_of_order_are_a_conflict_that_names_the_order() {
    let world = world();
    three(&world);
    let undone: Vec<String> = (0..3).map(|_| undo(&world, "")).collect();
    let said = world.recant(&format!("rollback {}", undone[0])).with(3);
    let order = format!(
        "later sessions have to be rolled back first, the last first: recant rollback {}; recant rollback {}",
        undone[2], undone[1]
    );
    assert!(told(&said).contains(&order), "{said}");
    let said = world.recant(&format!("rollback {}", undone[1])).with(3);
    assert!(told(&said).contains(&format!("session {0} has to be rolled back first: recant rollback {0}", undone[2])), "{said}");
    for id in undone.iter().rev() {
        world.recant(&format!("rollback {id}")).ok();
    }
    assert_eq!(world.read("README"), "3\n");
}

#[test]
fn a_turn_that_is_undone_says_so_and_by_what() {
    let world = world();
    three(&world);
    let id = undo(&world, "3");
    let tail = &id[16..];
    let said = world.recant("agent undo 3 -y").ok();
    assert_eq!(told(&said), format!("recant: turn 3: already undone by {tail}: recant rollback {tail} brings it back"));
    assert!(told(&world.recant("agent diff 3").ok()).contains(&format!("turn 3 is undone by {tail}")));
    undo(&world, "2 README");
    assert!(told(&world.recant("agent diff 2").ok()).contains("turn 2 is undone in part by "));
}

#[test]
fn a_diff_of_no_named_turn_says_which_one_it_shows() {
    let world = world();
    three(&world);
    let said = world.recant("agent diff").ok();
    assert_eq!(told(&said), "recant: this is turn 3 of claude: number 3");
    assert!(world.recant("agent diff 3").ok().stderr().is_empty());
}

#[test]
fn a_path_that_a_turn_did_not_change_is_named_by_its_diff() {
    let world = world();
    three(&world);
    let said = world.recant("agent diff nosuch").with(1);
    assert_snapshot!(said, @"
    status 1
    --- stderr
    recant: /world/tree/nosuch: neither in turn 3 nor in the project
            nothing was changed
            recant agent diff 3 shows all that turn 3 changed
    ");
    let said = world.recant("agent diff 2 src").ok();
    assert_eq!((said.stdout(), told(&said)), (String::new(), "recant: src: turn 2 did not change it".into()));
    assert!(world.recant("agent diff 2 src new2").ok().stdout().contains("new2"));
}

#[test]
fn of_two_numbers_the_second_is_no_turn() {
    let world = world();
    three(&world);
    let why = "takes one number";
    for verb in ["undo 1 2 -y", "diff 1 2"] {
        let said = world.recant(&format!("agent {verb}")).with(2);
        assert!(told(&said).contains(why) && said.stderr().contains("nothing was changed"), "{said}");
    }
    assert!(told(&world.recant("agent undo 1 2 -y").with(2)).contains("turn 1 is taken back with all later ones"));
    // A file of that name is one.
    world.write("2", "x");
    let said = world.recant("agent undo 1 2 -y").with(4);
    assert!(!told(&said).contains(why), "{said}");
}

#[test]
fn the_notes_of_a_diff_come_after_its_page() {
    let world = world();
    if world.program("script", ["-V"]).command().output().is_err() {
        return common::skip("script makes the terminal");
    }
    let agent = Agent::begin(&world, "claude", "s");
    agent.prompt("one");
    agent.edit("README", "agent\n");
    pause();
    run(&world, "echo mine > mine");
    pause();
    agent.stop();
    let command = format!("{} agent diff README mine run.sh", common::recant());
    let call = world.program("script", ["-qec", &command, "/dev/null"]).env("PAGER", "sed s/^/paged:/").env("TERM", "xterm");
    let said = call.run().stdout();
    let paged = said.rfind("paged:").expect("a page");
    for note in ["this is turn 1", "another process changed it", "turn 1 did not change it"] {
        assert!(said.find(note).is_some_and(|note| paged < note), "{note}: {said}");
    }
}

#[test]
fn the_newest_turn_is_named_where_recant_says_how_things_stand() {
    let world = world();
    let line = "turn 3 of claude: recant agent turns, recant agent undo\n";
    for verb in ["", "status"] {
        assert!(!world.call(verb.split_terminator(' ')).run().ok().stdout().contains("agent turns"));
    }
    three(&world);
    for verb in ["", "status"] {
        let said = world.call(verb.split_terminator(' ')).run().ok();
        assert_eq!(said.stdout().matches(line).count(), 1, "{said}");
        assert!(said.stdout().lines().all(|line| line.chars().count() <= 80), "{said}");
    }
}

#[test]
fn an_undo_that_would_take_hooks_away_names_the_one_that_may_be_meant() {
    let world = world();
    let hint = "recant agent undo takes back what an agent's turn wrote";
    world.recant("agent install claude -y").ok();
    assert!(!told(&world.recant("undo --dry-run").ok()).contains(hint));
    three(&world);
    assert!(told(&world.recant("undo --dry-run").ok()).contains(hint));
    assert!(told(&world.recant("undo -y").ok()).contains(hint));
    undo(&world, "");
    assert!(!told(&world.recant("undo -y").ok()).contains(hint));
}

#[test]
fn an_undo_has_one_line_in_the_log_and_its_session_no_directory() {
    let world = world();
    three(&world);
    let id = undo(&world, "");
    let said = world.recant("log").ok().stdout();
    let lines: Vec<&str> = said.lines().filter(|line| line.contains(&id[16..])).collect();
    assert!(matches!(&lines[..], [line] if line.contains("agent undo 3") && line.ends_with("done")), "{said}");
    assert_eq!(world.recant("log -n 1").ok().stdout(), format!("{}\n", lines[0]));
    let said = world.recant("list").ok().stdout();
    assert!(said.contains("  agent undo 3\n") && !said.contains("/tree"), "{said}");
}
