//! Carries a job out without conflicting paths that do not matter: all conflicts are known before the first effect, and the job can go on
//! without these paths.

use super::plan::conflict;
use super::plan::conflict::{Conflict, SinceAct};
use super::plan::left_out::{LeftOut, MinorPaths};
use crate::engine::job::{Job, Verb};
use crate::engine::operation::{Effect, execute};
use crate::engine::progress::Progress;
use crate::engine::report::Report;
use crate::error::Error;
use crate::fs::{AbsPath, Fs};
use crate::session::{Locked, Side, Store};

/// The conflicts that leave their path out, instead of stopping all.
#[derive(Clone, Copy)]
pub enum Minor<'a> {
    /// None.
    Stops,
    /// Those at minor paths, as this tells of a session; `None` if there are none.
    LeftOut(&'a dyn Fn(&Locked) -> Result<Option<MinorPaths>, Error>),
    /// Under --force, those where nothing is there to act on.
    Forced,
}

/// Makes the job, once the session is locked and the paths are known, without those that are left out.
pub type MakeJob<'a> = dyn Fn(&Locked, &[AbsPath], &LeftOut) -> Result<Job, Error> + 'a;

/// A job that can be asked for again.
pub struct JobRequest<'a> {
    pub verb: Verb,
    /// The paths that were named; all where empty.
    pub paths: &'a [AbsPath],
    /// The conflicts that leave their path out.
    pub minor: Minor<'a>,
    /// The act since which what conflicts is otherwise, if that is to be told.
    pub since: Option<SinceAct>,
    pub ask: &'a MakeJob<'a>,
}

/// Carries the job out, or tells what would be done. The caller holds the session's lock and, unless it only tells, the store's, and has
/// recovered what was interrupted.
///
/// Errors: those of [`execute`]; conflicts name the session that put what is there, if one did.
pub fn execute_without_minor(
    fs: &Fs,
    store: &Store,
    session: &mut Locked,
    asked: &JobRequest<'_>,
    effect: Effect,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    let mut aside = LeftOut::default();
    loop {
        let done = execute(fs, store, session, &|session| (asked.ask)(session, asked.paths, &aside), effect, progress);
        let mut conflicts = match done.map_err(conflict::as_conflicts) {
            Ok(report) => return Ok(report),
            Err(Err(error)) => return Err(error),
            Err(Ok(conflicts)) => conflicts,
        };
        conflicts.iter_mut().for_each(|conflict| conflict.note_since(asked.since));
        let goes_on = match asked.minor {
            Minor::Stops => false,
            Minor::LeftOut(minor) => set_aside(session, minor, &mut aside, &conflicts)?,
            Minor::Forced => leave_absent(session, asked, &mut aside, &conflicts)?,
        };
        if !goes_on {
            conflict::attribute(store, session.id(), &mut conflicts);
            return Err(conflict::refused(conflicts));
        }
    }
}

/// Leaves conflicts out if nothing is there to act on and something else can be done. True if it did.
fn leave_absent(session: &Locked, asked: &JobRequest<'_>, aside: &mut LeftOut, conflicts: &[Conflict]) -> Result<bool, Error> {
    let is_aside = |path: &AbsPath| aside.paths.iter().any(|(known, _)| known == path);
    let has_dir = |path: &AbsPath| path.parent().is_some_and(|parent| parent.as_path().is_dir());
    let is_absent = |conflict: &Conflict| conflict.absent || !has_dir(&conflict.path);
    if !conflicts.iter().all(|conflict| is_absent(conflict) && !is_aside(&conflict.path)) {
        return Ok(false);
    }
    let changes = session.changes()?;
    let sides = session.sides(changes.list.len())?;
    let is_left = |path: &AbsPath| is_aside(path) || conflicts.iter().any(|conflict| path.is_under(&conflict.path));
    let is_asked = |path: &AbsPath| asked.paths.is_empty() || asked.paths.iter().any(|asked| path.is_under(asked));
    let does = |side: &Side| side.is_in() == (asked.verb == Verb::Rollback);
    let mut rest = changes.list.iter().zip(&sides).filter(|(change, side)| does(side) && is_asked(&change.path));
    if !rest.any(|(change, _)| !is_left(&change.path) && has_dir(&change.path)) {
        return Ok(false);
    }
    aside.paths.extend(conflicts.iter().map(|conflict| (conflict.path.clone(), conflict.why())));
    Ok(true)
}

/// Leaves conflicts out if each is minor and was not left out in vain before. True if it did.
fn set_aside(
    session: &Locked,
    minor: &dyn Fn(&Locked) -> Result<Option<MinorPaths>, Error>,
    aside: &mut LeftOut,
    conflicts: &[Conflict],
) -> Result<bool, Error> {
    if aside.minor.is_none() {
        aside.minor = minor(session)?;
    }
    let Some(minor) = &aside.minor else { return Ok(false) };
    let can_go = |conflict: &Conflict| minor(&conflict.path) && !aside.paths.iter().any(|(path, _)| *path == conflict.path);
    if !conflicts.iter().all(can_go) {
        return Ok(false);
    }
    aside.paths.extend(conflicts.iter().map(|conflict| (conflict.path.clone(), conflict.why())));
    Ok(true)
}
