//! The walk over the tree of a snapshot: every object in the order of paths, parents first. Names all that is left out: by rules, as what
//! can be got back elsewhere ([`agent_cover`]), as other mounts, as recant's own store.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Display};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use super::agent_cover;
use super::agent_cover::{Area, Covering};
use super::error::{of_ours, refused, too_broad};
use super::paths::whole;
use super::rule_source::{Before, Earlier, Source};
use super::rules::{GITIGNORE, IgnoreFile, Matcher, RECANTIGNORE, Rules, Why};
use crate::error::{At as _, Error, reason};
use crate::fs::{AbsPath, Dir, Entry, LENGTH_MAX, PathError, Sort, Stat, Time};
use crate::tree::is_vcs;

/// One step of a walk. Paths have the directory as `/`.
pub enum WalkStep {
    Object(Object),
    /// An object that is left out, with all that is in it.
    Left {
        object: Object,
        why: Why,
    },
    /// An object that cannot be looked at, or a directory that cannot be listed: it, or its content, is unknown.
    Unlisted {
        path: AbsPath,
        why: Unseen,
    },
}

/// The reason why something is unknown.
#[derive(Debug, Clone)]
pub enum Unseen {
    /// Its rights keep recant out (EACCES): its owner can give them.
    Closed,
    Other(String),
}

impl Unseen {
    pub fn of(error: &std::io::Error) -> Self {
        if error.raw_os_error() == Some(libc::EACCES) { Self::Closed } else { Self::Other(reason(error)) }
    }
}

impl Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "permission denied",
            Self::Other(why) => why,
        })
    }
}

impl WalkStep {
    pub fn path(&self) -> &AbsPath {
        match self {
            WalkStep::Object(object) | WalkStep::Left { object, .. } => &object.path,
            WalkStep::Unlisted { path, .. } => path,
        }
    }
}

/// An object on the way.
#[derive(Clone)]
pub struct Object {
    pub path: AbsPath,
    pub dir: Arc<Dir>,
    pub stat: Stat,
    name: Vec<u8>,
}

impl Object {
    pub fn at(&self) -> Entry<'_> {
        self.dir.at(&self.name)
    }

    pub fn at_name(&self) -> &[u8] {
        &self.name
    }
}

/// The source of files of rules.
enum Files {
    /// They are read as they are found; `.gitignore` too, if so set.
    Found { gitignore: bool, read: Vec<IgnoreFile>, earlier: Option<Earlier> },
    /// They were found before.
    Kept(HashMap<AbsPath, Vec<IgnoreFile>>),
}

struct Frame {
    path: AbsPath,
    dir: Option<Arc<Dir>>,
    names: std::vec::IntoIter<Vec<u8>>,
    matcher: Option<Rc<Matcher>>,
    area: Option<Area>,
}

/// A walk over a directory, or a single object.
pub struct Walk<'a> {
    top: AbsPath,
    store: &'a AbsPath,
    first: Option<Object>,
    mount: u64,
    held_top: Option<Arc<Dir>>,
    stack: Vec<Frame>,
    matcher: Option<Rc<Matcher>>,
    files: Files,
    leaves_vcs: bool,
    /// Version control's own that was left out.
    repositories: Vec<AbsPath>,
    /// That of the snapshot whose rules these are. It stays that, also if nothing shows it any more.
    known: HashSet<AbsPath>,
    before: Option<Before>,
    covering: Option<Covering>,
    /// The first path that is met, and the first that is not.
    between: (Option<AbsPath>, Option<AbsPath>),
}

/// The number of directories on the way down that stay open.
const OPEN_LEVELS: usize = 64;
/// The most bytes of a name.
const NAME_MAX: usize = 255;
/// The most bytes that a file of rules may have.
const RULES_MAX: u64 = 1 << 20;

