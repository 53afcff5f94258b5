//! Refuses acts on sessions that are not the caller's to decide: of an agent, by the variables that it sets for its commands, and on a
//! session that waits to be confirmed. An agent may look, hold changes and drop held ones; a person decides what is committed and rolled
//! back. A terminal is no proof of one: some agents give their shell a terminal. A guard rail, not a jail: whoever has a shell can type what
//! a person can.

use crate::error::Error;
use crate::session::{Header, Session};
use crate::settings::AgentCommit;
use crate::verb::desk::Desk;
use crate::verb::error;

/// The variable that tells of an agent which may make nothing real. Inside a run nothing is.
pub fn limited(desk: &Desk) -> Option<&'static str> {
    let variable = desk.caller.variable()?;
    let is_allowed = desk.config.agent_commit.value == AgentCommit::Allow || crate::capture::inside().is_some();
    (!is_allowed).then_some(variable)
}

/// Refuses that an agent drops a session in which a person made something.
pub fn refuse_a_persons(desk: &Desk, session: &Session) -> Result<(), Error> {
    let Some(variable) = limited(desk) else { return Ok(()) };
    let is_all_by_agents = match &session.header.steps {
        None => session.header.by.is_some(),
        Some(_) => session.steps()?.steps.iter().all(|step| step.by.is_some() || step.chosen),
    };
    if is_all_by_agents {
        return Ok(());
    }
    Err(error::a_persons(variable, session.id()))
}

/// Refuses that an agent goes on in a session that a person began, or changes its name or its step.
pub fn refuse_in_a_persons(desk: &Desk, session: &Session) -> Result<(), Error> {
    let Some(variable) = limited(desk) else { return Ok(()) };
    if session.header.maker.is_some() {
        return Ok(());
    }
    Err(error::begun_by_a_person(variable, &session.header))
}

/// Refuses what would take away the deadline, or the checkpoint that it needs.
pub fn refuse_waiting(header: &Header, act: &str) -> Result<(), Error> {
    let Some(deadline) = header.waits() else { return Ok(()) };
    Err(error::waits(header, deadline.due, act))
}
