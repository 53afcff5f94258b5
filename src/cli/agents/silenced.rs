//! Reasons for which an agent does not call hooks that stand in its settings, as far as its files tell.

use serde_json::Value;

use super::settings::read;
use crate::agent::known::Agent;
use crate::agent::settings::places::{Scope, Surroundings, below};
use crate::agent::settings::value;
use crate::fs::path::AbsPath;

/// Claude Code's settings by an administrator, and Gemini CLI's.
const MANAGED: &str = "/etc/claude-code";
const SYSTEM: &str = "/etc/gemini-cli/settings.json";

/// The reasons. `scopes`: where its hooks stand.
pub fn silenced(around: &Surroundings<'_>, agent: Agent, scopes: &[Scope]) -> Vec<String> {
    match agent {
        Agent::Claude => of_claude(around),
        Agent::Codex => of_codex(around),
        Agent::Gemini => of_gemini(around, scopes),
        Agent::Copilot => of_copilot(around),
        Agent::Opencode | Agent::Pi => Vec::new(),
    }
}

/// The value of a file; null if there is none, or it cannot be read: that is said elsewhere.
fn value_of(path: &AbsPath) -> Value {
    read(path).ok().flatten().and_then(|text| value(&text)).unwrap_or_default()
}

/// The files in which a key is true.
fn with<'p>(paths: &'p [AbsPath], key: &str) -> Vec<&'p AbsPath> {
    paths.iter().filter(|path| value_of(path)[key] == true).collect()
}

fn managed() -> Vec<AbsPath> {
    let Ok(directory) = AbsPath::parse(MANAGED) else { return Vec::new() };
    let more = below(&directory, "managed-settings.d").as_path().read_dir().into_iter().flatten().flatten();
    let more = more.filter_map(|entry| AbsPath::parse(entry.path().into_os_string().into_encoded_bytes()).ok());
    [below(&directory, "managed-settings.json")].into_iter().chain(more).collect()
}

fn of_claude(around: &Surroundings<'_>) -> Vec<String> {
    let own = [
        below(&around.home_of(Agent::Claude), "settings.json"),
        below(&around.project, ".claude/settings.json"),
        below(&around.project, ".claude/settings.local.json"),
    ];
    let all: Vec<_> = own.into_iter().chain(managed()).collect();
    let disabled =
        with(&all, "disableAllHooks").into_iter().map(|path| format!("\"disableAllHooks\" in {path} switches all hooks off"));
    let only = with(&all, "allowManagedHooksOnly").into_iter();
    let only = only.map(|path| format!("\"allowManagedHooksOnly\" in {path} switches off all hooks but an administrator's"));
    disabled.chain(only).collect()
}

fn of_codex(around: &Surroundings<'_>) -> Vec<String> {
    let path = below(&around.home_of(Agent::Codex), "config.toml");
    let config: Value = read(&path).ok().flatten().and_then(|text| toml::from_str(&text).ok()).unwrap_or_default();
    let off = |key: &&str| config["features"][*key] == false;
    let keys = ["hooks", "codex_hooks"].into_iter().filter(off);
    keys.map(|key| format!("features.{key} in {path} switches all hooks off")).collect()
}

fn of_gemini(around: &Surroundings<'_>, scopes: &[Scope]) -> Vec<String> {
    let home = around.home_of(Agent::Gemini);
    let user = below(&home, "settings.json");
    let system = (around.directory)("GEMINI_CLI_SYSTEM_SETTINGS_PATH").or_else(|| AbsPath::parse(SYSTEM).ok());
    let all: Vec<_> = [user.clone(), below(&around.project, ".gemini/settings.json")].into_iter().chain(system).collect();
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
        let trusted =
            (around.directory)("GEMINI_CLI_TRUSTED_FOLDERS_PATH").unwrap_or_else(|| below(&home, "trustedFolders.json"));
        let is_trusted =
            value_of(&trusted).as_object().is_some_and(|folders| folders.iter().any(|entry| trusts(entry, &around.project)));
        if !is_trusted {
            why.push(format!("Gemini CLI does not trust {}, whose settings it leaves out: /permissions in it", around.project));
        }
    }
    why
}

/// True if an entry of Gemini CLI's list of folders trusts a directory.
fn trusts((folder, trust): (&String, &Value), directory: &AbsPath) -> bool {
    let Ok(folder) = AbsPath::parse(folder) else { return false };
    match trust.as_str() {
        Some("TRUST_FOLDER") => directory.is_under(&folder),
        Some("TRUST_PARENT") => folder.parent().is_some_and(|parent| directory.is_under(&parent)),
        _ => false,
    }
}

fn of_copilot(around: &Surroundings<'_>) -> Vec<String> {
    let home = around.home_of(Agent::Copilot);
    let all = [
        below(&home, "settings.json"),
        below(&home, "config.json"),
        below(&around.project, ".github/copilot/settings.json"),
        below(&around.project, ".github/copilot/settings.local.json"),
    ];
    with(&all, "disableAllHooks")
        .into_iter()
        .map(|path| format!("\"disableAllHooks\" in {path} switches all hooks off"))
        .collect()
}
