//! Why a verb ended early, ready to be shown: the same facts from every room's errors.

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::shown::{Names, cut};
use super::text::{filled, grouped};
use super::visible;
use crate::error::{Failure, IoError, Kind, recant};
use crate::fs::TooLarge;
use crate::fs::path::AbsPath;

/// Three lines at most: what happened to which path, what is true now, what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Decides the exit status.
    #[serde(serialize_with = "kind_word")]
    pub kind: Kind,
    /// What was to be done, on what, and what stood against it.
    pub message: String,
    /// The path that it is about.
    pub path: Option<String>,
    /// What is true now.
    pub state: Option<String>,
    /// What to do.
    pub remedy: Option<String>,
    /// The paths that stand against it, each with its reason, where there are several.
    #[serde(skip_serializing_if = "<[Against]>::is_empty")]
    pub paths: Box<[Against]>,
    /// What kept a call from writing.
    #[serde(skip)]
    pub barrier: Option<Barrier>,
}

/// What keeps a file system from being written to.
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

/// One path that stands against what was to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Against {
    /// The path, as it stands in a message.
    pub path: String,
    /// Why.
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
    /// One that belongs to no room.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), path: None, state: None, remedy: None, paths: Box::default(), barrier: None }
    }

    /// The same where `done` was done before it.
    pub fn after(self, done: &str) -> Self {
        let own = self.state.as_deref().filter(|state| *state != "nothing was changed");
        let state = format!("{done}; {}", own.unwrap_or("nothing else was changed"));
        Self { kind: Kind::LeftOut, state: Some(state), ..self }
    }

    /// Refused, nothing changed.
    pub fn refused(message: impl Into<String>) -> Self {
        Self { state: Some("nothing was changed".into()), ..Self::new(Kind::Refused, message) }
    }

    /// With what to do.
    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// With the path that it is about.
    pub fn path(self, path: impl ToString) -> Self {
        Self { path: Some(path.to_string()), ..self }
    }

    /// What keeps a file system from being written to has one remedy whatever the verb was about to do. Of recant's own store
    /// the path alone does not tell that it is the store's, nor that another one can be named.
    pub fn barred(self, store: &AbsPath) -> Self {
        let path = self.path.as_deref().and_then(|path| AbsPath::parse(path).ok());
        // Above it, where it could not be made.
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

    /// What keeps recant from a place in the tree.
    fn of_tree(self) -> Self {
        let Some(path) = &self.path else { return self };
        let remedy = match self.barrier {
            Some(Barrier::Full) => format!("make room on the file system of {path}, or raise the quota there, and try again"),
            Some(Barrier::ReadOnly) => format!("mount the file system of {path} for writing, and try again"),
            // Which right is missing the message tells.
            Some(Barrier::NotYours | Barrier::Attribute) | None => return self,
        };
        self.remedy(remedy)
    }

    /// For standard error, without the last newline. The first `most` of the paths that stand against it are named, as they read for people;
    /// of the rest, how many they are. With `fill` no line but the remedy, which may be a command, is longer than 80 columns.
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
        for line in state.into_iter().chain(self.remedy.as_deref().map(one_line)) {
            text.push_str("\n        ");
            text.push_str(&line);
        }
        text
    }
}

/// A name with a newline in it must not look like another line of the report, nor order a terminal about.
fn one_line(text: &str) -> String {
    let line = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    visible::message(&line).into_owned()
}

impl Barrier {
    /// By the call at the bottom of an error.
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

impl<E: Failure + 'static> From<E> for Problem {
    fn from(error: E) -> Self {
        Self {
            kind: error.kind(),
            message: error.to_string(),
            path: error.path(),
            state: error.state(),
            remedy: error.remedy(),
            paths: Box::default(),
            barrier: Barrier::of(&error),
        }
    }
}

impl From<IoError> for Problem {
    fn from(error: IoError) -> Self {
        Self { barrier: Barrier::of(&error), ..Self::refused(error.to_string()).path(&error.path) }
    }
}
