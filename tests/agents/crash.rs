//! Hooks and undos of agents' turns that are killed, or whose system calls fail, at any step: nobody's work is lost, and what a hook could not
//! note makes an undo leave more, never less.

use crate::agent::{pause, repository, run};
use crate::common::World;
use serde_json::json;

/// A project in which an agent and a person worked for a turn.
struct Scene {
    world: World,
}

/// Makes one. The hook of the event `hit`, and the process that takes its snapshot, do `steps`.
fn turn(hit: &str, steps: &str) -> Scene {
    let world = World::new();
    world.write("a", "old\n").write("b", "old\n").write("c", "old\n");
    repository(&world);
    let event = |name: &str, fields: serde_json::Value| {
        let mut event = json!({ "session_id": "s", "prompt_id": "p", "cwd": world.tree(), "hook_event_name": name });
        event.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        let call = world.call(["hook", "claude"]).stdin(event.to_string());
        if name == hit {
            call.env("RECANT_STEPS", steps).run()
        } else {
            call.run().ok()
        };
    };
    event("SessionStart", json!({}));
    event("UserPromptSubmit", json!({ "prompt": "go" }));
    let write = json!({ "tool_name": "Write", "tool_use_id": "1", "tool_input": { "file_path": world.path("a") } });
    event("PreToolUse", write.clone());
    world.write("a", "agent\n");
    event("PostToolUse", write);
    pause();
    run(&world, "echo person >> c; echo person > d");
    pause();
    let shell = json!({ "tool_name": "Bash", "tool_use_id": "2", "tool_input": { "command": "x" } });
    event("PreToolUse", shell.clone());
    run(&world, "rm b; echo agent > e; mkdir f; echo agent > f/g");
    event("PostToolUse", shell);
    event("Stop", json!({}));
    Scene { world }
}

impl Scene {
    /// Undoes the turn. A person's files are as they were; each of the agent's is as before, or named as left.
    #[track_caller]
    fn undo(&self, what: &str) {
        let world = &self.world;
        let said = world.recant("agent undo -y --json");
        let left = if said.status == 1 { Vec::new() } else { said.json()["skipped"].as_array().expect("a list").clone() };
        assert!([0, 1, 4].contains(&said.status), "{what}: {said}");
        assert_eq!((world.read("c"), world.read("d")), ("old\nperson\n".into(), "person\n".into()), "{what}: {said}");
        let is_named = |name: &str| left.iter().any(|row| row["path"] == world.path(name).to_str().expect("UTF-8"));
        for (name, then) in [("a", Some("old\n")), ("b", Some("old\n")), ("e", None), ("f/g", None), ("f", None)] {
            let path = world.path(name);
            let is_back = match then {
                Some(text) => path.is_file() && world.read(name) == text,
                None => !path.exists(),
            };
            assert!(is_back || said.status == 1 || is_named(name) || is_named("f"), "{what}: {name}: {said}");
        }
    }
}

/// The steps that a hook and the process that takes its snapshot have, and some more.
const STEPS: usize = 40;

#[test]
fn a_hook_killed_at_a_prompt_costs_no_work() {
    for step in (1..=STEPS).step_by(2) {
        turn("UserPromptSubmit", &format!("kill:{step}")).undo(&format!("killed before step {step}"));
    }
}

#[test]
fn a_hook_killed_at_the_end_of_a_turn_costs_no_work() {
    for step in (1..=STEPS).step_by(2) {
        turn("Stop", &format!("kill:{step}")).undo(&format!("killed before step {step}"));
    }
}

#[test]
fn a_hook_in_which_a_call_fails_costs_no_work_and_ends_well() {
    for step in (1..=STEPS).step_by(2) {
        for event in ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"] {
            let said = format!("{event}: step {step} failed");
            turn(event, &format!("fail:{step}:28")).undo(&said);
        }
    }
}
