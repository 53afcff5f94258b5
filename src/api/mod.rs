//! The face of the library: sessions, checkpoints and snapshots inside another program. Thin: each call is what a verb of the program does
//! without its words, by the same rooms.
//!
//! Types of its own alone: none of another room's is seen from outside. Never prints, never asks, reads no settings, and of the environment
//! what the rooms below read: the home folder.
#![deny(missing_docs)]

mod error;
mod plan;
mod session;
mod snapshot;

pub use error::{Error, Kind};
pub use plan::{Conflict, Plan, Report, Verb};
pub use session::{Change, ChangeKind, Edit, Session, SessionId, Status};
pub use snapshot::Snapshot;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::capture::hold::collect_ended;
use crate::capture::inside::inside;
use crate::capture::plan::working_folder;
use crate::engine::ready;
use crate::engine::recover::{Outcome, Recovered as Of};
use crate::fs::Fs;
use crate::fs::path::AbsPath;
use crate::fs::resolve;
use crate::session::opened;
use crate::session::store;

/// Where sessions and snapshots are kept: the same folder that the program `recant` uses by `--store`.
///
/// **Who may call it.** Nobody needs to be root. A store belongs to one user (mode 0700) and is refused to every other one, root included.
/// Within the run of a command (`recant run`) there is no store to open.
///
/// **Locks.** A call that changes something takes the session's lock, and is refused at once where another recant or another thread holds it
/// ([`Kind::Busy`]); then the store's, for which it waits at most 10 s. A [`Plan`] holds its session's lock as long as it lives. Calls that read
/// take none.
///
/// **Recovery.** Every call that changes something first undoes or settles what a crash, of whichever recant, has left in the store;
/// [`Store::recover`] does that alone, and tells what it did. A commit for whose confirmation somebody waits (`--confirm-within`) is taken back
/// in time by the program alone.
///
/// **Paths** are absolute; a relative one is refused. Links in their parents are followed, the last name is not.
///
/// **Process.** [`Store::open`] has the signals SIGIO and SIGXFSZ ignored where they would end the process, which programs that it starts
/// inherit. No other signal is touched. Where one ends the process in the midst of a call, the next call recovers. The first call reads the
/// umask by setting it (umask(2)): make it before other threads make files. Nothing is printed.
///
/// **Durability.** What a call has returned `Ok` for stays so after a power cut.
///
/// # Examples
///
/// A change is held, planned, made real, and taken back:
///
/// ```
/// use recant::{ChangeKind, Edit, Store, Verb};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let dir = tempfile::tempdir()?;
/// let file = dir.path().canonicalize()?.join("app.conf");
/// std::fs::write(&file, "port = 80\n")?;
///
/// let store = Store::open(dir.path().join("store"))?;
/// let id = store.begin(Some("new-port"))?;
/// store.stage(&id, [Edit::Write { path: &file, content: Box::new("port = 8080\n".as_bytes()), mode: None }])?;
/// assert_eq!(std::fs::read_to_string(&file)?, "port = 80\n", "it is held, not real");
///
/// let plan = store.plan(&id, Verb::Commit, &[])?;
/// assert!(plan.conflicts().is_empty());
/// let report = plan.apply()?;
/// assert_eq!((report.changes[0].path.as_path(), report.changes[0].kind), (&*file, ChangeKind::Modified));
/// assert_eq!(std::fs::read_to_string(&file)?, "port = 8080\n");
///
/// store.plan(&id, Verb::Rollback, &[])?.apply()?;
/// assert_eq!(std::fs::read_to_string(&file)?, "port = 80\n");
/// # Ok(())
/// # }
/// ```
pub struct Store {
    fs: Fs,
    store: store::Store,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.store.path).finish()
    }
}

/// What became of an operation that was cut off.
#[derive(Debug)]
#[non_exhaustive]
pub struct Recovered {
    /// Whose operation.
    pub session: SessionId,
    /// `Ok`: it was undone, or settled where it had been done; with the paths at which it could not be undone, as somebody has changed them
    /// since, and why: there it is done, and the session says so ([`Plan::force`] goes on over them). `Err`: it cannot be recovered now, and the
    /// session cannot be worked on.
    pub outcome: Result<Vec<(PathBuf, String)>, Error>,
}

impl Recovered {
    fn of(recovered: Of) -> Self {
        let left = |left: Vec<crate::engine::report::Left>| left.into_iter().map(|left| (path_of(&left.path), left.why));
        let outcome = match recovered.outcome {
            Outcome::Failed(error) => Err(error.into()),
            Outcome::Left(paths) => Ok(left(paths).chain(left(recovered.strays)).collect()),
            Outcome::Cleaned | Outcome::Undone | Outcome::Settled => Ok(left(recovered.strays).collect()),
        };
        Self { session: recovered.id.into(), outcome }
    }
}

impl Store {
    /// Opens the store at `path`, made with its parents where it is missing, with mode 0700.
    ///
    /// # Errors
    /// [`Kind::Refused`]: the folder belongs to another user, others may write to it, it is no store and not empty, or of a later format; this
    /// is within the run of a command.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        if let Some(id) = inside() {
            return Err(Error::refused(format!("this is inside the run of session {id}, where there is no store"), None));
        }
        crate::fs::interrupt::leave_to_the_program();
        crate::fs::lease::ignore_what_would_end_it();
        let path = resolve::absolute(absolute(path.as_ref())?)?;
        let fs = Fs::new();
        let mut store = store::Store::create(&fs, &path)?;
        store.begins_in = working_folder().ok();
        Ok(Self { fs, store })
    }

    /// Undoes or settles all operations that were cut off, and tells what became of each; empty where none was.
    ///
    /// # Errors
    /// [`Kind::Busy`]: the store's lock could not be had within 10 s. Nothing was recovered then.
    pub fn recover(&self) -> Result<Vec<Recovered>, Error> {
        let settled = ready::recover_alone(&self.fs, &self.store, || ())?;
        Ok(settled.recovered.into_iter().map(Recovered::of).collect())
    }

    /// Before anything is changed. Gives what was interrupted.
    fn recover_first(&self) -> Result<Vec<Of>, Error> {
        Ok(ready::recover_any(&self.fs, &self.store, || ())?.map_or_else(Vec::new, |settled| settled.recovered))
    }

    /// A session to change. What a run left in it whose recant was killed is collected.
    fn locked(&self, id: &SessionId) -> Result<opened::Locked, Error> {
        let collect = |locked: &mut opened::Locked| Ok(collect_ended(&self.fs, &self.store, locked).map(drop)?);
        ready::lock(&self.fs, &self.store, id.inner(), collect, || self.recover_first())
    }
}

/// As it is, where it is absolute.
fn absolute(path: &Path) -> Result<&Path, Error> {
    if path.is_absolute() {
        return Ok(path);
    }
    Err(resolve::Unresolved::bad(path, "the path is not absolute").into())
}

fn path_of(path: &AbsPath) -> PathBuf {
    path.as_path().to_path_buf()
}
