//! Conflicts: what was expected at a path, and what is there.

use crate::checkpoint::manifest::Manifest;
use crate::error::{Error, Kind, Reason, recant};
use crate::fs::dir::leads_nowhere;
use crate::fs::path::AbsPath;
use crate::session::id::Id;
use crate::session::store::Store;
use crate::tree::state::{Difference, Object, State, sort_word};

/// One path that does not hold what is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The path.
    pub path: AbsPath,
    /// What was expected there.
    pub expected: String,
    /// What is there.
    pub found: String,
    /// The session that put it there, where one did: it has to go first.
    pub by: Option<String>,
    /// `--force` goes on over it, and keeps what it finds.
    pub forcible: bool,
    /// It is what is expected, but a process has it open for writing: no other session is to blame.
    pub open: bool,
    /// Nothing is there whose metadata could be changed.
    pub absent: bool,
}

impl Conflict {
    /// Of two states and the difference between them.
    pub fn of(path: &AbsPath, expected: &Object, found: &Object, difference: Difference) -> Self {
        let say = |object: &Object| describe(object.as_ref(), difference);
        let (mut expected, mut found) = (say(expected), say(found));
        if expected == found {
            (expected, found) = (format!("{expected} as it was"), format!("{found} with another {difference}"));
        }
        Self { path: path.clone(), expected, found, by: None, forcible: false, open: false, absent: false }
    }

    /// With words of its own.
    pub fn said(path: &AbsPath, expected: &str, found: &str) -> Self {
        let (expected, found) = (expected.into(), found.into());
        Self { path: path.clone(), expected, found, by: None, forcible: false, open: false, absent: false }
    }

    /// Of a file that a process is about to write to.
    pub fn open(path: &AbsPath) -> Self {
        let said = Self::said(path, "a file that nobody writes to", "one that a process has open for writing");
        Self { open: true, ..said }
    }

    /// The same where `--force` goes on, if it does.
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

/// A size that another one is compared with: to the byte.
fn exact(size: u64) -> String {
    if size < 1024 { format!("{size} bytes") } else { format!("{} ({size} bytes)", crate::config::bytes(size)) }
}

impl Conflict {
    /// What is said of it behind the path.
    pub fn why(&self) -> String {
        let by = self.by.as_ref().map_or(String::new(), |id| format!(" (put there by session {id})"));
        format!("conflict: expected {}, found {}{by}", self.expected, self.found)
    }
}

/// Nothing is done for them.
pub fn refused(conflicts: Vec<Conflict>) -> Error {
    let rows = conflicts.iter().map(|conflict| (conflict.path.to_string(), conflict.why())).collect();
    Error::of_rows(Kind::Conflict, "conflicts", rows).with_remedy_if(remedy(&conflicts)).with_detail(conflicts)
}

/// The conflicts that an error tells of.
pub fn of(error: &Error) -> Option<&[Conflict]> {
    error.detail::<Vec<Conflict>>().map(Vec::as_slice)
}

/// The same where they were seen before anything was done; else the error.
pub fn foreseen(error: Error) -> Result<Vec<Conflict>, Error> {
    if error.reason() == Some(&Reason::Undone) { Err(error) } else { error.into_detail() }
}

/// Finds out which later session put what is there, and has to go first: its manifest names the object, or the deletion,
/// which only a later session can have made. What cannot be read of another session names nobody.
pub fn attribute(store: &Store, own: &Id, conflicts: &mut [Conflict]) {
    use std::os::unix::fs::MetadataExt;
    let Ok((headers, _)) = store.headers() else { return };
    let since = headers.iter().find(|header| header.id == *own).map(|header| header.changed);
    let others = headers.iter().rev().filter(|header| header.id != *own && header.counts.inside > 0);
    for other in others {
        let Ok(manifest) = store.session(&other.id).map_err(drop).and_then(|s| Manifest::of(&s).map_err(drop)) else {
            continue;
        };
        for conflict in conflicts.iter_mut().filter(|conflict| conflict.by.is_none() && !conflict.open) {
            let Some(original) = manifest.originals.get(&conflict.path) else { continue };
            let now = match conflict.path.as_path().symlink_metadata() {
                Ok(meta) => Some(meta),
                Err(error) if leads_nowhere(&error) => None,
                // Not seen, it is no sign of anybody.
                Err(_) => continue,
            };
            let put_it = match (original.put, now) {
                // What somebody has edited since is nobody's: the other session could not be rolled back either.
                (Some(put), Some(now)) => {
                    (put.identity.ino, put.ctime.s, i64::from(put.ctime.ns)) == (now.ino(), now.ctime(), now.ctime_nsec())
                }
                (None, None) => Some(other.changed) > since,
                _ => false,
            };
            if put_it {
                conflict.by = Some(other.id.to_string());
            }
        }
    }
}

/// What to do first about those that another session has made.
pub fn remedy(conflicts: &[Conflict]) -> Option<String> {
    let id = conflicts.iter().find_map(|c| c.by.as_ref())?;
    Some(format!("session {id} has to be rolled back first: {recant} rollback {id}", recant = recant()))
}
