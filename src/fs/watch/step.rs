//! A change that is about to be made.

#[cfg(feature = "crash-points")]
use std::fmt;
use std::os::fd::BorrowedFd;

use crate::fs::dir::Entry;

/// One change that is about to be made; as a log line: `call directory/name [directory/name]`.
#[cfg(feature = "crash-points")]
pub struct Step<'a> {
    /// The system call's name, or that of a short run of calls that belong together.
    pub call: &'static str,
    pub on: On<'a>,
    /// The line outside this room that asked for it: it tells one sync from another.
    pub site: &'static std::panic::Location<'static>,
}

/// The target of a step.
#[cfg_attr(not(feature = "crash-points"), expect(dead_code, reason = "nobody looks at what no test watches"))]
pub enum On<'a> {
    /// One name in a directory.
    One(Entry<'a>),
    Two(Entry<'a>, Entry<'a>),
    /// An open object, and the path of its directory when it was opened: for messages only.
    Open(BorrowedFd<'a>, &'a std::path::Path),
}

#[cfg(feature = "crash-points")]
impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.on {
            On::One(a) => write!(f, "{} {a}", self.call),
            On::Two(a, b) => write!(f, "{} {a} {b}", self.call),
            On::Open(_, path) => write!(f, "{} {}", self.call, path.display()),
        }
    }
}
