//! Sockets by directory and name: the path of a socket has at most 107 bytes (unix(7)), which one in a store may exceed.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use super::dir::Entry;
use crate::error::{At, IoError};

/// Connects to the socket at `at`.
///
/// # Errors
/// There is none, or nobody listens: ECONNREFUSED.
pub fn connect(at: Entry<'_>) -> Result<UnixStream, IoError> {
    UnixStream::connect(by_descriptor(at)).at("connect to", at)
}

/// A short path that leads to `at` while its directory is held open.
pub(super) fn by_descriptor(at: Entry<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", at.dir.as_fd().as_raw_fd())).join(OsStr::from_bytes(at.name))
}
