//! A stand-in for a coding agent: it speaks an agent's hook protocol, and writes by its own process and by a shell.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::cell::Cell;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{Said, World};

/// An agent at work in a world's tree.
pub struct Agent<'w> {
    /// The world.
    pub world: &'w World,
    /// The word for the agent.
    pub agent: &'static str,
    session: String,
    directory: std::path::PathBuf,
    prompts: Cell<u32>,
    calls: Cell<u32>,
}

impl<'w> Agent<'w> {
    /// Begins a session.
    pub fn begin(world: &'w World, agent: &'static str, session: &str) -> Self {
        let directory = world.tree();
        let agent = Self { world, agent, session: session.into(), directory, prompts: Cell::new(0), calls: Cell::new(0) };
        agent.event("SessionStart", json!({ "source": "startup" }));
        agent
    }

    /// Works in a directory of the tree, in a session of its own.
    pub fn within(self, directory: &str) -> Self {
        Self { directory: self.world.path(directory), session: format!("{}-{directory}", self.session), ..self }
    }

    /// Has the hook called.
    pub fn event(&self, name: &str, fields: Value) -> Said {
        let mut event = json!({
            "session_id": self.session,
            "transcript_path": "/nowhere/transcript.jsonl",
            "cwd": self.directory,
            "permission_mode": "default",
            "hook_event_name": name,
        });
        let key = if self.agent == "codex" { "turn_id" } else { "prompt_id" };
        event[key] = format!("{}-{}", self.session, self.prompts.get()).into();
        let event_fields = event.as_object_mut().expect("an object");
        event_fields.extend(fields.as_object().expect("an object").clone());
        let said = self.world.call(["hook", self.agent]).stdin(event.to_string()).run().ok();
        assert_eq!(said.stderr(), "", "{name}");
        said
    }

    /// The person says something: a turn begins.
    pub fn prompt(&self, text: &str) -> Said {
        self.prompts.set(self.prompts.get() + 1);
        self.event("UserPromptSubmit", json!({ "prompt": text }))
    }

    /// Uses a tool: `work` is what it does.
    pub fn uses(&self, tool: &str, input: Value, work: impl FnOnce()) {
        self.starts(tool, &input);
        work();
        self.ends(tool, &input);
    }

    /// A tool is about to be used.
    pub fn starts(&self, tool: &str, input: &Value) -> Said {
        self.calls.set(self.calls.get() + 1);
        self.event("PreToolUse", json!({ "tool_name": tool, "tool_use_id": self.call(), "tool_input": input }))
    }

    /// It was used.
    pub fn ends(&self, tool: &str, input: &Value) {
        self.event(
            "PostToolUse",
            json!({ "tool_name": tool, "tool_use_id": self.call(), "tool_input": input, "tool_response": {} }),
        );
    }

    /// The use of a tool with this number in the session has ended.
    pub fn call_ends(&self, n: u32, tool: &str) {
        let id = format!("{}-call-{n}", self.session);
        self.event("PostToolUse", json!({ "tool_name": tool, "tool_use_id": id, "tool_input": {}, "tool_response": {} }));
    }

    fn call(&self) -> String {
        format!("{}-call-{}", self.session, self.calls.get())
    }

    /// Edits a file with its own tool.
    pub fn edit(&self, name: &str, content: &str) {
        let path = self.world.path(name);
        self.uses("Write", json!({ "file_path": path, "content": content }), || {
            self.world.write(name, content);
        });
    }

    /// Runs a command by a shell.
    pub fn shell(&self, script: &str) {
        self.uses("Bash", json!({ "command": script, "description": "a step" }), || run(self.world, script));
    }

    /// Ends its turn.
    pub fn stop(&self) {
        self.stops();
    }

    /// Ends its turn; gives what the hook says.
    pub fn stops(&self) -> Said {
        self.event("Stop", json!({ "stop_hook_active": false, "last_assistant_message": "done" }))
    }
}

/// Runs a script in the tree, as a person in another terminal does.
pub fn run(world: &World, script: &str) {
    world.program("sh", ["-ec", script]).run().ok();
}

/// Waits until the clock of file systems has moved on beyond what a hook allows for: 20 ms.
pub fn pause() {
    let begun = std::time::Instant::now();
    while begun.elapsed() < std::time::Duration::from_millis(60) {
        std::thread::yield_now();
    }
}

/// Makes a repository in the tree.
pub fn repository(world: &World) {
    run(world, "git init -q .");
    assert!(Path::new(&world.path(".git")).is_dir());
}
