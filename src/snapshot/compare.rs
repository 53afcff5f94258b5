//! The differences between a snapshot and the tree, or between two snapshots.

use std::collections::{BTreeMap, BTreeSet, HashSet, btree_map};
use std::hash::Hash;

use super::content::Kept;
use super::error::of_ours;
use super::hard_links::{self, Names};
use super::index::{Index, Known};
use super::manifest::{self, At, Closing, Entry, Merged, Unread};
use super::paths::whole;
use super::rule_source::{Before, Source};
use super::rules::{Rules, Vcs, Why, is_vcs, vcs_above};
use super::series::Series;
use super::walk::{Ahead, Met, Object, Unseen};
use crate::error::Error;
use crate::fs::device_number::Dev;
use crate::fs::dir::{Sort, Time};
use crate::fs::path::AbsPath;
use crate::tree::observe;
use crate::tree::observe::Seen;
use crate::tree::state::{Fingerprint, Likeness, Object as There, State, What};

/// A path that differs. Paths have the directory as `/`.
#[derive(Debug, Clone)]
pub struct Difference {
    pub path: AbsPath,
    pub then: There,
    pub at: Option<At>,
    /// The first name of the file, if this was one of several.
    pub link: Option<AbsPath>,
    /// Its content if no snapshot has it: a merge's.
    pub merged: Option<Vec<u8>>,
    /// The object now, or in the other snapshot.
    pub now: There,
    /// The fingerprint of the object on the tree.
    pub print: Option<Fingerprint>,
    /// The place of the other snapshot's content.
    pub now_at: Option<At>,
    /// The file on the tree, if it has several names.
    pub shared: Option<Shared>,
    /// The inode number of the object now.
    pub ino: Option<u64>,
    /// That of the snapshot's object, if it is known.
    pub former: Option<u64>,
    /// True if the object now existed at the snapshot, but not here.
    pub older: bool,
    /// True if it is to become another file than the present one, even if the states are equal: its names were grouped otherwise, or not
    /// all of them are to change.
    pub regrouped: bool,
}

/// A file with several names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shared {
    pub inode: (Dev, u64),
    pub names: u32,
}

impl Difference {
    /// True if both sides are files with the same content, or other objects that differ in metadata alone.
    pub fn is_metadata(&self) -> bool {
        match (&self.now, &self.then) {
            (Some(now), Some(then)) => now.content_likeness(then) == Likeness::Same && !self.regrouped,
            _ => false,
        }
    }

    pub(super) fn leaves_directory(&self) -> bool {
        let is_dir = |object: &There| object.as_ref().is_some_and(State::is_dir);
        is_dir(&self.now) && !is_dir(&self.then)
    }
}

/// The mtime of a directory that is there on both sides, and no difference itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Times {
    pub path: AbsPath,
    pub then: Time,
    pub now: Time,
}

