//! pi, which has an extension in place of hooks.

use super::facts::{Facts, Form, Moment, Named, Scope, Settings, State};
use super::surroundings::Surroundings;
use crate::fs::AbsPath;

pub const FACTS: Facts = Facts {
    word: "pi",
    name: "pi",
    variables: &["PI_CODING_AGENT"],
    events: &[
        Named::known("session_start", Moment::SessionStart),
        Named::known("turn_start", Moment::Prompt),
        Named::known("tool_before", Moment::BeforeTool),
        Named::known("tool_after", Moment::AfterTool),
        Named::known("turn_end", Moment::TurnEnd),
        Named::known("session_end", Moment::SessionEnd),
    ],
    reading: "read grep find find_files ls",
    writing: "write edit",
    settings: Settings {
        home,
        project: ".pi",
        files: &[("extensions/recant.ts", Form::Program(include_str!("plugins/pi.ts")))],
        ..Settings::PLAIN
    },
    state: State { directory: home, credentials: &["auth.json"], records: &["auth.json", "sessions/**"], ..State::PLAIN },
    counts: |scope| (scope == Scope::Project).then_some("pi loads extensions of a project that you have trusted"),
    ..Facts::PLAIN
};

fn home(around: &Surroundings<'_>) -> AbsPath {
    around.named_or("PI_CODING_AGENT_DIR", ".pi/agent")
}
