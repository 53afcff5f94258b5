//! The door of a run: a socket at which what runs inside asks recant, outside, what is held. It lies where the store is hidden, or in the store
//! that the run has there. The init binds it, and recant listens.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};

/// Its name, in the directory where it lies.
pub const NAME: &str = "door";

/// The connections that may wait to be taken.
const WAITING: i32 = 8;

/// A door that is closed until it is bound.
#[derive(Debug)]
pub struct Door(UnixListener);

impl Door {
    pub fn make() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        Ok(Self(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?.into()))
    }

    /// Binds it in a directory, in the place of an earlier run's; for the directory's owner alone.
    pub fn open_in(&self, dir: BorrowedFd<'_>) -> io::Result<()> {
        match rustix::fs::unlinkat(dir, NAME, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        bind(&self.0, &SocketAddrUnix::new(format!("/proc/self/fd/{}/{NAME}", dir.as_raw_fd()))?)?;
        rustix::fs::chmodat(dir, NAME, Mode::from_raw_mode(0o600), AtFlags::empty())?;
        Ok(listen(&self.0, WAITING)?)
    }

    /// Takes a connection; `None` if there is none.
    pub fn take(&self) -> Option<UnixStream> {
        let (asked, _) = self.0.accept().ok()?;
        asked.set_nonblocking(false).ok()?;
        Some(asked)
    }
}

impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
