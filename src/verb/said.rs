//! The facts that a verb tells while it works, and its questions. A face has the words.

use crate::engine::recover::Recovered;
use crate::error::Error;
use crate::fs::path::AbsPath;
use crate::session::act::Acted;
use crate::session::id::Id;

/// A fact that is told while a verb works.
pub enum Said<'a> {
    /// The session that `last` means; the place where it was begun, if this project has none.
    Last { id: &'a Id, elsewhere: Option<&'a AbsPath> },
    /// The session that a name means, and where it was begun: another project's.
    Named { name: &'a str, id: &'a Id, begun_in: Option<&'a AbsPath> },
    /// A run of this session is under way, and `last` does not mean it yet.
    UnderWay(&'a Id),
    /// A run that was cut off is collected.
    Collected(&'a Collected),
    /// An interrupted operation is recovered.
    Recovered(&'a Recovered),
    /// A command runs in the session: what is shown is not all that it changes.
    Running(&'a Id),
    /// The changes of the command that runs in the session are not counted.
    NotCounted { id: &'a Id, why: &'a Error },
    /// Another recant was at work in the session meanwhile: what is shown may mix old and new.
    Mixed(&'a Id),
    /// Another recant is at work in this store: this one waits.
    Waiting(&'a AbsPath),
    /// Something that has lost its name in the store could not be removed.
    Unswept(&'a Error),
    /// The log could not be written.
    NotLogged(&'a Error),
    /// Renames cannot be told: the files are shown as deleted and created.
    NoRenames(&'a Error),
    /// A new session got the name; the one that had it before is rolled back, and not all of it is there.
    New { id: &'a Id, name: &'a str, former: Option<&'a Id> },
    /// The session is open again: its commit was undone.
    OpenAgain(&'a Id),
    /// A command runs in the session, and this one waits for it.
    WaitsForCommand(&'a Id),
    /// Another session got the name meanwhile: this one has none.
    Unnamed { id: &'a Id, name: &'a str },
    /// A warning of a room below.
    Warning(&'a str),
}

/// A question for the person at the terminal, to be answered with yes or no.
pub enum Question<'a> {
    /// The newest act on the session is somebody else's.
    Others { id: &'a Id, act: &'a Acted },
}

/// A run that was cut off, and is collected.
pub struct Collected {
    pub id: Id,
    /// The number of changes that the session holds.
    pub changes: u64,
    pub lost: Option<Lost>,
}

/// The loss where something is lost that a run had changed.
pub enum Lost {
    /// The note of a command that went on in the session: nothing tells where it wrote. The session stands at this step.
    Command { head: u32 },
    /// It lay in memory.
    Memory,
    /// The record of the run; what it changed lies unread here.
    Record(std::path::PathBuf),
}
