//! Commands of an agent that are held one by one: what its hook answers before a tool is used, so that each shell command runs as a step of a
//! session, and nothing else writes. Pure.
//!
//! Offered for agents with whose release it was tried (tests/agents-reach). Of the others Codex CLI takes a changed command only with
//! `allow`, which takes away the person's question; Gemini CLI merges it with what others answer; Copilot CLI and opencode are not known to
//! use it in each case.

use serde_json::{Value, json};

use super::known::Agent;
use crate::error::shell_word;

/// The agents whose commands can be held one by one.
pub const OFFERED: [Agent; 1] = [Agent::Claude];

/// A use of a tool before it happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Use {
    /// A shell command: the agent's name for this use, and the whole input.
    Command {
        /// The agent's name for this use.
        call: String,
        /// The input, of which `command` is the line.
        input: Value,
    },
    /// A look at what is held, by recant itself: it runs as it is.
    Own,
    /// A tool that writes by itself.
    Writes,
    /// Anything else.
    Other,
}

impl Use {
    /// Reads the use from an event `PreToolUse` of Claude Code. `writes`: the tool is known to write to files.
    pub fn of(text: &[u8], writes: bool) -> Self {
        let Ok(event) = serde_json::from_slice::<Value>(text) else { return Self::Other };
        let (name, input) = (event["tool_name"].as_str().unwrap_or_default(), &event["tool_input"]);
        match (input["command"].as_str(), event["tool_use_id"].as_str()) {
            (Some(line), _) if name == "Bash" && is_own(line) => Self::Own,
            (Some(_), Some(call)) if name == "Bash" => Self::Command { call: call.into(), input: input.clone() },
            // Without a name for it nobody could tell afterwards if it was held.
            _ if name == "Bash" => Self::Writes,
            _ if writes => Self::Writes,
            _ => Self::Other,
        }
    }
}

/// True for one call of recant alone: no other command, no redirection, no expansion that runs one.
fn is_own(line: &str) -> bool {
    let line = line.trim();
    let program = line.split_whitespace().next().unwrap_or_default();
    let is_recant = program == "recant" || program.ends_with("/recant") && program.starts_with('/');
    is_recant && !line.contains(['\n', ';', '&', '|', '<', '>', '`', '$', '(', ')', '\\'])
}

/// The input with the line held: a step of `session`, under the name `call`. `recant` is the program.
pub fn held(input: &Value, recant: &str, session: &str, call: &str) -> Value {
    let mut input = input.clone();
    let line = input["command"].as_str().unwrap_or_default().to_owned();
    let words = [recant, "run", "--session", session, "--wait", "10m", "--held-for", call, "-q", "--", "bash", "-c", &line];
    let words: Vec<String> = words.iter().map(|word| shell_word(word.as_bytes()).to_string()).collect();
    input["command"] = words.join(" ").into();
    input
}

/// The answer that has a tool used with another input. It says nothing about whether it may be used: that is asked as ever.
pub fn answer_changed(input: &Value) -> Value {
    json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse", "updatedInput": input } })
}

/// The answer that has a tool not used.
pub fn answer_denied(why: &str) -> Value {
    let decision = json!({ "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": why });
    json!({ "hookSpecificOutput": decision })
}

/// The answer after a command that was not held: to the person, and to the agent.
pub fn answer_not_held(event: &str, why: &str) -> Value {
    json!({ "systemMessage": format!("recant: {why}"), "hookSpecificOutput": { "hookEventName": event, "additionalContext": why } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Use {
        let event = json!({ "tool_name": "Bash", "tool_use_id": "t1", "tool_input": { "command": line, "description": "d", "timeout": 5 } });
        Use::of(event.to_string().as_bytes(), true)
    }

    #[test]
    fn a_line_is_held_whole_and_all_else_of_the_input_stays() {
        let line = "cd sub && echo 'a b' > \"$x\" || true; tool commit";
        let Use::Command { call, input } = of(line) else { panic!("{line}") };
        let held = held(&input, "/opt/re cant", "claude-app", &call);
        assert_eq!((held["description"].as_str(), held["timeout"].as_u64()), (Some("d"), Some(5)));
        let words = held["command"].as_str().unwrap();
        assert!(words.starts_with("'/opt/re cant' run --session claude-app --wait 10m --held-for t1 -q -- bash -c '"), "{words}");
        // What the shell makes of it is the line again.
        let echoed = words.replace("'/opt/re cant' run --session claude-app --wait 10m --held-for t1 -q -- bash -c", "printf %s");
        let said = std::process::Command::new("sh").args(["-c", &echoed]).output().unwrap();
        assert_eq!(String::from_utf8(said.stdout).unwrap(), line);
    }

    #[test]
    fn only_one_call_of_recant_alone_runs_as_it_is() {
        for line in ["recant status", " /usr/bin/recant diff claude-app --stat ", "recant"] {
            assert_eq!(of(line), Use::Own, "{line}");
        }
        for line in [
            "recant status; rm -rf x",
            "recant status && rm x",
            "recant diff > file",
            "recant $(rm x)",
            "recant `rm x`",
            "recant status\nrm x",
            "./recant status",
            "recantation",
            "recant \\\n; rm x",
            "true; recant status",
        ] {
            assert!(matches!(of(line), Use::Command { .. }), "{line}");
        }
        let without_id = json!({ "tool_name": "Bash", "tool_input": { "command": "rm x" } });
        assert_eq!(Use::of(without_id.to_string().as_bytes(), true), Use::Writes);
        let write = json!({ "tool_name": "Write", "tool_use_id": "t", "tool_input": { "file_path": "/x" } });
        assert_eq!(Use::of(write.to_string().as_bytes(), true), Use::Writes);
        let read = json!({ "tool_name": "Read", "tool_use_id": "t", "tool_input": { "file_path": "/x" } });
        assert_eq!(Use::of(read.to_string().as_bytes(), false), Use::Other);
    }
}
