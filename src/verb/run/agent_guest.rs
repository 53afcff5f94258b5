//! An agent as the guest of a run: what stays real for it, and the store that it has inside.

use std::ffi::OsString;
use std::path::PathBuf;

use super::agent_records;
use super::notice::Notice;
use crate::agent::{Agent, State};
use crate::capture::Pass;
use crate::error::{Error, Reason};
use crate::fs::{AbsPath, absolute};
use crate::session::{Coverage, Locked, Session, Store, StoreState, own_store};
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::fact::Fact;

/// An agent that is held.
#[derive(Debug)]
pub struct Guest {
    agent: Agent,
    /// Its files: what stays real of them as far as it can, and what is only a record.
    keeps: State,
}

impl Guest {
    /// Makes all ready for an agent in a session's run. `keeps`: recant's own list of its files, in whose place the settings may have others.
    ///
    /// # Errors
    /// The own store cannot be made.
    pub fn receive(
        desk: &Desk,
        store: &Store,
        (agent, keeps): (Agent, &State),
        (session, hide): (&Session, &[PathBuf]),
    ) -> Result<Self, Error> {
        let mut keeps = keeps.clone();
        if let Some(set) = desk.config.agents.get(agent.word()) {
            if let Some(paths) = &set.pass {
                keeps.pass = paths.iter().map(|path| absolute(path)).collect::<Result<_, _>>()?;
            }
            if let Some(records) = set.records.clone() {
                keeps = State {
                    credentials: keeps.credentials,
                    pass: keeps.pass,
                    records,
                    made: Vec::new(),
                    of_conversations: Vec::new(),
                };
            }
        }
        // What an earlier run of the session changed it has to see.
        let changes = session.changes()?;
        let hidden = hide.iter().map(|path| absolute(path)).collect::<Result<Vec<_>, _>>()?;
        let is_hidden = |path: &AbsPath| hidden.iter().any(|hidden| path.is_under(hidden));
        keeps.pass.retain(|path| path.as_path().exists() && !changes.touches(path) && !is_hidden(path));
        if own_store::make(&desk.fs, store, session)? == StoreState::Anew {
            desk.caller.tell(Fact::Run(Notice::Spoilt));
        }
        Ok(Self { agent, keeps })
    }

    /// The paths that stay real for it.
    pub fn passes(&self) -> Vec<Pass> {
        let pass = |path: &AbsPath| Pass { path: path.as_path().to_path_buf(), why: error::kept_by(self.agent) };
        self.keeps.pass.iter().map(pass).collect()
    }

    /// The variables that tell processes inside of the agent and of its store.
    pub fn env(&self, store: &Store) -> Vec<(OsString, OsString)> {
        vec![("RECANT_AGENT".into(), self.agent.word().into()), ("RECANT_STORE".into(), store.path.as_path().as_os_str().into())]
    }

    /// Tells, before the agent starts, where its changes go, and what is not held (`coverage` has it).
    pub fn greet(&self, desk: &Desk, session: &Session, coverage: &[Coverage]) {
        desk.caller.tell(Fact::Run(Notice::Agent { agent: self.agent, session: &session.header, coverage }));
    }

    /// Commits what the agent only recorded about itself, as a session of its own, and tells of it.
    ///
    /// # Errors
    /// The session cannot be locked again.
    pub fn commit_records(&self, desk: &Desk, store: &Store, session: Locked) -> Result<Locked, Error> {
        let id = session.id().clone();
        let found = agent_records::find(&self.keeps, &session);
        // The commit of a part takes the lock itself.
        drop(session);
        agent_records::commit(desk, self.agent, &id, found);
        store.lock_session(&desk.fs, &id)
    }
}

/// A name for a session, of those that `base` begins: with a number if it is taken, as it would be for a run of that name.
///
/// # Errors
/// The sessions cannot be read.
pub fn free_name(store: Option<&Store>, base: String) -> Result<String, Error> {
    let Some(store) = store else { return Ok(base) };
    let (headers, _) = store.headers()?;
    let is_taken = |name: &str| {
        let free = store.name_is_free(&headers, name, store.begins_in.as_ref());
        // Any other error comes again, once the session is begun.
        free.is_err_and(|error| matches!(error.reason(), Some(Reason::Taken { .. } | Reason::IsId)))
    };
    let numbered = (2..).map(|n: u32| format!("{base}-{n}"));
    let name = std::iter::once(base.clone()).chain(numbered).find(|name| !is_taken(name));
    Ok(name.unwrap_or(base))
}
