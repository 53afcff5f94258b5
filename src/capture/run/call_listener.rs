//! Calls of a command that wait for an answer: seccomp_unotify(2).
#![allow(unsafe_code, reason = "these system calls have no safe wrapper")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::raw_calls::check;

/// The descriptor by which calls are heard of and answered. Once it is closed, each of them fails with ENOSYS.
#[derive(Debug)]
pub struct Listener(OwnedFd);

/// A call that waits for an answer.
#[derive(Debug, Clone, Copy)]
pub struct WaitingCall {
    id: u64,
    /// The thread that made it, in the PID namespace of whoever listens.
    pub thread: u32,
    /// AUDIT_ARCH_* of the program that made it.
    pub arch: u32,
    pub number: u32,
    pub arguments: [u64; 6],
}

/// The answer to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The kernel carries it out, in the caller's context.
    GoOn,
    /// It fails with this error number.
    Fail(i32),
}

/// Adds a filter to this process, whose SECCOMP_RET_USER_NOTIF calls then wait for an answer; one that was heard of is interrupted by nothing
/// but a fatal signal (`SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV`). Needs CAP_SYS_ADMIN, or `no_new_privs`.
///
/// # Errors
/// EBUSY if a filter of this process has a listener already; EINVAL before Linux 5.19.
pub fn listen(steps: &mut [libc::sock_filter]) -> io::Result<Listener> {
    let len = u16::try_from(steps.len()).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG))?;
    let program = libc::sock_fprog { len, filter: steps.as_mut_ptr() };
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    // SAFETY: seccomp(2) reads the program, whose length is that of `steps`; both live through the call.
    let fd = check(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) })?;
    let fd = RawFd::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: a descriptor that was just made, close-on-exec, and that nobody else has.
    Ok(Listener(unsafe { OwnedFd::from_raw_fd(fd) }))
}

impl Listener {
    /// Makes the kernel hand the processor from the caller to this process and back (SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP, Linux 6.6). An answer
    /// takes longer without.
    pub fn wake_in_turn(&self) {
        const SYNC_WAKE_UP: u64 = 1;
        // SAFETY: this ioctl takes a number, and touches no memory.
        unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP) };
    }

    /// Waits for the next call.
    ///
    /// # Errors
    /// ENOENT if its caller was killed meanwhile.
    pub fn next(&self) -> io::Result<WaitingCall> {
        // SAFETY: a seccomp_notif holds numbers alone; the kernel wants it zeroed.
        let mut found: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: SECCOMP_IOCTL_NOTIF_RECV writes one seccomp_notif, whose size is part of the ioctl's number.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut found) }.into())?;
        let data = found.data;
        Ok(WaitingCall {
            id: found.id,
            thread: found.pid,
            arch: data.arch,
            number: data.nr.cast_unsigned(),
            arguments: data.args,
        })
    }

    /// Answers a call. A caller that is gone needs no answer.
    pub fn answer(&self, call: &WaitingCall, answer: Answer) {
        let go_on = u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).unwrap_or(1);
        let (error, flags) = match answer {
            Answer::GoOn => (0, go_on),
            Answer::Fail(errno) => (-errno, 0),
        };
        let answer = libc::seccomp_notif_resp { id: call.id, val: 0, error, flags };
        // SAFETY: SECCOMP_IOCTL_NOTIF_SEND reads one seccomp_notif_resp, which lives through the call.
        unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer) };
    }

    /// True if the call still waits: its thread lives, and has still the number that the call tells.
    pub fn still_waits(&self, call: &WaitingCall) -> bool {
        // SAFETY: SECCOMP_IOCTL_NOTIF_ID_VALID reads one number, which lives through the call.
        unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const call.id) == 0 }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<OwnedFd> for Listener {
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

/// The longest path that a program may pass, with its NUL: PATH_MAX.
const PATH_MAX: usize = 4096;

/// Reads a path in another process's memory, without its NUL: process_vm_readv(2).
///
/// # Errors
/// EFAULT, ENAMETOOLONG; EPERM if this process may not look into that one (ptrace(2), "access mode checking").
pub fn path_of(thread: u32, address: u64) -> io::Result<Vec<u8>> {
    const PAGE: u64 = 4096;
    let mut text = Vec::new();
    while text.len() < PATH_MAX {
        // Page by page: what follows the end may not be there.
        let from = address.checked_add(text.len() as u64).ok_or_else(|| io::Error::from_raw_os_error(libc::EFAULT))?;
        let left_of_page = usize::try_from(PAGE - from % PAGE).unwrap_or(1);
        let mut piece = [0_u8; PATH_MAX];
        let piece = &mut piece[..left_of_page.min(PATH_MAX - text.len())];
        let got = read_memory(thread, from, piece)?;
        let read = &piece[..got];
        let end = read.iter().position(|byte| *byte == 0);
        text.extend_from_slice(&read[..end.unwrap_or(got)]);
        match end {
            Some(_) => return Ok(text),
            None if got == 0 => return Err(io::Error::from_raw_os_error(libc::EFAULT)),
            None => {}
        }
    }
    Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG))
}

/// Reads `len` bytes of another process's memory. Errors: as [`path_of`].
pub fn bytes_of(thread: u32, address: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let got = read_memory(thread, address, &mut bytes)?;
    if got == len { Ok(bytes) } else { Err(io::Error::from_raw_os_error(libc::EFAULT)) }
}

/// Reads at most `into.len()` bytes of another process's memory; returns their number.
fn read_memory(thread: u32, from: u64, into: &mut [u8]) -> io::Result<usize> {
    let from = usize::try_from(from).map_err(|_| io::Error::from_raw_os_error(libc::EFAULT))?;
    let ours = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let theirs = libc::iovec { iov_base: std::ptr::without_provenance_mut(from), iov_len: into.len() };
    // SAFETY: process_vm_readv(2) writes at most `into.len()` bytes, into `into`; the other address is of the other process.
    let got = unsafe { libc::process_vm_readv(thread.cast_signed(), &raw const ours, 1, &raw const theirs, 1, 0) };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}
