//! Gemini CLI: names of events by its release 0.61.

use serde_json::Value;

use super::facts::{Answers, Check, Dialect, Facts, Form, Model, Moment, Named, Scope, Settings, State};
use super::settings::jsonc::value_of;
use super::surroundings::{Surroundings, below};
use crate::fs::AbsPath;

pub const FACTS: Facts = Facts {
    word: "gemini",
    name: "Gemini CLI",
    variables: &["GEMINI_CLI"],
    session: Some("GEMINI_SESSION_ID"),
    project: Some("GEMINI_PROJECT_DIR"),
    events: &[
        Named::hooked("SessionStart", Moment::SessionStart),
        Named::hooked("BeforeAgent", Moment::Prompt),
        Named::hooked("BeforeTool", Moment::BeforeTool),
        Named::hooked("AfterTool", Moment::AfterTool),
        Named::hooked("AfterAgent", Moment::TurnEnd),
        Named::hooked("SessionEnd", Moment::SessionEnd),
    ],
    reading: "read_file read_many_files readmanyfiles list_directory glob search_file_content grep_search google_web_search \
        web_fetch write_todos ask_user exit_plan_mode invoke_agent",
    writing: "write_file replace edit_file",
    settings: Settings {
        home,
        project: ".gemini",
        files: &[("settings.json", Form::Groups)],
        dialect: Dialect { named: true, timeout: ("timeout", 1000), ..Dialect::USUAL },
        ..Settings::PLAIN
    },
    state: State {
        directory: home,
        credentials: &["oauth_creds.json", "mcp-oauth-tokens.json"],
        pass: &["google_accounts.json"],
        // Below tmp it also keeps programs that it runs.
        records: &[
            "oauth_creds.json",
            "google_accounts.json",
            "installation_id",
            "state.json",
            "projects.json",
            "tmp/*/chats/**",
            "tmp/*/checkpoints/**",
            "tmp/*/logs/**",
            "tmp/*/logs.json",
            "tmp/*/shell_history",
        ],
        mixed: &["state.json"],
        ..State::PLAIN
    },
    model: Model {
        hosts: &[
            "generativelanguage.googleapis.com",
            "cloudcode-pa.googleapis.com",
            "aiplatform.googleapis.com",
            "oauth2.googleapis.com",
            "www.googleapis.com",
            "accounts.google.com",
        ],
        variables: &["GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "CODE_ASSIST_ENDPOINT"],
    },
    answers: Answers::AlwaysJson,
    stops,
    counts: |scope| (scope == Scope::Project).then_some("Gemini CLI warns of new hooks of a project, and then runs them"),
    ..Facts::PLAIN
};

fn home(around: &Surroundings<'_>) -> AbsPath {
    below(&around.named("GEMINI_CLI_HOME").unwrap_or_else(|| around.home.clone()), ".gemini")
}

/// The settings of an administrator.
const SYSTEM: &str = "/etc/gemini-cli/settings.json";

fn stops(Check { around, scopes, .. }: &Check<'_>) -> Vec<String> {
    let home = home(around);
    let system = around.named("GEMINI_CLI_SYSTEM_SETTINGS_PATH").or_else(|| AbsPath::parse(SYSTEM).ok());
    let own = [below(&home, "settings.json"), below(&around.project, ".gemini/settings.json")];
    let all: Vec<_> = own.into_iter().chain(system).collect();
    let mut why = Vec::new();
    for path in &all {
        let config = &value_of(path)["hooksConfig"];
        if config["enabled"] == false {
            why.push(format!("\"hooksConfig.enabled\" in {path} switches all hooks off"));
        }
        if config["disabled"].as_array().is_some_and(|names| names.iter().any(|name| name == "recant")) {
            why.push(format!("\"hooksConfig.disabled\" in {path} names recant: /hooks enable recant in Gemini CLI"));
        }
    }
    // Folders are trusted only where that is asked for, and of one's own settings nothing depends on it.
    if !scopes.contains(&Scope::User) && all.iter().any(|path| value_of(path)["security"]["folderTrust"]["enabled"] == true) {
        let trusted = around.named("GEMINI_CLI_TRUSTED_FOLDERS_PATH").unwrap_or_else(|| below(&home, "trustedFolders.json"));
        let trusted = value_of(&trusted);
        if !trusted.as_object().is_some_and(|folders| folders.iter().any(|entry| trusts(entry, &around.project))) {
            why.push(format!("Gemini CLI does not trust {}, whose settings it leaves out: /permissions in it", around.project));
        }
    }
    why
}

/// True if an entry of the list of folders trusts a directory.
fn trusts((folder, trust): (&String, &Value), directory: &AbsPath) -> bool {
    let Ok(folder) = AbsPath::parse(folder) else { return false };
    match trust.as_str() {
        Some("TRUST_FOLDER") => directory.is_under(&folder),
        Some("TRUST_PARENT") => folder.parent().is_some_and(|parent| directory.is_under(&parent)),
        _ => false,
    }
}
