//! `list`: sessions of this project or of all, the newest first. Reads headers, the changes of commands that run and, if a path is given,
//! those of all.

use serde::{Serialize, Serializer};

use super::desk::Desk;
use super::resolve::scope::Scope;
use super::resolve::service_rows::{ServiceRow, services_of};
use super::resolve::standing::Standing;
use super::resolve::standing::cut_off;
use crate::error::Error;
use crate::fs::{AbsPath, Time};
use crate::session::{ActingAgent, Broken, Checkpoint, Failed, Header, Id, NotUndone, Origin, Session, Store};
use crate::tree::time;

/// The sessions that are asked for: by default all of the project of the working directory.
#[derive(Debug, Default)]
pub struct Which {
    /// Those of all projects, not of this one alone. A path asks for all, too.
    pub(crate) all: bool,
    /// Those with one of these words as status; empty for any.
    pub(crate) status: Vec<&'static str>,
    /// Those that changed since: seconds since 1970.
    pub(crate) since: Option<i64>,
    /// Those that change this path, or something below it.
    pub(crate) path: Option<AbsPath>,
    /// The most that are returned: the newest.
    pub(crate) limit: Option<usize>,
}

impl Which {
    /// Those of all projects.
    pub fn all() -> Self {
        Self { all: true, ..Self::default() }
    }
}

/// The sessions that were found, as JSON has them: docs/json.md.
#[derive(Debug, Default, Serialize)]
pub struct Listed {
    /// The project of the sessions; `None` for those of all projects.
    pub(crate) project: Option<AbsPath>,
    pub(crate) sessions: Vec<Row>,
    /// The number that the limit left out.
    pub(crate) more: usize,
    /// The number of sessions of other projects that fit.
    pub(crate) elsewhere: usize,
    /// The sessions that cannot be read.
    pub(crate) damaged: Vec<Broken>,
    /// The number of sessions in the store, whatever was asked for.
    #[serde(skip)]
    pub(crate) in_store: usize,
}

/// A session of a listing.
#[derive(Debug)]
pub struct Row {
    pub(crate) header: Header,
    pub(crate) standing: Standing,
    /// Its project, in a listing of all projects.
    pub(crate) project: Option<AbsPath>,
    /// The services that run in it.
    pub(crate) services: Vec<ServiceRow>,
}

impl Listed {
    /// The sessions, the newest first.
    pub fn sessions(&self) -> &[Row] {
        &self.sessions
    }
}

impl Row {
    /// The id, `YYYYMMDD-HHMMSS-xxxx`, by local time.
    pub fn id(&self) -> &str {
        self.header.id.as_str()
    }

    /// The name that it was given, if any.
    pub fn name(&self) -> Option<&str> {
        self.header.name.as_deref()
    }

    /// The status: `running`, `pending`, `committed`, `partly_committed`, `rolled_back` or `discarded`.
    pub fn status(&self) -> &'static str {
        self.standing.word
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Told<'a> {
            #[serde(flatten)]
            session: SessionRow<'a>,
            #[serde(skip_serializing_if = "<[ServiceRow]>::is_empty")]
            services: &'a [ServiceRow],
        }
        Told { session: SessionRow::new(&self.header, self.standing), services: &self.services }.serialize(serializer)
    }
}

/// A session as a listing shows it.
#[derive(Debug, Serialize)]
pub struct SessionRow<'a> {
    id: &'a Id,
    name: Option<&'a str>,
    status: &'static str,
    imported: bool,
    /// Its run has ended and waits to be collected.
    ended: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<Failed>,
    /// Its content may not have reached the disk.
    unsynced: bool,
    interrupted: bool,
    /// The paths where an interrupted operation could not be taken back.
    left: &'a [NotUndone],
    origin: Origin,
    #[serde(with = "time")]
    created: Time,
    #[serde(with = "time")]
    changed: Time,
    #[serde(with = "time::option")]
    discarded: Option<Time>,
    command: Option<&'a str>,
    /// The agent that had the command run, or began the session.
    by: Option<&'a ActingAgent>,
    changes: u64,
    #[serde(rename = "in")]
    inside: u64,
    ever_in: u64,
    generation: u64,
    held_bytes: u64,
    checkpoint: Checkpoint,
    checkpoint_bytes: u64,
    displaced_bytes: u64,
}

