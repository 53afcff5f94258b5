//! The decisions of the client's person, outside of this server: the command for them, and words while they are waited for.

use crate::error::command;
use crate::face::mcp::carrier::Outcome;
use crate::remedy::Command;
use crate::session::Id;

/// The words for the client's person while the agent waits for a decision. Clients show them beside the call.
pub fn person(session: Option<&str>) -> String {
    format!("waits for a person: {}", review(session))
}

/// The command by which the person looks at a session, and decides.
pub fn review(session: Option<&str>) -> Command {
    let known = session.and_then(Id::parse);
    command(format_args!("review {}", known.as_ref().map(Id::tail).or(session).unwrap_or("last")))
}

/// The refusal, inside the run of a session, of what is done to that session outside.
pub fn decided_outside(id: &str, why: &str) -> Outcome {
    let outside = format!("a person does that outside: {}", review(Some(id)));
    Outcome::refused("refused", format!("inside the run of session {id}, {why}")).with("remedy", outside)
}
