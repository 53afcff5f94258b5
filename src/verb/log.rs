//! `log`: what was done, the newest first.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};

use super::desk::Desk;
use super::resolve::scope::Scope;
use super::resolve::wanted_act::Want;
use crate::error::Error;
use crate::fs::{AbsPath, Time};
use crate::session::{About, ActingAgent, Acts, Entry, Id, Log, Purpose, Restore, Store, log};
use crate::tree::time;

/// The lines of the log that are asked for.
pub struct Asked<'a> {
    pub of: Of<'a>,
    pub filter: Filter<'a>,
    /// The most that are returned: the newest.
    pub most: usize,
    /// True without the commits of which another line tells more: what they were for.
    pub once: bool,
}

/// The sessions of the lines.
pub enum Of<'a> {
    /// This one: a session that was pruned is still in the log, by its whole id or the last part of it.
    Session(&'a str),
    /// Those of this project; without a working directory, all.
    Project,
    All,
}

/// Conditions for what was done.
pub struct Filter<'a> {
    /// Not before: seconds since 1970.
    pub since: Option<i64>,
    /// By this agent, or with its sessions.
    pub agent: Option<&'a str>,
}

impl Filter<'_> {
    /// True if what these did then is asked for.
    pub fn has(&self, time: Time, by: &[Option<&ActingAgent>]) -> bool {
        self.since.is_none_or(|since| time.s >= since)
            && self.agent.is_none_or(|agent| by.iter().flatten().any(|by| by.agent == agent))
    }
}

/// Lines of the log, as JSON has them: docs/json.md.
#[derive(Default, Serialize)]
pub struct Logged {
    pub entries: Vec<Row>,
    /// The log without its entries.
    #[serde(rename = "unreadable", serialize_with = "unreadable")]
    pub log: Log,
}

fn unreadable<S: Serializer>(log: &Log, serializer: S) -> Result<S::Ok, S::Error> {
    log.torn.len().serialize(serializer)
}

/// A line of the log.
#[derive(Serialize)]
pub struct Row {
    #[serde(flatten, with = "Printed")]
    pub entry: Entry,
    /// True if it tells of an act that was taken back.
    #[serde(skip)]
    pub is_undone: bool,
}

/// An entry as JSON has it.
#[derive(Serialize)]
#[serde(remote = "Entry")]
struct Printed {
    #[serde(with = "time")]
    time: Time,
    verb: String,
    session: Id,
    generation: u64,
    result: String,
    paths: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    at: Vec<AbsPath>,
    #[serde(skip_serializing_if = "Option::is_none")]
    act: Option<u64>,
    #[serde(flatten)]
    purpose: Purpose,
    #[serde(flatten)]
    about: About,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "restore")]
    restore: Option<Restore>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

fn restore<S: Serializer>(restore: &Option<Restore>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Printed<'a> {
        directory: &'a AbsPath,
        snapshot: u64,
        only: &'a [AbsPath],
    }
    let Some(Restore { directory, snapshot, only }) = restore else { return serializer.serialize_none() };
    Printed { directory, snapshot: *snapshot, only }.serialize(serializer)
}

/// Reads lines of the log, the newest first.
///
/// # Errors
/// It cannot be read; no session is called so, and none was.
pub fn log(desk: &Desk, asked: &Asked<'_>) -> Result<Logged, Error> {
    let store = if let Of::Session(key) = asked.of { Some(desk.store_with(key)?) } else { desk.store()? };
    let Some(store) = store else { return Ok(Logged::default()) };
    let mut log = log::read(store)?;
    let (id, scope) = match asked.of {
        Of::Session(key) => (Some(find(desk, store, &log.entries, key)?), Scope::everywhere()),
        Of::Project => (None, Scope::of(desk).unwrap_or_else(|_| Scope::everywhere())),
        Of::All => (None, Scope::everywhere()),
    };
    let (undone, twice) = (Undone::of(&log.entries), if asked.once { told_by_another(&log.entries) } else { BTreeSet::new() });
    let is_asked = |entry: &Entry| {
        id.as_ref().is_none_or(|id| entry.session == *id)
            && asked.filter.has(entry.time, &[entry.about.by.as_ref(), entry.about.made_by.as_ref()])
            && is_in(&scope, store, entry)
            && !(entry.verb == "commit" && entry.notes.is_empty() && twice.contains(&sealed(entry)))
    };
    let entries = std::mem::take(&mut log.entries).into_iter().rev().filter(is_asked).take(asked.most);
    Ok(Logged { entries: entries.map(|entry| Row { is_undone: undone.has(&entry), entry }).collect(), log })
}

/// Reads the log and checks each line: which it cannot read, and which do not fit what stands before them.
///
/// # Errors
/// It cannot be read.
pub fn verify(desk: &Desk) -> Result<Log, Error> {
    desk.store()?.map_or_else(|| Ok(Log::default()), log::read)
}

/// True if a session is called by the word. Costs less than to look one up where there is none: that tells which are called alike.
///
/// # Errors
/// The sessions cannot be listed.
pub fn is_session(store: &Store, word: &str) -> Result<bool, Error> {
    let (headers, broken) = store.headers()?;
    let is_id = |id: &str| id == word || id.rsplit('-').next() == Some(word);
    Ok(headers.iter().any(|header| is_id(header.id.as_str()) || header.name.as_deref() == Some(word))
        || broken.iter().any(|broken| is_id(&broken.name)))
}

fn find(desk: &Desk, store: &Store, entries: &[Entry], key: &str) -> Result<Id, Error> {
    let is_called = |id: &&Id| id.as_str() == key || id.tail() == key;
    let logged = || entries.iter().rev().map(|entry| &entry.session).find(is_called).cloned();
    desk.find(store, Some(key), Want::Look).or_else(|problem| logged().ok_or(problem))
}

/// True if an entry is of a project, or of a session that is.
fn is_in(scope: &Scope, store: &Store, entry: &Entry) -> bool {
    let has_session = || store.session(&entry.session).is_ok_and(|session| scope.has(store, &session.header));
    match &entry.about.cwd {
        Some(dir) => scope.has_directory(dir),
        // A session whose directory was gone.
        None => scope.project.is_none() || has_session(),
    }
}

type Sealed = (Id, u64);

fn sealed(entry: &Entry) -> Sealed {
    (entry.session.clone(), entry.generation)
}

/// The commits that have another line, which says what for: of turns that were undone, snapshots that were restored, settings that were edited.
fn told_by_another(entries: &[Entry]) -> BTreeSet<Sealed> {
    const VERBS: [&str; 4] = ["agent undo ", "agent install ", "agent uninstall ", "snapshot restore "];
    let says_more = |entry: &&Entry| VERBS.iter().any(|verb| entry.verb.starts_with(verb));
    entries.iter().filter(says_more).map(sealed).collect()
}

/// Acts that were taken back: by their numbers, and by what they sealed, as a restore has two lines.
struct Undone {
    acts: BTreeSet<u64>,
    sealed: BTreeSet<Sealed>,
}

impl Undone {
    fn of(entries: &[Entry]) -> Self {
        let acts = Acts::of(entries.iter(), &[]);
        let undone = || acts.all.iter().filter(|deed| !deed.acted.is_undo() && !acts.stands(deed));
        let sealed = undone().filter(|deed| deed.generation > 0).map(|deed| (deed.session.clone(), deed.generation));
        Self { acts: undone().map(|deed| deed.n).collect(), sealed: sealed.collect() }
    }

    fn has(&self, entry: &Entry) -> bool {
        entry.act.map_or_else(|| self.sealed.contains(&sealed(entry)), |n| self.acts.contains(&n))
    }
}
