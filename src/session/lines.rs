//! `changes.jsonl`: numbered changes, a line each. Appended to while staging, where the last line for a path wins and the
//! header counts the lines; rewritten as a whole by a capture, and by a commit with the digests that planning took.

use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;

use super::Error;
use super::change::{Change, Changes, FolderTime, Line};
use super::store::{Locked, Session};
use crate::error::At;
use crate::fs::Fs;
use crate::fs::path::AbsPath;

impl Session {
    /// The net changes in path order.
    ///
    /// Errors: [`Error::Damaged`] where fewer whole lines are there than the header counts, where a line cannot be read,
    /// or where the changes contradict each other.
    pub fn changes(&self) -> Result<Changes, Error> {
        let at = self.dir.at(b"changes.jsonl");
        let damaged = |why: String| Error::Damaged { path: at.to_string(), why };
        if self.header.lines == 0 {
            return Ok(Changes::default());
        }
        let file = match at.open_file() {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(damaged("it is missing".into())),
            Err(error) => return Err(error).at("open", at).map_err(Error::from),
        };
        let mut net = Net::default();
        let mut reader = BufReader::with_capacity(64 << 10, file);
        let (mut text, mut counted, mut owed) = (Vec::new(), 0_u64, 0_u64);
        for number in 1_u64.. {
            if counted >= self.header.lines && owed == 0 {
                break;
            }
            text.clear();
            reader.read_until(b'\n', &mut text).at("read", at)?;
            if text.last() != Some(&b'\n') {
                return Err(damaged(format!("it ends after {} lines; the session counts {}", number - 1, self.header.lines)));
            }
            let line: Line = serde_json::from_slice(&text).map_err(|error| damaged(format!("line {number}: {error}")))?;
            match line {
                Line::Rewritten { lines, follow } if number == 1 => (counted, owed) = (lines, follow),
                Line::Rewritten { .. } => return Err(damaged(format!("line {number} stands in the wrong place"))),
                line => {
                    if owed > 0 {
                        owed -= 1
                    } else {
                        counted += 1
                    }
                    net.take(line);
                }
            }
        }
        let changes = net.finish();
        if changes.list.len() as u64 != self.header.counts.changes {
            return Err(damaged(format!(
                "it holds {} changes; the session counts {}",
                changes.list.len(),
                self.header.counts.changes
            )));
        }
        if let Some(path) = changes.contradiction() {
            return Err(damaged(format!("{path} contradicts another change")));
        }
        Ok(changes)
    }

    /// The net changes of a session whose run is not collected, whatever its header counts: a crash may have come between
    /// the two. Its lines are always written as a whole.
    pub fn changes_as_written(&self) -> Result<Changes, Error> {
        let at = self.dir.at(b"changes.jsonl");
        let file = match at.open_file() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Changes::default()),
            file => file.at("open", at)?,
        };
        let mut net = Net::default();
        for (line, number) in BufReader::with_capacity(64 << 10, file).split(b'\n').zip(1_u64..) {
            let line = serde_json::from_slice(&line.at("read", at)?);
            let why = |error| Error::Damaged { path: at.to_string(), why: format!("line {number}: {error}") };
            net.take(line.map_err(why)?);
        }
        Ok(net.finish())
    }

    /// Writes `changes.jsonl` anew, in path order. `lines` is the header's count that it stands for: the present one where
    /// facts alone were added. The caller holds the session's lock, or the store's for a session with a journal.
    pub fn rewrite(&self, fs: &Fs, changes: &Changes, lines: u64) -> Result<(), Error> {
        let at = self.dir.at(b"changes.jsonl");
        let temp = self.dir.at(b"changes.jsonl.new");
        fs.unlink_if_there(temp).at("remove", temp)?;
        let file = fs.create(temp, 0o600).at("make", temp)?;
        let follow = (changes.list.len() + changes.folder_times.len()) as u64;
        let mut buffer = json_line(&Line::Rewritten { lines, follow });
        let flush = |buffer: &mut Vec<u8>| -> Result<(), Error> {
            fs.write(&file, buffer, at.dir.path()).at("write", temp)?;
            buffer.clear();
            Ok(())
        };
        for change in &changes.list {
            write_line(&mut buffer, &LineRef::Change(change));
            if buffer.len() > 1 << 20 {
                flush(&mut buffer)?;
            }
        }
        for time in &changes.folder_times {
            write_line(&mut buffer, &LineRef::FolderTime(time));
        }
        flush(&mut buffer)?;
        // D1, then D2.
        fs.sync(&file, at.dir.path()).at("sync", temp)?;
        fs.rename_over(temp, at).at("rename", temp)?;
        fs.sync_dir(&self.dir).at("sync", self.dir.path().display())?;
        Ok(())
    }
}

