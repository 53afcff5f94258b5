//! The session of calls that name none: that of this server's last `hold_run`; after a restart the newest that this agent made here.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::child::Child;
use super::reading;
use crate::face::mcp::carrier::{Outcome, Told};

/// The word by which the last `hold_run` named its session.
#[derive(Default)]
pub struct Last(Mutex<Option<String>>);

impl Last {
    /// The session of a call that names none. `agent`: the agent's word.
    ///
    /// # Errors
    /// The sessions cannot be listed.
    pub fn session(&self, child: &Child, agent: &str, told: &Told) -> Result<Option<String>, Outcome> {
        if let Some(last) = self.get() {
            return Ok(Some(last));
        }
        let own = made_by(agent, reading::sessions(child, told)?);
        Ok(own.iter().find(|session| is_open(session)).or_else(|| own.first()).and_then(word))
    }

    /// The session in which the first command of a server goes on.
    ///
    /// # Errors
    /// The sessions cannot be listed.
    pub fn pending(&self, child: &Child, agent: &str, told: &Told) -> Result<Option<String>, Outcome> {
        let own = made_by(agent, reading::sessions(child, told)?);
        Ok(own.iter().find(|session| is_open(session)).and_then(word))
    }

    pub fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set(&self, session: Option<String>) {
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

/// The word for a session: its name, which means a new one once it is committed, or its id.
fn word(session: &Value) -> Option<String> {
    session["name"].as_str().or(session["id"].as_str()).map(str::to_owned)
}
