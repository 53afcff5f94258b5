//! What the engine is asked to do: moves, each with what is expected on the tree and what is wanted there.

use serde::{Deserialize, Serialize};

use super::held::Held;
use crate::checkpoint::limits::Limits;
use crate::error::Error;
use crate::fs::dir::Time;
use crate::fs::path::AbsPath;
use crate::session::sides::Side;
use crate::tree::state::{Fingerprint, Object};

/// The verb that the job is for: it decides what already being as wanted means, and what the log says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Out to in, for the first time or again: `before` to `after`.
    Commit,
    /// In to out: `after` to `before`.
    Rollback,
    /// Out to in, only what was in before.
    Redo,
}

impl Verb {
    /// The word in messages and the log.
    pub fn word(self) -> &'static str {
        match self {
            Verb::Commit => "commit",
            Verb::Rollback => "rollback",
            Verb::Redo => "redo",
        }
    }

    /// What is done, for sentences: "nothing to roll back".
    pub fn infinitive(self) -> &'static str {
        match self {
            Verb::Commit | Verb::Redo => self.word(),
            Verb::Rollback => "roll back",
        }
    }

    /// Whether it puts changes on the tree.
    pub fn inward(self) -> bool {
        self != Verb::Rollback
    }
}

/// What to do where the tree does not hold what is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnConflict {
    /// Nothing at all is done.
    Stop,
    /// What is found takes the place of what was expected: kept as the `before` by a commit, under `displaced/` by the others.
    Keep,
}

/// One path to be brought from one state to another.
#[derive(Debug, Clone)]
pub struct Move {
    /// Which of the session's changes it is, in path order.
    pub index: u32,
    /// The change's number.
    pub n: u32,
    /// Where.
    pub path: AbsPath,
    /// What is expected there.
    pub from: Object,
    /// The fingerprint of what is expected, where one was taken.
    pub from_print: Option<Fingerprint>,
    /// What is wanted there.
    pub to: Object,
    /// Where `to` lies below the session's folder; `None` where it is absent, made from the record, or an inode that stays.
    pub to_at: Option<Held>,
    /// The inode stays: only metadata changes.
    pub in_place: bool,
    /// The tree changed here while the command ran.
    pub foreign: bool,
    /// So says a clock that was set meanwhile, and nothing else.
    pub by_clock: bool,
    /// The original was not kept, by policy, and is not kept now: why.
    pub uncovered: Option<&'static str>,
    /// On which side the change is afterwards.
    pub side: Side,
}

/// An mtime wanted on a folder that is no move itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedTime {
    /// The folder.
    pub path: AbsPath,
    /// The mtime to set, if the folder's is `only_if` now.
    pub mtime: Time,
    /// As recant left it; any where `None`.
    pub only_if: Option<Time>,
    /// What the folder's mtime was before recant came, where a manifest has it.
    pub original: Option<Time>,
    /// Set it even if no name in the folder changes.
    pub always: bool,
}

/// The moves of a job, read from the session one by one: 100,000 of them are never in memory beside the plan.
pub trait Moves {
    /// The next one, in path order, one a path.
    fn next(&mut self) -> Result<Option<Move>, Error>;

    /// What is known once all were given.
    fn rest(self: Box<Self>) -> Result<Rest, Error>;
}

/// What belongs to a job beside its moves.
#[derive(Debug, Default)]
pub struct Rest {
    /// In path order.
    pub times: Vec<WantedTime>,
    /// What is left out from the start, and why.
    pub left: Vec<(AbsPath, String)>,
    /// What is to be said, for people.
    pub notes: Vec<String>,
}

/// All of it.
pub struct Job {
    /// For which verb.
    pub verb: Verb,
    /// The moves.
    pub moves: Box<dyn Moves>,
    /// On which side each of the session's changes is now, in path order: moves and others.
    pub sides: Vec<Side>,
    /// What to do about conflicts.
    pub on_conflict: OnConflict,
    /// Above which size the deletion of a whole folder is said to be kept in full.
    pub limits: Option<Limits>,
}
