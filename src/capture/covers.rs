//! What lies over a directory of an ordinary user's run in which others have sockets and FIFOs, as data: `places::sockets` chooses, `space::cover` mounts.
//!
//! A read-only mount stops neither connect(2) nor a FIFO's open(2). An inode of an overlay is another one than that which a server is bound to, under whatever
//! name, and whenever it came: so a read-only overlay of the directory makes all of them dead. The kernel refuses a user the overlay of a directory with a mount
//! below it; such a one is put together from its names, in a tmpfs.

use crate::fs::path::AbsPath;

/// A directory that is covered.
#[derive(Debug, Clone)]
pub(super) struct Cover {
    pub path: AbsPath,
    /// What it is put together from, a directory before what is in it; `None` where one overlay does.
    pub parts: Option<Vec<Part>>,
}

/// One name in a directory that is put together, or in one of its directories that are, too.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// Its path below the covered directory.
    pub below: Vec<u8>,
    pub as_what: Lid,
}

/// What a name becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lid {
    /// A directory under a read-only overlay.
    Overlay,
    /// A directory with a mount below it, which is put together.
    Made,
    /// A directory that the user cannot enter: an empty one.
    Closed,
    /// The real one, with what is mounted in it: a file, a device, or a file system that makes no lower.
    Real { folder: bool },
    /// A link like it.
    Link,
    /// A socket or FIFO like it, that nobody has at its other end.
    Dead { fifo: bool },
}
