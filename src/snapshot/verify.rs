//! Verify: whether each snapshot can be restored: its manifest, its base, and every content that it names, read and digested.

use std::collections::HashMap;

use super::manifest::{At, Entry, Merged};
use super::series::{Locked, Series};
use super::sound::Sound;
use super::{index, whole};
use crate::error::{Error, Kind};
use crate::fs::Fs;
use crate::fs::path::AbsPath;
use crate::tree::digest::Digest;

/// What was found of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Its number.
    pub n: u64,
    /// Files whose content is whole.
    pub files: u64,
    /// Bytes of that.
    pub bytes: u64,
    /// What cannot be restored.
    pub faults: Vec<Fault>,
}

/// A path that cannot be restored: the folder itself, where the snapshot cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub path: AbsPath,
    /// Why not.
    pub why: String,
}

/// Reads snapshots of a series; content that several have is read once.
pub struct Verifying<'a> {
    series: &'a Series,
    sound: Sound<'a>,
    known: HashMap<(At, Digest), Option<String>>,
}

impl<'a> Verifying<'a> {
    /// For the snapshots of `series`.
    pub fn of(series: &'a Series) -> Self {
        Self { series, sound: Sound::of(&series.dir, true), known: HashMap::new() }
    }

    /// Looks at snapshot `n`; `None` where it was pruned meanwhile.
    pub fn at(&mut self, n: u64) -> Result<Option<Verdict>, Error> {
        let mut verdict = Verdict { n, files: 0, bytes: 0, faults: Vec::new() };
        match self.read(&mut verdict) {
            Err(error) if error.kind() == Kind::Damaged || error.io().is_some() => {
                verdict.faults.push(Fault { path: self.series.folder.clone(), why: error.to_string() });
            }
            read => read?,
        }
        let is_gone = !verdict.faults.is_empty() && !self.series.is_there(n)?;
        Ok(Some(verdict).filter(|_| !is_gone))
    }

    fn read(&mut self, verdict: &mut Verdict) -> Result<(), Error> {
        let mut merged = Merged::open(&self.series.dir, verdict.n)?;
        while let Some(entry) = merged.next()? {
            let Some(digest) = entry.digest() else { continue };
            match self.fault(&entry, digest)? {
                Some(why) => verdict.faults.push(Fault { path: whole(&self.series.folder, &entry.path)?, why }),
                None => {
                    verdict.files += 1;
                    verdict.bytes += entry.size();
                }
            }
        }
        Ok(())
    }

    fn fault(&mut self, entry: &Entry, digest: Digest) -> Result<Option<String>, Error> {
        let Some(at) = entry.at else {
            return Ok((entry.size() > 0).then(|| "it is not said where its content lies".into()));
        };
        if let Some(known) = self.known.get(&(at, digest)) {
            return Ok(known.clone());
        }
        let fault = self.sound.fault(digest, at, entry.size())?.map(|fault| format!("{}: {}", fault.path, fault.why));
        self.known.insert((at, digest), fault.clone());
        Ok(fault)
    }
}

/// Has the next snapshot believe no index: what it would refer to is read then, and stored anew where it is damaged.
pub fn doubt(fs: &Fs, series: &Series, _lock: &Locked) -> Result<(), Error> {
    index::forget(fs, &series.dir)
}
