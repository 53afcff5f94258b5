//! Manifests: `<n>.jsonl`, what a snapshot holds, a line an object. Whole, or the differences from a base.
//!
//! The first line is the head, the last the tail, with a digest of all bytes before it. Whoever only wants these reads no more.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::Error;
use super::rules::Rules;
use crate::error::At as _;
use crate::fs::Fs;
use crate::fs::dir::{Dir, Entry as Name, Time, stat_of};
use crate::fs::path::AbsPath;
use crate::tree::digest::{Digest, Hasher};
use crate::tree::json;
use crate::tree::state::{State, What};
use crate::tree::time;

/// What is known when a snapshot is begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The version of this file's form.
    pub schema: u32,
    /// The number.
    pub n: u64,
    /// The folder's real path.
    pub folder: AbsPath,
    /// When it was begun.
    #[serde(with = "time")]
    pub time: Time,
    /// The whole manifest that this one tells the differences from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<u64>,
    /// What the user said of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// A word to call it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The `--once` key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// It was taken by a run, before or after its command.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub run: bool,
    /// Whatever else the caller wants to find again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
}

/// What is known when all was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tail {
    /// Numbers for a listing.
    pub counts: Counts,
    /// SHA-256 of all bytes before this line.
    pub digest: Digest,
}

/// Numbers for a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// All objects, the folder itself included.
    pub entries: u64,
    /// Those that are no folders.
    pub files: u64,
    /// Bytes of content of regular files, each name counted.
    pub bytes: u64,
    /// Objects but folders that the one before had not.
    pub added: u64,
    /// That it had in another state.
    pub modified: u64,
    /// That it had and this one has not.
    pub deleted: u64,
    /// Bytes of content that were stored for this one.
    pub stored: u64,
    /// Topmost paths that rules left out.
    pub excluded: u64,
    /// Paths that could not be read, mounts included.
    pub unread: u64,
}

/// One object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Where, the folder being `/`.
    pub path: AbsPath,
    /// What it was; missing where it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Where its content lies; missing for what is no file, or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<At>,
    /// It has several names, of which this is the first: itself, or another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<AbsPath>,
    /// Why it, and what lies under it, is not in the snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
}

/// Where content lies.
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
    /// In `blobs/<digest>`.
    Blob,
}

impl Entry {
    /// The size of its content; 0 for what is no file.
    pub fn size(&self) -> u64 {
        match &self.state {
            Some(State { what: What::File { size, .. }, .. }) => *size,
            _ => 0,
        }
    }

    /// The digest of its content.
    pub fn digest(&self) -> Option<Digest> {
        self.state.as_ref().and_then(State::digest)
    }

    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        self.state.as_ref().is_some_and(State::is_folder)
    }

    /// A short digest of all but where the content lies: two entries of a path with the same one are the same.
    pub fn mark(&self) -> u64 {
        short(&json::text(&(&self.state, &self.link, self.unread.is_some())))
    }

    /// A short digest of the line that it has in a manifest.
    pub fn sign(&self) -> u64 {
        short(&json::text(&LineRef::Entry(self)))
    }
}

fn short(bytes: &[u8]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = Digest::of(bytes).0;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The first.
    Snapshot(Box<Head>),
    /// An object.
    Entry(Box<Entry>),
    /// The base has this path, the snapshot has not.
    Gone(AbsPath),
    /// The rules in force; the last but one.
    Rules(Rules),
    /// The last.
    End(Tail),
}

