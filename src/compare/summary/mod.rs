//! A summary of changes: what a person looks for has a line each, all else a line together.
//!
//! In this order: what is dangerous, then the other single changes; new and deleted directories; what package managers, compilers and caches
//! made; what git did. What is dangerous is in no group. Contents are read of git's own files alone.

mod git;
mod kind;
mod known_places;
mod reflog;
mod tracked;

use std::cell::OnceCell;
use std::collections::BTreeMap;

use serde::Serialize;

pub use git::GitAct;
pub use kind::Kind;
pub use known_places::KnownPlaces;

use self::tracked::Tracked;
use super::patch::Lines;
use super::renames::{Open, Renames};
use super::sources::{Content, End, Sources};
use super::step_differences::{Place, States};
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Change, Session, Side, Sort};
use crate::tree::{Danger, Object, State, sort_word};

/// The changes of a session, or between two states.
#[derive(Debug, Default, Serialize)]
pub struct Summary {
    /// Those with a line each: what is dangerous first, then in path order.
    pub changes: Vec<Single>,
    /// Directories that came or went with all that is in them, in path order.
    pub directories: Vec<Directory>,
    /// In the order of [`Kind`], then of their paths.
    pub groups: Vec<Group>,
    /// Changes of the mtime alone, which are in none of these.
    pub times: u64,
}

/// A change with a line of its own.
#[derive(Debug, Serialize)]
pub struct Single {
    /// Its index among all changes.
    #[serde(skip)]
    pub index: usize,
    pub path: AbsPath,
    pub change: Sort,
    /// The word for the object, else for the one that was there before: `file`, `directory`, …
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub danger: Option<Danger>,
    /// A look at its contents and at the tree, if somebody looked.
    #[serde(flatten)]
    pub seen: Option<Seen>,
}

/// A look at a change.
#[derive(Debug, Serialize)]
pub struct Seen {
    /// The tree does not hold what the session recorded.
    pub conflict: bool,
    pub lines: Lines,
}

/// A directory that came or went.
#[derive(Debug, Serialize)]
pub struct Directory {
    pub path: AbsPath,
    /// `created` or `deleted`.
    pub change: Sort,
    /// The number of files, links and the like in it, at any depth.
    pub files: u64,
    pub bytes: u64,
    #[serde(skip)]
    of: Vec<usize>,
}

/// Changes that are told together.
#[derive(Debug, Serialize)]
pub struct Group {
    pub kind: Kind,
    /// The directory that all of them lie in.
    pub path: AbsPath,
    /// The name of the directories below it, or the glob of the files, where the group is not the directory itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub created: u64,
    /// Those of metadata, too.
    pub modified: u64,
    pub deleted: u64,
    /// Of what is there after them, else of what was there before.
    pub bytes: u64,
    /// The acts of git on the repository, as far as its files tell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub git: Vec<GitAct>,
    #[serde(skip)]
    of: Vec<usize>,
}

/// The things that are in a summary.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// All changes, in path order.
    pub changes: &'a [Change],
    /// The indexes of those that were asked for, in path order.
    pub chosen: &'a [usize],
    /// The paths that were named: what lies at or above one of them is told in single lines.
    pub named: &'a [AbsPath],
    pub places: &'a KnownPlaces,
    /// The renames that are shown as such: each has a line, also in a new directory.
    pub renames: Option<&'a Renames>,
    /// True if changes of the mtime alone are told like others.
    pub all: bool,
}

/// The place of a change in a summary, before changes are counted.
enum Slot {
    Single,
    /// Below a directory that came or went.
    Directory(AbsPath, Sort),
    /// At or below a directory, which is a group or a part of one.
    Below(Kind, AbsPath),
    /// A file that a glob names.
    Named(String),
}

