//! The end of a call.

use crate::error::{Error, Kind, Reason};

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
    /// The end after a problem. If a command was not started, one that scripts can tell from the command's own; if a signal came and nothing
    /// was changed, the status of a process that died of it.
    pub fn by(problem: &Error) -> Self {
        let says_it = matches!(problem.kind(), Kind::NotFound | Kind::NotExecutable);
        if problem.reason() == Some(&Reason::NotStarted) && !says_it {
            return Ended::With(Kind::NoCapture);
        }
        match crate::fs::status() {
            Some(status) if problem.kind() == Kind::Refused => Ended::Asked(status),
            _ => Ended::With(problem.kind()),
        }
    }
}
