//! The signals that ask a process to end, noted while an operation is under way: SIGINT (Ctrl-C), SIGTERM, SIGHUP.
//!
//! Their default action ends the process where it stands, which is right as long as nothing has been changed. From the first
//! effect on, the handler writes down which came first, and nothing else; the operation looks between two effects ([`check`]).
//! What was ignored when recant was started (nohup(1), a shell's background jobs) stays so. SIGKILL and SIGQUIT are left alone.
#![allow(unsafe_code, reason = "sigaction(2) has no safe wrapper")]

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

const NOTED: [(i32, &str); 3] = [(libc::SIGINT, "SIGINT"), (libc::SIGTERM, "SIGTERM"), (libc::SIGHUP, "SIGHUP")];

/// The first that came, 0 for none. It is not forgotten: whoever asked for an end does not want what comes next either.
static CAME: AtomicI32 = AtomicI32::new(0);
static STOPS: AtomicBool = AtomicBool::new(false);

/// What an operation does when it is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// It stops at the next [`check`], and undoes what it has done.
    Stops,
    /// It goes on to its end: it is an undo itself, or settles what is done.
    GoesOn,
}

/// Signals are noted as long as this lives; then they have their old actions again.
#[derive(Debug)]
pub struct Noting {
    before: Vec<(i32, libc::sighandler_t)>,
}

/// Notes signals from here on. Not for two threads at once, nor one within another.
pub fn note(asked: Asked) -> Noting {
    STOPS.store(asked == Asked::Stops, Ordering::Relaxed);
    let ours = write_down as extern "C" fn(i32) as libc::sighandler_t;
    let mut before = Vec::new();
    for (signal, _) in NOTED {
        // SAFETY: signal(2); the handler does nothing but a store to an atomic (signal-safety(7)). Calls that it cuts off are
        // begun again, as BSD and glibc have it (SA_RESTART). It fails for numbers that are no signal's, which these are.
        let old = unsafe { libc::signal(signal, ours) };
        if old == libc::SIG_IGN {
            // SAFETY: signal(2) with SIG_IGN installs no handler of ours.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        } else {
            before.push((signal, old));
        }
    }
    Noting { before }
}

extern "C" fn write_down(signal: i32) {
    // Only the first is kept: the others change nothing.
    let _later = CAME.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
}

impl Drop for Noting {
    fn drop(&mut self) {
        STOPS.store(false, Ordering::Relaxed);
        for (signal, old) in self.before.drain(..) {
            // SAFETY: signal(2) with what it gave before.
            unsafe { libc::signal(signal, old) };
        }
    }
}

/// The name of the signal that came first.
pub fn came() -> Option<&'static str> {
    let came = CAME.load(Ordering::Relaxed);
    NOTED.into_iter().find(|(signal, _)| *signal == came).map(|(_, name)| name)
}

/// Between two effects: an error where an operation that stops was asked to end.
pub fn check() -> io::Result<()> {
    match came().filter(|_| STOPS.load(Ordering::Relaxed)) {
        None => Ok(()),
        Some(signal) => Err(io::Error::other(format!("{signal} asked for an end"))),
    }
}
