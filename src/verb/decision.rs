//! `await`: waits until a person decides about what a session holds.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::desk::Desk;
use super::error::undecided;
use super::resolve::acts_of_others::places;
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{ActingAgent, Entry, Header, Id, LastAct, Purpose, Status, Store, log, unknown};

/// The time between two looks at the log, which grows with each act.
const LOOKS: Duration = Duration::from_millis(200);

/// The acts that decided about a session, as JSON has them: docs/json.md.
#[derive(Serialize)]
pub struct Decided {
    pub session: Id,
    pub status: Status,
    /// The number of changes that it still holds.
    pub held: u64,
    pub acts: Vec<Act>,
}

/// An act on the session, or on a part of it.
#[derive(Serialize)]
pub struct Act {
    /// The part, or the session itself.
    pub session: Id,
    pub act: String,
    pub paths: u64,
    /// The places of what it decided about, of a part.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<AbsPath>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<ActingAgent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip)]
    pub of: Header,
    #[serde(skip)]
    pub entry: Entry,
}

/// Waits until somebody other than the calling agent has decided about the session that `key` means, or about a part of it: at once, if the
/// agent has not heard of such an act yet. A person who calls waits for any act from now on. Where nothing is held any more, the last act is
/// told at once, whose ever it was.
///
/// # Errors
/// No session is meant; `longest` is over (6); the session is gone; the store cannot be read.
pub fn decision(desk: &Desk, key: Option<&str>, longest: Option<Duration>) -> Result<Decided, Error> {
    let (store, session) = desk.looked_at(key)?;
    let root = session.header.root().clone();
    drop(session);
    let reviewed = store.session(&root)?;
    let first = family(store, &root)?;
    // What comes later is news to this call, whoever hears of it first.
    let newest = newest(&first);
    if let (Some(program), true) = (&desk.config.notify.value, store.by.is_some()) {
        let held = first.iter().filter(|header| header.id == root && header.status() == Status::Pending);
        held.for_each(|header| desk.caller.notify(program, header));
    }
    let (begun, mut length, mut acts) = (Instant::now(), None, Vec::new());
    loop {
        let now = log::length(store)?;
        let is_over = longest.is_some_and(|longest| begun.elapsed() >= longest);
        // Before the look at the sessions, so that no act falls between.
        let has_grown = length.replace(now) != Some(now);
        if has_grown || !acts.is_empty() {
            let family = family(store, &root)?;
            let header = family.iter().find(|header| header.id == root).ok_or_else(|| unknown(root.as_str(), &[]))?;
            if has_grown {
                acts = to_tell(store, (header, &family), newest)?;
            }
            // A person who decides in parts may not have come to an end.
            let goes_on = || held(header) > 0 && reviewed.is_reviewed();
            if !acts.is_empty() && (is_over || !goes_on()) {
                return decided(desk, store, (header, &family), acts);
            }
        }
        if is_over {
            return Err(undecided(&root));
        }
        std::thread::sleep(LOOKS);
    }
}

/// The session and its parts.
fn family(store: &Store, root: &Id) -> Result<Vec<Header>, Error> {
    let (mut headers, _) = store.headers()?;
    headers.retain(|header| header.root() == root);
    Ok(headers)
}

/// The number of the newest act on them; 0 if there is none.
fn newest(family: &[Header]) -> u64 {
    family.iter().filter_map(|header| Some(header.acted.as_ref()?.n)).max().unwrap_or(0)
}

/// The acts to tell, in their order: those that the caller waits for, once one of them decides; else the last, if nothing is held any more.
fn to_tell(store: &Store, (root, family): (&Header, &[Header]), before: u64) -> Result<Vec<Entry>, Error> {
    let (mut acts, mut last, mut has_more) = (Vec::new(), None, true);
    for entry in log::read(store)?.entries.into_iter().rev() {
        let Some(n) = entry.act.filter(|_| family.iter().any(|header| header.id == entry.session)) else { continue };
        last = last.or_else(|| Some(entry.clone()));
        let is_own = is_own(store, &entry, n);
        let is_news = match store.by {
            Some(_) => !is_own && (n > before || !store.is_told(n)?),
            None => n > before,
        };
        // What came before an act that it has heard of is no news.
        has_more &= is_news || is_own;
        if !has_more {
            break;
        }
        if is_news {
            acts.push(entry);
        }
    }
    acts.reverse();
    // A report is a second line of its act.
    acts.dedup_by_key(|entry| entry.act);
    if acts.iter().any(Entry::decides) {
        return Ok(acts);
    }
    // A newer act has its line yet to come.
    let is_last = |entry: &Entry| entry.act == Some(newest(family));
    Ok(last.filter(|entry| is_last(entry) && held(root) == 0 && !root.uncollected).into_iter().collect())
}

/// True if the caller did it.
fn is_own(store: &Store, entry: &Entry, n: u64) -> bool {
    let uid = entry.about.uid.unwrap_or_default();
    LastAct { n, uid, by: entry.about.by.clone(), purpose: Purpose::default() }.is_own(store.by.as_ref())
}

/// The number of changes that a session still holds.
fn held(header: &Header) -> u64 {
    if header.status() == Status::Pending { header.counts.changes } else { 0 }
}

fn decided(desk: &Desk, store: &Store, (root, family): (&Header, &[Header]), entries: Vec<Entry>) -> Result<Decided, Error> {
    let mut acts = Vec::new();
    for entry in entries {
        if let (Some(n), true) = (entry.act, store.by.is_some()) {
            // It counts as told from now on.
            store.is_news(&desk.fs, n)?;
        }
        let of = family.iter().find(|header| header.id == entry.session);
        acts.extend(of.map(|of| act(store, of, entry)));
    }
    Ok(Decided { session: root.id.clone(), status: root.status(), held: held(root), acts })
}

fn act(store: &Store, header: &Header, entry: Entry) -> Act {
    Act {
        session: header.id.clone(),
        act: entry.verb.clone(),
        paths: entry.paths,
        at: places(store, header, Some(&entry)),
        by: entry.about.by.clone(),
        reason: entry.purpose.reason.clone(),
        of: header.clone(),
        entry,
    }
}
