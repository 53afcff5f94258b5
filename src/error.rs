//! The one error of the crate: what was being done, to which path, why not, what is true now, what to do, and the [`Kind`], which decides
//! the exit status. A leaf: it knows no room. Rooms have functions that make the errors they need, in their own words; who calls them
//! branches on the [`Kind`], on a [`Reason`] or on the system call's own error ([`Error::io`]), never on a text.

use std::any::Any;
use std::borrow::Cow;
use std::fmt::{self, Display};
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

/// Why something was not done, or not all of it.
pub struct Error(Box<Facts>);

struct Facts {
    kind: Kind,
    message: String,
    /// Where in the message the bare reason begins.
    why: usize,
    reason: Option<Reason>,
    path: Option<String>,
    state: Option<String>,
    remedy: Option<String>,
    source: Option<io::Error>,
    rows: (&'static str, Vec<(String, String)>),
    detail: Option<Box<dyn Any + Send + Sync>>,
}

/// What a caller may have to tell apart beside the kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// No session of that id or name, no snapshot of that number or label.
    Unknown {
        /// Whether the message names some that it may be.
        near: bool,
    },
    /// What can be no session's id or name.
    BadKey,
    /// The name is that of another session.
    Taken {
        /// Its id.
        by: String,
    },
    /// The name is the last part of a session's id.
    IsId,
    /// A session's header cannot be believed.
    Garbled,
    /// More files and folders than the limit of a snapshot.
    TooMany,
    /// Another machine is not reached.
    NoConnection,
    /// The connection to it was cut.
    Cut,
    /// It does not answer, or not any more.
    NoAnswer,
    /// There is no recant of this protocol.
    NoRecant,
    /// There is none, and it cannot be put there.
    NotInstalled,
    /// sudo does not run it.
    NoSudo,
    /// What it was to read cannot be read here.
    NoInput,
    /// A signal came before it had answered.
    Asked {
        /// Its number.
        signal: u8,
    },
    /// What was ready was not let go on.
    Stopped,
    /// All that was done is undone.
    Undone,
    /// Undone, but for some paths.
    LeftBehind {
        /// Why it was undone.
        why: String,
    },
    /// What was decided of an interrupted operation cannot be done.
    NotDecided,
    /// A command ran, and what it changed is not made changes.
    Uncollected,
    /// The near side speaks another protocol.
    OtherProtocol,
}

