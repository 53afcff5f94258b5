//! Runs on the real tree whose recant was killed. `recover`, and every verb that changes something, makes the session that the killed recant
//! would have made of the changes.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::collect_in_place;
use super::collect_in_place::collect;
use super::collect_in_place::end;
use super::collect_in_place::{Collected, Watched};
use super::cut_off_value::{CutRun, Outcome};
use super::notice::Notice;
use super::temporary::Temporary;
use crate::engine::recover::recovery::Choice;
use crate::error::Error;
use crate::fs::interrupt;
use crate::session::run_in_place::Standing;
use crate::session::{Arg, Directory, Held, Id, Record, Store, run_in_place};
use crate::snapshot::Series;
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::fact::Fact;

/// The store, if a run on the real tree ever used it. Costs one look if none did.
fn store_with_runs(desk: &Desk) -> Result<Option<Store>, Error> {
    let path = desk.store_path()?;
    if !path.as_path().join("running").exists() {
        return Ok(None);
    }
    Store::open(&path)
}

/// Recovers the runs before a verb that changes something, so that its changes do not count as theirs.
///
/// # Errors
/// The store cannot be read; a signal came.
pub fn recover_before(desk: &Desk) -> Result<(), Error> {
    let Some(store) = &store_with_runs(desk)? else { return Ok(()) };
    if run_in_place::cut_off(store)?.is_empty() {
        return Ok(());
    }
    // The changes of an interrupted operation are not theirs either.
    desk.recovered.replace(desk.prepare_to_change(store)?);
    recover_all(desk, store)?.iter().for_each(|run| desk.caller.tell(Fact::Run(Notice::CutRun(run))));
    desk.stop_if_signalled(error::RUNS_SETTLED)
}

/// Tells of the runs before a verb that only reads.
///
/// # Errors
/// The store cannot be read.
pub fn tell_all(desk: &Desk) -> Result<(), Error> {
    let Some(store) = &store_with_runs(desk)? else { return Ok(()) };
    for id in run_in_place::cut_off(store)? {
        desk.caller.tell(Fact::Run(Notice::CutOff { id: &id, record: record(store, &id).as_ref() }));
    }
    Ok(())
}

/// True if a run was cut off, as far as the store can be read.
pub fn is_cut_off(store: &Store, id: &Id) -> bool {
    run_in_place::is_cut_off(store, id).is_ok_and(|cut_off| cut_off)
}

/// Makes the sessions of all runs that were cut off.
///
/// # Errors
/// The store cannot be read.
pub fn recover_all(desk: &Desk, store: &Store) -> Result<Vec<CutRun>, Error> {
    Ok(run_in_place::cut_off(store)?.iter().filter_map(|id| recover(desk, store, id, false)).collect())
}

/// The run that a word means, by its session's id or the end of it.
///
/// # Errors
/// The store cannot be read.
pub fn find(store: &Store, key: &str) -> Result<Option<Id>, Error> {
    Ok(store.running()?.into_iter().find(|id| id.as_str() == key || id.tail() == key))
}

/// Makes the session of one run, or gives it up by [`Choice::Finish`]; `None` if it has ended meanwhile.
///
/// # Errors
/// It is under way; any other choice, as nothing of it is to be decided.
pub fn recover_one(desk: &Desk, store: &Store, id: &Id, choice: Option<Choice>) -> Result<Option<CutRun>, Error> {
    if !run_in_place::is_cut_off(store, id)? {
        return Err(error::run_under_way(id));
    }
    match choice {
        None => Ok(recover(desk, store, id, false)),
        Some(Choice::Finish) => Ok(recover(desk, store, id, true)),
        Some(Choice::Undo | Choice::GiveUp) => Err(error::nothing_to_decide(id)),
    }
}

/// The record of a run; `None` if it cannot be read.
pub fn record(store: &Store, id: &Id) -> Option<Record> {
    run_in_place::read(store, id).ok().flatten()
}

/// Recovers one run; `None` if it has ended meanwhile.
fn recover(desk: &Desk, store: &Store, id: &Id, give_up: bool) -> Option<CutRun> {
    let record = record(store, id);
    let noting = interrupt::note(interrupt::OnSignal::GoesOn);
    let slow = || desk.caller.tell(Fact::Run(Notice::Ending { id, record: record.as_ref() }));
    let outcome = match run_in_place::take_lock(&desk.fs, store, id, slow) {
        Ok(Standing::CutOff(held)) if give_up => Ok(given_up(desk, store, held)),
        Ok(Standing::CutOff(held)) => made(desk, store, held),
        Ok(Standing::Alive | Standing::Over) => return None,
        Err(error) => Err(error),
    };
    drop(noting);
    let outcome = outcome.unwrap_or_else(|problem| Outcome::Failed(error::cut_off(problem, id)));
    Some(CutRun { id: id.clone(), record, outcome })
}

fn made(desk: &Desk, store: &Store, held: Held) -> Result<Outcome, Error> {
    if held.is_sealed(store)? {
        end(desk, store, held);
        return Ok(Outcome::WasMade);
    }
    let record = held.record()?;
    take_away_made(desk, &record);
    let watched = record.directories.iter().map(|of| watched(store, of)).collect::<Result<Vec<_>, _>>()?;
    // The session belongs to the project that the run was begun in, and to the agent that began it.
    let mut own = Store::open(&store.path)?.ok_or_else(|| error::store_gone(&store.path))?;
    (own.begins_in, own.by) = (record.cwd.clone(), record.by.clone());
    let (argv, name) = (record.words(), record.name.as_deref());
    let command = collect_in_place::Command { held, argv: &argv, name, named: &HashSet::new() };
    let Collected { session, left } = collect(desk, &own, &watched, command)?;
    Ok(session.map_or(Outcome::Unchanged, |(_, changes)| Outcome::Made(changes, left)))
}

fn given_up(desk: &Desk, store: &Store, held: Held) -> Outcome {
    let record = held.record();
    record.iter().for_each(|record| take_away_made(desk, record));
    let directories = record.map(|record| record.directories).unwrap_or_default();
    let there = directories.into_iter().filter(|of| watched(store, of).is_ok());
    let there = there.map(|of| (of.before, of.directory)).collect();
    end(desk, store, held);
    Outcome::GivenUp(there)
}

/// Removes the caches that were made for the command.
fn take_away_made(desk: &Desk, record: &Record) {
    Temporary::of_dirs(record.made.iter().map(|Arg(dir)| PathBuf::from(OsString::from_vec(dir.clone())))).close(desk);
}

/// A directory of a run, with its snapshot from before.
fn watched(store: &Store, of: &Directory) -> Result<Watched, Error> {
    let Directory { directory, before, taken, mount, elsewhere } = of;
    if !of.is_mounted()? {
        return Err(error::not_mounted(directory, mount));
    }
    let gone = || error::snapshot_before_gone(directory, *before);
    let series = Series::open(store, directory)?.filter(|series| series.is_there(*before).is_ok_and(|there| there));
    let series = series.ok_or_else(gone)?;
    // Once all were dropped, a later snapshot may have the same number.
    if series.summary(*before)?.head.time != *taken {
        return Err(gone());
    }
    Ok(Watched { series, before: *before, elsewhere: elsewhere.clone() })
}
