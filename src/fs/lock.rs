//! Locks that die with their holder: flock(2), never a pid file (D18, I23).

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::Fs;
use super::dir::Entry;

/// A held lock; dropping it lets go.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// How a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// By one alone.
    Exclusive,
    /// By many at once.
    Shared,
}

impl Lock {
    /// Takes the lock on the file at `at`, made with mode 0600 where it is missing. `None` where another holds it.
    pub fn try_take(fs: &Fs, at: Entry<'_>, hold: Hold) -> io::Result<Option<Self>> {
        let file = fs.append(at)?;
        let how = match hold {
            Hold::Exclusive => FlockOperation::NonBlockingLockExclusive,
            Hold::Shared => FlockOperation::NonBlockingLockShared,
        };
        match rustix::fs::flock(&file, how) {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The same, waiting for at most `limit`; `slow` is called once, after half a second. flock has no time-out, so it is asked every 20 ms.
    pub fn wait(fs: &Fs, at: Entry<'_>, hold: Hold, limit: Duration, slow: impl FnOnce()) -> io::Result<Option<Self>> {
        let start = Instant::now();
        let mut slow = Some(slow);
        loop {
            if let Some(lock) = Self::try_take(fs, at, hold)? {
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
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The lock for one alone. Another that holds it so is not waited for; who only asks whether it is held ([`Lock::is_held`]) is.
    pub fn take_unless_held(fs: &Fs, at: Entry<'_>) -> io::Result<Option<Self>> {
        let start = Instant::now();
        loop {
            if let Some(lock) = Self::try_take(fs, at, Hold::Exclusive)? {
                return Ok(Some(lock));
            }
            if Self::is_held(at)? || start.elapsed() > Duration::from_secs(10) {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether somebody holds the lock exclusively now. Takes nothing that outlives the call, makes no file.
    pub fn is_held(at: Entry<'_>) -> io::Result<bool> {
        let file = match at.open_file() {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(false),
            Err(Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}
