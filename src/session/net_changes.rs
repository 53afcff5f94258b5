//! The net changes of a session, looked up by path. A step of one path must not read the twenty thousand that the session holds: the sorted
//! part of `changes.jsonl` is searched by halves, and only the lines appended since are read.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use super::change::{Change, DirectoryTime, Line};
use super::changes_file::Last;
use super::error::damaged;
use super::open_session::{Session, open_own};
use crate::error::{At, Error};
use crate::fs::AbsPath;

/// The bytes that are read at a time while searching; a line that is longer takes several reads.
const PIECE: usize = 16 << 10;

/// The bytes of sorted lines up to which all are read at once: that costs less than to search them.
const FEW: u64 = 512 << 10;

/// The net changes of a session, open for searching.
pub struct Net {
    shown: String,
    file: Option<File>,
    /// The offsets in bytes at which the sorted lines begin and end: all changes in path order, then all times in path order.
    sorted: (u64, u64),
    /// The number of sorted lines.
    many: u64,
    /// The lines behind them, which outweigh them.
    tail: Last,
    more: u64,
    /// The offset in bytes at which the lines that count end.
    end: u64,
    /// The sorted lines, once they were read.
    all: OnceCell<Last>,
    /// Their bytes, likewise.
    few: OnceCell<Vec<u8>>,
}

/// A line's place in the order of the sorted part.
type Key<'p> = (bool, &'p AbsPath);

impl Net {
    /// The net changes of a session that holds none.
    pub fn empty() -> Self {
        let (tail, all, few) = (Last::default(), OnceCell::new(), OnceCell::new());
        Self { shown: String::new(), file: None, sorted: (0, 0), many: 0, tail, more: 0, end: 0, all, few }
    }

    /// Opens the net changes that the header counts.
    ///
    /// # Errors
    /// `changes.jsonl` is missing, is shorter than the header says, or does not parse.
    pub fn open(session: &Session) -> Result<Self, Error> {
        let at = session.dir.at(b"changes.jsonl");
        let mut net = Self { shown: at.to_string(), ..Self::empty() };
        let lines = session.header.lines;
        if lines == 0 {
            return Ok(net);
        }
        let Some((file, _)) = open_own(at)? else { return Err(net.damaged("it is missing")) };
        let mut reader = BufReader::with_capacity(64 << 10, file.try_clone().at("open again", at)?);
        let (mut text, mut counted) = (Vec::new(), 0);
        net.end = net.line(&mut reader, &mut text)?;
        match net.parsed(&text)? {
            Line::Rewritten { lines: stands_for, follow, end } => {
                let begin = net.end;
                (net.sorted, net.many, net.end, counted) = ((begin, end), follow, end, stands_for);
                reader.seek(SeekFrom::Start(end)).at("read", at)?;
            }
            line => {
                net.tail.take(line);
                (net.more, counted) = (1, counted + 1);
            }
        }
        while counted < lines {
            net.end += net.line(&mut reader, &mut text)?;
            let line = net.parsed(&text)?;
            net.tail.take(line);
            (net.more, counted) = (net.more + 1, counted + 1);
        }
        net.file = Some(file);
        Ok(net)
    }

    /// The offset in bytes at which the lines that count end.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// True if with so many lines more the file should be written anew in order: each step reads what was appended.
    pub fn is_long_with(&self, lines: u64) -> bool {
        self.more + lines > 256 + self.many / 64
    }