/// Lines as they are written, borrowed.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum LineRef<'a> {
    Snapshot(&'a Head),
    Entry(&'a Entry),
    Gone(&'a AbsPath),
    Rules(&'a Rules),
    End(&'a Tail),
}

/// The name of a manifest.
pub fn name(n: u64) -> Vec<u8> {
    format!("{n}.jsonl").into_bytes()
}

/// The name of a manifest that is no snapshot any more, but the base of others.
pub fn base_name(n: u64) -> Vec<u8> {
    format!("{n}.base").into_bytes()
}

/// A manifest while it is written, under another name.
pub struct Writing<'a> {
    fs: &'a Fs,
    dir: &'a Dir,
    /// The file.
    pub file: File,
    buffer: Vec<u8>,
    hasher: Hasher,
    /// Lines of objects so far, gone ones included.
    pub lines: u64,
}

/// As much is written at once.
const PIECE: usize = 256 << 10;

impl<'a> Writing<'a> {
    /// Begins the file `temp` in the series' folder.
    pub fn begin(fs: &'a Fs, dir: &'a Dir, temp: &[u8], head: &Head) -> Result<Self, Error> {
        let at = dir.at(temp);
        fs.unlink_if_there(at).at("remove", at)?;
        let file = fs.create(at, 0o600).at("make", at)?;
        let mut writing = Self { fs, dir, file, buffer: Vec::with_capacity(PIECE + 4096), hasher: Hasher::default(), lines: 0 };
        json::append_line(&mut writing.buffer, &LineRef::Snapshot(head));
        Ok(writing)
    }

    /// Adds an object; in the order of paths. Gives its [`Entry::sign`].
    pub fn entry(&mut self, entry: &Entry) -> Result<u64, Error> {
        let from = self.buffer.len();
        json::append_line(&mut self.buffer, &LineRef::Entry(entry));
        let sign = short(&self.buffer[from..self.buffer.len() - 1]);
        self.count_line()?;
        Ok(sign)
    }

    /// Adds a path of the base that is not there.
    pub fn gone(&mut self, path: &AbsPath) -> Result<(), Error> {
        json::append_line(&mut self.buffer, &LineRef::Gone(path));
        self.count_line()
    }

    fn count_line(&mut self) -> Result<(), Error> {
        self.lines += 1;
        if self.buffer.len() >= PIECE { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.hasher.update(&self.buffer);
        self.fs.write(&self.file, &self.buffer, self.dir.path()).at("write", self.dir.path().display())?;
        self.buffer.clear();
        Ok(())
    }

    /// Writes rules and tail; gives the file, which is not synced, and its digest.
    pub fn end(mut self, rules: &Rules, counts: Counts) -> Result<(File, Digest), Error> {
        json::append_line(&mut self.buffer, &LineRef::Rules(rules));
        self.flush()?;
        let digest = std::mem::take(&mut self.hasher).finish();
        json::append_line(&mut self.buffer, &LineRef::End(&Tail { counts, digest }));
        self.flush()?;
        Ok((self.file, digest))
    }
}

/// The line of a path: its object, `None` where the base alone has it.
pub type PathLine = (AbsPath, Option<Box<Entry>>);

/// An object's line, of which no more than the path is read yet: of most objects the index says that they are as the line has them.
pub struct Unread {
    /// Where.
    pub path: AbsPath,
    text: Vec<u8>,
    from: Rc<str>,
    number: u64,
}

impl Unread {
    /// [`Entry::sign`].
    pub fn sign(&self) -> u64 {
        short(&self.text)
    }

    /// The object.
    pub fn read(&self) -> Result<Entry, Error> {
        match parse(&self.text, &self.from, self.number)? {
            Line::Entry(entry) => Ok(*entry),
            _ => Err(damaged(&self.from, format!("line {} is out of place", self.number))),
        }
    }
}

/// How an object's line begins, its path behind it.
const ENTRY: &[u8] = br#"{"entry":{"path":""#;

/// The path of an object's line where it stands there as it is, without escapes.
fn plain_path(text: &[u8]) -> Option<AbsPath> {
    let rest = text.strip_prefix(ENTRY)?;
    let end = rest.iter().position(|b| matches!(b, b'"' | b'\\'))?;
    if rest[end] == b'"' { AbsPath::parse(&rest[..end]).ok() } else { None }
}

fn parse(text: &[u8], from: &str, number: u64) -> Result<Line, Error> {
    serde_json::from_slice(text).map_err(|error| damaged(from, format!("line {number}: {error}")))
}

/// A file of lines, checked whole before the first of them is given.
pub struct Reading {
    reader: BufReader<File>,
    shown: Rc<str>,
    text: Vec<u8>,
    number: u64,
    /// The head.
    pub head: Head,
    /// The tail.
    pub tail: Tail,
    last: Option<AbsPath>,
    /// Once all objects were given.
    pub rules: Option<Rules>,
}

/// A tail is a line of numbers; a head has what a user wrote.
const TAIL_MAX: u64 = 4096;
/// The longest head that is written: a message may be long.
pub const HEAD_MAX: u64 = 1 << 20;

/// The head and tail of a manifest, what lies between not looked at.
pub fn ends(at: Name<'_>) -> Result<(Head, Tail), Error> {
    let (file, _, tail) = open(at)?;
    let mut reader = BufReader::new(std::io::Read::take(&file, HEAD_MAX));
    let mut text = Vec::new();
    reader.read_until(b'\n', &mut text).at("read", at)?;
    Ok((head(&text, &at.to_string())?, tail))
}

fn damaged(shown: &str, why: impl ToString) -> Error {
    Error::Damaged { path: shown.into(), why: why.to_string() }
}

fn head(text: &[u8], shown: &str) -> Result<Head, Error> {
    match serde_json::from_slice(text) {
        Ok(Line::Snapshot(head)) if head.schema == 1 => Ok(*head),
        Ok(Line::Snapshot(head)) => Err(damaged(shown, format!("its schema is {}; this recant knows 1", head.schema))),
        Ok(_) => Err(damaged(shown, "its first line is no head")),
        Err(error) => Err(damaged(shown, format!("line 1: {error}"))),
    }
}

/// Opens a manifest and reads its tail: the file, where the tail begins, and the tail.
fn open(at: Name<'_>) -> Result<(File, u64, Tail), Error> {
    let shown = at.to_string();
    let file = match at.open_file() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(damaged(&shown, "it is missing")),
        file => file.at("open", at)?,
    };
    let size = stat_of(&file).at("look at", at)?.size;
    let mut last = vec![0; usize::try_from(size.min(TAIL_MAX)).unwrap_or(0)];
    let from = size - last.len() as u64;
    file.read_exact_at(&mut last, from).at("read", at)?;
    let Some(text) = last.strip_suffix(b"\n") else { return Err(damaged(&shown, "its end is missing")) };
    let begins = text.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    match serde_json::from_slice(&text[begins..]) {
        Ok(Line::End(tail)) => Ok((file, size - (last.len() - begins) as u64, tail)),
        _ => Err(damaged(&shown, "its end is missing")),
    }
}

/// The digest of the first `end` bytes.
fn digest_of_start(file: &File, end: u64) -> std::io::Result<Digest> {
    let (mut hasher, mut buffer, mut at) = (Hasher::default(), vec![0; PIECE], 0);
    while at < end {
        let piece = usize::try_from(end - at).unwrap_or(PIECE).min(PIECE);
        file.read_exact_at(&mut buffer[..piece], at)?;
        hasher.update(&buffer[..piece]);
        at += piece as u64;
    }
    Ok(hasher.finish())
}

impl Reading {
    /// Opens the manifest at `at`, which has to be that of number `n`, and checks its digest.
    pub fn open(at: Name<'_>, n: u64) -> Result<Self, Error> {
        let shown = at.to_string();
        let (file, end, tail) = open(at)?;
        if digest_of_start(&file, end).at("read", at)? != tail.digest {
            return Err(damaged(&shown, "its digest is not that of its content"));
        }
        let mut reader = BufReader::with_capacity(128 << 10, file);
        let mut text = Vec::new();
        reader.read_until(b'\n', &mut text).at("read", at)?;
        let head = head(&text, &shown)?;
        if head.n != n {
            return Err(damaged(&shown, format!("it is that of snapshot {}", head.n)));
        }
        Ok(Self { reader, shown: shown.into(), text, number: 1, head, tail, last: None, rules: None })
    }

    /// The next object: its path, and `None` where the base alone has it.
    pub fn next_line(&mut self) -> Result<Option<PathLine>, Error> {
        let Some((path, line)) = self.next_unread()? else { return Ok(None) };
        Ok(Some((path, line.map(|line| line.read()).transpose()?.map(Box::new))))
    }

    /// The same, the object not read yet.
    fn next_unread(&mut self) -> Result<Option<(AbsPath, Option<Unread>)>, Error> {
        if self.rules.is_some() {
            return Ok(None);
        }
        self.number += 1;
        self.text.clear();
        self.reader.read_until(b'\n', &mut self.text).at("read", &*self.shown)?;
        let text = self.text.strip_suffix(b"\n").unwrap_or(&self.text);
        let (path, is_there) = match plain_path(text) {
            Some(path) => (path, true),
            None => match parse(text, &self.shown, self.number)? {
                Line::Entry(entry) => (entry.path, true),
                Line::Gone(path) => (path, false),
                Line::Rules(rules) => {
                    self.rules = Some(rules);
                    return Ok(None);
                }
                Line::Snapshot(_) | Line::End(_) => {
                    return Err(damaged(&self.shown, format!("line {} is out of place", self.number)));
                }
            },
        };
        if self.last.as_ref().is_some_and(|last| *last >= path) {
            return Err(damaged(&self.shown, format!("line {} is not in the order of paths", self.number)));
        }
        self.last = Some(path.clone());
        let unread = || Unread { path: path.clone(), text: text.to_vec(), from: self.shown.clone(), number: self.number };
        let line = is_there.then(unread);
        Ok(Some((path, line)))
    }
}

/// All objects of a snapshot in the order of paths, those of its base among them.
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

    /// The same with a manifest that is open.
    pub fn of(dir: &Dir, mut own: Reading) -> Result<Self, Error> {
        let mut base = own.head.base.map(|base| open_base(dir, base)).transpose()?;
        let next_own = own.next_unread()?;
        let next_base = base.as_mut().map(Reading::next_unread).transpose()?.flatten();
        Ok(Self { own, base, next_own, next_base })
    }

    /// The head.
    pub fn head(&self) -> &Head {
        &self.own.head
    }

    /// The tail.
    pub fn tail(&self) -> &Tail {
        &self.own.tail
    }

    /// The rules in force; known once all objects were given.
    pub fn rules(&self) -> Option<&Rules> {
        self.own.rules.as_ref()
    }

    /// The next object.
    #[expect(clippy::should_implement_trait, reason = "it can fail")]
    pub fn next(&mut self) -> Result<Option<Entry>, Error> {
        self.next_unread()?.map(|line| line.read()).transpose()
    }

    /// The same, not read yet.
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

/// A base is a snapshot still, or was one.
pub fn open_base(dir: &Dir, n: u64) -> Result<Reading, Error> {
    let (as_snapshot, as_base) = (name(n), base_name(n));
    let is_there = dir.at(&as_snapshot).stat().at("look at", dir.at(&as_snapshot))?.is_some();
    let at = if is_there { dir.at(&as_snapshot) } else { dir.at(&as_base) };
    let base = Reading::open(at, n)?;
    if base.head.base.is_some() {
        return Err(damaged(&at.to_string(), "it is the base of others, and has one itself"));
    }
    Ok(base)
}

/// Reads the rules of a snapshot, which stand at its end, without what lies before them: whoever goes by them reads the rest too, and
/// finds there whether all is whole.
pub fn rules(dir: &Dir, n: u64) -> Result<Rules, Error> {
    let name = name(n);
    let at = dir.at(&name);
    let (file, end, _) = open(at)?;
    let mut length = TAIL_MAX;
    loop {
        length = (length * 8).min(end);
        let mut text = vec![0; usize::try_from(length).unwrap_or(0)];
        file.read_exact_at(&mut text, end - length).at("read", at)?;
        let line = text.strip_suffix(b"\n").unwrap_or(&text);
        match line.iter().rposition(|b| *b == b'\n') {
            None if length < end => {}
            begins => {
                return match serde_json::from_slice(&line[begins.map_or(0, |at| at + 1)..]) {
                    Ok(Line::Rules(rules)) => Ok(rules),
                    _ => Err(damaged(&at.to_string(), "its rules are missing")),
                };
            }
        }
    }
}
