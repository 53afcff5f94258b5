//! Signals as bytes in a pipe, for a process that hands them on to another machine instead of ending by them.
#![allow(unsafe_code, reason = "sigaction(2) and pre_exec have no safe wrappers")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering};

/// What asks a process to end, from a terminal or by kill(1).
const HEARD: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Where the handler writes; -1 before [`listen`].
static PIPE: AtomicI32 = AtomicI32::new(-1);

/// From here on each of SIGINT, SIGTERM, SIGHUP and SIGQUIT is a byte with its number in the pipe that is given back, to the end
/// of the process. What was ignored when recant was started (nohup(1), a shell's background jobs) stays so.
pub fn listen() -> io::Result<File> {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // A full pipe has been asked often enough: the handler must not wait.
    rustix::fs::fcntl_setfl(&writer, rustix::fs::OFlags::NONBLOCK)?;
    // The handler may run at any time from now on, so that the descriptor has to stay open.
    let writer = std::mem::ManuallyDrop::new(writer);
    PIPE.store(writer.as_raw_fd(), Ordering::SeqCst);
    let ours = write_down as extern "C" fn(i32) as libc::sighandler_t;
    for signal in HEARD {
        // SAFETY: signal(2); the handler calls write(2) alone, which is async-signal-safe (signal-safety(7)), and keeps errno.
        let old = unsafe { libc::signal(signal, ours) };
        if old == libc::SIG_IGN {
            // SAFETY: signal(2) with SIG_IGN installs no handler of ours.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
    }
    Ok(File::from(reader))
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

/// Lets a child ignore the terminal's Ctrl-C and Ctrl-\, which reach every process of the group: ssh(1) keeps what it finds ignored,
/// so that the connection outlives the signal that is to be carried over it.
pub fn ignored_by(command: &mut Command) {
    let ignore = || {
        for signal in [libc::SIGINT, libc::SIGQUIT] {
            // SAFETY: signal(2) with SIG_IGN is async-signal-safe (signal-safety(7)); the child has one thread.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        Ok(())
    };
    // SAFETY: `ignore` runs between fork and exec and makes two async-signal-safe calls; it allocates nothing.
    unsafe { command.pre_exec(ignore) };
}
