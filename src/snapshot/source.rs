//! The rules of a walk: those that it finds, or those of a snapshot.

use std::sync::Arc;

use super::manifest::{self, Merged};
use super::rules::Rules;
use super::series::Series;
use crate::error::Error;
use crate::fs::dir::Dir;
use crate::fs::path::AbsPath;

/// The source of a walk's rules.
#[derive(Debug, Clone)]
pub enum Source {
    /// These, and those of the files that the walk finds.
    Found(Rules),
    /// These alone, as a snapshot has them: with the files that gave some of them.
    Kept(Rules, Before),
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

impl Source {
    /// The rules that snapshot `n` of a series has.
    pub fn of(series: &Series, n: u64) -> Result<Self, Error> {
        let rules = manifest::rules(&series.dir, n)?;
        let before = Before::new(series, n, &rules)?;
        Ok(Self::Kept(rules, before))
    }

    /// The rules known so far.
    pub fn rules(&self) -> &Rules {
        match self {
            Self::Found(rules) | Self::Kept(rules, _) => rules,
        }
    }
}

impl Default for Source {
    fn default() -> Self {
        Self::Found(Rules::default())
    }
}
