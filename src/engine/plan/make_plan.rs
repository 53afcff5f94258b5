//! Plans an operation: looks at everything and changes nothing. Finds all conflicts, refusals and damage, not only the first. The result
//! is the journal to be.

use super::conflict::Hindrances;
use super::draft::Draft;
use super::examine::examine_moves;
use crate::checkpoint::{Kept, Large};
use crate::engine::item::Item;
use crate::engine::job::{Job, Rest};
use crate::engine::journal::Journal;
use crate::engine::progress::Progress;
use crate::engine::reach::Reach;
use crate::engine::report::{LeftPath, Report, Row};
use crate::engine::step::Act;
use crate::error::{Error, Kind};
use crate::fs::AbsPath;
use crate::session::{LastAct, Part, Session};
use crate::settings;

/// A planned operation: all that will be done.
pub struct Plan {
    pub journal: Journal,
    pub reach: Reach,
    pub told: Remarks,
}

impl Plan {
    /// Looks at every path of the job, in two threads where there are many.
    ///
    /// Errors: all damaged content; without any, everything that could not be done; without any, all conflicts.
    pub fn make(session: &Session, job: Job, progress: &dyn Progress) -> Result<Self, Error> {
        let limits = job.limits;
        let (mut draft, rest) = drafted(session, job, progress)?;
        draft.fail_if_any()?;
        draft.build(limits.as_ref(), rest)
    }

    /// All that stands against the job. Unlike [`Plan::make`] it finds conflicts beside refusals. Changes nothing.
    pub fn hindrances(session: &Session, job: Job, progress: &dyn Progress) -> Result<Hindrances, Error> {
        let limits = job.limits;
        let (mut draft, rest) = drafted(session, job, progress)?;
        let mut found = draft.hindrances();
        // Rights and room are looked at when all that was seen before is out of the way.
        if found.refused.is_empty()
            && draft.damaged.is_empty()
            && let Err(error) = draft.build(limits.as_ref(), rest)
            && error.kind() == Kind::Refused
        {
            found.refused = error.against();
        }
        Ok(found)
    }

    /// True if there is nothing to do and nothing to write down. Directory times alone do not count.
    pub fn is_nothing(&self) -> bool {
        self.journal.items.is_empty()
    }

    /// True if it puts changes on the tree.
    pub fn is_inward(&self) -> bool {
        self.journal.head.verb.inward()
    }

    /// The paths that it touches, in path order.
    pub fn paths(&self) -> impl Iterator<Item = &AbsPath> {
        self.journal.items.iter().map(|item| &item.path)
    }

    /// Gives the header that is to be sealed the act that it is.
    pub fn acts(&mut self, mut act: LastAct) {
        let (items, header) = (&self.journal.items, &mut self.journal.head.header);
        // What was so already stays as it is when the act is taken back; a path where nothing was, and nothing is to be, has both ways.
        let is_nothing = |item: &Item| item.from.is_none() && item.to.is_none();
        let moved = || items.iter().filter(|item| item.act != Act::Stay || is_nothing(item));
        if (moved().count() as u64) < header.counts.changes {
            act.purpose.part = Some(Part::of(moved().map(|item| item.index)));
        }
        header.acted = Some(act);
    }

    /// The note of a dry run on paths that take a portable road.
    pub fn portable(&self) -> Option<String> {
        let mut portable = self.journal.items.iter().filter(|item| item.portable);
        let first = portable.next()?;
        let more = match portable.count() {
            0 => String::new(),
            more => format!(" (and {} more)", settings::grouped(more as u64)),
        };
        Some(format!("{}{more}: on this file system what changes is copied, and a name is absent for a moment", first.path))
    }

    pub fn report(self) -> Report {
        self.told.report(self.journal)
    }
}

/// Looks at all moves and runs all checks. Nobody has decided yet whether the job can be done.
fn drafted<'s>(session: &'s Session, mut job: Job, progress: &dyn Progress) -> Result<(Draft<'s>, Rest), Error> {
    session.check_directories()?;
    let mut draft = Draft::new(session, job.verb, job.sides.clone())?;
    let mut reach = Reach::new(&session.dir)?;
    examine_moves(session, &mut job, &mut reach, progress, &mut |looked| {
        draft.sort_out(looked);
        Ok(())
    })?;
    draft.reach = reach;
    let mut rest = job.moves.rest()?;
    draft.left.append(&mut rest.left);
    draft.notes.append(&mut rest.notes);
    draft.check_shared_metadata(job.on_conflict);
    draft.check_metadata_of_names()?;
    draft.check_directories_that_go()?;
    draft.check_directories_that_come()?;
    draft.check_what_goes_along();
    draft.check_what_is_closed();
    draft.check_mounts(job.on_conflict);
    Ok((draft, rest))
}

/// The part of a report that the journal does not hold.
pub struct Remarks {
    pub left: Vec<(AbsPath, String)>,
    pub notes: Vec<String>,
    /// Large directories that go and are kept.
    pub large: Vec<Large>,
    pub kept_bytes: u64,
}

impl Remarks {
    pub fn report(self, journal: Journal) -> Report {
        let Journal { head, items, .. } = journal;
        let displaced = items.iter().filter(|item| item.moves() && item.displaces(head.verb)).map(|item| item.path.clone());
        Report {
            displaced: displaced.collect(),
            verb: head.verb,
            uncovered: items.iter().any(|item| item.moves() && matches!(item.kept, Kept::Uncovered { .. })),
            rows: items.into_iter().map(|item| Row::of(head.verb, item)).collect(),
            dry_run: false,
            left: self.left.into_iter().map(|(path, why)| LeftPath { path, why }).collect(),
            notes: self.notes,
            large: self.large,
            kept: self.kept_bytes,
            counts: head.header.counts,
            status: head.header.status(),
            generation: head.header.generation,
        }
    }
}
