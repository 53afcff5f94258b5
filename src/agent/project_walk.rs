//! Looks at a project before and after each tool that may write: what differs between two looks was changed in between. A look is a walk
//! without reading content; the last one of a turn lies beside its file. What is not covered is one thing each, whatever is in it.

use std::cell::LazyCell;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::repository;
use super::repository::{Found, Part};
use super::short_hash::short;
use crate::error::Error;
use crate::fs::{AbsPath, Dir, Sort, Stat, Time};
use crate::snapshot::{MANY, Object, Source, Walk, WalkStep, Why, agent_cover};
use crate::tree::{Head, git_head, json, time};

/// The beginning of a look's file.
const MAGIC: &[u8] = b"recant look 3\n";

/// The objects that a look met, in path order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Look(Vec<Spot>);

/// An object as a look sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Spot {
    path: AbsPath,
    id: u64,
    sign: u64,
    directory: bool,
    /// Set if it is not covered.
    out: Option<Out>,
    /// Not kept.
    ctime: Time,
}

/// An object that is not covered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Out {
    pub why: Why,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub directory: bool,
    /// Bytes of content of a file.
    #[serde(default)]
    pub size: u64,
    #[serde(with = "time", default)]
    pub mtime: Time,
    /// The names in a directory, sorted, if they are at most [`MANY`]; not those of version control's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
    /// Its HEAD, if it is version control's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Head>,
    /// Set if it is a part of a repository that is looked at by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
}

impl Out {
    fn of(object: &Object, why: Why) -> Self {
        let directory = object.stat.sort == Sort::Directory;
        let lists = directory && matches!(why, Why::Rules | Why::Built | Why::Many);
        let names = if lists { object.at().open_dir().ok().and_then(|dir| names(&dir)) } else { None };
        let head = if why == Why::Vcs { head(object) } else { None };
        let size = if object.stat.sort == Sort::File { object.stat.size } else { 0 };
        Self { why, directory, size, mtime: object.stat.mtime, names, head, part: None }
    }
}

impl Out {
    /// True if it is as the other. The time of a directory tells of names that are too many to be kept.
    pub fn is_as(&self, other: &Self) -> bool {
        let time = |out: &Self| out.is_full().then_some(out.mtime);
        (self.why, self.directory, self.size, time(self)) == (other.why, other.directory, other.size, time(other))
            && (&self.names, &self.head, &self.part) == (&other.names, &other.head, &other.part)
    }

