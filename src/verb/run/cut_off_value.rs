//! The value of a run on the real tree that was cut off, and recovered.

use crate::engine::LeftPath;
use crate::error::{Error, Kind};
use crate::fs::AbsPath;
use crate::session::{Id, Record};

/// A run that was cut off, and what became of it.
pub struct CutRun {
    pub id: Id,
    /// The facts that its session is made from; `None` if they cannot be read.
    pub record: Option<Record>,
    pub outcome: Outcome,
}

pub enum Outcome {
    /// The number of changes in its session, and the paths that are not in it.
    Made(u64, Vec<LeftPath>),
    /// Its session was already made; the run had not ended.
    WasMade,
    /// Nothing changed, so there is no session.
    Unchanged,
    /// Somebody asked for it. These directories have a snapshot of what was there before, with this number.
    GivenUp(Vec<(u64, AbsPath)>),
    Failed(Error),
}

impl CutRun {
    /// The outcome as a word, for JSON.
    pub fn result(&self) -> &'static str {
        match &self.outcome {
            Outcome::Made(..) | Outcome::WasMade => "collected",
            Outcome::Unchanged => "cleaned",
            Outcome::GivenUp(_) => "finished",
            Outcome::Failed(_) => "failed",
        }
    }

    /// The paths that are not in its session, and why.
    pub fn left(&self) -> &[LeftPath] {
        if let Outcome::Made(_, left) = &self.outcome { left } else { &[] }
    }

    /// The error, if it failed.
    pub fn problem(&self) -> Option<&Error> {
        if let Outcome::Failed(problem) = &self.outcome { Some(problem) } else { None }
    }

    /// The kind of what was not done, if anything.
    pub fn kind(&self) -> Option<Kind> {
        let left = (!self.left().is_empty()).then_some(Kind::LeftOut);
        self.problem().map(Error::kind).or(left)
    }
}
