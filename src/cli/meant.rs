//! Whether the session of a call is the one that another machine means: that has looked up its name, knows its id, and what it puts on the
//! tree.

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
    /// What the session goes by here.
    pub fn key(&self) -> &str {
        self.meant.as_deref().unwrap_or(&self.id)
    }
}

/// Ends it where the name that the call gives is another session's here. A start of an id is no name: it counts where it was looked up.
pub fn refuse_namesake(call: &Call, what: &What, verb: Verb) -> Result<(), Problem> {
    let (Some(meant), Some(store)) = (&what.meant, call.store()?) else { return Ok(()) };
    let called = &*what.id;
    // That it is not here, or not alone, is for whoever looks for the one that is meant.
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
    let first = if session.header.counts.inside > 0 {
        format!("{}, then ", command(format_args!("rollback {id}")))
    } else {
        String::new()
    };
    Err(Problem::refused(format!("this machine has another state of session {id} than the one that is meant ({status} here)"))
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

/// Says of a dry run that the session comes with the commit itself, where that is so. `None` where it is here.
pub fn not_here_yet(call: &Call, what: &What, verb: Verb) -> Result<Option<Ended>, Problem> {
    let is_here = |key| Ok::<_, Problem>(call.store()?.is_some_and(|store| store.find(key, |_| true).is_ok()));
    if !what.brought || is_here(what.key())? {
        return Ok(None);
    }
    let (session, out) = (what.key(), &call.out);
    if out.is_text() {
        out.line(format_args!("session {session} is not here: the commit brings it, and tells then what stands against it"));
    } else {
        out.document(&Missing { session, verb: verb.word(), dry_run: true, missing: true });
    }
    Ok(Some(Ended::Done))
}
