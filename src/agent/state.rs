//! The files that an agent keeps about itself, as `agent run` treats them.
//!
//! Three sorts. What others need while it runs, and nothing obeys, is passed: credentials. What it only writes down is held like all else,
//! and committed by itself at the end: transcripts, histories, counters. All else is held until a person decides: settings, hooks, plugins,
//! MCP servers, instructions, memory, programs, and databases, in which nobody sees what they are. An agent that is held could plant there
//! what later runs, or is believed, outside.
//!
//! Sources: the agents' own documentation of their directories, and what their releases wrote in a run (tests/agents-reach).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use super::known::Agent;
use super::surroundings::{Surroundings, below};
use crate::fs::AbsPath;

/// The files of an agent that `agent run` does not leave to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The paths of its credentials.
    pub credentials: Vec<AbsPath>,
    /// The paths that stay real, where they exist: these among them.
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
        let facts = &agent.facts().state;
        let directory = (facts.directory)(here);
        let globs = |names: &[&str]| -> Vec<String> { names.iter().filter_map(|name| glob(&directory, name)).collect() };
        let is_conversation = |name: &&&str| CONVERSATIONS.iter().any(|part| name.contains(part));
        let made: Vec<&str> = facts.records.iter().filter(is_conversation).copied().collect();
        let (mut records, mut of_conversations) = (globs(facts.records), Vec::new());
        if let Some(of) = &facts.conversations {
            records.extend(glob(&here.home, of.in_home));
            // The transcripts of this project alone: the agent reads those of others back there.
            let transcripts = [cwd, &here.project].into_iter().flat_map(of.transcripts);
            records.extend(transcripts.filter_map(|name| glob(&directory, &name)));
            let real = AbsPath::parse(real(&directory).into_os_string().into_encoded_bytes()).unwrap_or(directory.clone());
            of_conversations.extend(of.beside.iter().map(|name| below(&real, name)));
        }
        let paths = |names: &[&str]| -> Vec<AbsPath> { names.iter().map(|name| below(&directory, name)).collect() };
        let credentials = paths(facts.credentials);
        let pass = [credentials.clone(), paths(facts.pass)].concat();
        Self { credentials, pass, records, made: globs(&made), of_conversations }
    }
}

/// A glob of what is in a directory by its real path, as changes have it: a home or an agent's directory may be reached by a link.
fn glob(directory: &AbsPath, name: &str) -> Option<String> {
    Some(format!("{}/{name}", globset::escape(real(directory).to_str()?)))
}

fn real(directory: &AbsPath) -> PathBuf {
    directory.as_path().canonicalize().unwrap_or_else(|_| directory.as_path().to_path_buf())
}

/// Parts of the globs of conversations, of whatever project: which one it is of, their paths do not tell.
const CONVERSATIONS: [&str; 5] = ["sessions/", "session-state/", "/chats/", "/checkpoints/", "/logs/"];

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
/// Beginnings of such names. What is cached is fetched anew when an agent starts.
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
    // Of records and settings side by side only the members that are known to be records are one.
    let is_mixed = Agent::ALL.iter().any(|agent| agent.state.mixed.iter().any(|mixed| mixed.as_bytes() == name));
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
        let moved = |name: &str| (name == "CLAUDE_CONFIG_DIR").then(|| "/c[1]".into());
        let here = Surroundings { home, project, variable: &moved };
        let cwd = AbsPath::parse("/p/My_dir.x").unwrap();
        let claude = State::of(Agent::of("claude").unwrap(), &here, &cwd);
        assert_eq!(claude.pass[0].to_string(), "/c[1]/.credentials.json");
        for key in ["-p", "-p-My-dir-x"] {
            assert!(claude.made.is_empty(), "{:?}", claude.made);
            assert!(claude.records.contains(&format!("/c[[]1[]]/projects/{key}/**/*.jsonl")), "{:?}", claude.records);
        }
        let opencode = State::of(Agent::of("opencode").unwrap(), &here, &cwd);
        let gemini = State::of(Agent::of("gemini").unwrap(), &here, &cwd);
        assert_eq!(gemini.made[0], "/h/.gemini/tmp/*/chats/**");
        assert_eq!(opencode.pass[0].to_string(), "/h/.local/share/opencode/auth.json");
    }
}
