//! Changes of a session that a person picked where they were shown, and a record of what was shown: what is done then is that, or nothing.

use super::entries::Taken;
use super::sources::{OnTree, Sources};
use crate::fs::AbsPath;
use crate::session::{Change, Changes, Side};
use crate::tree::Hash;

/// A change of which something is picked.
#[derive(Debug, Clone)]
pub struct Pick {
    pub path: AbsPath,
    pub taken: Taken,
    /// The hash of what was shown of it: [`mark_of`].
    pub seen: Hash,
}

/// All that is picked, in path order.
#[derive(Debug, Clone, Default)]
pub struct Picked(pub Vec<Pick>);

/// The hash of a change as it stands: its two states, its side, and whether the tree still has what the session recorded there.
pub fn mark_of(change: &Change, side: Side, sources: &mut Sources<'_>) -> Hash {
    let on_tree = match sources.on_tree(change, side) {
        OnTree::AsRecorded => "as recorded".to_owned(),
        OnTree::Changed => format!("changed: {:?}", sources.now(&change.path).ok()),
        OnTree::Unseen(why) => why,
    };
    let mut change = change.clone();
    // Content that is hashed later is the same content.
    for object in [&mut change.before.object, &mut change.after].into_iter().flatten() {
        object.forget_hash();
    }
    Hash::of(format!("{change:?} {side:?} {on_tree}").as_bytes())
}

impl Picked {
    /// The hash of all that is picked: what a person is asked to confirm.
    pub fn digest(&self) -> Hash {
        let line = |pick: &Pick| format!("{} {:?} {}\n", pick.path, pick.taken, pick.seen);
        Hash::of(self.0.iter().map(line).collect::<String>().as_bytes())
    }

    /// The paths at which something else stands by now, each with what that is.
    pub fn changed(&self, changes: &Changes, sides: &[Side], sources: &mut Sources<'_>) -> Vec<(AbsPath, &'static str)> {
        let mut found = Vec::new();
        for pick in &self.0 {
            let why = match changes.list.binary_search_by(|change| change.path.cmp(&pick.path)) {
                Err(_) => "the session holds no change there any more",
                Ok(i) if mark_of(&changes.list[i], sides[i], sources) != pick.seen => {
                    "it, or the file on the tree, changed since it was shown"
                }
                Ok(_) => continue,
            };
            found.push((pick.path.clone(), why));
        }
        found
    }

    /// The indexes of what is picked in these changes, with the parts.
    pub fn at(&self, changes: &Changes) -> Vec<(usize, Taken)> {
        let index = |pick: &Pick| changes.list.binary_search_by(|change| change.path.cmp(&pick.path)).ok();
        self.0.iter().filter_map(|pick| Some((index(pick)?, pick.taken.clone()))).collect()
    }
}
