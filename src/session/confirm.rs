//! Commits that are rolled back unless somebody confirms them in time. `unconfirmed/<id>` of the store has the deadline.
//!
//! A record is durable before its commit is sealed, so that no crash leaves a commit that nobody would roll back. It counts while that
//! generation, or a later one, is the session's and something of it is on the tree.

use serde::{Deserialize, Serialize};

use super::error::damaged;
use super::header::Header;
use super::id::Id;
use super::opened::read_small;
use super::run::boot_id;
use super::store::Store;
use crate::error::Error;
use crate::fs::Fs;
use crate::fs::dir::{Dir, Time};
use crate::tree::json;
use crate::tree::time;

const DIRECTORY: &[u8] = b"unconfirmed";

/// A commit that waits for confirmation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The version of the file's format.
    pub schema: u32,
    /// The session.
    pub session: Id,
    /// The generation that the commit seals.
    pub generation: u64,
    /// The deadline, by the wall clock.
    #[serde(with = "time")]
    pub due: Time,
    /// The boot in which that was set.
    pub boot: String,
    /// The deadline by the clock that nobody sets and that only this boot has.
    #[serde(with = "time")]
    pub due_since_boot: Time,
    /// The one that rolls it back then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reasons why it could not be rolled back when it was due.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}

impl Record {
    /// Makes the record of a commit of `session`, which is about to seal the next generation, `seconds` from now.
    pub fn new(header: &Header, seconds: i64) -> Self {
        let later = |time: Time| Time { s: time.s.saturating_add(seconds), ns: time.ns };
        Self {
            schema: 1,
            session: header.id.clone(),
            generation: header.generation + 1,
            due: later(crate::fs::exact_now()),
            boot: boot_id(),
            due_since_boot: later(crate::fs::since_boot()),
            by: None,
            failed: Vec::new(),
        }
    }

    /// True if it is about what is on the tree now.
    pub fn counts(&self, header: &Header) -> bool {
        header.generation >= self.generation && header.counts.inside > 0
    }

    /// True if the deadline has passed. In the boot in which it was set a clock tells that nobody sets; after a restart only the wall
    /// clock is left.
    pub fn is_due(&self) -> bool {
        self.left() == Time::default()
    }

    /// The time that is left; zero once it is over.
    pub fn left(&self) -> Time {
        let same_boot = !self.boot.is_empty() && self.boot == boot_id();
        let (due, now) =
            if same_boot { (self.due_since_boot, crate::fs::since_boot()) } else { (self.due, crate::fs::exact_now()) };
        from_to(now, due)
    }
}

/// The time from `now` to `due`; zero if that is over.
fn from_to(now: Time, due: Time) -> Time {
    match (due.s - now.s, i64::from(due.ns) - i64::from(now.ns)) {
        (s, ns) if s > 0 && ns < 0 => Time { s: s - 1, ns: u32::try_from(ns + 1_000_000_000).unwrap_or(0) },
        (s, ns) if s >= 0 && ns >= 0 => Time { s, ns: u32::try_from(ns).unwrap_or(0) },
        _ => Time::default(),
    }
}

/// The confirmation that a session's record asks for.
pub enum Word {
    /// Nothing of the session waits for one.
    None,
    /// It is awaited.
    Awaited(Record),
    /// It is awaited, but its deadline is unreadable, for this reason.
    Unreadable(String),
}

impl Word {
    /// Reads it for a session with this header.
    pub fn of(store: &Store, header: &Header) -> Self {
        match read(store, &header.id) {
            Ok(Some(record)) if record.counts(header) => Word::Awaited(record),
            Err(error) if header.counts.inside > 0 => Word::Unreadable(error.to_string()),
            _ => Word::None,
        }
    }
}

/// Drops the record of a session with nothing on the tree: before a commit, and after a rollback.
pub fn settle(fs: &Fs, store: &Store, header: &Header) -> Result<(), Error> {
    if header.counts.inside > 0 || !waiting(store)?.contains(&header.id) {
        return Ok(());
    }
    drop_record(fs, store, &header.id)
}

fn directory(store: &Store) -> Result<Option<Dir>, Error> {
    match store.dir.open_below(DIRECTORY) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        dir => Ok(Some(dir?)),
    }
}