impl Locked {
    /// Adds lines and counts them (S2). `changes` is the number of net changes afterwards, `held` the bytes of their content.
    pub fn append(&mut self, fs: &Fs, lines: &[Line], changes: u64, held: u64) -> Result<(), Error> {
        let at = self.dir.at(b"changes.jsonl");
        let file = fs.append(at).at("open", at)?;
        self.cut_uncounted(fs, &file)?;
        let bytes = lines.iter().map(json_line).collect::<Vec<_>>().concat();
        fs.write(&file, &bytes, at.dir.path()).at("write", at)?;
        // D1: the lines before the count that makes them count.
        fs.sync(&file, at.dir.path()).at("sync", at)?;
        let mut header = self.header.clone();
        header.lines += lines.len() as u64;
        header.counts.changes = changes;
        header.sizes.held = held;
        self.save(fs, header)
    }

    /// Cuts off what an interrupted staging left behind the lines that the header counts.
    fn cut_uncounted(&self, fs: &Fs, file: &std::fs::File) -> Result<(), Error> {
        let at = self.dir.at(b"changes.jsonl");
        let mut reader = BufReader::with_capacity(64 << 10, file);
        let (mut text, mut end, mut counted, mut owed) = (Vec::new(), 0_u64, 0, 0);
        let mut first = true;
        while counted < self.header.lines || owed > 0 {
            text.clear();
            let got = reader.read_until(b'\n', &mut text).at("read", at)?;
            if text.last() != Some(&b'\n') {
                return Err(Error::Damaged { path: at.to_string(), why: "it has fewer lines than the session counts".into() });
            }
            end += got as u64;
            match serde_json::from_slice(&text) {
                Ok(Line::Rewritten { lines, follow }) if first => (counted, owed) = (lines, follow),
                _ if owed > 0 => owed -= 1,
                _ => counted += 1,
            }
            first = false;
        }
        let size = crate::fs::dir::stat_of(file.as_fd()).at("look at", at)?.size;
        if size > end {
            fs.set_size(file, end, at.dir.path()).at("cut", at)?;
        }
        Ok(())
    }
}

/// Lines as they are written, borrowed.
#[derive(serde::Serialize)]
#[serde(rename_all = "snake_case")]
enum LineRef<'a> {
    Change(&'a Change),
    FolderTime(&'a FolderTime),
}

/// Net changes in the making.
#[derive(Default)]
struct Net {
    changes: std::collections::BTreeMap<AbsPath, Change>,
    folder_times: Vec<FolderTime>,
}

impl Net {
    fn take(&mut self, line: Line) {
        match line {
            Line::Change(change) => {
                self.changes.insert(change.path.clone(), *change);
            }
            Line::None { path, .. } => {
                self.changes.remove(&path);
            }
            Line::FolderTime(time) => self.folder_times.push(time),
            Line::Rewritten { .. } => {}
        }
    }

    fn finish(self) -> Changes {
        let mut folder_times = self.folder_times;
        folder_times.sort_by(|a, b| a.path.cmp(&b.path));
        Changes { list: self.changes.into_values().collect(), folder_times }
    }
}

fn json_line(line: &Line) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_line(&mut bytes, line);
    bytes
}

fn write_line<T: serde::Serialize>(buffer: &mut Vec<u8>, line: &T) {
    serde_json::to_writer(&mut *buffer, line).expect("recant's own types have string keys and no failing serializer");
    buffer.push(b'\n');
}
