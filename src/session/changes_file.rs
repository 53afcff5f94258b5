//! `changes.jsonl`: numbered changes, a line each. Staging appends to it: the last line for a path wins, and the header counts the lines.
//! A capture rewrites it as a whole, and so does a commit with the hashes that planning took.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;

use super::change;
use super::change::{Above, Change, Changes, DirectoryTime, Line};
use super::error::damaged;
use super::header::Header;
use super::open_session::{Locked, Session, header_bytes, open_own};
use super::run_record::Run;
use crate::error::{At, Error};
use crate::fs::{AbsPath, Dir, Fs};
use crate::tree::json;

impl Session {
    /// Reads the net changes in path order.
    ///
    /// Errors: those of [`Reading::next`].
    pub fn changes(&self) -> Result<Changes, Error> {
        let mut reading = self.read_changes()?;
        let mut list = Vec::with_capacity(usize::try_from(self.header.counts.changes).unwrap_or(0).min(1 << 20));
        while let Some(change) = reading.next()? {
            list.push(change);
        }
        Ok(Changes { list, directory_times: reading.directory_times() })
    }

    /// Reads the net changes one by one. Only if lines were appended since the file was last written whole are all in memory at once.
    pub fn read_changes(&self) -> Result<Reading, Error> {
        let at = self.dir.at(b"changes.jsonl");
        let mut reading = Reading {
            shown: at.to_string(),
            lines: None,
            net: Vec::new().into_iter(),
            directory_times: Vec::new(),
            above: Vec::new(),
            given: 0,
            of: self.header.counts.changes,
        };
        if let Some(changes) = self.changes_so_far() {
            (reading.net, reading.directory_times) = (changes.list.clone().into_iter(), changes.directory_times.clone());
            return Ok(reading);
        }
        if self.header.lines == 0 {
            return Ok(reading);
        }
        let Some((file, _)) = open_own(at)? else { return Err(reading.damaged("it is missing".into())) };
        let mut lines = Lines::new(file, self.header.lines, reading.shown.clone());
        if lines.is_whole()? {
            reading.lines = Some(lines);
            return Ok(reading);
        }
        let mut net = Last::default();
        while let Some(line) = lines.next()? {
            net.take(line);
        }
        let changes = net.finish();
        (reading.net, reading.directory_times) = (changes.list.into_iter(), changes.directory_times);
        Ok(reading)
    }

    /// Reads the net changes of a session whose run is not collected, whatever its header counts: a crash may have come between the two.
    /// Its lines are always written as a whole.
    pub fn changes_as_written(&self) -> Result<Changes, Error> {
        let at = self.dir.at(b"changes.jsonl");
        let Some((file, _)) = open_own(at)? else { return Ok(Changes::default()) };
        let mut net = Last::default();
        for (line, number) in BufReader::with_capacity(64 << 10, file).split(b'\n').zip(1_u64..) {
            let line = serde_json::from_slice(&line.at("read", at)?);
            let why = |error| damaged(at, format!("line {number}: {error}"));
            net.take(line.map_err(why)?);
        }
        Ok(net.finish())
    }

    /// Writes `changes.jsonl` anew, in path order, durably. `lines` is the header's count that it stands for: the present one if only
    /// facts were added. The caller holds the session's lock, or the store's for a session with a journal.
    pub fn rewrite(&self, fs: &Fs, changes: &Changes, lines: u64) -> Result<(), Error> {
        self.write_anew(fs, changes, lines)?.put(fs, &self.dir)
    }

    /// Writes `changes.jsonl` anew without waiting for the disk: the operation that commits them at once syncs the whole file system
    /// before it changes anything.
    pub fn rewrite_later(&self, fs: &Fs, changes: &Changes, lines: u64) -> Result<(), Error> {
        self.write_anew(fs, changes, lines)?.name(fs, &self.dir)
    }

