//! Codex CLI: names of events by its release 0.169.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::facts::{Agent, Answers, Check, Facts, Form, Model, Moment, Named, Settings, State};
use super::programs::{LIMIT, Piped, within};
use super::settings::command::Command;
use super::settings::files::read;
use super::surroundings::{Surroundings, below};
use crate::fs::AbsPath;

pub const FACTS: Facts = Facts {
    word: "codex",
    name: "Codex CLI",
    variables: &["CODEX_THREAD_ID", "CODEX_SANDBOX"],
    session: Some("CODEX_THREAD_ID"),
    // It gives the last two no more time, and warns at each start of a larger limit.
    events: &[
        Named::hooked("SessionStart", Moment::SessionStart),
        Named::hooked("UserPromptSubmit", Moment::Prompt),
        Named::hooked("PreToolUse", Moment::BeforeTool),
        Named::hooked("PostToolUse", Moment::AfterTool),
        Named::hooked("SubagentStop", Moment::SubagentEnd),
        Named::hooked("Stop", Moment::TurnEnd),
        Named::hooked("Interrupt", Moment::TurnEnd).within(3),
        Named::hooked("SessionEnd", Moment::SessionEnd).within(3),
    ],
    reading: "view_image web_search update_plan spawn_agent wait_agent request_user_input",
    writing: "apply_patch",
    settings: Settings {
        home,
        project: ".codex",
        files: &[("hooks.json", Form::Groups), ("config.toml", Form::Toml)],
        ..Settings::PLAIN
    },
    state: State {
        directory: home,
        credentials: &["auth.json"],
        pass: &["log"],
        records: &[
            "auth.json",
            "log/**",
            "history.jsonl",
            "sessions/**",
            "archived_sessions/**",
            "session_index.jsonl",
            "version.json",
            "installation_id",
        ],
        ..State::PLAIN
    },
    model: Model { hosts: &["api.openai.com", "chatgpt.com", "auth.openai.com"], variables: &["OPENAI_BASE_URL"] },
    answers: Answers::AlwaysJson,
    stops,
    counts: |_| Some("Codex CLI runs a hook once you have trusted it: /hooks in it shows and trusts them"),
    ..Facts::PLAIN
};

fn home(around: &Surroundings<'_>) -> AbsPath {
    around.named_or("CODEX_HOME", ".codex")
}

fn stops(check: &Check<'_>) -> Vec<String> {
    let path = below(&home(check.around), "config.toml");
    let config: Value = read(&path).ok().flatten().and_then(|text| toml::from_str(&text).ok()).unwrap_or_default();
    let off = ["hooks", "codex_hooks"].into_iter().filter(|key| config["features"][*key] == false);
    let off = off.map(|key| format!("features.{key} in {path} switches all hooks off"));
    off.chain(check.program.and_then(|program| untrusted(program, &check.around.project))).collect()
}

/// The reason why it passes over hooks, as it says itself.
fn untrusted(program: &Path, project: &AbsPath) -> Option<String> {
    const TRUSTED: [&str; 2] = ["trusted", "managed"];
    let listed = listed(program, project.as_path())?;
    let ours: Vec<_> = listed.iter().filter(|hook| Command::called(Agent(&FACTS), hook).is_some()).collect();
    let count = |n: usize| format!("{n} of {} hook{}", ours.len(), if ours.len() == 1 { "" } else { "s" });
    let off = ours.iter().filter(|hook| hook["enabled"] == false).count();
    let untrusted = ours.iter().filter(|hook| !TRUSTED.contains(&hook["trustStatus"].as_str().unwrap_or_default())).count();
    if ours.is_empty() {
        return Some("Codex CLI does not load the hooks: is the project trusted there?".into());
    }
    if off > 0 {
        return Some(format!("{} are switched off in Codex CLI: /hooks in it switches them on", count(off)));
    }
    (untrusted > 0)
        .then(|| format!("Codex CLI skips {} that it does not trust: /hooks in it shows and trusts them", count(untrusted)))
}

/// The hooks that it has for a directory, as it lists them; `None` if it does not tell.
fn listed(program: &Path, directory: &Path) -> Option<Vec<Value>> {
    let mut child = Piped::start(program, "app-server")?;
    let (mut stdin, stdout) = (child.stdin()?, child.stdout()?);
    let client = json!({"name": "recant", "version": env!("CARGO_PKG_VERSION")});
    let directory = directory.to_str()?.to_owned();
    let listed = within(LIMIT, move || {
        let mut lines = BufReader::new(stdout).lines();
        let mut answer = |id: u64| {
            let answers = lines.by_ref().map_while(Result::ok).filter_map(|line| serde_json::from_str::<Value>(&line).ok());
            answers.into_iter().find(|answer| answer["id"] == id)
        };
        let mut ask = |question: Value| writeln!(stdin, "{question}").and_then(|()| stdin.flush()).ok();
        ask(json!({"id": 1, "method": "initialize", "params": {"clientInfo": client}}))?;
        answer(1)?;
        ask(json!({"method": "initialized"}))?;
        ask(json!({"id": 2, "method": "hooks/list", "params": {"cwds": [directory]}}))?;
        answer(2)
    })??;
    listed["result"]["data"][0]["hooks"].as_array().cloned()
}
