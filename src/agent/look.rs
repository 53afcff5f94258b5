//! Looks at a project before and after each tool that may write: what differs between two looks was changed in between. A look is a walk
//! without reading content; the last one of a turn lies beside its file. What is not covered is one thing each, whatever is in it.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::fs::dir::{Dir, Sort, Stat, Time};
use crate::fs::path::AbsPath;
use crate::snapshot::cover::{self, MANY};
use crate::snapshot::rules::{Source, Why};
use crate::snapshot::walk::{Ahead, Met, Object};
use crate::tree::git_head::{self, Head};
use crate::tree::json;
use crate::tree::time;

/// The objects that a look met, in path order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Look(Vec<Spot>);

/// An object as a look sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Spot {
    #[serde(rename = "p")]
    path: AbsPath,
    /// [`id`].
    #[serde(rename = "i")]
    id: u64,
    /// A sign of its state.
    #[serde(rename = "s")]
    sign: u64,
    #[serde(rename = "d", default, skip_serializing_if = "std::ops::Not::not")]
    directory: bool,
    /// Set if it is not covered.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    out: Option<Out>,
    #[serde(skip)]
    ctime: Time,
}

/// An object that is not covered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Out {
    /// The reason.
    pub why: Why,
    /// True for a directory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub directory: bool,
    /// Bytes of content of a file.
    #[serde(default)]
    pub size: u64,
    /// The last change of its content.
    #[serde(with = "time", default)]
    pub mtime: Time,
    /// The names in a directory, sorted, if they are at most [`MANY`]; not those of version control's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
    /// Its HEAD, if it is version control's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Head>,
}

impl Out {
    fn of(object: &Object, why: Why) -> Self {
        let directory = object.stat.sort == Sort::Directory;
        let lists = directory && matches!(why, Why::Rules | Why::Built | Why::Many);
        let names = if lists { object.at().open_dir().ok().and_then(|dir| names(&dir)) } else { None };
        let head = if why == Why::Vcs { head(object) } else { None };
        let size = if object.stat.sort == Sort::File { object.stat.size } else { 0 };
        Self { why, directory, size, mtime: object.stat.mtime, names, head }
    }
}

impl Out {
    /// True if it is as the other. The time of a directory tells of names that are too many to be kept.
    pub fn is_as(&self, other: &Self) -> bool {
        let time = |out: &Self| out.is_full().then_some(out.mtime);
        (self.why, self.directory, self.size, time(self)) == (other.why, other.directory, other.size, time(other))
            && (&self.names, &self.head) == (&other.names, &other.head)
    }

    /// True for a directory of more names than are kept.
    pub fn is_full(&self) -> bool {
        self.directory && self.names.is_none() && matches!(self.why, Why::Rules | Why::Built | Why::Many)
    }
}

/// The names in a directory, if they are few.
fn names(dir: &Dir) -> Option<Vec<String>> {
    let names = dir.first_names(MANY).ok()??;
    let mut names: Vec<String> = names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    names.sort_unstable();
    Some(names)
}

/// The HEAD of a repository, by the `.git` in its working tree, or by a bare one.
fn head(object: &Object) -> Option<Head> {
    let git = if object.at_name() == b".git" { cover::repository(&object.dir)? } else { object.at().open_dir().ok()? };
    let common = cover::common(&git);
    Head::of(|name| {
        let of = |dir: &Dir| cover::read_below(dir, name.as_bytes(), git_head::MOST);
        Ok::<_, Error>(of(&git).or_else(|| common.as_ref().and_then(of)))
    })
    .ok()?
}

impl Spot {
    fn of(object: &Object, why: Option<Why>) -> Self {
        let stat = &object.stat;
        let directory = stat.sort == Sort::Directory;
        // Names that come and go set a directory's times.
        let sign = if directory { short([stat.mode, stat.uid, stat.gid].map(u64::from)) } else { of_time(stat.ctime) };
        let out = why.map(|why| Out::of(object, why));
        Self { path: object.path.clone(), id: id(stat), sign, directory, out, ctime: stat.ctime }
    }

