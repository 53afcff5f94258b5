//! Checks content in the store: whether it is where a manifest says. What a new snapshot would only refer to is looked at, or read, first.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::manifest::At;
use crate::error::{At as _, Error, reason};
use crate::fs::{Dir, stat_of};
use crate::tree::Hash;

/// The directory of large contents.
pub const BLOBS: &[u8] = b"blobs";
/// The size in bytes below which content goes into a pack.
pub const PACKED: u64 = 128 << 10;

pub fn pack_name(n: u64) -> Vec<u8> {
    format!("{n}.pack").into_bytes()
}

/// Checks the content of a series.
pub struct Sound<'a> {
    dir: &'a Dir,
    /// True if content is compared with its hash, not only its length.
    reads: bool,
    /// The lengths of packs; `None` for a missing one.
    packs: HashMap<u64, Option<u64>>,
    open: Option<(u64, File)>,
    faults: BTreeMap<String, String>,
}

/// A fault of a file of content.
pub struct Fault {
    pub path: String,
    /// The reason why its content is not what is asked for.
    pub why: String,
}

impl<'a> Sound<'a> {
    /// Makes a checker for the series in `dir`.
    pub fn of(dir: &'a Dir, reads: bool) -> Self {
        Self { dir, reads, packs: HashMap::new(), open: None, faults: BTreeMap::new() }
    }

    /// Tells whether content is there. Remembers a file in which it is not.
    pub fn has(&mut self, hash: Hash, at: At, size: u64) -> Result<bool, Error> {
        let fault = self.fault(hash, at, size)?;
        let is_there = fault.is_none();
        self.faults.extend(fault.map(|fault| (fault.path, fault.why)));
        Ok(is_there)
    }

    /// The files in which something was missing.
    pub fn into_faults(self) -> impl Iterator<Item = Fault> {
        self.faults.into_iter().map(|(path, why)| Fault { path, why })
    }

    pub fn fault(&mut self, hash: Hash, at: At, size: u64) -> Result<Option<Fault>, Error> {
        let (path, why) = match at {
            At::Pack { pack, offset } => (self.dir.at(&pack_name(pack)).to_string(), self.part(pack, offset, size, hash)?),
            At::Blob => (format!("{}/{hash}", self.dir.at(BLOBS)), self.blob(hash, size)?),
        };
        Ok(why.map(|why| Fault { path, why }))
    }

    fn part(&mut self, pack: u64, offset: u64, size: u64, hash: Hash) -> Result<Option<String>, Error> {
        let name = pack_name(pack);
        let at = self.dir.at(&name);
        let length = match self.packs.get(&pack) {
            Some(length) => *length,
            None => *self.packs.entry(pack).or_insert(at.stat()?.map(|stat| stat.size)),
        };
        let Some(length) = length else { return Ok(missing()) };
        if offset.checked_add(size).is_none_or(|end| end > length) {
            return Ok(cut_off());
        }
        if !self.reads {
            return Ok(None);
        }
        if size > PACKED {
            return Ok(other());
        }
        if self.open.as_ref().is_none_or(|(open, _)| *open != pack) {
            self.open = match at.open_file() {
                Ok(file) => Some((pack, file)),
                Err(error) => return Ok(unread(&error.source)),
            };
        }
        let Some((_, file)) = &self.open else { return Ok(missing()) };
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        Ok(match file.read_exact_at(&mut bytes, offset) {
            Ok(()) if Hash::of(&bytes) == hash => None,
            Ok(()) => other(),
            Err(error) => unread(&error),
        })
    }

    fn blob(&self, hash: Hash, size: u64) -> Result<Option<String>, Error> {
        let name = [BLOBS, b"/", hash.to_string().as_bytes()].concat();
        let file = match self.dir.open_file_below(&name) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(missing()),
            Err(error) => return Ok(unread(&error.source)),
        };
        if stat_of(&file).at("look at", format!("{}/{hash}", self.dir.at(BLOBS)))?.size != size {
            return Ok(cut_off());
        }
        if !self.reads {
            return Ok(None);
        }
        Ok(match Hash::of_file(&file, size) {
            Ok(found) if found == hash => None,
            Ok(_) => other(),
            Err(error) => unread(&error),
        })
    }
}

fn missing() -> Option<String> {
    Some("it is missing".into())
}

fn cut_off() -> Option<String> {
    Some("it is cut off".into())
}

fn other() -> Option<String> {
    Some("its content does not match its record".into())
}

fn unread(error: &io::Error) -> Option<String> {
    Some(format!("it cannot be read: {}", reason(error)))
}
