//! A file by which a process shows that it is at work: others see which process that is, and that it has ended, however it ended. By
//! fcntl(2), F_SETLK: such a lock belongs to the process alone, and is lost when that closes any descriptor of the file. So a process does
//! not open its own to look at it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use rustix::process::{Flock, FlockType, Pid, PidfdFlags, Signal, fcntl_getlk, pidfd_open, pidfd_send_signal};

use super::dir::{Dir, Entry, Inode, stat_of};
use super::door::Fs;
use crate::error::{At, IoError};

/// The files of this process.
static OWN: Mutex<Vec<Inode>> = Mutex::new(Vec::new());

fn own() -> MutexGuard<'static, Vec<Inode>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The presence of this process, until dropped.
#[derive(Debug)]
pub struct Presence {
    file: File,
    inode: Inode,
    dir: Dir,
    name: Vec<u8>,
}

impl Presence {
    /// Shows that this process is at work. `None` if another one is.
    ///
    /// # Errors
    /// The file cannot be made or locked.
    pub fn show(fs: &Fs, at: Entry<'_>) -> Result<Option<Self>, IoError> {
        let file = fs.append(at)?;
        let dir = at.dir.open_below(b"")?;
        match rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                let inode = stat_of(&file).at("look at", at)?.inode();
                own().push(inode);
                Ok(Some(Self { file, inode, dir, name: at.name.to_vec() }))
            }
            Err(Errno::AGAIN | Errno::ACCESS) => Ok(None),
            Err(error) => Err(io::Error::from(error)).at("lock", at),
        }
    }

    /// Ends it with a line for those who look.
    ///
    /// # Errors
    /// The line cannot be written: they see the end alone.
    pub fn end(self, fs: &Fs, line: &[u8]) -> Result<(), IoError> {
        fs.write(&self.file, line, self.dir.at(&self.name))
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        own().retain(|inode| *inode != self.inode);
    }
}

/// True if a process is at work there, this one or another.
///
/// # Errors
/// The file cannot be read.
pub fn is_present(at: Entry<'_>) -> Result<bool, IoError> {
    Ok(is_own(at)? || Seen::look(at)?.is_some())
}

fn is_own(at: Entry<'_>) -> Result<bool, IoError> {
    Ok(at.stat()?.is_some_and(|stat| own().contains(&stat.inode())))
}

/// The presence of another process.
#[derive(Debug)]
pub struct Seen {
    file: File,
    /// The bytes of earlier ends.
    from: u64,
}

impl Seen {
    /// Looks at a file; `None` if no other process is at work there.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn look(at: Entry<'_>) -> Result<Option<Self>, IoError> {
        if is_own(at)? {
            return Ok(None);
        }
        let file = match at.open_file() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let from = file.metadata().at("look at", at)?.len();
        let seen = Self { file, from };
        Ok(seen.holder().is_some().then_some(seen))
    }

    /// True while the process is at work.
    pub fn is_there(&self) -> bool {
        self.holder().is_some()
    }

    /// The process. An error counts as none.
    fn holder(&self) -> Option<Pid> {
        fcntl_getlk(&self.file, &Flock::from(FlockType::WriteLock)).ok().flatten()?.pid
    }

    /// Sends it a signal; it may have ended. That its number means another process by now is ruled out.
    ///
    /// # Errors
    /// It is another user's, or none of this PID namespace.
    pub fn send(&self, signal: Signal) -> io::Result<()> {
        let Some(pid) = self.holder() else { return Ok(()) };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(process) if self.holder() == Some(pid) => match pidfd_send_signal(process, signal) {
                Err(Errno::SRCH) | Ok(()) => Ok(()),
                Err(error) => Err(error.into()),
            },
            Ok(_) => Ok(()),
            Err(Errno::SRCH) if !self.is_there() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The line with which it ended since; `None` if it was killed.
    pub fn last_line(&self) -> Option<Vec<u8>> {
        let mut file = BufReader::new(&self.file);
        file.seek(SeekFrom::Start(self.from)).ok()?;
        file.split(b'\n').next()?.ok().filter(|line| !line.is_empty())
    }
}
