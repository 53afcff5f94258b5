//! The one error of the crate, which the library shows as it is: the act, the path, the reason, what is true now, what to do, and the
//! [`Kind`], which decides the exit status. A leaf: it knows no room. Rooms have functions that make their errors, in their own words.
//! Callers branch on the [`Kind`], on a [`Reason`] or on the system call's own error ([`Error::io`]), never on a text.

use std::any::Any;
use std::borrow::Cow;
use std::fmt::{self, Display};
use std::io;
use std::sync::OnceLock;

use serde::{Serialize, Serializer};

use crate::remedy::{Command, Remedy};

/// The kind of an error. The program makes its exit status of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Refused, or a system call failed; nothing changed.
    Refused,
    /// The program alone: its arguments are wrong.
    Usage,
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
    /// The program's `run` alone: the capture could not be set up; the command was not started.
    NoCapture,
    /// The program's `run` alone: the command can't be executed.
    NotExecutable,
    /// The program's `run` alone: there is no such command.
    NotFound,
}

/// The error of an act that was not done, or not in full.
///
/// Its text names the act, the path and the reason. If there are several paths, it has a line for each.
pub struct Error(Box<Facts>);

struct Facts {
    kind: Kind,
    message: String,
    /// The offset in the message at which the bare reason begins.
    why: usize,
    /// True if the message begins with the session.
    of_session: bool,
    reason: Option<Reason>,
    path: Option<String>,
    state: Option<String>,
    remedy: Option<Remedy>,
    source: Option<io::Error>,
    rows: Vec<Against>,
    /// The name for the rows, in the plural: "conflicts".
    called: &'static str,
    detail: Option<Box<dyn Any + Send + Sync>>,
}

/// A path in the way of the act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Against {
    /// The path, as printed in a message: with odd characters escaped.
    pub path: String,
    /// The reason, for people: what was expected there, and what is there.
    pub why: String,
}

impl Against {
    /// A path and the reason.
    pub(crate) fn new(path: impl Display, why: impl Into<String>) -> Self {
        Self { path: path.to_string(), why: why.into() }
    }
}

/// The state after an act that was refused.
const UNCHANGED: &str = "nothing was changed";

/// A reason that callers may tell apart, beside the kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// No session of that id or name, no snapshot of that number or label.
    Unknown {
        /// True if the message names similar ones.
        near: bool,
    },
    /// The key is no valid session id or name.
    BadKey,
    /// Another session has the name.
    Taken { by: String },
    /// The name is the last part of a session's id.
    IsId,
    /// A session's header is invalid.
    Garbled,
    /// The settings forbid to change a path.
    Denied,
    /// Something else stands there than was shown when it was picked.
    Stale,
    /// More files and directories than the limit of a snapshot.
    TooMany,
    /// The connection to another machine was cut.
    Cut,
    /// It has no recant of this protocol.
    NoRecant,
    /// A signal came before it had answered.
    Asked { signal: u8 },
    /// All that was done is undone.
    Undone,
    /// Undone, except for some paths.
    LeftBehind,
    /// The user's decision about an interrupted operation cannot be carried out.
    NotDecided,
    /// A command ran, and its changes are not collected.
    Uncollected,
    /// A command was not started.
    NotStarted,
    /// Nobody has decided about a session in the time that the call had.
    Undecided,
    /// A text that somebody wrote is not held: the remedy says where it is kept.
    Kept,
    /// The near side uses another protocol.
    OtherProtocol,
}

