//! The facts that a verb tells while it works. A face has the words.

use std::path::Path;

use super::act::steps_behind::Behind;
use super::prune::report::All;
use super::resolve::service_rows::StoppedService;
use super::run::notice::Notice;
use super::snapshot::fact::SnapshotFact;
use crate::capture::Rest;
use crate::engine::{Finding, Recovered};
use crate::error::Error;
use crate::fs::{AbsPath, Time};
use crate::session::{Entry, Header, Id};

/// A fact that is told while a verb works.
pub enum Fact<'a> {
    /// A fact of a run.
    Run(Notice<'a>),
    /// This signal came when all was done: it is finished.
    Finished(&'a str),
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
    /// An object that no staged change needs could not be removed.
    ObjectStays(&'a Error),
    /// A session that was imported came without its name, which another one has here.
    CameUnnamed(&'a str),
    /// No path of the imported session lies at this place, which was to be mapped.
    MappedInVain(&'a AbsPath),
    /// The log could not be written.
    NotLogged(&'a Error),
    /// Renames cannot be told: the files are shown as deleted and created.
    NoRenames(&'a Error),
    /// There are too many created and deleted files to compare them all: those that are the same count as renamed.
    TooManyToCompare,
    /// A power cut may have cost content of the session.
    Unsynced,
    /// The step is not below the head: it is compared with it all the same.
    NotBelow { step: u32 },
    /// A new session got the name; the one that had it before is rolled back, and not all of it is there.
    New { id: &'a Id, name: &'a str, former: Option<&'a Id> },
    /// The session is open again: its commit was undone.
    OpenAgain(&'a Id),
    /// A service was asked to end, and takes its time.
    StopsService(&'a str),
    /// A service was stopped for an act.
    ServiceStopped(&'a StoppedService),
    /// A command runs in the session, and this one waits for it.
    WaitsForCommand(&'a Id),
    /// Another session got the name meanwhile: this one has none.
    Unnamed { id: &'a Id, name: &'a str },
    /// A warning of a room below.
    Warning(&'a str),
    /// A note on what is chosen.
    Note(&'a str),
    /// Somebody else did this to a session in which an agent goes on.
    News(News<'a>),
    /// Content that a rollback with `--merge` begins with could not be kept.
    NotKept(&'a Error),
    /// A change is put onto what is on the tree by now, or would be.
    Merged { path: &'a AbsPath, dry_run: bool },
    /// Nothing of the session was chosen.
    NothingChosen(&'a Id),
    /// The tree has nothing more of the part that is to be taken back.
    NothingOnTree(&'a Id),
    /// A commit leaves steps behind, and one can still be kept.
    LeavesBehind { id: &'a Id, behind: Behind },
    /// The store that a run had inside could not be removed.
    OwnStoreStays(&'a Error),
    /// A session that was begun for the call holds nothing of use, and could not be removed.
    OfNoUse { id: &'a Id, why: &'a Error },
    /// The operation on the session was interrupted, as far as a reader can tell.
    Interrupted { id: &'a Id, found: Result<Finding, &'a Error> },
    /// All of the session is on the tree already: there is nothing to confirm.
    NothingToConfirm(&'a Id),
    /// The time that was noted before the commit counts.
    EarlierTimeCounts(&'a Error),
    /// A commit was not confirmed in time, and is rolled back: so many paths; or it stays.
    NotConfirmed { id: &'a Id, due: Time, taken_back: Result<usize, &'a Error> },
    /// The fate of the session that a part left, once that is rolled back.
    Rest { of: &'a Id, part: &'a Id, rest: &'a Rest },
    /// A commit was not confirmed in time, and nothing could be done about it.
    NotSettled { id: &'a Id, why: &'a Error },
    /// Sessions that were discarded before are freed.
    Freed(&'a [Id]),
    /// Sessions that were discarded before could not be freed.
    NotFreed(&'a Error),
    /// The caller's newest act is this one, which `undo` does not take back.
    Newest(&'a str),
    /// So many acts of others on held sessions are passed over; the newest is on this one.
    PassedOver { count: usize, newest: &'a Id },
    /// The act to be undone took an agent's hooks in, by this command, and the agent has turns.
    TakesHooksAway(&'a str),
    /// A session comes back without its name, which another one has by now.
    NameTaken { id: &'a Id, name: &'a str },
    /// A turn of an agent wrote to a path outside of the project.
    WroteOutside { n: u64, path: &'a Path },
    /// A file of settings is edited that an agent finds by a link.
    EditedByLink { link: &'a AbsPath, path: &'a AbsPath },
    /// The store does not keep what was added to settings.
    EditNotRecorded(&'a Error),
    /// A fact about snapshots.
    Snapshot(SnapshotFact<'a>),
    /// A record of a damaged session cannot be read: what is lost with it is counted, not listed.
    LossNotListed(&'a Error),
    /// The settings let go of this, which is to be pruned.
    Prunes(&'a All),
}

/// An act of somebody else, for an agent.
pub struct News<'a> {
    pub session: &'a Header,
    /// Its line in the log, if it has one.
    pub entry: Option<&'a Entry>,
    /// The places of what it decided about, of a part.
    pub at: &'a [AbsPath],
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
