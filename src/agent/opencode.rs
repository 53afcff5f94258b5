//! opencode, which has a plugin in place of hooks.

use super::facts::{Facts, Form, Moment, Named, Settings, State};
use super::surroundings::below;

pub const FACTS: Facts = Facts {
    word: "opencode",
    name: "opencode",
    variables: &["OPENCODE"],
    events: &[
        Named::known("session_start", Moment::SessionStart),
        Named::known("turn_start", Moment::Prompt),
        Named::known("tool_before", Moment::BeforeTool),
        Named::known("tool_after", Moment::AfterTool),
        Named::known("subagent_end", Moment::SubagentEnd),
        Named::known("turn_end", Moment::TurnEnd),
        Named::known("session_end", Moment::SessionEnd),
    ],
    reading: "read grep glob list webfetch websearch todowrite todoread todo task skill question lsp",
    writing: "write edit multiedit patch apply_patch",
    settings: Settings {
        home: |around| {
            let config = || below(&around.named_or("XDG_CONFIG_HOME", ".config"), "opencode");
            around.named("OPENCODE_CONFIG_DIR").unwrap_or_else(config)
        },
        project: ".opencode",
        files: &[("plugins/recant.js", Form::Program(include_str!("plugins/opencode.js")))],
        ..Settings::PLAIN
    },
    state: State {
        directory: |around| below(&around.named_or("XDG_DATA_HOME", ".local/share"), "opencode"),
        credentials: &["auth.json", "mcp-auth.json"],
        records: &["auth.json", "mcp-auth.json", "log/**"],
        ..State::PLAIN
    },
    ..Facts::PLAIN
};
