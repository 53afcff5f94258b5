//! Conflicts: an object is expected at a path, and something else is there.

use std::collections::BTreeSet;

use crate::checkpoint::manifest::Manifest;
use crate::error::{Against, Error, Kind, Reason, recant};
use crate::fs::dir::{Time, leads_nowhere};
use crate::fs::path::AbsPath;
use crate::session::id::Id;
use crate::session::store::Store;
use crate::tree::state::{Difference, Object, State, sort_word};

/// One path that does not hold what is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub path: AbsPath,
    /// The expected object, in words.
    pub expected: String,
    /// The object that is there, in words.
    pub found: String,
    /// The session that put it there, if one did: it has to be rolled back first.
    pub by: Option<String>,
    /// All later sessions that changed it, with their times: where one put it there, they have to be rolled back first.
    pub later: Vec<(Time, String)>,
    /// True if `--force` goes on over it, and keeps what it finds.
    pub forcible: bool,
    /// True if it is what is expected, but a process has it open for writing: no other session is the cause.
    pub open: bool,
    /// True if nothing is there whose metadata could be changed.
    pub absent: bool,
}

/// All that stands against a job, but for damage.
pub struct Hindrances {
    /// In path order, each path once.
    pub conflicts: Vec<Conflict>,
    /// All that cannot be done, and why: mostly paths and missing rights.
    pub refused: Vec<Against>,
}

impl Conflict {
    /// Makes a conflict from two states and their difference.
    pub fn of(path: &AbsPath, expected: &Object, found: &Object, difference: Difference) -> Self {
        let say = |object: &Object| describe(object.as_ref(), difference);
        let (mut expected, mut found) = (say(expected), say(found));
        if expected == found {
            (expected, found) = (format!("{expected} as it was"), format!("{found} with another {difference}"));
        }
        Self { path: path.clone(), expected, found, by: None, later: Vec::new(), forcible: false, open: false, absent: false }
    }

    /// Makes a conflict with words of its own.
    pub fn said(path: &AbsPath, expected: &str, found: &str) -> Self {
        let (expected, found) = (expected.into(), found.into());
        Self { path: path.clone(), expected, found, by: None, later: Vec::new(), forcible: false, open: false, absent: false }
    }

    /// Makes the conflict of a file that a process is about to write to.
    pub fn open(path: &AbsPath) -> Self {
        let said = Self::said(path, "a file that nobody writes to", "one that a process has open for writing");
        Self { open: true, ..said }
    }

    /// Sets whether `--force` goes on over the conflict.
    pub fn forcible(self, forcible: bool) -> Self {
        Self { forcible, ..self }
    }
}

fn describe(object: Option<&State>, difference: Difference) -> String {
    let Some(state) = object else { return "nothing".into() };
    let word = sort_word(state.sort());
    match difference {
        Difference::Mode => format!("a {word} with mode {:04o}", state.meta.mode),
        Difference::Owner => format!("a {word} of {}:{}", state.meta.uid, state.meta.gid),
        Difference::Content => match &state.what {
            crate::tree::state::What::File { size, .. } => format!("a {word} of {}", exact(*size)),
            crate::tree::state::What::Symlink { target } => format!("a symlink to {}", crate::fs::path::Shown(target)),
            _ => format!("a {word}"),
        },
        _ => format!("a {word}"),
    }
}

/// Shows a size to the byte, to compare with another one.
fn exact(size: u64) -> String {
    if size < 1024 { format!("{size} bytes") } else { format!("{} ({size} bytes)", crate::config::bytes(size)) }
}

impl Conflict {
    pub fn why(&self) -> String {
        let by = self.by.as_ref().map_or(String::new(), |id| format!(" (put there by session {id})"));
        format!("conflict: expected {}, found {}{by}", self.expected, self.found)
    }
}

/// The error for conflicts; nothing is done.
pub fn refused(conflicts: Vec<Conflict>) -> Error {
    let rows = conflicts.iter().map(|conflict| Against::new(&conflict.path, conflict.why())).collect();
    Error::of_rows(Kind::Conflict, "conflicts", rows).with_remedy_if(remedy(&conflicts)).with_detail(conflicts)
}

pub fn of(error: &Error) -> Option<&[Conflict]> {
    error.detail::<Vec<Conflict>>().map(Vec::as_slice)
}

/// The conflicts in an error, if they were seen before anything was done; else the error.
pub fn foreseen(error: Error) -> Result<Vec<Conflict>, Error> {
    if error.reason() == Some(&Reason::Undone) { Err(error) } else { error.into_detail() }
}

/// Names the later session that put what is there, and has to go first: its manifest has the object, or the deletion, which only a later
/// session can have made. An unreadable session names nobody.
pub fn attribute(store: &Store, own: &Id, conflicts: &mut [Conflict]) {
    use std::os::unix::fs::MetadataExt;
    let Ok((headers, _)) = store.headers() else { return };
    let since = headers.iter().find(|header| header.id == *own).map(|header| header.changed);
    let others = headers.iter().rev().filter(|header| header.id != *own && header.counts.inside > 0);
    for other in others {
        let Ok(manifest) = store.session(&other.id).map_err(drop).and_then(|s| Manifest::of(&s).map_err(drop)) else {
            continue;
        };
        for conflict in conflicts.iter_mut().filter(|conflict| !conflict.open) {
            let Some(original) = manifest.originals.get(&conflict.path) else { continue };
            let is_later = Some(other.changed) > since;
            if is_later {
                conflict.later.push((other.changed, other.id.to_string()));
            }
            if conflict.by.is_some() {
                continue;
            }
            let now = match conflict.path.as_path().symlink_metadata() {
                Ok(meta) => Some(meta),
                Err(error) if leads_nowhere(&error) => None,
                // What cannot be seen points to nobody.
                Err(_) => continue,
            };
            let put_it = match (original.put, now) {
                // What somebody has edited since names no session: that one could not be rolled back either.
                (Some(put), Some(now)) => {
                    (put.identity.ino, put.ctime.s, i64::from(put.ctime.ns)) == (now.ino(), now.ctime(), now.ctime_nsec())
                }
                (None, None) => is_later,
                _ => false,
            };
            if put_it {
                conflict.by = Some(other.id.to_string());
            }
        }
    }
}

/// The most sessions that are named.
const NAMED: usize = 5;

/// The commands to run first, if other sessions have put what conflicts.
pub fn remedy(conflicts: &[Conflict]) -> Option<String> {
    let recant = recant();
    let id = conflicts.iter().find_map(|c| c.by.as_ref())?;
    let later: BTreeSet<&(Time, String)> = conflicts.iter().filter(|c| c.by.is_some()).flat_map(|c| &c.later).collect();
    if later.len() < 2 {
        return Some(format!("session {id} has to be rolled back first: {recant} rollback {id}"));
    }
    let calls: Vec<String> = later.iter().rev().take(NAMED).map(|(_, id)| format!("{recant} rollback {id}")).collect();
    let more = if later.len() > NAMED { format!("; and {} more", later.len() - NAMED) } else { String::new() };
    Some(format!("later sessions have to be rolled back first, the last first: {}{more}", calls.join("; ")))
}