impl Error {
    /// Nothing was changed. The message says what was to be done, and what stood against it.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        let state = Some("nothing was changed".into());
        let message = message.into();
        Self(Box::new(Facts {
            kind,
            message,
            why: 0,
            reason: None,
            path: None,
            state,
            remedy: None,
            source: None,
            rows: ("", Vec::new()),
            detail: None,
        }))
    }

    /// Nothing was changed: "PATH: WHY".
    pub fn at(kind: Kind, path: impl Display, why: impl Display) -> Self {
        let path = path.to_string();
        let mut error = Self::new(kind, format!("{path}: {why}"));
        error.0.why = path.len() + 2;
        error.0.path = Some(path);
        error
    }

    /// A stored file cannot be believed: "PATH: WHAT is damaged: WHY".
    pub fn damaged(path: impl Display, what: &str, why: impl Display) -> Self {
        let mut error = Self::at(Kind::Damaged, path, format_args!("{what} is damaged: {why}"));
        error.0.why += what.len() + " is damaged: ".len();
        error
    }

    /// Nothing was changed: paths and reasons, a line each. `what` they are is for their count: "3 conflicts".
    pub fn of_rows(kind: Kind, what: &'static str, rows: Vec<(String, String)>) -> Self {
        let lines: Vec<String> = rows.iter().map(|(path, why)| format!("{path}: {why}")).collect();
        let mut error = Self::new(kind, lines.join("\n"));
        error.0.path = rows.first().map(|(path, _)| path.clone());
        error.with_rows(what, rows)
    }

    /// With paths and reasons; `what` they are is for their count.
    pub fn with_rows(mut self, what: &'static str, rows: Vec<(String, String)>) -> Self {
        self.0.rows = (what, rows);
        self
    }

    /// With what a room wants to find in it again: [`Error::detail`].
    pub fn with_detail(mut self, detail: impl Any + Send + Sync) -> Self {
        self.0.detail = Some(Box::new(detail));
        self
    }

    /// With the path that it is about, as it stands in the message.
    pub fn with_path(mut self, path: impl Display) -> Self {
        self.0.path = Some(path.to_string());
        self
    }

    /// With what is true now, where that is more than that nothing was changed.
    pub fn with_state(mut self, state: impl Into<String>) -> Self {
        self.0.state = Some(state.into());
        self
    }

    /// Without a word of what is true now.
    pub fn without_state(mut self) -> Self {
        self.0.state = None;
        self
    }

    /// With what to do, as a command where there is one.
    pub fn with_remedy(self, remedy: impl Into<String>) -> Self {
        self.with_remedy_if(Some(remedy.into()))
    }

    /// The same where there is something to do, else without.
    pub fn with_remedy_if(mut self, remedy: Option<String>) -> Self {
        self.0.remedy = remedy;
        self
    }

    /// With what a caller may branch on.
    pub fn with_reason(mut self, reason: Reason) -> Self {
        self.0.reason = Some(reason);
        self
    }

    /// With the system call's error that its message ends in.
    pub fn with_source(mut self, source: io::Error) -> Self {
        self.0.source = Some(source);
        self
    }

    /// Of another kind.
    pub fn with_kind(mut self, kind: Kind) -> Self {
        self.0.kind = kind;
        self
    }

    /// Decides the exit status.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// What a caller may branch on beside the kind.
    pub fn reason(&self) -> Option<&Reason> {
        self.0.reason.as_ref()
    }

    /// Whether a session was asked for that is not there.
    pub fn is_unknown(&self) -> bool {
        matches!(self.0.reason, Some(Reason::Unknown { .. }))
    }

    /// The message without the path, and without what is damaged.
    pub fn why(&self) -> &str {
        &self.0.message[self.0.why..]
    }

    /// The path that it is about, as it stands in the message.
    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }

    /// What is true now.
    pub fn state(&self) -> Option<&str> {
        self.0.state.as_deref()
    }

    /// What to do, as a command where there is one.
    pub fn remedy(&self) -> Option<&str> {
        self.0.remedy.as_deref()
    }

    /// The paths that stand against it, each with its reason, and what they are.
    pub fn rows(&self) -> (&'static str, &[(String, String)]) {
        (self.0.rows.0, &self.0.rows.1)
    }

    /// What a room has put in, of its own type.
    pub fn detail<T: Any>(&self) -> Option<&T> {
        self.0.detail.as_ref()?.downcast_ref()
    }

    /// The same, taken out; else the error.
    pub fn into_detail<T: Any>(mut self) -> Result<T, Self> {
        match self.0.detail.take().map(Box::<dyn Any + Send + Sync>::downcast) {
            Some(Ok(detail)) => Ok(*detail),
            other => {
                self.0.detail = other.and_then(Result::err);
                Err(self)
            }
        }
    }

    /// What the kernel said, where a system call failed.
    pub fn io(&self) -> Option<&io::Error> {
        self.0.source.as_ref()
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.kind, self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.io().map(|error| error as _)
    }
}

impl From<IoError> for Error {
    fn from(error: IoError) -> Self {
        let message = error.to_string();
        Self::new(Kind::Refused, message).with_path(error.path).with_source(error.source)
    }
}

impl Failure for Error {
    fn kind(&self) -> Kind {
        self.kind()
    }

    fn state(&self) -> Option<String> {
        self.state().map(Into::into)
    }

    fn remedy(&self) -> Option<String> {
        self.remedy().map(Into::into)
    }

    fn path(&self) -> Option<String> {
        self.path().map(Into::into)
    }
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