    /// Writes the first changes of a session that is to come, and `run.json`; durably, with all that was written on the store's file system
    /// since the session's directory was opened (D1, D7).
    pub fn write_first(&self, fs: &Fs, changes: &Changes, lines: u64, run: &Run) -> Result<(), Error> {
        self.write_anew(fs, changes, lines)?.name(fs, &self.dir)?;
        fs.replace_later(self.dir.at(b"run.json"), &json::text(run))?;
        Ok(fs.sync_fs(&self.dir)?)
    }

    /// Writes `changes.jsonl` anew under another name; the caller syncs it and gives it its name.
    pub fn write_anew(&self, fs: &Fs, changes: &Changes, lines: u64) -> Result<Written, Error> {
        let mut writing = Writing::begin(fs, &self.dir, lines)?;
        for change in &changes.list {
            writing.change(change)?;
        }
        writing.end(&changes.directory_times)
    }

    /// Writes `changes.jsonl` anew under another name, each change as `teach` leaves it, which may only add facts. The caller syncs it
    /// and gives it its name.
    pub fn write_taught<E: From<Error>>(
        &self,
        fs: &Fs,
        mut teach: impl FnMut(usize, &mut Change) -> Result<(), E>,
    ) -> Result<Written, E> {
        let mut reading = self.read_changes()?;
        let mut writing = Writing::begin(fs, &self.dir, self.header.lines)?;
        let mut index = 0;
        while let Some(mut change) = reading.next()? {
            teach(index, &mut change)?;
            writing.change(&change)?;
            index += 1;
        }
        Ok(writing.end(&reading.directory_times())?)
    }
}

const NEW: &[u8] = b"changes.jsonl.new";

/// A `changes.jsonl` being written.
struct Writing<'a> {
    fs: &'a Fs,
    dir: &'a Dir,
    file: std::fs::File,
    buffer: Vec<u8>,
    /// The length in bytes of all that was written and is in the buffer.
    end: u64,
    lines: u64,
    follow: u64,
}

/// A `changes.jsonl` written whole under another name; not durable yet.
pub struct Written {
    pub file: std::fs::File,
}

impl Written {
    /// Makes it durable, then names it, durably too.
    pub fn put(self, fs: &Fs, dir: &Dir) -> Result<(), Error> {
        // D1 (file: not caught here, nor is the directory's: what is staged by hand is there before the model begins).
        fs.sync(&self.file, dir.at(NEW))?;
        self.name(fs, dir)?;
        Ok(fs.sync_dir(dir)?) // D2
    }

    /// Gives it its name in the session's directory `dir`; the caller has synced it, and syncs the directory.
    pub fn name(self, fs: &Fs, dir: &Dir) -> Result<(), Error> {
        Ok(fs.rename_over(dir.at(NEW), dir.at(b"changes.jsonl"))?)
    }
}

impl<'a> Writing<'a> {
    fn begin(fs: &'a Fs, dir: &'a Dir, lines: u64) -> Result<Self, Error> {
        let temp = dir.at(NEW);
        fs.unlink_if_there(temp)?;
        let file = fs.create(temp, 0o600)?;
        let buffer = first_line(lines, 0, 0);
        Ok(Self { fs, dir, file, end: buffer.len() as u64, buffer, lines, follow: 0 })
    }

    fn change(&mut self, change: &Change) -> Result<(), Error> {
        self.line(&LineRef::Change(change))
    }

