//! `log.jsonl`: what was done, a line each, which holds its own hash, and that of the lines before it: the chain.
//!
//! - `prev` of a line is the SHA-256 of the bytes from the last whole line before it (from the file's start if there is none) up to
//!   the line itself. So a line that is torn is covered by the next one.
//! - `sha256`, the last field, covers all of the line before it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::act::{LastAct, Purpose};
use super::acting_agent::ActingAgent;
use super::error::busy;
use super::header::Header;
use super::id::Id;
use super::open_session::Session;
use super::store::Store;
use crate::error::{At, Error};
use crate::fs::{AbsPath, Fs, Lock, Time};
use crate::tree::{Hash, Hasher, json, time};

/// The result of an operation that came to nothing.
pub const UNDONE: &str = "undone";

/// The verb of a run on the real tree.
pub const RUN_IN: &str = "run --in";

/// The verb of what a person wrote to held files.
pub const EDIT: &str = "edit";

/// The name of the file, in the store.
const FILE: &[u8] = b"log.jsonl";
/// The longest wait for another recant that appends a line.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes at the end of the file in which the last whole line mostly lies.
const TAIL: u64 = 64 << 10;

/// An entry of the log: one thing done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    #[serde(with = "time")]
    pub time: Time,
    /// commit, rollback, redo, confirm, recover, discard, edit, prune, snapshot restore N.
    pub verb: String,
    pub session: Id,
    /// The generation that was sealed, for commit, rollback and redo.
    pub generation: u64,
    /// done, reported, undone, left, failed, forced, finished, not confirmed, record unreadable.
    pub result: String,
    pub paths: u64,
    /// The first of these, with a directory in place of all that lies in it: of what was discarded in part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<AbsPath>,
    /// The number of the act, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<u64>,
    #[serde(flatten)]
    pub purpose: Purpose,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<Restore>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Whose it was, and by whom it was done.
    #[serde(flatten)]
    pub about: About,
}

/// Facts that a line has as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct About {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The directory in which the session was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<AbsPath>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<ActingAgent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The agent that did it; missing for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ActingAgent>,
}

/// The request of a restore. Its session has the paths that it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    #[serde(rename = "folder")]
    pub directory: AbsPath,
    pub snapshot: u64,
    /// The paths that were named; none means all.
    pub only: Vec<AbsPath>,
}

impl Entry {
    /// Makes an entry for something done now.
    pub fn new(verb: impl Into<String>, session: &Id, generation: u64, result: &str, paths: u64) -> Self {
        let (time, session) = (crate::fs::now(), session.clone());
        Self {
            time,
            verb: verb.into(),
            session,
            generation,
            result: result.into(),
            paths,
            at: Vec::new(),
            act: None,
            purpose: Purpose::default(),
            restore: None,
            notes: Vec::new(),
            about: About::default(),
        }
    }

    /// The entry with what a session's header says of it.
    pub fn of(mut self, header: &Header) -> Self {
        let Header { name, command, cwd, by, .. } = header.clone();
        self.about = About { name, command, cwd, made_by: by, ..self.about };
        self
    }

    /// The entry of the newest act on a session, with what its header says of it.
    pub fn of_act(self, header: &Header) -> Self {
        let acted = header.acted.clone().filter(|_| !header.beside);
        let entry = self.of(header);
        let Some(LastAct { n, by, purpose, .. }) = acted else { return entry };
        Self { act: Some(n), purpose, about: About { by, ..entry.about }, ..entry }
    }

    /// True if it is an act that decided about what was held: an edit is held itself, and what was run on the real tree never was.
    pub fn decides(&self) -> bool {
        self.act.is_some() && ![EDIT, RUN_IN].contains(&&*self.verb)
    }

    /// The agent that did it, else the one that made the session.
    pub fn agent(&self) -> Option<&ActingAgent> {
        self.about.by.as_ref().or(self.about.made_by.as_ref())
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
        let entry = Self::new(verb, session.id(), session.header.generation, result, paths as u64).of(&session.header);
        Self { restore: Some(asked), ..entry }
    }
}

