//! News of what others did: told to an agent once, before its next command; asked about at a person's commit.

use super::scope::Scope;
use crate::error::Error;
use crate::session::{Header, Session, Store, log};
use crate::verb::desk::Desk;
use crate::verb::fact::{Fact, News};
use crate::verb::question::Question;

/// Tells an agent, once, what others did to the session in which its command goes on, and to the one that had its name before.
///
/// # Errors
/// The sessions or the log cannot be read.
pub fn tell(desk: &Desk, store: &Store, session: &Session, is_new: bool) -> Result<(), Error> {
    if store.by.is_none() {
        return Ok(());
    }
    let (headers, _) = store.headers()?;
    let header = &session.header;
    let scope = Scope::of(desk)?;
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
            && store.is_news(&desk.fs, &store.path, &format!("act {}", acted.n))?
        {
            news.push((other, acted.n));
        }
    }
    if news.is_empty() {
        return Ok(());
    }
    let entries = log::read(store)?.entries;
    for (session, n) in news {
        // What is held has no line.
        let entry = entries.iter().rev().find(|entry| entry.act == Some(n));
        desk.caller.tell(Fact::News(News { session, entry }));
    }
    Ok(())
}

/// Notes that a person has looked at what a session holds. A hint: an error is none.
pub fn looked(desk: &Desk, store: &Store, session: &Session) {
    if store.by.is_none() && !session.is_so_far() {
        drop(session.note_seen(&desk.fs));
    }
}

/// Asks a person at a terminal before steps are committed that agents made since the person looked.
///
/// # Errors
/// The answer is no; the steps cannot be read.
pub fn ask(desk: &Desk, store: &Store, session: &Session) -> Result<(), Error> {
    if desk.yes || !desk.can_ask || store.by.is_some() {
        return Ok(());
    }
    let unseen = session.unseen()?;
    if unseen.is_empty() {
        return Ok(());
    }
    desk.confirm(Question::CommitUnseen { id: session.id(), steps: &unseen })
}
