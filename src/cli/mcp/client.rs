//! The client of a server, as verbs see it: an agent that is asked nothing. Each call has a desk of its own, as the settings may have changed.

use std::rc::Rc;

use crate::config::{Config, From};
use crate::diff::sources::Sources;
use crate::engine::Progress;
use crate::engine::Unwatched;
use crate::error::Error;
use crate::face::by;
use crate::face::json::document;
use crate::face::place::{self, Place};
use crate::fs::Fs;
use crate::fs::dir::Dir;
use crate::fs::path::AbsPath;
use crate::mcp::carrier::Outcome;
use crate::session::by::By;
use crate::session::id::Id;
use crate::session::store::Store;
use crate::verb::desk::{Caller, Desk};
use crate::verb::error::patch_unasked;
use crate::verb::parts::select::Selection;
use crate::verb::said::{Choosing, Question, Said};

struct Client {
    place: Place,
    /// The agent's word, where none of its own variables says it.
    agent: Option<String>,
}

impl Caller for Client {
    fn store_path(&self) -> Result<AbsPath, Error> {
        self.place.resolve()
    }

    fn by(&self, store: &Dir) -> Option<By> {
        match &self.agent {
            Some(agent) => Some(by::as_agent(store, agent.clone())),
            None => by::caller(store),
        }
    }

    fn variable(&self) -> Option<&'static str> {
        by::variable().map(|(variable, _)| variable).or(Some(by::AGENT))
    }

    // The value has what a model needs.
    fn tell(&self, _: Said<'_>) {}

    fn ask(&self, _: Question<'_>) -> bool {
        false
    }

    fn choose(&self, _: &Fs, _: Choosing<'_>, _: &mut Sources<'_>) -> Result<Selection, Error> {
        Err(patch_unasked())
    }

    fn progress(&self) -> Box<dyn Progress> {
        Box::new(Unwatched)
    }

    fn watch(&self, _: &Store, _: &Id, _: i64) -> Option<String> {
        None
    }
}

/// The desk of a call. `store`: the store that the server was given, else the settings name it.
///
/// # Errors
/// The settings are wrong.
pub fn desk(store: Option<&AbsPath>, agent: Option<String>) -> Result<Desk, Error> {
    let (config, place): (Config, Place) = place::settings()?;
    let place = store.map_or(place, |store| Place { path: store.as_path().into(), from: From::Option("--store") });
    Ok(Desk::new(config, Rc::new(Client { place, agent }), (false, false, false)))
}

/// The outcome of a call that failed.
pub fn failed(error: &Error) -> Outcome {
    Outcome::failed(document(error))
}