#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    entry: Entry,
    prev: Hash,
    #[serde(default, skip_serializing)]
    sha256: Option<Hash>,
}

/// The start of the last field, whose hash covers all before it; and what ends the line.
const LAST: (&[u8], &[u8]) = (b",\"sha256\":\"", b"\"}");

/// The line of an entry, with its newline.
fn line(entry: &Entry, prev: Hash) -> Vec<u8> {
    let mut bytes = json::text(&Line { entry: entry.clone(), prev, sha256: None });
    bytes.pop();
    let hash = Hash::of(&bytes).to_string();
    [&*bytes, LAST.0, hash.as_bytes(), LAST.1, b"\n"].concat()
}

/// The entry of a line without its newline, and its `prev`; `None` if it is torn or garbled.
fn parsed(bytes: &[u8]) -> Option<(Entry, Hash)> {
    let Line { entry, prev, sha256 } = serde_json::from_slice(bytes).ok()?;
    let before = bytes.strip_suffix(LAST.1)?.split_last_chunk::<64>()?.0.strip_suffix(LAST.0)?;
    (sha256? == Hash::of(before)).then_some((entry, prev))
}

/// Appends a line, durably; ends a torn last line first, so that it spoils no other. Adds who does it.
pub fn append(fs: &Fs, store: &Store, entry: &Entry) -> Result<(), Error> {
    let at = store.dir.at(FILE);
    // Two lines at once would both follow the same one.
    let lock = Lock::wait(at, PATIENCE, || (), |at| Lock::try_take_file(fs, at))?;
    let lock = lock.ok_or_else(|| busy(format!("the log of {}", store.path)))?;
    let file = lock.file();
    let size = crate::fs::stat_of(file).at("look at", at)?.size;
    let (prev, ends) = follows(file, size).at("read", at)?;
    let mut entry = entry.clone();
    entry.about.uid = Some(rustix::process::geteuid().as_raw());
    entry.about.by = entry.about.by.or_else(|| store.by.clone());
    let mut bytes = if ends { Vec::new() } else { b"\n".to_vec() };
    bytes.extend(line(&entry, prev));
    fs.write(file, &bytes, at)?;
    // I2, D1: what was reported as done is in the log. Nothing else relies on it (file: not caught here).
    fs.sync(file, at)?;
    Ok(())
}

/// The `prev` of a line behind the first `size` bytes of the file, and false if these end within a line, which gets a newline.
fn follows(file: &File, size: u64) -> std::io::Result<(Hash, bool)> {
    let mut length = TAIL.min(size);
    loop {
        let from = size - length;
        // A log that does not fit into memory could not be shown either.
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| std::io::ErrorKind::OutOfMemory)?];
        file.read_exact_at(&mut bytes, from)?;
        let ends = bytes.last().is_none_or(|last| *last == b'\n');
        if !ends {
            bytes.push(b'\n');
        }
        // The first piece is the end of a line, if it does not begin with the file.
        let first = if from == 0 { 0 } else { bytes.iter().position(|b| *b == b'\n').map_or(bytes.len(), |at| at + 1) };
        let mut end = bytes.len();
        while end > first {
            let start = bytes[..end - 1].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1).max(first);
            if parsed(&bytes[start..end - 1]).is_some() {
                return Ok((Hash::of(&bytes[start..]), ends));
            }
            end = start;
        }
        if from == 0 {
            return Ok((Hash::of(&bytes), ends));
        }
        length = length.saturating_mul(4).min(size);
    }
}

/// All that the file says; as JSON, how well it can be read.
#[derive(Debug, Default, Serialize)]
pub struct Log {
    #[serde(skip)]
    pub file: String,
    /// The whole lines, the oldest first.
    #[serde(skip)]
    pub entries: Vec<Entry>,
    pub lines: u64,
    /// The numbers of the lines that cannot be read, from 1 on.
    #[serde(rename = "unreadable")]
    pub torn: Vec<u64>,
    /// The numbers of the lines whose `prev` is not the hash of what stands before them.
    #[serde(skip)]
    pub unfit: Vec<u64>,
}

