//! The signals that ask a process to end, noted while an operation is under way: SIGINT (Ctrl-C), SIGTERM, SIGHUP.
//!
//! Their default action ends the process where it stands, which is right as long as nothing has been changed. From the first
//! effect on, the handler writes down which came first, and nothing else; the operation looks between two effects ([`check`]).
//! It stays until what was done has been said, which is mostly the end of the process: a death by a signal means that nothing was changed.
//! In another program, which uses recant as a library, nothing is noted at all ([`leave_to_the_program`]).
//! What was ignored when recant was started (nohup(1), a shell's background jobs) stays so. SIGKILL and SIGQUIT are left alone.
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

/// The first that came, 0 for none. It is not forgotten: whoever asked for an end does not want what comes next either.
static CAME: AtomicI32 = AtomicI32::new(0);
static STOPS: AtomicBool = AtomicBool::new(false);
/// As long as an operation is under way, whatever it says meanwhile.
static NOTING: AtomicBool = AtomicBool::new(false);
/// The same, and until what it did is being said.
static UNDER_WAY: AtomicBool = AtomicBool::new(false);
/// Those that are noted, with the actions that they had.
static BEFORE: Mutex<Vec<(i32, libc::sighandler_t)>> = Mutex::new(Vec::new());

/// What an operation does when it is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// It stops at the next [`check`], and undoes what it has done.
    Stops,
    /// It goes on to its end: it is an undo itself, or settles what is done.
    GoesOn,
}

/// The operation stops when it is asked to, as long as this lives. Signals are noted beyond it, until [`give_back`].
#[derive(Debug)]
pub struct Noting {
    /// What held before: one operation may be a part of another.
    stopped: bool,
    noted: bool,
}

/// Signals are none of recant's.
static NOT_OURS: AtomicBool = AtomicBool::new(false);

/// From here on no signal is noted: they are for the program that recant is a part of. Where one ends it in the midst of an operation, the next
/// recant recovers.
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
        // SAFETY: signal(2); the handler does nothing but a store to an atomic (signal-safety(7)). Calls that it cuts off are
        // begun again, as BSD and glibc have it (SA_RESTART). It fails for numbers that are no signal's, which these are.
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

/// Where something else begins once what was done has been said: signals have their old actions again.
pub fn give_back() {
    for (signal, old) in BEFORE.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // SAFETY: signal(2) with what it gave before.
        unsafe { libc::signal(signal, old) };
    }
}

extern "C" fn write_down(signal: i32) {
    // Only the first is kept. Another one that comes while it is being said what was done is meant.
    let later = CAME.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed).is_err();
    if later && !UNDER_WAY.load(Ordering::Relaxed) {
        end_by(signal);
    }
}

/// Ends the process as the signal does by default; comes back where that does not end it.
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

/// Something is being said. Where that is what was done, a second signal ends the process from here on, as its reader may never read.
pub fn reporting() {
    UNDER_WAY.fetch_and(NOTING.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// The name of the signal that came first.
pub fn came() -> Option<&'static str> {
    let came = CAME.load(Ordering::Relaxed);
    NOTED.into_iter().find(|(signal, _)| *signal == came).map(|(_, name)| name)
}

/// The exit status that stands for the signal that came first, as shells have it.
pub fn status() -> Option<u8> {
    u8::try_from(CAME.load(Ordering::Relaxed)).ok().filter(|came| *came > 0).map(|came| 128 + came)
}

/// Whether an exit status is one of a recant that a signal asked to end: nothing was changed.
pub fn is_status(status: u8) -> bool {
    NOTED.into_iter().any(|(signal, _)| i32::from(status) == 128 + signal)
}

/// What is read from somebody who may keep it waiting for ever: an operation that stops when it is asked to does so here, too.
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

/// How often who waits looks whether a signal came: one that comes between a look and the wait ends no wait.
pub const LOOKS: Duration = Duration::from_millis(100);

/// Waits for at most `limit`, or until any signal comes, for something to read, an end or an error included.
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

/// Between two effects: an error where an operation that stops was asked to end.
pub fn check() -> io::Result<()> {
    match came().filter(|_| STOPS.load(Ordering::Relaxed)) {
        None => Ok(()),
        Some(signal) => Err(io::Error::other(format!("{signal} asked for an end"))),
    }
}