#[derive(Debug, Default)]
pub struct Compared {
    /// The differences, in the order of paths.
    pub differences: Vec<Difference>,
    /// The times of directories on both sides, in the order of paths.
    pub times: Vec<Times>,
    /// The directories on the tree whose time differs now, as differences.
    pub touched: Vec<Difference>,
    /// The paths that are not compared, as one side is unknown, with the reason.
    pub left: Vec<(AbsPath, String)>,
    /// Those among them that rights keep recant from, with all below.
    pub closed: BTreeSet<AbsPath>,
    /// The paths on the tree that stay whatever the snapshot says: a directory that holds one of these stays too.
    pub kept: Vec<(AbsPath, &'static str)>,
    /// One flag for each asked path: true if either side has it.
    pub found: Vec<bool>,
    /// Version control's own that both sides have, and that is not compared.
    pub repositories: Vec<AbsPath>,
}

/// The reason why a repository's own stays, and is not compared.
const VCS_STAYS: &str = "it is version control's own, and stays as it is without --with-vcs";
/// The reason why something stays that was there before the snapshot.
pub const OLDER: &str = "it was there before, under another name or not covered";
/// That reason where it can be forced.
pub const OLDER_FORCIBLE: &str = "it was there before, under another name or not covered; --force takes it off, and keeps it";
/// The reasons why removed parts of version control do not come back: the snapshot has them, or (below) it does not.
const VCS_KEPT: &str = "it is gone, and does not come back without --with-vcs";
const VCS_LEFT: &str = "it is gone, and the snapshot does not have it: it was taken without --with-vcs";
/// The reason why a working tree stays.
const VCS_NEW: &str = "it became a repository since the snapshot, and stays as it is";

#[derive(Debug, Clone, Copy, Default)]
pub struct Terms<'a> {
    /// True if all content of the snapshot must be there, with its length.
    pub whole: bool,
    pub paths: &'a [AbsPath],
    /// Which of the differing files to hash.
    pub hashes: Hashes,
    /// True if version control's own is compared like anything else, if the snapshot has it.
    pub with_vcs: bool,
    /// The time until when all that existed at the snapshot was born; `None` if that is [`Closing::time`].
    pub existed: Option<Time>,
    /// True if what existed before under another name, or was not covered, goes as well.
    pub with_older: bool,
}

/// The choice of differing files to hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hashes {
    /// Those that only their content tells apart.
    #[default]
    Needed,
    /// Small ones too: a caller that puts them away needs it, and beside the walk it costs nearly nothing. Others are only opened.
    Small,
    All,
}

/// The most bytes that are read beside the walk.
const SMALL: u64 = 128 << 10;

/// Compares snapshot `n` with the tree, by the rules of the snapshot. `store` is recant's own directory.
pub fn with_tree(store: &AbsPath, series: &Series, n: u64, terms: Terms<'_>) -> Result<Compared, Error> {
    let Closing { rules, time } = manifest::closing(&series.dir, n)?;
    // A turn's alone. A person who makes a repository of a directory means it.
    let before = terms.existed.map(|_| Before::new(series, n, &rules)).transpose()?;
    let kept_vcs = !rules.leaves_vcs();
    let leaves_vcs = !kept_vcs || !terms.with_vcs;
    let rules = Rules { vcs: if leaves_vcs { Vcs::Left } else { Vcs::Kept }, ..rules };
    let repositories: BTreeSet<AbsPath> = rules.repositories.iter().cloned().collect();
    // First of all: it takes longer than reading the manifest, and runs beside that.
    let mut walk = Ahead::new(&series.directory, store, &Source::Kept(rules, before.clone()))?;
    let mut then = Merged::open(&series.dir, n)?;
    let index = newest_index(series)?;
    let mut known = index.as_ref().map(|index| index.known());
    let mut comparing = Comparing {
        directory: &series.directory,
        index: index.as_ref(),
        next_known: known.as_mut().and_then(Iterator::next),
        known: known.as_mut().map(|known| known as &mut dyn Iterator<Item = Known>),
        terms,
        content: terms.whole.then(|| Kept::of(&series.dir, &series.directory)),
        done: Compared { found: vec![false; terms.paths.len()], ..Compared::default() },
        unread: None,
        equal: BTreeMap::new(),
        names_then: Names::default(),
        names_now: Names::default(),
        leaves_vcs,
        repositories,
        kept_vcs,
        came: Vec::new(),
        before,
        existed: terms.existed.unwrap_or(time),
    };
    let (mut line, mut met) = (then.next_unread()?, walk.next()?);
    loop {
        let order = match (&line, &met) {
            (None, None) => break,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(line), Some(met)) => line.path.cmp(met.path()),
        };
        let here = if order.is_ge() { std::mem::replace(&mut met, walk.next()?) } else { None };
        let there = if order.is_le() { std::mem::replace(&mut line, then.next_unread()?) } else { None };
        if let (Some(line), Some(Met::Object(object))) = (&there, &here)
            && comparing.is_unchanged(line, object)?
        {
            continue;
        }
        comparing.pair(there.map(|line| line.read()).transpose()?, here)?;
    }
    let mut done = comparing.finish()?;
    if !terms.with_older {
        done.spare_older(series, OLDER_FORCIBLE, |_| (n, None))?;
    }
    Ok(done)
}

