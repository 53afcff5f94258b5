//! Acts: what people and agents do to sessions, in the order in which it was done.
//!
//! **I20** Every act has a number; a later act has a higher one, whatever the clock says. It is drawn before the act's first effect and
//! sealed with the act, in the session's header; the log's line of the act has it, too. An act that comes to nothing leaves a gap.

use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::acting_agent::ActingAgent;
use super::error::busy;
use super::run_record::{boot_id, is_this_boot};
use crate::error::Error;
use crate::fs::{Dir, Fs, Lock};

/// The newest act on a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastAct {
    /// Its number, from 1 on.
    pub n: u64,
    /// The user who did it.
    pub uid: u32,
    /// The agent that did it; missing for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ActingAgent>,
    #[serde(flatten)]
    pub purpose: Purpose,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Purpose {
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub takes_back: Option<TakesBack>,
    /// The reason that was given for it: `-m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The globs of a person's policy by which an agent did it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policy: Vec<String>,
    /// The changes that it moved; missing where it was all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
}

/// Changes of a session, by their index in path order: ranges, both ends included.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Part(Vec<(u32, u32)>);

impl Part {
    /// Those of the indexes, in order.
    pub fn of(indexes: impl Iterator<Item = u32>) -> Self {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for index in indexes {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == index => *last = index,
                _ => ranges.push((index, index)),
            }
        }
        Self(ranges)
    }

    /// True if a change is one of them.
    pub fn has(&self, index: usize) -> bool {
        let after = self.0.partition_point(|(first, _)| *first as usize <= index);
        after > 0 && index <= self.0[after - 1].1 as usize
    }
}

/// The most bytes of a reason.
pub const REASON: usize = 500;

impl LastAct {
    /// True if `by`, as this user, did it: the same agent, or a person both times.
    pub fn is_own(&self, by: Option<&ActingAgent>) -> bool {
        let agent = |by: Option<&ActingAgent>| by.map(|by| (by.agent.clone(), by.session.clone()));
        self.uid == rustix::process::geteuid().as_raw() && agent(self.by.as_ref()) == agent(by)
    }

    /// True if `undo` did it.
    pub fn is_undo(&self) -> bool {
        matches!(self.purpose.takes_back, Some(TakesBack::Undoes(_)))
    }
}

/// The earlier act that an act takes back, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TakesBack {
    /// `undo` takes back an act.
    Undoes(u64),
    /// `redo` without an id takes back an undo.
    Redoes(u64),
}

impl TakesBack {
    pub fn n(self) -> u64 {
        match self {
            Self::Undoes(n) | Self::Redoes(n) => n,
        }
    }
}

/// The counter of a store, and who acts there.
#[derive(Debug)]
pub(super) struct Acts {
    store: Arc<Dir>,
    pub(super) by: Option<ActingAgent>,
    /// That of what is done next.
    pub(super) purpose: Box<Purpose>,
    /// True if what is done next belongs to an act on another session.
    pub(super) belongs: bool,
}

/// The counter's file: the boot in which it counts, and the number of the newest act.
const FILE: &[u8] = b"acts";

/// No store has so many acts: a higher number is none that was counted.
const MOST: u64 = 1 << 48;

/// A number that was counted to.
enum Counted {
    /// In this boot.
    Here(u64),
    /// In another one, whose last numbers may not have reached the disk.
    Elsewhere(u64),
}

/// The longest wait for the lock of the counter.
const PATIENCE: Duration = Duration::from_secs(10);

/// Takes the lock for giving an act its number, or a session its number or name, in the store's directory. Held for some ms.
pub(super) fn numbering(fs: &Fs, store: &Dir) -> Result<Lock, Error> {
    let at = store.at(b"numbering");
    let lock = Lock::wait(at, PATIENCE, || (), |at| Lock::try_take_file(fs, at))?;
    lock.ok_or_else(|| busy(format!("the list of sessions of {}", store.path().display())))
}

impl Acts {
    pub(super) fn of(store: Arc<Dir>, by: Option<ActingAgent>) -> Self {
        Self { store, by, purpose: Box::default(), belongs: false }
    }

    /// Draws the number of an act that begins now.
    pub(super) fn draw(&self, fs: &Fs) -> Result<LastAct, Error> {
        let lock = numbering(fs, &self.store)?;
        self.draw_under(fs, &lock)
    }

    /// As [`Acts::draw`], for a caller that has the lock.
    pub(super) fn draw_under(&self, fs: &Fs, _numbering: &Lock) -> Result<LastAct, Error> {
        let at = self.store.at(FILE);
        let newest = match self.counted()? {
            Counted::Here(n) => n,
            Counted::Elsewhere(n) => n.max(self.newest()?),
        };
        let n = newest.saturating_add(1);
        // Not durable: another boot counts on from the headers. So does the next act where this one cannot be counted, as on a full disk:
        // a number that stayed behind would be given twice.
        if fs.replace_at_once(at, format!("{} {n}\n", boot_id()).as_bytes()).is_err() {
            self.spoil(fs)?;
        }
        Ok(LastAct { n, uid: rustix::process::geteuid().as_raw(), by: self.by.clone(), purpose: Purpose::clone(&self.purpose) })
    }

    /// Makes the file tell no number. A byte more fits into its block; where it does not, the file goes.
    fn spoil(&self, fs: &Fs) -> Result<(), Error> {
        let at = self.store.at(FILE);
        let spoilt = fs.append(at).and_then(|file| fs.write(&file, b"-", at));
        if spoilt.is_err() { Ok(fs.unlink_if_there(at)?) } else { Ok(()) }
    }

    /// The number that was counted to.
    fn counted(&self) -> Result<Counted, Error> {
        let mut text = String::new();
        match self.store.open_file_below(FILE) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Counted::Elsewhere(0)),
            file => drop(file?.take(4096).read_to_string(&mut text)),
        }
        let (boot, n) = text.trim_end().split_once(' ').unwrap_or_default();
        let n = n.parse().unwrap_or(0);
        let n = if n < MOST { n } else { 0 };
        Ok(if n > 0 && is_this_boot(boot) { Counted::Here(n) } else { Counted::Elsewhere(n) })
    }

    /// The highest number in a header, or in a line of the log: of a session that was pruned that alone tells. 0 if there is none.
    fn newest(&self) -> Result<u64, Error> {
        #[derive(Deserialize)]
        struct Header {
            acted: Option<LastAct>,
        }
        #[derive(Deserialize)]
        struct Line {
            act: Option<u64>,
        }
        let sessions = self.store.open_below(b"sessions")?;
        let mut newest = 0;
        for name in sessions.names()? {
            let header = sessions.open_file_below(&[&*name, b"session.json"].join(&b'/'));
            let header: Option<Header> = header.ok().and_then(|file| serde_json::from_reader(BufReader::new(file)).ok());
            newest = newest.max(header.and_then(|header| header.acted).map_or(0, |acted| acted.n));
        }
        if let Ok(log) = self.store.open_file_below(b"log.jsonl") {
            let lines = BufReader::new(log).split(b'\n').map_while(Result::ok);
            let acts = lines.filter_map(|line| serde_json::from_slice::<Line>(&line).ok()?.act);
            newest = newest.max(acts.max().unwrap_or(0));
        }
        Ok(newest)
    }
}
