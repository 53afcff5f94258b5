//! The lines of a turn's file: a fact each, in the order in which they came.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::known::Agent;
use super::project_walk::Change;
use crate::fs::{AbsPath, Dir, Time};
use crate::session::Id;
use crate::tree::{Hash, State, What, json, time};

/// The first line of a turn's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Its number among the turns of all agents in the directory, from 1 on.
    pub n: u64,
    pub agent: Agent,
    pub session: String,
    /// The agent's own name for the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The directory that the snapshots are of.
    #[serde(rename = "folder")]
    pub directory: AbsPath,
    #[serde(default)]
    pub place: Place,
    pub prompt: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(with = "time")]
    pub time: Time,
}

/// Which directory is at a path: the birth of it and of the repository's own in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Place {
    #[serde(with = "time::option", default, skip_serializing_if = "Option::is_none")]
    born: Option<Time>,
    #[serde(with = "time::option", default, skip_serializing_if = "Option::is_none")]
    git: Option<Time>,
}

impl Place {
    /// That of a directory as it is now. Nothing is known of one on overlayfs, where another is born when it is first written to.
    pub fn of(directory: &AbsPath) -> Self {
        let at = |path: &AbsPath| Some(Dir::open(path.parent()?.as_path()).ok()?.at(path.name()).is_on_overlay());
        if !matches!(at(directory), Some(Ok(false))) {
            return Self::default();
        }
        let Ok(dir) = Dir::open(directory.as_path()) else { return Self::default() };
        let git = dir.at(b".git").stat().ok().flatten().and_then(|stat| stat.btime);
        Self { born: dir.stat().ok().and_then(|stat| stat.btime), git }
    }

    /// True if it may be the same directory. Neither birth alone is a proof: a file system may copy a directory, and a repository may be
    /// made anew.
    pub fn may_be(self, other: Self) -> bool {
        let differ = |a: Option<Time>, b: Option<Time>| a.is_none() || b.is_none() || a != b;
        self.born.zip(other.born).is_none_or(|(a, b)| a == b) || !differ(self.git, other.git)
    }

    /// True if it is the same directory, wherever it is.
    pub fn is(self, other: Self) -> bool {
        self.born.is_some() && self.born == other.born && self.git == other.git
    }
}

/// The snapshots that hooks have taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// Before any turn of a session
    Ready,
    /// Before a turn
    Before,
    /// After a turn, or a part of it
    After,
}

impl When {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// A line of a turn's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    Turn(Head),
    /// The snapshot from before the turn is whole.
    Before {
        snapshot: u64,
        #[serde(with = "time")]
        time: Time,
    },
    /// The paths that have changed since the last such line, or since the snapshot before.
    Seen(Vec<Change>),
    /// The changes since the last look are not known.
    Blind,
    /// A tool that may write is about to run.
    Tool(Call),
    Done {
        #[serde(with = "time")]
        time: Time,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        name: String,
        /// The time that it took, in ms.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        took: Option<u64>,
        /// The paths in the directory that it has changed, as the agent tells.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        told: Vec<AbsPath>,
    },
    /// A snapshot shows what the turn has done so far: the lines up to the next other one tell it.
    After {
        snapshot: u64,
        #[serde(with = "time")]
        time: Time,
    },
    Wrote(Wrote),
    /// A path of which it is not known.
    Left {
        /// The path, with the directory as `/`.
        path: AbsPath,
        why: String,
    },
    /// The agent has ended the turn.
    End {
        #[serde(with = "time")]
        time: Time,
    },
    /// A snapshot could not be taken.
    Failed {
        why: String,
    },
    /// A session took the turn back. It counts as long as that session is committed.
    Undone {
        session: Id,
        /// The paths of the turn that were as before it, so that the session has no change of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        same: Vec<AbsPath>,
    },
    /// While it ran, an undo put these paths, with the directory as `/`, back to before other turns. They are not its own.
    Back(Vec<AbsPath>),
}

/// A use of a tool that may write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    #[serde(with = "time")]
    pub time: Time,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The paths in the directory that it names. Without any, and without `outside`, it may write anywhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<Named>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<PathBuf>,
    /// The part of the turn that its file tells of it in other lines.
    #[serde(skip)]
    pub ran: Ran,
}

/// The time in which a tool ran, by the `seen` lines before, and its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ran {
    /// The number of `seen` lines before it.
    pub from: usize,
    /// The number of those before its end; missing if that was not told.
    pub to: Option<usize>,
    /// The time of its end, and the ms that it took.
    pub done: Option<(Time, Option<u64>)>,
    /// The paths that it has changed, as the agent tells.
    pub told: Vec<AbsPath>,
}

/// A path that a tool names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// The path, with the directory as `/`.
    pub path: AbsPath,
    /// The [`look::id`](super::project_walk::id) of what was there; missing if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
}

/// A path that differs between the snapshots before and after a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wrote {
    /// The path, with the directory as `/`.
    pub path: AbsPath,
    /// True if it is, or was, a directory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub directory: bool,
    /// The [`mark`] of what was there before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is: Option<u64>,
}

/// A short hash of what is at a path, without its times; `None` if nothing is.
pub fn mark(state: Option<&State>) -> Option<u64> {
    let mut state = state?.clone();
    state.meta.mtime = Time::default();
    if let What::File { index, .. } = &mut state.what {
        *index = None;
    }
    let [a, b, c, d, e, f, g, h, ..] = Hash::of(&json::text(&state)).0;
    Some(u64::from_le_bytes([a, b, c, d, e, f, g, h]))
}