impl<'a> Walk<'a> {
    /// Begins a walk over `top`, a directory or anything else.
    pub fn new(top: &AbsPath, store: &'a AbsPath, source: &Source) -> Result<Self, Error> {
        let rules = source.rules();
        let cover = rules.cover.as_ref();
        let (files, covering, known) = match source {
            Source::Found(_) | Source::GoingOn(..) => {
                let gitignore = rules.gitignore || cover.is_some();
                let earlier = if let Source::GoingOn(_, earlier) = source { Some(earlier.clone()) } else { None };
                (Files::Found { gitignore, read: Vec::new(), earlier }, cover.map(Covering::of_tree), HashSet::new())
            }
            Source::Kept(..) => {
                let owned = |(path, files): (AbsPath, Vec<&IgnoreFile>)| (path, files.into_iter().cloned().collect());
                let files = rules.by_directory().into_iter().map(owned).collect();
                let known = rules.repositories.iter().cloned().collect();
                (Files::Kept(files), cover.map(Covering::of_snapshot), known)
            }
        };
        let mut walk = Self {
            top: top.clone(),
            store,
            first: None,
            mount: 0,
            held_top: None,
            stack: Vec::new(),
            matcher: rules.top()?,
            files,
            leaves_vcs: rules.leaves_vcs(),
            repositories: Vec::new(),
            known,
            before: source.before().cloned(),
            covering: covering.transpose()?,
            between: (None, None),
        };
        let Some(parent) = top.parent() else {
            return Err(too_broad(top, "the root directory is too broad"));
        };
        let dir = match Dir::open(parent.as_path()) {
            Err(error) if error.leads_nowhere() => return Ok(walk),
            dir => Arc::new(dir?),
        };
        let Some(stat) = dir.at(top.name()).stat()? else { return Ok(walk) };
        let path = AbsPath::parse("/").map_err(|_| unparsed(top))?;
        walk.first = Some(Object { path, dir, stat, name: top.name().to_vec() });
        Ok(walk)
    }

    /// The walk with what it meets from one path on, up to another: two of them, in two threads, are a walk.
    pub fn between(self, from: Option<AbsPath>, until: Option<AbsPath>) -> Self {
        Self { between: (from, until), ..self }
    }

    pub fn next(&mut self) -> Result<Option<WalkStep>, Error> {
        if let Some(first) = self.first.take() {
            let first = self.first(first)?;
            if self.between.0.is_none() {
                return Ok(Some(first));
            }
        }
        loop {
            let Some(frame) = self.stack.last_mut() else { return Ok(None) };
            let Some(name) = frame.names.next() else {
                self.stack.pop();
                continue;
            };
            let path = frame.path.join(&name).map_err(|_| unparsed(&frame.path))?;
            if self.between.1.as_ref().is_some_and(|until| path >= *until) {
                self.stack.clear();
                return Ok(None);
            }
            // What comes before is met by another walk; only what leads to the first path is entered here, too.
            let is_before = self.between.0.as_ref().is_some_and(|from| path < *from);
            if is_before && !self.between.0.as_ref().is_some_and(|from| from.is_under(&path)) {
                continue;
            }
            let dir = match &frame.dir {
                Some(dir) => dir.clone(),
                None => match &self.held_top {
                    Some(top) => {
                        let below = &frame.path.as_bytes()[1..];
                        let dir = Arc::new(top.open_below(below)?);
                        frame.dir = Some(dir.clone());
                        dir
                    }
                    None => continue,
                },
            };
            let stat = match dir.at(&name).stat() {
                Ok(Some(stat)) => stat,
                // It vanished since the directory was listed.
                Ok(None) => continue,
                Err(error) => {
                    let why = self.unlisted(&path, &error.source)?;
                    match is_before {
                        true => continue,
                        false => return Ok(Some(WalkStep::Unlisted { path, why })),
                    }
                }
            };
            let is_dir = stat.sort == Sort::Directory;
            let (matcher, area) = (frame.matcher.clone(), frame.area.clone());
            let object = Object { path, dir, stat, name };
            let met = match self.judge(&object, matcher.as_deref(), area) {
                Err(why) => WalkStep::Left { object, why },
                Ok(area) if is_dir => self.enter(&object, matcher, area)?.unwrap_or(WalkStep::Object(object)),
                Ok(_) => WalkStep::Object(object),
            };
            if !is_before {
                return Ok(Some(met));
            }
        }
    }

    /// Gives what holds in an object by the cover, or why it is left out.
    fn judge(&mut self, object: &Object, matcher: Option<&Matcher>, area: Option<Area>) -> Result<Option<Area>, Why> {
        let Object { path, dir, stat, name } = object;
        let is_dir = stat.sort == Sort::Directory;
        if stat.mount != self.mount || stat.mount_root {
            return Err(Why::Mount);
        }
        if is_dir && self.is_store(path) {
            return Err(Why::Store);
        }
        // Asked also where nothing follows from it: globs that match nothing are named.
        let says = matcher.and_then(|matcher| matcher.says(path, is_dir));
        if self.leaves_vcs && (is_vcs(name) || self.known.contains(path)) {
            self.repositories.push(path.clone());
            return Err(Why::Vcs);
        }
        match (&mut self.covering, area) {
            (Some(covering), Some(area)) => covering.judge(&area, path, (dir, stat), says).map(Some),
            _ if says == Some(true) => Err(Why::Rules),
            _ => Ok(None),
        }
    }

