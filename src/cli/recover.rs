//! `recover`: what a crash interrupted is undone or settled; and the same before any verb that changes something.

use serde::Serialize;

use super::problem::Problem;
use super::{Call, Ended, args};
use crate::engine::recover::{self, Finding, Outcome, Recovered};
use crate::error::{Failure, Kind};
use crate::fs::lock::{Hold, Lock};
use crate::fs::path::AbsPath;
use crate::session::id::Id;
use crate::session::store::Store;

/// `{"schema":1,"recovered":[…]}`.
#[derive(Serialize)]
struct Whole {
    recovered: Vec<Row>,
}

/// One session's journal.
#[derive(Serialize)]
struct Row {
    session: Id,
    /// commit, rollback, redo; `null` where only preparations were found.
    verb: Option<&'static str>,
    /// cleaned, undone, settled, left, failed.
    outcome: &'static str,
    /// Paths that somebody else has changed.
    left: Vec<LeftRow>,
    /// Why it failed.
    why: Option<String>,
}

#[derive(Serialize)]
struct LeftRow {
    path: AbsPath,
    why: String,
}

impl Row {
    fn of(recovered: &Recovered) -> Self {
        let (outcome, left, why) = match &recovered.outcome {
            Outcome::Cleaned => ("cleaned", Vec::new(), None),
            Outcome::Undone => ("undone", Vec::new(), None),
            Outcome::Settled => ("settled", Vec::new(), None),
            Outcome::Left(left) => {
                let rows = left.iter().map(|left| LeftRow { path: left.path.clone(), why: left.why.clone() });
                ("left", rows.collect(), None)
            }
            Outcome::Failed(error) => ("failed", Vec::new(), Some(error.to_string())),
        };
        Self { session: recovered.id.clone(), verb: recovered.verb, outcome, left, why }
    }
}

/// Ids of interrupted operations.
pub fn interrupted(store: &Store) -> Result<Vec<Id>, Problem> {
    Ok(recover::interrupted(store)?)
}

/// What recovery would do about a session.
pub fn finding(store: &Store, id: &Id) -> Result<Option<Finding>, Problem> {
    Ok(recover::finding(store, id)?)
}

/// The same in words.
pub fn would(finding: Finding) -> &'static str {
    match finding {
        Finding::Draft => "recovery would clear away what was made ready",
        Finding::ToUndo => "recovery would undo it",
        Finding::ToSettle => "it is done; recovery would clear up after it",
    }
}

/// Recovers every journal and says so. What stands against it is an error where it is about `own`, else a warning.
pub fn all(call: &Call, store: &Store, _lock: &Lock, own: Option<&Id>) -> Result<(), Problem> {
    for recovered in recover::all(&call.fs, store)? {
        say(call, &recovered);
        if own == Some(&recovered.id) {
            fail_if_stuck(recovered)?;
        }
    }
    Ok(())
}

fn say(call: &Call, recovered: &Recovered) {
    let Recovered { id, verb, outcome } = recovered;
    let verb = verb.unwrap_or("operation");
    match outcome {
        Outcome::Cleaned => call.out.note(format_args!("session {id}: a {verb} was interrupted before it began: cleared away")),
        Outcome::Undone => call.out.note(format_args!("session {id}: an interrupted {verb} is undone")),
        Outcome::Settled => call.out.note(format_args!("session {id}: an interrupted {verb} is done")),
        Outcome::Left(left) => {
            call.out.warn(format_args!("session {id}: an interrupted {verb} is undone but for:"));
            left.iter().for_each(|left| call.out.say(format_args!("        {}: {}", left.path, left.why)));
        }
        Outcome::Failed(error) => call.out.warn(format_args!("session {id}: an interrupted {verb} stays: {error}")),
    }
}

fn fail_if_stuck(recovered: Recovered) -> Result<(), Problem> {
    match recovered.outcome {
        Outcome::Failed(error) => Err(Problem::of_engine(error)),
        Outcome::Left(left) => {
            let message = format!("session {}: an interrupted operation could not be undone everywhere", recovered.id);
            let state = "its journal stays; nothing more is touched";
            let problem = Problem { state: Some(state.into()), ..Problem::new(Kind::Stuck, message) };
            Err(match left.first() {
                Some(left) => problem.path(&left.path),
                None => problem,
            })
        }
        Outcome::Cleaned | Outcome::Undone | Outcome::Settled => Ok(()),
    }
}

/// Recovers one journal, or all.
pub fn recover(call: &Call, args: &args::Recover) -> Result<Ended, Problem> {
    let store = match (&args.id, call.store()?) {
        (Some(key), _) => Some(call.store_with(key)?),
        (None, store) => store,
    };
    let mut done = Vec::new();
    if let Some(store) = store {
        let id = args.id.as_deref().map(|key| call.find(store, Some(key))).transpose()?;
        let _lock = call.store_lock(store, Hold::Exclusive)?;
        done = match &id {
            None => recover::all(&call.fs, store)?,
            Some(id) if recover::interrupted(store)?.contains(id) => vec![recover::one(&call.fs, store, id)],
            Some(_) => Vec::new(),
        };
    }
    if call.out.is_text() {
        done.iter().for_each(|recovered| say(call, recovered));
        if done.is_empty() {
            call.out.note("nothing was interrupted");
        }
    } else {
        let rows: Vec<Row> = done.iter().map(Row::of).collect();
        call.out.document(&Whole { recovered: rows });
    }
    let worst = done.iter().filter_map(|recovered| match &recovered.outcome {
        Outcome::Failed(error) => Some(error.kind()),
        Outcome::Left(_) => Some(Kind::Stuck),
        Outcome::Cleaned | Outcome::Undone | Outcome::Settled => None,
    });
    Ok(worst.max().map_or(Ended::Done, Ended::With))
}