/// The index, if it is of the newest snapshot.
fn newest_index(series: &Series) -> Result<Option<Index>, Error> {
    let Some(newest) = series.numbers()?.pop() else { return Ok(None) };
    match series.summary(newest) {
        Ok(summary) => Index::open(&series.dir, newest, summary.tail.hash),
        Err(_) => Ok(None),
    }
}

impl Met {
    pub fn path(&self) -> &AbsPath {
        match self {
            Met::Object(object) | Met::Left { object, .. } => &object.path,
            Met::Unlisted { path, .. } => path,
        }
    }
}

struct Comparing<'a> {
    directory: &'a AbsPath,
    index: Option<&'a Index>,
    known: Option<&'a mut dyn Iterator<Item = Known>>,
    next_known: Option<Known>,
    terms: Terms<'a>,
    /// Set if all content must be there.
    content: Option<Kept<'a>>,
    done: Compared,
    /// The path here is unknown on one side, with all below it.
    unread: Option<AbsPath>,
    /// Paths of grouped files that are unchanged, unless their groups differ.
    equal: BTreeMap<AbsPath, Difference>,
    /// Names in the snapshot, by the first of their file.
    names_then: Names<AbsPath>,
    /// Names on the tree, by their inode.
    names_now: Names<(Dev, u64)>,
    leaves_vcs: bool,
    /// Version control's own that the snapshot left out though it was there, and that was not met yet.
    repositories: BTreeSet<AbsPath>,
    /// True if the snapshot kept version control's own.
    kept_vcs: bool,
    came: Vec<AbsPath>,
    before: Option<Before>,
    existed: Time,
}

