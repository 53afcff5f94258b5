//! Writes out content without waiting for the journal: a later fsync(2) has little left to do.
#![allow(unsafe_code, reason = "sync_file_range(2) has no safe wrapper")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use super::dir::Dir;

/// Writes a file's content out and waits for it. Makes nothing durable by itself: sync_file_range(2), "Warning".
///
/// Errors: those of writing; fsync does not report them again. A file system that lacks the call writes out in fsync.
pub fn write_out(file: &File) -> io::Result<()> {
    let how = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: sync_file_range(2) takes numbers and touches no memory of ours; the descriptor is open while `file` is borrowed.
    if unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, how) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EINVAL | libc::ESPIPE) => Ok(()),
        _ => Err(error),
    }
}

/// Writes out all dirty data on a directory's file system, so that a later sync has little left to do. Promises nothing: an error is
/// reported to those who sync through a descriptor of their own, opened before the writes (syncfs(2), "Errors"). `dir` must not be the
/// descriptor of such a sync, which would then miss the error.
pub fn write_all_out(dir: &Dir) {
    let _told_elsewhere = rustix::fs::syncfs(dir);
}
