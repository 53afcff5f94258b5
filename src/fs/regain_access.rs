//! Restores access to recant's own directories, whose modes their owner's other programs may change.

use std::os::fd::AsFd;

use rustix::fs::Mode;

use super::dir::{Dir, Sort, of_fd};
use super::door::{Fs, tried};
use super::watch::On;
use crate::error::IoError;

impl Fs {
    /// Restores the owner's rights on a held directory of recant's own and on its content, so many levels down: to read and write, and to
    /// search a directory. Returns true if any were missing. Follows no link, crosses no mount.
    pub fn regain(&self, dir: &Dir, levels: usize) -> Result<bool, IoError> {
        let mode = dir.stat()?.mode;
        let mut missing = mode & 0o700 != 0o700;
        if missing {
            // By the descriptor: no name can be looked up in it.
            tried("set the mode of", dir.shown(), || {
                self.before("fchmod", On::Open(dir.as_fd(), dir.path()))?;
                Ok(rustix::fs::chmod(of_fd(dir.as_fd()), Mode::from_raw_mode(mode | 0o700))?)
            })?;
        }
        for name in if levels == 0 { Vec::new() } else { dir.names()? } {
            let at = dir.at(&name);
            match at.stat()? {
                Some(stat) if stat.sort == Sort::Directory => missing |= self.regain(&at.open_dir()?, levels - 1)?,
                Some(stat) if stat.sort == Sort::File && stat.mode & 0o600 != 0o600 => {
                    self.set_mode(at, stat.mode | 0o600)?;
                    missing = true;
                }
                _ => {}
            }
        }
        Ok(missing)
    }
}
