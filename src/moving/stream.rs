//! The stream: a line with its version, records, and the hash of all before. docs/store-format.md has its format.
//!
//! A record is a byte for its kind, its length (four bytes, big endian), and that many bytes. None is longer than [`RECORD_MAX`], so that
//! no length is believed before the bytes are there.

use std::io::{Read, Write};

use serde::{Deserialize, Serialize};

use super::error::{broken, other_version};
use crate::error::{At, Error};
use crate::fs::{AbsPath, Time};
use crate::session::{ActingAgent, Arg, Ending, Id, Origin};
use crate::tree::{Hash, Hasher, json, time};

const FIRST_LINE: &[u8] = b"recant-export 1\n";
const WORD: &[u8] = b"recant-export ";
/// The most bytes of a record's body.
const RECORD_MAX: usize = 4 << 20;
/// The most bytes of content in a record that an export writes.
pub const PIECE: usize = 256 << 10;

const HEAD: u8 = b'H';
const CHANGE: u8 = b'C';
const DIRECTORY_TIME: u8 = b'T';
const OBJECT: u8 = b'O';
const DATA: u8 = b'D';
const SUM: u8 = b'S';
const END: u8 = b'E';

/// Facts about the session as a whole: the first record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Head {
    pub id: Id,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub origin: Origin,
    #[serde(with = "time")]
    pub created: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The agent that made it, on the machine where it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ActingAgent>,
    /// True if content may be missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsynced: bool,
    /// True if it is committed, and the content of its originals follows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checkpoint: bool,
    pub changes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<History>,
}

/// Facts about a run, for people alone.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct History {
    pub argv: Vec<Arg>,
    /// Its working directory, on the machine where it ran.
    pub cwd: AbsPath,
    pub uid: u32,
    #[serde(with = "time")]
    pub started: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
}

/// The start of a change's content; or a link to an earlier one, if both are names of one file.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Object {
    pub n: u32,
    /// The number of the change that has another name of this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<u32>,
    /// The number of all names of the file, if there are several: of an original some may lie outside of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<u32>,
}

/// A stream that is being written.
pub struct Sending<'w> {
    to: &'w mut dyn Write,
    hasher: Hasher,
}

impl<'w> Sending<'w> {
    /// Begins the stream with its version and head.
    pub fn begin(to: &'w mut dyn Write, head: &Head) -> Result<Self, Error> {
        let mut sending = Self { to, hasher: Hasher::default() };
        sending.bytes(FIRST_LINE)?;
        sending.json(HEAD, head)?;
        Ok(sending)
    }

    /// Sends a change, its `before` with a hash.
    pub fn change(&mut self, change: &impl Serialize) -> Result<(), Error> {
        self.json(CHANGE, change)
    }

    /// Sends the mtime of a directory that is no change itself.
    pub fn directory_time(&mut self, time: &impl Serialize) -> Result<(), Error> {
        self.json(DIRECTORY_TIME, time)
    }

    /// Sends the start of a change's content, or its link to an earlier one.
    pub fn object(&mut self, object: Object) -> Result<(), Error> {
        self.json(OBJECT, &object)
    }

    /// Sends a piece of content that begins at byte `at`. Bytes before it that were not sent are a hole.
    pub fn data(&mut self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        self.record(DATA, &[&at.to_be_bytes(), bytes])
    }

    /// Sends the hash of the content that was sent.
    pub fn sum(&mut self, hash: Hash) -> Result<(), Error> {
        self.record(SUM, &[&hash.0])
    }

    /// Ends the stream with the hash of all before.
    pub fn end(mut self) -> Result<(), Error> {
        let hash = std::mem::take(&mut self.hasher).finish();
        self.record(END, &[&hash.0])?;
        Ok(self.to.flush().at("write", "standard output")?)
    }

    fn json(&mut self, kind: u8, value: &impl Serialize) -> Result<(), Error> {
        self.record(kind, &[&json::text(value)])
    }

    fn record(&mut self, kind: u8, parts: &[&[u8]]) -> Result<(), Error> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let counted = u32::try_from(length).ok().filter(|_| length <= RECORD_MAX);
        let counted = counted.ok_or_else(|| broken("a change has more metadata than a stream carries"))?;
        self.bytes(&[kind])?;
        self.bytes(&counted.to_be_bytes())?;
        parts.iter().try_for_each(|part| self.bytes(part))
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.hasher.update(bytes);
        Ok(self.to.write_all(bytes).at("write", "standard output")?)
    }
}

