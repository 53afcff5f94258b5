//! The store, and what all calls on it share.

use std::fmt;
use std::path::{Path, PathBuf};

use super::id::SessionId;
use crate::capture::{collect_killed, inside, working_directory};
use crate::engine::{Outcome, Recovered as Of, recover_and_lock};
use crate::error::Error;
use crate::fs::{AbsPath, Fs, resolve};
use crate::session::{open_session, store};

/// A store of sessions and snapshots: the same directory that the program `recant` uses with `--store`.
///
/// **Who may call it.** Nobody needs to be root. A store belongs to one user (mode 0700) and is refused to every other one, root included.
/// Within the run of a command (`recant run`) there is no store to open.
///
/// **Locks.** A call that changes something takes the session's lock. If another recant or another thread holds it, the call is refused at
/// once ([`Kind::Busy`](crate::Kind::Busy)). Then it takes the store's lock, and waits at most 10 s for it. A [`Plan`](crate::Plan) holds its session's lock as long as it
/// lives. Calls that read take no lock.
///
/// **Recovery.** Every call that changes something first undoes or settles what a crash of any recant has left in the store;
/// [`Store::recover`] does that alone, and reports it. Only the program rolls back a commit in time that nobody confirms
/// (`--confirm-within`).
///
/// **Paths** are absolute; a relative path is refused. Links in their parents are followed, the last name is not.
///
/// **Process.** [`Store::open`] makes the process ignore SIGIO and SIGXFSZ if they would end it; programs that it starts inherit this. No
/// other signal is touched. If a signal ends the process during a call, the next call recovers. The first call reads the umask by
/// setting it (umask(2)): make that call before other threads create files. Nothing is printed.
///
/// **Durability.** The effect of a call that has returned `Ok` survives a power cut.
///
/// # Examples
///
/// A change is held, planned, committed, and rolled back:
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
    pub(super) fs: Fs,
    pub(super) store: store::Store,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.store.path).finish()
    }
}

/// The recovery of an operation that was cut off.
#[derive(Debug)]
#[non_exhaustive]
pub struct Recovered {
    /// The session of the operation.
    pub session: SessionId,
    /// `Ok`: it was undone, or settled if it had been done. The paths are those where it could not be undone, as somebody has changed them
    /// since, and why. There it is done, and the session records it ([`Plan::force`](crate::Plan::force) goes on over them). `Err`: it cannot be recovered now,
    /// and the session cannot be used.
    pub outcome: Result<Vec<(PathBuf, String)>, Error>,
}

impl Recovered {
    fn of(recovered: Of) -> Self {
        let left = |left: Vec<crate::engine::LeftPath>| left.into_iter().map(|left| (path_of(&left.path), left.why));
        let outcome = match recovered.outcome {
            Outcome::Failed(error) => Err(error),
            Outcome::Left(paths) => Ok(left(paths).chain(left(recovered.strays)).collect()),
            Outcome::Cleaned | Outcome::Undone | Outcome::Settled => Ok(left(recovered.strays).collect()),
        };
        Self { session: recovered.id.into(), outcome }
    }
}

impl Store {
    /// Opens the store at `path`. If it is missing, makes it with its parents, with mode 0700.
    ///
    /// # Errors
    /// [`Kind::Refused`](crate::Kind::Refused): the directory belongs to another user, others may write to it, it is no store and not empty, or it has a later
    /// format; this is inside the run of a command.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        if let Some(id) = inside() {
            return Err(Error::refused(format!("this is inside the run of session {id}, where there is no store")));
        }
        crate::fs::leave_to_the_program();
        crate::fs::ignore_what_would_end_it();
        let path = resolve::absolute(absolute(path.as_ref())?)?;
        let fs = Fs::new();
        let mut store = store::Store::create(&fs, &path)?;
        store.begins_in = working_directory().ok();
        Ok(Self { fs, store })
    }

    /// Undoes or settles all operations that were cut off, and returns the outcome of each; empty if there was none.
    ///
    /// # Errors
    /// [`Kind::Busy`](crate::Kind::Busy): the store's lock could not be had within 10 s. Nothing was recovered then.
    pub fn recover(&self) -> Result<Vec<Recovered>, Error> {
        let settled = recover_and_lock::recover_alone(&self.fs, &self.store, || ())?;
        Ok(settled.recovered.into_iter().map(Recovered::of).collect())
    }

    /// Recovers before anything is changed. Returns what was interrupted.
    pub(super) fn recover_first(&self) -> Result<Vec<Of>, Error> {
        Ok(recover_and_lock::recover_any(&self.fs, &self.store, || ())?.map_or_else(Vec::new, |settled| settled.recovered))
    }

    /// Opens a session to change. Collects the changes of its run if the recant of that was killed.
    pub(super) fn locked(&self, id: &SessionId) -> Result<open_session::Locked, Error> {
        let collect = |locked: &mut open_session::Locked| collect_killed(&self.fs, &self.store, locked).map(drop);
        recover_and_lock::lock(&self.fs, &self.store, id.inner(), collect, || self.recover_first())
    }
}

/// Returns an absolute path; refuses a relative one.
pub(super) fn absolute(path: &Path) -> Result<&Path, Error> {
    if path.is_absolute() {
        return Ok(path);
    }
    Err(resolve::bad(path, "the path is not absolute"))
}

pub(super) fn path_of(path: &AbsPath) -> PathBuf {
    path.as_path().to_path_buf()
}
