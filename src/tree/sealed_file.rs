//! Files of JSON lines whose last line is the seal, `{"end": SEAL}`, with the SHA-256 of all bytes before it.
//!
//! They are written whole under a temporary name ([`Writing`]). Reading returns no record before the hash was verified
//! ([`Sealed::records`]). A file is damaged, and nothing of it counts, if it is torn anywhere, has a bit flipped before its seal or in its
//! hash, or has something behind its seal. What a seal has beside the hash is for people. This takes two passes, and the memory of one line,
//! however large the file is.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Take};
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::hash::{Hash, Hasher};
use super::json;
use crate::error::{At, Error, IoError};
use crate::fs::{Dir, Fs, stat_of};

/// The most bytes of a line, with its newline. A path with all possible xattrs (64 KiB each, 64 KiB of names: xattr(7)) stays below.
const LINE_MAX: u64 = 1 << 30;

/// The most bytes of the last line: a hash, and numbers.
const SEAL_MAX: u64 = 4096;

/// Bytes that are written at once; the line that exceeds them still counts in.
const PIECE: usize = 256 << 10;

/// Makes the error for a damaged file from its path and the fault, in the words of the file's room.
pub type Damaged = fn(&str, &str) -> Error;

/// The content of the last line.
pub trait Seal: Serialize + DeserializeOwned {
    /// SHA-256 of all bytes before that line.
    fn hash(&self) -> Hash;
}

impl Seal for Hash {
    fn hash(&self) -> Hash {
        *self
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Last<S> {
    End(S),
}

/// A sealed file being written.
pub struct Writing<'a> {
    fs: &'a Fs,
    dir: &'a Dir,
    temp: Vec<u8>,
    file: File,
    buffer: Vec<u8>,
    hasher: Hasher,
}

impl<'a> Writing<'a> {
    /// Makes the file `temp` (mode 0600) in `dir`; first removes one of that name.
    pub fn begin(fs: &'a Fs, dir: &'a Dir, temp: &[u8]) -> Result<Self, IoError> {
        let at = dir.at(temp);
        fs.unlink_if_there(at)?;
        let file = fs.create(at, 0o600)?;
        Ok(Self { fs, dir, temp: temp.to_vec(), file, buffer: Vec::new(), hasher: Hasher::default() })
    }

    /// Adds a record. Returns its text, without a newline.
    ///
    /// Errors: the write fails, or the line would be too long to be read back (1 GiB).
    pub fn line(&mut self, record: &impl Serialize) -> Result<&[u8], IoError> {
        if self.buffer.len() > PIECE {
            self.write()?;
        }
        let begins = self.buffer.len();
        json::append_line(&mut self.buffer, record);
        let line = &self.buffer[begins..];
        self.hasher.update(line);
        match line {
            [text @ .., _] if (text.len() as u64) < LINE_MAX => Ok(text),
            _ => Err(io::Error::other("a line of it would be longer than 1 GiB")).at("write", self.dir.at(&self.temp)),
        }
    }

    fn write(&mut self) -> Result<(), IoError> {
        self.fs.write(&self.file, &self.buffer, self.dir.at(&self.temp))?;
        self.buffer.clear();
        Ok(())
    }

    /// Adds the seal that `seal` makes of the hash. Returns the file, which is not synced, and the hash.
    pub fn end<S: Seal>(mut self, seal: impl FnOnce(Hash) -> S) -> Result<(File, Hash), IoError> {
        let hash = std::mem::take(&mut self.hasher).finish();
        json::append_line(&mut self.buffer, &Last::End(seal(hash)));
        self.write()?;
        Ok((self.file, hash))
    }
}

/// A file with its seal. [`Self::records`] tells whether the rest is whole.
pub struct Sealed<S> {
    file: File,
    shown: String,
    damaged: Damaged,
    /// Bytes before the last line.
    end: u64,
    pub seal: S,
}

impl<S: Seal> Sealed<S> {
    /// Reads the seal of `file`, of which nothing has been read yet; `shown` is its path in messages.
    ///
    /// Errors: it is `damaged` if the last line is no seal.
    pub fn open(file: File, shown: impl Display, damaged: Damaged) -> Result<Self, Error> {
        let shown = shown.to_string();
        let size = stat_of(&file).at("look at", &shown)?.size;
        let line = last_line(&file, size, SEAL_MAX).at("read", &shown)?;
        match serde_json::from_slice(&line) {
            Ok(Last::End(seal)) if line.ends_with(b"\n") => {
                Ok(Self { file, shown, damaged, end: size - line.len() as u64, seal })
            }
            _ => Err(damaged(&shown, "its end is missing")),
        }
    }

