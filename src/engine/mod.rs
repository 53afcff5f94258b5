//! Brings paths from one recorded state to another, or leaves every one as it was.
//!
//! In: a [`Job`], that is moves with their `from` and `to`. Out: all of them done and durable, or an error and
//! nothing changed. Touches the tree only through [`fs`](crate::fs), content only where the session or its checkpoint
//! has it. Never prints, never reads the environment, knows nothing of overlays but the xattr names that are never
//! content. The order of effects is docs/ARCHITECTURE.md's. What always holds (`tests/crash.rs` kills before every step to prove it):
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
pub mod aside;
mod build;
pub mod choose;
mod clean;
pub mod conflict;
mod displaced;
mod draft;
mod durable;
mod facts;
mod find;
pub mod finish;
pub mod held;
pub mod item;
pub mod job;
pub mod journal;
pub mod leave;
mod look;
pub mod meta;
mod perform;
pub mod plan;
pub mod prepare;
pub mod reach;
pub mod ready;
pub mod recover;
pub mod report;
mod reserve;
mod rights;
mod road;
mod seal;
pub mod settle;
pub mod step;
mod take_back;
mod times;
pub mod undo;

use crate::error::{At, Failure, IoError, Kind, recant};
use crate::fs::Fs;
use crate::fs::interrupt::{self, Asked};
use crate::fs::path::AbsPath;
use crate::session::store::Locked;
use crate::session::store::Session;
use crate::session::store::Store;
use conflict::Conflict;
use job::Job;
use plan::Plan;
use report::{Left, Report};

/// What can go wrong in this room.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed before the first effect.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The session, its checkpoint or its journal cannot be read or written.
    #[error(transparent)]
    Session(#[from] crate::error::Error),
    /// The tree does not hold what is expected.
    #[error("{}", conflict::summary(.0))]
    Conflicts(Vec<Conflict>),
    /// Something cannot be done, seen before the first effect: path and reason.
    #[error("{}", lines(.0))]
    Refused(Vec<(String, String)>),
    /// What is to be copied or written does not fit, seen before the first effect: path and reason.
    #[error("{}", lines(.0))]
    NoRoom(Vec<(String, String)>),
    /// Content in the store is not what was put there: path and reason.
    #[error("{}", lines(.0))]
    Damaged(Vec<(String, String)>),
    /// Something failed on the way; all that was done is undone.
    #[error("{why}")]
    Undone {
        /// What failed.
        #[source]
        why: Box<Error>,
        /// What was made ready and stays, or may lie in a folder that is not where it was.
        strays: Vec<Left>,
    },
    /// It was ready, and was not let go on.
    #[error("{0}")]
    Stopped(String),
    /// A journal is there that can be neither undone nor settled now, or what was done is not known to be durable.
    #[error("{path}: {why}")]
    Stuck {
        /// The journal, or what stands against it.
        path: String,
        /// Why.
        why: String,
        /// What is true now.
        state: String,
    },
    /// What a journal speaks of is not mounted.
    #[error("{path}: {why}")]
    Unmounted {
        /// The mount point.
        path: String,
        /// Whose file system it was, and what is there now.
        why: String,
        /// The store that the journal stays in.
        store: String,
        /// Whose journal.
        id: String,
    },
    /// Undone but for paths that somebody has changed meanwhile: there it is done, and sealed.
    #[error("{why}; undone but for:\n{}\n{}", shown(.left), shown(.strays))]
    LeftBehind {
        /// Whose operation.
        id: String,
        /// Which verb.
        verb: job::Verb,
        /// Why it was undone.
        #[source]
        why: Box<Error>,
        /// The paths, and why they were left alone.
        left: Vec<Left>,
        /// Names of recant's own that stay.
        strays: Vec<Left>,
    },
    /// Whether an interrupted operation was sealed cannot be told: the user decides.
    #[error("{path}: it cannot be told whether the interrupted {verb} was done: {why}")]
    Undecided {
        /// The header's file.
        path: String,
        /// Which verb.
        verb: &'static str,
        /// What is wrong with it.
        why: String,
        /// Whose journal.
        id: String,
    },
    /// What was decided cannot be done as things stand.
    #[error("{path}: {why}")]
    NotDecided {
        /// What stands against it.
        path: String,
        /// Why.
        why: String,
        /// What to do.
        remedy: String,
    },
    /// An operation of the session was cut off, and is not recovered.
    #[error("session {id}: {why}")]
    Interrupted {
        /// The session.
        id: String,
        /// By what keeps it from being recovered.
        kind: Kind,
        /// What is known of it.
        why: String,
        /// What is true now.
        state: &'static str,
        /// What to do.
        remedy: Option<String>,
    },
    /// An interrupted operation of another session holds a path.
    #[error("{path}: an interrupted operation of session {by} holds it")]
    Held {
        /// The path.
        path: String,
        /// The session.
        by: String,
    },
}