impl Comparing<'_> {
    /// Tells whether the index saw the snapshot's object, and nothing has changed since. Its line need not be read then: most objects are
    /// such, and reading all lines would be half of a comparison.
    fn is_unchanged(&mut self, line: &Unread, object: &Object) -> Result<bool, Error> {
        let may_be_grouped = object.stat.nlink > 1 && object.stat.sort != Sort::Directory;
        if may_be_grouped || self.unread.as_ref().is_some_and(|unread| line.path.is_under(unread)) {
            return Ok(false);
        }
        let Some(index) = self.index else { return Ok(false) };
        let Some(known) = self.known(&line.path) else { return Ok(false) };
        if !index.believes(known, &object.stat) || known.sign != line.sign() {
            return Ok(false);
        }
        let (at, size) = (known.at, known.size);
        match (&mut self.content, at) {
            (None, _) | (_, None) => {}
            (Some(content), Some(At::Pack { pack, offset })) => content.check_packed(&line.path, pack, offset, size)?,
            (Some(content), Some(At::Blob)) => content.check(&line.read()?)?,
        }
        self.find(&line.path);
        if object.stat.sort == Sort::Directory {
            let time = object.stat.mtime;
            self.done.times.push(Times { path: line.path.clone(), then: time, now: time });
        }
        Ok(true)
    }

    fn find(&mut self, path: &AbsPath) {
        for (found, asked) in self.done.found.iter_mut().zip(self.terms.paths) {
            *found |= path.is_under(asked);
        }
    }

    fn pair(&mut self, there: Option<Entry>, here: Option<Met>) -> Result<(), Error> {
        let Some(path) = there.as_ref().map(|entry| &entry.path).or(here.as_ref().map(Met::path)).cloned() else { return Ok(()) };
        if let (Some(content), Some(entry)) = (&mut self.content, &there) {
            content.check(entry)?;
        }
        self.find(&path);
        if let Some(first) = there.as_ref().and_then(|entry| entry.link.as_ref()) {
            self.names_then.add(first.clone(), path.clone());
        }
        if self.unread.as_ref().is_some_and(|unread| path.is_under(unread)) {
            if here.is_some() {
                self.done.kept.push((path, "its directory could not be read for the snapshot"));
            }
            return Ok(());
        }
        if let Some(why) = there.as_ref().and_then(|entry| entry.unread.clone()) {
            if here.is_some() {
                self.done.kept.push((path.clone(), "it is not in the snapshot"));
            }
            self.leave_all(path, &format!("not in the snapshot: {why}"), true);
            return Ok(());
        }
        let is_named = path.depth() > 0 && is_vcs(path.name());
        if self.leaves_vcs && (is_named || matches!(here, Some(Met::Left { why: Why::Vcs, .. }))) {
            // A bare repository may have been an ordinary directory.
            let is_kept = there.is_some() && (is_named || self.kept_vcs);
            self.leave_vcs(path, is_kept, here.is_some());
            return Ok(());
        }
        let object = match here {
            None => None,
            Some(Met::Object(object)) => Some(object),
            Some(Met::Left { object, why }) => {
                self.done.kept.push((object.path.clone(), why.text()));
                self.leave_all(object.path, why.text(), there.is_some() || !why.is_rule());
                return Ok(());
            }
            Some(Met::Unlisted { path, why }) => {
                self.done.kept.push((path.clone(), "it cannot be looked at"));
                self.note_closed(&path, &why);
                self.leave_all(path, &format!("it cannot be looked at: {why}"), true);
                return Ok(());
            }
        };
        match (there, object) {
            (Some(entry), None) => {
                self.done.differences.push(difference(path, Some(entry), None));
                Ok(())
            }
            (there, Some(object)) => self.look(path, there, &object),
            (None, None) => Ok(()),
        }
    }

    /// Leaves a path, unknown on one side with all below. Reports it if it `counts`, and always the named paths in it.
    fn leave_all(&mut self, path: AbsPath, why: &str, counts: bool) {
        let mut left: Vec<AbsPath> = counts.then(|| path.clone()).into_iter().collect();
        for (found, asked) in self.done.found.iter_mut().zip(self.terms.paths).filter(|(_, asked)| asked.is_under(&path)) {
            *found = true;
            if !left.contains(asked) {
                left.push(asked.clone());
            }
        }
        self.done.left.extend(left.into_iter().map(|path| (path, why.to_owned())));
        self.unread = Some(path);
    }

    /// Passes over version control's own. A directory that the snapshot does not know as a repository became one since, except the top.
    fn leave_vcs(&mut self, path: AbsPath, is_kept: bool, is_there: bool) {
        let was_there = self.repositories.remove(&path);
        if !is_there {
            self.leave_all(path, VCS_KEPT, true);
            return;
        }
        self.done.kept.push((path.clone(), Why::Vcs.text()));
        if is_kept {
            self.done.repositories.push(path.clone());
        }
        if !was_there
            && !is_kept
            && let Some(directory) = path.parent()
        {
            // That is why the directory has another time.
            self.done.touched.retain(|d| d.path != directory);
            // A bare repository has no working tree.
            let whole = if is_vcs(path.name()) { directory } else { path.clone() };
            self.came.extend((whole.depth() > 0).then_some(whole));
        }
        self.leave_all(path, VCS_STAYS, false);
    }

    /// Leaves a repository that was made since whole, with its working tree; of what was an ordinary directory only its own.
    fn leave_came(&mut self) -> Result<(), Error> {
        for directory in std::mem::take(&mut self.came) {
            if let Some(before) = &self.before
                && before.was_ordinary(&directory)?
            {
                continue;
            }
            let stays = |path: &AbsPath| path.is_under(&directory);
            self.done.differences.retain(|d| !stays(&d.path));
            self.done.times.retain(|times| !stays(&times.path));
            self.done.touched.retain(|d| !stays(&d.path) && Some(&d.path) != directory.parent().as_ref());
            self.equal.retain(|path, _| !stays(path));
            self.done.left.retain(|(path, _)| !stays(path));
            self.done.kept.push((directory.clone(), VCS_NEW));
            self.leave_all(directory, VCS_NEW, true);
        }
        Ok(())
    }

    /// Reports version control's own that was there, was left out, and is gone.
    fn leave_gone(&mut self) {
        for path in std::mem::take(&mut self.repositories) {
            let is_known = self.done.left.iter().any(|(left, _)| path.is_under(left));
            if !is_known {
                self.leave_all(path, VCS_LEFT, true);
            }
        }
    }

    fn look(&mut self, path: AbsPath, there: Option<Entry>, object: &Object) -> Result<(), Error> {
        if (object.stat.nlink == 1 || object.stat.sort == Sort::Directory)
            && let (Some(entry), Some(index)) = (&there, self.index)
            && let Some(known) = self.known(&path)
            && known.mark == entry.mark()
            && index.believes(known, &object.stat)
        {
            // The index saw the snapshot's object, and nothing has changed since.
            if entry.is_dir() {
                let time = object.stat.mtime;
                self.done.times.push(Times { path, then: time, now: time });
            }
            return Ok(());
        }
        // A snapshot that stands for a later state may have had other objects: only of a turn's it is known.
        let is_other = |entry: &Entry| self.terms.existed.is_some() && entry.ino.is_some_and(|ino| ino != object.stat.ino);
        let is_moved = there.as_ref().is_none_or(is_other);
        let older = is_moved && object.stat.btime.is_some_and(|born| born <= self.existed);
        let Some(seen) = self.seen(&path, there.as_ref(), object, older)? else { return Ok(()) };
        let grouped = object.stat.nlink > 1 && !seen.state.is_dir();
        if grouped {
            self.names_now.add((object.stat.dev, object.stat.ino), path.clone());
        }
        let shared = grouped.then_some(Shared { inode: (object.stat.dev, object.stat.ino), names: object.stat.nlink });
        let Some(entry) = there else {
            self.done.differences.push(Difference { shared, older, ..difference(path, None, Some(seen)) });
            return Ok(());
        };
        let both_directories = seen.state.is_dir() && entry.is_dir();
        let now = seen.state.meta.mtime;
        let then = entry.state.as_ref().map_or(now, |state| state.meta.mtime);
        let is_same = entry.state.as_ref().is_some_and(|state| same(state, &seen.state));
        let is_grouped = grouped || entry.link.is_some();
        let difference = Difference { shared, older, ..difference(path.clone(), Some(entry), Some(seen)) };
        match is_same {
            true if both_directories => {
                self.done.times.push(Times { path, then, now });
                if then != now {
                    self.done.touched.push(difference);
                }
            }
            true if is_grouped => drop(self.equal.insert(path, difference)),
            true => {}
            false => self.done.differences.push(difference),
        }
        Ok(())
    }

    /// The object as it is now, with its hash if that is needed, as for what is `older`. `None` if it was removed.
    fn seen(&mut self, path: &AbsPath, there: Option<&Entry>, object: &Object, older: bool) -> Result<Option<Seen>, Error> {
        let mut seen = match observe::seen(object.at(), &object.stat) {
            Ok(seen) => seen,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return self.leave(path, object, &error.source),
        };
        let What::File { size, .. } = seen.state.what else { return Ok(Some(seen)) };
        let index = self.index;
        let hash = match (index, self.known(path)) {
            (Some(index), Some(known)) if index.believes(known, &object.stat) => known.hash,
            _ => None,
        };
        let same_size = there.is_some_and(|entry| entry.hash().is_some() && entry.size() == size);
        let wanted = match self.terms.hashes {
            Hashes::Needed => false,
            Hashes::Small => size <= SMALL,
            Hashes::All => true,
        };
        let is_known_same = hash.is_some() && there.and_then(Entry::hash) == hash;
        let read = match hash {
            // A fingerprint that proves nothing must be confirmed by the content.
            None if same_size || seen.print.racy || wanted || older => observe::hash(object.at()).map(|(hash, _)| Some(hash)),
            // An unreadable file is found here, whatever its size and what is known of it.
            _ if self.terms.hashes != Hashes::Needed && !is_known_same => object.at().open_file().map(|_| hash),
            _ => Ok(hash),
        };
        match read {
            Ok(Some(hash)) => seen.set_hash(hash),
            Ok(None) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return self.leave(path, object, &error.source),
        }
        Ok(Some(seen))
    }

    /// The index's facts of a path; to be asked for in the order of paths.
    fn known(&mut self, path: &AbsPath) -> Option<&Known> {
        while self.next_known.as_ref().is_some_and(|known| known.path < *path) {
            self.next_known = self.known.as_mut().and_then(|known| known.next());
        }
        self.next_known.as_ref().filter(|known| known.path == *path)
    }

    fn note_closed(&mut self, path: &AbsPath, why: &Unseen) {
        if let Unseen::Closed = why {
            self.done.closed.insert(path.clone());
        }
    }

    /// Leaves an object that cannot be read. If it is no directory, the snapshot's content in one of that name has no place.
    fn leave(&mut self, path: &AbsPath, object: &Object, error: &std::io::Error) -> Result<Option<Seen>, Error> {
        if let Some(ours) = of_ours(&whole(self.directory, path)?, error) {
            return Err(ours);
        }
        let unseen = Unseen::of(error);
        self.note_closed(path, &unseen);
        let why = format!("it cannot be read: {unseen}");
        self.done.kept.push((path.clone(), "it cannot be read"));
        if object.stat.sort == Sort::Directory {
            self.done.left.push((path.clone(), why));
        } else {
            self.leave_all(path.clone(), &why, true);
        }
        Ok(None)
    }

    fn finish(mut self) -> Result<Compared, Error> {
        self.leave_came()?;
        self.leave_gone();
        self.done.regroup(&self.names_then, &self.names_now, self.equal);
        Ok(self.done)
    }
}

