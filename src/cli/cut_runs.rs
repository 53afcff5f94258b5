//! Runs of `run --in` whose recant was killed. `recover`, and every verb that changes something, makes the session that the killed recant
//! would have made of the changes.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::made::Made;
use super::snapshot_collect::{Collected, Ran, Watched, collect, end};
use crate::error::{Error, Kind, command};
use crate::face::call::Call;
use crate::face::text::cut_run::{what, would};
use crate::face::{args, figures};
use crate::fs::interrupt;
use crate::fs::path::AbsPath;
use crate::session::id::Id;
use crate::session::run::Arg;
use crate::session::running::{self, Directory, Held, Record, Standing};
use crate::session::store::Store;
use crate::snapshot::series::Series;

/// A run that was cut off, and what became of it.
pub struct CutRun {
    pub id: Id,
    /// `the run of make in /srv/app`
    what: String,
    outcome: Outcome,
}

enum Outcome {
    /// The number of changes in its session, and the paths that are not in it.
    Made(u64, Vec<(AbsPath, String)>),
    /// Its session was already made; the run had not ended.
    WasMade,
    /// Nothing changed, so there is no session.
    Unchanged,
    /// Somebody asked for it. The text says how to get back what was there before.
    GivenUp(String),
    Failed(Error),
}

impl CutRun {
    pub fn line(&self) -> String {
        let Self { id, what, outcome } = self;
        let tail = id.tail();
        match outcome {
            Outcome::Made(changes, _) => {
                let (changes, rollback) = (figures::count(*changes, "change"), command(format_args!("rollback {tail}")));
                let diff = command(format_args!("diff {tail}"));
                format!(
                    "{what} was cut off; what has changed there since it began, {changes}, is session {id}\n\
                     {rollback} takes it back; what others have changed there is in it, too: {diff}"
                )
            }
            Outcome::WasMade => format!("{what} was cut off when its session was made: {id}"),
            Outcome::Unchanged => format!("{what} was cut off; nothing there has changed since it began"),
            Outcome::GivenUp(way) => format!("{what} is given up: what it has changed stays, in no session{way}"),
            Outcome::Failed(problem) => {
                let remedy = problem.advice().map_or(String::new(), |remedy| format!("\n{remedy}"));
                format!("{what} was cut off; no session can be made of what it changed: {}{remedy}", problem.message())
            }
        }
    }

    /// The outcome as a word, for JSON.
    pub fn result(&self) -> &'static str {
        match &self.outcome {
            Outcome::Made(..) | Outcome::WasMade => "collected",
            Outcome::Unchanged => "cleaned",
            Outcome::GivenUp(_) => "finished",
            Outcome::Failed(_) => "failed",
        }
    }

    /// The paths that are not in its session, and why.
    pub fn left(&self) -> &[(AbsPath, String)] {
        if let Outcome::Made(_, left) = &self.outcome { left } else { &[] }
    }

    /// The error, if it failed.
    pub fn problem(&self) -> Option<&Error> {
        if let Outcome::Failed(problem) = &self.outcome { Some(problem) } else { None }
    }

    /// The kind of what was not done, if anything.
    pub fn kind(&self) -> Option<Kind> {
        let left = (!self.left().is_empty()).then_some(Kind::LeftOut);
        self.problem().map(|problem| problem.kind()).or(left)
    }
}

/// The store, if a `run --in` ever used it. Costs one look if none did.
fn store_with_runs(call: &Call) -> Result<Option<Store>, Error> {
    let path = call.store_path()?;
    if !path.as_path().join("running").exists() {
        return Ok(None);
    }
    Store::open(&path)
}

/// Recovers the runs before a verb that changes something, so that its changes do not count as theirs.
pub fn recover_before(call: &Call) -> Result<(), Error> {
    let Some(store) = &store_with_runs(call)? else { return Ok(()) };
    if running::cut_off(store)?.is_empty() {
        return Ok(());
    }
    // The changes of an interrupted operation are not theirs either.
    call.recovered.replace(call.prepare_to_change(store)?);
    recover_all(call, store)?.iter().for_each(|run| call.out.warn(run.line()));
    call.stop_if_signalled("the run that was cut off is dealt with as said; nothing else was changed")
}

/// Reports the runs before a verb that only reads.
pub fn say_all(call: &Call) -> Result<(), Error> {
    let Some(store) = &store_with_runs(call)? else { return Ok(()) };
    for id in running::cut_off(store)? {
        if let Some(would) = would(store, &id) {
            call.out.warn(format_args!("{would}; {}", command("recover does it now")));
        }
    }
    Ok(())
}

/// Makes the sessions of all runs that were cut off.
pub fn recover_all(call: &Call, store: &Store) -> Result<Vec<CutRun>, Error> {
    Ok(running::cut_off(store)?.iter().filter_map(|id| recover(call, store, id, false)).collect())
}

/// The `run --in` that a word means, by its session's id or the end of it.
pub fn find(store: &Store, key: &str) -> Result<Option<Id>, Error> {
    Ok(store.running()?.into_iter().find(|id| id.as_str() == key || id.tail() == key))
}

