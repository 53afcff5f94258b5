//! `snapshot verify`: reads all that snapshots need, and names what is damaged.

use std::path::Path;

use serde::Serialize;

use super::series::series;
use crate::error::Error;
use crate::fs::AbsPath;
use crate::snapshot::{Verdict, Verifying, doubt};
use crate::verb::desk::Desk;

/// The findings about snapshots. JSON: docs/json.md.
#[derive(Debug, Serialize)]
pub struct Verified {
    pub directory: AbsPath,
    pub snapshots: Vec<Verdict>,
    /// The reason why the next snapshot may refer to what is damaged.
    #[serde(skip)]
    pub undoubted: Option<Error>,
}

impl Verified {
    /// True if something is damaged.
    pub fn is_damaged(&self) -> bool {
        self.snapshots.iter().any(|verdict| !verdict.faults.is_empty())
    }
}

/// Reads all that one snapshot needs, or all of them. Where something is damaged, the next snapshot reads what it would refer to.
///
/// # Errors
/// There is no such snapshot; the store cannot be read.
pub fn verify(desk: &Desk, dir: Option<&Path>, key: Option<&str>) -> Result<Verified, Error> {
    let (_, series) = series(desk, dir)?;
    let numbers = match key {
        Some(key) => vec![series.find(key)?],
        None => series.numbers()?,
    };
    let progress = desk.caller.progress();
    let mut verifying = Verifying::of(&series);
    let mut verified = Verified { directory: series.directory.clone(), snapshots: Vec::new(), undoubted: None };
    for (i, n) in numbers.iter().enumerate() {
        progress.at("verifying", i, numbers.len());
        verified.snapshots.extend(verifying.at(*n)?);
    }
    if verified.is_damaged() {
        verified.undoubted = series.lock(&desk.fs).and_then(|lock| doubt(&desk.fs, &series, &lock)).err();
    }
    Ok(verified)
}
