//! Restores access to recant's own directories, whose modes their owner's other programs may change.

use std::io;

use rustix::fs::Mode;

use super::dir::{Dir, Sort};
use super::watch::On;
use super::{Fs, of_fd};

impl Fs {
    /// Restores the owner's rights on a held directory of recant's own and on its content, so many levels down: to read and write, and to
    /// search a directory. Returns true if any were missing. Follows no link, crosses no mount.
    pub fn regain(&self, dir: &Dir, levels: usize) -> io::Result<bool> {
        let mode = dir.stat()?.mode;
        let mut missing = mode & 0o700 != 0o700;
        if missing {
            // By the descriptor: no name can be looked up in it.
            self.before("fchmod", On::Open(std::os::fd::AsFd::as_fd(dir), dir.path()))?;
            rustix::fs::chmod(of_fd(std::os::fd::AsFd::as_fd(dir)), Mode::from_raw_mode(mode | 0o700))?;
        }
        for name in if levels == 0 { Vec::new() } else { dir.names()? } {
            let at = dir.at(&name);
            match at.stat()? {
                Some(stat) if stat.sort == Sort::Folder => missing |= self.regain(&at.open_dir()?, levels - 1)?,
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
