//! Whether somebody has a file open for writing, asked by a read lease.
#![allow(unsafe_code, reason = "fcntl(F_SETLEASE) has no safe wrapper")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// What a lease told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// Nobody has it open for writing.
    None,
    /// Somebody has.
    Some,
    /// It cannot be told: not our file and no CAP_LEASE, or a file system without leases.
    Unknown,
}

/// Asks for a read lease and gives it back at once: fcntl(2), "A read lease can be placed only on a file descriptor that
/// is opened read-only", refused with EAGAIN while anybody has the file open for writing. `file` must be open for reading only.
pub fn writers(file: &File) -> io::Result<Writers> {
    let fd = file.as_raw_fd();
    // SAFETY: fcntl(2) with F_SETLEASE takes an int and touches no memory of ours; `fd` is open while `file` is borrowed.
    let taken = unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_RDLCK) };
    if taken == 0 {
        // SAFETY: as above. The lease ends here, before anybody can be made to wait for it.
        unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_UNLCK) };
        return Ok(Writers::None);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN) => Ok(Writers::Some),
        Some(libc::EACCES | libc::EINVAL | libc::EOPNOTSUPP | libc::ENOSYS) => Ok(Writers::Unknown),
        _ => Err(error),
    }
}

/// Ignores signals whose default action would end the process in the midst of an operation: SIGIO, of a lease that is broken in the moment
/// between taking it and giving it back, and SIGXFSZ, of a write over RLIMIT_FSIZE (`ulimit -f`), which fails with EFBIG then and is undone
/// as any other: setrlimit(2). What the process has set for them itself stays. Called once, at the start.
pub fn ignore_what_would_end_it() {
    for signal in [libc::SIGIO, libc::SIGXFSZ] {
        // SAFETY: sigaction(2) without an action writes the one in force to `now`, for which all zeros are valid; signal(2) with SIG_IGN
        // installs no handler of ours. Both fail for numbers that are no signal's alone.
        unsafe {
            let mut now: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &raw mut now) == 0 && now.sa_sigaction == libc::SIG_DFL {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
    }
}
