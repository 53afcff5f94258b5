//! An agent whose shell commands are held one by one by its hooks: `agent.claude.hold = 'shell'`.

use crate::common::{Said, World};
use serde_json::{Value, json};

fn world() -> World {
    let world = World::new();
    world.config("[agent.claude]\nhold = 'shell'\n").write("file", "one\n");
    world
}

/// What the hook answers to an event, as JSON; `null` if it says nothing.
fn hook(world: &World, name: &str, fields: Value) -> Value {
    let mut event = json!({ "session_id": "abc-123", "prompt_id": "p", "cwd": world.tree(), "hook_event_name": name });
    event.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
    let said = world.call(["hook", "claude"]).stdin(event.to_string()).run().ok();
    serde_json::from_str(&said.stdout()).unwrap_or(Value::Null)
}

fn before(world: &World, call: &str, input: &Value) -> Value {
    hook(world, "PreToolUse", json!({ "tool_name": "Bash", "tool_use_id": call, "tool_input": input }))
}

fn after(world: &World, call: &str, input: &Value) -> Value {
    hook(world, "PostToolUse", json!({ "tool_name": "Bash", "tool_use_id": call, "tool_input": input, "tool_response": {} }))
}

/// Runs the line that the hook has made of this one, as the agent does.
fn uses(world: &World, call: &str, line: &str) -> Said {
    let input = json!({ "command": line, "description": "a step" });
    let answer = before(world, call, &input);
    let changed = &answer["hookSpecificOutput"]["updatedInput"];
    assert_eq!(changed["description"], "a step", "{answer}");
    assert!(answer["hookSpecificOutput"].get("permissionDecision").is_none(), "the person is asked as ever: {answer}");
    let said = world.program("bash", ["-c", changed["command"].as_str().expect("a line")]).env("CLAUDECODE", "1").run();
    assert_eq!(after(world, call, changed), Value::Null, "it was held");
    said
}

#[test]
fn each_command_is_a_step_of_one_session_and_nothing_is_real() {
    let world = world();
    let said = uses(&world, "t1", "true && echo 'two words' >> file; echo \"$HOME\" > home").ok();
    assert_eq!((said.stdout(), said.stderr()), (String::new(), String::new()));
    assert_eq!(uses(&world, "t2", "cat file; echo three >> file").ok().stdout(), "one\ntwo words\n");
    uses(&world, "t3", "exit 7").with(7);
    // A command that changes nothing is held, too.
    uses(&world, "t4", "cat file").ok();
    assert!(world.read("file") == "one\n" && !world.exists("home"));
    let listed = world.recant("list --json").ok().json();
    let session = &listed["sessions"][0];
    assert_eq!((session["name"].as_str(), session["changes"].as_u64()), (Some("claude-tree-abc123"), Some(2)), "{listed}");
    assert_eq!(session["by"]["agent"], "claude");
    let steps = world.recant("steps claude-tree-abc123 --json").ok().json();
    assert_eq!(steps["steps"].as_array().map(Vec::len), Some(2), "{steps}");
    let told = hook(&world, "Stop", json!({}));
    assert!(told["systemMessage"].as_str().is_some_and(|said| said.contains("2 changes held: recant review")), "{told}");
    world.recant("commit claude-tree-abc123").ok();
    assert_eq!(world.read("file"), "one\ntwo words\nthree\n");
    assert_eq!(hook(&world, "Stop", json!({})), Value::Null);
    world.recant("rollback claude-tree-abc123").ok();
    assert_eq!(world.read("file"), "one\n");
}

#[test]
fn a_command_that_something_else_ran_is_said_loudly_to_the_person_and_the_agent() {
    let world = world();
    let input = json!({ "command": "echo real > real" });
    before(&world, "t1", &input);
    // Another hook was faster, or the agent has not used the answer.
    let told = after(&world, "t1", &input);
    for said in [&told["systemMessage"], &told["hookSpecificOutput"]["additionalContext"]] {
        assert!(said.as_str().is_some_and(|said| said.contains("NOT held")), "{told}");
    }
    assert_eq!(told["hookSpecificOutput"]["hookEventName"], "PostToolUse");
    assert_eq!(after(&world, "t1", &input), Value::Null, "it is said once");
    // Where it cannot be told, it is said, too.
    world.write(world.root().join("no-store"), "a file");
    let event = json!({ "session_id": "s", "cwd": world.tree(), "hook_event_name": "PostToolUse", "tool_name": "Bash",
        "tool_use_id": "t3", "tool_input": { "command": "x" }, "tool_response": {} });
    let said =
        world.call(["hook", "claude"]).env("RECANT_STORE", world.root().join("no-store")).stdin(event.to_string()).run().ok();
    assert!(said.stdout().contains("NOT held"), "{said}");
    // In the background it may not have begun yet.
    let input = json!({ "command": "sleep 1", "run_in_background": true });
    before(&world, "t2", &input);
    assert_eq!(after(&world, "t2", &input), Value::Null);
}

#[test]
fn what_would_write_by_itself_or_cannot_be_held_is_not_used() {
    let world = world();
    let denied = |answer: &Value| {
        assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
        answer["hookSpecificOutput"]["permissionDecisionReason"].as_str().expect("a reason").to_owned()
    };
    for tool in ["Write", "Edit", "NotebookEdit", "mcp__files__move"] {
        let answer =
            hook(&world, "PreToolUse", json!({ "tool_name": tool, "tool_use_id": "t", "tool_input": { "file_path": "x" } }));
        assert!(denied(&answer).contains("through the shell"), "{tool}");
    }
    let read = json!({ "tool_name": "Read", "tool_use_id": "t", "tool_input": { "file_path": "x" } });
    assert_eq!(hook(&world, "PreToolUse", read), Value::Null);
    assert_eq!(before(&world, "t", &json!({ "command": "recant status" })), Value::Null, "a look runs as it is");
    let nameless = hook(&world, "PreToolUse", json!({ "tool_name": "Bash", "tool_input": { "command": "rm file" } }));
    denied(&nameless);
    // The store cannot be had: nothing would be held.
    world.write(world.root().join("no-store"), "a file");
    let event = json!({ "session_id": "s", "cwd": world.tree(), "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "t",
        "tool_input": { "command": "rm file" } });
    let said =
        world.call(["hook", "claude"]).env("RECANT_STORE", world.root().join("no-store")).stdin(event.to_string()).run().ok();
    assert!(denied(&said.json()).contains("recant cannot hold it"), "{said}");
}

#[test]
fn status_tells_that_commands_are_held() {
    let world = world();
    world.recant("agent install claude --user -y").ok();
    hook(&world, "SessionStart", json!({ "source": "startup" }));
    let said = world.recant("agent status claude").stdout();
    assert!(said.contains("hold     each shell command, and no other tool may write"), "{said}");
}

#[test]
fn an_agent_of_which_it_was_not_tried_is_refused_by_name() {
    let world = world();
    for agent in ["codex", "gemini", "copilot", "opencode", "pi"] {
        world.config(&format!("[agent.{agent}]\nhold = 'shell'\n"));
        let said = world.recant("status").with(1);
        let plain = said.stderr().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            plain.contains(&format!("agent.NAME.hold: {agent}'s commands cannot be held one by one; recant agent run {agent}")),
            "{said}"
        );
    }
}