    /// Tells how many paths will be looked up. From a part of all on, reading all is cheaper.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn expect(&self, lookups: usize) -> Result<(), Error> {
        if lookups as u64 <= self.many / 32 || self.all.get().is_some() {
            return Ok(());
        }
        let mut all = Last::default();
        self.scan(self.sorted.0, |line| {
            all.take(line);
            true
        })?;
        self.all.get_or_init(|| all);
        Ok(())
    }

    /// The change at a path.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn at(&self, path: &AbsPath) -> Result<Option<Change>, Error> {
        if let Some(change) = self.tail.at(path).and_then(|at| at.change.clone()) {
            return Ok(change);
        }
        if let Some(all) = self.all.get() {
            return Ok(all.at(path).and_then(|at| at.change.clone()).flatten());
        }
        match self.sorted_at((false, path))? {
            Some(Line::Change(change)) if change.path == *path => Ok(Some(*change)),
            _ => Ok(None),
        }
    }

    /// The time of a directory that is no change.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn time_at(&self, path: &AbsPath) -> Result<Option<DirectoryTime>, Error> {
        if let Some(time) = self.tail.at(path).and_then(|at| at.time.clone()) {
            return Ok(time);
        }
        if let Some(all) = self.all.get() {
            return Ok(all.at(path).and_then(|at| at.time.clone()).flatten());
        }
        match self.sorted_at((true, path))? {
            Some(Line::DirectoryTime(time)) if time.path == *path => Ok(Some(time)),
            _ => Ok(None),
        }
    }

    /// The changes at and under a path, in path order.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn under(&self, path: &AbsPath) -> Result<Vec<Change>, Error> {
        let mut found = BTreeMap::new();
        if let Some(start) = self.first_from((false, path))? {
            self.scan(start, |line| match line {
                Line::Change(change) if change.path.is_under(path) => {
                    found.insert(change.path.clone(), Some(*change));
                    true
                }
                _ => false,
            })?;
        }
        for (path, at) in self.tail.under(path) {
            if let Some(change) = &at.change {
                found.insert(path.clone(), change.clone());
            }
        }
        Ok(found.into_values().flatten().collect())
    }

    /// The first change at or under a path that is not at or under one of `but`; none of those is looked at.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn find_under(&self, path: &AbsPath, but: &[&AbsPath]) -> Result<Option<Change>, Error> {
        let is_out = |path: &AbsPath| but.iter().any(|but| path.is_under(but));
        let appended = self.tail.under(path).find_map(|(path, at)| at.change.clone().flatten().filter(|_| !is_out(path)));
        if appended.is_some() {
            return Ok(appended);
        }
        let mut start = self.first_from((false, path))?;
        while let Some(at) = start
            && let Some((end, Line::Change(change))) = self.line_at(at)?
            && change.path.is_under(path)
        {
            start = match but.iter().find(|but| change.path.is_under(but)) {
                Some(but) => self.first_behind(|line| match line {
                    Line::Change(change) => change.path < **but || change.path.is_under(but),
                    _ => false,
                })?,
                // It is none any more.
                None if self.tail.at(&change.path).is_some_and(|at| at.change.is_some()) => Some(end),
                None => return Ok(Some(*change)),
            };
        }
        Ok(None)
    }

    /// At most so many changes, in path order: those that were appended, then the first sorted ones.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn some(&self, count: usize) -> Result<Vec<Change>, Error> {
        let appended = self.tail.changed().take(count);
        let mut found: BTreeMap<AbsPath, Option<Change>> =
            appended.map(|(path, change)| (path.clone(), change.clone())).collect();
        self.scan(self.sorted.0, |line| match line {
            Line::Change(change) if found.len() < count => {
                found.entry(change.path.clone()).or_insert(Some(*change));
                true
            }
            _ => false,
        })?;
        Ok(found.into_values().flatten().collect())
    }

    /// The start of the first sorted line at or behind `key`.
    fn first_from(&self, key: Key<'_>) -> Result<Option<u64>, Error> {
        self.first_behind(|line| is_before(line, key))
    }

    /// The start of the first sorted line that is not `before`: all that are come first.
    fn first_behind(&self, before: impl Fn(&Line) -> bool) -> Result<Option<u64>, Error> {
        // Some line begins at `low` and is before, or `low` is the start; none that begins at or behind `high` is.
        let (mut low, mut high) = self.sorted;
        while high.saturating_sub(low) > 1024 {
            let middle = low + (high - low) / 2;
            match self.start_behind(middle)? {
                Some(start) if start < high => match self.line_at(start)? {
                    Some((_, line)) if before(&line) => low = start,
                    _ => high = middle,
                },
                _ => high = middle,
            }
        }
        let mut at = low;
        while let Some((end, line)) = self.line_at(at)? {
            if !before(&line) {
                return Ok(Some(at));
            }
            at = end;
        }
        Ok(None)
    }

    fn sorted_at(&self, key: Key<'_>) -> Result<Option<Line>, Error> {
        let Some(start) = self.first_from(key)? else { return Ok(None) };
        Ok(self.line_at(start)?.map(|(_, line)| line))
    }

    /// Reads sorted lines in order from the one that begins at `start`, as long as `take` asks for more.
    fn scan(&self, start: u64, mut take: impl FnMut(Line) -> bool) -> Result<(), Error> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut file = file.try_clone().at("open again", &self.shown)?;
        file.seek(SeekFrom::Start(start)).at("read", &self.shown)?;
        let mut reader = BufReader::with_capacity(PIECE, file);
        let (mut text, mut at) = (Vec::new(), start);
        while at < self.sorted.1 {
            at += self.line(&mut reader, &mut text)?;
            if !take(self.parsed(&text)?) {
                break;
            }
        }
        Ok(())
    }

    /// The start of the first line that begins behind `offset`; `None` if that is behind the sorted part.
    fn start_behind(&self, offset: u64) -> Result<Option<u64>, Error> {
        let mut at = offset;
        while at < self.sorted.1 {
            let piece = self.read(at)?;
            if let Some(newline) = piece.iter().position(|b| *b == b'\n') {
                let start = at + newline as u64 + 1;
                return Ok(Some(start).filter(|start| *start < self.sorted.1));
            }
            at += piece.len() as u64;
        }
        Ok(None)
    }

    /// The sorted line that begins at `start`, with the offset where it ends; `None` at their end.
    fn line_at(&self, start: u64) -> Result<Option<(u64, Line)>, Error> {
        let mut text = Vec::new();
        while start + (text.len() as u64) < self.sorted.1 {
            let piece = self.read(start + text.len() as u64)?;
            let before = text.len();
            text.extend_from_slice(&piece);
            if let Some(newline) = text[before..].iter().position(|b| *b == b'\n') {
                let end = before + newline + 1;
                return Ok(Some((start + end as u64, self.parsed(&text[..end])?)));
            }
        }
        Ok(None)
    }

    /// Reads a piece of the sorted part, one byte at least.
    fn read(&self, at: u64) -> Result<Vec<u8>, Error> {
        let room = usize::try_from(self.sorted.1.saturating_sub(at)).unwrap_or(PIECE).min(PIECE);
        if self.sorted.1 <= FEW {
            let whole = self.whole()?;
            let from = usize::try_from(at).unwrap_or(usize::MAX);
            return whole.get(from..from + room).map(<[u8]>::to_vec).ok_or_else(|| self.damaged("it ends too early"));
        }
        let mut piece = vec![0; room];
        let got = match &self.file {
            Some(file) => file.read_at(&mut piece, at).at("read", &self.shown)?,
            None => 0,
        };
        if got == 0 {
            return Err(self.damaged("it ends too early"));
        }
        piece.truncate(got);
        Ok(piece)
    }

    /// All up to the end of the sorted lines.
    fn whole(&self) -> Result<&[u8], Error> {
        if let Some(whole) = self.few.get() {
            return Ok(whole);
        }
        let mut whole = vec![0; usize::try_from(self.sorted.1).unwrap_or(0)];
        if let Some(file) = &self.file {
            file.read_exact_at(&mut whole, 0).at("read", &self.shown)?;
        }
        Ok(self.few.get_or_init(|| whole))
    }

    /// Reads a line of the tail, and returns its length in bytes.
    fn line(&self, reader: &mut BufReader<File>, text: &mut Vec<u8>) -> Result<u64, Error> {
        text.clear();
        let got = reader.read_until(b'\n', text).at("read", &self.shown)?;
        if text.last() == Some(&b'\n') { Ok(got as u64) } else { Err(self.damaged("it ends too early")) }
    }

    fn parsed(&self, text: &[u8]) -> Result<Line, Error> {
        serde_json::from_slice(text).map_err(|error| self.damaged(&format!("a line does not parse: {error}")))
    }

    fn damaged(&self, why: &str) -> Error {
        damaged(&self.shown, why)
    }
}

fn is_before(line: &Line, key: Key<'_>) -> bool {
    line.path().is_some_and(|path| (matches!(line, Line::DirectoryTime(_)), path) < key)
}
