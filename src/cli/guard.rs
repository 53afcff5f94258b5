//! Refuses acts on sessions that are not the caller's to decide: of an agent, by the variables that it sets for its commands, and on a
//! session that waits to be confirmed. An agent may look, hold changes and drop held ones; a person decides what is committed and rolled
//! back. A terminal is no proof of one: some agents give their shell a terminal. A guard rail, not a jail: whoever has a shell can type what
//! a person can.

use super::by;
use super::call::Call;
use super::text;
use crate::config::AgentCommit;
use crate::error::{Error, command};
use crate::session::header::{Header, Origin};
use crate::session::opened::Session;

/// The variable that tells of an agent which may make nothing real. Inside a run nothing is.
pub fn limited(call: &Call) -> Option<&'static str> {
    let (variable, _) = by::variable()?;
    let is_allowed = call.config.agent_commit.value == AgentCommit::Allow || crate::capture::inside::inside().is_some();
    (!is_allowed).then_some(variable)
}

/// The error for an agent, with the command for the person.
pub fn refused(variable: &str, command: &str) -> Error {
    let message = format!("an agent calls ({variable} is set): a person decides what becomes real");
    Error::refused(message).with_remedy(format!("in a terminal of your own: {command}"))
}

/// Refuses that an agent drops a session in which a person made something.
pub fn refuse_a_persons(call: &Call, session: &Session) -> Result<(), Error> {
    let Some(variable) = limited(call) else { return Ok(()) };
    let is_all_by_agents = match &session.header.steps {
        None => session.header.by.is_some(),
        Some(_) => session.steps()?.steps.iter().all(|step| step.by.is_some() || step.chosen),
    };
    if is_all_by_agents {
        return Ok(());
    }
    let (tail, typed) = (session.id().tail(), command(format_args!("discard {}", session.id().tail())));
    let message = format!("an agent calls ({variable} is set): a person made some of session {tail}");
    Err(Error::refused(message).with_remedy(format!("in a terminal of your own: {typed}")))
}

/// Refuses that an agent goes on in a session that a person began, or changes its name or its step.
pub fn refuse_in_a_persons(call: &Call, session: &Session) -> Result<(), Error> {
    let Some(variable) = limited(call) else { return Ok(()) };
    if session.header.maker.is_some() {
        return Ok(());
    }
    let (tail, fork) = (session.id().tail(), command(format_args!("fork {}", session.id().tail())));
    let message = format!("an agent calls ({variable} is set): a person began session {tail}");
    let remedy = match session.header.origin {
        Origin::Captured => format!("{fork} begins one of your own as it is"),
        Origin::Staged => command("session new begins one of your own"),
    };
    Err(Error::refused(message).with_remedy(remedy))
}

/// Refuses what would take away the deadline, or the checkpoint that it needs.
pub fn refuse_waiting(header: &Header, act: &str) -> Result<(), Error> {
    let Some(deadline) = header.waits() else { return Ok(()) };
    let (id, until) = (&header.id, text::time(deadline.due, true));
    let remedy = format!(
        "{} lets it stay, {} takes it back",
        command(format_args!("confirm {id}")),
        command(format_args!("rollback {id}"))
    );
    Err(Error::refused(format!("cannot {act} {id}: it waits to be confirmed until {until}")).with_remedy(remedy))
}