fn difference(path: AbsPath, there: Option<Entry>, here: Option<Seen>) -> Difference {
    let former = there.as_ref().and_then(|entry| entry.ino);
    let (then, at, link) = there.map_or((None, None, None), |entry| (entry.state, entry.at, entry.link));
    let (now, print) = here.map_or((None, None), |seen| (Some(seen.state), Some(seen.print)));
    let ino = print.map(|print| print.identity.ino);
    Difference {
        path,
        then,
        at,
        link,
        merged: None,
        now,
        print,
        now_at: None,
        shared: None,
        ino,
        former,
        older: false,
        regrouped: false,
    }
}

/// True if nothing differs, including times; a directory's times do not count, as they follow from the changes in it.
fn same(a: &State, b: &State) -> bool {
    a.content_likeness(b) == Likeness::Same && a.meta_difference(b).is_none() && (a.is_dir() || a.meta.mtime == b.meta.mtime)
}

/// Compares snapshot `n` with snapshot `m` of the same series, or with nothing if the directory is gone. The times are those of all
/// directories that both have. Version control's own counts only `with_vcs`.
pub fn between(series: &Series, n: u64, m: Option<u64>, paths: &[AbsPath], with_vcs: bool) -> Result<Compared, Error> {
    let (rules_then, rules_now) = (manifest::rules(&series.dir, n)?, manifest::rules(&series.dir, m.unwrap_or(n))?);
    let mut then = Merged::open(&series.dir, n)?;
    let mut now = m.map(|m| Merged::open(&series.dir, m)).transpose()?;
    let mut next_now = || now.as_mut().map_or(Ok(None), Merged::next);
    let mut done = Compared { found: vec![false; paths.len()], ..Compared::default() };
    let (mut a, mut b) = (then.next()?, next_now()?);
    let mut unread: Option<AbsPath> = None;
    let (mut names_then, mut names_now, mut equal) = (Names::default(), Names::default(), BTreeMap::new());
    loop {
        let order = match (&a, &b) {
            (None, None) => break,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(a), Some(b)) => a.path.cmp(&b.path),
        };
        let there = if order.is_le() { std::mem::replace(&mut a, then.next()?) } else { None };
        let here = if order.is_ge() { std::mem::replace(&mut b, next_now()?) } else { None };
        let Some(path) = there.as_ref().or(here.as_ref()).map(|entry| entry.path.clone()) else { continue };
        for (found, asked) in done.found.iter_mut().zip(paths) {
            *found |= path.is_under(asked);
        }
        for (names, entry) in [(&mut names_then, &there), (&mut names_now, &here)] {
            if let Some(first) = entry.as_ref().and_then(|entry| entry.link.as_ref()) {
                names.add(first.clone(), path.clone());
            }
        }
        if unread.as_ref().is_some_and(|unread| path.is_under(unread)) {
            continue;
        }
        if !with_vcs && let Some(top) = vcs_above(&path) {
            done.left
                .extend(paths.iter().filter(|asked| asked.is_under(&top)).map(|asked| (asked.clone(), VCS_STAYS.to_owned())));
            unread = Some(top);
            continue;
        }
        if let Some(why) = [&there, &here].into_iter().flatten().find_map(|entry| entry.unread.clone()) {
            done.left.push((path.clone(), format!("not in both snapshots: {why}")));
            unread = Some(path);
            continue;
        }
        match (&there, &here) {
            (Some(a), Some(b)) if a.is_dir() && b.is_dir() && (a.mark() == b.mark() || are_same(a, b)) => {
                if let (Some(a), Some(b)) = (&a.state, &b.state) {
                    done.times.push(Times { path, then: a.meta.mtime, now: b.meta.mtime });
                }
                continue;
            }
            _ => {}
        }
        let is_same = there.as_ref().zip(here.as_ref()).is_some_and(|(a, b)| are_same(a, b) || a.mark() == b.mark());
        let is_grouped = [&there, &here].into_iter().flatten().any(|entry| entry.link.is_some());
        let ino = here.as_ref().and_then(|entry| entry.ino);
        let is_moved = there.as_ref().is_none_or(|entry| entry.ino.is_some_and(|had| Some(had) != ino));
        let older = is_moved && here.as_ref().is_some_and(|entry| entry.older);
        let (now_at, now) = here.map_or((None, None), |entry| (entry.at, entry.state));
        let difference = Difference { now, now_at, ino, older, ..difference(path.clone(), there, None) };
        match is_same {
            true if is_grouped => drop(equal.insert(path, difference)),
            true => {}
            false => done.differences.push(difference),
        }
    }
    done.regroup(&names_then, &names_now, equal);
    if !rules_then.same_as(&rules_now, with_vcs) {
        done.left.push((root(), "the two snapshots have different exclude rules: some differences may come from that".into()));
    }
    Ok(done)
}