impl Summary {
    /// Makes the summary. `open` opens contents of changes.
    ///
    /// # Errors
    /// A content cannot be read.
    pub fn of(subject: Subject<'_>, open: &mut Open<'_>) -> Result<Self, Error> {
        let changes = subject.changes;
        let (mut parts, mut times) = (Parts::default(), 0);
        let mut sorting = Sorting { subject, tracked: Tracked::of(changes), came_or_went: None, group: None };
        for i in subject.chosen.iter().copied() {
            if changes[i].sort() == Sort::Times && !subject.all {
                times += 1;
                continue;
            }
            match sorting.slot(i, open)? {
                Slot::Single => parts.singles.push(i),
                Slot::Directory(top, sort) => parts.directories.entry(top).or_insert_with(|| (sort, Vec::new())).1.push(i),
                Slot::Below(Kind::Repository, top) => parts.repositories.entry(top).or_default().push(i),
                Slot::Below(kind, top) => {
                    parts.below.entry((kind, top.name().to_vec())).or_default().entry(top).or_default().push(i);
                }
                Slot::Named(glob) => parts.named.entry(glob).or_default().push(i),
            }
        }
        let mut groups = parts.groups(changes);
        for (top, of) in std::mem::take(&mut parts.repositories) {
            let git = git::acts(&top, (changes, &of), open)?;
            groups.push(Group { git, ..Group::of(changes, Kind::Repository, (top, None), of) });
        }
        groups.sort_by(|a, b| (a.kind, &a.path, &a.name).cmp(&(b.kind, &b.path, &b.name)));
        let directories = parts.directories(changes);
        Ok(Self { changes: parts.singles(changes), directories, groups, times })
    }

    /// Makes the summary of a session's changes, of which some may be gone or damaged: then it tells less of git.
    ///
    /// # Errors
    /// None that a content causes.
    pub fn of_session(subject: Subject<'_>, sides: &[Side], session: &Session) -> Result<Self, Error> {
        let mut sources = Sources::of(session).ok();
        let mut open = |i: usize, end| {
            let opened = sources.as_mut().and_then(|sources| sources.open(&subject.changes[i], sides[i], end).ok());
            Ok(opened.unwrap_or_else(|| Content::Gone("it cannot be read".into())))
        };
        Self::of(subject, &mut open)
    }

    /// Makes the summary of what taking a session's changes back does, as of changes the other way round.
    ///
    /// # Errors
    /// None that a content causes.
    pub fn of_way_back(subject: Subject<'_>, sides: &[Side], session: &Session) -> Result<Self, Error> {
        let mut sources = Sources::of(session).ok();
        let mut open = |i: usize, end| {
            let end = if matches!(end, End::Before) { End::After } else { End::Before };
            let opened = sources.as_mut().and_then(|sources| sources.open(&subject.changes[i], sides[i], end).ok());
            Ok(opened.unwrap_or_else(|| Content::Gone("it cannot be read".into())))
        };
        let back: Vec<Change> = subject.changes.iter().map(Change::inverse).collect();
        Self::of(Subject { changes: &back, ..subject }, &mut open)
    }

    /// Makes the summary of a step's changes, each with its ends. Other steps are read only where git's own files changed; where they cannot
    /// be, it tells less of git.
    ///
    /// # Errors
    /// None that a content causes.
    pub fn of_step(subject: Subject<'_>, ends: &[[Place<'_>; 2]], session: &Session) -> Result<Self, Error> {
        let head = OnceCell::new();
        let mut states = None;
        let mut open = |i: usize, end| {
            let states = states.get_or_insert_with(|| {
                let head = head.get_or_init(|| session.changes().unwrap_or_default());
                States::of([(session, head)]).ok()
            });
            let opened = states.as_mut().and_then(|states| states.open(ends[i], end).ok());
            Ok(opened.unwrap_or_else(|| Content::Gone("it cannot be read".into())))
        };
        Self::of(subject, &mut open)
    }

    /// The indexes of the changes with a line each, in path order.
    pub fn singles(&self) -> Vec<usize> {
        let mut indexes: Vec<usize> = self.changes.iter().map(|single| single.index).collect();
        indexes.sort_unstable();
        indexes
    }

    /// The indexes of those, and of all in new and deleted directories, in path order.
    pub fn outside_of_groups(&self) -> Vec<usize> {
        let mut indexes = self.singles();
        indexes.extend(self.directories.iter().flat_map(|directory| &directory.of));
        indexes.sort_unstable();
        indexes
    }

    /// The indexes of the changes that are told together with others.
    pub fn together(&self) -> impl Iterator<Item = usize> {
        let directories = self.directories.iter().flat_map(|directory| &directory.of);
        directories.chain(self.groups.iter().flat_map(|group| &group.of)).copied()
    }

    /// The number of changes that are told together with others.
    pub fn folded(&self) -> u64 {
        let directories = self.directories.iter().map(|directory| directory.of.len());
        directories.sum::<usize>() as u64 + self.grouped()
    }

    /// The number of branches that lose commits, or are gone, and of repositories that are.
    pub fn losses(&self) -> u64 {
        let is_loss = |act: &&GitAct| act.loses() || matches!(act, GitAct::BranchDeleted { .. } | GitAct::Deleted);
        self.groups.iter().flat_map(|group| &group.git).filter(is_loss).count() as u64
    }

    /// The number of changes in groups.
    pub fn grouped(&self) -> u64 {
        self.groups.iter().map(Group::count).sum()
    }
}

