//! Why a verb ended early, ready to be shown: the same facts from every room's errors.

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::error::{Failure, IoError, Kind};

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
        Self { kind, message: message.into(), path: None, state: None, remedy: None, paths: Box::default() }
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

    /// For standard error, without the last newline.
    pub fn text(&self, color: bool) -> String {
        let style = if color { Style::new().bold().fg_color(Some(AnsiColor::Red.into())) } else { Style::new() };
        let mut text = String::new();
        for Against { path, why } in &self.paths {
            text.push_str(&one_line(&format!("{path}: {why}")));
            text.push('\n');
        }
        text.push_str(&format!("{style}recant:{style:#} {}", one_line(&self.message)));
        for line in [&self.state, &self.remedy].into_iter().flatten() {
            text.push_str("\n        ");
            text.push_str(&one_line(line));
        }
        text
    }
}

/// A name with a newline in it must not look like another line of the report.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

impl<E: Failure> From<E> for Problem {
    fn from(error: E) -> Self {
        Self {
            kind: error.kind(),
            message: error.to_string(),
            path: error.path(),
            state: error.state(),
            remedy: error.remedy(),
            paths: Box::default(),
        }
    }
}

impl From<IoError> for Problem {
    fn from(error: IoError) -> Self {
        Self::refused(error.to_string()).path(&error.path)
    }
}
