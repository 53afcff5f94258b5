//! Reads objects on the tree and in the store; hashes those that only their content can tell apart.

use std::fs::File;

use crate::engine::job::Move;
use crate::error::{At, Error, IoError};
use crate::fs::{Entry, Sort, Stat, stat_of};
use crate::tree::{Content, Hash, Likeness, Seen, State, observe};

/// The object at a path now. A file that is to go is held open, so that every question is about one object.
pub struct ObjectNow<'a> {
    at: Entry<'a>,
    stat: Option<Stat>,
    /// `None` if it is no file that goes, or may not be read.
    pub file: Option<File>,
}

impl<'a> ObjectNow<'a> {
    pub fn open(at: Entry<'a>, stat: Option<Stat>, mv: &Move) -> Result<Self, Error> {
        let goes = stat.is_some_and(|stat| stat.sort == Sort::File) && !mv.in_place;
        let file = match goes.then(|| at.open_file()).transpose() {
            Err(error) if error.errno() == Some(libc::EACCES) => None,
            other => other?,
        };
        Ok(Self { at, stat, file })
    }

    pub fn seen(&self) -> Result<Option<Seen>, IoError> {
        match (&self.stat, &self.file) {
            (None, _) => Ok(None),
            (Some(stat), Some(file)) => observe::seen_open(file, stat).at("look at", self.at).map(Some),
            (Some(stat), None) => observe::object_of(self.at, stat).map(Some),
        }
    }

    /// Reads the file, and what it means where it `may_mean` something.
    pub fn read(&self, may_mean: bool) -> Result<(Content, Stat), IoError> {
        let read = match (&self.file, &self.stat) {
            (Some(file), Some(stat)) => observe::read_since(file, *stat, may_mean),
            _ => {
                let file = self.at.open_file()?;
                stat_of(&file).and_then(|stat| observe::read_since(&file, stat, may_mean))
            }
        };
        read.at("read", self.at)
    }

    pub fn hash(&self) -> Result<Hash, IoError> {
        self.read(false).map(|(content, _)| content.hash)
    }
}

/// Reads a file in the store, with its hash. If the hash is known, only content that has it passes, whatever happens meanwhile. If not,
/// the file has to stand still. So does a git index: it may have been rewritten on the tree before it came here, and passes by what it
/// means.
pub fn look_at_content(at: Entry<'_>, stat: Stat, known: &State) -> Result<Seen, IoError> {
    let file = at.open_file()?;
    let mut seen = observe::seen_open(&file, &stat).at("look at", at)?;
    let may_mean = known.index().is_some();
    seen.learn(match known.hash() {
        Some(_) if !may_mean => Content::of_file(&file, stat.size, false).at("read", at)?,
        _ => observe::read_since(&file, stat, may_mean).at("read", at)?.0,
    });
    Ok(seen)
}

/// True if the tree holds `to` already.
pub fn is_as_wanted(found: &ObjectNow<'_>, mv: &Move, seen: Option<&mut Seen>) -> Result<bool, Error> {
    Ok(match (&mv.to, seen) {
        (None, None) => true,
        (Some(to), Some(seen)) => match to.likeness(&seen.state) {
            Likeness::Same => true,
            Likeness::ReadToTell if to.hash().is_some() => {
                seen.set_hash(found.hash()?);
                to.likeness(&seen.state) == Likeness::Same
            }
            _ => false,
        },
        _ => false,
    })
}
