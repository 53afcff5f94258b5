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

/// A read lease: nobody can open the file for writing, or cut it, until this is dropped. They wait for that, 45 seconds at most
/// (/proc/sys/fs/lease-break-time), so that it is to be held for a moment only.
#[derive(Debug)]
pub struct Lease<'f> {
    file: &'f File,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // SAFETY: fcntl(2) with F_SETLEASE takes an int and touches no memory of ours; the descriptor is open while the file is borrowed.
        unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) };
    }
}

/// Asks for a read lease: fcntl(2), "A read lease can be placed only on a file descriptor that is opened read-only", refused with
/// EAGAIN while anybody has the file open for writing. `file` must be open for reading only. Gives the lease, or what else it told.
pub fn lease(file: &File) -> io::Result<Result<Lease<'_>, Writers>> {
    // SAFETY: as above.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) } == 0 {
        return Ok(Ok(Lease { file }));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN) => Ok(Err(Writers::Some)),
        Some(libc::EACCES | libc::EINVAL | libc::EOPNOTSUPP | libc::ENOSYS) => Ok(Err(Writers::Unknown)),
        _ => Err(error),
    }
}

/// Whether somebody has it open for writing: a lease that is given back at once.
pub fn writers(file: &File) -> io::Result<Writers> {
    Ok(lease(file)?.err().unwrap_or(Writers::None))
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
