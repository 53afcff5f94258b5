//! A service's recant: a copy of the one that was called, away from the caller's terminal, process group and streams. The caller waits for
//! its word that the service runs, or for its end. Until then it says what it says at the caller's standard error.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::time::Timespec;

use super::descriptors;
use super::one_thread;
use super::raw_calls;
use crate::error::{At, Error, IoError};
use crate::session::Ending;

/// The process that goes on after [`detach`].
pub enum Side {
    /// The one that was called.
    Caller(Starting),
    /// The one that tends the service.
    Service(Launch),
}

/// A service that is being started, for the one that waits.
#[derive(Debug)]
pub struct Starting {
    pid: i32,
    word: File,
}

/// The one that waits until the service runs.
#[derive(Debug)]
pub struct Launch {
    word: File,
}

/// Forks.
///
/// # Errors
/// There are other threads; a call failed.
pub fn detach() -> Result<Side, Error> {
    one_thread::refuse_others()?;
    let (ours, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).at("make a pipe for", "the service")?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).at("open", "/dev/null")?;
    match raw_calls::fork().at("fork", "the service")? {
        Some(pid) => Ok(Side::Caller(Starting { pid, word: ours.into() })),
        None => {
            drop(ours);
            part(&null)?;
            Ok(Side::Service(Launch { word: theirs.into() }))
        }
    }
}

/// Leaves the caller's session, and what it has opened but for standard error: somebody may wait until nobody has that open any more.
fn part(null: &OwnedFd) -> Result<(), IoError> {
    rustix::process::setsid().map_err(io::Error::from).at("begin", "a new session")?;
    raw_calls::put_in_place(null.as_fd(), 0);
    raw_calls::put_in_place(null.as_fd(), 1);
    descriptors::close_inherited()
}

impl Starting {
    /// Waits until the service runs; else returns the exit status of the process that was to tend it.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn wait(mut self) -> Result<Option<u8>, IoError> {
        if self.word.read(&mut [0]).is_ok_and(|got| got == 1) {
            return Ok(None);
        }
        let ending = raw_calls::wait_for_end(self.pid).at("wait for", "the service")?;
        Ok(Some(ending.map_or(u8::MAX, Ending::status)))
    }
}

impl Launch {
    /// True while the caller waits.
    pub fn is_awaited(&self) -> bool {
        let mut ended = [PollFd::new(&self.word, PollFlags::empty())];
        let _interrupted = poll(&mut ended, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        ended[0].revents().is_empty()
    }

    /// Lets the caller go, and says the rest into the service's output.
    pub fn let_go(&self, output: &File) {
        raw_calls::put_in_place(output.as_fd(), 2);
        // If it has just been ended, the service goes on.
        let _gone = (&self.word).write_all(&[1]);
    }
}
