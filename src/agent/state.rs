//! The files that an agent keeps about itself, as `agent run` treats them.
//!
//! Three sorts. What others need while it runs, and nothing obeys, is passed: credentials. What it only writes down is held like all else,
//! and committed by itself at the end: transcripts, histories, counters. All else is held until a person decides: settings, hooks, plugins,
//! MCP servers, instructions, memory, programs, and databases, in which nobody sees what they are. An agent that is held could plant there
//! what later runs, or is believed, outside.
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
    /// Globs of those that are one only if they were made: an agent reads an older conversation back, perhaps in another project.
    pub made: Vec<String>,
    /// Directories of what the agent keeps of a conversation beside its transcript, and reads back in it: there a record is a file that the
    /// conversation of a transcript has made.
    pub of_conversations: Vec<AbsPath>,
}

impl State {
    /// recant's own list for an agent that starts in the directory `cwd`.
    pub fn of(agent: Agent, here: &Surroundings<'_>, cwd: &AbsPath) -> Self {
        let (directory, pass, records): (AbsPath, &[&str], &[&str]) = match agent {
            Agent::Claude => (
                here.home_of(agent),
                &[".credentials.json", "statsig", "telemetry"],
                // Memory lies between the transcripts, and is obeyed. What belongs to a conversation is below.
                &[".credentials.json", ".claude.json", "history.jsonl", "stats-cache.json"],
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
                &["session-state/**", "history-session-state/**", "logs/**", "command-history-state.json"],
            ),
            Agent::Opencode => {
                (data(here, "opencode"), &["auth.json", "mcp-auth.json"], &["auth.json", "mcp-auth.json", "log/**"])
            }
            Agent::Pi => (here.home_of(agent), &["auth.json"], &["auth.json", "sessions/**"]),
        };
        // Changes have their real paths, and a home or an agent's directory may be reached by a link.
        let glob = |directory: &AbsPath, name: &str| {
            let real = directory.as_path().canonicalize().unwrap_or_else(|_| directory.as_path().to_path_buf());
            real.to_str().map(|real| format!("{}/{name}", globset::escape(real)))
        };
        let mut globs: Vec<String> = records.iter().filter_map(|name| glob(&directory, name)).collect();
        let is_conversation = |name: &&&str| CONVERSATIONS.iter().any(|part| name.contains(part));
        let made = records.iter().filter(is_conversation).filter_map(|name| glob(&directory, name)).collect();
        let mut of_conversations = Vec::new();
        if agent == Agent::Claude {
            // Outside of its directory, but where a variable names that.
            globs.extend(glob(&here.home, ".claude.json"));
            // The transcripts of this project alone: the agent reads those of others back there.
            for project in [cwd, &here.project] {
                let transcripts = format!("projects/{}/**", key(project));
                globs.extend(
                    ["*.jsonl", "*.meta.json"].iter().filter_map(|name| glob(&directory, &format!("{transcripts}/{name}"))),
                );
            }
            let real =
                directory.as_path().canonicalize().ok().and_then(|real| AbsPath::parse(real.as_os_str().as_encoded_bytes()).ok());
            let real = real.unwrap_or(directory.clone());
            of_conversations.extend(["file-history", "tasks", "todos"].map(|name| below(&real, name)));
        }
        Self { pass: pass.iter().map(|name| below(&directory, name)).collect(), records: globs, made, of_conversations }
    }
}

/// Parts of the globs of conversations, of whatever project: which one it is of, their paths do not tell.
const CONVERSATIONS: [&str; 5] = ["sessions/", "session-state/", "/chats/", "/checkpoints/", "/logs/"];

