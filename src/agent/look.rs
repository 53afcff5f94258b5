//! Looks at a project before and after each tool that may write: what differs between two looks was changed in between. A look is a walk
//! without reading content; the last one of a turn lies beside its file.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::fs::dir::{Sort, Stat, Time};
use crate::fs::path::AbsPath;
use crate::snapshot::rules::Source;
use crate::snapshot::walk::{Ahead, Met};
use crate::tree::json;
use crate::tree::time;

/// The objects that a look met, in path order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Look(Vec<Spot>);

/// An object as a look sees it: path, [`id`], a sign of its state, and whether it is a directory; and its ctime, which is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Spot(AbsPath, u64, u64, bool, #[serde(skip)] Time);

impl Spot {
    fn of(path: AbsPath, stat: &Stat) -> Self {
        let is_dir = stat.sort == Sort::Directory;
        // Names that come and go set a directory's times.
        let sign = if is_dir { short([stat.mode, stat.uid, stat.gid].map(u64::from)) } else { of_time(stat.ctime) };
        Self(path, id(stat), sign, is_dir, stat.ctime)
    }

    fn change(&self, from: Option<AbsPath>) -> Change {
        let Self(path, id, _, directory, time) = self.clone();
        Change { path, id: Some(id), time: Some(time), directory, from }
    }
}

/// A short hash of an object's inode number and birth: it keeps it when it is renamed.
pub fn id(stat: &Stat) -> u64 {
    short([stat.ino, stat.btime.map_or(0, of_time), 0])
}

fn of_time(time: Time) -> u64 {
    short([time.s.cast_unsigned(), u64::from(time.ns), 0])
}

/// FNV-1a of the numbers' bytes: <http://www.isthe.com/chongo/tech/comp/fnv>. Nobody is to be kept from making two that are the same.
fn short(numbers: [u64; 3]) -> u64 {
    let bytes = numbers.into_iter().flat_map(u64::to_le_bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A path that differs between two looks. Paths have the directory as `/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The path.
    pub path: AbsPath,
    /// The [`id`] of what is there; missing if nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// Its ctime.
    #[serde(with = "time::option", default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// True for a directory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub directory: bool,
    /// The path that it had before, or another name of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<AbsPath>,
}

impl Look {
    /// Looks at all that is in `directory`, but for what these rules leave out. `store` is recant's own directory.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn at(directory: &AbsPath, store: &AbsPath, rules: &Source) -> Result<Self, Error> {
        let mut walk = Ahead::new(directory, store, rules)?;
        let mut spots = Vec::new();
        while let Some(met) = walk.next()? {
            if let Met::Object(object) = met {
                spots.push(Spot::of(object.path.clone(), &object.stat));
            }
        }
        Ok(Self(spots))
    }

    /// Reads a look from its text. `None` if it is not whole.
    pub fn read(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok().map(Self)
    }

    /// The text that [`Self::read`] reads.
    pub fn text(&self) -> Vec<u8> {
        json::text(&self.0)
    }

    /// The paths that have changed since an earlier look, in path order.
    pub fn changes_since(&self, earlier: &Self) -> Vec<Change> {
        let mut by_id: HashMap<u64, &AbsPath> = HashMap::new();
        for Spot(path, id, ..) in &earlier.0 {
            by_id.entry(*id).or_insert(path);
        }
        let mut changes = Vec::new();
        let (mut then, mut now) = (earlier.0.iter().peekable(), self.0.iter().peekable());
        loop {
            let order = match (then.peek(), now.peek()) {
                (None, None) => return changes,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(then), Some(now)) => then.0.cmp(&now.0),
            };
            let was = if order.is_le() { then.next() } else { None };
            let is = if order.is_ge() { now.next() } else { None };
            match (was, is) {
                (Some(Spot(path, _, _, directory, _)), None) => {
                    changes.push(Change { path: path.clone(), id: None, time: None, directory: *directory, from: None });
                }
                (Some(was), Some(is)) if (was.1, was.2) == (is.1, is.2) => {}
                (_, Some(is)) => {
                    let from = by_id.get(&is.1).filter(|path| ***path != is.0).map(|path| (*path).clone());
                    changes.push(is.change(from));
                }
                (None, None) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(spots: &[(&str, u64, u64)]) -> Look {
        let spot = |(path, id, sign): &(&str, u64, u64)| Spot(AbsPath::parse(*path).unwrap(), *id, *sign, false, Time::default());
        Look(spots.iter().map(spot).collect())
    }

    #[test]
    fn what_came_went_and_changed_differs_and_what_was_renamed_has_its_former_name() {
        let earlier = look(&[("/a", 1, 1), ("/b", 2, 1), ("/c", 3, 1), ("/d", 4, 1)]);
        let later = look(&[("/a", 1, 1), ("/b", 2, 2), ("/d", 3, 2), ("/e", 5, 1)]);
        let changes = later.changes_since(&earlier);
        let told: Vec<(String, Option<u64>, Option<String>)> =
            changes.iter().map(|c| (c.path.to_string(), c.id, c.from.as_ref().map(ToString::to_string))).collect();
        let expected = [("/b", Some(2), None), ("/c", None, None), ("/d", Some(3), Some("/c")), ("/e", Some(5), None)];
        assert_eq!(told, expected.map(|(path, id, from)| (path.to_owned(), id, from.map(str::to_owned))));
        assert_eq!(Look::read(&later.text()), Some(later));
        assert_eq!(Look::read(b"[[\"/a\""), None);
    }
}
