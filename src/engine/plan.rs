//! Plan: looking at everything and changing nothing. All conflicts, refusals and damage are found here, not the first
//! alone; what comes out is the journal to be.

use super::Progress;
use super::conflict::Conflict;
use super::draft::Draft;
use super::job::{Job, Rest};
use super::journal::Journal;
use super::look::look_at_all;
use super::reach::Reach;
use super::report::{Report, Row};
use crate::checkpoint::limits::Large;
use crate::checkpoint::manifest::Kept;
use crate::config;
use crate::error::Error;
use crate::fs::path::AbsPath;
use crate::session::opened::Session;

/// All that will be done.
pub struct Plan {
    pub(super) journal: Journal,
    pub(super) reach: Reach,
    pub(super) told: Told,
}

impl Plan {
    /// Looks at every path of the job, in two threads where there are many.
    ///
    /// Errors: every conflict, everything that could not be done, all content that
    /// is not what it was; in the reverse order of these where there are several kinds.
    pub fn look(session: &Session, job: Job, progress: &dyn Progress) -> Result<Self, Error> {
        let limits = job.limits;
        let (mut draft, rest) = drafted(session, job, progress)?;
        draft.fail_if_any()?;
        draft.build(limits.as_ref(), rest)
    }

    /// Every conflict that the job would meet, in path order, each path once. Unlike [`Plan::look`] it finds them also where
    /// something else stands against the job: refusals and damage are not told here. Changes nothing.
    pub fn conflicts(session: &Session, job: Job, progress: &dyn Progress) -> Result<Vec<Conflict>, Error> {
        let (draft, _) = drafted(session, job, progress)?;
        Ok(draft.into_conflicts())
    }

    /// Whether there is nothing to do and nothing to write down. The times of folders go with what is in them.
    pub fn is_nothing(&self) -> bool {
        self.journal.items.is_empty()
    }

    /// Whether it puts changes on the tree.
    pub(super) fn is_inward(&self) -> bool {
        self.journal.head.verb.inward()
    }

    /// The paths that it touches, in path order.
    pub fn paths(&self) -> impl Iterator<Item = &AbsPath> {
        self.journal.items.iter().map(|item| &item.path)
    }

    /// What is to be said of paths on a portable road, where nothing is done yet.
    pub(super) fn portable(&self) -> Option<String> {
        let mut portable = self.journal.items.iter().filter(|item| item.portable);
        let first = portable.next()?;
        let more = match portable.count() {
            0 => String::new(),
            more => format!(" (and {} more)", config::grouped(more as u64)),
        };
        Some(format!("{}{more}: on this file system what changes is copied, and a name is absent for a moment", first.path))
    }

    /// What would be done.
    pub fn report(self) -> Report {
        self.told.report(self.journal)
    }
}

/// All that looking tells, before it is decided whether the job can be done.
fn drafted<'s>(session: &'s Session, mut job: Job, progress: &dyn Progress) -> Result<(Draft<'s>, Rest), Error> {
    session.check_folders()?;
    let mut draft = Draft::new(session, job.verb, job.sides.clone())?;
    let mut reach = Reach::new(&session.dir)?;
    look_at_all(session, &mut job, &mut reach, progress, &mut |looked| {
        draft.sort_out(looked);
        Ok(())
    })?;
    draft.reach = reach;
    let mut rest = job.moves.rest()?;
    draft.left.append(&mut rest.left);
    draft.notes.append(&mut rest.notes);
    draft.check_shared_metadata(job.on_conflict);
    draft.check_metadata_of_names()?;
    draft.check_folders_that_go()?;
    draft.check_folders_that_come();
    draft.check_what_goes_along();
    draft.check_what_is_closed();
    draft.check_mounts(job.on_conflict);
    Ok((draft, rest))
}

/// What is to be said of an operation beside its paths.
pub(super) struct Told {
    pub left: Vec<(AbsPath, String)>,
    pub notes: Vec<String>,
    /// Large directories that go, and are kept.
    pub large: Vec<Large>,
    pub kept_bytes: u64,
}

impl Told {
    /// The whole report of a journal.
    pub fn report(self, journal: Journal) -> Report {
        let Journal { head, items, .. } = journal;
        let displaced = items.iter().filter(|item| item.moves() && item.displaces(head.verb)).map(|item| item.path.clone());
        Report {
            displaced: displaced.collect(),
            verb: head.verb,
            uncovered: items.iter().any(|item| item.moves() && matches!(item.kept, Kept::Uncovered { .. })),
            rows: items.into_iter().map(Row::of).collect(),
            left: self.left,
            notes: self.notes,
            large: self.large,
            kept: self.kept_bytes,
            counts: head.header.counts,
            status: head.header.status(),
            generation: head.header.generation,
        }
    }
}