impl Error {
    /// Makes an error after which nothing was changed, but for what is done except for something: that has its own state. The message names
    /// the act and the reason.
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        let (message, state) = (message.into(), (kind != Kind::LeftOut).then(|| UNCHANGED.into()));
        Self(Box::new(Facts {
            kind,
            message,
            why: 0,
            of_session: false,
            reason: None,
            path: None,
            state,
            remedy: None,
            source: None,
            rows: Vec::new(),
            called: "",
            detail: None,
        }))
    }

    /// Makes the error of an act that was refused, so that nothing was changed.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(Kind::Refused, message)
    }

    /// Makes the error of a call whose arguments are wrong. That nothing was changed goes without saying.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message).without_state()
    }

    /// Makes an error after which nothing was changed: "PATH: WHY".
    pub(crate) fn at(kind: Kind, path: impl Display, why: impl Display) -> Self {
        let path = path.to_string();
        Self::led(kind, &path, why).with_path(path)
    }

    /// Makes an error after which nothing was changed: "LEAD: WHY". [`Error::why`] is without the lead.
    pub(crate) fn led(kind: Kind, lead: &str, why: impl Display) -> Self {
        let mut error = Self::new(kind, format!("{lead}: {why}"));
        error.0.why = lead.len() + 2;
        error
    }

    /// Makes the error of a stored file that is invalid: "PATH: WHAT is damaged: WHY".
    pub(crate) fn damaged(path: impl Display, what: &str, why: impl Display) -> Self {
        let mut error = Self::at(Kind::Damaged, path, format_args!("{what} is damaged: {why}"));
        error.0.why += what.len() + " is damaged: ".len();
        error
    }

    /// Makes an error after which nothing was changed: paths and reasons. `called` names several: "conflicts".
    pub(crate) fn of_rows(kind: Kind, called: &'static str, rows: Vec<Against>) -> Self {
        let mut error = match &rows[..] {
            [one] => Self::at(kind, &one.path, &one.why),
            [] => Self::new(kind, format!("no {called}")),
            [first, ..] => Self::new(kind, format!("{} {called}", rows.len())).with_path(&first.path),
        };
        error.0.called = called;
        if rows.len() > 1 {
            error.0.rows = rows;
        }
        error
    }

    /// Adds the paths in the way, which the message only counts.
    pub(crate) fn with_rows(mut self, rows: Vec<Against>) -> Self {
        self.0.rows = rows;
        self
    }

    /// Adds a value that the room can read again: [`Error::detail`].
    pub(crate) fn with_detail(mut self, detail: impl Any + Send + Sync) -> Self {
        self.0.detail = Some(Box::new(detail));
        self
    }

    /// Makes an error after which nothing was changed: "session ID: WHY". [`Error::in_session`] is without the session.
    pub(crate) fn of_session(kind: Kind, id: impl Display, why: impl Display) -> Self {
        let mut error = Self::led(kind, &format!("session {id}"), why);
        error.0.of_session = true;
        error
    }

    /// Sets another message. The path and the paths in the way stay.
    pub(crate) fn with_message(mut self, message: impl Into<String>) -> Self {
        (self.0.message, self.0.why, self.0.of_session) = (message.into(), 0, false);
        self
    }

    /// Puts words around the message, which goes without its session. [`Error::why`] is as before, with `after`.
    pub(crate) fn between(mut self, before: &str, after: &str) -> Self {
        let why = self.why().len() + after.len();
        let message = format!("{before}{}{after}", self.in_session());
        (self.0.why, self.0.of_session) = (message.len() - why, false);
        self.0.message = message;
        self
    }

    /// Adds to the state that `done` was done before.
    pub(crate) fn after(self, done: &str) -> Self {
        let own = self.state().filter(|state| *state != UNCHANGED);
        let state = format!("{done}; {}", own.unwrap_or("nothing else was changed"));
        self.with_kind(Kind::LeftOut).with_state(state)
    }

    /// Sets the path, as printed in the message.
    pub(crate) fn with_path(mut self, path: impl Display) -> Self {
        self.0.path = Some(path.to_string());
        self
    }

    /// Names `path` in place of `temporary`, the name of what is made ready for it.
    pub(crate) fn instead_of(mut self, temporary: &str, path: impl Display) -> Self {
        let path = path.to_string();
        let (before, reason) = self.0.message.split_at(self.0.why);
        let (before, reason) = (before.replace(temporary, &path), reason.replace(temporary, &path));
        self.0.why = before.len();
        self.0.message = before + &reason;
        self.with_path(path)
    }

    /// Sets what is true now, if that is more than that nothing was changed.
    pub(crate) fn with_state(mut self, state: impl Into<String>) -> Self {
        self.0.state = Some(state.into());
        self
    }

    /// Removes what is true now.
    pub(crate) fn without_state(self) -> Self {
        self.with_state_if(None)
    }

    /// Sets or removes what is true now.
    pub(crate) fn with_state_if(mut self, state: Option<String>) -> Self {
        self.0.state = state;
        self
    }

    /// Sets what to do.
    pub(crate) fn with_remedy(self, remedy: impl Into<Remedy>) -> Self {
        self.with_remedy_if(Some(remedy.into()))
    }

    /// Sets or removes what to do.
    pub(crate) fn with_remedy_if(mut self, remedy: Option<impl Into<Remedy>>) -> Self {
        self.0.remedy = remedy.map(Into::into);
        self
    }

    /// Sets a reason on which callers may branch.
    pub(crate) fn with_reason(mut self, reason: Reason) -> Self {
        self.0.reason = Some(reason);
        self
    }

    /// Sets the system call's error, with which the message ends.
    pub(crate) fn with_source(mut self, source: io::Error) -> Self {
        self.0.source = Some(source);
        self
    }

    /// Sets another kind.
    pub(crate) fn with_kind(mut self, kind: Kind) -> Self {
        self.0.kind = kind;
        self
    }

    /// The kind of the error.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The reason on which callers may branch, beside the kind.
    pub(crate) fn reason(&self) -> Option<&Reason> {
        self.0.reason.as_ref()
    }

    /// True if the call asked for a session or snapshot that does not exist.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self.0.reason, Some(Reason::Unknown { .. }))
    }

    /// The act and the reason; of several paths in the way, their number.
    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// The message, for whoever has named the session: without it.
    pub(crate) fn in_session(&self) -> &str {
        if self.0.of_session { self.why() } else { self.message() }
    }

    /// The message without the path, and without the name of what is damaged.
    pub(crate) fn why(&self) -> &str {
        &self.0.message[self.0.why..]
    }

    /// The first path that it is about, as printed in the text: with odd characters escaped.
    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }

    /// The facts after the error, such as "nothing was changed".
    pub fn state(&self) -> Option<&str> {
        self.0.state.as_deref()
    }

    /// The advice, in words of the program: a command, or an option of one. A command does not name the store: add `--store`.
    pub fn remedy(&self) -> Option<String> {
        self.advice().map(Remedy::to_string)
    }

    /// The advice, its words and commands apart.
    pub(crate) fn advice(&self) -> Option<&Remedy> {
        self.0.remedy.as_ref()
    }

    /// The paths in the way that the message only counts, each with its reason.
    pub(crate) fn rows(&self) -> &[Against] {
        &self.0.rows
    }

    /// The paths in the way, such as conflicts: those that the message counts, or the one that it names.
    pub fn against(&self) -> Vec<Against> {
        match self.path() {
            Some(path) if self.0.rows.is_empty() => vec![Against { path: path.to_owned(), why: self.why().to_owned() }],
            _ => self.0.rows.clone(),
        }
    }

    /// The name for several paths in the way: "conflicts".
    pub(crate) fn called(&self) -> &'static str {
        self.0.called
    }

    /// The value that a room added, if it is of this type.
    pub(crate) fn detail<T: Any>(&self) -> Option<&T> {
        self.0.detail.as_ref()?.downcast_ref()
    }

    /// Takes out the value that a room added; returns the error itself if there is none of this type.
    pub(crate) fn into_detail<T: Any>(mut self) -> Result<T, Self> {
        match self.0.detail.take().map(Box::<dyn Any + Send + Sync>::downcast) {
            Some(Ok(detail)) => Ok(*detail),
            other => {
                self.0.detail = other.and_then(Result::err);
                Err(self)
            }
        }
    }

    /// The kernel's error, if a system call failed.
    pub(crate) fn io(&self) -> Option<&io::Error> {
        self.0.source.as_ref()
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if !self.0.rows.is_empty() {
            f.write_str(":")?;
        }
        self.0.rows.iter().try_for_each(|row| write!(f, "\n{row}"))
    }
}

