//! One operation on a session: commit, rollback or redo.

use super::error;
use super::job::{self, Job};
use super::plan::conflict::Hindrances;
use super::plan::make_plan::Plan;
use super::progress::{Progress, Unwatched};
use super::recover::recovery;
use super::report::Report;
use super::work::reserve;
use crate::error::{Error, Kind, Reason};
use crate::fs::{Fs, OnSignal, interrupt};
use crate::session::{Locked, Session, Store};

/// How far a job goes.
#[derive(Clone, Copy)]
pub enum Effect {
    Apply,
    /// Only says what would be done.
    Print,
}

/// Carries a job out, from planning to the report. The caller holds the session's and the store's lock, and has recovered
/// what was interrupted.
pub fn execute(
    fs: &Fs,
    store: &Store,
    session: &mut Locked,
    ask: &dyn Fn(&Locked) -> Result<Job, Error>,
    effect: Effect,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    let mut tried = try_once(fs, store, session, ask, effect, progress);
    keep_reserve_again(fs, session, effect, &mut tried);
    if let Ok(report) = &tried
        && !report.dry_run
    {
        session.keep_size(fs, store, report.rows.len() as u64);
    }
    tried
}

/// All that carrying a job out would meet now, but for damage. Needs no lock and changes nothing.
pub fn hindrances(session: &Session, job: Job) -> Result<Hindrances, Error> {
    Plan::hindrances(session, job, &Unwatched)
}

/// Keeps the reserve again that a rollback freed, for what is still in.
fn keep_reserve_again(fs: &Fs, session: &Session, effect: Effect, tried: &mut Result<Report, Error>) {
    let freed = match tried {
        Ok(report) => !matches!(effect, Effect::Print) && report.verb == job::Verb::Rollback,
        Err(error) => error.reason() == Some(&Reason::Undone),
    };
    if let Err(error) = if freed { reserve::keep_again(fs, session) } else { Ok(()) }
        && let Ok(report) = tried
    {
        // Beside an error this one matters less.
        report.notes.push(format!("could not reserve room for the rollback of what is still on the tree: {error}"));
    }
}

fn try_once(
    fs: &Fs,
    store: &Store,
    session: &mut Locked,
    ask: &dyn Fn(&Locked) -> Result<Job, Error>,
    effect: Effect,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    let mut plan = Plan::make(session, ask(session)?, progress)?;
    refuse_held(store, session, &plan)?;
    if matches!(effect, Effect::Print) || plan.is_nothing() {
        let road = plan.portable();
        let mut report = plan.report();
        report.notes.extend(road);
        if matches!(effect, Effect::Print) {
            report.dry_run = true;
            report.displaced.clear();
        }
        return Ok(report);
    }
    // From the first effect on, a signal no longer ends recant on the spot.
    let _noting = interrupt::note(OnSignal::Stops);
    interrupt::check().map_err(|asked| Error::new(Kind::Refused, asked.to_string()))?;
    if !plan.is_inward() {
        reserve::free(fs, session)?;
    }
    plan.acts(session.act(fs)?);
    let prepared = plan.prepare(fs, store, session)?;
    let intended = prepared.intend(fs, store, session)?; // I1: from here to the seal a crash is undone
    let applied = intended.apply(fs, store, session, progress)?; // a failure has undone itself
    let _settling = interrupt::note(OnSignal::GoesOn);
    let sealed = applied.seal(fs, store, session)?; // I5
    let mut report = sealed.settle(fs, store, session)?;
    report.notes.extend(interrupt::signal_received().map(|signal| format!("{signal} came too late: all was done")));
    Ok(report)
}

/// Refuses a plan with a path that another session's interrupted operation holds. It is left alone until that is recovered.
fn refuse_held(store: &Store, session: &Locked, plan: &Plan) -> Result<(), Error> {
    if store.journaled()?.iter().all(|id| id == session.id()) {
        return Ok(());
    }
    let paths: Vec<_> = plan.paths().collect();
    let held = recovery::holds_any(store, session.id(), &paths)?;
    held.map_or(Ok(()), |(by, path)| Err(error::held(path, by)))
}
