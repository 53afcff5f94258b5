//! What every room's errors have in common: a [`Kind`], which decides the exit status, and [`At`], which gives an I/O
//! error the path and the act that it belongs to. A leaf: it knows no room's errors.

use std::borrow::Cow;
use std::fmt::Display;
use std::io;
use std::sync::OnceLock;

/// Why a verb ended without having done all that it was asked. `cli::exit` maps it to the exit status.
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
    if error.kind() == io::ErrorKind::FileTooLarge {
        return "the file gets too large: a limit of the shell (ulimit -f) or of the file system".into();
    }
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

/// Options that a command in a message repeats: [`set_call`].
static CALL: OnceLock<String> = OnceLock::new();

/// Sets, once a process, the options that every command in a message repeats (`--store DIR`, `-H HOST`): without them it would do its
/// work in another store, or on another machine. `options` are words for a shell; a later call changes nothing.
pub fn set_call(options: String) {
    CALL.get_or_init(|| options);
}

/// `recant` as a command in a message begins: with the options of [`set_call`].
pub fn recant() -> String {
    match CALL.get().filter(|options| !options.is_empty()) {
        Some(options) => format!("recant {options}"),
        None => "recant".into(),
    }
}

/// A recant command for a message: `diff k3fa` gives `recant diff k3fa`, with those options before the verb.
pub fn command(words: impl Display) -> String {
    format!("{} {words}", recant())
}

/// Where root may do what its owner may not: the store of another user is refused to root, too.
pub const BY_ROOT: &str = "root can, once the store is its own: chown -R 0 STORE, and back afterwards";

/// `word` as a shell reads it back: as it is where nothing in it means anything to a shell, else in quotes. What is no UTF-8, or controls a
/// terminal, is in bash's, zsh's and ksh's `$'…'`.
pub fn shell_word(word: &[u8]) -> Cow<'_, str> {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_./:@%+=,-".contains(b);
    match std::str::from_utf8(word) {
        Ok(text) if !word.is_empty() && word.iter().all(plain) => Cow::Borrowed(text),
        Ok(text) if !text.contains(char::is_control) => Cow::Owned(format!("'{}'", text.replace('\'', r"'\''"))),
        _ => Cow::Owned(format!("$'{}'", word.escape_ascii())),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_a_word_back_as_it_was() {
        for word in [&b"/srv/a-b_c"[..], b"a b", b"it's", b"$(id)", b"", b"\xff\n", b"~/x", b"a\\b'\x01", "s\u{e4}".as_bytes()] {
            let text = format!("printf %s {}", shell_word(word));
            let read = std::process::Command::new("bash").args(["-c", &text]).output().expect("bash");
            assert_eq!(read.stdout, word, "{text}");
        }
    }
}