/// Makes the session of one run, or gives it up.
pub fn recover_one(call: &Call, store: &Store, id: &Id, args: &args::Recover) -> Result<Option<CutRun>, Error> {
    if !running::is_cut_off(store, id)? {
        let problem = Error::new(Kind::Busy, format!("the run of session {id} is under way"));
        return Err(problem.with_state("nothing was changed; its session is made when it ends"));
    }
    if args.undo || args.give_up_unmounted {
        let problem = Error::usage(format!("{} was cut off: there is nothing to decide", what(store, id)));
        let (recover, rollback) = (command(format_args!("recover {id}")), command(format_args!("rollback {id}")));
        return Err(problem.with_remedy(recover + " makes the session of what it changed, " + rollback + " takes that back"));
    }
    Ok(recover(call, store, id, args.finish))
}

/// Recovers one run; `None` if it has ended meanwhile.
fn recover(call: &Call, store: &Store, id: &Id, give_up: bool) -> Option<CutRun> {
    let what = what(store, id);
    let noting = interrupt::note(interrupt::Asked::GoesOn);
    let slow = || call.out.note(format_args!("waiting until {what} has ended"));
    let outcome = match running::take(&call.fs, store, id, slow) {
        Ok(Standing::CutOff(held)) if give_up => Ok(given_up(call, store, held)),
        Ok(Standing::CutOff(held)) => made(call, store, held),
        Ok(Standing::Alive | Standing::Over) => return None,
        Err(error) => Err(error),
    };
    drop(noting);
    let outcome = outcome.unwrap_or_else(|problem| Outcome::Failed(with_way_out(problem, id)));
    Some(CutRun { id: id.clone(), what, outcome })
}

/// Adds what can be done if the session cannot be made.
fn with_way_out(problem: Error, id: &Id) -> Error {
    let [again, end] = ["", " --finish"].map(|how| command(format_args!("recover {id}{how}")));
    let ways = again + " tries again, " + end + " ends it without a session";
    // The remedy for a damaged snapshot would drop the one that is needed here.
    let own = problem.advice().filter(|_| problem.kind() != Kind::Damaged);
    let remedy = match own.cloned() {
        Some(own) => own + "; " + ways,
        None => ways,
    };
    problem.with_remedy(remedy)
}

fn made(call: &Call, store: &Store, held: Held) -> Result<Outcome, Error> {
    if held.is_sealed(store)? {
        end(call, store, held);
        return Ok(Outcome::WasMade);
    }
    let record = held.record()?;
    take_away_made(call, &record);
    let watched = record.directories.iter().map(|of| watched(store, of)).collect::<Result<Vec<_>, _>>()?;
    // The session belongs to the project that the run was begun in, and to the agent that began it.
    let mut own = Store::open(&store.path)?.ok_or_else(|| Error::refused(format!("{}: the store is gone", store.path)))?;
    (own.begins_in, own.by) = (record.cwd.clone(), record.by.clone());
    let (argv, name) = (record.words(), record.name.as_deref());
    let Collected { session, left } = collect(call, &own, &watched, Ran { held, argv: &argv, name, named: &HashSet::new() })?;
    Ok(session.map_or(Outcome::Unchanged, |(_, changes)| Outcome::Made(changes, left)))
}

fn given_up(call: &Call, store: &Store, held: Held) -> Outcome {
    let record = held.record();
    record.iter().for_each(|record| take_away_made(call, record));
    let directories = record.map(|record| record.directories).unwrap_or_default();
    let there = directories.iter().filter(|of| watched(store, of).is_ok());
    let ways = there.map(|of| command(format_args!("snapshot restore {} --with-vcs --dir {}", of.before, of.directory)));
    let ways: Vec<String> = ways.map(Into::into).collect();
    end(call, store, held);
    Outcome::GivenUp(if ways.is_empty() { String::new() } else { format!("\n{} goes back to before it", ways.join("; ")) })
}

/// Removes the caches that were made for the command.
fn take_away_made(call: &Call, record: &Record) {
    Made::of_dirs(record.made.iter().map(|Arg(dir)| PathBuf::from(OsString::from_vec(dir.clone())))).close(call);
}

/// A directory of a run, with its snapshot from before.
fn watched(store: &Store, of: &Directory) -> Result<Watched, Error> {
    let Directory { directory, before, taken, mount, elsewhere } = of;
    if !of.is_mounted()? {
        let problem =
            Error::new(Kind::Stuck, format!("{directory}: nothing is mounted at {mount}, as was when it began")).without_state();
        return Err(problem.with_path(directory).with_remedy("mount it"));
    }
    let gone = || {
        let why = format!("{directory}: its snapshot {before}, which was taken before the command, is gone");
        Error::new(Kind::Stuck, why).without_state().with_path(directory)
    };
    let series = Series::open(store, directory)?.filter(|series| series.is_there(*before).is_ok_and(|there| there));
    let series = series.ok_or_else(gone)?;
    // Once all were dropped, a later snapshot may have the same number.
    if series.summary(*before)?.head.time != *taken {
        return Err(gone());
    }
    Ok(Watched { series, before: *before, elsewhere: elsewhere.clone() })
}