    /// Returns all records, in the order in which they were written.
    ///
    /// Errors: it is damaged if the hash is not that of what lies before the seal.
    pub fn records(self) -> Result<Records, Error> {
        if Hash::of_file(&self.file, self.end).at("read", &self.shown)? != self.seal.hash() {
            return Err((self.damaged)(&self.shown, "its hash does not match its content"));
        }
        (&self.file).rewind().at("read", &self.shown)?; // hashing may have moved it
        Ok(Records::of(self.file.take(self.end), &self.shown, self.damaged))
    }

    /// Reads the first record, of at most `most` bytes, and the seal, and nothing in between.
    ///
    /// Errors: those of [`Records::record`]; it is damaged if there is no record.
    pub fn ends<T: DeserializeOwned>(self, most: u64) -> Result<(T, S), Error> {
        let first = Records::of(self.file.take(self.end.min(most)), &self.shown, self.damaged).record()?;
        Ok((first.ok_or_else(|| (self.damaged)(&self.shown, "it is empty"))?, self.seal))
    }

    /// Reads the last record, and nothing before it.
    ///
    /// Errors: it is damaged if it cannot be read as a `T`.
    pub fn last<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let line = last_line(&self.file, self.end, LINE_MAX).at("read", &self.shown)?;
        serde_json::from_slice(&line).map_err(|error| (self.damaged)(&self.shown, &format!("its last record: {error}")))
    }
}

/// Reads the last line of the first `end` bytes, backwards in growing pieces; at most its last `most` bytes.
fn last_line(file: &File, end: u64, most: u64) -> io::Result<Vec<u8>> {
    let most = most.min(end);
    let mut length = SEAL_MAX.min(most);
    loop {
        let mut text = vec![0; usize::try_from(length).unwrap_or(0)];
        file.read_exact_at(&mut text, end - length)?;
        match text.split_last().and_then(|(_, before)| before.iter().rposition(|b| *b == b'\n')) {
            None if length < most => length = (length * 8).min(most),
            newline => return Ok(text.split_off(newline.map_or(0, |at| at + 1))),
        }
    }
}

/// Reads the records of a file, one line in memory at a time.
pub struct Records {
    reader: BufReader<Take<File>>,
    shown: Rc<str>,
    damaged: Damaged,
    number: u64,
    most: u64,
}

/// The text of a record, not parsed yet.
pub struct Line {
    /// JSON, without a newline.
    pub text: Vec<u8>,
    shown: Rc<str>,
    damaged: Damaged,
    number: u64,
}

impl Records {
    fn of(file: Take<File>, shown: &str, damaged: Damaged) -> Self {
        Self { reader: BufReader::with_capacity(128 << 10, file), shown: shown.into(), damaged, number: 0, most: LINE_MAX }
    }

    /// Returns the line of the next record; `None` behind the last.
    ///
    /// Errors: it is damaged if the line has no end, or is longer than any that is written (1 GiB).
    pub fn line(&mut self) -> Result<Option<Line>, Error> {
        self.number += 1;
        let mut line = Line { text: Vec::new(), shown: self.shown.clone(), damaged: self.damaged, number: self.number };
        self.reader.by_ref().take(self.most).read_until(b'\n', &mut line.text).at("read", &self.shown)?;
        let is_full = line.text.len() as u64 == self.most;
        match line.text.pop() {
            None => Ok(None),
            Some(b'\n') => Ok(Some(line)),
            Some(_) if is_full => Err(line.damaged("it is longer than any can be")),
            Some(_) => Err(line.damaged("its end is missing")),
        }
    }

    /// Returns the next record; `None` behind the last.
    ///
    /// Errors: those of [`Self::line`] and [`Line::parse`].
    pub fn record<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Error> {
        self.line()?.map(|line| line.parse()).transpose()
    }
}

impl Line {
    /// Parses the record.
    ///
    /// Errors: it is damaged if it is no JSON of a `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.text).map_err(|error| self.damaged(error))
    }

    /// Makes the error for damage at this line.
    pub fn damaged(&self, why: impl Display) -> Error {
        (self.damaged)(&self.shown, &format!("line {}: {why}", self.number))
    }
}

#[cfg(test)]
mod tests {
    use crate::error::Kind;
    use crate::tree::sealed_file::*;
    use std::path::Path;

    const RECORDS: [&str; 3] = ["one", "two \u{e4}\n", ""];

    /// Makes the bytes of a file with these records.
    fn sealed(records: &[&str]) -> Vec<u8> {
        let directory = tempfile::tempdir().expect("a directory");
        let (fs, dir) = (Fs::new(), Dir::open(directory.path()).expect("the directory"));
        let mut writing = Writing::begin(&fs, &dir, b"new").expect("a file");
        for record in records {
            let text = writing.line(record).expect("a write").to_vec();
            assert_eq!(text, json::text(record));
        }
        let (_, hash) = writing.end(|hash| hash).expect("a write");
        let bytes = std::fs::read(directory.path().join("new")).expect("the file");
        let start = &bytes[..bytes.len() - json::line(&Last::End(hash)).len()];
        assert_eq!(hash, Hash::of(start));
        bytes
    }

