//! Recovery: what a journal says of an operation that was cut off is undone or settled, by the journal alone.

use super::Error;
use super::journal::{Journal, names};
use super::reach::Reach;
use super::settle::{When, settle};
use super::undo::{self, Left, undo};
use crate::error::At;
use crate::fs::Fs;
use crate::fs::path::AbsPath;
use crate::fs::roots::Roots;
use crate::session::id::Id;
use crate::session::store::{Session, Store};
use crate::tree::look;

/// What recovery did with one session's journal, or would do.
#[derive(Debug)]
pub struct Recovered {
    /// Whose journal.
    pub id: Id,
    /// commit, rollback or redo; none where only preparations were found.
    pub verb: Option<&'static str>,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of an interrupted operation.
#[derive(Debug)]
pub enum Outcome {
    /// Nothing had been applied; what was made ready is gone.
    Cleaned,
    /// All was taken back: the tree is as before the operation.
    Undone,
    /// It had been sealed: it is done.
    Settled,
    /// Taken back but for these paths, which somebody else has changed; the journal of them stays.
    Left(Vec<Left>),
    /// It cannot be recovered now.
    Failed(Error),
}

/// What is found, before anything is done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Preparations only.
    Draft,
    /// A journal whose operation was not sealed.
    ToUndo,
    /// A journal whose operation was sealed.
    ToSettle,
}

/// Recovers every journal of the store. The caller holds the store's lock. A session that cannot be recovered does not
/// keep the others from it.
pub fn all(fs: &Fs, store: &Store) -> Result<Vec<Recovered>, Error> {
    let mut done = Vec::new();
    for id in interrupted(store)? {
        done.push(one(fs, store, &id));
    }
    store.sweep(fs)?;
    Ok(done)
}

/// The ids of all interrupted operations: journals and what comes before one.
pub fn interrupted(store: &Store) -> Result<Vec<Id>, Error> {
    let found = store.journals().names().at("list the journals", store.journals().path().display())?;
    let id = |name: &Vec<u8>| Id::parse(std::str::from_utf8(name.get(..20)?).ok()?);
    let mut ids: Vec<Id> = found.iter().filter_map(id).collect();
    ids.sort();
    ids.dedup();
    Ok(ids)
}

/// What recovery would do about a session; `None` where nothing was interrupted. Reads only.
pub fn finding(store: &Store, id: &Id) -> Result<Option<Finding>, Error> {
    let Some(journal) = Journal::read(store, id)? else {
        let names = names(id);
        let there = |name: &[u8]| store.journals().at(name).stat();
        let draft = there(&names.draft).and_then(|draft| Ok(draft.or(there(&names.new)?)));
        return Ok(draft.at("look at", store.journals().path().display())?.map(|_| Finding::Draft));
    };
    let session = store.session(id)?;
    Ok(Some(if session.header.generation == journal.head.generation { Finding::ToUndo } else { Finding::ToSettle }))
}

/// Recovers one session's journal.
pub fn one(fs: &Fs, store: &Store, id: &Id) -> Recovered {
    let mut verb = None;
    let outcome = recover(fs, store, id, &mut verb).unwrap_or_else(Outcome::Failed);
    Recovered { id: id.clone(), verb, outcome }
}

fn recover(fs: &Fs, store: &Store, id: &Id, verb: &mut Option<&'static str>) -> Result<Outcome, Error> {
    let Some(journal) = Journal::read(store, id)? else {
        let session = match store.session(id) {
            Ok(session) => Some(session),
            Err(crate::session::Error::Unknown { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        undo::clean_draft(fs, store, session.as_ref(), id)?;
        return Ok(Outcome::Cleaned);
    };
    *verb = Some(journal.head.verb.word());
    let session = store.session(id)?;
    check_roots(store, &journal)?;
    let generation = session.header.generation;
    if generation == journal.head.generation {
        let left = undo(fs, store, &session, &journal).map_err(|error| stuck(store, id, &error))?;
        return Ok(if left.is_empty() { Outcome::Undone } else { Outcome::Left(left) });
    }
    if generation != journal.head.generation + 1 {
        let why = format!("it is of generation {}, the session of {generation}", journal.head.generation);
        return Err(Error::Journal { path: store.journals().at(id.as_str().as_bytes()).to_string(), why });
    }
    // The rename of the header may not have been synced: written anew it lasts (I19).
    seal_again(fs, &session).map_err(|error| stuck(store, id, &error))?;
    let mut reach = Reach::new(&session.dir)?;
    settle(fs, store, &session, &mut reach, &journal, When::Recovering).map_err(|error| stuck(store, id, &error))?;
    Ok(Outcome::Settled)
}

fn seal_again(fs: &Fs, session: &Session) -> Result<(), Error> {
    let at = session.dir.at(b"session.json");
    Ok(fs.replace(at, &crate::session::store::header_bytes(&session.header)).at("write", at)?)
}

fn stuck(store: &Store, id: &Id, error: &Error) -> Error {
    let path = store.journals().at(id.as_str().as_bytes()).to_string();
    Error::Stuck { path, why: error.to_string(), state: "the journal stays; nothing more is touched".into() }
}

/// While the root folder of a mount is the recorded object, it is the file system that the journal speaks of; if it is
/// another one, that is not there.
fn check_roots(store: &Store, journal: &Journal) -> Result<(), Error> {
    let mut roots = Roots::read().at("read the mounts from", "/proc/self/mountinfo")?;
    for record in &journal.head.roots {
        let not_there = |why: &str| Error::Stuck {
            path: record.point.to_string(),
            why: format!(
                "the file system ({}) that an interrupted {} of session {} worked on is not there: {why}",
                record.fs_type,
                journal.head.verb.word(),
                journal.head.session
            ),
            state: format!("its journal stays in {}; nothing more is touched", store.path),
        };
        let root = roots.root_of(&record.point).map_err(|error| not_there(&crate::error::reason(&error)))?;
        let stat = root.dir.stat().at("look at", &record.point)?;
        if root.mount.point != record.point || look::identity(&stat) != record.identity {
            return Err(not_there("another one is mounted, or none"));
        }
    }
    Ok(())
}

/// Whether an interrupted operation of another session holds a path at, above or under one of `paths`, which are in path order.
pub fn holds_any(store: &Store, own: &Id, paths: &[&AbsPath]) -> Result<Option<(Id, AbsPath)>, Error> {
    for id in store.journaled()? {
        if id == *own {
            continue;
        }
        // A journal that cannot be read holds nothing that could be told.
        let Ok(Some(journal)) = Journal::read(store, &id) else { continue };
        for item in &journal.items {
            let at = paths.partition_point(|path| **path < item.path);
            let under = paths.get(at).filter(|path| path.is_under(&item.path));
            let mut above = std::iter::successors(item.path.parent(), AbsPath::parent);
            let above = || above.find_map(|above| paths.binary_search(&&above).ok()).map(|i| &paths[i]);
            if let Some(path) = under.or_else(above) {
                return Ok(Some((id, (*path).clone())));
            }
        }
    }
    Ok(None)
}