impl<'a> SessionRow<'a> {
    /// Makes the row of a header and its standing.
    pub fn new(header: &'a Header, standing: Standing) -> Self {
        Self {
            id: &header.id,
            name: header.name.as_deref(),
            status: standing.word,
            imported: standing.imported,
            ended: standing.ended,
            failed: standing.failed,
            unsynced: standing.unsynced,
            interrupted: standing.interrupted,
            left: &header.left,
            origin: header.origin,
            created: header.created,
            changed: header.changed,
            discarded: header.discarded,
            command: header.command.as_deref(),
            by: header.by.as_ref(),
            changes: header.counts.changes,
            inside: header.counts.inside,
            ever_in: header.counts.ever_in,
            generation: header.generation,
            held_bytes: header.sizes.held,
            checkpoint: header.checkpoint,
            checkpoint_bytes: header.sizes.checkpoint,
            displaced_bytes: header.sizes.displaced,
        }
    }
}

/// Finds sessions, the newest first.
///
/// # Errors
/// The store cannot be read.
pub fn list(desk: &Desk, which: &Which) -> Result<Listed, Error> {
    // Without a working directory the project is unknown: nothing is left out.
    let is_everywhere = which.all || which.path.is_some();
    let scope = if is_everywhere { None } else { Scope::of(desk).ok() }.unwrap_or_else(Scope::everywhere);
    let mut found = match desk.store()? {
        None => Listed::default(),
        Some(store) => find(desk, store, which, &scope)?,
    };
    found.more = which.limit.map_or(0, |limit| found.sessions.len().saturating_sub(limit));
    found.sessions.truncate(found.sessions.len() - found.more);
    Ok(Listed { project: scope.project, ..found })
}

fn find(desk: &Desk, store: &Store, which: &Which, scope: &Scope) -> Result<Listed, Error> {
    let (headers, broken) = store.headers()?;
    let journaled = cut_off(store, store.journaled()?);
    let mut found = Listed { in_store: headers.len(), damaged: broken, ..Listed::default() };
    for header in headers.into_iter().rev() {
        // What runs is as new as its command.
        if which.since.is_some_and(|since| header.changed.s < since) && !header.uncollected {
            continue;
        }
        let standing = match Standing::of(store, &header, &journaled) {
            Ok(standing) => standing,
            Err(problem) => {
                found.damaged.push(Broken { name: header.id.to_string(), why: problem.message().to_owned() });
                continue;
            }
        };
        if !which.status.is_empty() && !which.status.contains(&standing.word) {
            continue;
        }
        let so_far = desk.listed_so_far(store, &header);
        let changed = so_far.as_ref().map_or(header.changed, |session| session.header.changed);
        if which.since.is_some_and(|since| changed.s < since) {
            continue;
        }
        if let Some(path) = &which.path {
            let opened = so_far.as_ref().map_or_else(|| store.session(&header.id)?.changes(), Session::changes);
            match opened {
                Ok(changes) if changes.under(path).is_empty() => continue,
                Ok(_) => {}
                Err(error) => {
                    found.damaged.push(Broken { name: header.id.to_string(), why: error.to_string() });
                    continue;
                }
            }
        }
        // A session of an unknown directory may be of this project.
        if scope.tells(store, &header) == Some(false) {
            found.elsewhere += 1;
            continue;
        }
        let project = if scope.project.is_none() { scope.project_of(store, &header) } else { None };
        let services = so_far.as_ref().map(|_| services_of(store, &header.id)).unwrap_or_default();
        let header = so_far.map_or(header, |session| session.header);
        found.sessions.push(Row { header, standing, project, services });
    }
    Ok(found)
}
