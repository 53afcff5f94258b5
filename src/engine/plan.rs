//! Plan: looking at everything and changing nothing. All conflicts, refusals and damage are found here, not the first
//! alone; what comes out is the list of steps in the order of docs/ARCHITECTURE.md, Steps.

use std::collections::{BTreeMap, HashSet};
use std::io;

use serde::{Deserialize, Serialize};

use super::Error;
use super::Progress;
use super::draft::Draft;
use super::job::{Job, Verb};
use super::look::look_at_all;
use super::report::{Report, Row};
use super::step::{FolderTime, RootRecord, Spot, Step};
use crate::checkpoint::manifest::Kept;
use crate::fs::path::AbsPath;
use crate::session::header::Header;
use crate::session::id::Id;
use crate::session::sides::Side;
use crate::session::store::Session;
use crate::tree::state::Object;

/// How content is to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Roads {
    /// Renamed within a mount, copied between two.
    ByMount,
    /// Copied everywhere: the kernel refused a rename that looked possible.
    CopyAll,
}

/// What a settled operation writes into the session about one change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Which of the session's changes.
    pub index: usize,
    /// Its number.
    pub n: u32,
    /// Its path.
    pub path: AbsPath,
    /// What was there; with the digest that planning took.
    pub from: Object,
    /// What is there now; with the digest that planning took.
    pub to: Object,
    /// What a commit keeps of `from`.
    pub kept: Kept,
    /// Where the change is now.
    pub side: Side,
    /// `--force`: `from` is what was found in place of what was expected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
    /// Where a `to` lies that the tree had already: it goes, or it would lie where `from` is to find its home next time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare: Option<Spot>,
}

impl Outcome {
    /// Whether `verb` overwrites something by force that goes under `displaced/`: a commit keeps it as the `before` instead.
    pub(super) fn displaces(&self, verb: Verb) -> bool {
        self.forced && verb != Verb::Commit && self.from.is_some()
    }
}

/// All that will be done.
pub struct Plan<'j> {
    pub(super) job: &'j Job,
    pub(super) id: Id,
    pub(super) generation: u64,
    pub(super) steps: Vec<Step>,
    pub(super) times: Vec<FolderTime>,
    pub(super) roots: Vec<RootRecord>,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) sides: Vec<Side>,
    pub(super) header: Header,
    pub(super) already: Vec<Row>,
    pub(super) left: Vec<(AbsPath, String)>,
    pub(super) notes: Vec<String>,
    pub(super) kept_bytes: u64,
}

impl<'j> Plan<'j> {
    /// Looks at every path of the job, in two threads where there are many.
    ///
    /// Errors: every conflict ([`Error::Conflicts`]), everything that could not be done ([`Error::Refused`]), all content that
    /// is not what it was ([`Error::Damaged`]); in the reverse order of these where there are several kinds.
    pub fn look(session: &Session, job: &'j Job, roads: Roads, progress: &dyn Progress) -> Result<Self, Error> {
        let looked = look_at_all(session, job, progress)?;
        let mut draft = Draft::new(session, job, roads)?;
        draft.sort_out(looked)?;
        draft.check_folders_that_go()?;
        draft.check_folders_that_come();
        draft.fail_if_any()?;
        draft.build()
    }

    /// Whether there is nothing to do and nothing to write down.
    pub fn is_nothing(&self) -> bool {
        self.outcomes.is_empty() && self.steps.is_empty() && self.times.is_empty()
    }

    /// What would be done; what was done once it is settled.
    pub fn report(&self) -> Report {
        let changed: HashSet<&AbsPath> = self.outcomes.iter().map(|outcome| &outcome.path).collect();
        let mut rows: BTreeMap<&AbsPath, Row> = self.already.iter().map(|row| (&row.path, row.clone())).collect();
        for step in self.steps.iter().filter(|step| step.n != 0 && changed.contains(&step.path)) {
            // A folder that is placed gets its metadata in a step of its own: the placing is what is told.
            rows.entry(&step.path).or_insert_with(|| Row::of(step));
        }
        Report {
            verb: self.job.verb,
            rows: rows.into_values().collect(),
            left: self.left.clone(),
            notes: self.notes.clone(),
            kept: self.kept_bytes,
            status: self.header.status(),
            generation: self.generation,
        }
    }
}

/// The folder of a spot in the tree, and an io error where there is none.
pub(super) fn parent_of(path: &AbsPath) -> io::Result<AbsPath> {
    path.parent().ok_or_else(|| io::Error::other("the root folder has no name"))
}
