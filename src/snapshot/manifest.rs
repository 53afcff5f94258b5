//! Manifests: `<n>.jsonl`, the content of a snapshot, one line an object. Whole, or the differences from a base.
//!
//! A sealed file ([`sealed_file`]): the first line is the head, the last the tail. A caller that wants only these reads no more.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fs::File;

use serde::{Deserialize, Serialize};

use super::error::damaged;
use super::rules::Rules;
use crate::error::Error;
use crate::fs::{AbsPath, Dir, Entry as Name, Fs, Time};
use crate::session::ActingAgent;
use crate::tree::{Hash, Records, Seal, Sealed, State, What, json, sealed_file, time};

/// The facts known when a snapshot is begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    pub schema: u32,
    pub n: u64,
    #[serde(rename = "folder")]
    pub directory: AbsPath,
    #[serde(with = "time")]
    pub time: Time,
    /// The whole manifest from which this one has the differences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The `--once` key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// True if it was taken by a run, before or after its command.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub run: bool,
    /// Other keys and values that the caller wants to find again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
}

/// The key of [`Head::meta`] that says when, in a turn of an agent, a snapshot was taken.
pub const OF_TURN: &str = "taken";
/// The key of `meta` for the agent that took it, or for which it was taken.
pub const OF_AGENT: &str = "agent";
/// The key of `meta` for that agent's turn.
pub const TURN: &str = "turn";

impl Head {
    /// True if an agent took it, or it was taken for one.
    pub fn is_of_agent(&self) -> bool {
        self.meta.contains_key(OF_AGENT)
    }

    /// The agent that took it, or for which it was taken, and its turn.
    pub fn by(&self) -> Option<ActingAgent> {
        let turn = self.meta.get(TURN).and_then(|turn| turn.parse().ok());
        Some(ActingAgent { agent: self.meta.get(OF_AGENT)?.clone(), session: None, turn })
    }

    /// True if it was taken before or after a turn of an agent.
    pub fn is_of_turn(&self) -> bool {
        self.meta.contains_key(OF_TURN)
    }
}

/// The facts known when all was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tail {
    pub counts: Counts,
    /// SHA-256 of all bytes before this line.
    #[serde(rename = "digest")]
    pub hash: Hash,
}

/// The facts known when all was seen, before the tail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closing {
    /// The rules in force, with those that were found.
    pub rules: Rules,
    /// The time when all had been looked at.
    #[serde(with = "time")]
    pub time: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    pub entries: u64,
    /// Those that are no directories.
    pub files: u64,
    /// Bytes of content of regular files, each name counted.
    pub bytes: u64,
    /// Objects other than directories that the snapshot before had not.
    pub added: u64,
    /// Those that it had in another state.
    pub modified: u64,
    /// Those that it had and this one has not.
    pub deleted: u64,
    /// Bytes of content that were stored for this one.
    pub stored: u64,
    pub excluded: u64,
    /// Paths that could not be read, mounts included.
    pub unread: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The path, with the directory as `/`.
    pub path: AbsPath,
    /// Its state; missing if it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// The place of its content; missing for what is no file, or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<At>,
    /// The first of its names, if it has several: itself, or another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<AbsPath>,
    /// The reason why it, and all under it, is not in the snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// The inode number: a name that is missing later may be another name's then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ino: Option<u64>,
    /// True if it existed when the snapshot before was taken, which has nothing or something else here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub older: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// In `<pack>.pack`, from this byte on.
    Pack {
        /// The number of the snapshot that it was stored for.
        pack: u64,
        /// The first byte.
        offset: u64,
    },
    /// In `blobs/<hash>`.
    Blob,
}

impl Entry {
    /// Notes what is not in the snapshot, for this reason.
    pub fn unread(path: AbsPath, why: String) -> Self {
        Self { unread: Some(why), ..Self::of(path, None, None) }
    }

    /// An object by its state and the place of its content.
    pub fn of(path: AbsPath, state: Option<State>, at: Option<At>) -> Self {
        Self { path, state, at, link: None, unread: None, ino: None, older: false }
    }

    /// The size of its content; 0 for what is no file.
    pub fn size(&self) -> u64 {
        match &self.state {
            Some(State { what: What::File { size, .. }, .. }) => *size,
            _ => 0,
        }
    }

    pub fn hash(&self) -> Option<Hash> {
        self.state.as_ref().and_then(State::hash)
    }

    pub fn is_dir(&self) -> bool {
        self.state.as_ref().is_some_and(State::is_dir)
    }

    /// A short hash of all but the place of the content: two entries of a path with equal marks are equal.
    pub fn mark(&self) -> u64 {
        short(&json::text(&(&self.state, &self.link, self.unread.is_some())))
    }

    /// A short hash of its line in a manifest.
    pub fn sign(&self) -> u64 {
        short(&json::text(&LineRef::Entry(self)))
    }
}

fn short(bytes: &[u8]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = Hash::of(bytes).0;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// One line but the last.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line<H, E, P, C> {
    /// The first.
    Snapshot(H),
    Entry(E),
    /// The base has this path, the snapshot has not.
    Gone(P),
    /// After all objects.
    Closing(C),
}

