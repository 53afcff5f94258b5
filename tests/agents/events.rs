//! What real agents tell their hooks (tests/fixtures/agents) is understood, and answered as each of them expects.

use crate::common::{Said, World, recant};
use serde_json::{Value, json};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/agents");

/// The payloads of an agent, in the order in which they came, with their project in this world.
fn payloads(world: &World, directory: &str) -> Vec<(String, String)> {
    let mut names: Vec<String> = std::fs::read_dir(format!("{FIXTURES}/{directory}"))
        .expect("fixtures")
        .map(|entry| entry.expect("a name").file_name().into_string().expect("UTF-8"))
        .filter(|name| name != "environment.json")
        .collect();
    names.sort();
    let text = |name: &String| std::fs::read_to_string(format!("{FIXTURES}/{directory}/{name}")).expect("a fixture");
    let project = world.tree().to_str().expect("UTF-8").to_owned();
    names.iter().map(|name| (name.clone(), text(name).replace("/home/user/project", &project))).collect()
}

/// Does what the tool of a payload has done, as far as the tests look at it.
fn act(world: &World, payload: &Value) {
    let of = |keys: &[&str]| keys.iter().find_map(|key| payload.get(key)).cloned().unwrap_or_default();
    let input = of(&["tool_input", "toolArgs", "args"]);
    let shell = input["command"].as_str().filter(|command| command.contains("> by-shell.txt"));
    if shell.is_some() {
        world.write("by-shell.txt", "from the shell\n");
    } else if input.to_string().contains("by-tool.txt") {
        let old = if world.exists("by-tool.txt") { world.read("by-tool.txt") } else { String::new() };
        world.write("by-tool.txt", format!("{old}one\n"));
    }
}

#[test]
fn the_payloads_of_every_agent_make_its_turns_and_are_answered_as_it_expects() {
    for (directory, agent) in [
        ("claude", "claude"),
        ("claude-terminal", "claude"),
        ("codex", "codex"),
        ("gemini", "gemini"),
        ("copilot", "copilot"),
        ("copilot-pascal", "copilot"),
        ("opencode", "opencode"),
        ("pi", "pi"),
    ] {
        let world = World::new();
        world.mkdir("sub").mkdir(".git");
        let mut is_begun = false;
        for (name, text) in payloads(&world, directory) {
            let payload: Value = serde_json::from_str(&text).expect("JSON");
            let is = |words: [&str; 3]| words.iter().any(|word| name.contains(word));
            // Of each kind there is only the first: of later tools the beginning or the end.
            let is_end = is(["PostToolUse.", "postToolUse.", "fterTool"]) || name.contains("tool_after");
            if is_end && std::mem::take(&mut is_begun) {
                act(&world, &payload);
            }
            is_begun |= is(["PreToolUse", "preToolUse", "eforeTool"]) || name.contains("tool_before");
            let said = world.call(["hook", agent]).stdin(&text).run().ok();
            assert_eq!(said.stderr(), "", "{directory}/{name}");
            // Codex and Gemini CLI want JSON; to the others silence is no opinion.
            let starts = name.contains("SessionStart") && matches!(agent, "claude" | "codex" | "gemini");
            let expected = if matches!(agent, "codex" | "gemini") { "{}\n" } else { "" };
            assert!(
                said.stdout() == expected || starts && context(&said).contains("can be taken back"),
                "{directory}/{name}: {said}"
            );
        }
        let turns = world.recant("agent turns --json").ok().json()["turns"].as_array().expect("a list").clone();
        let prompts: Vec<&str> = turns.iter().rev().map(|turn| turn["prompt"].as_str().expect("a text")).collect();
        assert!(prompts.len() >= 2, "{directory}: {prompts:?}");
        assert!(prompts.iter().all(|prompt| prompt.starts_with("Please ")), "{directory}: {prompts:?}");
        assert_eq!(turns.iter().filter(|turn| turn["covered"] == false).count(), 0, "{directory}");
        if directory != "claude-terminal" {
            let first = turns.last().expect("a turn");
            assert_eq!(first["paths"], 2, "{directory}: {first}");
            let said = world.recant("agent undo 1 -y");
            assert_eq!(said.status, 0, "{directory}: {said}");
            assert!(!world.exists("by-tool.txt") && !world.exists("by-shell.txt"), "{directory}");
        }
    }
}

