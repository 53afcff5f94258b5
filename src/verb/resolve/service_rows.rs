//! Services as they are told: those that run, and one that was stopped.

use serde::Serialize;

use crate::fs::Time;
use crate::session::{ActingAgent, Arg, CommandRecord, Ending, Id, Stopped, Store, UnderWay};
use crate::tree::time;

/// A service that runs, as a listing shows it.
#[derive(Debug, Serialize)]
pub struct ServiceRow {
    pub name: String,
    pub argv: Vec<Arg>,
    pub by: Option<ActingAgent>,
    #[serde(with = "time")]
    pub started: Time,
}

/// The services that run in a session; none if that cannot be told.
pub fn services_of(store: &Store, id: &Id) -> Vec<ServiceRow> {
    let running = store.session(id).and_then(|session| session.under_way()).unwrap_or_default();
    let row = |UnderWay { command: CommandRecord { argv, by, started, service, .. }, .. }| {
        Some(ServiceRow { name: service?.name, argv, by, started })
    };
    running.into_iter().filter_map(row).collect()
}

/// A service that was stopped, or had ended. JSON: docs/json.md.
#[derive(Debug, Serialize)]
pub struct StoppedService {
    pub session: Id,
    pub name: String,
    #[serde(with = "time")]
    pub started: Time,
    /// `None` if its recant was killed.
    pub ending: Option<Ending>,
    /// `None` if it ended by itself meanwhile.
    pub stopped: Option<Stopped>,
}
