//! `seen`, in a session's directory: how far each user has looked at it. A hint, not synced and not exported: if it is lost, a commit asks once
//! more.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::open_session::{Session, read_small};
use crate::error::Error;
use crate::fs::Fs;
use crate::tree::json;

const FILE: &[u8] = b"seen";

/// The bytes that it has at most.
const LIMIT: u64 = 64 << 10;

/// The state that a session showed: uppers of steps do not change, so these numbers tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Look {
    head: u32,
    lines: u64,
    generation: u64,
}

/// By the number of the user.
type Looks = BTreeMap<u32, Look>;

/// A step that an agent or another user made since the user looked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unseen {
    pub step: u32,
    pub by: String,
    /// The start of its command.
    pub command: String,
}

impl Session {
    fn look(&self) -> Look {
        let header = &self.header;
        Look { head: header.head(), lines: header.lines, generation: header.generation }
    }

    fn looks(&self) -> Looks {
        let bytes = read_small(self.dir.at(FILE), LIMIT).ok().flatten();
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Notes that this user has looked at what the session holds now. Needs no lock: it is replaced whole.
    ///
    /// # Errors
    /// A system call failed.
    pub fn note_seen(&self, fs: &Fs) -> Result<(), Error> {
        let (mut looks, user) = (self.looks(), rustix::process::geteuid().as_raw());
        if looks.insert(user, self.look()) == Some(self.look()) {
            return Ok(());
        }
        Ok(fs.replace_at_once(self.dir.at(FILE), &json::line(&looks))?)
    }

    /// True if this user has looked at what the session holds now.
    pub fn is_seen(&self) -> bool {
        self.looks().get(&rustix::process::geteuid().as_raw()) == Some(&self.look())
    }

    /// The steps below the head that agents and other users made since this user looked, the oldest first.
    ///
    /// # Errors
    /// The steps cannot be read.
    pub fn unseen(&self) -> Result<Vec<Unseen>, Error> {
        let me = rustix::process::geteuid().as_raw();
        let seen = self.looks().get(&me).copied();
        if seen == Some(self.look()) {
            return Ok(Vec::new());
        }
        let header = &self.header;
        if header.steps.is_none() {
            let command = header.command.clone().unwrap_or_default();
            return Ok(header
                .by
                .iter()
                .map(|by| Unseen { step: header.head(), by: by.to_string(), command: command.clone() })
                .collect());
        }
        let (chain, head) = (header.chain(), seen.map_or(0, |seen| seen.head));
        let steps = self.steps()?.steps.into_iter().filter(|step| step.n > head && chain.contains(&step.n));
        let others = steps.filter(|step| step.command.by.is_some() || step.uid != me);
        let unseen = others.map(|step| Unseen {
            step: step.n,
            by: step.command.by.as_ref().map_or_else(|| format!("user {}", step.uid), |by| by.to_string()),
            command: step.command.called(),
        });
        Ok(unseen.collect())
    }
}
