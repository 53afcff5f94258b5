//! Copilot CLI: names of events by its release 1.0.102. It calls the hooks of Claude Code beside its own.

use super::facts::{Check, Dialect, Facts, Form, Model, Moment, Named, Settings, State};
use super::settings::jsonc::with;
use super::surroundings::{Surroundings, below};
use crate::fs::AbsPath;

pub const FACTS: Facts = Facts {
    word: "copilot",
    name: "Copilot CLI",
    variables: &["COPILOT_CLI", "COPILOT_AGENT"],
    // Under its own names, as sessionStart, the event does not say which one it is.
    events: &[
        Named::hooked("SessionStart", Moment::SessionStart),
        Named::hooked("UserPromptSubmit", Moment::Prompt),
        Named::hooked("PreToolUse", Moment::BeforeTool),
        Named::hooked("PostToolUse", Moment::AfterTool),
        Named::hooked("PostToolUseFailure", Moment::AfterTool),
        Named::hooked("SubagentStop", Moment::SubagentEnd),
        Named::hooked("Stop", Moment::TurnEnd),
        Named::hooked("SessionEnd", Moment::SessionEnd),
        Named::known("userPromptSubmitted", Moment::Prompt),
        Named::known("agentStop", Moment::TurnEnd),
    ],
    reading: "view report_intent read_bash stop_bash url_fetch update_todo task skill exit_plan_mode",
    writing: "create edit str_replace_editor insert",
    settings: Settings {
        home,
        project: ".github",
        files: &[("hooks/recant.json", Form::Flat)],
        dialect: Dialect { timeout: ("timeoutSec", 1), strict: true, ..Dialect::USUAL },
        ..Settings::PLAIN
    },
    state: State {
        directory: home,
        records: &["session-state/**", "history-session-state/**", "logs/**", "command-history-state.json"],
        ..State::PLAIN
    },
    stops,
    model: Model { hosts: &["api.github.com", "github.com", "*.githubcopilot.com"], variables: &[] },
    ..Facts::PLAIN
};

fn home(around: &Surroundings<'_>) -> AbsPath {
    around.named_or("COPILOT_HOME", ".copilot")
}

fn stops(Check { around, .. }: &Check<'_>) -> Vec<String> {
    let home = home(around);
    let all = [
        below(&home, "settings.json"),
        below(&home, "config.json"),
        below(&around.project, ".github/copilot/settings.json"),
        below(&around.project, ".github/copilot/settings.local.json"),
    ];
    with(&all, "disableAllHooks").map(|path| format!("\"disableAllHooks\" in {path} switches all hooks off")).collect()
}
