//! Cover: what the snapshots of an agent's turns have. All but what can be got back elsewhere:
//!
//! | what | covered |
//! | --- | --- |
//! | what git tracks, or does not ignore | all of it |
//! | directories of the preset `dev`, which builds and package managers make | what git tracks in them |
//! | other directories that git ignores | as below, if at most [`MANY`] entries are in them; else what git tracks |
//! | files that git ignores | those of at most [`LARGE`], but for what compilers and editors put beside sources |
//!
//! Without a repository the preset stands for what git ignores. Any path that a `.recantignore` names is left out, and any that it takes back
//! in is covered.
//!
//! A turn has one cover: what its snapshot before decides about a path holds for all that is compared with it, so that a file is not taken
//! for deleted because it has grown.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::error::no_glob;
use super::rules::{Cover, IgnoreFile, Matcher, Rules, Why};
use crate::error::Error;
use crate::fs::{AbsPath, Dir, Sort, Stat, Time};
use crate::tree::{generated, git_index};

/// The most bytes of a file that git ignores.
pub const LARGE: u64 = 1 << 20;
/// The most entries of a directory that git ignores, with those of the directories in it.
pub const MANY: usize = 1_000;

/// The name under which a repository's own file of rules is kept: `info/exclude` of its directory. Kept of each repository, also without
/// rules, as no rules of a directory above hold in it.
pub const EXCLUDE: &str = "exclude";

/// The paths that git tracks, in byte order.
struct Tracked(Vec<Box<[u8]>>);

impl Tracked {
    /// The range of those below a directory, within one of a directory above.
    fn below(&self, within: &Range<usize>, directory: &AbsPath) -> Range<usize> {
        let [from, to] = [b'/', b'/' + 1].map(|end| {
            let bound = [if directory.depth() == 0 { b"" } else { directory.as_bytes() }, &[end]].concat();
            within.start + self.0[within.clone()].partition_point(|path| **path < bound[..])
        });
        from..to
    }

    fn has(&self, within: &Range<usize>, path: &AbsPath) -> bool {
        self.0[within.clone()].binary_search_by(|known| (**known).cmp(path.as_bytes())).is_ok()
    }
}

/// The rules that hold in a directory.
#[derive(Clone)]
pub struct Area {
    ignores: Option<Rc<Matcher>>,
    tracked: Rc<Tracked>,
    /// The range of the tracked paths that lie below it.
    range: Range<usize>,
    is_ignored: bool,
    /// True in one of which only what git tracks is covered.
    is_built: bool,
}

pub struct Covering {
    byproducts: Gitignore,
    decided: Option<HashMap<AbsPath, bool>>,
    /// The decisions of this walk, with those of an earlier one.
    pub cover: Cover,
}

impl Covering {
    pub fn of_tree(cover: &Cover) -> Result<Self, Error> {
        let mut builder = GitignoreBuilder::new("/");
        let bad = |glob: &str, error: &ignore::Error| no_glob(glob, &error.to_string());
        for glob in &cover.byproducts {
            builder.add_line(None, glob).map_err(|error| bad(glob, &error))?;
        }
        let byproducts = builder.build().map_err(|error| bad("", &error))?;
        Ok(Self { byproducts, decided: None, cover: Cover { byproducts: cover.byproducts.clone(), ..Cover::default() } })
    }

    /// Begins a walk by the decisions of a snapshot.
    pub fn of_snapshot(cover: &Cover) -> Result<Self, Error> {
        let of = |paths: &[AbsPath], is_covered| paths.iter().map(|path| (path.clone(), is_covered)).collect::<Vec<_>>();
        let decided = [of(&cover.small, true), of(&cover.large, false)].concat().into_iter().collect();
        Ok(Self { decided: Some(decided), cover: cover.clone(), ..Self::of_tree(cover)? })
    }

    /// Gives what holds in the top directory, if no repository begins there.
    pub fn top(&self) -> Result<Area, Error> {
        let ignores = Rules { presets: vec!["dev".into()], ..Rules::default() }.top()?;
        let mut tracked: Vec<Box<[u8]>> = Vec::new();
        if self.decided.is_some() {
            tracked.extend(self.cover.tracked.iter().map(|path| path.as_bytes().into()));
            tracked.sort_unstable();
        }
        let range = 0..tracked.len();
        Ok(Area { ignores, tracked: Rc::new(Tracked(tracked)), range, is_ignored: false, is_built: false })
    }

    /// Gives what holds in a directory, by what holds in the one above it and the files of rules in it. `git` is the repository's own directory, if
    /// one begins here.
    pub fn within(&self, above: Area, path: &AbsPath, git: Option<&Dir>, files: &[&IgnoreFile]) -> Area {
        let mut area = above;
        area.range = area.tracked.below(&area.range, path);
        if files.iter().any(|file| file.name == EXCLUDE) {
            area.ignores = None;
            if self.decided.is_none()
                && let Some(git) = git
            {
                area.tracked = Rc::new(Tracked(tracked(git, path)));
                area.range = 0..area.tracked.0.len();
            }
        }
        area.ignores = Matcher::with(area.ignores, path, files);
        area
    }

