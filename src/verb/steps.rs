//! `steps`: the steps of a session. A command that runs in the session is shown, too.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::desk::Desk;
use super::error;
use super::list::SessionRow;
use super::resolve::killed_run;
use super::resolve::standing::Standing;
use super::resolve::standing::is_held;
use super::resolve::wanted_act::Want;
use crate::error::Error;
use crate::fs::{AbsPath, Time};
use crate::session::{ActingAgent, Arg, CommandRecord, Ending, Run, Service, Session, Sort, Step, StepList, Store};
use crate::tree::time;

/// The steps of a session, as JSON has them: docs/json.md.
pub struct Steps {
    pub session: Session,
    pub standing: Standing,
    /// Those that can be gone back to, the oldest first.
    pub steps: Vec<Step>,
    /// The number of those that cannot.
    pub gone: usize,
    /// The number of the step at which the session stands.
    pub head: u32,
    /// The command that runs in it, with the number that its step will have.
    pub running: Option<(u32, Run)>,
    /// True if it came from another store: what its steps stood on stayed there.
    pub imported: bool,
}

impl Serialize for Steps {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Told<'a> {
            session: SessionRow<'a>,
            head: u32,
            steps: Vec<Row<'a>>,
            running: Option<Running<'a>>,
        }
        let told = Told {
            session: SessionRow::new(&self.session.header, self.standing),
            head: self.head,
            steps: self.steps.iter().rev().map(|step| Row::new(step, self.head)).collect(),
            running: self.running.as_ref().map(|(n, run)| Running::new(*n, self.head, run)),
        };
        told.serialize(serializer)
    }
}

#[derive(Serialize)]
struct Row<'a> {
    n: u32,
    /// The step that it stands on; 0 is the tree as it was.
    on: u32,
    head: bool,
    #[serde(flatten)]
    command: CommandRow<'a>,
    uid: u32,
    unsynced: bool,
    /// The commands that joined it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    beside: Vec<CommandRow<'a>>,
    changes: BTreeMap<Sort, u64>,
    /// The paths that left the session at it.
    #[serde(skip_serializing_if = "is_zero")]
    left: u64,
    held_bytes: u64,
}

impl<'a> Row<'a> {
    fn new(step: &'a Step, head: u32) -> Self {
        let sorts = [Sort::Created, Sort::Modified, Sort::Deleted, Sort::Metadata, Sort::Times];
        Self {
            n: step.n,
            on: step.on,
            head: step.n == head,
            command: CommandRow::new(&step.command),
            uid: step.uid,
            unsynced: step.unsynced,
            beside: step.beside.iter().map(CommandRow::new).collect(),
            changes: sorts.into_iter().map(|sort| (sort, count(step, sort))).collect(),
            left: step.left,
            held_bytes: step.held,
        }
    }
}

/// A command that was run, or runs.
#[derive(Serialize)]
struct CommandRow<'a> {
    argv: &'a [Arg],
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    cwd: &'a AbsPath,
    by: Option<&'a ActingAgent>,
    #[serde(with = "time")]
    started: Time,
    took_ns: Option<u64>,
    /// `null` while it runs, or if it was killed, or recant was, before it ended.
    ending: Option<Ending>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<&'a Service>,
}

impl<'a> CommandRow<'a> {
    fn new(record: &'a CommandRecord) -> Self {
        let CommandRecord { argv, label, cwd, by, started, took, ending, service } = record;
        let (label, by, service) = (label.as_deref(), by.as_ref(), service.as_ref());
        Self { argv, label, cwd, by, started: *started, took_ns: *took, ending: *ending, service }
    }
}

/// True for a number that is left out of JSON.
fn is_zero(n: &u64) -> bool {
    *n == 0
}

pub fn count(step: &Step, sort: Sort) -> u64 {
    step.sorts.get(&sort).copied().unwrap_or(0)
}

/// A command that runs in the session.
#[derive(Serialize)]
struct Running<'a> {
    /// The number of the step that it makes if it changes something.
    n: u32,
    on: u32,
    #[serde(flatten)]
    command: CommandRow<'a>,
    uid: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    beside: Vec<CommandRow<'a>>,
}

impl<'a> Running<'a> {
    fn new(n: u32, on: u32, run: &'a Run) -> Self {
        let beside = run.beside.iter().map(CommandRow::new).collect();
        Self { n, on, command: CommandRow::new(&run.command), uid: run.uid, beside }
    }
}

/// Looks at the steps of a session: the one that `key` means, else `last`. Changes nothing.
///
/// # Errors
/// No session is meant; it cannot be read; it has no steps.
pub fn steps(desk: &Desk, key: Option<&str>) -> Result<Steps, Error> {
    let (store, session) = session(desk, key)?;
    let header = &session.header;
    let running = if header.uncollected { running(&session)? } else { None };
    let list = if running.is_some() { session.steps()? } else { of(&session)? };
    let all = list.steps.len();
    let kept = list.kept(header);
    let steps: Vec<Step> = list.steps.into_iter().filter(|step| kept.contains(&step.n)).collect();
    let standing = Standing::now(store, header)?;
    let (gone, head, imported) = (all - steps.len(), header.head(), header.imported.is_some());
    Ok(Steps { standing, steps, gone, head, running, imported, session })
}

/// Opens a session to read what its ended commands did: another may run in it.
pub fn session<'d>(desk: &'d Desk, key: Option<&str>) -> Result<(&'d Store, Session), Error> {
    let store = desk.store_with(key.unwrap_or("last"))?;
    let id = desk.find(store, key, Want::Look)?;
    let mut session = store.session(&id)?;
    if session.header.uncollected && !is_held(&session) {
        killed_run::collect_ended(desk, store, &id)?;
        session = store.session(&id)?;
    }
    Ok((store, session))
}

/// The steps of a session.
///
/// # Errors
/// It has none: its changes were not held in a run.
pub fn of(session: &Session) -> Result<StepList, Error> {
    let list = session.steps()?;
    if !list.steps.is_empty() || session.header.steps.is_some() {
        return Ok(list);
    }
    Err(error::no_steps(session.id()))
}

/// The command that runs in a session, with the number that its step will have.
fn running(session: &Session) -> Result<Option<(u32, Run)>, Error> {
    let beside = session.beside()?;
    Ok(session.run_under_way()?.map(|run| (session.header.next_step(), Run { beside, ..run })))
}
