//! Sessions that a verb makes for itself: nobody sees one before something of it is sealed, and what a killed verb left of it goes
//! with the next one that begins a session, or recovers.

use super::header::Header;
use super::id::Id;
use super::store::Store;
use crate::error::{At, Error};
use crate::fs::Fs;
use crate::fs::lock::Lock;

impl Store {
    /// Takes out what a verb is making for itself, or has left: nothing of it is anybody's. One with a journal stays in view, as what it
    /// speaks of may be on the tree.
    pub(super) fn hide_begun(&self, headers: &mut Vec<Header>) -> Result<(), Error> {
        if headers.iter().any(Header::is_unsealed) {
            let journals = self.journal_names()?;
            headers.retain(|header| !header.is_unsealed() || is_among(&journals, &header.id));
        }
        Ok(())
    }

    /// Takes the names of what killed verbs have left, and gives all headers that stay, those of sessions in the making among them. The bytes
    /// may be many, and what is locked here is waited for: they are for [`Store::sweep_removed`].
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

    /// Whether it is gone.
    fn sweep_one_begun(&self, fs: &Fs, id: &Id) -> Result<bool, Error> {
        let dir = match self.session_dir(id) {
            Err(error) if error.is_unknown() => return Ok(true),
            dir => dir?,
        };
        // Whoever makes it holds its lock until it is sealed or removed.
        let _lock = match Lock::take_unless_held(fs, dir.at(b"lock")) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
            Ok(None) => return Ok(false),
            lock => lock.at("lock", dir.at(b"lock"))?,
        };
        // It may have been sealed, or removed, before the lock was free. Nobody adds a journal to a session without its lock, but a recovery
        // seals the header and then takes the journal away without it: so the journals are looked at first.
        let has_journal = is_among(&self.journal_names()?, id);
        fs.between_readings(dir.at(b"session.json")).at("look at", dir.at(b"session.json"))?;
        match self.session(id) {
            Err(error) if error.is_unknown() => Ok(true),
            Ok(session) if has_journal || !session.header.is_unsealed() => Ok(false),
            session => session.and_then(|_| self.remove_name(fs, id)).map(|()| true),
        }
    }

    fn journal_names(&self) -> Result<Vec<Vec<u8>>, Error> {
        Ok(self.journals().names().at("list the journals", self.journals().path().display())?)
    }
}

/// Whether there is a journal of a session, or what comes before one.
fn is_among(journals: &[Vec<u8>], id: &Id) -> bool {
    journals.iter().any(|name| name.starts_with(id.as_str().as_bytes()))
}
