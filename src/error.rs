//! What every room's errors have in common: a [`Kind`], which decides the exit status, and [`At`], which gives an I/O
//! error the path and the act that it belongs to. A leaf: it knows no room's errors.

use std::fmt::Display;
use std::io;

/// Why a verb ended without having done all that it was asked. `main.rs` maps it to the exit status (docs/ARCHITECTURE.md, Command line).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Refused or failed; nothing changed.
    Refused,
    /// The call's words are off.
    Usage,
    /// The tree does not hold what was expected; nothing changed.
    Conflict,
    /// Done, but something named was left out.
    LeftOut,
    /// The store is damaged where it was needed; nothing changed.
    Damaged,
    /// Another recant holds the session or the store.
    Busy,
    /// An interrupted operation can be neither finished nor undone now.
    Stuck,
    /// `run`: the capture could not be set up; the command was not started.
    NoCapture,
    /// `run`: the command can't be executed.
    NotExecutable,
    /// `run`: there is no such command.
    NotFound,
}

/// What a room's error tells beside its message: its kind, and the two further lines of a report.
pub trait Failure: std::error::Error {
    /// Decides the exit status.
    fn kind(&self) -> Kind;
    /// What is true now, e.g. "nothing was changed".
    fn state(&self) -> Option<String> {
        None
    }
    /// What to do, as a command where there is one.
    fn remedy(&self) -> Option<String> {
        None
    }
    /// The path that the error is about, as it stands in the message.
    fn path(&self) -> Option<String> {
        None
    }
}

/// An I/O error with the path and the act: "PATH: cannot ACT: reason".
#[derive(Debug, thiserror::Error)]
#[error("{path}: cannot {act}: {}", reason(source))]
pub struct IoError {
    /// The path, escaped for display.
    pub path: String,
    /// What was tried, an infinitive: "read the folder".
    pub act: &'static str,
    /// What the kernel said.
    pub source: io::Error,
}

impl IoError {
    /// The kernel's error number, where there is one.
    pub fn errno(&self) -> Option<i32> {
        self.source.raw_os_error()
    }
}

/// The kernel's words without "(os error N)".
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

/// Gives an error the path and the act that it belongs to.
pub trait At<T> {
    /// `act` is an infinitive ("read the folder"), `path` what it was done to.
    fn at(self, act: &'static str, path: impl Display) -> Result<T, IoError>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, act: &'static str, path: impl Display) -> Result<T, IoError> {
        self.map_err(|source| IoError { path: path.to_string(), act, source: source.into() })
    }
}