fn lines(rows: &[(String, String)]) -> String {
    let shown: Vec<String> = rows.iter().map(|(path, why)| format!("{path}: {why}")).collect();
    shown.join("\n")
}

fn shown(left: &[Left]) -> String {
    left.iter().map(Left::to_string).collect::<Vec<_>>().join("\n")
}

/// What is true where names of recant's own stay.
fn strayed(strays: &[Left]) -> String {
    format!("undone, but for this:\n{}", shown(strays))
}

impl Failure for Error {
    fn kind(&self) -> Kind {
        match self {
            Error::Io(_) | Error::Refused(_) | Error::NoRoom(_) | Error::NotDecided { .. } => Kind::Refused,
            Error::Stopped(_) => Kind::Refused,
            Error::Session(error) => error.kind(),
            Error::Conflicts(_) => Kind::Conflict,
            Error::Interrupted { kind, .. } => *kind,
            Error::Damaged(_) | Error::Undecided { .. } => Kind::Damaged,
            Error::Undone { strays, .. } if !strays.is_empty() => Kind::LeftOut,
            Error::Undone { why, .. } => why.kind(),
            Error::LeftBehind { .. } => Kind::LeftOut,
            Error::Stuck { .. } | Error::Unmounted { .. } | Error::Held { .. } => Kind::Stuck,
        }
    }

    fn state(&self) -> Option<String> {
        Some(match self {
            Error::Session(error) => return Failure::state(error),
            Error::Stuck { state, .. } => state.clone(),
            Error::Interrupted { state, .. } => (*state).into(),
            Error::Unmounted { store, .. } => format!("its journal stays in {store}; nothing more is touched"),
            Error::LeftBehind { verb, .. } => {
                format!("there the {} is done, and what was there before is kept; all else is as it was", verb.word())
            }
            Error::Undone { strays, .. } if !strays.is_empty() => strayed(strays),
            Error::Undone { why, .. } if matches!(**why, Error::Stopped(_)) => "nothing was changed".into(),
            Error::Undone { .. } => "what had been done was undone: the tree is as it was".into(),
            Error::Undecided { .. } => "nothing was touched; other sessions go on".into(),
            _ => "nothing was changed".into(),
        })
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Error::Session(error) => Failure::remedy(error),
            Error::Undone { why, .. } => why.remedy(),
            Error::Io(error) if error.errno() == Some(libc::EXDEV) => {
                Some("with RECANT_STORE on another file system than the path it goes by copies".into())
            }
            Error::Conflicts(conflicts) => conflict::remedy(conflicts),
            Error::Stuck { .. } => Some(format!("{recant} recover tries again once the cause is gone", recant = recant())),
            Error::Unmounted { id, .. } => Some(format!(
                "mount it and {recant} recover {id} tries again; if it is gone for good, {recant} recover {id} --give-up-unmounted ends \
                 the operation without it",
                recant = recant()
            )),
            Error::LeftBehind { id, verb, left, .. } => {
                left.first().map(|left| finish::how_to_go_on(verb.inward(), id, &left.path))
            }
            Error::Undecided { id, .. } => Some(format!(
                "{recant} recover {id} --undo takes back what was done; {recant} recover {id} --finish keeps it, if all was done",
                recant = recant()
            )),
            Error::NotDecided { remedy, .. } => Some(remedy.clone()),
            Error::Interrupted { remedy, .. } => remedy.clone(),
            Error::Damaged(_) => Some("name the other paths alone, and they go without it".into()),
            Error::Held { by, .. } => Some(format!("{recant} recover {by}", recant = recant())),
            _ => None,
        }
    }

    fn path(&self) -> Option<String> {
        match self {
            Error::Io(error) => Some(error.path.clone()),
            Error::Session(error) => Failure::path(error),
            Error::Conflicts(conflicts) => conflicts.first().map(|conflict| conflict.path.to_string()),
            Error::Refused(rows) | Error::NoRoom(rows) | Error::Damaged(rows) => rows.first().map(|(path, _)| path.clone()),
            Error::Undone { why, .. } => why.path(),
            Error::LeftBehind { left, .. } => left.first().map(|left| left.path.to_string()),
            Error::Stuck { path, .. } | Error::Unmounted { path, .. } | Error::Held { path, .. } => Some(path.clone()),
            Error::Undecided { path, .. } | Error::NotDecided { path, .. } => Some(path.clone()),
            Error::Stopped(_) | Error::Interrupted { .. } => None,
        }
    }
}

