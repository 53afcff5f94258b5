//! `run.json`: the facts of a captured session beyond its changes.

use serde::{Deserialize, Serialize};

use super::acting_agent::ActingAgent;
use crate::fs::{AbsPath, Time, path};
use crate::tree::{Fingerprint, time};

/// Bytes of an argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arg(#[serde(with = "path::bytes")] pub Vec<u8>);

/// A captured place: what the first step changed in it lies in `held/upper/<k>`, what step n changed in `held/upper/<k>.<n>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The captured directory.
    pub path: AbsPath,
    /// The number in its upper's name.
    pub k: u32,
    /// The directory's mtime when its upper was made, which the upper was given.
    #[serde(with = "time::option", default, skip_serializing_if = "Option::is_none")]
    pub mtime: Option<Time>,
    /// The device (major, minor) and the inode number of the directory then. What has another one now is another mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inode: Option<(u32, u32, u64)>,
    /// For a mounted file: its copy lies in the upper, under the file's last name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileCopy>,
}

/// The copy of a mounted file that a command gets in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCopy {
    pub original: Fingerprint,
    /// The copy before the command started: if it is still the same, the run did not change it.
    pub copy: Fingerprint,
}

impl Place {
    /// The innermost place that a path lies in.
    pub fn innermost<'p>(places: &'p [Self], path: &AbsPath) -> Option<&'p Self> {
        places.iter().filter(|place| path.is_under(&place.path)).max_by_key(|place| place.path.depth())
    }

    /// The name of the place's upper of a step, in `held/upper`.
    pub fn upper_name(&self, step: u32) -> Vec<u8> {
        if step <= 1 { format!("{}", self.k) } else { format!("{}.{step}", self.k) }.into_bytes()
    }

    /// The path, below the session's directory `held`, of what a step captured at `below` the place. `None` if the place has no such path.
    pub fn upper(&self, step: u32, below: &[u8]) -> Option<Vec<u8>> {
        let upper = [b"upper/", &*self.upper_name(step)].concat();
        let below = match &self.file {
            None => below,
            Some(_) if below.is_empty() => self.path.split()?.1,
            Some(_) => return None,
        };
        Some(if below.is_empty() { upper } else { [&*upper, b"/", below].concat() })
    }
}

/// The ways in which a run could use a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    Captured,
    ReadOnly,
    /// The real place, on purpose.
    Passed,
    Hidden,
    /// Hidden, as it is secret.
    Closed,
    /// Writes go at the command's end.
    Private,
    /// Writes are dropped at the command's end, as asked for.
    Scratch,
    /// Read-only, because it could not be captured.
    Uncovered,
    /// A socket of a process outside, which cannot be reached.
    Masked,
}

/// One row of the coverage table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    pub path: AbsPath,
    /// The way in which the run could use it.
    pub how: How,
    /// The reason, if it is not plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// With this status.
    Exited(i32),
    /// ActingAgent this signal.
    Signaled(i32),
}

impl Ending {
    /// The exit status as a shell has it: 128 and the number of the signal for a command that died of one.
    pub fn status(self) -> u8 {
        match self {
            Self::Exited(code) => u8::try_from(code).unwrap_or(u8::MAX),
            Self::Signaled(signal) => 128_u8.saturating_add(u8::try_from(signal).unwrap_or(127)),
        }
    }
}

/// The end of the newest command of a session that changed something, if it did not end well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failed {
    Exited(i32),
    Signaled(i32),
    /// recant was killed before the command had ended.
    CutOff {},
}

impl Failed {
    /// `ending`: that of the command; `None` if it is unknown. A service that was stopped has not failed.
    pub fn of(ending: Option<Ending>, service: Option<&Service>) -> Option<Self> {
        match ending {
            Some(_) if service.is_some_and(|service| service.stopped.is_some()) => None,
            Some(Ending::Exited(0)) => None,
            Some(Ending::Exited(status)) => Some(Self::Exited(status)),
            Some(Ending::Signaled(signal)) => Some(Self::Signaled(signal)),
            None => Some(Self::CutOff {}),
        }
    }

    pub fn text(self) -> String {
        match self {
            Self::Exited(status) => format!("failed ({status})"),
            Self::Signaled(signal) => format!("failed (signal {signal})"),
            Self::CutOff {} => "cut off".into(),
        }
    }
}

/// A command that goes on in the background until it is stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    pub name: String,
    /// The way in which it was stopped; missing if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
}

impl Service {
    pub fn named(name: &str) -> Self {
        Self { name: name.into(), stopped: None }
    }
}

/// The way in which a service was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// It was asked to end, and did.
    Asked,
    /// It did not end in time, and was killed.
    Killed,
}

