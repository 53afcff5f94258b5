//! The index: what the newest snapshot saw of each object, so that an unchanged object is not read again. A hint (N5): an index that is
//! missing, cut off, of another snapshot or of another form counts for nothing.

use super::manifest::At;
use crate::error::{At as _, Error};
use crate::fs::{AbsPath, Dev, Dir, Fs, Sort, Stat, Time};
use crate::tree::{Hash, Hasher, is_young};

/// The signs by which a change of an object is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Key {
    dev: Dev,
    ino: u64,
    size: u64,
    mtime: Time,
    ctime: Time,
}

impl Key {
    pub fn of(stat: &Stat) -> Self {
        Self { dev: stat.dev, ino: stat.ino, size: stat.size, mtime: stat.mtime, ctime: stat.ctime }
    }
}

/// The facts known of an object from before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The path, with the directory as `/`.
    pub path: AbsPath,
    /// The object's state by its times; `None` if only the manifest is known.
    pub key: Option<Key>,
    pub mark: u64,
    /// [`super::manifest::Entry::sign`] of its line in the manifest.
    pub sign: u64,
    pub hash: Option<Hash>,
    pub at: Option<At>,
    /// Bytes of content.
    pub size: u64,
    pub is_dir: bool,
    /// The inode number, if it could be looked at.
    pub ino: Option<u64>,
    /// True if it could not be read.
    pub unread: bool,
    /// True if somebody had it open for writing when it was read.
    pub written: bool,
}

const NAME: &[u8] = b"index";
const MAGIC: &[u8; 16] = b"recant-index  2\n";
const HASH: usize = 32;
const HEAD: usize = 16 + 8 + HASH + 12;

pub struct Index {
    bytes: Vec<u8>,
    started: Time,
}

impl Index {
    /// The index of snapshot `n`, whose manifest has this hash; `None` if there is none that can be believed.
    pub fn open(dir: &Dir, n: u64, manifest: Hash) -> Result<Option<Self>, Error> {
        use std::io::Read;
        let at = dir.at(NAME);
        let mut file = match at.open_file() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).at("read", at)?;
        let Some(end) = bytes.len().checked_sub(HASH).filter(|end| *end >= HEAD) else { return Ok(None) };
        let of = [&MAGIC[..], &n.to_le_bytes(), &manifest.0].concat();
        if bytes[..of.len()] != of || Hash::of(&bytes[..end]).0 != bytes[end..] {
            return Ok(None);
        }
        bytes.truncate(end);
        let mut cursor = Cut(&bytes[of.len()..]);
        let started = cursor.time();
        Ok(started.map(|started| Self { bytes, started }))
    }

    /// All known objects, in the order of paths.
    pub fn known(&self) -> impl Iterator<Item = Known> + '_ {
        let mut cut = Cut(&self.bytes[HEAD..]);
        std::iter::from_fn(move || cut.known())
    }

    /// Tells whether an object is certainly unchanged: times too close to the beginning of the snapshot prove nothing.
    pub fn believes(&self, known: &Known, stat: &Stat) -> bool {
        let old = |time: Time| !is_young(time, self.started);
        known.key == Some(Key::of(stat)) && !known.unread && !known.written && old(stat.mtime) && old(stat.ctime)
    }
}

/// Bytes that are read from the front.
struct Cut<'b>(&'b [u8]);

impl Cut<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn time(&mut self) -> Option<Time> {
        Some(Time { s: self.take().map(i64::from_le_bytes)?, ns: self.u32()? })
    }

    fn known(&mut self) -> Option<Known> {
        let length = self.u32()? as usize;
        let (path, rest) = self.0.split_at_checked(length)?;
        let path = AbsPath::parse(path).ok()?;
        self.0 = rest;
        let [flags] = self.take()?;
        let has = |flag: u8| flags & flag != 0;
        let key = Key {
            dev: Dev(self.u32()?, self.u32()?),
            ino: self.u64()?,
            size: self.u64()?,
            mtime: self.time()?,
            ctime: self.time()?,
        };
        let (mark, sign) = (self.u64()?, self.u64()?);
        let hash = if has(HAS_HASH) { Some(Hash(self.take()?)) } else { None };
        let at = if has(IN_PACK) {
            Some(At::Pack { pack: self.u64()?, offset: self.u64()? })
        } else {
            has(IN_BLOB).then_some(At::Blob)
        };
        let (is_dir, unread, written) = (has(IS_DIRECTORY), has(UNREAD), has(WRITTEN));
        let size = if hash.is_some() { key.size } else { 0 };
        let ino = Some(key.ino).filter(|ino| *ino != 0);
        Some(Known { path, key: Some(key), mark, sign, hash, at, size, is_dir, ino, unread, written })
    }
}