/// Sees how far an operation is: the phase, how many of how many are done.
pub trait Progress: Sync {
    /// Called often; must be cheap.
    fn at(&self, phase: &'static str, done: usize, of: usize);

    /// The content of `path` is to be digested, and is so large that this takes long: said before. Nothing has been changed by then, so that
    /// any signal ends it at once.
    fn digests(&self, path: &AbsPath, bytes: u64);
}

/// Content of so many bytes takes long: ten seconds at the speed of SHA-256, more where it has to be read from a disk.
pub const TAKES_LONG: u64 = 16 << 30;

/// Nobody looks.
pub struct Unwatched;

impl Progress for Unwatched {
    fn at(&self, _: &'static str, _: usize, _: usize) {}
    fn digests(&self, _: &AbsPath, _: u64) {}
}

/// Whether to do it, or to say what would be done.
#[derive(Clone, Copy)]
pub enum Effect<'a> {
    /// Do it.
    Apply,
    /// Do it once it is ready and this lets it pass.
    Gated(&'a dyn Gate),
    /// Say it.
    Print,
}

/// Somebody else's word between Prepare and Intend: an operation on several machines goes on where all of them can.
pub trait Gate {
    /// Called once all is ready and durable. May wait; the store's lock is held meanwhile. An error, for people, has what was made
    /// ready taken away again.
    fn pass(&self, paths: usize) -> Result<(), String>;
}

/// Carries a job out, from planning to the report. The caller holds the session's and the store's lock, and has recovered
/// what was interrupted.
pub fn carry_out(
    fs: &Fs,
    store: &Store,
    session: &mut Locked,
    ask: &dyn Fn(&Locked) -> Result<Job, Error>,
    effect: Effect<'_>,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    let mut tried = once(fs, store, session, ask, effect, progress);
    keep_reserve_again(fs, session, effect, &mut tried);
    tried
}

/// The conflicts that carrying a job out would meet now, in path order, each path once; refusals and damage beside them are not
/// told. Needs no lock and changes nothing.
pub fn conflicts(session: &Session, job: Job) -> Result<Vec<Conflict>, Error> {
    Plan::conflicts(session, job, &Unwatched)
}

/// A rollback that came to nothing, or left something in, has freed the reserve.
fn keep_reserve_again(fs: &Fs, session: &Session, effect: Effect<'_>, tried: &mut Result<Report, Error>) {
    let freed = match tried {
        Ok(report) => !matches!(effect, Effect::Print) && report.verb == job::Verb::Rollback,
        Err(Error::Undone { .. }) => true,
        Err(_) => false,
    };
    if let Err(error) = if freed { reserve::keep_again(fs, session) } else { Ok(()) }
        && let Ok(report) = tried
    {
        // Beside an error it would be the smaller one.
        report.notes.push(format!("no room could be kept for the rollback of what is still in: {error}"));
    }
}

fn once(
    fs: &Fs,
    store: &Store,
    session: &mut Locked,
    ask: &dyn Fn(&Locked) -> Result<Job, Error>,
    effect: Effect<'_>,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    let plan = Plan::look(session, ask(session)?, progress)?;
    refuse_held(store, session, &plan)?;
    if matches!(effect, Effect::Print) || plan.is_nothing() {
        return Ok(plan.report());
    }
    // From the first effect on a signal does not end it where it stands.
    let _noting = interrupt::note(Asked::Stops);
    interrupt::check().at("begin with", session.id())?;
    if !plan.is_inward() {
        reserve::free(fs, session)?;
    }
    let mut prepared = plan.prepare(fs, store, session)?;
    if let Effect::Gated(gate) = effect {
        prepared = prepared.pass(fs, store, session, gate)?;
    }
    let intended = prepared.intend(fs, store, session)?; // E1: from here to the seal a crash is undone
    let applied = intended.apply(fs, store, session, progress)?; // a failure has undone itself
    let sealed = applied.seal(fs, store, session)?; // E4
    let mut report = sealed.settle(fs, store, session)?;
    report.notes.extend(interrupt::came().map(|signal| format!("{signal} came when all was done: it is finished")));
    Ok(report)
}

/// What an interrupted operation of another session holds is left alone until that is recovered.
fn refuse_held(store: &Store, session: &Locked, plan: &Plan) -> Result<(), Error> {
    if store.journaled()?.iter().all(|id| id == session.id()) {
        return Ok(());
    }
    let paths: Vec<_> = plan.paths().collect();
    let held = recover::holds_any(store, session.id(), &paths)?;
    held.map_or(Ok(()), |(by, path)| Err(Error::Held { path: path.to_string(), by: by.to_string() }))
}
