//! The files that an agent keeps about itself, as `agent run` treats them.
//!
//! Three sorts. What others need while it runs, and nothing obeys, is passed: credentials. What it only writes down is held like all else,
//! and committed by itself at the end: transcripts, histories, counters. All else is held until a person decides: settings, hooks, plugins,
//! MCP servers, instructions, memory, programs. An agent that is held could plant there what later runs, or is believed, outside.
//!
//! Sources: the agents' own documentation of their directories, and what their releases wrote in a run (tests/agents-reach).

use std::collections::BTreeMap;

use serde_json::Value;

use super::known::Agent;
use super::settings::places::{Surroundings, below};
use crate::fs::path::AbsPath;

/// The files of an agent that `agent run` does not leave to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The paths that stay real, where they exist.
    pub pass: Vec<AbsPath>,
    /// Globs of the files that are committed by themselves at the end.
    pub records: Vec<String>,
}

impl State {
    /// recant's own list for an agent.
    pub fn of(agent: Agent, here: &Surroundings<'_>) -> Self {
        let (directory, pass, records): (AbsPath, &[&str], &[&str]) = match agent {
            Agent::Claude => (
                here.home_of(agent),
                &[".credentials.json", "statsig", "telemetry"],
                // Memory lies between the transcripts, and is obeyed: hence no directory here.
                &[
                    ".credentials.json",
                    ".claude.json*",
                    "history.jsonl",
                    "projects/**/*.jsonl",
                    "projects/**/*.meta.json",
                    "file-history/**",
                    "sessions/**",
                    "tasks/**",
                    "todos/**",
                    "debug/**",
                    "backups/**",
                    "stats-cache.json",
                ],
            ),
            Agent::Codex => (
                here.home_of(agent),
                &["auth.json", "log"],
                &[
                    "auth.json",
                    "log/**",
                    "history.jsonl",
                    "sessions/**",
                    "archived_sessions/**",
                    "session_index.jsonl",
                    "*.sqlite*",
                    "models_cache.json",
                    "version.json",
                    "installation_id",
                ],
            ),
            Agent::Gemini => (
                here.home_of(agent),
                &["oauth_creds.json", "google_accounts.json", "mcp-oauth-tokens.json"],
                // Below tmp it also keeps programs that it runs.
                &[
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
            ),
            Agent::Copilot => (
                here.home_of(agent),
                &[],
                &[
                    "session-state/**",
                    "history-session-state/**",
                    "logs/**",
                    "command-history-state.json",
                    "session-store.db*",
                    "data.db*",
                ],
            ),
            Agent::Opencode => (
                data(here, "opencode"),
                &["auth.json", "mcp-auth.json"],
                &["auth.json", "mcp-auth.json", "storage/**", "log/**", "opencode*.db*"],
            ),
            Agent::Pi => (here.home_of(agent), &["auth.json"], &["auth.json", "sessions/**"]),
        };
        let glob = |directory: &AbsPath, name: &str| {
            let directory = directory.as_path().to_str().map(globset::escape);
            directory.map(|directory| format!("{directory}/{name}"))
        };
        let mut globs: Vec<String> = records.iter().filter_map(|name| glob(&directory, name)).collect();
        match agent {
            // Outside of its directory, but where a variable names that.
            Agent::Claude => globs.extend(glob(&here.home, ".claude.json*")),
            Agent::Opencode => globs.extend(glob(&variable_or(here, "XDG_STATE_HOME", ".local/state"), "opencode/**")),
            _ => {}
        }
        Self { pass: pass.iter().map(|name| below(&directory, name)).collect(), records: globs }
    }
}

fn data(here: &Surroundings<'_>, name: &str) -> AbsPath {
    below(&variable_or(here, "XDG_DATA_HOME", ".local/share"), name)
}

fn variable_or(here: &Surroundings<'_>, variable: &str, usual: &str) -> AbsPath {
    (here.directory)(variable).unwrap_or_else(|| below(&here.home, usual))
}

/// Members of JSON files of state that an agent obeys, or that a person granted it.
const OBEYED: [&str; 16] = [
    "allowedTools",
    "apiKeyHelper",
    "bypassPermissionsModeAccepted",
    "customApiKeyResponses",
    "disabledMcpjsonServers",
    "enableAllProjectMcpServers",
    "enabledMcpjsonServers",
    "env",
    "hasClaudeMdExternalIncludesApproved",
    "hasTrustDialogAccepted",
    "hasTrustDialogHooksAccepted",
    "hooks",
    "mcpContextUris",
    "mcpServers",
    "permissions",
    "trustedFolders",
];

/// The first member, in the order of their paths, that an agent obeys and that differs between two contents of a file; `None` if there is
/// none. Content that is no JSON has none. What is missing is the same as what is empty or false.
pub fn obeyed_change(before: &[u8], after: &[u8]) -> Option<String> {
    let read = |bytes: &[u8]| {
        let mut found = BTreeMap::new();
        if let Ok(value) = serde_json::from_slice::<Value>(bytes) {
            gather("", &value, &mut found);
        }
        found
    };
    let (before, after) = (read(before), read(after));
    let all = before.keys().chain(after.keys());
    all.filter(|member| before.get(*member) != after.get(*member)).min().cloned()
}

fn gather(above: &str, value: &Value, found: &mut BTreeMap<String, Value>) {
    let Value::Object(members) = value else { return };
    for (name, value) in members {
        let path = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        if OBEYED.contains(&&**name) {
            if !is_nothing(value) {
                found.insert(path, value.clone());
            }
        } else {
            gather(&path, value, found);
        }
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_nothing),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_is_obeyed_is_found_wherever_it_stands() {
        let of = |before: &str, after: &str| obeyed_change(before.as_bytes(), after.as_bytes());
        let plain = r#"{"numStartups": 3, "projects": {"/p": {"lastCost": 1}}}"#;
        assert_eq!(of(plain, r#"{"numStartups": 4, "projects": {"/p": {"lastCost": 2}}}"#), None);
        assert_eq!(of(plain, r#"{"mcpServers": {"x": {"command": "sh"}}}"#), Some("mcpServers".into()));
        let trusted = r#"{"projects": {"/p": {"hasTrustDialogAccepted": true}}}"#;
        assert_eq!(of(plain, trusted), Some("projects./p.hasTrustDialogAccepted".into()));
        assert_eq!(of(trusted, plain), Some("projects./p.hasTrustDialogAccepted".into()));
        assert_eq!(
            of(plain, r#"{"projects": {"/q": {"allowedTools": [], "mcpServers": {}, "hasTrustDialogAccepted": false}}}"#),
            None
        );
        assert_eq!(of("", "no JSON"), None);
        // A file that is no JSON any more takes away what was obeyed.
        assert_eq!(of(trusted, "no JSON"), Some("projects./p.hasTrustDialogAccepted".into()));
    }

    #[test]
    fn a_variable_moves_an_agent_s_files() {
        let home = AbsPath::parse("/h").unwrap();
        let project = AbsPath::parse("/p").unwrap();
        let moved = |name: &str| (name == "CLAUDE_CONFIG_DIR").then(|| AbsPath::parse("/c[1]").unwrap());
        let here = Surroundings { home, project, directory: &moved };
        let claude = State::of(Agent::Claude, &here);
        assert_eq!(claude.pass[0].to_string(), "/c[1]/.credentials.json");
        assert!(claude.records.contains(&"/c[[]1[]]/projects/**/*.jsonl".to_owned()), "{:?}", claude.records);
        let opencode = State::of(Agent::Opencode, &here);
        assert_eq!(opencode.pass[0].to_string(), "/h/.local/share/opencode/auth.json");
    }
}
