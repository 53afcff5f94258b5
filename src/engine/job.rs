//! The engine's input: moves, each with the object expected on the tree and the object wanted there.

use serde::{Deserialize, Serialize};

use super::place_in_session::SessionPlace;
use crate::checkpoint::Limits;
use crate::error::Error;
use crate::fs::{AbsPath, Time};
use crate::session::Side;
use crate::tree::{Fingerprint, Object};

/// The verb that the job is for. It decides what follows where a path is as wanted already, and what the log says.
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

    /// The verb as it stands in sentences: "nothing to roll back".
    pub fn infinitive(self) -> &'static str {
        match self {
            Verb::Commit | Verb::Redo => self.word(),
            Verb::Rollback => "roll back",
        }
    }

    /// True if it puts changes on the tree.
    pub fn inward(self) -> bool {
        self != Verb::Rollback
    }
}

/// The policy for paths that do not hold what is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnConflict {
    Stop,
    /// Takes what is found in place of what was expected. A commit keeps it as the `before`, the others under `displaced/`.
    Keep,
}

/// One path to be brought from one state to another.
#[derive(Debug, Clone)]
pub struct Move {
    /// The index of the change among the session's, in path order.
    pub index: u32,
    pub n: u32,
    pub path: AbsPath,
    pub from: Object,
    /// The fingerprint of what is expected, where one was taken.
    pub from_print: Option<Fingerprint>,
    pub to: Object,
    /// The place of `to` below the session's directory. `None` if it is absent, made from the record, or an inode that stays.
    pub to_at: Option<SessionPlace>,
    /// The file on the tree that `to` is another name of, where a copy would lack its capability.
    pub original: Option<AbsPath>,
    /// True if the inode stays and only metadata changes.
    pub in_place: bool,
    /// True if the tree changed here while the command ran.
    pub foreign: bool,
    /// True if only times say so, and the clock was set meanwhile or is another machine's.
    pub by_clock: bool,
    /// The reason, a policy, why the original was not kept and is not kept now.
    pub uncovered: Option<&'static str>,
    /// The side that the change is on afterwards.
    pub side: Side,
    /// True if `to` is what a forced rollback took off the tree, and not what the change led to.
    pub gives_back: bool,
}

/// An mtime wanted on a directory that is no move itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedTime {
    pub path: AbsPath,
    /// The mtime to set, if the directory's is `only_if` now.
    pub mtime: Time,
    /// The mtime that recant left. `None`: any.
    pub only_if: Option<Time>,
    /// The directory's mtime before recant came, where a manifest has it.
    pub original: Option<Time>,
    /// True to set it even if no name in the directory changes.
    pub always: bool,
}

/// The moves of a job, read from the session one by one: 100,000 of them are never in memory beside the plan.
pub trait Moves {
    /// Returns the next move: in path order, one a path.
    fn next(&mut self) -> Result<Option<Move>, Error>;

    /// Returns what is known once all moves were given.
    fn rest(self: Box<Self>) -> Result<Rest, Error>;
}

/// The parts of a job beside its moves.
#[derive(Debug, Default)]
pub struct Rest {
    /// The mtimes wanted on directories, in path order.
    pub times: Vec<WantedTime>,
    /// The paths left out from the start, and why.
    pub left: Vec<(AbsPath, String)>,
    pub notes: Vec<String>,
}

/// The moves of an operation, and how to carry them out.
pub struct Job {
    pub verb: Verb,
    pub moves: Box<dyn Moves>,
    /// The side that each of the session's changes is on now, in path order: moves and others.
    pub sides: Vec<Side>,
    pub on_conflict: OnConflict,
    /// The sizes above which the report says that a deleted directory is kept in full.
    pub limits: Option<Limits>,
}

impl Job {
    /// The job of a session that holds no content, as it was filled only to ask what would be done.
    pub fn unheld(self) -> Self {
        struct Unheld(Box<dyn Moves>);
        impl Moves for Unheld {
            fn next(&mut self) -> Result<Option<Move>, Error> {
                Ok(self.0.next()?.map(|wanted| Move { to_at: None, ..wanted }))
            }

            fn rest(self: Box<Self>) -> Result<Rest, Error> {
                self.0.rest()
            }
        }
        Self { moves: Box::new(Unheld(self.moves)), ..self }
    }
}