const HAS_HASH: u8 = 1;
const IN_PACK: u8 = 2;
const IN_BLOB: u8 = 4;
const IS_DIRECTORY: u8 = 8;
const UNREAD: u8 = 16;
const WRITTEN: u8 = 32;

/// An index in the making, in memory: about 200 bytes an object.
pub struct Making {
    bytes: Vec<u8>,
}

impl Making {
    /// Begins the index of a snapshot that began at `started`.
    pub fn begin(started: Time) -> Self {
        let mut bytes = vec![0; HEAD - 12];
        bytes[..MAGIC.len()].copy_from_slice(MAGIC);
        let mut making = Self { bytes };
        making.time(started);
        making
    }

    fn time(&mut self, time: Time) {
        self.bytes.extend({ time.s }.to_le_bytes());
        self.bytes.extend({ time.ns }.to_le_bytes());
    }

    /// Adds what is known of an object, with its stat; in the order of paths.
    pub fn add(&mut self, known: &Known, stat: Option<&Stat>) {
        // No stat is like the default one.
        let stat = stat.map(Key::of).unwrap_or_default();
        let path = known.path.as_bytes();
        self.bytes.extend(u32::try_from(path.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.bytes.extend(path);
        let flag = |on: bool, flag: u8| if on { flag } else { 0 };
        let at = match known.at {
            None => 0,
            Some(At::Pack { .. }) => IN_PACK,
            Some(At::Blob) => IN_BLOB,
        };
        let flags = flag(known.hash.is_some(), HAS_HASH)
            | flag(known.is_dir, IS_DIRECTORY)
            | flag(known.unread, UNREAD)
            | flag(known.written, WRITTEN);
        self.bytes.push(at | flags);
        self.bytes.extend(stat.dev.0.to_le_bytes());
        self.bytes.extend(stat.dev.1.to_le_bytes());
        self.bytes.extend(stat.ino.to_le_bytes());
        self.bytes.extend(stat.size.to_le_bytes());
        self.time(stat.mtime);
        self.time(stat.ctime);
        self.bytes.extend(known.mark.to_le_bytes());
        self.bytes.extend(known.sign.to_le_bytes());
        if let Some(hash) = known.hash {
            self.bytes.extend(hash.0);
        }
        if let Some(At::Pack { pack, offset }) = known.at {
            self.bytes.extend(pack.to_le_bytes());
            self.bytes.extend(offset.to_le_bytes());
        }
    }

    /// Makes it the index of snapshot `n`. Not durable: a power cut costs a reading of all files, and no more.
    pub fn put(mut self, fs: &Fs, dir: &Dir, n: u64, manifest: Hash) -> Result<(), Error> {
        let at = dir.at(NAME);
        self.bytes[MAGIC.len()..MAGIC.len() + 8].copy_from_slice(&n.to_le_bytes());
        self.bytes[MAGIC.len() + 8..HEAD - 12].copy_from_slice(&manifest.0);
        let mut hasher = Hasher::default();
        hasher.update(&self.bytes);
        self.bytes.extend(hasher.finish().0);
        Ok(fs.replace_later(at, &self.bytes)?)
    }
}

/// Removes the index: the next snapshot then reads what it would refer to.
pub fn forget(fs: &Fs, dir: &Dir) -> Result<(), Error> {
    let at = dir.at(NAME);
    Ok(fs.unlink_if_there(at)?)
}

/// True for a stat of an object with content to keep.
pub fn has_content(stat: &Stat) -> bool {
    stat.sort == Sort::File && stat.size > 0
}
