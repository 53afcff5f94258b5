//! The value of a run.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::engine::LeftPath;
use crate::error::{Error, Kind};
use crate::fs::AbsPath;
use crate::proxy::Refused;
use crate::session::{Ending, Id, Sort, Stopped};
use crate::tree::Danger;
use crate::verb::act::acted::Acted;

/// A command that has run. JSON: docs/json.md.
#[derive(Debug, Serialize)]
pub struct Ran {
    /// `None` if it is gone, as it held nothing.
    pub session: Option<Id>,
    /// The step that the command became; `None` if it changed nothing, and of one on the real tree.
    pub step: Option<u32>,
    #[serde(rename = "result")]
    pub fate: Fate,
    pub ending: Ending,
    /// The way in which it was stopped, if it is a service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    /// The number of changes that the session holds.
    pub changes: u64,
    /// The changes of the command that give rights, or that other programs run or obey.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dangerous: Vec<Dangerous>,
    pub beyond_files: Beyond,
    /// Facts that no change can tell, one line each.
    pub warnings: Vec<String>,
    /// The number of changes in scratch places that were dropped.
    pub dropped: u64,
    /// The bytes that it wrote, if more than it may.
    pub too_much: Option<u64>,
    /// The number of paths that the command itself changed.
    #[serde(skip)]
    pub news: u64,
    /// The number of its changes of each sort.
    #[serde(skip)]
    pub sorts: BTreeMap<Sort, u64>,
    #[serde(skip)]
    pub of: Of,
    /// Of one on the real tree: the paths of which it is not known what the command did there.
    #[serde(skip)]
    pub left: Vec<LeftPath>,
}

/// The session that a command ran in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// It was begun for it.
    New,
    /// It holds what earlier commands did.
    Earlier,
    /// It holds what an agent did.
    Agent,
}

/// The fate of what a command changed.
#[derive(Debug)]
pub enum Fate {
    /// It changed nothing that the session holds.
    Nothing,
    Held,
    /// It is dropped, with its session.
    Dropped,
    /// Its step, if it became one, is set aside, and the session stands on this one.
    SetAside(Option<u32>),
    Committed(Box<Acted>),
    /// It was to be committed, and is held.
    NotCommitted(Error),
    /// It is part of the step of the command that it joined, once that has ended.
    Beside,
    /// It was made on the real tree, and is committed.
    Real,
}

impl Serialize for Fate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Nothing => "nothing",
            Self::Dropped | Self::SetAside(_) => "discarded",
            Self::Committed(_) | Self::Real => "committed",
            Self::NotCommitted(why) if why.kind() == Kind::Conflict => "conflict",
            Self::Beside => "beside",
            Self::Held | Self::NotCommitted(_) => "pending",
        })
    }
}

/// Things that the command could reach, and no session can hold.
#[derive(Debug, Default, Serialize)]
pub struct Beyond {
    /// True if the network and abstract sockets were open to it. Not known is if it used them: to watch that would cost on every file.
    pub network: bool,
    /// The hosts that were open to it, by the proxy of its run, as they were listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Hosts that it asked for in vain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
    /// Places that stayed real: sockets, and what `--pass` and `capture.pass` name.
    pub passed: Vec<Passed>,
    /// Paths that were closed to it, as they hold secrets.
    pub closed: Vec<Closed>,
}

/// A change that a person should see before all others.
#[derive(Debug, Serialize)]
pub struct Dangerous {
    pub path: AbsPath,
    pub why: Danger,
}

/// A path that was closed.
#[derive(Debug, Serialize)]
pub struct Closed {
    pub path: AbsPath,
    /// The secret in it.
    pub holds: String,
}

/// A place that stayed real.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Passed {
    pub path: AbsPath,
    /// True for the history of a shell.
    #[serde(skip)]
    pub is_history: bool,
}