type LineRead = Line<Box<Head>, Box<Entry>, AbsPath, Closing>;
type LineRef<'a> = Line<&'a Head, &'a Entry, &'a AbsPath, &'a Closing>;

impl Seal for Tail {
    fn hash(&self) -> Hash {
        self.hash
    }
}

/// Parses the first line of a manifest; `None` if it is none.
pub fn head_of(line: &[u8]) -> Option<Head> {
    match serde_json::from_slice(line) {
        Ok(LineRead::Snapshot(head)) => Some(*head),
        _ => None,
    }
}

/// Parses the line of an object: its path, and `None` if only the base has it. `None` for any other line.
pub fn named(line: &[u8]) -> Option<(AbsPath, Option<Entry>)> {
    match serde_json::from_slice(line) {
        Ok(LineRead::Entry(entry)) => Some((entry.path.clone(), Some(*entry))),
        Ok(LineRead::Gone(path)) => Some((path, None)),
        _ => None,
    }
}

pub fn name(n: u64) -> Vec<u8> {
    format!("{n}.jsonl").into_bytes()
}

/// The name of a manifest that is no snapshot any more, but the base of others.
pub fn base_name(n: u64) -> Vec<u8> {
    format!("{n}.base").into_bytes()
}

/// A manifest that is being written, under another name.
pub struct Writing<'a> {
    lines: sealed_file::Writing<'a>,
    /// The number of lines of objects so far, gone ones included.
    pub objects: u64,
}

impl<'a> Writing<'a> {
    /// Begins the file `temp` in the series' directory.
    pub fn begin(fs: &'a Fs, dir: &'a Dir, temp: &[u8], head: &Head) -> Result<Self, Error> {
        let mut lines = sealed_file::Writing::begin(fs, dir, temp)?;
        lines.line(&LineRef::Snapshot(head))?;
        Ok(Self { lines, objects: 0 })
    }

    /// Adds an object; in the order of paths. Returns its [`Entry::sign`].
    pub fn entry(&mut self, entry: &Entry) -> Result<u64, Error> {
        self.objects += 1;
        Ok(short(self.lines.line(&LineRef::Entry(entry))?))
    }

    /// Adds a path of the base that the snapshot has not.
    pub fn removed(&mut self, path: &AbsPath) -> Result<(), Error> {
        self.objects += 1;
        self.lines.line(&LineRef::Gone(path))?;
        Ok(())
    }

    /// Writes the last lines; returns the file, which is not synced, and its hash.
    pub fn end(mut self, closing: &Closing, counts: Counts) -> Result<(File, Hash), Error> {
        self.lines.line(&LineRef::Closing(closing))?;
        Ok(self.lines.end(|hash| Tail { counts, hash })?)
    }
}

/// The line of a path: its object, or `None` if only the base has it.
pub type PathLine = (AbsPath, Option<Box<Entry>>);

/// An object's line of which only the path is read yet: for most objects the index says that they are as in the line.
pub struct Unread {
    pub path: AbsPath,
    line: sealed_file::Line,
}

impl Unread {
    pub fn sign(&self) -> u64 {
        short(&self.line.text)
    }

    pub fn read(&self) -> Result<Entry, Error> {
        match self.line.parse()? {
            LineRead::Entry(entry) => Ok(*entry),
            _ => Err(self.line.damaged("it is out of place")),
        }
    }
}

/// The start of an object's line, up to its path.
const ENTRY: &[u8] = br#"{"entry":{"path":""#;

/// The path of an object's line if it has no escapes.
fn plain_path(text: &[u8]) -> Option<AbsPath> {
    let rest = text.strip_prefix(ENTRY)?;
    let end = rest.iter().position(|b| matches!(b, b'"' | b'\\'))?;
    if rest[end] == b'"' { AbsPath::parse(&rest[..end]).ok() } else { None }
}

/// A manifest that is read line by line, after a check that it is whole.
pub struct Reading {
    records: Records,
    shown: String,
    pub head: Head,
    last: Option<AbsPath>,
    /// The rules, once all objects were returned.
    pub rules: Option<Rules>,
}

/// The most bytes of a head: a message may be long.
const HEAD_MAX: u64 = 1 << 20;

/// The head and tail of a manifest, without a look at the rest.
pub fn ends(at: Name<'_>) -> Result<(Head, Tail), Error> {
    let (first, tail) = open(at)?.ends(HEAD_MAX)?;
    Ok((head(first, at)?, tail))
}

fn head(first: LineRead, at: Name<'_>) -> Result<Head, Error> {
    match first {
        LineRead::Snapshot(head) if head.schema == 1 => Ok(*head),
        LineRead::Snapshot(head) => Err(damaged(at, format!("its schema is {}; this recant knows 1", head.schema))),
        _ => Err(damaged(at, "its first line is not a head")),
    }
}

fn open(at: Name<'_>) -> Result<Sealed<Tail>, Error> {
    match at.open_file() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(damaged(at, "it is missing")),
        file => Ok(Sealed::open(file?, at, |path, why| damaged(path, why))?),
    }
}