    /// Begins the walk. A directory is from here on the opened one, and its mount the one that is walked over.
    fn first(&mut self, mut first: Object) -> Result<WalkStep, Error> {
        if first.stat.sort == Sort::Directory {
            let area = self.covering.as_ref().map(Covering::top).transpose()?;
            if let Some(WalkStep::Unlisted { why, .. }) = self.enter(&first, self.matcher.clone(), area)? {
                let why = format!("cannot list the directory: {why}");
                return Err(refused(&self.top, why));
            }
            if let Some(top) = &self.held_top {
                first.stat = top.stat()?;
            }
        }
        self.mount = first.stat.mount;
        Ok(WalkStep::Object(first))
    }

    /// Returns the facts known only at the end.
    fn end(self, source: &Source) -> WalkEnd {
        let unfitted = self.matcher.as_ref().map_or_else(Vec::new, |matcher| matcher.unfitted());
        let rules = source.rules().clone();
        let rules = match self.files {
            Files::Found { read, .. } => {
                let cover = self.covering.map(|covering| covering.cover);
                Rules { files: read, repositories: self.repositories, cover, ..rules }
            }
            Files::Kept(_) => rules,
        };
        WalkEnd { rules, unfitted }
    }

    fn is_store(&self, path: &AbsPath) -> bool {
        let (store, top, path) = (self.store.as_bytes(), self.top.as_bytes(), path.as_bytes());
        store.len() == top.len() + path.len() && store.starts_with(top) && store.ends_with(path)
    }

    /// Enters a directory. Returns what is met instead, if it is not to be entered.
    fn enter(&mut self, object: &Object, matcher: Option<Rc<Matcher>>, area: Option<Area>) -> Result<Option<WalkStep>, Error> {
        // The asked directory may be a mount point itself; mounts in it are left out.
        let is_top = self.held_top.is_none();
        let across = || object.dir.open_across(&object.name).and_then(|dir| dir.names().map(|names| (dir, names)));
        let (dir, mut names) = match if is_top { across() } else { object.at().open_and_list() } {
            Ok((dir, names)) => (Arc::new(dir), names),
            Err(error) => {
                let why = self.unlisted(&object.path, &error.source)?;
                return Ok(Some(WalkStep::Unlisted { path: object.path.clone(), why }));
            }
        };
        let length = self.top.as_bytes().len() + object.path.as_bytes().len() + 1;
        if length + NAME_MAX > LENGTH_MAX && names.iter().any(|name| length + name.len() > LENGTH_MAX) {
            let why = Unseen::Other(PathError::TooDeep.to_string());
            return Ok(Some(WalkStep::Unlisted { path: object.path.clone(), why }));
        }
        names.sort_unstable();
        if self.leaves_vcs && !is_top && is_bare(&dir, &names) && !self.was_ordinary(&object.path)? {
            self.repositories.push(object.path.clone());
            return Ok(Some(WalkStep::Left { object: object.clone(), why: Why::Vcs }));
        }
        let (matcher, area) = self.rules_in(&object.path, &dir, &names, (matcher, area))?;
        if is_top {
            self.held_top = Some(dir.clone());
        }
        if let Some(far) = self.stack.len().checked_sub(OPEN_LEVELS) {
            self.stack[far].dir = None;
        }
        self.stack.push(Frame { path: object.path.clone(), dir: Some(dir), names: names.into_iter(), matcher, area });
        Ok(None)
    }

    /// True for a directory that the snapshot knows as an ordinary one, whatever it looks like now.
    fn was_ordinary(&self, path: &AbsPath) -> Result<bool, Error> {
        self.before.as_ref().map_or(Ok(false), |before| before.was_ordinary(path))
    }

    /// The reason why something cannot be looked at, if the cause is its own.
    fn unlisted(&self, path: &AbsPath, error: &std::io::Error) -> Result<Unseen, Error> {
        match of_ours(&whole(&self.top, path)?, error) {
            Some(ours) => Err(ours),
            None => Ok(Unseen::of(error)),
        }
    }

