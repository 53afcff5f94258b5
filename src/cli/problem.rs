//! The error of a verb, ready to be shown: the same facts from every room's errors.

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::text::{filled, filled_remedy, grouped};
use crate::diff::shown::{Names, cut};
use crate::diff::visible;
use crate::error::{Error, IoError, Kind, reason, recant};
use crate::fs::TooLarge;
use crate::fs::path::AbsPath;

/// An error in three lines at most: what happened to which path, what is true now, what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    #[serde(serialize_with = "kind_word")]
    pub kind: Kind,
    /// The act, its object, and the reason why it failed.
    pub message: String,
    pub path: Option<String>,
    /// The facts after the error.
    pub state: Option<String>,
    /// The advice, a command if there is one.
    pub remedy: Option<String>,
    /// The paths in the way, each with its reason, if there are several.
    #[serde(skip_serializing_if = "<[Against]>::is_empty")]
    pub paths: Box<[Against]>,
    /// The reason why a file system could not be written to.
    #[serde(skip)]
    pub barrier: Option<Barrier>,
}

/// A reason why a file system cannot be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Barrier {
    /// No room, or no quota.
    Full,
    /// Mounted for reading only.
    ReadOnly,
    /// Not permitted.
    NotYours,
    /// An extended attribute is larger than the file system keeps.
    Attribute,
}

/// A path in the way of the act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Against {
    /// The path, as printed in a message.
    pub path: String,
    pub why: String,
}

fn kind_word<S: serde::Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match kind {
        Kind::Refused => "refused",
        Kind::Usage => "usage",
        Kind::Conflict => "conflict",
        Kind::LeftOut => "left_out",
        Kind::Damaged => "damaged",
        Kind::Busy => "busy",
        Kind::Stuck => "stuck",
        Kind::NoCapture => "no_capture",
        Kind::NotExecutable => "not_executable",
        Kind::NotFound => "not_found",
    })
}

impl Problem {
    /// An error that belongs to no room.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), path: None, state: None, remedy: None, paths: Box::default(), barrier: None }
    }

    /// Adds to the state that `done` was done before.
    pub fn after(self, done: &str) -> Self {
        let own = self.state.as_deref().filter(|state| *state != "nothing was changed");
        let state = format!("{done}; {}", own.unwrap_or("nothing else was changed"));
        Self { kind: Kind::LeftOut, state: Some(state), ..self }
    }

    /// An error that refused, so that nothing was changed.
    pub fn refused(message: impl Into<String>) -> Self {
        Self { state: Some("nothing was changed".into()), ..Self::new(Kind::Refused, message) }
    }

    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    pub fn path(self, path: impl ToString) -> Self {
        Self { path: Some(path.to_string()), ..self }
    }

    /// Adds the remedy for a barrier, which is the same for all verbs. For the store it says what the path alone would not tell: that it is
    /// the store's, and that another store can be named.
    pub fn barred(self, store: &AbsPath) -> Self {
        let path = self.path.as_deref().and_then(|path| AbsPath::parse(path).ok());
        // A directory above the store, if the store could not be made.
        let is_its = |path: AbsPath| path.is_under(store) || store.is_under(&path) && !store.as_path().exists();
        if self.remedy.is_some() {
            return self;
        }
        if !path.is_some_and(is_its) {
            return self.of_tree();
        }
        const OTHER: &str = "or use another store: --store DIR, RECANT_STORE";
        let remedy = match self.barrier {
            Some(Barrier::Full) => {
                format!(
                    "make room where the store is, {store}: {recant} status tells what a prune frees; {OTHER}",
                    recant = recant()
                )
            }
            Some(Barrier::ReadOnly) => {
                format!("the store, {store}, is on a read-only file system: mount it for writing, {OTHER}")
            }
            Some(Barrier::NotYours) => format!("the store, {store}, has to be yours to write to, {OTHER}"),
            Some(Barrier::Attribute) => "use a store on the file system of the file: --store DIR, RECANT_STORE".into(),
            None => return self,
        };
        self.remedy(remedy)
    }

    /// Adds the remedy for a barrier on the tree.
    fn of_tree(self) -> Self {
        let Some(path) = &self.path else { return self };
        let remedy = match self.barrier {
            Some(Barrier::Full) => format!("make room on the file system of {path}, or raise the quota there, and try again"),
            Some(Barrier::ReadOnly) => format!("mount the file system of {path} for writing, and try again"),
            // The message tells which right is missing.
            Some(Barrier::NotYours | Barrier::Attribute) | None => return self,
        };
        self.remedy(remedy)
    }

    /// The text for standard error, without the last newline. Names the first `most` paths that prevent it, as people read them, and
    /// counts the others. With `fill`, lines are at most 80 columns wide, but for commands.
    pub fn text(&self, color: bool, names: &Names, most: usize, fill: bool) -> String {
        let broken = |line: String| if fill { filled(&line) } else { line };
        let style = if color { Style::new().bold().fg_color(Some(AnsiColor::Red.into())) } else { Style::new() };
        let mut text = String::new();
        let (shown, more) = cut(self.paths.len(), most);
        for Against { path, why } in &self.paths[..shown] {
            text.push_str(&broken(one_line(&format!("{}: {why}", names.show_text(path)))));
            text.push('\n');
        }
        if more > 0 {
            text.push_str(&format!("… and {} more: -v names them all\n", grouped(more as u64)));
        }
        text.push_str(&format!("{style}recant:{style:#} {}", broken(one_line(&self.message))));
        let state = self.state.as_deref().map(|state| broken(one_line(state)));
        let remedy = self.remedy.as_deref().map(one_line).map(|line| if fill { filled_remedy(&line) } else { line });
        for line in state.into_iter().chain(remedy) {
            text.push_str("\n        ");
            text.push_str(&line);
        }
        text
    }
}

/// Joins lines and shows control characters, so that a name cannot look like another line of the report or control a terminal.
fn one_line(text: &str) -> String {
    let line = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    visible::message(&line).into_owned()
}

impl Barrier {
    /// The barrier by the system call at the bottom of an error.
    pub fn of(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        let mut below = std::iter::successors(Some(error), |error| error.source());
        let at_bottom = below.find_map(|error| error.downcast_ref::<std::io::Error>())?;
        if at_bottom.get_ref().is_some_and(|error| error.is::<TooLarge>()) {
            return Some(Self::Attribute);
        }
        match at_bottom.raw_os_error()? {
            libc::ENOSPC | libc::EDQUOT => Some(Self::Full),
            libc::EROFS => Some(Self::ReadOnly),
            libc::EACCES | libc::EPERM => Some(Self::NotYours),
            _ => None,
        }
    }
}

impl From<&Error> for Problem {
    fn from(error: &Error) -> Self {
        Self {
            kind: error.kind(),
            message: error.to_string(),
            path: error.path().map(Into::into),
            state: error.state().map(Into::into),
            remedy: error.remedy().map(Into::into),
            paths: Box::default(),
            barrier: Barrier::of(error),
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

/// An error of a library or the process itself at the edge: no path of the user's is in it.
impl From<anyhow::Error> for Problem {
    fn from(error: anyhow::Error) -> Self {
        let at_bottom = error.root_cause().downcast_ref::<std::io::Error>();
        let why = at_bottom.map_or_else(|| error.root_cause().to_string(), reason);
        Self::refused(format!("{error}: {why}"))
    }
}

impl From<IoError> for Problem {
    fn from(error: IoError) -> Self {
        Error::from(error).into()
    }
}
