//! `agent diff`: the two snapshots between which a turn lies, and what is to be known of the difference.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::project_turns::Here;
use super::project_turns::is_back;
use super::uncovered::{NotCovered, not_covered};
use crate::agent::{Turn, fates};
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::Id;
use crate::snapshot::whole;
use crate::verb::desk::Desk;
use crate::verb::error;

/// A turn, and the snapshots that show what it changed.
pub struct TurnDiff {
    pub directory: AbsPath,
    pub turn: Turn,
    pub before: u64,
    /// The snapshot after it; `None`: it has not ended, and is compared with the directory as it is now.
    pub after: Option<u64>,
    /// The paths that were named and that it changed, with the directory as `/`.
    pub paths: Vec<AbsPath>,
    /// The paths that were named and that it did not change.
    pub others: Vec<AbsPath>,
    /// The paths that it wrote and that are not its alone, each with the reason.
    pub against: Vec<(AbsPath, &'static str)>,
    pub not_covered: Vec<NotCovered>,
    /// The sessions that took it back, and true if one left a part.
    pub undone: (Vec<Id>, bool),
}

impl TurnDiff {
    /// True if it changed nothing that its snapshots have.
    pub fn is_empty(&self) -> bool {
        self.turn.calls.is_empty() || self.after == Some(self.before)
    }
}

/// Finds the turn: that of the number, else the newest that changed something. `paths`: these alone, with the directory as `/`.
///
/// # Errors
/// There is no such turn; nothing is known of what was there before it; a path neither the turn nor the project has.
pub fn diff(desk: &Desk, n: Option<u64>, paths: impl FnOnce(&AbsPath) -> Result<Vec<AbsPath>, Error>) -> Result<TurnDiff, Error> {
    let here = Here::find(desk)?;
    let turns = here.all()?;
    let n = here.meant(&turns, n)?;
    let undone = here.undone(&turns)?;
    let turn = turns.into_iter().find(|turn| turn.head.n == n).ok_or_else(|| error::no_turn(n, false))?;
    let Some((before, _)) = turn.before else { return Err(error::turn_not_covered(&turn)) };
    let after = turn.after.filter(|_| turn.is_settled);
    let paths = paths(&here.directory)?;
    let (paths, others) = if after.is_some() { changed(&here, &turn, paths)? } else { (paths, Vec::new()) };
    let is_partly = !is_back(&turn, &undone);
    let by = if turn.own().next().is_some() { here.undone_by(&turn) } else { Vec::new() };
    let not_covered = not_covered(&desk.names(), &here.directory, fates(&[&turn], None), &[])?;
    let against = against(&here.directory, &turn)?;
    Ok(TurnDiff { directory: here.directory, before, after, paths, others, against, not_covered, undone: (by, is_partly), turn })
}

/// Those of the paths that a turn changed, and the others.
fn changed(here: &Here<'_>, turn: &Turn, paths: Vec<AbsPath>) -> Result<(Vec<AbsPath>, Vec<AbsPath>), Error> {
    let is_changed = |path: &AbsPath| turn.wrote.iter().any(|wrote| wrote.path.is_under(path));
    let (changed, others): (Vec<_>, Vec<_>) = paths.into_iter().partition(is_changed);
    let others = others.iter().map(|path| whole(&here.directory, path)).collect::<Result<Vec<_>, _>>()?;
    match others.iter().find(|path| path.as_path().symlink_metadata().is_err()) {
        Some(path) => Err(error::not_of_turn(path, turn.head.n)),
        None => Ok((changed, others)),
    }
}

fn against(directory: &AbsPath, turn: &Turn) -> Result<Vec<(AbsPath, &'static str)>, Error> {
    let found = turn.wrote.iter().filter_map(|wrote| Some((&wrote.path, turn.against(&wrote.path)?)));
    found.map(|(path, why)| Ok((whole(directory, path)?, why))).collect()
}

/// The paths that a turn's tools were to write outside of the project.
pub fn outside(turn: &Turn) -> BTreeSet<&PathBuf> {
    turn.outside().collect()
}