impl Directory {
    fn of(changes: &[Change], path: AbsPath, change: Sort, of: Vec<usize>) -> Self {
        let objects = || of.iter().map(|i| object(&changes[*i])).filter(|object| !is_directory(object));
        let (files, bytes) = (objects().count() as u64, objects().flatten().map(State::size).sum());
        Self { path, change, files, bytes, of }
    }
}

impl Group {
    fn of(changes: &[Change], kind: Kind, (path, name): (AbsPath, Option<String>), of: Vec<usize>) -> Self {
        let [mut created, mut modified, mut deleted] = [0; 3];
        for i in &of {
            match changes[*i].sort() {
                Sort::Created => created += 1,
                Sort::Deleted => deleted += 1,
                Sort::Modified | Sort::Metadata | Sort::Times => modified += 1,
            }
        }
        let bytes = of.iter().filter_map(|i| object(&changes[*i]).as_ref()).map(State::size).sum();
        Self { kind, path, name, created, modified, deleted, bytes, git: Vec::new(), of }
    }

    /// The number of its changes.
    pub fn count(&self) -> u64 {
        self.of.len() as u64
    }
}

/// The changes by their slots, by index.
#[derive(Default)]
struct Parts {
    singles: Vec<usize>,
    directories: BTreeMap<AbsPath, (Sort, Vec<usize>)>,
    /// By the name of their directories, then by these.
    below: BTreeMap<(Kind, Vec<u8>), BTreeMap<AbsPath, Vec<usize>>>,
    repositories: BTreeMap<AbsPath, Vec<usize>>,
    named: BTreeMap<String, Vec<usize>>,
}

impl Parts {
    /// The groups, but for repositories. One with a single change is none: the change says more.
    fn groups(&mut self, changes: &[Change]) -> Vec<Group> {
        let below = std::mem::take(&mut self.below).into_iter().map(|((kind, name), tops)| {
            let mut paths = tops.keys();
            let place = match (paths.next(), paths.next()) {
                (Some(top), None) => (top.clone(), None),
                _ => (common(tops.keys()), Some(String::from_utf8_lossy(&name).into_owned())),
            };
            Group::of(changes, kind, place, tops.into_values().flatten().collect())
        });
        let named = std::mem::take(&mut self.named).into_iter().map(|(glob, of)| {
            let place = (common(of.iter().map(|i| &changes[*i].path)), Some(glob));
            Group::of(changes, Kind::Built, place, of)
        });
        let (groups, single): (Vec<_>, Vec<_>) = below.chain(named).partition(|group| group.of.len() > 1);
        self.singles.extend(single.into_iter().flat_map(|group| group.of));
        groups
    }

    /// The directories that came or went with more than one file.
    fn directories(&mut self, changes: &[Change]) -> Vec<Directory> {
        let all = std::mem::take(&mut self.directories).into_iter();
        let all = all.map(|(path, (change, of))| Directory::of(changes, path, change, of));
        let (directories, others): (Vec<_>, Vec<_>) = all.partition(|directory| directory.files > 1);
        self.singles.extend(others.into_iter().flat_map(|directory| directory.of));
        directories
    }

    /// The rest: what is dangerous first.
    fn singles(mut self, changes: &[Change]) -> Vec<Single> {
        self.singles.sort_unstable();
        let single = |index: usize| {
            let change = &changes[index];
            let kind = object(change).as_ref().map_or("", |state| sort_word(state.sort()));
            Single { index, path: change.path.clone(), change: change.sort(), kind, danger: change.danger(), seen: None }
        };
        let mut singles: Vec<Single> = self.singles.into_iter().map(single).collect();
        singles.sort_by_key(|single| Danger::place(single.danger));
        singles
    }
}

/// Finds the slots of changes in path order.
struct Sorting<'a> {
    subject: Subject<'a>,
    tracked: Tracked<'a>,
    /// The topmost directory that came or went, as far as changes lie below it.
    came_or_went: Option<(AbsPath, Sort)>,
    /// The directory of the last change that was in one.
    group: Option<(Kind, AbsPath)>,
}

