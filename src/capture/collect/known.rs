//! Keeps for each path the `before` that an earlier run of the session found, whatever is there now.

use std::collections::BTreeSet;
use std::mem::replace;

use super::Found;
use crate::session::change::{Before, Change, misfits};
use crate::tree::state::State;

impl Found<'_> {
    pub(super) fn keep_known(&mut self) {
        let mut today: Vec<Option<Before>> =
            self.list.iter_mut().map(|change| keep_before(change, self.facts.known.at(&change.path))).collect();
        // Somebody may have removed a directory since, or put one where a file was. The earlier `before` then contradicts that, and no line
        // of the session may contradict another. Today's is taken there, and the path is a conflict.
        loop {
            let befores = self.list.iter().map(|change| (&change.path, change.before.object.as_ref().map(State::sort)));
            let contradicted =
                misfits(befores).into_iter().filter(|(top, below)| today[*top].is_some() || today[*below].is_some());
            let tops: BTreeSet<usize> = contradicted.map(|(top, _)| top).collect();
            if tops.is_empty() {
                break;
            }
            for top in tops {
                let path = self.list[top].path.clone();
                let under = self.list[top..].iter_mut().zip(&mut today[top..]);
                for (change, today) in under.take_while(|(change, _)| change.path.is_under(&path)) {
                    if let Some(before) = today.take() {
                        (change.before, change.marks.foreign, change.marks.by_clock) = (before, true, false);
                    }
                }
            }
        }
        for time in &mut self.times {
            let known = self.facts.known.directory_times.binary_search_by(|known| known.path.cmp(&time.path));
            if let Ok(i) = known {
                time.before = self.facts.known.directory_times[i].before;
            }
        }
    }
}

/// Gives a change the `before` of the known one, and returns today's in exchange.
fn keep_before(change: &mut Change, known: Option<&Change>) -> Option<Before> {
    let known = known?;
    // Later changes show at commit: they are not the `before` any more.
    (change.marks.foreign, change.marks.by_clock) = (known.marks.foreign, known.marks.by_clock);
    Some(replace(&mut change.before, known.before.clone()))
}
