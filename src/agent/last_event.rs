//! The last event of each agent that reached recant, as the hook notes it: what tells that hooks fire.
//!
//! In the store: `agents/seen/<agent>.json`. A hint: a power cut may lose it, and what cannot be read counts as none.

use serde::{Deserialize, Serialize};

use super::directory::directory;
use super::known::Agent;
use crate::error::Error;
use crate::fs::{AbsPath, Fs, Time};
use crate::session::{Store, read_small};
use crate::tree::json;

/// An event of an agent that reached recant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    #[serde(with = "crate::tree::time")]
    pub time: Time,
    /// The event, in the agent's own word.
    pub event: String,
    /// The directory that the agent worked in.
    pub directory: AbsPath,
    /// The version of the recant that was called.
    pub version: String,
    /// The error of recant, if it had one.
    pub error: Option<String>,
}

/// More bytes than a note has.
const LIMIT: u64 = 64 << 10;

impl Seen {
    /// Replaces the note about `agent`'s last event. Hooks may write at the same time: one of their notes stays, whole. Not durable.
    pub fn write(&self, fs: &Fs, store: &Store, agent: Agent) -> Result<(), Error> {
        let dir = directory(fs, store, DIRECTORY)?;
        Ok(fs.replace_at_once(dir.at(&name(agent)), &json::text(self))?)
    }

    /// The last event of `agent`; `None` if none was ever seen.
    pub fn read(store: &Store, agent: Agent) -> Option<Self> {
        let dir = store.dir.open_below(DIRECTORY).ok()?;
        let bytes = read_small(dir.at(&name(agent)), LIMIT).ok()??;
        serde_json::from_slice(&bytes).ok()
    }
}

const DIRECTORY: &[u8] = b"agents/seen";

fn name(agent: Agent) -> Vec<u8> {
    format!("{}.json", agent.word()).into_bytes()
}

#[cfg(test)]
mod tests {
    use crate::agent::last_event::*;

    #[test]
    fn the_last_event_of_each_agent_is_kept_and_a_torn_note_is_none() {
        let temp = tempfile::tempdir().unwrap();
        let path = AbsPath::parse(temp.path().join("store").as_os_str().as_encoded_bytes()).unwrap();
        let fs = Fs::new();
        let store = Store::create(&fs, &path).unwrap();
        assert_eq!(Seen::read(&store, Agent::of("claude").unwrap()), None);
        let seen = |event: &str| Seen {
            time: Time { s: 1, ns: 2 },
            event: event.into(),
            directory: AbsPath::parse("/p").unwrap(),
            version: "0.1.0".into(),
            error: None,
        };
        for event in ["SessionStart", "PreToolUse"] {
            seen(event).write(&fs, &store, Agent::of("claude").unwrap()).unwrap();
        }
        assert_eq!(Seen::read(&store, Agent::of("claude").unwrap()), Some(seen("PreToolUse")));
        assert_eq!(Seen::read(&store, Agent::of("codex").unwrap()), None);
        let dir = store.dir.open_below(DIRECTORY).unwrap();
        assert_eq!(dir.names().unwrap(), [b"claude.json"]);
        fs.replace(dir.at(b"claude.json"), b"{\"time\":").unwrap();
        assert_eq!(Seen::read(&store, Agent::of("claude").unwrap()), None);
    }
}
