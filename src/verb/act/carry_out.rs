//! The job of a commit, rollback or redo, carried out on a session as the call and the settings say.

use super::{merge, named_paths};
use crate::capture::Rest;
use crate::capture::layers::rejoin;
use crate::checkpoint::Limits;
use crate::commit::{self, Request};
use crate::engine::plan::conflict;
use crate::engine::{
    Conflict, Effect, Job, JobRequest, LeftOut, Minor, MinorPaths, OnConflict, Report, SinceAct, Verb, minor_conflicts,
};
use crate::error::{Against, Error, Kind, Reason};
use crate::fs::{AbsPath, leads_nowhere};
use crate::rollback;
use crate::session::{Change, Locked, Part, Session, Store};
use crate::settings::OnLimit;
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::error::Subject;
use crate::verb::fact::Fact;

/// The conflicts over which an act goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflicts {
    /// None: one stops it.
    Stop,
    /// Those at paths of `commit.minor`, which are left out.
    LeaveMinor,
    /// All that force can go over: what is found is kept.
    Force,
}

impl Conflicts {
    pub fn forced(force: bool) -> Self {
        if force { Self::Force } else { Self::Stop }
    }
}

/// An act on a session, and its terms.
#[derive(Debug, Clone, Copy)]
pub struct Act<'a> {
    pub verb: Verb,
    pub conflicts: Conflicts,
    /// The changes that it is about; all where missing.
    pub only: Option<&'a Part>,
    /// True if it commits what a restart of the machine may have left incomplete, too.
    pub accept_unsynced: bool,
    /// The policy for large directories that go.
    pub on_limit: OnLimit,
    /// True for a session that holds no content, as it was filled to ask.
    pub unheld: bool,
    /// The act since which what conflicts is otherwise, if that is to be told.
    pub since: Option<SinceAct>,
}

impl Act<'_> {
    /// The act as the settings have it.
    pub fn new(desk: &Desk, verb: Verb, conflicts: Conflicts) -> Self {
        let on_limit = desk.config.on_limit.value;
        Self { verb, conflicts, only: None, accept_unsynced: verb == Verb::Redo, on_limit, unheld: false, since: None }
    }

    fn job(
        &self,
        session: &Locked,
        paths: &[AbsPath],
        aside: &LeftOut,
        (limits, denied): (Limits, &MinorPaths),
    ) -> Result<Job, Error> {
        let on_conflict = if self.conflicts == Conflicts::Force { OnConflict::Keep } else { OnConflict::Stop };
        if self.verb == Verb::Rollback {
            return rollback::rollback(session, (paths, self.only), on_conflict, aside);
        }
        let (denied, accept_unsynced) = (denied.clone(), self.accept_unsynced);
        let request = Request { paths, on_conflict, limits, denied, only: self.only, aside, accept_unsynced };
        let job = match self.verb {
            Verb::Redo => commit::redo(session, &request)?,
            _ => commit::commit(session, &request)?,
        };
        Ok(if self.unheld { job.unheld() } else { job })
    }
}

/// Carries an act out, or with [`Effect::Print`] only tells what it would do. `paths`: what of the session, all where empty.
///
/// # Errors
/// All that stands against it, in the words of `subject`.
pub fn carry_out(
    desk: &Desk,
    store: &Store,
    session: &mut Locked,
    paths: &[AbsPath],
    effect: Effect,
    act: &Act<'_>,
    subject: Subject<'_>,
) -> Result<Report, Error> {
    // Two operations of one store could undo each other.
    let _lock = if matches!(effect, Effect::Print) { None } else { Some(desk.store_lock(store)?) };
    let (max_files, max_size) = (desk.config.max_files.value, desk.config.max_size.value);
    let limits = Limits { max_files, max_size, on_limit: act.on_limit };
    let denied = named_paths::denied(desk)?;
    let ask = |session: &Locked, paths: &[AbsPath], aside: &LeftOut| act.job(session, paths, aside, (limits, &denied));
    let of_no_weight = |session: &Locked| named_paths::minor(desk, session);
    let minor = match act.conflicts {
        Conflicts::Stop => Minor::Stops,
        Conflicts::LeaveMinor => Minor::LeftOut(&of_no_weight),
        Conflicts::Force => Minor::Forced,
    };
    let progress = desk.caller.progress();
    let asked = JobRequest { verb: act.verb, paths, minor, since: act.since, ask: &ask };
    let done = minor_conflicts::execute_without_minor(&desk.fs, store, session, &asked, effect, &*progress);
    drop(progress);
    let report = done.map_err(|error| refused(subject, session, error))?;
    let keeps = act.verb != Verb::Rollback && !report.dry_run && desk.config.keep_before.value;
    if keeps && let Err(error) = commit::keep_committed(&desk.fs, session) {
        desk.caller.tell(Fact::NotKept(&error));
    }
    Ok(report)
}

