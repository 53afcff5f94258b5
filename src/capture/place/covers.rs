//! The covers over directories in which others have sockets and FIFOs, in an ordinary user's run, as data: `place::sockets` chooses,
//! `space::mount_covers` mounts.
//!
//! A read-only mount stops neither connect(2) nor a FIFO's open(2). An overlay's inode differs from the one that a server is bound to,
//! under any name and whenever it appeared. So a read-only overlay of the directory makes all of them dead. The kernel refuses a user the
//! overlay of a directory with a mount below it; such a directory is put together from its names, in a tmpfs.

use crate::fs::AbsPath;

#[derive(Debug, Clone)]
pub struct Cover {
    pub path: AbsPath,
    /// Its parts, each directory before its content; `None` if one overlay is enough.
    pub parts: Option<Vec<Part>>,
}

/// One name in a directory that is put together, or in a directory of it that is put together too.
#[derive(Debug, Clone)]
pub struct Part {
    pub below: Vec<u8>,
    pub as_what: Lid,
}

/// The ways to show a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lid {
    /// A directory under a read-only overlay.
    Overlay,
    /// A directory with a mount below it, which is put together.
    Made,
    /// An empty directory, for one that the user cannot enter.
    Closed,
    /// The real object, with what is mounted in it: a file, a device, or a file system that can't be a lower.
    Real {
        directory: bool,
    },
    Link,
    /// A copy of the socket or FIFO, with nobody at its other end.
    Dead {
        fifo: bool,
    },
}
