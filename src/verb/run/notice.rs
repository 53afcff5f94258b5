//! The facts that a run tells while it works. A face has the words.

use super::cut_off_value::CutRun;
use crate::agent::Agent;
use crate::capture::{Confinement, Event};
use crate::engine::LeftPath;
use crate::error::{Error, IoError};
use crate::fs::AbsPath;
use crate::session::{Coverage, Header, Id, Keep, Record, Session};

/// A fact that is told while a run works.
pub enum Notice<'a> {
    /// A report of the capture, or of the confinement of a command on the real tree.
    Event { event: &'a Event, is_confined: bool },
    /// A command joins the one that runs in a session.
    Beside(&'a Session),
    /// A service runs: its output goes to this file.
    Serves { id: &'a Id, name: &'a str, output: &'a AbsPath },
    /// A shell begins. `goes_on`: the session that holds what earlier commands did; `begins`: the name of one that is new.
    Shell { goes_on: Option<&'a Header>, begins: Option<&'a str>, has_history: bool },
    /// Something could not be made for the command, or not removed though it stayed empty.
    NotTidy(&'a IoError),
    /// The proxy of the run could not be started: nothing can be reached.
    NoProxy(&'a IoError),
    /// The newest pending session of this project, which this run does not see.
    Pending(&'a Id),
    /// These paths have changed on the tree since the session held them.
    ChangedBelow { id: &'a Id, paths: Vec<AbsPath> },
    /// Steps were merged: this one is the oldest now. `is_first`: never before.
    Oldest { id: &'a Id, step: u32, keep: Keep, is_first: bool },
    /// The store that the session's runs had inside was spoilt, and is made anew.
    Spoilt,
    /// An agent starts. `coverage` has what stays real.
    Agent { agent: Agent, session: &'a Header, coverage: &'a [Coverage] },
    /// The files that an agent keeps about itself.
    Records(Agent, Records<'a>),
    /// A command starts on the real tree.
    InPlace(InPlace<'a>),
    /// A cache that the command may not write to, as the store lies there.
    StoreInCache(&'a AbsPath),
    /// Paths that the snapshot before the command could not read, and why.
    Unread(&'a [LeftPath]),
    /// Paths of which nothing is recorded, and why; and the number of those that were named before.
    Left { new: Vec<&'a LeftPath>, known: usize },
    /// The command took the owner's rights to the store away; they are set again.
    Regained(&'a AbsPath),
    /// The session gets no name.
    NoName(&'a Error),
    /// The record of a run that has ended stays.
    RecordStays { id: &'a Id, why: &'a Error },
    /// So many old snapshots are pruned, as so many are kept.
    Pruned { count: usize, keep: usize },
    /// Waits until what was begun in a run that was cut off has ended. `None`: its record cannot be read.
    Ending { id: &'a Id, record: Option<&'a Record> },
    /// A run was cut off: the next verb that changes something makes its session.
    CutOff { id: &'a Id, record: Option<&'a Record> },
    /// A run was cut off, and is recovered.
    CutRun(&'a CutRun),
}

/// The fate of the files that an agent keeps about itself, at its end.
pub enum Records<'a> {
    /// All of them are held: nothing tells what they are, or their commit came to nothing.
    Held(&'a Error),
    /// All of them are held: an agent calls, as this variable tells.
    AgentCalls(&'static str),
    /// Some of them are held, each for a reason.
    HeldEach(&'a [(AbsPath, Obstacle)]),
    /// So many of them are committed.
    Committed { count: usize, part: &'a Id, is_whole: bool },
}

/// The reason why a file that an agent keeps about itself is held.
#[derive(Debug)]
pub enum Obstacle {
    /// Somebody else changed it meanwhile.
    Changed,
    OfAnotherConversation,
    TooMany(usize),
    Deleted,
    NoFile,
    SeveralNames,
    Mode,
    Owner,
    Attributes,
    /// The directory that was made for it is open to others.
    OpenDirectory,
    TooLarge(u64),
    /// Its content is gone.
    Gone(String),
    /// The agent obeys this member in it, which was changed.
    Obeyed(String),
    LinesGone,
    Unreadable(Error),
}

/// The terms of a command on the real tree.
pub struct InPlace<'a> {
    pub directories: Vec<&'a AbsPath>,
    pub confinement: &'a Confinement,
    /// The files that keep something out of the session.
    pub ignored: Vec<AbsPath>,
}