    fn file(bytes: &[u8]) -> File {
        let file = tempfile::tempfile().expect("a file");
        file.write_all_at(bytes, 0).expect("a write");
        file
    }

    fn damaged(path: &str, why: &str) -> Error {
        Error::at(Kind::Damaged, path, why)
    }

    fn open(bytes: &[u8]) -> Result<Sealed<Hash>, Error> {
        Sealed::open(file(bytes), "f", damaged)
    }

    fn read(bytes: &[u8]) -> Result<Vec<String>, Error> {
        let mut records = open(bytes)?.records()?;
        std::iter::from_fn(|| records.record().transpose()).collect()
    }

    #[track_caller]
    fn why<T>(read: Result<T, Error>) -> String {
        match read {
            Err(error) if error.kind() == Kind::Damaged => error.to_string(),
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("it counts as whole"),
        }
    }

    #[test]
    fn what_was_written_is_read_in_pieces_of_any_size() {
        let long = "x".repeat(3 * PIECE);
        let many = vec!["a record"; 100_000];
        for records in [&[][..], &RECORDS, &[&long, "y", &long], &many] {
            let bytes = sealed(records);
            assert!(read(&bytes).expect("it is whole") == records, "{} records", records.len());
            let sealed = open(&bytes).expect("its seal");
            assert_eq!(sealed.last::<String>().ok().as_deref(), records.last().copied());
            let first = sealed.ends::<String>(u64::MAX).ok().map(|(first, _)| first);
            assert_eq!(first.as_deref(), records.first().copied());
        }
    }

    #[test]
    fn the_bytes_are_json_lines_and_the_hash_of_all_before() {
        let start = "\"one\"\n\"two \u{e4}\\n\"\n\"\"\n";
        let end = format!("{{\"end\":\"{}\"}}\n", Hash::of(start.as_bytes()));
        assert_eq!(String::from_utf8(sealed(&RECORDS)).expect("text"), format!("{start}{end}"));
    }

    #[test]
    fn a_file_that_is_torn_at_any_byte_is_damaged() {
        let bytes = sealed(&RECORDS);
        for end in 0..bytes.len() {
            assert_eq!(why(read(&bytes[..end])), "f: its end is missing", "torn behind {end} bytes");
        }
    }

    #[test]
    fn a_file_with_any_bit_flipped_is_damaged() {
        let bytes = sealed(&RECORDS);
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let why = why(read(&bytes));
            let (missing, wrong) = ("f: its end is missing", "f: its hash does not match its content");
            assert!(why == missing || why == wrong, "bit {bit}: {why}");
        }
    }

    #[test]
    fn a_file_that_lacks_a_line_or_has_one_more_is_damaged() {
        let bytes = sealed(&RECORDS);
        let lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
        for i in 0..lines.len() {
            let less = [&lines[..i], &lines[i + 1..]].concat().concat();
            let twice = [&lines[..i], &lines[i..=i], &lines[i..]].concat().concat();
            for bytes in [less, twice] {
                why(read(&bytes));
            }
        }
        for more in ["\n", "{", "\"four\"\n", "\0"] {
            assert_eq!(why(read(&[&bytes, more.as_bytes()].concat())), "f: its end is missing", "{more:?} behind its end");
        }
    }

    #[test]
    fn a_line_is_read_up_to_the_longest_that_is_written_and_no_further() {
        let bytes = sealed(&["12345678", "123456789"]);
        let mut records = open(&bytes).and_then(Sealed::records).expect("it is whole");
        records.most = 11; // with quotes and newline
        assert_eq!(records.record::<String>().expect("as long as may be").as_deref(), Some("12345678"));
        assert_eq!(why(records.line()), "f: line 2: it is longer than any can be");
        let sealed = open(&bytes).expect("its seal");
        assert_eq!(why(sealed.ends::<String>(5)), "f: line 1: its end is missing");
        let no_end = [&vec![b' '; 5000][..], b"\n"].concat();
        assert_eq!(why(read(&no_end)), "f: its end is missing");
    }

    #[test]
    fn a_record_of_another_kind_is_named_by_its_line() {
        let mut records = Sealed::<Hash>::open(file(&sealed(&RECORDS)), Path::new("d/f").display(), damaged)
            .and_then(Sealed::records)
            .expect("whole");
        assert_eq!(records.record::<String>().expect("a string").as_deref(), Some("one"));
        let why = why(records.record::<u32>());
        assert!(why.starts_with("d/f: line 2: invalid type: string"), "{why}");
    }
}
