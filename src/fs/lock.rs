//! Locks that die with their holder: flock(2), never a pid file (D18, I23).
//!
//! A lock is held on its file, and on the file's directory: somebody may remove or replace the file, and the next process would lock the
//! new file while the first still holds the old.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use rustix::process::{Pid, getpid};

use super::dir::{Dir, Entry};
use super::door::Fs;
use super::interrupt;
use crate::error::{At, IoError};

/// An exclusive lock, not waited for.
const ALONE: FlockOperation = FlockOperation::NonBlockingLockExclusive;

const LOCK: &str = "lock";
const LOOK: &str = "look at";

/// A held lock; dropping it releases it.
#[derive(Debug)]
pub struct Lock {
    file: File,
    directory: Option<Dir>,
    holder: Pid,
}

/// Unlocks explicitly: closing is not enough where a process forked meanwhile has the descriptors too, until it executes a program:
/// flock(2). The forked process itself releases nothing.
impl Drop for Lock {
    fn drop(&mut self) {
        if getpid() == self.holder {
            // If this fails, closing releases it.
            let _closed = self.directory.as_ref().map(|directory| rustix::fs::flock(directory, FlockOperation::Unlock));
            let _closed = rustix::fs::flock(&self.file, FlockOperation::Unlock);
        }
    }
}

impl Lock {
    /// Takes the lock on the file at `at`, which is made with mode 0600 if missing, and on its directory. `None` if another holds it.
    pub fn try_take(fs: &Fs, at: Entry<'_>) -> Result<Option<Self>, IoError> {
        let Some(mut lock) = Self::try_take_file(fs, at)? else { return Ok(None) };
        let Some(directory) = lock_directory(at, ALONE)? else { return Ok(None) };
        lock.directory = directory;
        Ok(Some(lock))
    }

    /// Takes the lock on the file alone, if the directory belongs to another lock.
    pub fn try_take_file(fs: &Fs, at: Entry<'_>) -> Result<Option<Self>, IoError> {
        let file = fs.append(at).at(LOCK, at)?;
        Ok(flock(&file, ALONE).at(LOCK, at)?.then(|| Self { file, directory: None, holder: getpid() }))
    }

    /// The file, open to be read and appended to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Waits for the lock that `take` takes at `at`, at most `limit`, and no longer than [`interrupt::check`] allows; calls `slow` once,
    /// after half a second. flock has no time-out, so it tries every 20 ms.
    pub fn wait<'a>(
        at: Entry<'a>,
        limit: Duration,
        slow: impl FnOnce(),
        take: impl Fn(Entry<'a>) -> Result<Option<Self>, IoError>,
    ) -> Result<Option<Self>, IoError> {
        let start = Instant::now();
        let mut slow = Some(slow);
        loop {
            if let Some(lock) = take(at)? {
                return Ok(Some(lock));
            }
            if start.elapsed() >= limit {
                return Ok(None);
            }
            if start.elapsed() >= Duration::from_millis(500)
                && let Some(slow) = slow.take()
            {
                slow();
            }
            interrupt::check().at(LOCK, at)?;
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Takes an exclusive lock. Waits for a mere check whether it is held ([`Lock::is_held`]), but not for another exclusive holder.
    pub fn take_unless_held(fs: &Fs, at: Entry<'_>) -> Result<Option<Self>, IoError> {
        let start = Instant::now();
        loop {
            if let Some(lock) = Self::try_take(fs, at)? {
                return Ok(Some(lock));
            }
            if Self::is_held(at)? || start.elapsed() > Duration::from_secs(10) {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// True if the holder has ended, but a process that it forked, which closes directories and keeps the file, has not.
    pub fn is_left(at: Entry<'_>) -> Result<bool, IoError> {
        let shared = FlockOperation::NonBlockingLockShared;
        let is_held = match at.open_file() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            file => !flock(&file?, shared).at(LOOK, at)?,
        };
        // Where directories can't be locked this is unknown.
        Ok(is_held && matches!(lock_directory(at, shared)?, Some(Some(_))))
    }

    /// True if somebody holds the lock exclusively now. Takes nothing that outlives the call, makes no file.
    pub fn is_held(at: Entry<'_>) -> Result<bool, IoError> {
        let shared = FlockOperation::NonBlockingLockShared;
        match at.open_file() {
            Ok(file) if !flock(&file, shared).at(LOOK, at)? => return Ok(true),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        Ok(lock_directory(at, shared)?.is_none())
    }
}

/// Takes a lock without waiting; false if another holds it.
fn flock(file: impl AsFd, how: FlockOperation) -> io::Result<bool> {
    match rustix::fs::flock(file, how) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Locks a directory. `None` if another holds it, `Some(None)` where directories can't be locked.
fn lock_directory(at: Entry<'_>, how: FlockOperation) -> Result<Option<Option<Dir>>, IoError> {
    let directory = at.dir.open_below(b"")?;
    match flock(&directory, how) {
        Ok(free) => Ok(free.then_some(Some(directory))),
        // NFS locks only what is open for writing, which no directory is: the file alone must do.
        Err(error) if error.raw_os_error() == Some(libc::EBADF) => Ok(Some(None)),
        Err(error) => Err(error).at(LOCK, at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_let_go_though_another_process_has_its_descriptors() {
        let directory = tempfile::tempdir().unwrap();
        let (fs, dir) = (Fs::new(), Dir::open(directory.path()).unwrap());
        let take = || Lock::try_take(&fs, dir.at(b"lock")).unwrap();
        let lock = take().unwrap();
        // As a fork copies them.
        let copies = (lock.file.try_clone().unwrap(), lock.directory.as_ref().unwrap().as_fd().try_clone_to_owned().unwrap());
        assert!(take().is_none());
        drop(lock);
        assert!(take().is_some());
        drop(copies);
    }
}
