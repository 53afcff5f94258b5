//! News of what others did: told to an agent once, before its next command; asked about at a person's commit.

use super::call::Call;
use super::list::shown;
use super::text;
use crate::error::{Error, command};
use crate::session::header::Header;
use crate::session::log::{self, Entry};
use crate::session::opened::Session;
use crate::session::store::Store;
use crate::session::undo::{BROUGHT_BACK, FREED};
use crate::verb::scope::Scope;

/// The most steps that a question names.
const NAMED: usize = 5;

/// Tells an agent, once, what others did to the session in which its command goes on, and to the one that had its name before.
///
/// # Errors
/// The sessions or the log cannot be read.
pub fn tell(call: &Call, store: &Store, session: &Session, is_new: bool) -> Result<(), Error> {
    if store.by.is_none() || call.out.is_quiet() {
        return Ok(());
    }
    let (headers, _) = store.headers()?;
    let header = &session.header;
    let scope = Scope::of(call)?;
    let had_its_name = |other: &&Header| {
        other.id != header.id
            && other.of.is_none()
            && header.name.is_some()
            && other.name == header.name
            && scope.has(store, other)
    };
    let before = headers.iter().rev().find(had_its_name).filter(|_| is_new).map(|other| &other.id);
    let is_meant = |other: &&Header| other.root() == &header.id || before == Some(other.root());
    let mut news = Vec::new();
    for other in headers.iter().filter(is_meant) {
        if let Some(acted) = other.acted.as_ref().filter(|acted| !acted.is_own(store.by.as_ref()))
            && store.is_news(&call.fs, &store.path, &format!("act {}", acted.n))?
        {
            news.push((other, acted.n));
        }
    }
    if news.is_empty() {
        return Ok(());
    }
    let entries = log::read(store)?.entries;
    for (other, n) in news {
        let said = match entries.iter().rev().find(|entry| entry.act == Some(n)) {
            Some(entry) => said(other, entry),
            // What is held has no line.
            None => {
                let (tail, steps) = (other.id.tail(), command(format_args!("steps {}", other.id.tail())));
                format!("others went on in session {}: {steps}", other.name.as_deref().unwrap_or(tail))
            }
        };
        call.out.note(text::filled(&said));
    }
    Ok(())
}

/// An act in words: `session s was discarded by a person: not the tests`.
fn said(header: &Header, entry: &Entry) -> String {
    let tail = header.id.tail();
    let name = header.name.as_deref().unwrap_or(tail);
    let what = match &header.of {
        Some(_) => format!("a part of session {name}, {tail} ({}),", text::count(entry.paths, "path")),
        None => format!("session {name}"),
    };
    let done = match entry.verb.split_once(' ') {
        Some(("rewind", step)) => format!("was rewound to step {step}"),
        Some(("discard", "paths")) => format!("had {} discarded", text::count(entry.paths, "change")),
        _ => match &*entry.verb {
            "commit" => "was committed".into(),
            "rollback" => "was rolled back".into(),
            "redo" => "was committed again".into(),
            "discard" | FREED => "was discarded".into(),
            BROUGHT_BACK => "was brought back".into(),
            verb => format!("had a {verb}"),
        },
    };
    let by = entry.about.by.as_ref().map_or_else(|| "a person".into(), ToString::to_string);
    let reason = entry.purpose.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{what} {done} by {by}{reason}")
}

/// Notes that a person at a terminal has looked at what a session holds. A hint: an error is none.
pub fn looked(call: &Call, store: &Store, session: &Session) {
    if store.by.is_none() && call.out.is_for_people() && !session.is_so_far() {
        drop(session.note_seen(&call.fs));
    }
}

/// Asks a person at a terminal before steps are committed that agents made since the person looked.
///
/// # Errors
/// The answer is no; the steps cannot be read.
pub fn ask(call: &Call, store: &Store, session: &Session) -> Result<(), Error> {
    if call.yes || !call.can_ask || store.by.is_some() {
        return Ok(());
    }
    let unseen = session.unseen()?;
    if unseen.is_empty() {
        return Ok(());
    }
    let tail = session.id().tail();
    call.out.say("recant: since you looked:");
    for step in unseen.iter().rev().take(NAMED).rev() {
        call.out.say(text::within(&format!("  step {}, by {}: {}", step.step, step.by, shown(&step.command)), 79));
    }
    if unseen.len() > NAMED {
        call.out.say(text::more(unseen.len() - NAMED, &command(format_args!("steps {tail}"))));
    }
    let steps = text::count(unseen.len() as u64, "step");
    call.confirm(&format!("Commit session {tail}, with {steps} that you have not looked at?"))
}