    /// The rules in a directory, by those in the one above it.
    fn rules_in(
        &mut self,
        path: &AbsPath,
        dir: &Dir,
        names: &[Vec<u8>],
        (matcher, area): (Option<Rc<Matcher>>, Option<Area>),
    ) -> Result<(Option<Rc<Matcher>>, Option<Area>), Error> {
        let has = |name: &str| names.binary_search_by(|known| known.as_slice().cmp(name.as_bytes())).is_ok();
        let git = if area.is_some() && has(".git") { agent_cover::repository(dir) } else { None };
        let files: Vec<&IgnoreFile> = match &mut self.files {
            Files::Kept(files) => files.get(path).into_iter().flatten().collect(),
            Files::Found { gitignore, read, earlier } => {
                let from = read.len();
                let mut found: Vec<(IgnoreFile, Time)> =
                    git.iter().map(|git| agent_cover::exclude(git, path, RULES_MAX)).collect();
                for name in [GITIGNORE, RECANTIGNORE] {
                    if (name != GITIGNORE || *gitignore) && has(name) {
                        found.extend(ignore_file(path, dir, name)?);
                    }
                }
                let counts = |(file, changed)| match earlier {
                    Some(earlier) => earlier.instead_of(file, changed),
                    None => Some(file),
                };
                read.extend(found.into_iter().filter_map(counts));
                read[from..].iter().collect()
            }
        };
        let Some((covering, area)) = self.covering.as_ref().zip(area) else {
            let matcher = if files.is_empty() { matcher } else { Matcher::with(matcher, path, &files) };
            return Ok((matcher, None));
        };
        let (own, gits): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.name == RECANTIGNORE);
        let matcher = if own.is_empty() { matcher } else { Matcher::with(matcher, path, &own) };
        Ok((matcher, Some(covering.within(area, path, git.as_ref(), &gits))))
    }
}

/// The facts that a walk knows at its end.
pub struct WalkEnd {
    /// The rules that it used, including those of files that it found.
    pub rules: Rules,
    /// The globs of the command line that matched nothing on its way.
    pub unfitted: Vec<String>,
}

/// A walk in a thread of its own, some steps ahead of its caller: half of a comparison is the look at the tree. The thread ends with this.
/// If no thread can be had (RLIMIT_NPROC), it walks in the caller's.
pub struct WalkAhead<'a> {
    from: Walker<'a>,
    batch: std::vec::IntoIter<WalkStep>,
    end: Option<WalkEnd>,
}

enum Walker<'a> {
    Thread(Receiver<Result<Vec<WalkStep>, Error>>, JoinHandle<Option<WalkEnd>>),
    Here(Box<(Walk<'a>, Source)>),
    End,
}

/// The number of steps passed at once: passing them costs as much as looking at several objects.
const BATCH: usize = 512;
/// The most directories in which the objects passed at once lie. They stay open on the way, those of at most four batches.
const DIRECTORIES: usize = 16;

/// The limit of [`DIRECTORIES`], lowered if fewer files may be open.
fn directories() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit / 64).unwrap_or(DIRECTORIES).clamp(1, DIRECTORIES)
}

impl<'a> WalkAhead<'a> {
    pub fn new(top: &AbsPath, store: &'a AbsPath, source: &Source) -> Result<Self, Error> {
        let (to, batches) = sync_channel(2);
        let (owned, within, rules) = (top.clone(), store.clone(), source.clone());
        let walk = move || match send(&owned, &within, &rules, &to) {
            Ok(end) => Some(end),
            Err(error) => {
                let _nobody_waits = to.send(Err(error));
                None
            }
        };
        let from = match std::thread::Builder::new().name("walk".into()).spawn(walk) {
            Ok(thread) => Walker::Thread(batches, thread),
            Err(_) => Walker::Here(Box::new((Walk::new(top, store, source)?, source.clone()))),
        };
        Ok(Self { from, batch: Vec::new().into_iter(), end: None })
    }

    /// The next step, as [`Walk::next`] returns it.
    pub fn next(&mut self) -> Result<Option<WalkStep>, Error> {
        if let Some(met) = self.batch.next() {
            return Ok(Some(met));
        }
        match &mut self.from {
            Walker::Thread(batches, _) => {
                if let Ok(batch) = batches.recv() {
                    self.batch = batch?.into_iter();
                    return Ok(self.batch.next());
                }
            }
            Walker::Here(walk) => {
                if let Some(met) = walk.0.next()? {
                    return Ok(Some(met));
                }
            }
            Walker::End => {}
        }
        // It has come to its end, or to a panic.
        self.end();
        Ok(None)
    }

    /// The facts of the walk, once nothing more is met.
    pub fn facts(&mut self) -> Option<WalkEnd> {
        self.end.take()
    }