/// A command that was run, or runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandRecord {
    pub argv: Vec<Arg>,
    /// The words that stand for it in listings; missing if its own do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    pub cwd: AbsPath,
    /// The agent that had it run; missing for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ActingAgent>,
    /// The time when its capture began: what changed below since then is foreign.
    #[serde(with = "time")]
    pub started: Time,
    /// The time that it took, in ns; missing while it runs, or if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took: Option<u64>,
    /// Its end; missing while it runs, and if it was killed, or recant was, before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
}

impl CommandRecord {
    /// The record of what recant did at once, in the place of a command.
    pub fn at_once(argv: Vec<Arg>, cwd: AbsPath, by: Option<ActingAgent>) -> Self {
        let (ending, took) = (Some(Ending::Exited(0)), Some(0));
        Self { argv, label: None, cwd, by, started: crate::fs::exact_now(), took, ending, service: None }
    }

    /// Its label, or the start of its command line: see [`start_of`].
    pub fn called(&self) -> String {
        self.label.clone().unwrap_or_else(|| start_of(self.argv.iter().map(|Arg(word)| &**word)))
    }
}

/// The whole of `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    #[serde(flatten)]
    pub command: CommandRecord,
    pub uid: u32,
    /// The time when the capture of the session's first run began, if there were several.
    #[serde(with = "time::option", default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Time>,
    /// The commands that joined it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<CommandRecord>,
    /// The boot that it ran in: /proc/sys/kernel/random/boot_id.
    pub boot: String,
    pub places: Vec<Place>,
    /// The places that the command could write to, and what became of that.
    #[serde(default)]
    pub coverage: Vec<Coverage>,
    /// Notes on what the run did that is no change of a file, or that could not be held.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Places whose changes are dropped at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scratch: Vec<AbsPath>,
    /// True if what the changed files held before is not kept, as asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_nothing_before: bool,
    /// True if the uppers lay in memory: what they held was carried to `held/objects`, and no further run can go on in them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_memory: bool,
}

/// The start of a note that an earlier run of the session left, and of the reason for a place that was real in one.
const EARLIER: &str = "in an earlier run: ";

impl Run {
    /// The time when the capture of the session's first run began.
    pub fn first(&self) -> Time {
        self.first.unwrap_or(self.command.started)
    }

    /// Takes over what stays true of an earlier run of the session, whatever this one does: its notes, and which places were real.
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

    /// True if it has this note, of its own or of an earlier run.
    pub fn has_noted(&self, note: &str) -> bool {
        let bare = |note: &'_ str| note.strip_prefix(EARLIER).unwrap_or(note).to_owned();
        self.notes.iter().any(|known| bare(known) == bare(note))
    }

    /// Notes what was found. Drops an earlier run's note that is still true.
    pub fn note(&mut self, found: &[String]) {
        self.notes.retain(|note| note.strip_prefix(EARLIER).is_none_or(|note| !found.iter().any(|found| found == note)));
        self.notes.extend(found.iter().filter(|found| !self.notes.contains(found)).cloned().collect::<Vec<_>>());
    }

    /// True if its writes may be there only in part: it is of another boot, and had not ended before that. Its end is noted once all of
    /// it is durable.
    pub fn may_lack(&self) -> bool {
        self.command.ending.is_none() && !is_this_boot(&self.boot)
    }

    /// True if its uppers are gone, and what they held is in the session: they lay in memory, and its end is noted, which is done once
    /// all was carried over.
    pub fn was_carried(&self) -> bool {
        self.in_memory && self.command.ending.is_some()
    }

    /// True if its uppers are gone, with what they held.
    pub fn is_lost(&self) -> bool {
        self.in_memory && self.command.ending.is_none()
    }

    /// The place of what a step captured at `path`, below the session's directory `held`.
    pub fn upper_of(&self, step: Option<u32>, path: &AbsPath) -> Option<Vec<u8>> {
        let places = self.places.iter().filter_map(|place| {
            let below = path.below(&place.path)?;
            Some((below.len(), place.upper(step.unwrap_or(1), below)?))
        });
        // The innermost one: a mount below a captured place has an upper of its own.
        places.min_by_key(|(length, _)| *length).map(|(_, upper)| upper)
    }
}

/// The start of the command line, for listings: at most 200 characters, one line.
pub fn start_of<'w>(words: impl Iterator<Item = &'w [u8]>) -> String {
    let words: Vec<String> = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let line = words.join(" ");
    line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect()
}

/// True if `boot` is the id of this boot. An id that is unknown, then or now, is not: recant then says what may be lost.
pub fn is_this_boot(boot: &str) -> bool {
    !boot.is_empty() && boot == boot_id()
}

/// Reads the id of this boot of the machine; empty if it is unknown.
pub fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use crate::session::run_record::*;

    #[test]
    fn only_the_id_of_this_boot_is_that_of_this_boot() {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        assert_eq!(boot_id(), id.trim(), "it can be told here");
        assert!(is_this_boot(&boot_id()));
        assert!(!is_this_boot("6f1a2bb0-0000-4000-8000-000000000000") && !is_this_boot(""));
    }
}
