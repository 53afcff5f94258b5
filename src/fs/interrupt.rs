//! The signals that ask a process to end: SIGINT (Ctrl-C), SIGTERM and SIGHUP.
//!
//! Before the first effect a signal ends recant. After it the operation is undone; after the last step it is finished. A recovery goes on to
//! its end. In a program that uses the library, signals are its own.
//!
//! From [`note`] on, the handler only notes which signal came first. The operation checks between two effects ([`check`]). The handler stays
//! until the result has been reported: a death by a signal means that nothing was changed.
#![allow(unsafe_code, reason = "signal(2) and raise(3) have no safe wrappers")]

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::signal_pipe::set_unless_ignored;
use crate::error::{At, IoError};

const NOTED: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// The first signal that came, 0 for none. It is not forgotten: a request to end holds for what comes next too.
static CAME: AtomicI32 = AtomicI32::new(0);
static STOPS: AtomicBool = AtomicBool::new(false);
static NOT_OURS: AtomicBool = AtomicBool::new(false);

/// The reaction of an operation to a request to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnSignal {
    /// It stops at the next [`check`], and undoes what it has done.
    Stops,
    /// It continues to its end: it is an undo itself, or settles what is done.
    GoesOn,
}

/// Makes the operation stop on request, or go on, as long as this lives. Signals are noted beyond it, until [`give_back`].
#[derive(Debug)]
pub struct Noting {
    /// The state before: one operation may be a part of another.
    stopped: bool,
}

/// Leaves signals to the program that recant is a part of, for good. If one ends it within an operation, the next recant
/// recovers.
pub fn leave_to_the_program() {
    NOT_OURS.store(true, Ordering::Relaxed);
}

/// Notes signals from here on. Not for two threads at once.
pub fn note(asked: OnSignal) -> Noting {
    set_action(write_down as extern "C" fn(i32) as libc::sighandler_t);
    Noting { stopped: STOPS.swap(asked == OnSignal::Stops, Ordering::Relaxed) }
}

/// Restores the default actions of signals, once the result has been reported and something else begins.
pub fn give_back() {
    set_action(libc::SIG_DFL);
}

fn set_action(action: libc::sighandler_t) {
    if !NOT_OURS.load(Ordering::Relaxed) {
        // SAFETY: the only handler stores to an atomic, and does nothing else (signal-safety(7)).
        unsafe { set_unless_ignored(&NOTED, action) };
    }
}

extern "C" fn write_down(signal: i32) {
    _ = CAME.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
}

/// Ends the process by the default action of a signal; returns if that does not end it.
pub fn end_by(signal: i32) {
    // SAFETY: signal(2) with SIG_DFL installs no handler of ours; raise(3) touches no memory.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Has the kernel send this process a signal as soon as `parent`, which has started it, ends, also by SIGKILL. False if `parent` is not its
/// parent, or not any more.
pub fn end_with(parent: i32, signal: Signal) -> bool {
    set_parent_process_death_signal(Some(signal)).is_ok() && getppid().map(Pid::as_raw_pid) == Some(parent)
}

impl Drop for Noting {
    fn drop(&mut self) {
        STOPS.store(self.stopped, Ordering::Relaxed);
    }
}

/// The name of the signal that came first.
pub fn signal_received() -> Option<&'static str> {
    match CAME.load(Ordering::Relaxed) {
        libc::SIGINT => Some("SIGINT"),
        libc::SIGTERM => Some("SIGTERM"),
        libc::SIGHUP => Some("SIGHUP"),
        _ => None,
    }
}

/// The exit status for the signal that came first, as shells give it.
pub fn status() -> Option<u8> {
    u8::try_from(CAME.load(Ordering::Relaxed)).ok().filter(|came| *came > 0).map(|came| 128 + came)
}

/// Input from a source that may keep it waiting for ever: an operation that stops on request does so here too.
#[derive(Debug)]
pub struct Input(pub File);

impl Input {
    /// Standard input.
    ///
    /// # Errors
    /// It is closed.
    pub fn of_stdin() -> Result<Self, IoError> {
        let stdin = io::stdin().as_fd().try_clone_to_owned().at("read", "standard input")?;
        Ok(Self(File::from(stdin)))
    }
}

impl io::Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !has_input(&self.0)? {
            check()?;
        }
        check()?;
        self.0.read(buffer)
    }
}

/// Waits for something to read, including an end or an error, until a signal comes, for at most 0.1 s: a signal between a check and the
/// wait does not end the wait.
pub fn has_input(from: impl AsFd) -> io::Result<bool> {
    let tenth = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    match rustix::event::poll(&mut [PollFd::new(&from, PollFlags::IN)], Some(&tenth)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns an error if an operation that stops was asked to end; called between two effects.
pub fn check() -> io::Result<()> {
    match signal_received().filter(|_| STOPS.load(Ordering::Relaxed)) {
        None => Ok(()),
        Some(signal) => Err(io::Error::other(format!("stopped by {signal}"))),
    }
}