/// A record that was read; its JSON is not parsed yet.
pub enum Record<'r> {
    Change(&'r [u8]),
    DirectoryTime(&'r [u8]),
    /// The start of an object's content.
    Object(Object),
    /// Content, after the offset at which it begins.
    Data(u64, &'r [u8]),
    /// The hash of the content before.
    Sum(Hash),
    /// The end, with the hash of all before, which was checked.
    End(Hash),
}

/// A stream that is being read.
pub struct Receiving<'r> {
    from: &'r mut dyn Read,
    hasher: Hasher,
    body: Vec<u8>,
}

impl<'r> Receiving<'r> {
    pub fn begin(from: &'r mut dyn Read) -> Result<(Self, Head), Error> {
        let mut receiving = Self { from, hasher: Hasher::default(), body: Vec::new() };
        receiving.first_line()?;
        match receiving.record()? {
            HEAD => {
                let head = receiving.parse()?;
                Ok((receiving, head))
            }
            _ => Err(broken("it does not begin with the session's record")),
        }
    }

    fn first_line(&mut self) -> Result<(), Error> {
        let mut line = Vec::new();
        // No version has a longer line.
        while line.len() < 64 && line.last() != Some(&b'\n') {
            let mut byte = [0];
            self.fill(&mut byte)?;
            line.push(byte[0]);
            if !WORD.starts_with(&line[..line.len().min(WORD.len())]) {
                return Err(broken("it is not an export of a session"));
            }
        }
        if line != FIRST_LINE {
            return Err(other_version(String::from_utf8_lossy(&line[WORD.len()..]).trim_end()));
        }
        Ok(())
    }

    pub fn next(&mut self) -> Result<Record<'_>, Error> {
        let so_far = self.hasher.clone();
        Ok(match self.record()? {
            CHANGE => Record::Change(&self.body),
            DIRECTORY_TIME => Record::DirectoryTime(&self.body),
            OBJECT => Record::Object(self.parse()?),
            DATA => {
                let Some((at, bytes)) = self.body.split_first_chunk::<8>() else {
                    return Err(broken("a piece of content does not say where it belongs"));
                };
                Record::Data(u64::from_be_bytes(*at), bytes)
            }
            SUM => Record::Sum(self.hash()?),
            END => {
                let (told, hash) = (self.hash()?, so_far.finish());
                if told != hash {
                    return Err(broken("the content before its end does not match the hash there"));
                }
                self.nothing_more()?;
                Record::End(hash)
            }
            _ => return Err(broken("there is something in it that this version does not have")),
        })
    }

    /// Reads to the end, and keeps nothing. Returns the hash of all.
    pub fn pass_over(&mut self) -> Result<Hash, Error> {
        loop {
            if let Record::End(hash) = self.next()? {
                return Ok(hash);
            }
        }
    }

    fn nothing_more(&mut self) -> Result<(), Error> {
        let mut one = [0];
        loop {
            match self.from.read(&mut one) {
                Ok(0) => return Ok(()),
                Ok(_) => return Err(broken("more follows its end")),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).at("read", "standard input").map_err(Error::from),
            }
        }
    }

    fn hash(&self) -> Result<Hash, Error> {
        let bytes = <[u8; 32]>::try_from(&*self.body).map_err(|_| broken("a hash has the wrong length"))?;
        Ok(Hash(bytes))
    }

    fn parse<T: for<'de> Deserialize<'de>>(&self) -> Result<T, Error> {
        parse(&self.body)
    }

    /// Reads one record: returns its kind, and leaves its body in `body`.
    fn record(&mut self) -> Result<u8, Error> {
        let mut head = [0; 5];
        self.fill(&mut head)?;
        let [kind, length @ ..] = head;
        let length = u32::from_be_bytes(length) as usize;
        if length > RECORD_MAX {
            return Err(broken("a record is longer than any can be"));
        }
        self.body.clear();
        let got = (&mut *self.from).take(length as u64).read_to_end(&mut self.body).at("read", "standard input")?;
        if got != length {
            return Err(broken("it ends too early"));
        }
        self.hasher.update(&self.body);
        Ok(kind)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        match self.from.read_exact(bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Err(broken("it ends too early")),
            other => other.at("read", "standard input")?,
        }
        self.hasher.update(bytes);
        Ok(())
    }
}

pub fn parse<T: for<'de> Deserialize<'de>>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(broken)
}
