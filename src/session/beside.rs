//! The commands that joined the run of a session: a file each while the run is under way, `beside.<n>.json`. At its end they are told by the
//! step that the run becomes.

use super::open_session::{Session, read_small};
use super::run_record::Beside;
use crate::error::Error;
use crate::fs::Fs;
use crate::tree::json;

const PREFIX: &[u8] = b"beside.";

impl Session {
    /// Notes a command that joins; returns its number, from 1 on.
    ///
    /// # Errors
    /// A system call failed.
    pub fn note_beside(&self, fs: &Fs, beside: &Beside) -> Result<u32, Error> {
        for n in 1.. {
            let name = name(n);
            match fs.create(self.dir.at(&name), 0o600) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                made => {
                    made?;
                    self.note_beside_at(fs, n, beside)?;
                    return Ok(n);
                }
            }
        }
        unreachable!("no directory has so many names")
    }

    /// Notes anew what is known of a command that joined.
    ///
    /// # Errors
    /// A system call failed.
    pub fn note_beside_at(&self, fs: &Fs, n: u32, beside: &Beside) -> Result<(), Error> {
        Ok(fs.replace_at_once(self.dir.at(&name(n)), &json::text(beside))?)
    }

    /// The commands that joined the run, in their order. One whose note a power cut took is left out.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn beside(&self) -> Result<Vec<Beside>, Error> {
        let mut found = Vec::new();
        for name in self.beside_names()? {
            let number = || std::str::from_utf8(name.strip_prefix(PREFIX)?.strip_suffix(b".json")?).ok()?.parse::<u32>().ok();
            let text = read_small(self.dir.at(&name), 16 << 20)?;
            let read = text.and_then(|text| serde_json::from_slice(&text).ok());
            found.extend(number().zip(read));
        }
        found.sort_by_key(|(n, _): &(u32, Beside)| *n);
        Ok(found.into_iter().map(|(_, beside)| beside).collect())
    }

    /// Forgets them.
    ///
    /// # Errors
    /// A system call failed.
    pub fn forget_beside(&self, fs: &Fs) -> Result<(), Error> {
        for name in self.beside_names()? {
            fs.unlink_if_there(self.dir.at(&name))?;
        }
        Ok(())
    }

    fn beside_names(&self) -> Result<Vec<Vec<u8>>, Error> {
        Ok(self.dir.names()?.into_iter().filter(|name| name.starts_with(PREFIX)).collect())
    }
}

fn name(n: u32) -> Vec<u8> {
    [PREFIX, n.to_string().as_bytes(), b".json"].concat()
}