/// The name of Claude Code's directory for the transcripts of a project, as its releases write it.
fn key(project: &AbsPath) -> String {
    String::from_utf8_lossy(project.as_bytes()).chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

fn data(here: &Surroundings<'_>, name: &str) -> AbsPath {
    below(&variable_or(here, "XDG_DATA_HOME", ".local/share"), name)
}

fn variable_or(here: &Surroundings<'_>, variable: &str, usual: &str) -> AbsPath {
    (here.directory)(variable).unwrap_or_else(|| below(&here.home, usual))
}

/// Files in which an agent keeps records and settings side by side: of these only the members that are known to be records are one.
const MIXED: [&[u8]; 2] = [b".claude.json", b"state.json"];

/// Ends of the names of members that tell what happened: counters, times, and what was shown once.
const RECORDED_ENDS: [&str; 14] = [
    "At",
    "Cache",
    "Complete",
    "Completed",
    "Count",
    "Dismissed",
    "ID",
    "Id",
    "Migrated",
    "Seen",
    "Shown",
    "Startups",
    "Time",
    "Version",
];
/// Beginnings of such names. Claude Code fetches what is cached anew when it starts.
const RECORDED_STARTS: [&str; 9] =
    ["cached", "first", "hasCompleted", "hasReset", "hasSeen", "hasShown", "hasUsed", "history", "last"];

/// Parts of the names, in small letters, of what an agent obeys, or what a person granted it.
const OBEYED: [&str; 15] = [
    "accept",
    "allow",
    "apikey",
    "approv",
    "baseurl",
    "bypass",
    "contexturi",
    "enable",
    "environment",
    "grant",
    "hook",
    "oauth",
    "permission",
    "server",
    "trust",
];

/// The reason why a change of a JSON file of state is not only a record: the first member, in the order of their paths, that an agent obeys,
/// or in a file of both sorts may obey, and that differs; or content that cannot be read, as others may read it. `None` if there is none.
/// What is missing is the same as what is empty or false.
pub fn obeyed_change(name: &[u8], before: &[u8], after: &[u8]) -> Option<String> {
    let is_mixed = MIXED.contains(&name);
    let read = |bytes: &[u8]| -> Option<BTreeMap<String, Value>> {
        let mut found = BTreeMap::new();
        if !bytes.is_empty() {
            gather("", &serde_json::from_slice::<Value>(bytes).ok()?, is_mixed, &mut found);
        }
        Some(found)
    };
    let Some(after) = read(after) else { return Some("what cannot be read as JSON".into()) };
    // A file that was no JSON before had nothing that was obeyed.
    let before = read(before).unwrap_or_default();
    let all = before.keys().chain(after.keys());
    all.filter(|member| before.get(*member) != after.get(*member)).min().cloned()
}

/// Gathers what may be obeyed.
fn gather(above: &str, value: &Value, is_mixed: bool, found: &mut BTreeMap<String, Value>) {
    let Value::Object(members) = value else { return };
    for (name, value) in members {
        let path = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        match value {
            _ if is_nothing(value) => {}
            _ if is_obeyed(name) => drop(found.insert(path, value.clone())),
            _ if is_recorded(name) => {}
            Value::Object(_) => gather(&path, value, is_mixed, found),
            Value::Number(_) => {}
            _ if is_mixed => drop(found.insert(path, value.clone())),
            _ => {}
        }
    }
}

/// True for the name of what an agent obeys. A project's path is none.
fn is_obeyed(name: &str) -> bool {
    let small = name.to_ascii_lowercase().replace(['_', '-'], "");
    name == "env" || !name.starts_with('/') && OBEYED.iter().any(|part| small.contains(part))
}

fn is_recorded(name: &str) -> bool {
    RECORDED_ENDS.iter().any(|end| name.ends_with(end)) || RECORDED_STARTS.iter().any(|start| name.starts_with(start))
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
        let of = |before: &str, after: &str| obeyed_change(b".claude.json", before.as_bytes(), after.as_bytes());
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
        assert_eq!((of("", ""), of("no JSON", plain)), (None, None));
        // What is not known to be a record is none, in a file of both sorts.
        let new = r#"{"theme": "dark"}"#;
        assert_eq!((of(plain, new), obeyed_change(b"x.json", b"", new.as_bytes())), (Some("theme".into()), None));
        let recorded = r#"{"firstStartTime": "t", "userID": "u", "tipsHistory": {"a": 3}, "hasCompletedOnboarding": true,
            "cachedGates": {"x": true}, "pluginUsage": {"y": {"usageCount": 2}}}"#;
        assert_eq!(of("", recorded), None);
        assert_eq!(of("", r#"{"lastTrustedAt": 3}"#), Some("lastTrustedAt".into()));
        // Another reader may make something of what is no JSON here.
        for odd in ["no JSON", "\u{feff}{}", "{\"a\":\"\\ud800\"}", "{\"a\":1e999}", "{/*c*/}"] {
            assert_eq!(of("", odd), Some("what cannot be read as JSON".into()), "{odd}");
        }
    }

    #[test]
    fn a_variable_moves_an_agent_s_files() {
        let home = AbsPath::parse("/h").unwrap();
        let project = AbsPath::parse("/p").unwrap();
        let moved = |name: &str| (name == "CLAUDE_CONFIG_DIR").then(|| AbsPath::parse("/c[1]").unwrap());
        let here = Surroundings { home, project, directory: &moved };
        let cwd = AbsPath::parse("/p/My_dir.x").unwrap();
        let claude = State::of(Agent::Claude, &here, &cwd);
        assert_eq!(claude.pass[0].to_string(), "/c[1]/.credentials.json");
        for key in ["-p", "-p-My-dir-x"] {
            assert!(claude.made.is_empty(), "{:?}", claude.made);
            assert!(claude.records.contains(&format!("/c[[]1[]]/projects/{key}/**/*.jsonl")), "{:?}", claude.records);
        }
        let opencode = State::of(Agent::Opencode, &here, &cwd);
        let gemini = State::of(Agent::Gemini, &here, &cwd);
        assert_eq!(gemini.made[0], "/h/.gemini/tmp/*/chats/**");
        assert_eq!(opencode.pass[0].to_string(), "/h/.local/share/opencode/auth.json");
    }
}