impl Sorting<'_> {
    fn slot(&mut self, i: usize, open: &mut Open<'_>) -> Result<Slot, Error> {
        let Subject { changes, renames, .. } = self.subject;
        let change = &changes[i];
        let path = &change.path;
        if self.came_or_went.as_ref().is_none_or(|(top, _)| !path.is_under(top)) {
            let is_whole = is_directory(object(change)) && matches!(change.sort(), Sort::Created | Sort::Deleted);
            self.came_or_went = is_whole.then(|| (path.clone(), change.sort())).filter(|(top, _)| !self.is_open(top));
        }
        if change.danger().is_some() {
            return Ok(Slot::Single);
        }
        if self.group.as_ref().is_none_or(|(_, top)| !path.is_under(top)) {
            let is_top = |top: &AbsPath| !self.is_open(top);
            self.group = self.subject.places.outermost(path, is_directory(object(change)), is_top);
        }
        let has_sources = |kind| matches!(kind, Kind::Dependencies | Kind::Built);
        if let Some((kind, top)) = &self.group
            && !(has_sources(*kind) && self.tracked.has(top, path, open)?)
        {
            return Ok(Slot::Below(*kind, top.clone()));
        }
        if let Some(glob) = self.subject.places.byproduct(path).filter(|_| !self.subject.named.contains(path))
            && !self.tracked.has(path, path, open)?
        {
            return Ok(Slot::Named(glob));
        }
        let is_renamed = renames.is_some_and(|renames| renames.from(changes, i).is_some() || renames.to(changes, i).is_some());
        Ok(match &self.came_or_went {
            Some((top, sort)) if !is_renamed => Slot::Directory(top.clone(), *sort),
            _ => Slot::Single,
        })
    }

    /// True if something at or below a directory was named.
    fn is_open(&self, top: &AbsPath) -> bool {
        self.subject.named.iter().any(|named| named.is_under(top))
    }
}

/// The object that is there after a change, else the one before it.
fn object(change: &Change) -> &Object {
    if change.after.is_some() { &change.after } else { &change.before.object }
}

fn is_directory(object: &Object) -> bool {
    object.as_ref().is_some_and(State::is_dir)
}