    /// True if it is as `then`, as far as both are known: when other rules held, the reason may be another one, and so what is looked at.
    pub fn is_still(&self, then: &Self) -> bool {
        fn agree<T: PartialEq>(now: &Option<T>, then: &Option<T>) -> bool {
            now.is_none() || then.is_none() || now == then
        }
        let is_full = self.is_full() && then.is_full();
        (self.directory, self.size) == (then.directory, then.size)
            && agree(&self.names, &then.names)
            && agree(&self.head, &then.head)
            && agree(&self.part, &then.part)
            && (!is_full || self.mtime == then.mtime)
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
    let git = if object.at_name() == b".git" { agent_cover::repository(&object.dir)? } else { object.at().open_dir().ok()? };
    let common = agent_cover::common(&git);
    Head::of(|name| {
        let of = |dir: &Dir| agent_cover::read_below(dir, name.as_bytes(), git_head::MOST);
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

    /// A part of the repository at a path. It is the same one as long as it has its name: git replaces files, and packs refs into one.
    fn part(git: &AbsPath, found: Found) -> Option<Self> {
        let Found { part, size, mtime, ctime } = found;
        let path = AbsPath::parse([git.as_bytes(), b"/", part.name.as_bytes()].concat()).ok()?;
        let id = path.as_bytes().iter().fold(0, |id, byte| short([id, u64::from(*byte), 0]));
        let sign = part.sign;
        let out = Out { why: Why::Vcs, directory: false, size, mtime, names: None, head: None, part: Some(part) };
        Some(Self { path, id, sign, directory: false, out: Some(out), ctime })
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

/// The bytes of a look that are not read yet.
struct Reading<'b>(&'b [u8]);

impl<'b> Reading<'b> {
    fn bytes(&mut self, count: usize) -> Option<&'b [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(8)?.try_into().ok()?))
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(u32::from_le_bytes(self.bytes(4)?.try_into().ok()?)).ok()
    }
}

/// A short hash of an object's inode number and birth: it keeps it when it is renamed.
pub fn id(stat: &Stat) -> u64 {
    short([stat.ino, stat.btime.map_or(0, of_time), 0])
}

fn of_time(time: Time) -> u64 {
    short([time.s.cast_unsigned(), u64::from(time.ns), 0])
}

/// A path that differs between two looks. Paths have the directory as `/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub path: AbsPath,
    /// The [`id`] of what was there before; missing if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub had: Option<u64>,
    /// The [`id`] of what is there; missing if nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    #[serde(with = "time::option", default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
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
    /// Looks at all that is in `directory`, by these rules. `store` is recant's own directory. An `earlier` look tells where the middle lies:
    /// two threads look at a half each.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn at(directory: &AbsPath, store: &AbsPath, rules: &Source, earlier: Option<&Self>) -> Result<Self, Error> {
        let half = |from: Option<AbsPath>, until: Option<AbsPath>| {
            let mut walk = Walk::new(directory, store, rules)?.between(from, until);
            let mut look = Self::default();
            while let Some(met) = walk.next()? {
                look.see(&met);
            }
            Ok::<_, Error>(look)
        };
        let Some(middle) = earlier.and_then(Self::middle) else { return half(None, None) };
        std::thread::scope(|scope| {
            let second = || half(Some(middle.clone()), None);
            let thread = std::thread::Builder::new().name("look".into()).spawn_scoped(scope, second);
            let mut look = half(None, Some(middle.clone()))?;
            let second = match thread {
                Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?,
                // None can be had (RLIMIT_NPROC).
                Err(_) => half(Some(middle.clone()), None)?,
            };
            look.0.extend(second.0);
            Ok(look)
        })
    }

    /// The path in the middle, if it pays to look at both halves at once.
    fn middle(&self) -> Option<AbsPath> {
        /// Starting a thread takes as long as looking at some hundred objects.
        const FEWEST: usize = 2000;
        (self.0.len() >= FEWEST).then(|| self.0[self.0.len() / 2].path.clone())
    }

    pub fn see(&mut self, met: &WalkStep) {
        let (object, why) = match met {
            WalkStep::Left { why: Why::Store, .. } | WalkStep::Unlisted { .. } => return,
            WalkStep::Object(object) => (object, None),
            WalkStep::Left { object, why } => (object, Some(*why)),
        };
        self.0.push(Spot::of(object, why));
        if why == Some(Why::Vcs)
            && let Ok(git) = object.at().open_dir()
        {
            let mut parts: Vec<Spot> =
                repository::parts(&git).into_iter().filter_map(|found| Spot::part(&object.path, found)).collect();
            parts.sort_by(|a, b| a.path.cmp(&b.path));
            self.0.extend(parts);
        }
    }

    /// Reads a look from its bytes. `None` if they are not whole.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut reading = Reading(bytes.strip_prefix(MAGIC)?);
        let count = usize::try_from(reading.number()?).ok()?;
        let mut path: Vec<u8> = Vec::new();
        // No record is shorter than its two numbers of eight bytes.
        let mut spots = Vec::with_capacity(count.min(bytes.len() / 16));
        for _ in 0..count {
            let shared = reading.length()?;
            path.truncate(shared);
            let rest = reading.length()?;
            path.extend_from_slice(reading.bytes(rest)?);
            let (id, sign, flags) = (reading.number()?, reading.number()?, reading.bytes(1)?[0]);
            let length = reading.length()?;
            let out = reading.bytes(length)?;
            let out = if out.is_empty() { None } else { Some(serde_json::from_slice(out).ok()?) };
            let path = AbsPath::parse(&path).ok()?;
            spots.push(Spot { path, id, sign, directory: flags == 1, out, ctime: Time::default() });
        }
        reading.0.is_empty().then_some(Self(spots))
    }

    /// The bytes that [`Self::read`] reads: [`MAGIC`], the number of spots, and for each the bytes that its path shares with the one before,
    /// the rest of it, `id`, `sign`, 1 for a directory, and its [`Out`] as JSON. Numbers are little-endian, lengths have four bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let length = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes();
        let mut bytes = MAGIC.to_vec();
        bytes.extend((self.0.len() as u64).to_le_bytes());
        let mut before: &[u8] = b"";
        for spot in &self.0 {
            let path = spot.path.as_bytes();
            let shared = path.iter().zip(before).take_while(|(one, other)| one == other).count();
            let out = spot.out.as_ref().map(json::text).unwrap_or_default();
            bytes.extend(length(shared));
            bytes.extend(length(path.len() - shared));
            bytes.extend(&path[shared..]);
            bytes.extend(spot.id.to_le_bytes());
            bytes.extend(spot.sign.to_le_bytes());
            bytes.push(u8::from(spot.directory));
            bytes.extend(length(out.len()));
            bytes.extend(out);
            before = path;
        }
        bytes
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
        // Mostly nothing has changed, and nobody asks.
        let by_id = LazyCell::new(|| {
            let mut by_id: HashMap<u64, &AbsPath> = HashMap::new();
            for spot in &earlier.0 {
                by_id.entry(spot.id).or_insert(&spot.path);
            }
            by_id
        });
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
    use crate::agent::project_walk::*;

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
        let bytes = later.bytes();
        assert_eq!(Look::read(&bytes), Some(later));
        (0..bytes.len()).for_each(|cut| assert_eq!(Look::read(&bytes[..cut]), None, "cut at {cut}"));
    }
}
