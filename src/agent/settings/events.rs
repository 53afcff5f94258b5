//! The events that are hooked. An event that an agent does not know may void the file: these names are confirmed for Claude Code 2.1.332,
//! Codex CLI 0.169, Gemini CLI 0.61 and Copilot CLI 1.0.102.

use super::super::known::Agent;

/// An event, and how its hook is written.
pub struct Event {
    pub name: &'static str,
    /// True if a matcher for all tools stands with it. Others know it by having none.
    pub matches_all: bool,
    /// The limit of time, in seconds.
    pub timeout: u64,
}

/// The most seconds that a hook may take.
const LIMIT: u64 = 10;
/// Codex CLI gives these events no more, and warns at each start of a larger limit.
const OF_CODEX: [&str; 2] = ["SessionEnd", "Interrupt"];

/// The events of an agent that has settings; none for one that has a plugin.
pub fn events(agent: Agent) -> Vec<Event> {
    let names: &[&str] = match agent {
        Agent::Claude => &[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "SubagentStop",
            "Stop",
            "StopFailure",
            "CwdChanged",
            "SessionEnd",
        ],
        Agent::Codex => {
            &["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "SubagentStop", "Stop", "Interrupt", "SessionEnd"]
        }
        Agent::Gemini => &["SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd"],
        // Under its own names, as sessionStart, the event does not say which one it is.
        Agent::Copilot => &[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "SubagentStop",
            "Stop",
            "SessionEnd",
        ],
        Agent::Opencode | Agent::Pi => &[],
    };
    let event = |name: &&'static str| Event {
        name,
        matches_all: agent == Agent::Claude && name.contains("ToolUse"),
        timeout: if agent == Agent::Codex && OF_CODEX.contains(name) { 3 } else { LIMIT },
    };
    names.iter().map(event).collect()
}
