//! `person`, in the store: where the person whose store it is has settings and home. Known from the calls by which
//! a person makes the store or changes something. An agent can name other settings by its environment: what those allow it does not count.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::busy;
use super::open_session::read_small;
use super::store::Store;
use crate::error::Error;
use crate::fs::{AbsPath, Fs, Lock};
use crate::tree::json;

const FILE: &[u8] = b"person";
const LOCK: &[u8] = b"policy";
/// The most bytes of the file.
const LIMIT: u64 = 64 << 10;
/// The longest wait for another agent's commit.
const PATIENCE: Duration = Duration::from_secs(10);

/// The places of a person's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// The file.
    pub settings: AbsPath,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<AbsPath>,
}

impl Store {
    /// The person whose store it is; `None` if that was never noted, or the file is not whole.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn person(&self) -> Result<Option<Person>, Error> {
        let bytes = read_small(self.dir.at(FILE), LIMIT)?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    /// Notes the person whose store it is. Not durable: after a power cut the next call notes it.
    ///
    /// # Errors
    /// A system call failed.
    pub fn note_person(&self, fs: &Fs, person: &Person) -> Result<(), Error> {
        Ok(fs.replace_at_once(self.dir.at(FILE), &json::line(person))?)
    }

    /// Takes the lock under which commits by a person's policy are counted: two at once would both have room.
    ///
    /// # Errors
    /// Another one has it for too long.
    pub fn policy_lock(&self, fs: &Fs, slow: impl FnOnce()) -> Result<Lock, Error> {
        let lock = Lock::wait(self.dir.at(LOCK), PATIENCE, slow, |at| Lock::try_take_file(fs, at))?;
        lock.ok_or_else(|| busy(format!("the policy of {}", self.path)))
    }
}
