//! Remembers what a user was told, to tell it once: that a session is pending, by an empty file `told` in its directory; acts of others, by a
//! line in the store's own `told`, for each agent that heard of them.

use super::open_session::{Session, read_small};
use super::store::Store;
use crate::error::Error;
use crate::fs::Fs;
use crate::tree::{Hash, json};

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
    /// True if an act was told to who works here.
    pub fn is_told(&self, act: u64) -> Result<bool, Error> {
        let told = read_small(self.dir.at(TOLD), 2 * MOST)?.unwrap_or_default();
        Ok(has(&told, &self.line_of(act)))
    }

    /// The line that tells an act, and who hears of it, apart from all others.
    fn line_of(&self, act: u64) -> String {
        let by = self.by.as_ref().map(|by| (&by.agent, &by.session));
        format!("{}\n", Hash::of(&[self.path.as_bytes(), b"\0", &json::text(&(act, by))].concat()))
    }

    /// True if an act is to be told for the first time to who works here; it counts as told from now on. Not durable, as above.
    pub fn is_news(&self, fs: &Fs, act: u64) -> Result<bool, Error> {
        let at = self.dir.at(TOLD);
        let line = self.line_of(act);
        let told = read_small(at, 2 * MOST)?.unwrap_or_default();
        if has(&told, &line) {
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

fn has(told: &[u8], line: &str) -> bool {
    told.split_inclusive(|b| *b == b'\n').any(|known| known == line.as_bytes())
}