impl Display for Against {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.why)
    }
}

/// The object of docs/json.md, "Errors".
impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.told(self.advice()).serialize(serializer)
    }
}

/// An error for who can type no command: its remedy is told by other words for the commands, and is left out where there are none.
pub struct Untyped<'a, F>(pub &'a Error, pub F);

impl<F: Fn(&str) -> Option<&'static str>> Serialize for Untyped<'_, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let remedy = self.0.advice().and_then(|remedy| remedy.in_words_of(&self.1)).map(Remedy::from);
        self.0.told(remedy.as_ref()).serialize(serializer)
    }
}

/// An error as JSON: docs/json.md.
#[derive(Serialize)]
struct JsonError<'a> {
    kind: &'static str,
    message: &'a str,
    path: Option<&'a str>,
    state: Option<&'a str>,
    remedy: Option<&'a Remedy>,
    #[serde(skip_serializing_if = "<[Against]>::is_empty")]
    paths: Cow<'a, [Against]>,
}

impl Error {
    fn told<'a>(&'a self, remedy: Option<&'a Remedy>) -> JsonError<'a> {
        JsonError {
            kind: self.0.kind.word(),
            message: self.message(),
            path: self.path(),
            state: self.state(),
            remedy,
            // A conflict of one path has it in its message, too.
            paths: if self.0.kind == Kind::Conflict { Cow::Owned(self.against()) } else { Cow::Borrowed(self.rows()) },
        }
    }
}

impl Kind {
    /// Its word in JSON.
    fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Usage => "usage",
            Self::Conflict => "conflict",
            Self::LeftOut => "left_out",
            Self::Damaged => "damaged",
            Self::Busy => "busy",
            Self::Stuck => "stuck",
            Self::NoCapture => "no_capture",
            Self::NotExecutable => "not_executable",
            Self::NotFound => "not_found",
        }
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

/// The error of a library or of the process itself.
impl From<anyhow::Error> for Error {
    fn from(error: anyhow::Error) -> Self {
        let at_bottom = error.root_cause().downcast_ref::<io::Error>();
        let why = at_bottom.map_or_else(|| error.root_cause().to_string(), reason);
        Self::refused(format!("{error}: {why}"))
    }
}

