//! Sessions that a verb makes for itself. Nobody sees one before something of it is sealed. What a killed verb left goes with the next
//! verb that begins a session, or recovers.

use super::header::Header;
use super::id::Id;
use super::store::Store;
use crate::error::Error;
use crate::fs::{Fs, Lock};

impl Store {
    /// Drops the sessions that a verb is making for itself, or has left: nobody needs them. One with a journal stays, as what that names
    /// may be on the tree.
    pub(super) fn hide_begun(&self, headers: &mut Vec<Header>) -> Result<(), Error> {
        if headers.iter().any(Header::is_unsealed) {
            let journals = self.journal_names()?;
            headers.retain(|header| !header.is_unsealed() || is_among(&journals, &header.id));
        }
        Ok(())
    }

    /// Removes the names of what killed verbs have left. Returns all other headers, also of sessions in the making. The bytes may be
    /// many, and others wait for the lock held here: [`Store::sweep_removed`] removes them.
    pub(super) fn sweep_begun(&self, fs: &Fs) -> Result<Vec<Header>, Error> {
        let (headers, _) = self.every_header()?;
        let mut stay = Vec::with_capacity(headers.len());
        for header in headers {
            if !header.is_unsealed() || !self.sweep_one_begun(fs, &header.id)? {
                stay.push(header);
            }
        }
        Ok(stay)
    }

    /// Removes the name of one such session. True if it is gone.
    fn sweep_one_begun(&self, fs: &Fs, id: &Id) -> Result<bool, Error> {
        let dir = match self.session_dir(id) {
            Err(error) if error.is_unknown() => return Ok(true),
            dir => dir?,
        };
        // Its maker holds its lock until it is sealed or removed.
        let _lock = match Lock::take_unless_held(fs, dir.at(b"lock")) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
            Ok(None) => return Ok(false),
            lock => lock?,
        };
        // It may have been sealed, or removed, before the lock was free. Nobody adds a journal without the session's lock, but a recovery
        // seals the header and then removes the journal without it. So the journals come first.
        let has_journal = is_among(&self.journal_names()?, id);
        fs.between_readings(dir.at(b"session.json"))?;
        match self.session(id) {
            Err(error) if error.is_unknown() => Ok(true),
            Ok(session) if has_journal || !session.header.is_unsealed() => Ok(false),
            session => session.and_then(|_| self.remove_name(fs, id)).map(|()| true),
        }
    }

    fn journal_names(&self) -> Result<Vec<Vec<u8>>, Error> {
        Ok(self.journals().names()?)
    }
}

/// True if a session has a journal, or what comes before one.
pub(super) fn is_among(journals: &[Vec<u8>], id: &Id) -> bool {
    journals.iter().any(|name| name.starts_with(id.as_str().as_bytes()))
}
