//! Checks that the session of a call is the one that another machine means. That machine has looked up its name, and knows its id and
//! its mark.

use serde::Serialize;

use super::args::What;
use super::problem::Problem;
use super::which::Want;
use super::{Call, Ended};
use crate::engine::job::Verb;
use crate::error::{command, recant};
use crate::moving;
use crate::session::opened::Session;

impl What {
    /// The key of the session here.
    pub fn key(&self) -> &str {
        self.meant.as_deref().unwrap_or(&self.id)
    }
}

/// Refuses a name that means another session here. A prefix of an id is no name: it counts where it was looked up.
pub fn refuse_namesake(call: &Call, what: &What, verb: Verb) -> Result<(), Problem> {
    let (Some(meant), Some(store)) = (&what.meant, call.store()?) else { return Ok(()) };
    let called = &*what.id;
    // If it is missing here, or not unique, the later search for the id reports it.
    let want = Want::from(verb);
    let Ok(id) = store.find(called, |header| want.fits(store, header)) else { return Ok(()) };
    let header = store.session(&id)?.header;
    let is_called = id.tail() == called || want.fits(store, &header) && header.name.as_deref() == Some(called);
    if !is_called || id.as_str() == meant {
        return Ok(());
    }
    Err(Problem::refused(format!("{called:?} is session {id} on this machine, and {meant} where it was named"))
        .remedy(format!("name the one that is meant by its id: {meant}, or {id}")))
}

/// Refuses a session that would put something else on the tree than the session that is meant.
pub fn refuse_another(what: &What, session: &Session) -> Result<(), Problem> {
    let Some(meant) = &what.mark else { return Ok(()) };
    // Without a mark nothing comes onto the tree: its content was never read, and is not held any more.
    match moving::mark(session)? {
        Some(mark) if mark.to_string() != *meant => {}
        _ => return Ok(()),
    }
    let id = session.id();
    let status = session.header.status().word().replace('_', " ");
    let first = if session.header.counts.inside > 0 {
        format!("{}, then ", command(format_args!("rollback {id}")))
    } else {
        String::new()
    };
    Err(Problem::refused(format!("this machine has another state of session {id} ({status} here)"))
        .remedy(format!(
            "{first}{recant} session prune {id} makes room there for one that is not committed here; {recant} diff {id} shows what is there",
            recant = recant()
        )))
}

/// `{"schema":2,"session":…,"verb":…,"dry_run":true,"missing":true}`.
#[derive(Serialize)]
struct Missing<'a> {
    session: &'a str,
    verb: &'static str,
    dry_run: bool,
    missing: bool,
}

/// Reports, in a dry run, that the commit itself will bring the session, if so. `None` if the session is here.
pub fn not_here_yet(call: &Call, what: &What, verb: Verb) -> Result<Option<Ended>, Problem> {
    let is_here = |key| Ok::<_, Problem>(call.store()?.is_some_and(|store| store.find(key, |_| true).is_ok()));
    if !what.brought || is_here(what.key())? {
        return Ok(None);
    }
    let (session, out) = (what.key(), &call.out);
    if out.is_text() {
        out.line(format_args!("session {session} is not here: the commit sends it, and reports conflicts then"));
    } else {
        out.document(&Missing { session, verb: verb.word(), dry_run: true, missing: true });
    }
    Ok(Some(Ended::Done))
}
