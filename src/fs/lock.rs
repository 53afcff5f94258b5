//! Locks that die with their holder: flock(2), never a pid file (D18, I23).
//!
//! A lock is held on its file, and on the folder that this lies in: somebody may remove the file or put another one in its place, and who
//! comes next would hold that, at the same time as the first.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use rustix::process::{Pid, getpid};

use super::Fs;
use super::dir::{Dir, Entry};
use super::interrupt;

/// Held by one alone, or not at all.
const ALONE: FlockOperation = FlockOperation::NonBlockingLockExclusive;

/// A held lock; dropping it lets go.
#[derive(Debug)]
pub struct Lock {
    file: File,
    folder: Option<Dir>,
    holder: Pid,
}

/// By a word, as closing does not do where a process that was forked meanwhile has the descriptors, too, until it executes a program: flock(2).
/// Such a process itself lets go of nothing.
impl Drop for Lock {
    fn drop(&mut self) {
        if getpid() == self.holder {
            // What fails here is let go by closing.
            let _closed = self.folder.as_ref().map(|folder| rustix::fs::flock(folder, FlockOperation::Unlock));
            let _closed = rustix::fs::flock(&self.file, FlockOperation::Unlock);
        }
    }
}

impl Lock {
    /// Takes the lock on the file at `at`, made with mode 0600 where it is missing, and on its folder. `None` where another holds it.
    pub fn try_take(fs: &Fs, at: Entry<'_>) -> io::Result<Option<Self>> {
        let Some(mut lock) = Self::try_take_file(fs, at)? else { return Ok(None) };
        let Some(folder) = lock_folder(at.dir, ALONE)? else { return Ok(None) };
        lock.folder = folder;
        Ok(Some(lock))
    }

    /// The same on the file alone: for another lock than the one that its folder goes with.
    pub fn try_take_file(fs: &Fs, at: Entry<'_>) -> io::Result<Option<Self>> {
        let file = fs.append(at)?;
        Ok(flock(&file, ALONE)?.then(|| Self { file, folder: None, holder: getpid() }))
    }

    /// What `take` takes, waiting for it for at most `limit`, and no longer than [`interrupt::check`] lets it; `slow` is called once, after
    /// half a second. flock has no time-out, so it is asked every 20 ms.
    pub fn wait(limit: Duration, slow: impl FnOnce(), take: impl Fn() -> io::Result<Option<Self>>) -> io::Result<Option<Self>> {
        let start = Instant::now();
        let mut slow = Some(slow);
        loop {
            if let Some(lock) = take()? {
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
            interrupt::check()?;
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The lock for one alone. Another that holds it so is not waited for; who only asks whether it is held ([`Lock::is_held`]) is.
    pub fn take_unless_held(fs: &Fs, at: Entry<'_>) -> io::Result<Option<Self>> {
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

    /// Whether who took the lock has ended, and a process that it forked, which closes folders and keeps the file, has not yet.
    pub fn is_left(at: Entry<'_>) -> io::Result<bool> {
        let shared = FlockOperation::NonBlockingLockShared;
        let is_held = match at.open_file() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            file => !flock(&file?, shared)?,
        };
        // Where folders cannot be locked nothing tells.
        Ok(is_held && matches!(lock_folder(at.dir, shared)?, Some(Some(_))))
    }

    /// Whether somebody holds the lock exclusively now. Takes nothing that outlives the call, makes no file.
    pub fn is_held(at: Entry<'_>) -> io::Result<bool> {
        let shared = FlockOperation::NonBlockingLockShared;
        match at.open_file() {
            Ok(file) if !flock(&file, shared)? => return Ok(true),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        Ok(lock_folder(at.dir, shared)?.is_none())
    }
}

/// Whether it was free.
fn flock(file: impl AsFd, how: FlockOperation) -> io::Result<bool> {
    match rustix::fs::flock(file, how) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// `None` where another holds it, `Some(None)` where folders cannot be locked.
fn lock_folder(dir: &Dir, how: FlockOperation) -> io::Result<Option<Option<Dir>>> {
    let folder = dir.open_below(b"")?;
    match flock(&folder, how) {
        Ok(free) => Ok(free.then_some(Some(folder))),
        // NFS locks what is open for writing, which no folder is: the file alone has to do.
        Err(error) if error.raw_os_error() == Some(libc::EBADF) => Ok(Some(None)),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_let_go_though_another_process_has_its_descriptors() {
        let folder = tempfile::tempdir().unwrap();
        let (fs, dir) = (Fs::new(), Dir::open(folder.path()).unwrap());
        let take = || Lock::try_take(&fs, dir.at(b"lock")).unwrap();
        let lock = take().unwrap();
        // As a fork copies them.
        let copies = (lock.file.try_clone().unwrap(), lock.folder.as_ref().unwrap().as_fd().try_clone_to_owned().unwrap());
        assert!(take().is_none());
        drop(lock);
        assert!(take().is_some());
        drop(copies);
    }
}