#[test]
fn a_notice_of_claude_begins_no_turn_and_hooks_that_copilot_calls_for_claude_do_nothing() {
    let world = World::new();
    world.mkdir(".git");
    let event = |prompt: &str| {
        let event = serde_json::json!({ "session_id": "s", "prompt_id": prompt, "hook_event_name": "UserPromptSubmit",
            "prompt": prompt, "cwd": world.tree() });
        event.to_string()
    };
    world.call(["hook", "claude"]).stdin(event("one")).run().ok();
    world.call(["hook", "claude"]).stdin(event("<task-notification>\n<task-id>1")).run().ok();
    world.call(["hook", "claude"]).stdin(event("two")).env("COPILOT_CLI", "1").run().ok();
    assert_eq!(world.recant("agent turns --json").ok().json()["turns"].as_array().map(Vec::len), Some(1));
}

#[test]
fn commands_of_claude_are_told_who_runs_them_once_a_session() {
    let world = World::new();
    world.mkdir(".git");
    let file = world.root().join("env.sh");
    let event =
        serde_json::json!({ "session_id": "it's", "hook_event_name": "SessionStart", "source": "startup", "cwd": world.tree() });
    for _ in 0..2 {
        world.call(["hook", "claude"]).stdin(event.to_string()).env("CLAUDE_ENV_FILE", &file).run().ok();
    }
    let text = std::fs::read_to_string(&file).expect("a file");
    assert_eq!(text.lines().count(), 1, "{text}");
    let said = world.program("sh", ["-c", &format!(". {}; echo $RECANT_AGENT $RECANT_AGENT_SESSION", file.display())]).run().ok();
    assert_eq!(said.stdout(), "claude it's\n");
}

/// What `hook` prints when a conversation of an agent starts, for the agent to read.
fn context(said: &Said) -> String {
    let answer = &said.json_lines()[0]["hookSpecificOutput"];
    assert_eq!(answer["hookEventName"], "SessionStart", "{said}");
    answer["additionalContext"].as_str().unwrap().to_owned()
}

#[test]
fn an_agent_is_told_at_its_start_what_is_covered_pending_or_held() {
    let world = World::new();
    world.mkdir(".git");
    for source in ["startup", "resume", "compact"] {
        for agent in ["claude", "codex", "gemini"] {
            let event = json!({ "session_id": "s", "hook_event_name": "SessionStart", "source": source, "cwd": world.tree() });
            let said = world.call(["hook", agent]).stdin(event.to_string()).run().ok();
            assert_eq!(context(&said), format!("recant: your turns in {} can be taken back", world.tree().display()), "{said}");
        }
    }
    world.recant("run -q -n one -- touch a b").ok();
    world.recant("run -q -n two -- touch c").ok();
    let event =
        json!({ "session_id": "s", "hook_event_name": "SessionStart", "source": "compact", "cwd": world.tree() }).to_string();
    let said = world.call(["hook", "claude"]).stdin(&*event).run().ok();
    assert!(context(&said).ends_with("; pending: 3 changes in 2 sessions; recant shows it"), "{said}");
    // Those of another project are not counted.
    let elsewhere = world.root().join("elsewhere");
    std::fs::create_dir_all(elsewhere.join(".git")).unwrap();
    let there = json!({ "session_id": "t", "hook_event_name": "SessionStart", "source": "startup", "cwd": elsewhere });
    let said = world.call(["hook", "claude"]).stdin(there.to_string()).run().ok();
    assert!(context(&said).ends_with("can be taken back"), "{said}");
    // Held in any run, it is told so, and of which session.
    let line = format!("touch d; printf %s '{event}' | {} hook claude", recant());
    let said = world.call(["run", "-q", "-n", "held", "--", "sh", "-c", &line]).run().ok();
    let id = world.recant("list --json").ok().json()["sessions"][0]["id"].as_str().unwrap().to_owned();
    let wanted = format!("recant: held: what you change in files lies in session {} until a person commits it", &id[16..]);
    assert!(context(&said).starts_with(&wanted), "{said}");
    // One that reads no context gets none.
    let event = json!({ "sessionId": "s", "hook_event_name": "SessionStart", "source": "new", "cwd": world.tree() });
    let said = world.call(["hook", "copilot"]).stdin(event.to_string()).run().ok();
    assert!(said.stdout().is_empty() && said.stderr().is_empty(), "{said}");
}