/// Writes a record, durably.
pub fn keep(fs: &Fs, store: &Store, record: &Record) -> Result<(), Error> {
    let dir = match directory(store)? {
        Some(dir) => dir,
        None => {
            let at = store.dir.at(DIRECTORY);
            match fs.mkdir(at, 0o700) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                made => made?,
            }
            fs.sync_dir(&store.dir)?; // D3 (directory: not caught here: the model's commits wait for no word)
            at.open_dir()?
        }
    };
    let at = dir.at(record.session.as_str().as_bytes());
    // D1, D2 (file, directory: not caught here, as above): a commit that is sealed without it would stay for good.
    Ok(fs.replace(at, &json::line(record))?)
}

/// Reads the record of a session.
pub fn read(store: &Store, id: &Id) -> Result<Option<Record>, Error> {
    let Some(dir) = directory(store)? else { return Ok(None) };
    let at = dir.at(id.as_str().as_bytes());
    let Some(bytes) = read_small(at, 16 << 20)? else { return Ok(None) };
    let damaged = |why: String| damaged(at, why);
    let record: Record = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    if record.session == *id { Ok(Some(record)) } else { Err(damaged(format!("it is that of session {}", record.session))) }
}

/// Lists the ids of all sessions that have a record.
pub fn waiting(store: &Store) -> Result<Vec<Id>, Error> {
    let Some(dir) = directory(store)? else { return Ok(Vec::new()) };
    let names = dir.names()?;
    let mut ids: Vec<Id> = names.iter().filter_map(|name| Id::parse(std::str::from_utf8(name).ok()?)).collect();
    ids.sort();
    Ok(ids)
}

/// Removes a record, durably: the commit stays, or is rolled back already.
pub fn drop_record(fs: &Fs, store: &Store, id: &Id) -> Result<(), Error> {
    let Some(dir) = directory(store)? else { return Ok(()) };
    let at = dir.at(id.as_str().as_bytes());
    fs.unlink_if_there(at)?;
    // D2 (directory: not caught here, as above): one that came back after a power cut would roll back what was confirmed.
    Ok(fs.sync_dir(&dir)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_until_a_time_is_nothing_from_then_on() {
        let time = |s, ns| Time { s, ns };
        for (now, due, left) in [
            ((5, 200), (7, 300), (2, 100)),
            ((5, 200), (7, 100), (1, 999_999_900)),
            ((5, 200), (6, 199), (0, 999_999_999)),
            ((5, 200), (5, 201), (0, 1)),
            ((5, 200), (5, 200), (0, 0)),
            ((5, 200), (5, 199), (0, 0)),
            ((5, 200), (4, 900), (0, 0)),
            ((5, 200), (0, 0), (0, 0)),
        ] {
            assert_eq!(from_to(time(now.0, now.1), time(due.0, due.1)), time(left.0, left.1), "{now:?} to {due:?}");
        }
    }

    fn of_one_change(generation: u64, inside: u64) -> Header {
        let id = Id::parse("20261123-110000-abcd").expect("an id");
        let mut header = Header::new(id, 1, crate::session::header::Origin::Staged, Time::default());
        (header.generation, header.counts.inside) = (generation, inside);
        header
    }

    #[test]
    fn it_counts_once_its_commit_is_sealed_and_as_long_as_something_is_in() {
        let record = Record::new(&of_one_change(4, 0), 60);
        for (generation, inside, counts) in [(4, 1, false), (5, 1, true), (6, 1, true), (6, 0, false), (4, 0, false)] {
            assert_eq!(record.counts(&of_one_change(generation, inside)), counts, "generation {generation}, {inside} in");
        }
    }

    #[test]
    fn in_the_boot_that_it_was_written_in_no_clock_that_somebody_sets_tells() {
        let mut record = Record::new(&of_one_change(0, 0), 60);
        record.due = Time { s: 1, ns: 0 };
        assert!(!record.is_due() && record.left().s <= 60, "the clock on the wall was set forward");
        for boot in ["", "6f1a2bb0-0000-4000-8000-000000000000"] {
            assert!(Record { boot: boot.into(), ..record.clone() }.is_due(), "{boot:?} is not this one");
        }
    }
}
