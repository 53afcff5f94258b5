//! Verifies that the originals of a checkpoint are whole.

use serde::Serialize;

use super::manifest::{Kept, Manifest, Original};
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Checkpoint, Session};
use crate::tree::{State, observe, sort_word};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    pub path: AbsPath,
    pub why: String,
    /// True if its times show that somebody wrote to it since it was taken: its inode was open elsewhere, or has other names.
    pub written_to: bool,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Verdict {
    pub whole: u64,
    /// Bytes of content that were read.
    pub bytes: u64,
    /// Paths whose original was not kept, by policy.
    pub uncovered: u64,
    /// Originals that are not as they were taken.
    pub faults: Vec<Fault>,
}

/// Reads every original of a session. Calls `seen` before each with how many of how many are done.
pub fn verify(session: &Session, seen: &dyn Fn(usize, usize)) -> Result<Verdict, Error> {
    let mut verdict = Verdict::default();
    if session.header.checkpoint == Checkpoint::Pruned {
        return Ok(verdict);
    }
    let manifest = Manifest::of(session)?;
    verdict.faults.extend(unlisted(session, &manifest)?);
    for (done, original) in manifest.originals.values().enumerate() {
        seen(done, manifest.originals.len());
        match (&original.kept, check(session, original)?) {
            (Kept::Uncovered { .. }, _) => verdict.uncovered += 1,
            (_, Some(fault)) => verdict.faults.push(fault),
            (_, None) => {
                verdict.whole += 1;
                verdict.bytes += original.state.as_ref().map_or(0, State::size);
            }
        }
    }
    Ok(verdict)
}

/// Changes that are in, and for which a rollback would find no line.
fn unlisted(session: &Session, manifest: &Manifest) -> Result<Vec<Fault>, Error> {
    let (sides, mut changes, mut faults) = (session.sides_of_all()?, session.read_changes()?, Vec::new());
    for side in sides {
        let Some(change) = changes.next()? else { break };
        let is_listed = manifest.originals.get(&change.path).is_some_and(|original| original.n == change.n);
        if side.is_in() && !is_listed {
            let why = "the checkpoint's manifest has no line for it".into();
            faults.push(Fault { path: change.path, why, written_to: false });
        }
    }
    Ok(faults)
}

/// Checks one original with its content; `None` if it is as it was taken.
pub fn check(session: &Session, original: &Original) -> Result<Option<Fault>, Error> {
    let (Some(place), Some(state)) = (original.place(), &original.state) else { return Ok(None) };
    let fault = |why: &str, written_to| Ok(Some(Fault { path: original.path.clone(), why: why.into(), written_to }));
    let (dir, name) = session.split(&place)?;
    let at = dir.at(name);
    let Some(seen) = observe::object(at)? else {
        // Anything but a file is made from its record.
        return if state.is_file() { fault("the kept original is missing", false) } else { Ok(None) };
    };
    if seen.state.sort() != state.sort() {
        return fault(&format!("the kept original is a {} now", sort_word(seen.state.sort())), false);
    }
    if seen.state.is_dir() && observe::is_filled(at, state)? {
        return fault("something was put into the kept directory since it was taken, by a process that worked in it", true);
    }
    let Kept::Blob { hash, .. } = original.kept else { return Ok(None) };
    let (found, _) = observe::hash(at)?;
    if found == hash {
        return Ok(None);
    }
    if observe::was_written_since(at, &seen.state, state)? {
        return fault(
            "the kept original was written to since it was taken, by a process that had it open or under another name",
            true,
        );
    }
    fault("the kept original is damaged (SHA-256 differs)", false)
}