/// An I/O error with the path and the act: "PATH: cannot ACT: reason".
#[derive(Debug, thiserror::Error)]
#[error("{path}: cannot {}: {}", whole(act), reason(source))]
pub struct IoError {
    pub path: String,
    /// The act, an infinitive: "read the directory".
    pub act: &'static str,
    /// The kernel's error.
    pub source: io::Error,
}

/// An act that ends in a preposition gets its object: "look at it".
fn whole(act: &str) -> Cow<'_, str> {
    let last = act.rsplit(' ').next().unwrap_or(act);
    let is_open = ["of", "at", "with", "to", "on", "for", "in", "below", "by", "from"].contains(&last);
    if is_open { Cow::Owned(format!("{act} it")) } else { Cow::Borrowed(act) }
}

impl IoError {
    /// The kernel's error number, if there is one.
    pub fn errno(&self) -> Option<i32> {
        self.source.raw_os_error()
    }

    /// The reason alone, as it stands at the end of the message.
    pub fn why(&self) -> String {
        reason(&self.source)
    }

    /// The kind of the system call's error.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    /// Of opening a directory: there is none of that path now. A part of it is missing, is no directory, or is a link.
    pub fn leads_nowhere(&self) -> bool {
        matches!(self.errno(), Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP))
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

/// The options that a command in a message repeats: [`set_call`].
static CALL: OnceLock<String> = OnceLock::new();

/// Sets, once a process, the options that every command in a message repeats (`--store DIR`, `-H HOST`): without them it would act on
/// another store or machine. `options` are quoted for a shell. Later calls change nothing.
pub fn set_call(options: String) {
    CALL.get_or_init(|| options);
}

/// The start of a command in a message: `recant` with the options of [`set_call`].
pub fn recant() -> String {
    match CALL.get().filter(|options| !options.is_empty()) {
        Some(options) => format!("recant {options}"),
        None => "recant".into(),
    }
}

/// A recant command for a message: `diff k3fa` gives `recant diff k3fa`, with the options of [`set_call`] before the verb.
pub fn command(words: impl Display) -> Command {
    Command::of(&recant(), words)
}

/// A hint for acts that need root: root is refused the store of another user.
pub const BY_ROOT: &str = "root can, once the store is its own: chown -R 0 STORE, and back afterwards";

/// Quotes `word` for a shell. It stays as it is if no character of it is special. If it is not UTF-8, or contains what may not show, it is
/// written as `$'…'` of bash, zsh and ksh.
pub fn shell_word(word: &[u8]) -> Cow<'_, str> {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_./:@%+=,-".contains(b);
    let seen = |c: char| if c.is_ascii() { !c.is_control() } else { c.is_alphanumeric() };
    match std::str::from_utf8(word) {
        Ok(text) if !word.is_empty() && word.iter().all(plain) => Cow::Borrowed(text),
        Ok(text) if text.chars().all(seen) => Cow::Owned(format!("'{}'", text.replace('\'', r"'\''"))),
        _ => Cow::Owned(format!("$'{}'", word.escape_ascii())),
    }
}

/// Adds the path and the act to an error. An error of [`fs`](crate::fs) has both: there it is for another act, or for the path that the
/// user knows, in place of a name of recant's own.
pub trait At<T> {
    /// `act` is an infinitive ("read the directory"), `path` its object. Costs nothing where there is no error.
    fn at(self, act: &'static str, path: impl Display) -> Result<T, IoError>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, act: &'static str, path: impl Display) -> Result<T, IoError> {
        self.map_err(|source| IoError { path: path.to_string(), act, source: source.into() })
    }
}

/// In other words than the door's.
impl<T> At<T> for Result<T, IoError> {
    fn at(self, act: &'static str, path: impl Display) -> Result<T, IoError> {
        self.map_err(|error| IoError { path: path.to_string(), act, ..error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_except_for_something_does_not_say_that_nothing_was_changed() {
        assert_eq!(Error::new(Kind::LeftOut, "done, but not told").state(), None);
        assert_eq!(Error::new(Kind::Busy, "busy").after("3 are done").state(), Some("3 are done; nothing else was changed"));
    }

    #[test]
    fn a_shell_reads_a_word_back_as_it_was() {
        for word in [&b"/srv/a-b_c"[..], b"a b", b"it's", b"$(id)", b"", b"\xff\n", b"~/x", b"a\\b'\x01", "s\u{e4}".as_bytes()] {
            let text = format!("printf %s {}", shell_word(word));
            let read = crate::fs::command("bash").args(["-c", &text]).output().expect("bash");
            assert_eq!(read.stdout, word, "{text}");
        }
    }
}
