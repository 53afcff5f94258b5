//! `run.json`: what a captured session was, beyond its changes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::fs::dir::Time;
use crate::fs::path::{self, AbsPath};
use crate::tree::state::Fingerprint;
use crate::tree::time;

/// Bytes of an argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arg(#[serde(with = "path::bytes")] pub Vec<u8>);

/// A captured place: its changes lie in `held/upper/<k>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The captured folder.
    pub path: AbsPath,
    /// Names its upper.
    pub k: u32,
    /// The mtime that the folder had when its upper was made, and that the upper was given.
    #[serde(with = "time::option", default, skip_serializing_if = "Option::is_none")]
    pub mtime: Option<Time>,
    /// It is a file that is itself mounted: a copy of it lies in the upper, under its own last name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileCopy>,
}

/// The copy of a mounted file that a command gets in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCopy {
    /// The original, when it was copied.
    pub original: Fingerprint,
    /// The copy, before the command was there: one that is still so was not changed in the run.
    pub copy: Fingerprint,
}

impl Place {
    /// Where what is captured at `below` the place's path lies, below the session's folder `held`. `None` where the place has none such.
    pub fn upper(&self, below: &[u8]) -> Option<Vec<u8>> {
        let upper = format!("upper/{}", self.k).into_bytes();
        let below = match &self.file {
            None => below,
            Some(_) if below.is_empty() => self.path.split()?.1,
            Some(_) => return None,
        };
        Some(if below.is_empty() { upper } else { [&*upper, b"/", below].concat() })
    }
}

/// What a run could do with a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// What is written there is held.
    Captured,
    /// Nothing can be written there.
    ReadOnly,
    /// It is the real one, on purpose.
    Passed,
    /// It cannot be seen.
    Hidden,
    /// What is written there goes with the command's end.
    Private,
    /// What is written there is dropped at the command's end: it was asked for.
    Scratch,
    /// It could not be captured, and is read-only for that.
    Uncovered,
    /// A socket of a process outside that can't be reached.
    Masked,
}

/// One row of the coverage table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// The place.
    pub path: AbsPath,
    /// What the run could do there.
    pub how: How,
    /// Why, where it is not plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It exited with this status.
    Exited(i32),
    /// This signal ended it.
    Signaled(i32),
}

/// The whole of `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The command and its arguments.
    pub argv: Vec<Arg>,
    /// The working folder.
    pub cwd: AbsPath,
    /// Who ran it.
    pub uid: u32,
    /// When the capture began: what changed below since then is foreign.
    #[serde(with = "time")]
    pub started: Time,
    /// When the capture of the session's first run began, where there were several.
    #[serde(with = "time::option", default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Time>,
    /// How it ended; missing while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// The boot that it ran in: /proc/sys/kernel/random/boot_id.
    pub boot: String,
    /// The captured places.
    pub places: Vec<Place>,
    /// Where the command could write, and what became of that.
    #[serde(default)]
    pub coverage: Vec<Coverage>,
    /// What the run did that is no change of a file, or that could not be held.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Paths where the uppers hide the tree, beside those of changes: what somebody does there is not seen by a further run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hides: Vec<AbsPath>,
    /// Places whose changes are dropped at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scratch: Vec<AbsPath>,
    /// The uppers lay in memory: what they held was carried to `held/objects`, and no further run can go on in them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_memory: bool,
    /// Fields of a later recant, kept as they are.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// What begins a note that an earlier run of the session left, and the reason of a place that was real in one.
const EARLIER: &str = "in an earlier run: ";

impl Run {
    /// When the capture of the session's first run began.
    pub fn first(&self) -> Time {
        self.first.unwrap_or(self.started)
    }

    /// Takes over what an earlier run of the session said that stays true whatever this one does: its notes, and which places were real.
    pub fn keep_of(&mut self, earlier: Option<&Run>) {
        let Some(earlier) = earlier else { return };
        let marked = |text: &str| if text.starts_with(EARLIER) { text.to_owned() } else { format!("{EARLIER}{text}") };
        for note in earlier.notes.iter().map(|note| marked(note)) {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        for row in earlier.coverage.iter().filter(|row| row.how == How::Passed) {
            if !self.coverage.iter().any(|now| now.path == row.path && now.how == How::Passed) {
                let why = marked(row.why.as_deref().unwrap_or("real"));
                self.coverage.push(Coverage { why: Some(why), ..row.clone() });
            }
        }
        self.coverage.sort_by(|a, b| a.path.cmp(&b.path));
    }

    /// Notes what was found. What an earlier run said, and is so still, is not said twice.
    pub fn note(&mut self, found: &[String]) {
        self.notes.retain(|note| note.strip_prefix(EARLIER).is_none_or(|note| !found.iter().any(|found| found == note)));
        self.notes.extend(found.iter().filter(|found| !self.notes.contains(found)).cloned().collect::<Vec<_>>());
    }

    /// Whether what it wrote may be there in part: it is of another boot, and had not ended when that did. Its end is noted where all of it is
    /// durable.
    pub fn may_lack(&self) -> bool {
        self.ending.is_none() && !is_this_boot(&self.boot)
    }

    /// Whether its uppers are gone, and what they held is in the session: they lay in memory, and its end is noted, which is done where all
    /// was carried over.
    pub fn was_carried(&self) -> bool {
        self.in_memory && self.ending.is_some()
    }

    /// Whether its uppers are gone, and what they held with them.
    pub fn is_lost(&self) -> bool {
        self.in_memory && self.ending.is_none()
    }

    /// Where what was captured at `path` lies, below the session's folder `held`.
    pub fn upper_of(&self, path: &AbsPath) -> Option<Vec<u8>> {
        let places = self.places.iter().filter_map(|place| {
            let below = path.below(&place.path)?;
            Some((below.len(), place.upper(below)?))
        });
        // The innermost one: a mount below a captured place has an upper of its own.
        places.min_by_key(|(length, _)| *length).map(|(_, upper)| upper)
    }
}

/// Whether `boot` is the id of this boot. One that could not be told, then or now, is not: what may have been lost is said then.
pub fn is_this_boot(boot: &str) -> bool {
    !boot.is_empty() && boot == boot_id()
}

/// The id of this boot of the machine; empty where it cannot be told.
pub fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_id_of_this_boot_is_that_of_this_boot() {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        assert_eq!(boot_id(), id.trim(), "it can be told here");
        assert!(is_this_boot(&boot_id()));
        assert!(!is_this_boot("6f1a2bb0-0000-4000-8000-000000000000") && !is_this_boot(""));
    }
}
