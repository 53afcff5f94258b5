//! Remembers what a user was told, to tell it once: that a session is pending, by an empty file `told` in its directory; facts about a
//! project, by a line in the store's own `told`.

use super::open_session::{Session, read_small};
use super::store::Store;
use crate::error::Error;
use crate::fs::{AbsPath, Fs};
use crate::tree::Hash;

const TOLD: &[u8] = b"told";

/// The most bytes of the store's list before it is begun anew: to say something twice then does no harm.
const MOST: u64 = 64 << 10;

impl Session {
    /// True if somebody was told that this session is pending.
    pub fn was_told(&self) -> Result<bool, Error> {
        let at = self.dir.at(TOLD);
        Ok(at.stat()?.is_some())
    }

    /// Notes that somebody was told so. Needs no lock: nothing else depends on it. Not durable: after a power cut it is told once more.
    pub fn note_told(&self, fs: &Fs) -> Result<(), Error> {
        let at = self.dir.at(TOLD);
        match fs.create(at, 0o600) {
            Ok(_) => Ok(()),
            // Another run made it, which told it too.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Store {
    /// True if `what` is to be told in this project for the first time; it counts as told from now on. Not durable, as above.
    pub fn is_news(&self, fs: &Fs, project: &AbsPath, what: &str) -> Result<bool, Error> {
        let at = self.dir.at(TOLD);
        let line = format!("{}\n", Hash::of(&[project.as_bytes(), b"\0", what.as_bytes()].concat()));
        let told = read_small(at, 2 * MOST)?.unwrap_or_default();
        if told.split_inclusive(|b| *b == b'\n').any(|known| known == line.as_bytes()) {
            return Ok(false);
        }
        if told.len() as u64 + line.len() as u64 > MOST {
            fs.unlink_if_there(at)?;
        }
        let file = fs.append(at)?;
        fs.write(&file, line.as_bytes(), at)?;
        Ok(true)
    }
}
