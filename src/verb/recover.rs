//! `recover`: undoes or settles what was interrupted.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::desk::Desk;
use super::error;
use super::fact::Collected;
use super::resolve::killed_run;
use super::resolve::killed_run::TakenIn;
use super::resolve::wanted_act::Want;
use super::run::cut_off;
use super::run::cut_off_value::CutRun;
use crate::engine::recover::recovery;
use crate::engine::recover::recovery::Choice;
use crate::engine::{LeftPath, Outcome, Recovered, Verb, recover_and_lock, way_on};
use crate::error::{Error, Kind};
use crate::remedy::Remedy;
use crate::session::Id;

/// The interrupted work that was recovered; in JSON a list, docs/json.md.
#[derive(Default)]
pub struct Recovery {
    pub(crate) operations: Vec<Recovered>,
    /// Runs on the real tree.
    pub(crate) runs: Vec<CutRun>,
    /// Runs that were collected, and told of, as the session was looked for.
    pub(crate) told: Vec<Collected>,
    /// Other runs whose changes are held.
    pub(crate) held: Vec<TakenIn>,
    /// The error that ended it before all was looked at.
    pub(crate) failed: Option<Error>,
}

impl Recovery {
    /// True if nothing was interrupted.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty() && self.runs.is_empty() && self.told.is_empty() && self.held.is_empty()
    }

    /// The worst kind of what is not recovered in full.
    pub fn kind(&self) -> Option<Kind> {
        let of_operation = |one: &Recovered| match &one.outcome {
            Outcome::Failed(error) => Some(error.kind()),
            Outcome::Left(_) => Some(Kind::LeftOut),
            _ => (!one.strays.is_empty()).then_some(Kind::LeftOut),
        };
        let failed = self.held.iter().filter_map(|(_, held)| held.as_ref().err().map(Error::kind));
        self.operations.iter().filter_map(of_operation).chain(self.runs.iter().filter_map(CutRun::kind)).chain(failed).max()
    }
}

/// Recovers all that was interrupted: an operation is undone, or settled if it had been done; a run that was cut off is collected.
///
/// # Errors
/// [`Kind::Busy`]: another works in the store. The store cannot be read.
pub fn recover(desk: &Desk) -> Result<Recovery, Error> {
    let Some(store) = desk.store()? else { return Ok(Recovery::default()) };
    let settled = recover_and_lock::recover_alone(&desk.fs, store, || desk.say_waiting(store))?;
    desk.say_unswept(settled.unswept);
    let mut recovery = Recovery { operations: settled.recovered, ..Recovery::default() };
    match cut_off::recover_all(desk, store) {
        Ok(runs) => recovery.runs = runs,
        Err(error) => return Ok(Recovery { failed: Some(error), ..recovery }),
    }
    recovery.held = killed_run::take_in_all(desk, store)?;
    Ok(recovery)
}

/// Recovers what the key names. `choice`: what to do where recovery cannot decide.
///
/// # Errors
/// Nothing is called by the key; it is under way; another recant holds the store; the store cannot be read.
pub fn recover_named(desk: &Desk, key: &str, choice: Option<Choice>) -> Result<Recovery, Error> {
    desk.collected.replace(Some(Vec::new()));
    let (store, mut recovery) = (desk.store_with(key)?, Recovery::default());
    if let Some(id) = cut_off::find(store, key)? {
        recovery.runs.extend(cut_off::recover_one(desk, store, &id, choice)?);
        return Ok(recovery);
    }
    let _lock = desk.store_lock(store)?;
    let id = desk.find(store, Some(key), Want::Tend)?;
    recovery.told = desk.collected.take().unwrap_or_default();
    // An operation whose state is unclear needs the choice; recovery reports other errors, too. A session that an operation was at work on
    // has no run any more.
    if matches!(recovery::finding(store, &id), Ok(None)) {
        recovery.held.extend(killed_run::take_in_one(desk, store, &id));
    } else {
        recovery.operations.push(recovery::recover_session(&desk.fs, store, &id, choice));
    }
    Ok(recovery)
}

impl Serialize for Recovery {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows = self.operations.iter().map(Row::of_operation).chain(self.runs.iter().map(Row::of_run));
        let told = self.told.iter().map(|collected| Row::of_held(&collected.id, Ok(collected)));
        let rows: Vec<Row<'_>> =
            rows.chain(told).chain(self.held.iter().map(|(id, held)| Row::of_held(id, held.as_ref()))).collect();
        let mut document = serializer.serialize_struct("Recovery", 1)?;
        document.serialize_field("recovered", &rows)?;
        document.end()
    }
}

/// One thing that was recovered, as JSON has it.
#[derive(Serialize)]
struct Row<'a> {
    session: &'a Id,
    verb: Option<&'static str>,
    result: &'static str,
    left: Vec<&'a LeftPath>,
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<Remedy>,
}

impl<'a> Row<'a> {
    fn new(session: &'a Id, verb: Option<&'static str>, result: &'static str) -> Self {
        Self { session, verb, result, left: Vec::new(), notes: Vec::new(), why: None, remedy: None }
    }

    fn failed(self, why: String, error: &Error) -> Self {
        Self { result: "failed", why: Some(why), remedy: error.advice().cloned(), ..self }
    }

    fn of_operation(one: &'a Recovered) -> Self {
        let row = Self::new(&one.id, one.verb.map(Verb::word), "left");
        let mut row = match &one.outcome {
            Outcome::Cleaned => Self { result: "cleaned", ..row },
            Outcome::Undone => Self { result: "undone", ..row },
            Outcome::Settled => Self { result: "settled", ..row },
            Outcome::Left(left) => Self { left: left.iter().collect(), remedy: way_on(one, left), ..row },
            Outcome::Failed(error) => row.failed(error.to_string(), error),
        };
        row.left.extend(&one.strays);
        Self { notes: one.notes.clone(), ..row }
    }

    fn of_run(run: &'a CutRun) -> Self {
        let row = Self { left: run.left().iter().collect(), ..Self::new(&run.id, Some("run"), run.result()) };
        match run.problem() {
            Some(error) => row.failed(error.message().to_owned(), error),
            None => row,
        }
    }

    fn of_held(id: &'a Id, held: Result<&Collected, &Error>) -> Self {
        let row = Self::new(id, Some("run"), "collected");
        match held {
            Ok(collected) => Self { notes: error::lost(collected).into_iter().collect(), ..row },
            Err(error) => row.failed(error.message().to_owned(), error),
        }
    }
}