/// Carries an act out on a session that may be a part of another one: that one holds it no more, or again.
///
/// # Errors
/// Those of [`carry_out`].
pub fn on_session(
    desk: &Desk,
    store: &Store,
    session: &mut Locked,
    paths: &[AbsPath],
    effect: Effect,
    act: &Act<'_>,
) -> Result<(Report, Rest), Error> {
    let id = session.id().clone();
    let act = &Act { since: act.since.or_else(|| SinceAct::of(&session.header, act.verb)), ..*act };
    let act_on = |session: &mut Locked| carry_out(desk, store, session, paths, effect, act, Subject::Session(act.verb, &id));
    match effect {
        Effect::Print => act_on(session).map(|report| (report, Rest::None)),
        Effect::Apply => rejoin::around(&desk.fs, store, session, (act.verb != Verb::Rollback, paths), act_on),
    }
}

/// Commits the session of a snapshot's restore, or only tells what that would do: then it was filled for this alone. `act`: its words after
/// "cannot".
///
/// # Errors
/// All that stands against a commit.
pub fn restore(
    desk: &Desk,
    store: &Store,
    session: &mut Locked,
    act: &str,
    (conflicts, effect): (Conflicts, Effect),
) -> Result<Report, Error> {
    let unheld = matches!(effect, Effect::Print);
    let as_set = Act::new(desk, Verb::Commit, conflicts);
    let terms = Act { accept_unsynced: unheld, on_limit: OnLimit::Full, unheld, ..as_set };
    carry_out(desk, store, session, &[], effect, &terms, Subject::Restore(act))
}

/// The paths in the way of a restore, if the others can be put back without these. What the settings forbid is not left out, and a conflict
/// is a person's to decide.
pub fn prevented_by(error: &Error) -> Vec<Against> {
    let is_theirs = error.kind() == Kind::Refused && !error.called().is_empty() && error.reason() != Some(&Reason::Denied);
    if is_theirs { error.against() } else { Vec::new() }
}

/// The error with all the paths in the way.
fn refused(subject: Subject<'_>, session: &Session, error: Error) -> Error {
    let conflicts = conflict::of(&error).unwrap_or_default();
    let (gone, merges) = (gone(session, conflicts), may_merge(subject, session, conflicts));
    error::cannot(subject, error, gone.as_ref(), merges)
}

/// True if the session keeps what a merge begins with, for one of the conflicts.
fn may_merge(subject: Subject<'_>, session: &Session, conflicts: &[Conflict]) -> bool {
    let Subject::Session(verb @ (Verb::Commit | Verb::Rollback), _) = subject else { return false };
    if conflicts.is_empty() || verb == Verb::Commit && merge::may_merge(session).is_err() {
        return false;
    }
    let Ok(changes) = session.changes() else { return false };
    let keeps = |change: &Change| match verb {
        Verb::Commit => session.original(change).is_ok_and(|kept| kept.is_some()),
        _ => session.committed(change).is_ok_and(|kept| kept.is_some()),
    };
    let at = |conflict: &Conflict| changes.list.binary_search_by(|change| change.path.cmp(&conflict.path)).ok();
    conflicts.iter().filter_map(at).any(|i| keeps(&changes.list[i]))
}

/// The directory whose absence explains the conflicts, if there is one: that in which the session was begun, else the one that holds all
/// the paths. If directories above it are gone too, the topmost of them.
fn gone(session: &Session, conflicts: &[Conflict]) -> Option<AbsPath> {
    let is_gone = |path: &AbsPath| path.as_path().symlink_metadata().is_err_and(|error| leads_nowhere(&error));
    let mut common = conflicts.first()?.path.parent()?;
    while !conflicts.iter().all(|conflict| conflict.path.is_under(&common)) {
        common = common.parent()?;
    }
    let begun = session.header.cwd.clone().filter(|cwd| conflicts.iter().any(|conflict| conflict.path.is_under(cwd)));
    let mut gone = begun.into_iter().chain([common]).find(is_gone)?;
    while let Some(parent) = gone.parent().filter(is_gone) {
        gone = parent;
    }
    Some(gone)
}
