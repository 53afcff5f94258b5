//! Which pending sessions a user was told of: an empty file `told` in the session's directory.

use super::Error;
use super::opened::Session;
use crate::error::At;
use crate::fs::Fs;

const TOLD: &[u8] = b"told";

impl Session {
    /// Whether somebody was told that this session is pending.
    pub fn was_told(&self) -> Result<bool, Error> {
        let at = self.dir.at(TOLD);
        Ok(at.stat().at("look at", at)?.is_some())
    }

    /// Remembers that somebody was told so. Needs no lock: nothing else depends on it. Not durable: after a power cut it is told once more.
    pub fn note_told(&self, fs: &Fs) -> Result<(), Error> {
        let at = self.dir.at(TOLD);
        match fs.create(at, 0o600) {
            Ok(_) => Ok(()),
            // By another run, which told the same.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error).at("make", at).map_err(Error::from),
        }
    }
}
