//! Why a verb ended early, ready to be shown: the same facts from every room's errors.

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::engine;
use crate::engine::conflict::Conflict;
use crate::error::{Failure, IoError, Kind};
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
    /// Every path that does not hold what was expected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<ConflictRow>,
}

/// A conflict in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConflictRow {
    /// The path.
    pub path: AbsPath,
    /// What was expected there.
    pub expected: String,
    /// What is there.
    pub found: String,
    /// The session that put it there, where one did.
    pub by: Option<String>,
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
    })
}

impl Problem {
    /// One that belongs to no room.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), path: None, state: None, remedy: None, conflicts: Vec::new() }
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

    /// The engine's, with its conflicts.
    pub fn of_engine(error: engine::Error) -> Self {
        let mut conflicts = Vec::new();
        if let engine::Error::Conflicts(found) = &error {
            let row = |c: &Conflict| ConflictRow {
                path: c.path.clone(),
                expected: c.expected.clone(),
                found: c.found.clone(),
                by: c.by.clone(),
            };
            conflicts = found.iter().map(row).collect();
        }
        Self { conflicts, ..error.into() }
    }

    /// For standard error, without the last newline.
    pub fn text(&self, color: bool) -> String {
        let style = if color { Style::new().bold().fg_color(Some(AnsiColor::Red.into())) } else { Style::new() };
        let mut text = format!("{style}recant:{style:#} ");
        // Several lines only where several paths are named, one each.
        let lines =
            [Some(&self.message), self.state.as_ref(), self.remedy.as_ref()].into_iter().flatten().flat_map(|part| part.lines());
        for (n, line) in lines.map(str::trim).filter(|line| !line.is_empty()).enumerate() {
            if n > 0 {
                text.push_str("\n        ");
            }
            text.push_str(line);
        }
        text
    }
}

impl<E: Failure> From<E> for Problem {
    fn from(error: E) -> Self {
        Self {
            kind: error.kind(),
            message: error.to_string(),
            path: error.path(),
            state: error.state(),
            remedy: error.remedy(),
            conflicts: Vec::new(),
        }
    }
}

impl From<IoError> for Problem {
    fn from(error: IoError) -> Self {
        Self::refused(error.to_string()).path(&error.path)
    }
}
