//! Finds out by a read lease whether somebody has a file open for writing.
#![allow(unsafe_code, reason = "fcntl(F_SETLEASE) has no safe wrapper")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// The answer of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// Nobody has it open for writing.
    None,
    Some,
    /// Unknown: not our file and no CAP_LEASE, or a file system without leases.
    Unknown,
}

/// A read lease: nobody can open the file for writing, or cut it, until this is released or the file is closed. They wait for that, at
/// most 45 seconds (/proc/sys/fs/lease-break-time), so it is to be held only for a moment.
#[derive(Debug)]
pub struct Lease<'f> {
    file: &'f File,
}

impl Lease<'_> {
    /// Releases it while the file stays open.
    pub fn release(self) {
        // SAFETY: fcntl(2) with F_SETLEASE takes an int and touches no memory of ours; the descriptor is open while the file is borrowed.
        unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) };
    }
}

/// Takes a read lease: fcntl(2), "A read lease can be placed only on a file descriptor that is opened read-only". Refused with EAGAIN while
/// anybody has the file open for writing. `file` must be open for reading only. Returns the lease, or the other answer.
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

/// Finds out whether somebody has a file open for writing, by a lease that is released at once.
pub fn writers(file: &File) -> io::Result<Writers> {
    Ok(match lease(file)? {
        Ok(lease) => {
            lease.release();
            Writers::None
        }
        Err(writers) => writers,
    })
}

/// Ignores signals whose default action would end the process within an operation: SIGIO, of a lease broken before its release, and
/// SIGXFSZ, of a write over RLIMIT_FSIZE (`ulimit -f`), which then fails with EFBIG and is undone as any other: setrlimit(2). An action
/// that the process has set itself stays. Called once, at the start.
pub fn ignore_what_would_end_it() {
    for signal in [libc::SIGIO, libc::SIGXFSZ] {
        // SAFETY: sigaction(2) without an action writes the one in force to `now`, for which all zeros are valid; signal(2) with SIG_IGN
        // installs no handler of ours. Both fail only for invalid signal numbers.
        unsafe {
            let mut now: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &raw mut now) == 0 && now.sa_sigaction == libc::SIG_DFL {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests set up real files")]
mod tests {
    use super::*;
    use std::os::unix::fs::OpenOptionsExt;

    /// Opens it for writing, and does not wait for a lease: open(2), O_NONBLOCK.
    fn opened_for_writing(path: &std::path::Path) -> io::Result<File> {
        File::options().write(true).custom_flags(libc::O_NONBLOCK).open(path)
    }

    #[test]
    fn a_lease_lasts_until_it_is_released_or_its_file_closed() {
        ignore_what_would_end_it();
        let file = tempfile::NamedTempFile::new().expect("a file").into_temp_path();
        let open = || File::open(&file).expect("the file");
        let (one, other) = (open(), open());
        let Ok(Ok(lease_of_one)) = lease(&one) else { return println!("skipped: no leases here") };
        assert_eq!(opened_for_writing(&file).expect_err("a lease").kind(), io::ErrorKind::WouldBlock);
        lease_of_one.release();
        assert!(opened_for_writing(&file).is_ok(), "it was released");
        let Ok(Ok(_)) = lease(&other) else { panic!("nobody has it open for writing") };
        assert!(opened_for_writing(&file).is_err(), "the lease is dropped, and lasts");
        drop(other);
        let written = opened_for_writing(&file).expect("its file is closed");
        assert_eq!(writers(&one).expect("an answer"), Writers::Some);
        drop(written);
        assert_eq!(writers(&one).expect("an answer"), Writers::None);
        assert!(opened_for_writing(&file).is_ok(), "the one that asked has released it");
    }
}
