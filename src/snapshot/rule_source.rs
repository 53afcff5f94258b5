//! The rules of a walk: those that it finds, or those of a snapshot.

use std::collections::HashMap;
use std::sync::Arc;

use super::manifest;
use super::manifest::Merged;
use super::rules::{IgnoreFile, Rules};
use super::series::Series;
use crate::error::Error;
use crate::fs::{AbsPath, Dir, Time};

/// The source of a walk's rules.
#[derive(Debug, Clone)]
pub enum Source {
    /// These, and those of the files that the walk finds.
    Found(Rules),
    /// These, and those of the files that the walk finds; but of files that were changed since a snapshot, in a time that is over, those of the
    /// snapshot.
    GoingOn(Rules, Earlier),
    /// These alone, as a snapshot has them: with the files that gave some of them. What became a repository since is one, unless the
    /// snapshot is there to tell that it was none: an agent hides nothing so.
    Kept(Rules, Option<Before>),
}

/// The snapshot that rules are of.
#[derive(Debug, Clone)]
pub struct Before {
    dir: Arc<Dir>,
    n: u64,
    leaves_vcs: bool,
}

impl Before {
    /// Snapshot `n` of a series, with its rules.
    pub fn new(series: &Series, n: u64, rules: &Rules) -> Result<Self, Error> {
        Ok(Self { dir: Arc::new(series.dir.again()?), n, leaves_vcs: rules.leaves_vcs() })
    }

    /// True if the directory was no repository then: the snapshot left out what was one, and has something in it.
    pub fn was_ordinary(&self, directory: &AbsPath) -> Result<bool, Error> {
        if !self.leaves_vcs {
            return Ok(false);
        }
        let mut all = Merged::open(&self.dir, self.n)?;
        while let Some(entry) = all.next_unread()? {
            if entry.path > *directory {
                return Ok(entry.path.is_under(directory));
            }
        }
        Ok(false)
    }
}

/// A snapshot whose rules go on to count, and until when a change of a file of rules changes none of them.
#[derive(Debug, Clone)]
pub struct Earlier {
    files: HashMap<(AbsPath, String), IgnoreFile>,
    until: Time,
    before: Before,
}

impl Earlier {
    /// Snapshot `n` of a series, and the end of what was done since and does not count.
    pub fn new(series: &Series, n: u64, until: Time) -> Result<Self, Error> {
        let rules = manifest::rules(&series.dir, n)?;
        let before = Before::new(series, n, &rules)?;
        let files = rules.files.into_iter().map(|file| ((file.directory.clone(), file.name.clone()), file)).collect();
        Ok(Self { files, until, before })
    }

    /// The file that counts in the place of the one that was found, which was last changed then. `None` if none does.
    pub fn instead_of(&self, found: IgnoreFile, changed: Time) -> Option<IgnoreFile> {
        if changed > self.until {
            return Some(found);
        }
        self.files.get(&(found.directory, found.name)).cloned()
    }
}

impl Source {
    /// The snapshot that tells what was no repository.
    pub fn before(&self) -> Option<&Before> {
        match self {
            Self::Found(_) => None,
            Self::GoingOn(_, earlier) => Some(&earlier.before),
            Self::Kept(_, before) => before.as_ref(),
        }
    }

    /// The rules that snapshot `n` of a series has, for what an agent did since.
    pub fn of(series: &Series, n: u64) -> Result<Self, Error> {
        let rules = manifest::rules(&series.dir, n)?;
        let before = Before::new(series, n, &rules)?;
        Ok(Self::Kept(rules, Some(before)))
    }

    pub fn rules(&self) -> &Rules {
        match self {
            Self::Found(rules) | Self::GoingOn(rules, _) | Self::Kept(rules, _) => rules,
        }
    }
}

impl Default for Source {
    fn default() -> Self {
        Self::Found(Rules::default())
    }
}
