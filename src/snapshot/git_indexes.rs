//! git's indexes among the differences: learns what each of them means, so that git's rewriting is told apart from a change.

use super::content::{Content, Kept};
use super::differences::{Compared, Difference};
use super::manifest::{At, Entry};
use super::paths::whole;
use super::series::Series;
use crate::error::{At as _, Error};
use crate::fs::stat_of;
use crate::tree::git_index::MOST;
use crate::tree::{Hash, Object, git_index, may_lie_at, observe};

impl Compared {
    /// Learns the meaning of indexes in both snapshots, and drops the differences where git only rewrote one.
    pub fn without_rewritten_indexes(&mut self, series: &Series) -> Result<(), Error> {
        let mut kept = Kept::of(&series.dir, &series.directory);
        for d in &mut self.differences {
            if may_lie_at(&whole(&series.directory, &d.path)?) {
                learn(&mut kept, d, Side::Then)?;
                learn(&mut kept, d, Side::Now)?;
            }
        }
        self.differences.retain(|d| !is_rewritten(d));
        Ok(())
    }

    /// Learns the meaning of the indexes that a restore puts: a rollback recognizes them by it.
    pub fn learn_indexes(&mut self, series: &Series) -> Result<(), Error> {
        let mut kept = Kept::of(&series.dir, &series.directory);
        for d in &mut self.differences {
            if may_lie_at(&whole(&series.directory, &d.path)?) {
                learn(&mut kept, d, Side::Then)?;
            }
        }
        Ok(())
    }
}

fn is_rewritten(d: &Difference) -> bool {
    let both = d.then.as_ref().zip(d.now.as_ref());
    both.is_some_and(|(then, now)| then.means_same(now) && then.meta_difference(now).is_none() && !d.regrouped)
}

enum Side {
    Then,
    Now,
}

fn learn(kept: &mut Kept<'_>, d: &mut Difference, side: Side) -> Result<(), Error> {
    let (state, at): (&mut Object, Option<At>) = match side {
        Side::Then => (&mut d.then, d.at),
        Side::Now => (&mut d.now, d.now_at),
    };
    let Some(state) = state.as_mut().filter(|state| state.hash().is_some() && state.size() <= MOST) else { return Ok(()) };
    let meaning = meaning(kept, Entry::of(d.path.clone(), Some(state.clone()), at))?;
    state.set_index(meaning);
    Ok(())
}

fn meaning(kept: &mut Kept<'_>, entry: Entry) -> Result<Option<Hash>, Error> {
    Ok(match kept.content(&entry)? {
        Content::Small(bytes) => git_index::meaning(&bytes),
        Content::Large(file) => {
            let stat = stat_of(&file).at("look at the content of", &entry.path)?;
            observe::read_since(&file, stat, true).at("read the content of", &entry.path)?.0.index
        }
    })
}
