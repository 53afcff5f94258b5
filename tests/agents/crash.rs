//! Hooks of an agent's turn that are killed, or whose system calls fail, at any step: nobody's work is lost, and what a hook could not note
//! makes an undo leave more, never less.

use crate::agent::{repository, run};
use crate::common::sweep::{Came, Sweep};
use crate::common::{Call, World};
use serde_json::{Value, json};

/// A project in which an agent and a person work for a turn: the agent's events, and what is done behind each.
struct Scene {
    world: World,
    events: Vec<(&'static str, Value, &'static str)>,
}

impl Scene {
    /// The turn up to this event, which does not come yet.
    fn before(event: usize) -> Self {
        let world = World::new();
        world.write("a", "old\n").write("b", "old\n").write("c", "old\n");
        repository(&world);
        let write = json!({ "tool_name": "Write", "tool_use_id": "1", "tool_input": { "file_path": world.path("a") } });
        let shell = json!({ "tool_name": "Bash", "tool_use_id": "2", "tool_input": { "command": "x" } });
        let events = vec![
            ("SessionStart", json!({}), ""),
            ("UserPromptSubmit", json!({ "prompt": "go" }), ""),
            ("PreToolUse", write.clone(), "echo agent > a"),
            // A person; the clock of file systems moves on by more than a hook allows for.
            ("PostToolUse", write, "sleep 0.06; echo person >> c; echo person > d; sleep 0.06"),
            ("PreToolUse", shell.clone(), "rm b; echo agent > e; mkdir f; echo agent > f/g"),
            ("PostToolUse", shell, ""),
            ("Stop", json!({}), ""),
        ];
        let scene = Self { world, events };
        scene.goes_on(0..event);
        scene
    }

    fn hook(&self, event: usize) -> Call {
        let (name, fields, _) = &self.events[event];
        let mut event = json!({ "session_id": "s", "prompt_id": "p", "cwd": self.world.tree(), "hook_event_name": name });
        event.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        self.world.call(["hook", "claude"]).stdin(event.to_string())
    }

    /// What is done behind an event.
    fn act(&self, event: usize) {
        run(&self.world, self.events[event].2);
    }

    fn goes_on(&self, events: std::ops::Range<usize>) {
        for event in events {
            self.hook(event).run().ok();
            self.act(event);
        }
    }

    /// Undoes the turn. A person's files are as they were; each of the agent's is as before, or named as left. Gives how it ended.
    #[track_caller]
    fn undo(&self, what: &str) -> i32 {
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
        said.status
    }
}

/// Each hook from the prompt on; the process that takes its snapshot has the same order.
fn sweep(order: &str, ends: &[i32]) {
    let mut steps = 0;
    for event in 1..7 {
        let row = Sweep {
            name: &format!("hook {event}"),
            scene: &|| Some(Scene::before(event)),
            verb: &|scene: &Scene| scene.hook(event),
            order,
        };
        let tally = row.run(|scene, said, what| {
            assert!(ends.contains(&said.status), "{what}");
            scene.act(event);
            scene.goes_on(event + 1..scene.events.len());
            Came::Used(scene.undo(what))
        });
        steps += tally.steps;
    }
    assert!(steps > 60, "{steps} steps");
}

#[test]
fn a_hook_killed_at_any_step_costs_no_work() {
    sweep("kill:N", &[0, 137]);
}

#[test]
fn a_hook_in_which_a_call_fails_costs_no_work_and_ends_well() {
    sweep("fail:N:28", &[0]);
}