/// The deepest directory that all paths lie in.
fn common<'p>(mut paths: impl Iterator<Item = &'p AbsPath>) -> AbsPath {
    let first = paths.next().and_then(AbsPath::parent);
    let top = first.unwrap_or_else(|| AbsPath::parse("/").expect("the root is a path"));
    paths.fold(top, |top, path| std::iter::once(top.clone()).chain(top.ancestors()).find(|top| path.is_under(top)).unwrap_or(top))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Before;
    use crate::settings::Settings;
    use crate::tree::{Meta, What};

    fn path(text: &str) -> AbsPath {
        AbsPath::parse(text).expect("an absolute path")
    }

    /// `+` comes, `-` goes, `~` changes; a slash at the end makes it a directory.
    fn changes(rows: &[&str]) -> Vec<Change> {
        let change = |row: &&str| {
            let (sort, text) = row.split_at(1);
            let object = |size| {
                let what = if text.ends_with('/') { What::Directory } else { What::File { size, hash: None, index: None } };
                let meta = Meta { mode: 0o644, uid: 0, gid: 0, mtime: Default::default(), xattrs: Default::default() };
                Some(State { what, meta })
            };
            let (before, after) = (object(1).filter(|_| sort != "+"), object(2).filter(|_| sort != "-"));
            Change::new(0, path(text.trim_end_matches('/')), Before { object: before, print: None }, after)
        };
        let mut changes: Vec<Change> = rows.iter().map(change).collect();
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes
    }

    fn summary(rows: &[&str], named: &[&str]) -> Summary {
        let changes = changes(rows);
        let home = std::path::Path::new("/h");
        let places = KnownPlaces::of(&Settings::defaults(None, Some(home)), Some(path("/h/target/p")));
        let chosen: Vec<usize> = (0..changes.len()).collect();
        let named: Vec<AbsPath> = named.iter().map(|text| path(text)).collect();
        let subject = Subject { changes: &changes, chosen: &chosen, named: &named, places: &places, renames: None, all: false };
        Summary::of(subject, &mut |_, _| Ok(super::super::sources::Content::Gone("it is not kept".into())))
            .expect("nothing is read")
    }

    /// A line each, in order.
    fn told(summary: &Summary) -> Vec<String> {
        let singles = summary.changes.iter().map(|single| single.path.to_string());
        let directories =
            summary.directories.iter().map(|d| format!("{} {}: {} files, {} bytes", d.change.word(), d.path, d.files, d.bytes));
        let groups = summary.groups.iter().map(|g| {
            let name = g.name.as_ref().map(|name| format!("…{name}")).unwrap_or_default();
            format!("{:?} {}{name}: +{} ~{} -{}, {} bytes", g.kind, g.path, g.created, g.modified, g.deleted, g.bytes)
        });
        singles.chain(directories).chain(groups).collect()
    }

    #[test]
    fn what_people_look_for_comes_before_what_programs_made() {
        let found = summary(
            &[
                "+/h/.npm/_cacache/a",
                "+/h/.npm/_cacache/b",
                "+/h/.cache/x/node_modules/a",
                "~/h/.cache/x/node_modules/b",
                "~/h/target/p/README.md",
                "~/h/target/p/package.json",
                "+/h/target/p/node_modules/",
                "+/h/target/p/node_modules/a/",
                "+/h/target/p/node_modules/a/package.json",
                "+/h/target/p/node_modules/a/target/x",
                "-/h/target/p/dist/app.js",
                "~/h/target/p/dist/b.js",
                "+/h/target/p/src/a.o",
                "+/h/target/p/src/sub/b.o",
                "+/h/target/p/a/__pycache__/x",
                "+/h/target/p/b/__pycache__/y",
                "+/h/target/p/.git/objects/12/34",
                "~/h/target/p/.git/index",
                "~/h/target/p/.git/config",
                "+/h/target/p/.git/hooks/pre-commit",
            ],
            &[],
        );
        assert_eq!(
            told(&found),
            [
                "/h/target/p/.git/config",
                "/h/target/p/.git/hooks/pre-commit",
                "/h/target/p/package.json",
                "/h/target/p/README.md",
                "Dependencies /h/target/p/node_modules: +4 ~0 -0, 4 bytes",
                "Built /h/target/p…__pycache__: +2 ~0 -0, 4 bytes",
                "Built /h/target/p/dist: +0 ~1 -1, 3 bytes",
                "Built /h/target/p/src…*.o: +2 ~0 -0, 4 bytes",
                "Caches /h/.cache: +1 ~1 -0, 4 bytes",
                "Caches /h/.npm/_cacache: +2 ~0 -0, 4 bytes",
                "Repository /h/target/p/.git: +1 ~1 -0, 4 bytes",
            ]
        );
        assert_eq!((found.groups.last().expect("a group").git.as_slice(), found.folded()), (&[GitAct::Index][..], 16));
    }

    #[test]
    fn a_directory_that_came_or_went_is_one_line_and_a_single_file_is_its_own() {
        let found = summary(
            &[
                "+/p/new/",
                "+/p/new/a",
                "+/p/new/sub/",
                "+/p/new/sub/b",
                "+/p/new/package.json",
                "-/p/old/",
                "-/p/old/a",
                "-/p/old/b",
                "+/p/one/",
                "+/p/one/a",
                "+/p/build/",
                "~/p/dist/one",
                "~/p/kept/",
                "~/p/kept/a",
            ],
            &[],
        );
        assert_eq!(
            told(&found),
            [
                "/p/new/package.json",
                "/p/build",
                "/p/dist/one",
                "/p/kept/a",
                "/p/one",
                "/p/one/a",
                "created /p/new: 2 files, 4 bytes",
                "deleted /p/old: 2 files, 2 bytes",
            ]
        );
    }

    #[test]
    fn what_is_named_is_told_by_its_parts() {
        let rows = ["+/p/new/", "+/p/new/a", "+/p/new/sub/", "+/p/new/sub/b", "+/p/new/sub/c", "~/p/dist/a", "~/p/dist/b"];
        for (named, want) in [
            (&["/p"][..], &["created /p/new: 3 files, 6 bytes", "Built /p/dist: +0 ~2 -0, 4 bytes"][..]),
            (&["/p/new", "/p/dist"], &["/p/dist/a", "/p/dist/b", "/p/new", "/p/new/a", "created /p/new/sub: 2 files, 4 bytes"]),
            (&["/p/dist/a"], &["/p/dist/a", "/p/dist/b", "created /p/new: 3 files, 6 bytes"]),
        ] {
            assert_eq!(told(&summary(&rows, named)), want, "{named:?}");
        }
    }
}
