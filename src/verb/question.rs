//! The questions of a verb: yes or no, and the choice of `--patch`. A face has the words.

use super::agent::uncovered::NotCovered;
use super::prune::question::Prune;
use super::resolve::named_changes::{TypedPath, chosen};
use super::resolve::wanted_act::Want;
use super::restore_row::Row;
use crate::compare::Summary;
use crate::engine::{self, LeftPath, Report};
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Changes, Failed, Header, Id, LastAct, Side, UnderWay, Unseen};

/// A question for the person at the terminal, to be answered with yes or no.
pub enum Question<'a> {
    /// The newest act on the session is somebody else's.
    Others { id: &'a Id, act: &'a LastAct },
    /// A commit leaves steps behind.
    CommitAtStep { id: &'a Id, step: u32 },
    /// The newest command that changed something failed or was cut off.
    CommitFailed { id: &'a Id, failed: Failed, summary: &'a Summary },
    /// A commit of a session that was not looked at yet, with so many dangers.
    CommitDangerous { id: &'a Id, dangers: u64, summary: &'a Summary },
    /// Agents made these steps since the person looked.
    CommitUnseen { id: &'a Id, steps: &'a [Unseen], summary: &'a Summary },
    /// So many changes are to leave a session that holds so many.
    DiscardPaths { id: &'a Id, count: usize, held: u64 },
    /// All pending sessions of the project, or of all projects, are to be put aside, with so many changes.
    DiscardAll { sessions: &'a [Header], held: u64, everywhere: bool },
    /// These sessions are to be freed, with so many changes; with content that `--force` overwrote, perhaps.
    Free { ids: &'a [&'a Id], held: u64, overwritten: bool },
    /// These services run in the session, and have to end before an act on it.
    StopServices { id: &'a Id, services: &'a [UnderWay] },
    /// An act is to be taken back.
    Undo { act: &'a str, would: &'a Report, id: &'a Id, summed: Option<(Summary, Vec<&'a engine::Row>)> },
    /// A discarded session is to come back.
    BringBack { id: &'a Id, changes: u64 },
    /// Turns of an agent are to be taken back.
    UndoTurns { turns: &'a [u64], rows: &'a [Row], kept: &'a [LeftPath], not_covered: &'a [NotCovered] },
    /// recant's hooks are to be added to these files.
    AddHooks(&'a [&'a AbsPath]),
    /// recant's hooks are to be removed from these files.
    RemoveHooks(&'a [&'a AbsPath]),
    /// A restore removes and overwrites these paths; or moves a HEAD, if there are none.
    Restore { removed: &'a [&'a AbsPath], overwritten: &'a [&'a AbsPath] },
    /// Something is to be pruned.
    Prune(Prune<'a>),
}

/// The choice that `--patch` asks for: of each change, or of each of its blocks, whether it is taken.
pub struct Choosing<'a> {
    /// The act that is to be done with it.
    pub want: Want,
    pub changes: &'a Changes,
    pub sides: &'a [Side],
    /// The changes to ask about, by index.
    pub wanted: Vec<usize>,
}

impl<'a> Choosing<'a> {
    /// Of the changes at and under paths; of all, if there are none.
    ///
    /// # Errors
    /// A path is not in the session.
    pub fn of(want: Want, id: &Id, (changes, sides): (&'a Changes, &'a [Side]), paths: &[TypedPath]) -> Result<Self, Error> {
        Ok(Self { want, changes, sides, wanted: chosen(id, changes, paths)? })
    }
}
