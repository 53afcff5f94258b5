//! `log.jsonl`: what was done, a line each, which holds its own hash.

use std::io::{BufRead, BufReader};

use serde::{Deserialize, Serialize};

use super::id::Id;
use super::opened::Session;
use super::store::Store;
use crate::error::{At, Error};
use crate::fs::Fs;
use crate::fs::dir::Time;
use crate::fs::path::AbsPath;
use crate::tree::hash::Hash;
use crate::tree::json;
use crate::tree::time;

/// An entry of the log: one thing done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The time.
    #[serde(with = "time")]
    pub time: Time,
    /// commit, rollback, redo, confirm, recover, discard, prune, snapshot restore N.
    pub verb: String,
    /// The session.
    pub session: Id,
    /// The generation that was sealed, for commit, rollback and redo.
    pub generation: u64,
    /// done, reported, undone, left, failed, forced, finished, not confirmed, record unreadable.
    pub result: String,
    /// The number of paths.
    pub paths: u64,
    /// The request of a restore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<Restore>,
    /// The notes of a `reported` entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The request of a restore. Its session has the paths that it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    /// The directory.
    #[serde(rename = "folder")]
    pub directory: AbsPath,
    /// The snapshot's number.
    pub snapshot: u64,
    /// The paths that were named; none means all.
    pub only: Vec<AbsPath>,
}

impl Entry {
    /// Makes an entry for something done now.
    pub fn new(verb: impl Into<String>, session: &Id, generation: u64, result: &str, paths: u64) -> Self {
        let (time, session) = (crate::fs::now(), session.clone());
        Self { time, verb: verb.into(), session, generation, result: result.into(), paths, restore: None, notes: Vec::new() }
    }
}

impl Entry {
    /// Makes an entry for a restore by `session`: the log has every one that was begun, also one that failed. `done` has the number of
    /// paths that it changed, and of those that it left as they were.
    pub fn of_restore(asked: Restore, session: &Session, done: Option<(usize, usize)>) -> Self {
        let (result, paths) = match done {
            Some((paths, 0)) => ("done", paths),
            Some((paths, _)) => ("left", paths),
            None => ("failed", 0),
        };
        let verb = format!("snapshot restore {}", asked.snapshot);
        Self { restore: Some(asked), ..Self::new(verb, session.id(), session.header.generation, result, paths as u64) }
    }
}

#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    entry: Entry,
    sha256: Hash,
}

fn hash_of(entry: &Entry) -> Hash {
    Hash::of(&json::text(entry))
}

/// Adds a line, durably; ends a torn last line first, so that it spoils no other.
pub fn append(fs: &Fs, store: &Store, entry: &Entry) -> Result<(), Error> {
    use std::os::unix::fs::FileExt;
    let at = store.dir.at(b"log.jsonl");
    let file = fs.append(at)?;
    let size = crate::fs::dir::stat_of(&file).at("look at", at)?.size;
    let mut last = [b'\n'];
    if size > 0 {
        file.read_exact_at(&mut last, size - 1).at("read", at)?;
    }
    let line = Line { entry: entry.clone(), sha256: hash_of(entry) };
    let mut bytes = if last == *b"\n" { Vec::new() } else { b"\n".to_vec() };
    json::append_line(&mut bytes, &line);
    fs.write(&file, &bytes, at)?;
    // I2, D1: what was reported as done is in the log. Nothing else relies on it (file: not caught here).
    fs.sync(&file, at)?;
    Ok(())
}

/// Reads all lines that are whole, the oldest first, and counts those that are not.
pub fn read(store: &Store) -> Result<(Vec<Entry>, usize), Error> {
    let at = store.dir.at(b"log.jsonl");
    let file = match at.open_file() {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
        Err(error) => return Err(error.into()),
    };
    let (mut entries, mut bad) = (Vec::new(), 0);
    for line in BufReader::new(file).split(b'\n') {
        let line = line.at("read", at)?;
        match serde_json::from_slice::<Line>(&line) {
            Ok(line) if hash_of(&line.entry) == line.sha256 => entries.push(line.entry),
            _ => bad += 1,
        }
    }
    Ok((entries, bad))
}