    /// True if an earlier look saw the same here.
    fn is_as(&self, earlier: &Self) -> bool {
        let same_out = match (&self.out, &earlier.out) {
            (Some(now), Some(then)) => now.is_as(then),
            (now, then) => now.is_none() && then.is_none(),
        };
        (self.id, self.sign) == (earlier.id, earlier.sign) && same_out
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
    /// The [`id`] of what was there before; missing if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub had: Option<u64>,
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
    /// The object that was there before, if it was not covered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<Out>,
    /// The object that is there, if it is not covered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is: Option<Out>,
}

impl Look {
    /// Looks at all that is in `directory`, by these rules. `store` is recant's own directory.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn at(directory: &AbsPath, store: &AbsPath, rules: &Source) -> Result<Self, Error> {
        let mut walk = Ahead::new(directory, store, rules)?;
        let mut look = Self::default();
        while let Some(met) = walk.next()? {
            look.see(&met);
        }
        Ok(look)
    }

    /// Adds what a walk has met.
    pub fn see(&mut self, met: &Met) {
        match met {
            Met::Object(object) => self.0.push(Spot::of(object, None)),
            Met::Left { why: Why::Store, .. } | Met::Unlisted { .. } => {}
            Met::Left { object, why } => self.0.push(Spot::of(object, Some(*why))),
        }
    }

    /// Reads a look from its text. `None` if it is not whole.
    pub fn read(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok().map(Self)
    }

    /// The text that [`Self::read`] reads.
    pub fn text(&self) -> Vec<u8> {
        json::text(&self.0)
    }

    /// The directories that builds or package managers made.
    pub fn built(&self) -> impl Iterator<Item = &AbsPath> {
        self.0
            .iter()
            .filter(|spot| spot.directory && spot.out.as_ref().is_some_and(|out| out.why == Why::Built))
            .map(|spot| &spot.path)
    }

    /// Finds what is not covered at this path or above it; `None` if it would be covered.
    pub fn out_at(&self, path: &AbsPath) -> Option<(&AbsPath, &Out)> {
        let spot = |path: AbsPath| self.0.binary_search_by(|spot| spot.path.cmp(&path)).ok().map(|at| &self.0[at]);
        let mut above = std::iter::successors(Some(path.clone()), AbsPath::parent).filter_map(spot);
        above.find_map(|spot| Some((&spot.path, spot.out.as_ref()?)))
    }

    /// The [`id`] of what is at a path, and what is known of it if it is not covered.
    pub fn spot(&self, path: &AbsPath) -> (Option<u64>, Option<&Out>) {
        match self.0.binary_search_by(|spot| spot.path.cmp(path)) {
            Ok(at) => (Some(self.0[at].id), self.0[at].out.as_ref()),
            Err(_) => (None, None),
        }
    }

    /// The paths that have changed since an earlier look, in path order.
    pub fn changes_since(&self, earlier: &Self) -> Vec<Change> {
        let mut by_id: HashMap<u64, &AbsPath> = HashMap::new();
        for spot in &earlier.0 {
            by_id.entry(spot.id).or_insert(&spot.path);
        }
        let mut changes = Vec::new();
        let (mut then, mut now) = (earlier.0.iter().peekable(), self.0.iter().peekable());
        loop {
            let order = match (then.peek(), now.peek()) {
                (None, None) => return changes,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(then), Some(now)) => then.path.cmp(&now.path),
            };
            let was = if order.is_le() { then.next() } else { None };
            let is = if order.is_ge() { now.next() } else { None };
            if was.zip(is).is_some_and(|(was, is)| is.is_as(was)) {
                continue;
            }
            let Some(seen) = is.or(was) else { continue };
            let former = is.and_then(|is| by_id.get(&is.id)).filter(|path| ***path != seen.path);
            changes.push(Change {
                path: seen.path.clone(),
                had: was.map(|was| was.id),
                id: is.map(|is| is.id),
                time: is.map(|is| is.ctime),
                directory: seen.directory,
                from: former.map(|path| (*path).clone()),
                was: was.and_then(|was| was.out.clone()),
                is: is.and_then(|is| is.out.clone()),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(spots: &[(&str, u64, u64)]) -> Look {
        let spot = |(path, id, sign): &(&str, u64, u64)| {
            let (path, ctime) = (AbsPath::parse(*path).unwrap(), Time::default());
            Spot { path, id: *id, sign: *sign, directory: false, out: None, ctime }
        };
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
