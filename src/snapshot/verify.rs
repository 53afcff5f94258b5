//! Verify: checks that each snapshot can be restored. Reads its manifest and its base, and hashes every content that it names.

use std::collections::HashMap;

use serde::Serialize;

use super::content_check::Sound;
use super::index;
use super::manifest::{At, Entry, Merged};
use super::paths::whole;
use super::series::{Locked, Series};
use crate::error::{Error, Kind};
use crate::fs::{AbsPath, Fs};
use crate::tree::Hash;

/// The findings about a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    pub n: u64,
    /// The number of files whose content is whole.
    pub files: u64,
    /// The bytes of these files.
    pub bytes: u64,
    pub faults: Vec<Fault>,
}

/// A path that cannot be restored: the directory itself, if the snapshot cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    pub path: AbsPath,
    pub why: String,
}

/// Reads snapshots of a series; content that several have is read once.
pub struct Verifying<'a> {
    series: &'a Series,
    sound: Sound<'a>,
    known: HashMap<(At, Hash), Option<String>>,
}

impl<'a> Verifying<'a> {
    /// Makes a reader for the snapshots of `series`.
    pub fn of(series: &'a Series) -> Self {
        Self { series, sound: Sound::of(&series.dir, true), known: HashMap::new() }
    }

    /// Checks snapshot `n`; `None` if it was pruned meanwhile.
    pub fn at(&mut self, n: u64) -> Result<Option<Verdict>, Error> {
        let mut verdict = Verdict { n, files: 0, bytes: 0, faults: Vec::new() };
        match self.read(&mut verdict) {
            Err(error) if error.kind() == Kind::Damaged || error.io().is_some() => {
                verdict.faults.push(Fault { path: self.series.directory.clone(), why: error.to_string() });
            }
            read => read?,
        }
        let is_gone = !verdict.faults.is_empty() && !self.series.is_there(n)?;
        Ok(Some(verdict).filter(|_| !is_gone))
    }

    fn read(&mut self, verdict: &mut Verdict) -> Result<(), Error> {
        let mut merged = Merged::open(&self.series.dir, verdict.n)?;
        while let Some(entry) = merged.next()? {
            let Some(hash) = entry.hash() else { continue };
            match self.fault(&entry, hash)? {
                Some(why) => verdict.faults.push(Fault { path: whole(&self.series.directory, &entry.path)?, why }),
                None => {
                    verdict.files += 1;
                    verdict.bytes += entry.size();
                }
            }
        }
        Ok(())
    }

    fn fault(&mut self, entry: &Entry, hash: Hash) -> Result<Option<String>, Error> {
        let Some(at) = entry.at else {
            return Ok((entry.size() > 0).then(|| "the manifest does not say where its content is".into()));
        };
        if let Some(known) = self.known.get(&(at, hash)) {
            return Ok(known.clone());
        }
        let fault = self.sound.fault(hash, at, entry.size())?.map(|fault| format!("{}: {}", fault.path, fault.why));
        self.known.insert((at, hash), fault.clone());
        Ok(fault)
    }
}

/// Removes the index, so that the next snapshot reads what it would refer to, and stores it anew if it is damaged.
pub fn doubt(fs: &Fs, series: &Series, _lock: &Locked) -> Result<(), Error> {
    index::forget(fs, &series.dir)
}