    fn line(&mut self, line: &LineRef<'_>) -> Result<(), Error> {
        let before = self.buffer.len();
        json::append_line(&mut self.buffer, line);
        (self.follow, self.end) = (self.follow + 1, self.end + (self.buffer.len() - before) as u64);
        if self.buffer.len() > 1 << 18 { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.fs.write(&self.file, &self.buffer, self.dir.at(NEW))?;
        self.buffer.clear();
        Ok(())
    }

    /// Ends the file. The first line, which tells how many follow and where they end, is written once more, with the same length.
    fn end(mut self, times: &[DirectoryTime]) -> Result<Written, Error> {
        for time in times {
            self.line(&LineRef::DirectoryTime(time))?;
        }
        let first = first_line(self.lines, self.follow, self.end);
        if self.end == self.buffer.len() as u64 {
            self.buffer[..first.len()].copy_from_slice(&first);
            self.flush()?;
        } else {
            self.flush()?;
            self.fs.write_at(&self.file, &first, 0, self.dir.at(NEW))?;
        }
        Ok(Written { file: self.file })
    }
}

/// Makes the first line, always of the same length: JSON may be followed by spaces.
fn first_line(lines: u64, follow: u64, end: u64) -> Vec<u8> {
    let mut line = json::text(&Line::Rewritten { lines, follow, end });
    line.resize(112, b' ');
    line.push(b'\n');
    line
}

impl Locked {
    /// Replaces lines, `run.json` and header, once all that was written on the store's file system since the session was opened is
    /// durable: what they refer to, and they themselves before they get their names (D1, D3, D7). Nobody waits for the header's own name:
    /// without it `run.json` tells that the run had ended, which is only written once all is durable ([`Run::may_lack`]), and the uppers
    /// are read again. The uppers of a run in memory are gone by then: its header's name is made durable.
    pub fn save_after_all(&mut self, fs: &Fs, lines: Written, run: &Run, mut header: Header) -> Result<(), Error> {
        header.changed = crate::fs::now();
        let (run_at, at) = (self.dir.at(b"run.json"), self.dir.at(b"session.json"));
        fs.write_beside(run_at, &json::text(run))?;
        fs.write_beside(at, &header_bytes(&header))?;
        fs.sync_fs(&self.dir)?; // D1, D2, D7: one call for all of them
        lines.name(fs, &self.dir)?;
        fs.name_beside(run_at)?;
        // D2, D5: a header that counts lines must not be there without them.
        fs.sync_dir(&self.dir)?;
        // The last name: a power cut before it leaves a session that is still to be collected, whose files are all whole.
        fs.name_beside(at)?;
        if run.in_memory {
            fs.sync_dir(&self.dir)?; // D2
        }
        self.set_header(header);
        Ok(())
    }

    /// Adds lines and counts them (I10). `changes` is the number of net changes afterwards, `held` the bytes of their content, `content`
    /// the new files in it, in the directory `objects`.
    pub fn append(
        &mut self,
        fs: &Fs,
        lines: &[Line],
        (changes, held): (u64, u64),
        content: &[File],
        objects: &Dir,
    ) -> Result<(), Error> {
        let at = self.dir.at(b"changes.jsonl");
        let file = fs.append(at)?;
        self.cut_uncounted(fs, &file)?;
        let bytes = lines.iter().map(json::line).collect::<Vec<_>>().concat();
        fs.write(&file, &bytes, at)?;
        let mut header = self.header.clone();
        header.lines += lines.len() as u64;
        header.counts.changes = changes;
        header.sizes.held = held;
        if !header.begun {
            header.acted = self.act_of_save(fs)?;
        }
        // D1: content and lines are durable before the count that makes them count.
        let own = self.dir.path().to_owned();
        let files: Vec<_> = content.iter().map(|file| (file, objects.path())).chain([(&file, &*own)]).collect();
        // One that a verb makes for itself comes to nothing if this fails.
        match header.begun {
            true => self.save_after(fs, header, &files, &[objects]),
            false => self.save_at_last(fs, header, &files, &[objects]),
        }
    }