fn ancestors(path: &AbsPath) -> impl Iterator<Item = AbsPath> {
    std::iter::successors(path.parent(), AbsPath::parent)
}

fn are_same(a: &Entry, b: &Entry) -> bool {
    a.state.as_ref().zip(b.state.as_ref()).is_some_and(|(a, b)| same(a, b))
}

/// The directory itself, as paths of a snapshot have it.
pub fn root() -> AbsPath {
    // `/` is the shortest path, and src/fs/path.rs accepts it.
    AbsPath::parse("/").expect("the root is a path")
}

/// The knowledge of a snapshot: the inode numbers of its objects, and their content.
#[derive(Default)]
struct Knows {
    inodes: HashSet<u64>,
    content: HashSet<Content>,
}

/// The content of an object that has some.
#[derive(PartialEq, Eq, Hash)]
enum Content {
    File(crate::tree::hash::Hash),
    Link(Vec<u8>),
}

impl Content {
    fn of(state: &State) -> Option<Self> {
        match &state.what {
            What::File { size: 0, .. } => None,
            What::File { hash, .. } => hash.map(Self::File),
            What::Symlink { target } => Some(Self::Link(target.to_vec())),
            _ => None,
        }
    }
}

impl Knows {
    fn of(series: &Series, n: u64) -> Result<Self, Error> {
        let mut knows = Self::default();
        let mut all = Merged::open(&series.dir, n)?;
        while let Some(entry) = all.next()? {
            knows.inodes.extend(entry.ino);
            knows.content.extend(entry.state.as_ref().and_then(Content::of));
        }
        Ok(knows)
    }

