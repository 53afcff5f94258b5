//! The actions of signals; and signals as bytes in a pipe, for a process that passes them on to another machine instead of ending by them.
#![allow(unsafe_code, reason = "sigaction(2) and pre_exec have no safe wrappers")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering};

/// The signals that ask a process to end, from a terminal or by kill(1).
const HEARD: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// The descriptor that the handler writes to; -1 before [`listen`].
static PIPE: AtomicI32 = AtomicI32::new(-1);

/// Turns each SIGINT, SIGTERM, SIGHUP and SIGQUIT into a byte with its number in the returned pipe, until the process ends.
pub fn listen() -> io::Result<File> {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // A full pipe has asked often enough: the handler must not wait.
    rustix::fs::fcntl_setfl(&writer, rustix::fs::OFlags::NONBLOCK)?;
    // The handler may run at any time from now on, so the descriptor must stay open.
    let writer = std::mem::ManuallyDrop::new(writer);
    PIPE.store(writer.as_raw_fd(), Ordering::SeqCst);
    listen_again();
    Ok(File::from(reader))
}

/// Hears the signals again, once something else that heard them has ended. For a process that has called [`listen`].
pub fn listen_again() {
    let ours = write_down as extern "C" fn(i32) as libc::sighandler_t;
    // SAFETY: the handler calls write(2) alone, which is async-signal-safe (signal-safety(7)), and keeps errno.
    unsafe { set_unless_ignored(&HEARD, ours) };
}

/// Sets the action of `signals`. Those that were ignored when recant was started (nohup(1), a shell's background jobs) stay ignored.
///
/// # Safety
/// A handler in `action` does what is async-signal-safe alone (signal-safety(7)), and keeps errno.
pub(super) unsafe fn set_unless_ignored(signals: &[i32], action: libc::sighandler_t) {
    for signal in signals {
        // SAFETY: sigaction(2) without an action writes the one in force to `now`, for which all zeros are valid. The caller answers for the
        // handler. Calls that it cuts off are begun again, as BSD and glibc have it (SA_RESTART). Both fail for numbers that are no signal's alone.
        unsafe {
            let mut now: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(*signal, std::ptr::null(), &raw mut now) == 0 && now.sa_sigaction != libc::SIG_IGN {
                libc::signal(*signal, action);
            }
        }
    }
}

extern "C" fn write_down(signal: i32) {
    let byte = signal.to_le_bytes();
    // SAFETY: errno is a thread's own (errno(3)); write(2) reads one byte of `byte`, which lives as long as the call.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::write(PIPE.load(Ordering::SeqCst), byte.as_ptr().cast(), 1);
        *errno = before;
    }
}

/// Keeps the terminal's Ctrl-C and Ctrl-\, which reach every process of the group, from a child: an ssh(1) that they end would take along
/// the connection that the signal is to be sent over. An ssh that shares a connection handles them even if they are ignored, so they are
/// blocked too.
pub fn kept_from(command: &mut Command) {
    let keep = || {
        // SAFETY: sigset_t is plain data, which sigemptyset(3) fills before it is read; signal(2), sigaddset(3) and sigprocmask(2)
        // are async-signal-safe (signal-safety(7)), and the child has one thread.
        unsafe {
            let mut blocked = std::mem::zeroed();
            libc::sigemptyset(&raw mut blocked);
            for signal in [libc::SIGINT, libc::SIGQUIT] {
                libc::signal(signal, libc::SIG_IGN);
                libc::sigaddset(&raw mut blocked, signal);
            }
            libc::sigprocmask(libc::SIG_BLOCK, &raw const blocked, std::ptr::null_mut());
        }
        Ok(())
    };
    // SAFETY: `keep` runs between fork and exec, makes async-signal-safe calls alone, and allocates nothing.
    unsafe { command.pre_exec(keep) };
}
