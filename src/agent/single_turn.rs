//! A turn alone, where later ones or somebody else went on in what it wrote: its change is taken out of what is there now, by lines.

use std::collections::BTreeMap;

use super::turn::Turn;
use crate::compare::{MergeResult, TEXT_LIMIT, taken_out};
use crate::error::Error;
use crate::fs::{AbsPath, Roots};
use crate::snapshot::{At as Place, Difference, Entry, Kept, Series, beginning, differences, whole};
use crate::tree::State;

/// The changes of a turn, with both contents of each.
pub struct TakingOut<'a> {
    series: &'a Series,
    kept: Kept<'a>,
    changed: BTreeMap<AbsPath, Difference>,
    roots: Roots,
}

impl<'a> TakingOut<'a> {
    /// The changes between the snapshots before and after a turn; `None` if it has not both.
    ///
    /// # Errors
    /// A snapshot cannot be read.
    pub fn of(series: &'a Series, turn: &Turn) -> Result<Option<Self>, Error> {
        let (Some((before, _)), Some(after)) = (turn.before, turn.after) else { return Ok(None) };
        let changed = differences::between(series, before, Some(after), &[], false)?.differences;
        let changed = changed.into_iter().map(|difference| (difference.path.clone(), difference)).collect();
        Ok(Some(Self { series, kept: Kept::of(&series.dir, &series.directory), changed, roots: Roots::read()? }))
    }

    /// Turns a difference between the time before the turn and now into one that takes the turn's change alone out. `Ok(None)` if nothing of
    /// it is left to be taken out; otherwise the reason why it does not merge.
    ///
    /// # Errors
    /// A content of the snapshots cannot be read.
    pub fn from(&mut self, difference: &Difference) -> Result<Result<Option<Difference>, String>, Error> {
        let Some(own) = self.changed.remove(&difference.path) else { return Ok(Err("it is not known how".into())) };
        let (Some(before), Some(after), Some(now)) = (&own.then, &own.now, &difference.now) else {
            return Ok(Err("only text files that were there before the turn, and still are, are merged".into()));
        };
        let theirs = self.of_snapshot(&own.path, before, own.at)?;
        let base = self.of_snapshot(&own.path, after, own.now_at)?;
        let mine = match self.on_tree(&own.path, now) {
            Ok(mine) => mine,
            // It stays, and the rest goes back.
            Err(error) => return Ok(Err(error.to_string())),
        };
        Ok(match taken_out((after, &base), (now.clone(), mine), (before, &theirs)) {
            MergeResult::Conflict(why) => Err(why),
            MergeResult::Same => Ok(None),
            MergeResult::Merged(both) => {
                let (now, then, merged) = (both.before.object, Some(both.after), Some(both.content));
                Ok(Some(Difference { now, then, at: None, link: None, merged, ..difference.clone() }))
            }
        })
    }

    /// The content of a text in a snapshot; of anything else nothing.
    fn of_snapshot(&mut self, path: &AbsPath, state: &State, at: Option<Place>) -> Result<Vec<u8>, Error> {
        if !is_read(state) {
            return Ok(Vec::new());
        }
        self.kept.beginning(&Entry::of(path.clone(), Some(state.clone()), at), TEXT_LIMIT + 1)
    }

    /// The content on the tree, likewise.
    fn on_tree(&mut self, path: &AbsPath, state: &State) -> Result<Vec<u8>, Error> {
        let path = whole(&self.series.directory, path)?;
        match path.parent().filter(|_| is_read(state)) {
            Some(parent) => beginning(&self.roots.directory(&parent)?.at(path.name()).open_file()?, TEXT_LIMIT + 1, &path),
            None => Ok(Vec::new()),
        }
    }
}

fn is_read(state: &State) -> bool {
    state.is_file() && state.size() <= TEXT_LIMIT
}
