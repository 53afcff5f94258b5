//! The values of a prune: what it took, or would take. JSON: docs/json.md.

use serde::{Serialize, Serializer};

use super::kind::Kind;
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Broken, Header, Id};
use crate::snapshot::Series;

/// A prune: of one kind, or of all by the settings.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Pruned {
    Sessions(Sessions),
    Snapshots(Snapshots),
    All(All),
}

/// Sessions, or what they lost.
#[derive(Debug, Default, Serialize)]
pub struct Sessions {
    pub dry_run: bool,
    pub pruned: Vec<Id>,
    pub skipped: Vec<Skipped>,
    /// The contents of dropped sessions whose header cannot be read.
    pub lost: Vec<Lost>,
    pub bytes: u64,
    #[serde(skip)]
    pub kind: Kind,
    /// The number of sessions that fit the conditions and stay, as they are committed.
    #[serde(skip)]
    pub committed: u64,
    /// The sessions that cannot be read, if none is named.
    #[serde(skip)]
    pub damaged: Vec<Broken>,
    /// The error that stopped it after these.
    #[serde(skip)]
    pub stopped: Option<Error>,
}

/// A session that was to go, but stays.
#[derive(Debug, Serialize)]
pub struct Skipped {
    pub id: Id,
    pub why: &'static str,
}

/// Something that a damaged session holds.
#[derive(Debug, Serialize)]
pub struct Lost {
    pub session: Id,
    /// A path on the tree, or a directory of the store.
    pub path: AbsPath,
    pub what: Contents,
    /// The number of objects; 1, but for a directory of the store.
    pub count: u64,
}

/// The kind of what is lost with a damaged session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Contents {
    /// A change that it held, committed or not.
    Change,
    /// An object that a commit took off the tree.
    Original,
    /// Objects whose paths are unknown.
    Unnamed,
}

/// Snapshots of a directory.
#[derive(Debug, Serialize)]
pub struct Snapshots {
    pub directory: AbsPath,
    pub dry_run: bool,
    pub pruned: Vec<u64>,
    pub bytes: u64,
    /// The reason why no content was freed.
    pub kept: Option<String>,
}

/// All that goes by the settings.
#[derive(Default, Serialize)]
pub struct All {
    pub dry_run: bool,
    pub sessions: Part,
    pub checkpoints: Part,
    pub snapshots: Vec<OfDirectory>,
    pub skipped: Vec<Staying>,
    pub bytes: u64,
    /// True if the settings let go of no session.
    #[serde(skip)]
    pub keeps_sessions: bool,
    /// The error that stopped it after these.
    #[serde(skip)]
    pub stopped: Option<Error>,
}

/// Sessions, or checkpoints of sessions.
#[derive(Debug, Default, Serialize)]
pub struct Part {
    #[serde(rename = "pruned", serialize_with = "ids")]
    pub headers: Vec<Header>,
    pub bytes: u64,
}

fn ids<S: Serializer>(headers: &[Header], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(headers.iter().map(|header| &header.id))
}

/// The snapshots of a directory among those of all.
#[derive(Serialize)]
pub struct OfDirectory {
    pub directory: AbsPath,
    pub pruned: Vec<u64>,
    pub bytes: u64,
    #[serde(skip)]
    pub(super) series: Series,
}

/// A session, or a directory's snapshots, that was to go, but stays.
#[derive(Debug, Serialize)]
pub struct Staying {
    pub what: String,
    pub why: String,
}

impl Staying {
    pub(super) fn of(series: &Series, why: &Error) -> Self {
        Self { what: series.directory.to_string(), why: why.message().to_owned() }
    }
}

impl All {
    /// The numbers of sessions, checkpoints and snapshots.
    pub fn counts(&self) -> [u64; 3] {
        let snapshots = self.snapshots.iter().map(|of| of.pruned.len() as u64).sum();
        [self.sessions.headers.len() as u64, self.checkpoints.headers.len() as u64, snapshots]
    }

    /// True if nothing goes.
    pub fn is_empty(&self) -> bool {
        self.counts() == [0; 3]
    }

    pub(super) fn add_up(&mut self) {
        self.bytes = self.sessions.bytes + self.checkpoints.bytes + self.snapshots.iter().map(|of| of.bytes).sum::<u64>();
    }
}