    /// Decides about an object: `says` is what the files of recant's own rules say of it. Gives what holds in it, if it is a directory, or why
    /// it is left out.
    pub fn judge(&mut self, area: &Area, path: &AbsPath, object: (&Dir, &Stat), says: Option<bool>) -> Result<Area, Why> {
        let (dir, stat) = object;
        let inner = |is_ignored, is_built| Ok(Area { is_ignored, is_built, ..area.clone() });
        match says {
            Some(true) => return Err(Why::Rules),
            Some(false) => return inner(false, false),
            None => {}
        }
        let is_dir = stat.sort == Sort::Directory;
        if !is_dir && !area.range.is_empty() && area.tracked.has(&area.range, path) {
            if area.is_built || self.is_ignored(area, path, false) {
                self.note_tracked(path);
            }
            return inner(false, false);
        }
        let has_tracked = || !area.range.is_empty() && !area.tracked.below(&area.range, path).is_empty();
        if area.is_built || is_dir && generated(path.name()).is_some() {
            return if is_dir && has_tracked() { inner(true, true) } else { Err(Why::Built) };
        }
        if !self.is_ignored(area, path, is_dir) {
            return inner(false, false);
        }
        if is_dir {
            // Of a directory that was decided about, those in it follow.
            let is_few = area.is_ignored || self.decide(path, || is_few(dir, path.name()));
            return match (is_few, has_tracked()) {
                (true, _) => inner(true, false),
                (false, true) => inner(true, true),
                (false, false) => Err(Why::Many),
            };
        }
        if self.byproducts.matched(path.as_path(), false).is_ignore() {
            return Err(Why::Byproduct);
        }
        if self.decide(path, || stat.size <= LARGE) { inner(false, false) } else { Err(Why::Large) }
    }

    fn is_ignored(&self, area: &Area, path: &AbsPath, is_dir: bool) -> bool {
        area.is_ignored || area.ignores.as_ref().is_some_and(|ignores| ignores.leaves_out(path, is_dir))
    }

    fn decide(&mut self, path: &AbsPath, is_small: impl FnOnce() -> bool) -> bool {
        if let Some(known) = self.decided.as_ref().and_then(|decided| decided.get(path)) {
            return *known;
        }
        let is_small = is_small();
        if self.decided.is_none() {
            let list = if is_small { &mut self.cover.small } else { &mut self.cover.large };
            list.push(path.clone());
        }
        is_small
    }

    fn note_tracked(&mut self, path: &AbsPath) {
        if self.decided.is_none() {
            self.cover.tracked.push(path.clone());
        }
    }
}

/// True if at most [`MANY`] entries are in a directory. What cannot be listed counts as one.
fn is_few(dir: &Dir, name: &[u8]) -> bool {
    fn count(dir: &Dir, left: &mut usize) -> Option<()> {
        for (name, sort) in dir.first_names_and_sorts(*left).unwrap_or_else(|_| Some(Vec::new()))? {
            *left = left.checked_sub(1)?;
            if sort.is_none_or(|sort| sort == Sort::Directory)
                && let Ok(below) = dir.at(&name).open_dir()
            {
                count(&below, left)?;
            }
        }
        Some(())
    }
    dir.at(name).open_dir().is_ok_and(|dir| count(&dir, &mut MANY.clone()).is_some())
}

/// The paths that a repository at `top` tracks, by its index: none if that is missing, or of a form that is unknown.
fn tracked(git: &Dir, top: &AbsPath) -> Vec<Box<[u8]>> {
    let bytes = read_below(git, b"index", git_index::MOST);
    let above: &[u8] = if top.depth() == 0 { b"" } else { top.as_bytes() };
    let whole = |path: Vec<u8>| [above, b"/", &path].concat().into_boxed_slice();
    let mut paths: Vec<_> = bytes.and_then(|bytes| git_index::paths(&bytes)).into_iter().flatten().map(whole).collect();
    paths.dedup();
    paths
}

/// The repository's own directory behind a `.git`: that itself, or the one that it names (gitrepository-layout(5)).
pub fn repository(dir: &Dir) -> Option<Dir> {
    let at = dir.at(b".git");
    match at.stat().ok()??.sort {
        Sort::Directory => at.open_dir().ok(),
        Sort::File => {
            let text = read_below(dir, b".git", 1 << 12)?;
            let to = std::str::from_utf8(&text).ok()?.strip_prefix("gitdir: ")?.trim_end();
            Dir::open(&dir.path().join(to)).ok()
        }
        _ => None,
    }
}

/// The directory that a worktree's own shares with all others of its repository.
pub fn common(git: &Dir) -> Option<Dir> {
    let to = String::from_utf8(read_below(git, b"commondir", 1 << 12)?).ok()?;
    Dir::open(&git.path().join(to.trim_end())).ok()
}

/// The repository's own file of rules, read up to `most` bytes, with the time of its last change. Without one it is empty.
pub fn exclude(git: &Dir, directory: &AbsPath, most: u64) -> (IgnoreFile, Time) {
    let common = common(git);
    let git = common.as_ref().unwrap_or(git);
    let text = read_below(git, b"info/exclude", most).unwrap_or_default();
    let stat = git.open_below(b"info").ok().and_then(|info| info.at(b"exclude").stat().ok()?);
    let file =
        IgnoreFile { directory: directory.clone(), name: EXCLUDE.into(), text: String::from_utf8_lossy(&text).into_owned() };
    (file, stat.map_or_else(Time::default, |stat| stat.ctime))
}

/// The first bytes of a file below a directory; `None` if it cannot be read.
pub fn read_below(dir: &Dir, path: &[u8], most: u64) -> Option<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    dir.open_file_below(path).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
