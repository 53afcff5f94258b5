//! The end of a call.

use crate::error::{Error, Kind};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Done, or nothing to do.
    Done,
    /// Ended with this kind, which was reported.
    With(Kind),
    /// Ended with the status of the command that it ran.
    Command(u8),
    /// Ended with the status of a process that died of the signal which asked it to end.
    Asked(u8),
}

impl Ended {
    /// The end after a problem. If a signal came and nothing was changed, the status of a process that died of it.
    pub fn by(problem: &Error) -> Self {
        match crate::fs::interrupt::status() {
            Some(status) if problem.kind() == Kind::Refused => Ended::Asked(status),
            _ => Ended::With(problem.kind()),
        }
    }
}
