//! Scratch places, whose changes are dropped at the end of a run: `--scratch`. They are captured like all else while the
//! command runs. Then their part of the uppers is removed, and no change is made of it.

use std::collections::HashSet;

use crate::error::{At, Error};
use crate::fs::{AbsPath, Dir, Fs};
use crate::session::{Change, Changes, Place};
use crate::tree::State;

/// The changes of a run that were dropped.
#[derive(Debug, Default)]
pub struct Dropped {
    pub changes: u64,
    /// The scratch places whose part of the uppers is to be removed.
    pub places: Vec<AbsPath>,
    /// The scratch places whose changes stay, as a directory above was removed or replaced: one line each, with the reason.
    pub kept: Vec<String>,
}

/// Takes the changes in scratch places out of those of a run.
pub fn take_out(changes: &mut Changes, needless: &mut Vec<AbsPath>, scratch: &[AbsPath]) -> Dropped {
    let mut dropped = Dropped::default();
    for place in scratch {
        match gone_above(changes, place) {
            // Without the directory above, nothing of the place can stay on the tree; half of a deletion would be a conflict.
            Some(above) => {
                dropped.kept.push(format!("{place}: its changes are kept, as the command removed or replaced {above}"))
            }
            None => dropped.places.push(place.clone()),
        }
    }
    let is_scratch = |path: &AbsPath| dropped.places.iter().any(|place| path.is_under(place));
    let count = changes.list.len();
    changes.list.retain(|change| !is_scratch(&change.path));
    dropped.changes = (count - changes.list.len()) as u64;
    changes.directory_times.retain(|time| !is_scratch(&time.path));
    needless.retain(|path| !is_scratch(path));
    let mut n = 1..;
    changes.list.iter_mut().zip(&mut n).for_each(|(change, n)| change.n = n);
    dropped
}

/// A directory above `place` that the run removed or replaced by something else.
fn gone_above(changes: &Changes, place: &AbsPath) -> Option<AbsPath> {
    let above = place.ancestors();
    let is_gone = |change: &&Change| change.before.object.is_some() && !change.after.as_ref().is_some_and(State::is_dir);
    above.filter_map(|path| changes.at(&path)).find(is_gone).map(|change| change.path.clone())
}

/// Removes the scratch places' part from the uppers of a step; what is gone already is fine.
pub fn clear(fs: &Fs, held: &Dir, (places, step): (&[Place], u32), scratch: &[AbsPath]) -> Result<(), Error> {
    let Ok(uppers) = held.at(b"upper").open_dir() else { return Ok(()) };
    let mut cleared = HashSet::new();
    for place in scratch {
        // It belongs to the innermost place that it lies in; others may lie in it.
        let holds = Place::innermost(places, place);
        let within = places.iter().filter(|captured| captured.path != *place && captured.path.is_under(place));
        for captured in holds.into_iter().chain(within) {
            let below = place.below(&captured.path).unwrap_or_default().to_vec();
            if cleared.insert((captured.k, below.clone())) {
                clear_one(fs, &uppers, (captured, step), &below)?;
            }
        }
    }
    Ok(())
}

/// Clears `below` in the upper of a place: all of the upper if `below` is empty.
fn clear_one(fs: &Fs, uppers: &Dir, (captured, step): (&Place, u32), below: &[u8]) -> Result<(), Error> {
    let upper = match uppers.open_below(&captured.upper_name(step)) {
        Err(error) if error.leads_nowhere() => return Ok(()),
        upper => upper.at("open the upper directory of", &captured.path)?,
    };
    if below.is_empty() {
        for name in upper.names().at("list the upper of", &captured.path)? {
            fs.remove_all(upper.at(&name))?;
        }
        return Ok(());
    }
    let cut = below.iter().rposition(|b| *b == b'/');
    let (parent, name) = cut.map_or((&b""[..], below), |at| (&below[..at], &below[at + 1..]));
    match upper.open_below(parent) {
        Err(error) if error.leads_nowhere() => Ok(()),
        parent => {
            let parent = parent.at("open the directory above", &captured.path)?;
            Ok(fs.remove_all(parent.at(name))?)
        }
    }
}