    /// Cuts off lines that an interrupted staging left behind those that the header counts.
    fn cut_uncounted(&self, fs: &Fs, file: &std::fs::File) -> Result<(), Error> {
        let at = self.dir.at(b"changes.jsonl");
        let mut reader = BufReader::with_capacity(64 << 10, file);
        let (mut text, mut end, mut counted, mut owed) = (Vec::new(), 0_u64, 0, 0);
        let mut first = true;
        while counted < self.header.lines || owed > 0 {
            text.clear();
            let got = reader.read_until(b'\n', &mut text).at("read", at)?;
            if text.last() != Some(&b'\n') {
                return Err(damaged(at, "it has fewer lines than the session counts"));
            }
            end += got as u64;
            match serde_json::from_slice(&text) {
                Ok(Line::Rewritten { lines, follow, .. }) if first => (counted, owed) = (lines, follow),
                _ if owed > 0 => owed -= 1,
                _ => counted += 1,
            }
            first = false;
        }
        let size = crate::fs::stat_of(file.as_fd()).at("look at", at)?.size;
        if size > end {
            fs.set_size(file, end, at)?;
        }
        Ok(())
    }
}

/// Reads the changes of a session, one by one in path order. Checks each on the way; only the end tells that it was all.
pub struct Reading {
    shown: String,
    lines: Option<Lines>,
    net: std::vec::IntoIter<Change>,
    directory_times: Vec<DirectoryTime>,
    above: Vec<Above>,
    given: u64,
    of: u64,
}

impl Reading {
    /// Returns the next change.
    ///
    /// Errors: there are fewer whole lines than the header counts; a line cannot be read, is out of order, or contradicts another.
    pub fn next(&mut self) -> Result<Option<Change>, Error> {
        let change = match &mut self.lines {
            None => self.net.next(),
            Some(lines) => loop {
                match lines.next()? {
                    Some(Line::Change(change)) => break Some(*change),
                    Some(Line::DirectoryTime(time)) => self.directory_times.push(time),
                    Some(Line::None { .. } | Line::Rewritten { .. }) => {}
                    None => break None,
                }
            },
        };
        let Some(change) = change else {
            if self.given != self.of {
                return Err(self.damaged(format!("it holds {} changes; the session counts {}", self.given, self.of)));
            }
            return Ok(None);
        };
        // Readers have room for as many changes as the header counts.
        if self.given == self.of {
            return Err(self.damaged(format!("it holds more than the {} changes that the session counts", self.of)));
        }
        if let Err(why) = change::fits_under(&mut self.above, &change) {
            return Err(self.damaged(format!("{} {why}", change.path)));
        }
        self.given += 1;
        Ok(Some(change))
    }

    /// The mtimes of directories that are no changes, in path order, once all changes were read.
    pub fn directory_times(self) -> Vec<DirectoryTime> {
        self.directory_times
    }

    fn damaged(&self, why: String) -> Error {
        damaged(&self.shown, why)
    }
}

/// Reads the lines that the header counts.
struct Lines {
    reader: BufReader<std::fs::File>,
    text: Vec<u8>,
    shown: String,
    number: u64,
    counts: u64,
    counted: u64,
    owed: u64,
    first: Option<Line>,
}

impl Lines {
    fn new(file: std::fs::File, counts: u64, shown: String) -> Self {
        let reader = BufReader::with_capacity(64 << 10, file);
        Self { reader, text: Vec::new(), shown, number: 0, counts, counted: 0, owed: 0, first: None }
    }

    /// True if the file was written as a whole, and nothing was appended since: then each path has one line, in path order.
    fn is_whole(&mut self) -> Result<bool, Error> {
        match self.read()? {
            Line::Rewritten { lines, follow, .. } => {
                (self.counted, self.owed) = (lines, follow);
                Ok(lines >= self.counts)
            }
            line => {
                self.counted = 1;
                self.first = Some(line);
                Ok(false)
            }
        }
    }

    fn next(&mut self) -> Result<Option<Line>, Error> {
        if let Some(line) = self.first.take() {
            return Ok(Some(line));
        }
        if self.counted >= self.counts && self.owed == 0 {
            return Ok(None);
        }
        match self.read()? {
            Line::Rewritten { .. } => Err(self.damaged(format!("line {} stands in the wrong place", self.number))),
            line => {
                if self.owed > 0 {
                    self.owed -= 1
                } else {
                    self.counted += 1
                }
                Ok(Some(line))
            }
        }
    }