    fn end(&mut self) {
        match std::mem::replace(&mut self.from, Walker::End) {
            Walker::Thread(batches, thread) => {
                // The sender then finds that nobody waits.
                drop(batches);
                match thread.join() {
                    Ok(end) => self.end = end,
                    Err(panic) if !std::thread::panicking() => std::panic::resume_unwind(panic),
                    Err(_) => {}
                }
            }
            Walker::Here(walk) => self.end = Some(walk.0.end(&walk.1)),
            Walker::End => {}
        }
    }
}

impl Drop for WalkAhead<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

/// Walks and passes on the steps, until the end or until nobody waits any more.
fn send(
    top: &AbsPath,
    store: &AbsPath,
    source: &Source,
    to: &SyncSender<Result<Vec<WalkStep>, Error>>,
) -> Result<WalkEnd, Error> {
    let mut walk = Walk::new(top, store, source)?;
    let most = directories();
    loop {
        let mut batch = Vec::with_capacity(BATCH);
        let mut directories: Vec<Arc<Dir>> = Vec::with_capacity(most);
        while batch.len() < BATCH
            && directories.len() < most
            && let Some(met) = walk.next()?
        {
            if let WalkStep::Object(object) | WalkStep::Left { object, .. } = &met
                && !directories.last().is_some_and(|last| Arc::ptr_eq(last, &object.dir))
            {
                directories.push(object.dir.clone());
            }
            batch.push(met);
        }
        if batch.is_empty() || to.send(Ok(batch)).is_err() {
            return Ok(walk.end(source));
        }
    }
}

/// Tells whether a directory is a bare git repository, by git's own signs (gitrepository-layout(5)): `HEAD`, a file or a link, and the
/// directories `objects` and `refs`. `names` are those in it, sorted.
fn is_bare(dir: &Dir, names: &[Vec<u8>]) -> bool {
    let sort = |name: &str| {
        names.binary_search_by(|known| known.as_slice().cmp(name.as_bytes())).ok()?;
        Some(dir.at(name.as_bytes()).stat().ok()??.sort)
    };
    let is_dir = |name| sort(name) == Some(Sort::Directory);
    is_dir("objects") && is_dir("refs") && matches!(sort("HEAD"), Some(Sort::File | Sort::Symlink))
}

/// Reads a file of rules, with the time of its last change; `None` for what is no file. An unreadable one is an error, as its rules would be ignored.
fn ignore_file(directory: &AbsPath, dir: &Dir, name: &str) -> Result<Option<(IgnoreFile, Time)>, Error> {
    use std::io::Read;
    let at = dir.at(name.as_bytes());
    let Some(stat) = at.stat()?.filter(|stat| stat.sort == Sort::File) else { return Ok(None) };
    let mut bytes = Vec::new();
    at.open_file().at("read the rules in", at)?.take(RULES_MAX + 1).read_to_end(&mut bytes).at("read the rules in", at)?;
    if bytes.len() as u64 > RULES_MAX {
        let why = format!("it is larger than {}, the most for exclude rules", crate::settings::bytes(RULES_MAX));
        return Err(refused(at, why));
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Some((IgnoreFile { directory: directory.clone(), name: name.into(), text }, stat.ctime)))
}

fn unparsed(path: &AbsPath) -> Error {
    refused(path, "a name in it cannot be a path")
}

#[cfg(test)]
mod tests {
    use crate::snapshot::snapshot_walk::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "tests set up real files")]
    fn two_parts_of_a_walk_meet_what_the_whole_meets_wherever_it_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a/x/1", "a/x/2", "a/y", "a-b", "b/1/2/3", "c"] {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        let path = |bytes: &[u8]| AbsPath::parse(bytes).unwrap();
        let (top, nowhere) = (path(dir.path().as_os_str().as_encoded_bytes()), path(b"/nowhere"));
        let met = |from: Option<AbsPath>, until: Option<AbsPath>| {
            let mut walk = Walk::new(&top, &nowhere, &Source::default()).unwrap().between(from, until);
            let mut paths = Vec::new();
            while let Some(WalkStep::Object(object)) = walk.next().unwrap() {
                paths.push(object.path);
            }
            paths
        };
        let whole = met(None, None);
        assert!(whole.len() == 12 && whole.is_sorted(), "{whole:?}");
        for cut in &whole {
            assert_eq!([met(None, Some(cut.clone())), met(Some(cut.clone()), None)].concat(), whole, "{cut}");
        }
    }
}
