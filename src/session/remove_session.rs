//! Removes sessions, and what a killed recant left in the store.

use super::error::not_emptied;
use super::id::Id;
use super::open_session::Locked;

use super::store::Store;
use crate::error::{At, Error, IoError, command};
use crate::fs::{Entry, Fs, Lock};

/// The start of a session's directory's name while it is made, and once it is removed: before its id.
pub(super) const HALF_MADE: &[u8] = b".new-";
const REMOVED: &[u8] = b".gone-";

impl Store {
    /// Removes a whole session: first its name, durably, then its bytes (I12). Of a run that left nothing only the name goes:
    /// [`Store::sweep_removed`] removes its empty directories when there is time.
    pub fn remove_session(&self, fs: &Fs, locked: Locked) -> Result<(), Error> {
        // One of a run that left nothing was never made durable.
        let durable = locked.header.lines > 0 || !locked.header.uncollected;
        self.remove(fs, locked.id(), durable)
    }

    /// Removes a session's directory, whatever is in it. The caller holds its lock.
    pub(super) fn remove(&self, fs: &Fs, id: &Id, durable: bool) -> Result<(), Error> {
        let gone = self.take_name(fs, id)?;
        if !durable {
            return Ok(());
        }
        let gone = self.sessions.at(&gone);
        let not_all =
            |why| not_emptied(format!("session {id} is removed"), why, command("prune --sessions") + " clears the rest away");
        // D2, I12 (directory: not caught here, as above): a session whose name came back would be half there.
        fs.sync_dir(&self.sessions).map_err(not_all)?;
        match fs.remove_all(gone) {
            // Another recant sweeps, too.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(not_all),
        }
    }

    /// Removes only its name, durably (I12); [`Store::sweep_removed`] removes the bytes.
    pub(super) fn remove_name(&self, fs: &Fs, id: &Id) -> Result<(), Error> {
        self.take_name(fs, id)?;
        // D2 (directory: not caught here, as above).
        Ok(fs.sync_dir(&self.sessions)?)
    }

    /// Removes the name of another directory of the store, whatever is in it, durably (I12). The caller holds its lock;
    /// [`Store::sweep_removed`] removes the bytes, once that is released.
    pub fn remove_directory(&self, fs: &Fs, at: Entry<'_>) -> Result<(), Error> {
        let id = Id::new_now().at("draw a random number for", "the name of what goes")?;
        let gone = [REMOVED, id.as_str().as_bytes()].concat();
        fs.place(at, self.sessions.at(&gone)).at("remove", at)?;
        // D2 (directory: not caught here, as above): content that goes is that of nothing that could come back.
        Ok(fs.sync_dir(at.dir)?)
    }

    fn take_name(&self, fs: &Fs, id: &Id) -> Result<Vec<u8>, Error> {
        let gone = [REMOVED, id.as_str().as_bytes()].concat();
        let at = self.sessions.at(id.as_str().as_bytes());
        fs.place(at, self.sessions.at(&gone)).at("remove the session", at)?;
        Ok(gone)
    }

    /// Removes the names of what a crash left half made in `sessions/`, and of what killed verbs began for themselves. Under the store's
    /// lock; [`Store::sweep_removed`] removes the bytes.
    pub fn sweep(&self, fs: &Fs) -> Result<(), Error> {
        self.sweep_begun(fs)?;
        if self.names_with(HALF_MADE)?.is_empty() {
            return Ok(());
        }
        let at = self.dir.at(b"numbering");
        // Makers of sessions hold it: only while nobody does is something half made nobody's, and it may have been finished since.
        let Some(_numbering) = Lock::try_take_file(fs, at)? else { return Ok(()) };
        for name in self.names_with(HALF_MADE)? {
            let (at, gone) = (self.sessions.at(&name), [REMOVED, &name[1..]].concat());
            if !is_locked(at)? {
                fs.place(at, self.sessions.at(&gone)).at("remove", at)?;
            }
        }
        Ok(())
    }

    /// Removes what has lost its name before. Needs no lock, as nobody looks for it any more. Returns the errors, with paths: what they
    /// are about stays until the next time.
    pub fn sweep_removed(&self, fs: &Fs) -> Vec<Error> {
        let names = match self.names_with(REMOVED) {
            Ok(names) => names,
            Err(error) => return vec![error],
        };
        let swept = names.iter().map(|name| self.sweep_one_removed(fs, self.sessions.at(name)));
        swept.filter_map(Result::err).collect()
    }

    fn sweep_one_removed(&self, fs: &Fs, at: Entry<'_>) -> Result<(), Error> {
        let removed = is_locked(at).and_then(|locked| if locked { Ok(()) } else { fs.remove_all(at) });
        match removed {
            // Another recant sweeps, too.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => Ok(removed?),
        }
    }

    pub(super) fn names_with(&self, prefix: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let names = self.sessions.names()?;
        Ok(names.into_iter().filter(|name| name.starts_with(prefix)).collect())
    }
}

/// True if a directory of `sessions/` without a name is just being made or removed.
fn is_locked(at: Entry<'_>) -> Result<bool, IoError> {
    let lock = at.open_dir()?;
    Lock::is_held(lock.at(b"lock"))
}