    fn read(&mut self) -> Result<Line, Error> {
        self.number += 1;
        self.text.clear();
        self.reader.read_until(b'\n', &mut self.text).at("read", &self.shown)?;
        if self.text.last() != Some(&b'\n') {
            let why = format!("it ends after {} lines; the session counts {}", self.number - 1, self.counts);
            return Err(self.damaged(why));
        }
        serde_json::from_slice(&self.text).map_err(|error| self.damaged(format!("line {}: {error}", self.number)))
    }

    fn damaged(&self, why: String) -> Error {
        damaged(&self.shown, why)
    }
}

/// A line to be written, borrowed.
#[derive(serde::Serialize)]
#[serde(rename_all = "snake_case")]
enum LineRef<'a> {
    Change(&'a Change),
    #[serde(rename = "folder_time")]
    DirectoryTime(&'a DirectoryTime),
}

impl Changes {
    /// These changes with further lines: the last one for a path counts.
    pub fn with(self, lines: Vec<Line>) -> Self {
        let mut last = Last::of(self);
        lines.into_iter().for_each(|line| last.take(line));
        last.finish()
    }
}

/// Net changes, put together from lines: the last line for a path counts.
#[derive(Default)]
pub(super) struct Last {
    paths: BTreeMap<AbsPath, AtPath>,
}

/// All that the lines so far say of one path; `None` if they say nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct AtPath {
    /// Its change; the inner `None` if it has none any more.
    pub change: Option<Option<Change>>,
    /// Its time as a directory that is no change; the inner `None` if that is no matter any more.
    pub time: Option<Option<DirectoryTime>>,
}

impl Last {
    /// All that a list of changes says.
    pub fn of(changes: Changes) -> Self {
        let mut last = Self::default();
        changes.list.into_iter().for_each(|change| last.take(Line::Change(Box::new(change))));
        changes.directory_times.into_iter().for_each(|time| last.take(Line::DirectoryTime(time)));
        last
    }

    pub fn take(&mut self, line: Line) {
        let Some(path) = line.path().cloned() else { return };
        let at = self.paths.entry(path).or_default();
        match line {
            // The time of a directory that is a change is in the change.
            Line::Change(change) => (at.change, at.time) = (Some(Some(*change)), Some(None)),
            Line::None { .. } => (at.change, at.time) = (Some(None), Some(None)),
            Line::DirectoryTime(time) => at.time = Some(Some(time)),
            Line::Rewritten { .. } => {}
        }
    }

    /// All that was said of a path.
    pub fn at(&self, path: &AbsPath) -> Option<&AtPath> {
        self.paths.get(path)
    }

    /// The paths of which something was said as of changes, in path order.
    pub fn changed(&self) -> impl Iterator<Item = (&AbsPath, &Option<Change>)> {
        self.paths.iter().filter_map(|(path, at)| Some((path, at.change.as_ref()?)))
    }

    /// All that was said at and under a path, in path order.
    pub fn under<'p>(&'p self, path: &'p AbsPath) -> impl Iterator<Item = (&'p AbsPath, &'p AtPath)> {
        self.paths.range(path..).take_while(move |(at, _)| at.is_under(path))
    }

    /// The net changes. The time of a directory that did not change is left out, unless names in it did: a commit puts it back then.
    pub fn finish(self) -> Changes {
        let mut changes = Changes::default();
        for AtPath { change, time } in self.paths.into_values() {
            changes.list.extend(change.flatten());
            changes.directory_times.extend(time.flatten());
        }
        let parents: HashSet<AbsPath> = changes.list.iter().filter_map(|change| change.path.parent()).collect();
        changes.directory_times.retain(|time| time.before != time.after || parents.contains(&time.path));
        changes
    }
}
