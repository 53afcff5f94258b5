//! News of what others did: told to an agent once, before its next command; asked about at a person's commit.

use super::scope::Scope;
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Change, Entry, Header, Session, Store, log};
use crate::tree::{Danger, vcs_above};
use crate::verb::desk::Desk;
use crate::verb::fact::{Fact, News};
use crate::verb::parts::together::together;
use crate::verb::question::Question;
use crate::verb::summary;

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
            && store.is_news(&desk.fs, acted.n)?
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
        let at = places(store, session, entry);
        desk.caller.tell(Fact::News(News { session, entry, at: &at }));
    }
    Ok(())
}

/// The places of what an act on a part decided about; none of one on all of a session, or if they cannot be read.
pub fn places(store: &Store, session: &Header, entry: Option<&Entry>) -> Vec<AbsPath> {
    let read = || {
        let part = store.session(&session.id)?.changes()?;
        let rest = store.session(session.root())?.changes()?;
        Ok::<_, Error>(together(part.list.iter().map(|change| &change.path), &rest, session.cwd.as_ref()))
    };
    match entry {
        Some(entry) if !entry.at.is_empty() => entry.at.clone(),
        Some(_) if session.of.is_some() => read().unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// Notes that a person has looked at what a session holds. A hint: an error is none.
pub fn looked(desk: &Desk, store: &Store, session: &Session) {
    if store.by.is_none() && !session.is_so_far() {
        drop(session.note_seen(&desk.fs));
    }
}

/// Asks a person at a terminal before steps are committed that agents made since the person looked, and before what a command of the
/// person's own did to what others run or obey, if that was not looked at.
///
/// # Errors
/// The answer is no; the steps or the changes cannot be read.
pub fn ask(desk: &Desk, store: &Store, session: &Session) -> Result<(), Error> {
    if desk.yes || !desk.can_ask || store.by.is_some() {
        return Ok(());
    }
    if session.is_seen() {
        return Ok(());
    }
    let (id, unseen) = (session.id(), session.unseen()?);
    let summary = || summary::of_session(desk, store, session);
    if !unseen.is_empty() {
        return desk.confirm(Question::CommitUnseen { id, steps: &unseen, summary: &summary()? });
    }
    let project = Scope::everywhere().project_of(store, &session.header);
    let changes = session.changes()?.list;
    let reaching = changes.iter().filter(|change| reaches_out(change, project.as_ref())).count() as u64;
    if reaching == 0 && !changes.iter().any(|change| vcs_above(&change.path).is_some()) {
        return Ok(());
    }
    let summary = summary()?;
    match reaching + summary.losses() {
        0 => Ok(()),
        dangers => desk.confirm(Question::CommitDangerous { id, dangers, summary: &summary }),
    }
}

/// True for a danger that is not to be expected of a command in this project: its own files, but for version control's, are what it is for.
fn reaches_out(change: &Change, project: Option<&AbsPath>) -> bool {
    let is_of_project = || project.is_some_and(|project| change.path.is_under(project)) && vcs_above(&change.path).is_none();
    match change.danger() {
        None => false,
        Some(Danger::GivesRights(_)) => true,
        Some(Danger::Obeyed(_)) => !is_of_project(),
    }
}
