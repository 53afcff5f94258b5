//! The agent that had something done, and the pointer from an agent's session to its present turn.
//!
//! This room never reads the environment: the caller finds out, and it is kept in the open store ([`Store::by`](super::store::Store::by)).

use std::fmt;
use std::io::Read;

use serde::{Deserialize, Serialize};

use crate::error::{At, Error};
use crate::fs::{AbsPath, Dir, Entry, Fs, Shown};
use crate::tree::{Hash, json};

/// The agent that did something; nothing is recorded of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActingAgent {
    /// The agent's word, as `claude`; any other text that RECANT_AGENT held.
    pub agent: String,
    /// The id that the agent gave to its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
}

/// The most characters of an agent's word, and of its session's id.
pub const MOST: usize = 100;

impl ActingAgent {
    /// True if it has no more characters than those of [`MOST`].
    pub fn is_short(&self) -> bool {
        let is_short = |text: &String| text.chars().count() <= MOST;
        is_short(&self.agent) && self.session.as_ref().is_none_or(is_short)
    }
}

/// The agent's word and the turn, as `claude 7`.
impl fmt::Display for ActingAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown(self.agent.as_bytes()).fmt(f)?;
        self.turn.map_or(Ok(()), |turn| write!(f, " {turn}"))
    }
}

/// The turn in which an agent's session is: `agents/sessions/<agent>-<16 hex digits>.json` in the store. Its hooks write it, and commands
/// that know the session's id alone find the turn by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pointer {
    pub agent: String,
    /// The id that the agent gave to its session.
    pub session: String,
    #[serde(rename = "folder")]
    pub directory: AbsPath,
    /// The number of the turn, in that directory.
    pub turn: u64,
}

/// The directories in the store that the file lies in.
const AGENTS: &[u8] = b"agents";
const SESSIONS: &[u8] = b"sessions";
/// The most bytes that a pointer has.
const LIMIT: u64 = 64 << 10;

impl Pointer {
    /// Reads the pointer of an agent's session from the store's directory; `None` if there is none, or none that is whole: it is a hint.
    pub fn read(store: &Dir, agent: &str, session: &str) -> Option<Self> {
        let path = [AGENTS, SESSIONS, &name(agent, session)?].join(&b'/');
        let mut bytes = Vec::new();
        store.open_file_below(&path).ok()?.take(LIMIT).read_to_end(&mut bytes).ok()?;
        let pointer: Self = serde_json::from_slice(&bytes).ok()?;
        (pointer.agent == agent && pointer.session == session).then_some(pointer)
    }

    /// Writes it in place of an older one, as hooks may at the same time, not durably: after a power cut the agent's session is over, too.
    ///
    /// # Errors
    /// The agent's word cannot stand in a file's name; a system call failed.
    pub fn write(&self, fs: &Fs, store: &Dir) -> Result<(), Error> {
        let unfit = || std::io::Error::from(std::io::ErrorKind::InvalidInput);
        let name = name(&self.agent, &self.session).ok_or_else(unfit).at("name the session of", &self.agent)?;
        let agents = make_directory(fs, store.at(AGENTS))?;
        let sessions = make_directory(fs, agents.at(SESSIONS))?;
        Ok(fs.replace_at_once(sessions.at(&name), &json::line(self))?)
    }
}

/// The name of the file; `None` if the agent's word is none that can stand in one.
fn name(agent: &str, session: &str) -> Option<Vec<u8>> {
    let fit = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let plain = !agent.is_empty() && agent.len() <= 64 && agent.bytes().all(fit);
    plain.then(|| format!("{agent}-{:.16}.json", Hash::of(session.as_bytes()).to_string()).into_bytes())
}

fn make_directory(fs: &Fs, at: Entry<'_>) -> Result<Dir, Error> {
    match fs.mkdir(at, 0o700) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error.into()),
        _ => Ok(at.open_dir()?),
    }
}

#[cfg(test)]
mod tests {
    use crate::session::acting_agent::*;

    #[test]
    fn a_pointer_is_found_by_the_agent_and_its_session_alone() {
        let directory = tempfile::tempdir().unwrap();
        let (fs, store) = (Fs::new(), Dir::open(directory.path()).unwrap());
        let folder = AbsPath::parse(b"/p").unwrap();
        let mut pointer = Pointer { agent: "claude".into(), session: "../../x".into(), directory: folder, turn: 7 };
        assert_eq!(Pointer::read(&store, "claude", "../../x"), None);
        pointer.write(&fs, &store).unwrap();
        assert_eq!(Pointer::read(&store, "claude", "../../x"), Some(pointer.clone()));
        pointer.turn = 8;
        pointer.write(&fs, &store).unwrap();
        assert_eq!(Pointer::read(&store, "claude", "../../x").map(|found| found.turn), Some(8));
        for (agent, session) in [("codex", "../../x"), ("claude", "y"), ("", ""), ("../claude", "../../x")] {
            assert_eq!(Pointer::read(&store, agent, session), None, "{agent} {session}");
        }
        let files: Vec<_> =
            std::fs::read_dir(directory.path().join("agents/sessions")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(files.len(), 1, "{files:?}");
        assert!(
            files[0].to_str().unwrap().starts_with("claude-") && files[0].len() == "claude-0123456789abcdef.json".len(),
            "{files:?}"
        );
    }

    #[test]
    fn an_agent_of_which_no_file_can_be_named_gets_no_pointer() {
        let directory = tempfile::tempdir().unwrap();
        let (fs, store) = (Fs::new(), Dir::open(directory.path()).unwrap());
        let folder = AbsPath::parse(b"/p").unwrap();
        let pointer = Pointer { agent: "../claude".into(), session: "x".into(), directory: folder, turn: 7 };
        assert!(pointer.write(&fs, &store).is_err());
    }
}
