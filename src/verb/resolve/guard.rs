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
    let is_allowed = || desk.config.agent_commit.value == AgentCommit::Allow && !is_elsewhere(desk);
    (crate::capture::inside().is_none() && !is_allowed()).then_some(variable)
}

/// True if the settings in force are not those of the person whose store it is. In one that knows nobody they are nobody's: an agent can make
/// a store.
fn is_elsewhere(desk: &Desk) -> bool {
    let known = desk.store().ok().flatten().and_then(|store| store.person().ok().flatten());
    known.is_none_or(|known| desk.person().as_ref() != Some(&known))
}

/// Refuses that an agent drops a session in which a person made something.
pub fn refuse_a_persons(desk: &Desk, session: &Session) -> Result<(), Error> {
    let Some(variable) = limited(desk) else { return Ok(()) };
    if is_all_by_agents(session)? { Ok(()) } else { Err(error::a_persons(variable, session.id())) }
}

/// True if no person made something in a session.
///
/// # Errors
/// Its steps cannot be read.
pub fn is_all_by_agents(session: &Session) -> Result<bool, Error> {
    Ok(match &session.header.steps {
        None => session.header.by.is_some(),
        Some(_) => session.steps()?.steps.iter().all(|step| step.command.by.is_some() || step.chosen),
    })
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