/// The bytes of the log, which grows by a line for each act; 0 if there is none.
///
/// # Errors
/// It cannot be looked at.
pub fn length(store: &Store) -> Result<u64, Error> {
    match store.dir.at(FILE).open_file() {
        Ok(file) => Ok(file.metadata().at("look at", store.dir.at(FILE))?.len()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Reads the log: of a store of which one session is seen, what was done with it and its parts.
///
/// # Errors
/// It, or the sessions of which it tells, cannot be read.
pub fn read(store: &Store) -> Result<Log, Error> {
    let mut log = read_all(store)?;
    if store.only.is_some() {
        let (headers, _) = store.headers()?;
        log.entries.retain(|entry| headers.iter().any(|header| header.id == entry.session));
    }
    Ok(log)
}

fn read_all(store: &Store) -> Result<Log, Error> {
    let at = store.dir.at(FILE);
    let file = match at.open_file() {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Log::default()),
        Err(error) => return Err(error.into()),
    };
    let mut log = Log { file: at.to_string(), ..Log::default() };
    // Of all since the last whole line.
    let mut before = Hasher::default();
    for line in BufReader::new(file).split(b'\n') {
        let line = line.at("read", at)?;
        log.lines += 1;
        match parsed(&line) {
            Some((entry, prev)) => {
                log.entries.push(entry);
                if std::mem::take(&mut before).finish() != prev {
                    log.unfit.push(log.lines);
                }
            }
            None => log.torn.push(log.lines),
        }
        before.update(&line);
        before.update(b"\n");
    }
    Ok(log)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        let id = Id::parse("20260301-101500-k3fa").unwrap();
        let mut entry = Entry::new("commit", &id, 1, "done", 1);
        entry.time = Time { s: 1_772_360_100, ns: 0 };
        entry
    }

    #[test]
    fn a_line_in_which_one_byte_is_another_is_not_read() {
        let about = About { command: Some("make".into()), ..About::default() };
        let bytes = line(&Entry { about, ..entry() }, Hash::of(b""));
        for at in 0..bytes.len() - 1 {
            let mut other = bytes[..bytes.len() - 1].to_vec();
            other[at] ^= 1;
            assert_eq!(parsed(&other), None, "byte {at}: {}", other.escape_ascii());
            assert_eq!(parsed(&bytes[..at]), None, "cut at byte {at}");
        }
    }

    #[test]
    fn a_line_follows_all_since_the_last_whole_one_wherever_that_lies() {
        use std::io::Write;
        let chained = line(&entry(), Hash::of(b"x"));
        for (before, behind) in [(0, 0), (10, 0), (100_000, 0), (0, 100_000), (70_000, 300_000), (3, 65_535)] {
            let before = [vec![b'-'; before], b"\n".to_vec()].concat();
            for torn in [&b""[..], b"torn"] {
                let behind = [vec![b'+'; behind], b"\n".to_vec(), torn.to_vec()].concat();
                let mut file = tempfile::tempfile().unwrap();
                let bytes = [&*before, &chained, &behind].concat();
                file.write_all(&bytes).unwrap();
                let newline: &[u8] = if torn.is_empty() { b"" } else { b"\n" };
                let want = Hash::of(&[&*chained, &behind, newline].concat());
                assert_eq!(follows(&file, bytes.len() as u64).unwrap(), (want, torn.is_empty()), "{}", bytes.len());
                let mut file = tempfile::tempfile().unwrap();
                file.write_all(&behind).unwrap();
                let want = Hash::of(&[&*behind, newline].concat());
                assert_eq!(follows(&file, behind.len() as u64).unwrap().0, want, "without a chained one");
            }
        }
    }
}