impl Reading {
    /// Opens the manifest at `at`, which must be that of number `n`, and checks its hash.
    pub fn open(at: Name<'_>, n: u64) -> Result<Self, Error> {
        let sealed = open(at)?;
        let mut records = sealed.records()?;
        let head = head(records.record()?.ok_or_else(|| damaged(at, "it is empty"))?, at)?;
        if head.n != n {
            return Err(damaged(at, format!("it belongs to snapshot {}", head.n)));
        }
        Ok(Self { records, shown: at.to_string(), head, last: None, rules: None })
    }

    /// The next object: its path, and `None` if only the base has it.
    pub fn next_line(&mut self) -> Result<Option<PathLine>, Error> {
        let Some((path, line)) = self.next_unread()? else { return Ok(None) };
        Ok(Some((path, line.map(|line| line.read()).transpose()?.map(Box::new))))
    }

    /// The next object, not read yet.
    fn next_unread(&mut self) -> Result<Option<(AbsPath, Option<Unread>)>, Error> {
        if self.rules.is_some() {
            return Ok(None);
        }
        let Some(line) = self.records.line()? else { return Err(damaged(&self.shown, "its rules are missing")) };
        let (path, is_there) = match plain_path(&line.text) {
            Some(path) => (path, true),
            None => match line.parse()? {
                LineRead::Entry(entry) => (entry.path, true),
                LineRead::Gone(path) => (path, false),
                LineRead::Closing(closing) => {
                    self.rules = Some(closing.rules);
                    return Ok(None);
                }
                LineRead::Snapshot(_) => return Err(line.damaged("it is out of place")),
            },
        };
        if self.last.as_ref().is_some_and(|last| *last >= path) {
            return Err(line.damaged("it is not in the order of paths"));
        }
        self.last = Some(path.clone());
        Ok(Some((path.clone(), is_there.then_some(Unread { path, line }))))
    }
}

/// All objects of a snapshot, with those of its base, in the order of paths.
pub struct Merged {
    own: Reading,
    base: Option<Reading>,
    next_own: Option<(AbsPath, Option<Unread>)>,
    next_base: Option<(AbsPath, Option<Unread>)>,
}

impl Merged {
    /// Opens snapshot `n` of the series in `dir`.
    pub fn open(dir: &Dir, n: u64) -> Result<Self, Error> {
        Self::of(dir, Reading::open(dir.at(&name(n)), n)?)
    }

    /// Merges a manifest that is open with its base.
    pub fn of(dir: &Dir, mut own: Reading) -> Result<Self, Error> {
        let mut base = own.head.base.map(|base| open_base(dir, base)).transpose()?;
        let next_own = own.next_unread()?;
        let next_base = base.as_mut().map(Reading::next_unread).transpose()?.flatten();
        Ok(Self { own, base, next_own, next_base })
    }

    /// The rules in force; known once all objects were returned.
    pub fn rules(&self) -> Option<&Rules> {
        self.own.rules.as_ref()
    }

    pub fn next(&mut self) -> Result<Option<Entry>, Error> {
        self.next_unread()?.map(|line| line.read()).transpose()
    }

    /// The next object, not read yet.
    pub fn next_unread(&mut self) -> Result<Option<Unread>, Error> {
        loop {
            let order = match (&self.next_own, &self.next_base) {
                (None, None) => return Ok(None),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((own, _)), Some((base, _))) => own.cmp(base),
            };
            let mut found = None;
            if order.is_ge()
                && let Some(base) = &mut self.base
            {
                found = std::mem::replace(&mut self.next_base, base.next_unread()?);
            }
            if order.is_le() {
                found = std::mem::replace(&mut self.next_own, self.own.next_unread()?);
            }
            if let Some((_, Some(line))) = found {
                return Ok(Some(line));
            }
        }
    }
}

/// Opens a base, which is a snapshot still, or was one.
pub fn open_base(dir: &Dir, n: u64) -> Result<Reading, Error> {
    let (as_snapshot, as_base) = (name(n), base_name(n));
    let is_there = dir.at(&as_snapshot).stat()?.is_some();
    let at = if is_there { dir.at(&as_snapshot) } else { dir.at(&as_base) };
    let base = Reading::open(at, n)?;
    if base.head.base.is_some() {
        return Err(damaged(at, "it is the base of others, and has one itself"));
    }
    Ok(base)
}

/// Reads the rules of a snapshot as [`closing`] does.
pub fn rules(dir: &Dir, n: u64) -> Result<Rules, Error> {
    Ok(closing(dir, n)?.rules)
}

/// Reads what stands at the end of a snapshot, without what lies before it: the caller reads the rest too, and finds there whether all is
/// whole.
pub fn closing(dir: &Dir, n: u64) -> Result<Closing, Error> {
    let name = name(n);
    let at = dir.at(&name);
    match open(at)?.last()? {
        LineRead::Closing(closing) => Ok(closing),
        _ => Err(damaged(at, "its rules are missing")),
    }
}
