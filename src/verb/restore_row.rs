//! A path that was put back as a snapshot has it.

use serde::Serialize;

use crate::engine::PathOutcome;
use crate::fs::AbsPath;

/// A path, and the act on it.
#[derive(Debug, Serialize)]
pub struct Row {
    pub path: AbsPath,
    pub done: PathOutcome,
}
