//! The remains of a session whose header cannot be read: they can be viewed, and removed by the whole id, nothing else.

use super::change::Changes;
use super::error::{busy, not_now};
use super::header::{Header, Origin};
use super::id::Id;
use super::open_session::Session;
use super::store::Store;
use crate::error::{At, Error, IoError, Reason};
use crate::fs::{Dir, Fs, Lock, Time};

/// An open session without a header.
#[derive(Debug)]
pub struct Remains {
    pub id: Id,
    pub dir: Dir,
}

impl Store {
    /// Opens the session of that id, if it is there and its header cannot be read.
    pub fn remains(&self, id: &Id) -> Result<Option<Remains>, Error> {
        let dir = match self.session_dir(id) {
            Err(error) if error.is_unknown() => return Ok(None),
            dir => dir?,
        };
        match self.header_in(&dir, id) {
            Ok(_) => Ok(None),
            Err(error) if error.reason() == Some(&Reason::Garbled) => Ok(Some(Remains { id: id.clone(), dir })),
            Err(error) => Err(error),
        }
    }

    /// Removes it for good. Under the store's lock.
    ///
    /// Errors: another recant holds it; it can be read by now, or is gone.
    pub fn remove_remains(&self, fs: &Fs, remains: Remains) -> Result<(), Error> {
        let Remains { id, dir } = remains;
        let lock = Lock::try_take(fs, dir.at(b"lock"))?;
        let _lock = lock.ok_or_else(|| busy(format!("session {id}")))?;
        if self.remains(&id)?.is_none() {
            return Err(not_now(id, "it is no longer damaged").with_remedy("try again"));
        }
        self.remove(fs, &id, true)
    }
}

impl Remains {
    /// Reads its changes, as far as `changes.jsonl` has them.
    pub fn changes(&self) -> Result<Changes, Error> {
        let dir = self.dir.open_below(b"")?;
        // A session needs a header; nothing here depends on what it says.
        let header = Header::new(self.id.clone(), 0, Origin::Staged, Time::default());
        Session::new(dir, header).changes_as_written()
    }

    /// Counts objects other than directories below one of its directories (`held`, say), and their bytes on disk. A missing directory has
    /// none.
    ///
    /// Errors: the first thing that cannot be viewed; any number of objects may follow it.
    pub fn objects_below(&self, directory: &str) -> Result<(u64, u64), IoError> {
        use std::os::unix::fs::MetadataExt;
        let (mut count, mut bytes) = (0, 0);
        let top = self.dir.path().join(directory);
        for entry in walkdir::WalkDir::new(&top) {
            let meta = match entry.and_then(|entry| entry.metadata()).map_err(std::io::Error::from) {
                Err(error) if count == 0 && error.kind() == std::io::ErrorKind::NotFound => return Ok((0, 0)),
                meta => meta.at("look at what lies below", top.display())?,
            };
            if !meta.is_dir() {
                (count, bytes) = (count + 1, bytes + meta.blocks() * 512);
            }
        }
        Ok((count, bytes))
    }
}
