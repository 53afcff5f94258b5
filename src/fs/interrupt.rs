//! The signals that ask a process to end, noted during an operation: SIGINT (Ctrl-C), SIGTERM, SIGHUP.
//!
//! Their default action ends the process at once, which is right as long as nothing has been changed. From the first effect on, the handler
//! only notes which came first; the operation checks between two effects ([`check`]). The handler stays until the result has been reported,
//! mostly the end of the process: a death by a signal means that nothing was changed. In another program, which uses recant as a library,
//! nothing is noted at all ([`leave_to_the_program`]). Signals that were ignored when recant was started (nohup(1), a shell's background
//! jobs) stay ignored. SIGKILL and SIGQUIT are left alone.
#![allow(unsafe_code, reason = "sigaction(2) has no safe wrapper")]

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

const NOTED: [(i32, &str); 3] = [(libc::SIGINT, "SIGINT"), (libc::SIGTERM, "SIGTERM"), (libc::SIGHUP, "SIGHUP")];

/// The first signal that came, 0 for none. It is not forgotten: a request to end holds for what comes next too.
static CAME: AtomicI32 = AtomicI32::new(0);
static STOPS: AtomicBool = AtomicBool::new(false);
/// True during an operation, whatever it reports meanwhile.
static NOTING: AtomicBool = AtomicBool::new(false);
/// True during an operation, and until its result is being reported.
static UNDER_WAY: AtomicBool = AtomicBool::new(false);
/// The noted signals, with the actions that they had.
static BEFORE: Mutex<Vec<(i32, libc::sighandler_t)>> = Mutex::new(Vec::new());

/// The reaction of an operation to a request to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// It stops at the next [`check`], and undoes what it has done.
    Stops,
    /// It continues to its end: it is an undo itself, or settles what is done.
    GoesOn,
}

/// Makes the operation stop on request, as long as this lives. Signals are noted beyond it, until [`give_back`].
#[derive(Debug)]
pub struct Noting {
    /// The state before: one operation may be a part of another.
    stopped: bool,
    noted: bool,
}

/// True if signals belong to another program.
static NOT_OURS: AtomicBool = AtomicBool::new(false);

/// Stops noting signals for good: they are for the program that recant is a part of. If one ends it within an operation, the next recant
/// recovers.
pub fn leave_to_the_program() {
    NOT_OURS.store(true, Ordering::Relaxed);
}

/// Notes signals from here on. Not for two threads at once.
pub fn note(asked: Asked) -> Noting {
    let stopped = STOPS.swap(asked == Asked::Stops, Ordering::Relaxed);
    let noted = NOTING.swap(true, Ordering::Relaxed);
    UNDER_WAY.store(true, Ordering::Relaxed);
    let ours = write_down as extern "C" fn(i32) as libc::sighandler_t;
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    let todo = if before.is_empty() && !NOT_OURS.load(Ordering::Relaxed) { &NOTED[..] } else { &[] };
    for (signal, _) in todo {
        // SAFETY: signal(2); the handler does nothing but a store to an atomic (signal-safety(7)). Calls that it interrupts
        // are restarted, as in BSD and glibc (SA_RESTART). It fails only for invalid signal numbers, and these are valid.
        let old = unsafe { libc::signal(*signal, ours) };
        if old == libc::SIG_IGN {
            // SAFETY: signal(2) with SIG_IGN installs no handler of ours.
            unsafe { libc::signal(*signal, libc::SIG_IGN) };
        } else {
            before.push((*signal, old));
        }
    }
    Noting { stopped, noted }
}

/// Restores the old actions of signals, once the result has been reported and something else begins.
pub fn give_back() {
    for (signal, old) in BEFORE.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // SAFETY: signal(2) with what it gave before.
        unsafe { libc::signal(signal, old) };
    }
}

extern "C" fn write_down(signal: i32) {
    // Only the first is kept. Another one during the report of the result ends the process.
    let later = CAME.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed).is_err();
    if later && !UNDER_WAY.load(Ordering::Relaxed) {
        end_by(signal);
    }
}

/// Ends the process by the default action of a signal; returns if that does not end it.
pub fn end_by(signal: i32) {
    // SAFETY: signal(2) with SIG_DFL and raise(3), both safe in a handler (signal-safety(7)). There the signal is blocked until it returns.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

impl Drop for Noting {
    fn drop(&mut self) {
        STOPS.store(self.stopped, Ordering::Relaxed);
        NOTING.store(self.noted, Ordering::Relaxed);
    }
}

/// Called before output. If that is the operation's result, a second signal ends the process from here on, as its reader may never read.
pub fn reporting() {
    UNDER_WAY.fetch_and(NOTING.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// The name of the signal that came first.
pub fn came() -> Option<&'static str> {
    let came = CAME.load(Ordering::Relaxed);
    NOTED.into_iter().find(|(signal, _)| *signal == came).map(|(_, name)| name)
}

/// The exit status for the signal that came first, as shells give it.
pub fn status() -> Option<u8> {
    u8::try_from(CAME.load(Ordering::Relaxed)).ok().filter(|came| *came > 0).map(|came| 128 + came)
}

/// True if an exit status is that of a recant that a signal asked to end: nothing was changed.
pub fn is_status(status: u8) -> bool {
    NOTED.into_iter().any(|(signal, _)| i32::from(status) == 128 + signal)
}

/// Input from a source that may keep it waiting for ever: an operation that stops on request does so here too.
#[derive(Debug)]
pub struct Input(pub File);

impl io::Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !has_input(&self.0, LOOKS)? {
            check()?;
        }
        check()?;
        self.0.read(buffer)
    }
}

/// The interval at which a wait looks for a signal: one that comes between a look and the wait ends no wait.
pub const LOOKS: Duration = Duration::from_millis(100);

/// Waits for at most `limit`, or until any signal comes, for something to read, including an end or an error.
pub fn has_input(from: impl AsFd, limit: Duration) -> io::Result<bool> {
    let until = Instant::now() + limit;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX), tv_nsec: left.subsec_nanos().into() };
        match rustix::event::poll(&mut [PollFd::new(&from, PollFlags::IN)], Some(&timeout)) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) if came().is_none() => {}
            Err(Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns an error if an operation that stops was asked to end; called between two effects.
pub fn check() -> io::Result<()> {
    match came().filter(|_| STOPS.load(Ordering::Relaxed)) {
        None => Ok(()),
        Some(signal) => Err(io::Error::other(format!("{signal} asked for an end"))),
    }
}
