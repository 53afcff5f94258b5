//! The session of calls that name none: that of this server's last `hold_run` or `fork`; after a restart the newest that this agent made here.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::child::Child;
use super::reading;
use crate::face::mcp::carrier::{Outcome, Told};

/// A session of this agent's.
#[derive(Debug, Clone)]
pub struct Own {
    /// The word for it: its name, which means a new one once it is committed, or its id.
    pub word: String,
    /// Its id, once it is known.
    pub id: Option<String>,
}

impl Own {
    fn of(session: &Value) -> Option<Self> {
        let id = session["id"].as_str()?.to_owned();
        Some(Self { word: session["name"].as_str().unwrap_or(&id).to_owned(), id: Some(id) })
    }

    /// The id, as answers have it.
    pub fn told(&self) -> &str {
        self.id.as_deref().unwrap_or(&self.word)
    }
}

/// The session of the last `hold_run` or `fork`.
#[derive(Default)]
pub struct Last(Mutex<Option<Own>>);

impl Last {
    /// The session of a call that names none. `agent`: the agent's word.
    ///
    /// # Errors
    /// The sessions cannot be listed.
    pub fn session(&self, child: &Child, agent: &str, told: &Told) -> Result<Option<Own>, Outcome> {
        if let Some(last) = self.get() {
            return Ok(Some(last));
        }
        let own = made_by(agent, reading::sessions(child, told)?);
        Ok(own.iter().find(|session| is_open(session)).or_else(|| own.first()).and_then(Own::of))
    }

    /// The session in which the first command of a server goes on.
    ///
    /// # Errors
    /// The sessions cannot be listed.
    pub fn pending(&self, child: &Child, agent: &str, told: &Told) -> Result<Option<Own>, Outcome> {
        let own = made_by(agent, reading::sessions(child, told)?);
        Ok(own.iter().find(|session| is_open(session)).and_then(Own::of))
    }

    pub fn get(&self) -> Option<Own> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set(&self, session: Option<Own>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = session;
    }
}

/// Those that an agent made, the newest first.
fn made_by(agent: &str, sessions: Vec<Value>) -> Vec<Value> {
    sessions.into_iter().filter(|session| session["by"]["agent"] == agent).collect()
}

/// True if a command can go on in it.
fn is_open(session: &Value) -> bool {
    session["origin"] == "captured" && (session["status"] == "pending" || session["status"] == "running")
}
