//! The one error of the library's interface.

use std::fmt;

use crate::error::{self, IoError};

/// The error of a call.
///
/// Its text names the act, the path and the reason. If there are several paths, it has a line for each.
#[derive(Debug, Clone)]
pub struct Error {
    kind: Kind,
    message: String,
    path: Option<String>,
    state: Option<String>,
    remedy: Option<String>,
}

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Refused, or a system call failed; nothing changed.
    Refused,
    /// The tree does not hold what was expected; nothing changed.
    Conflict,
    /// Done, except for something that [`Error::state`] names.
    LeftOut,
    /// The store is damaged where it was needed; nothing changed.
    Damaged,
    /// Another recant, or another thread, holds the session or the store; nothing changed.
    Busy,
    /// An operation that was cut off can be neither finished nor undone now.
    Stuck,
}

impl Error {
    /// The kind of the error.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The first path that it is about, as printed in the text: with odd characters escaped.
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// The facts after the error, such as "nothing was changed".
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// The advice, in words of the program: a command, or an option of one. A command does not name the store: add `--store`.
    pub fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }

    pub(super) fn refused(message: String, remedy: Option<String>) -> Self {
        Self { kind: Kind::Refused, message, path: None, state: Some("nothing was changed".into()), remedy }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

#[doc(hidden)]
impl From<error::Error> for Error {
    fn from(error: error::Error) -> Self {
        Self {
            kind: error.kind().into(),
            message: error.to_string(),
            path: error.path().map(Into::into),
            state: error.state().map(Into::into),
            remedy: error.remedy().map(Into::into),
        }
    }
}

#[doc(hidden)]
impl From<IoError> for Error {
    fn from(error: IoError) -> Self {
        error::Error::from(error).into()
    }
}

#[doc(hidden)]
impl From<error::Kind> for Kind {
    fn from(kind: error::Kind) -> Self {
        match kind {
            error::Kind::Conflict => Self::Conflict,
            error::Kind::LeftOut => Self::LeftOut,
            error::Kind::Damaged => Self::Damaged,
            error::Kind::Busy => Self::Busy,
            error::Kind::Stuck => Self::Stuck,
            error::Kind::Refused
            | error::Kind::Usage
            | error::Kind::NoCapture
            | error::Kind::NotExecutable
            | error::Kind::NotFound => Self::Refused,
        }
    }
}
