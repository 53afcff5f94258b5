//! Brings paths from one recorded state to another, or leaves every one as it was.
//!
//! In: a [`Job`], that is moves with their `from` and `to`. Out: all of them done and durable, or an error and
//! nothing changed. Touches the tree only through [`fs`](crate::fs), content only where the session or its checkpoint
//! has it. Never prints, never reads the environment, knows nothing of overlays but the xattr names that are never
//! content. The order of effects is docs/ARCHITECTURE.md's. What always holds (`tests/recovery/crash.rs` kills before every step to prove it):
//! - **E1** No step before the journal that names it is whole and durable, under its temporary name or its own.
//! - **E2** A path holds its `from` or its `to`, whole, at every moment (or nothing, for the moment between the two where names cannot
//!   swap); what is set in place can be put back from the journal.
//! - **E3** What leaves the tree lies in the session: moved there by the step itself, or copied there before.
//! - **E4** The generation in `session.json` is the commit point: before it a crash means undo, after it settle.
//!
//! ```text
//! Job --plan--> Plan --prepare--> Prepared --intend--> Intended --apply--> Applied --seal--> Sealed --settle--> Report
//!                                    |                    |                   |
//!                                    +------- undo -------+-------------------+        (a failure, or recover)
//! ```

pub mod apply;
mod build;
pub mod choose;
mod clean;
pub mod conflict;
mod displaced;
mod draft;
pub mod error;
mod file_system;
mod find;
pub mod finish;
pub mod held;
pub mod item;
pub mod job;
pub mod journal;
pub mod left_out;
mod look;
pub mod meta;
pub mod minor;
mod perform;
pub mod plan;
pub mod prepare;
pub mod reach;
pub mod ready;
mod records;
pub mod recover;
pub mod report;
mod reserve;
mod rights;
mod seal;
pub mod settle;
pub mod step;
mod sync;
mod take_back;
mod times;
pub mod undo;

use crate::error::{Error, Kind, Reason};
use crate::fs::Fs;
use crate::fs::interrupt::{self, Asked};
use crate::fs::path::AbsPath;
use crate::session::opened::Locked;
use crate::session::opened::Session;
use crate::session::store::Store;
use conflict::Hindrances;
use job::Job;
use plan::Plan;
use report::Report;

/// Sees how far an operation is: the phase, how many of how many are done.
pub trait Progress: Sync {
    /// Called often; must be cheap.
    fn at(&self, phase: &'static str, done: usize, of: usize);

    /// Called before the content of `path` is hashed, if it is so large that this takes long. Nothing has been changed by then, so any
    /// signal ends recant at once.
    fn hashes(&self, path: &AbsPath, bytes: u64);
}

/// Bytes of content that take long to hash: ten seconds at the speed of SHA-256, more where they are read from a disk.
pub const TAKES_LONG: u64 = 16 << 30;

/// Shows the progress to nobody.
pub struct Unwatched;

impl Progress for Unwatched {
    fn at(&self, _: &'static str, _: usize, _: usize) {}
    fn hashes(&self, _: &AbsPath, _: u64) {}
}

/// How far a job goes.
#[derive(Clone, Copy)]
pub enum Effect {
    Apply,
    /// Only says what would be done.
    Print,
}

/// Carries a job out, from planning to the report. The caller holds the session's and the store's lock, and has recovered
/// what was interrupted.
pub fn carry_out(
    fs: &Fs,
    store: &Store,
    session: &mut Locked,
    ask: &dyn Fn(&Locked) -> Result<Job, Error>,
    effect: Effect,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    let mut tried = once(fs, store, session, ask, effect, progress);
    keep_reserve_again(fs, session, effect, &mut tried);
    tried.map_err(|error| match error.io().and_then(std::io::Error::raw_os_error) {
        Some(libc::EXDEV) => error.with_remedy("with RECANT_STORE on another file system than the path, recant copies instead"),
        _ => error,
    })
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

fn once(
    fs: &Fs,
    store: &Store,
    session: &mut Locked,
    ask: &dyn Fn(&Locked) -> Result<Job, Error>,
    effect: Effect,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    let mut plan = Plan::look(session, ask(session)?, progress)?;
    refuse_held(store, session, &plan)?;
    if matches!(effect, Effect::Print) || plan.is_nothing() {
        let road = plan.portable();
        let mut report = plan.report();
        report.notes.extend(road);
        return Ok(report);
    }
    // From the first effect on, a signal no longer ends recant on the spot.
    let _noting = interrupt::note(Asked::Stops);
    interrupt::check().map_err(|asked| Error::new(Kind::Refused, asked.to_string()))?;
    if !plan.is_inward() {
        reserve::free(fs, session)?;
    }
    plan.acts(session.act(fs)?);
    let prepared = plan.prepare(fs, store, session)?;
    let intended = prepared.intend(fs, store, session)?; // E1: from here to the seal a crash is undone
    let applied = intended.apply(fs, store, session, progress)?; // a failure has undone itself
    let _settling = interrupt::note(Asked::GoesOn);
    let sealed = applied.seal(fs, store, session)?; // E4
    let mut report = sealed.settle(fs, store, session)?;
    report.notes.extend(interrupt::came().map(|signal| format!("{signal} came when all was done: it is finished")));
    Ok(report)
}

/// Refuses a plan with a path that another session's interrupted operation holds. It is left alone until that is recovered.
fn refuse_held(store: &Store, session: &Locked, plan: &Plan) -> Result<(), Error> {
    if store.journaled()?.iter().all(|id| id == session.id()) {
        return Ok(());
    }
    let paths: Vec<_> = plan.paths().collect();
    let held = recover::holds_any(store, session.id(), &paths)?;
    held.map_or(Ok(()), |(by, path)| Err(error::held(path, by)))
}
