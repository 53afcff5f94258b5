//! The keys of the settings, and the key most like an unknown one.

use super::wrong::unknown_key;
use crate::error::Error;

/// The agents that may have a table of their own.
const AGENTS: [&str; 6] = ["claude", "codex", "gemini", "copilot", "opencode", "pi"];

/// Every key that the file may have. NAME is any word; below `agent`, one of [`AGENTS`].
const KEYS: [&str; 34] = [
    "store.path",
    "store.warn_size",
    "capture.also",
    "capture.pass",
    "capture.hide",
    "capture.caches",
    "capture.keep_before",
    "checkpoint.max_files",
    "checkpoint.max_size",
    "checkpoint.on_limit",
    "commit.deny",
    "commit.minor",
    "agent.commit",
    "agent.keep",
    "agent.byproducts",
    "agent.NAME.pass",
    "agent.NAME.records",
    "retention.keep",
    "retention.older_than",
    "retention.discarded",
    "snapshot.keep",
    "snapshot.max_size",
    "snapshot.max_files",
    "steps.keep",
    "steps.max_size",
    "remote.ssh",
    "remote.timeout",
    "remotes.NAME.store",
    "remotes.NAME.sudo",
    "output.paths",
    "diff.pager",
    "diff.tool",
    "color",
    "pager",
];

/// Refuses the first key that is not one of [`KEYS`].
pub fn check_keys(table: &toml::Table, above: &str, path: &str) -> Result<(), Error> {
    for (name, value) in table {
        // Machines may have any name.
        let is_name = above == "remotes" || above == "agent" && AGENTS.contains(&&**name) && value.is_table();
        let name = if is_name { "NAME" } else { name };
        let key = if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") };
        if KEYS.contains(&&*key) {
            continue;
        }
        let is_table = KEYS.iter().any(|known| known.strip_prefix(&*key).is_some_and(|rest| rest.starts_with('.')));
        match value {
            // In an unknown table, a key is reported: that has a nearest known one.
            toml::Value::Table(below) if is_table || !below.is_empty() => check_keys(below, &key, path)?,
            // A wrong type is reported elsewhere, with its line.
            _ if is_table => {}
            _ => {
                let near = KEYS.into_iter().min_by_key(|known| unlikeness(known, &key)).unwrap_or_default();
                return Err(unknown_key(path, &key, near));
            }
        }
    }
    Ok(())
}

/// The distance of a known key from an unknown one: as a whole, or of their last parts alone.
fn unlikeness(known: &str, key: &str) -> usize {
    let last = |text: &str| text.rsplit('.').next().map(str::to_owned).unwrap_or_default();
    edits(known, key).min(edits(&last(known), &last(key)) + 1)
}

/// The number of letters to insert, remove or replace that makes one word of the other: Levenshtein's distance, a row of the table at a
/// time (Wagner and Fischer, 1974).
pub fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let best = (diagonal + usize::from(x != *y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], best);
        }
    }
    row[b.len()]
}
