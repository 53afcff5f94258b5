//! Whether the session of a call is the one that another machine means: it goes by its id there, which alone does not tell that both are the
//! same by now.

use super::args::What;
use super::problem::Problem;
use crate::moving;
use crate::session::store::Session;

/// Ends it where this session would put something else on the tree than the one that is meant.
pub fn refuse_another(what: &What, session: &Session) -> Result<(), Problem> {
    let Some(meant) = &what.mark else { return Ok(()) };
    // Of which content was never read, and is not held any more, nothing comes onto the tree either.
    match moving::mark(session)? {
        Some(mark) if mark.to_string() != *meant => {}
        _ => return Ok(()),
    }
    let id = session.id();
    let status = session.header.status().word().replace('_', " ");
    let first = if session.header.counts.inside > 0 { format!("recant rollback {id} and ") } else { String::new() };
    Err(Problem::refused(format!("this machine has another state of session {id} than the one that is meant ({status} here)"))
        .remedy(format!("{first}recant session prune {id} here makes room for it; recant diff {id} shows what is here")))
}