    /// True if an object that is at another name now was in the snapshot, or has nothing that was not.
    fn has(&self, difference: &Difference) -> bool {
        let Some(now) = &difference.now else { return true };
        if difference.ino.is_some_and(|ino| self.inodes.contains(&ino)) {
            return true;
        }
        // A directory has what is in it. One that takes a directory's place has that besides.
        Content::of(now).map_or(!now.is_dir() || difference.then.is_some(), |content| self.content.contains(&content))
    }
}

impl Compared {
    /// Leaves what existed at a snapshot, and of which that knows nothing: it came from what is not covered, or from outside, and is nowhere
    /// else. `since` gives the snapshot for a path, and the time until when what it could see was born, if not for all paths alike.
    pub fn spare_older(
        &mut self,
        series: &Series,
        why: &str,
        since: impl Fn(&AbsPath) -> (u64, Option<Time>),
    ) -> Result<(), Error> {
        let mut known: BTreeMap<u64, Knows> = BTreeMap::new();
        let mut stays = Vec::with_capacity(self.differences.len());
        for d in &self.differences {
            let (n, existed) = since(&d.path);
            let born = d.print.and_then(|print| print.identity.btime);
            if !d.older || existed.zip(born).is_some_and(|(existed, born)| born > existed) {
                stays.push(false);
                continue;
            }
            let knows = match known.entry(n) {
                btree_map::Entry::Vacant(vacant) => vacant.insert(Knows::of(series, n)?),
                btree_map::Entry::Occupied(occupied) => occupied.into_mut(),
            };
            stays.push(!knows.has(d));
        }
        // A directory stays with all that is in it now.
        let mut whole: Option<AbsPath> = None;
        let mut spared = Vec::new();
        let mut stays = stays.into_iter();
        self.differences.retain(|d| {
            let stays = stays.next().unwrap_or(false);
            if whole.as_ref().is_some_and(|whole| d.path.is_under(whole)) {
                return false;
            }
            if stays {
                whole = d.now.as_ref().is_some_and(State::is_dir).then(|| d.path.clone());
                spared.push(d.path.clone());
            }
            !stays
        });
        self.kept.extend(spared.iter().map(|path| (path.clone(), OLDER)));
        self.left.extend(spared.into_iter().map(|path| (path, why.to_owned())));
        Ok(())
    }

    /// Marks names that must become one file again, or separate files: also where one of two names goes, which would otherwise stay a name
    /// of the same file in the checkpoint. `equal` are unchanged names, unless their file has others.
    fn regroup<F: Eq + Hash>(&mut self, then: &Names<AbsPath>, now: &Names<F>, mut equal: BTreeMap<AbsPath, Difference>) {
        let left: HashSet<&AbsPath> = self.left.iter().map(|(path, _)| path).collect();
        let is_left = |path: &AbsPath| left.contains(path) || ancestors(path).any(|above| left.contains(&above));
        let regrouped = hard_links::regrouped(then, now, |path| !is_left(path));
        let found = self.differences.iter_mut().filter(|difference| regrouped.contains(&difference.path));
        found.for_each(|difference| difference.regrouped = true);
        let equal = regrouped.iter().filter_map(|path| equal.remove(path));
        self.differences.extend(equal.map(|difference| Difference { regrouped: true, ..difference }));
        self.differences.sort_by(|a, b| a.path.cmp(&b.path));
    }
}
