//! The commands that run in a session at once: the one that began the run, which its record tells, and those that joined it: a file each
//! while the run is under way, `beside.<n>.json`. At its end they are told by the step that the run becomes. Each that joined, and each
//! service, shows by `present.<n>` or `present.<name>` that it is there ([`Presence`]).

use super::error::serves_already;
use super::open_session::{Session, read_small};
use super::run_record::{CommandRecord, Ending, Run, Stopped};
use super::under_way::UnderWay;
use crate::error::Error;
use crate::fs::{Fs, Presence, Seen, is_present};
use crate::tree::json;
use serde::{Deserialize, Serialize};

const PREFIX: &[u8] = b"beside.";
const PRESENT: &[u8] = b"present.";
const REVIEWED: &[u8] = b"reviewed";
/// The name of the socket at which commands join a run.
pub const SOCKET: &[u8] = b"join";

/// The end of a service, as its recant tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceEnd {
    pub ending: Ending,
    pub stopped: Option<Stopped>,
}

impl Session {
    /// Notes a command that joins; returns its number, from 1 on.
    ///
    /// # Errors
    /// A system call failed.
    pub fn note_beside(&self, fs: &Fs, beside: &CommandRecord) -> Result<u32, Error> {
        let known = u32::try_from(self.names_with(&[PREFIX])?.len()).unwrap_or(0);
        for n in known + 1.. {
            let name = name(n);
            match fs.create(self.dir.at(&name), 0o600) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                made => {
                    made?;
                    self.note_beside_at(fs, n, beside)?;
                    return Ok(n);
                }
            }
        }
        unreachable!("no directory has so many names")
    }

    /// Notes anew what is known of a command that joined, unless it is told by a step by now.
    ///
    /// # Errors
    /// A system call failed.
    pub fn note_beside_at(&self, fs: &Fs, n: u32, beside: &CommandRecord) -> Result<(), Error> {
        match self.dir.at(&name(n)).stat()? {
            Some(_) => Ok(fs.replace_at_once(self.dir.at(&name(n)), &json::text(beside))?),
            None => Ok(()),
        }
    }

    /// Forgets a command that did not start.
    ///
    /// # Errors
    /// A system call failed.
    pub fn forget_beside_at(&self, fs: &Fs, n: u32) -> Result<(), Error> {
        Ok(fs.unlink_if_there(self.dir.at(&name(n)))?)
    }

    /// Shows that this process tends the command of that number. `None` only if another one does.
    ///
    /// # Errors
    /// A system call failed.
    pub fn show_presence(&self, fs: &Fs, n: u32) -> Result<Option<Presence>, Error> {
        Ok(Presence::show(fs, self.dir.at(&present(n.to_string().as_bytes())))?)
    }

    /// Shows that this process tends the service of that name.
    ///
    /// # Errors
    /// There is one already; a system call failed.
    pub fn serve(&self, fs: &Fs, name: &str) -> Result<Presence, Error> {
        let shown = Presence::show(fs, self.dir.at(&present(name.as_bytes())))?;
        let running = || self.under_way().ok().and_then(|all| all.into_iter().find(|one| one.service() == Some(name)));
        shown.ok_or_else(|| serves_already(self.id(), name, running().as_ref()))
    }

    /// The presence of a service; `None` if it is not there.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn service(&self, name: &str) -> Result<Option<Seen>, Error> {
        Ok(Seen::look(self.dir.at(&present(name.as_bytes())))?)
    }

    /// Shows that a person looks at this session on a screen, and may be deciding about it. `None` if another screen shows that.
    ///
    /// # Errors
    /// A system call failed.
    pub fn show_review(&self, fs: &Fs) -> Result<Option<Presence>, Error> {
        Ok(Presence::show(fs, self.dir.at(REVIEWED))?)
    }

    /// True while another process shows so. What cannot be read is shown by nobody.
    pub fn is_reviewed(&self) -> bool {
        Seen::look(self.dir.at(REVIEWED)).is_ok_and(|seen| seen.is_some())
    }

    /// The place of a service's output.
    pub fn output_name(name: &str) -> Vec<u8> {
        [b"output.", name.as_bytes()].concat()
    }

    /// The record of the run that is under way; `None` if there is none, or it cannot be read.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn run_under_way(&self) -> Result<Option<Run>, Error> {
        if self.header.lines > 0 { self.going_on() } else { self.run() }
    }

    /// Notes how the first command of a run ended, while others go on in it.
    ///
    /// # Errors
    /// A system call failed.
    pub fn note_first_ended(&self, fs: &Fs, record: &Run) -> Result<(), Error> {
        let name = if self.header.lines > 0 { self.header.going_on() } else { b"run.json".to_vec() };
        Ok(fs.replace_at_once(self.dir.at(&name), &json::text(record))?)
    }

    /// The commands that run in it now, the first one first.
    ///
    /// # Errors
    /// The records cannot be read.
    pub fn under_way(&self) -> Result<Vec<UnderWay>, Error> {
        if !self.header.uncollected || !self.is_held()? {
            return Ok(Vec::new());
        }
        let first = self
            .run_under_way()?
            .filter(|run| run.command.ending.is_none())
            .map(|run| UnderWay { command: run.command, is_first: true });
        let mut found: Vec<UnderWay> = first.into_iter().collect();
        for (n, beside) in self.numbered()? {
            if self.is_there(n, &beside)? {
                found.push(UnderWay { command: beside, is_first: false });
            }
        }
        Ok(found)
    }

    fn is_there(&self, n: u32, beside: &CommandRecord) -> Result<bool, Error> {
        let word = beside.service.as_ref().map_or_else(|| n.to_string(), |service| service.name.clone());
        Ok(beside.ending.is_none() && is_present(self.dir.at(&present(word.as_bytes())))?)
    }

    /// The commands that joined the run, in their order. One whose note a power cut took is left out.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn beside(&self) -> Result<Vec<CommandRecord>, Error> {
        Ok(self.numbered()?.into_iter().map(|(_, beside)| beside).collect())
    }

    fn numbered(&self) -> Result<Vec<(u32, CommandRecord)>, Error> {
        let mut found = Vec::new();
        for name in self.names_with(&[PREFIX])? {
            let number = || std::str::from_utf8(name.strip_prefix(PREFIX)?.strip_suffix(b".json")?).ok()?.parse::<u32>().ok();
            let text = read_small(self.dir.at(&name), 16 << 20)?;
            let read = text.and_then(|text| serde_json::from_slice(&text).ok());
            found.extend(number().zip(read));
        }
        found.sort_by_key(|(n, _): &(u32, CommandRecord)| *n);
        Ok(found)
    }

    /// Forgets them, and what only a run under way needs.
    ///
    /// # Errors
    /// A system call failed.
    pub fn forget_beside(&self, fs: &Fs) -> Result<(), Error> {
        for name in self.names_with(&[PREFIX, PRESENT])? {
            fs.unlink_if_there(self.dir.at(&name))?;
        }
        Ok(fs.unlink_if_there(self.dir.at(SOCKET))?)
    }

    fn names_with(&self, prefixes: &[&[u8]]) -> Result<Vec<Vec<u8>>, Error> {
        let has = |name: &Vec<u8>| prefixes.iter().any(|prefix| name.starts_with(prefix));
        Ok(self.dir.names()?.into_iter().filter(has).collect())
    }
}

fn name(n: u32) -> Vec<u8> {
    [PREFIX, n.to_string().as_bytes(), b".json"].concat()
}

fn present(word: &[u8]) -> Vec<u8> {
    [PRESENT, word].concat()
}
