//! Compares a snapshot with the tree.

use std::collections::{BTreeMap, BTreeSet};

use super::difference::{Compared, Difference, Shared, Times, VCS_STAYS, difference, same};
use super::spare_older::OLDER_FORCIBLE;
use crate::error::Error;
use crate::fs::{AbsPath, Dev, Sort, Time};
use crate::snapshot::content::Kept;
use crate::snapshot::error::of_ours;
use crate::snapshot::hard_links::Names;
use crate::snapshot::index::{Index, Known};
use crate::snapshot::manifest;
use crate::snapshot::manifest::{At, Closing, Entry, Merged, Unread};
use crate::snapshot::paths::whole;
use crate::snapshot::rule_source::{Before, Source};
use crate::snapshot::rules::{Rules, Vcs, Why};
use crate::snapshot::series::Series;
use crate::snapshot::snapshot_walk::{Object, Unseen, WalkAhead, WalkStep};
use crate::tree::{Seen, What, is_vcs, observe};

/// The reasons why removed parts of version control do not come back: the snapshot has them, or (below) it does not.
const VCS_KEPT: &str = "it is gone, and is not restored without --with-vcs";
const VCS_LEFT: &str = "it is gone, and the snapshot does not have it: it was taken without --with-vcs";
/// The reason why a working tree stays.
const VCS_NEW: &str = "it is a repository made since the snapshot, and stays as it is";

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
    let mut walk = WalkAhead::new(&series.directory, store, &Source::Kept(rules, before.clone()))?;
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
        if let (Some(line), Some(WalkStep::Object(object))) = (&there, &here)
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

fn newest_index(series: &Series) -> Result<Option<Index>, Error> {
    let Some(newest) = series.numbers()?.pop() else { return Ok(None) };
    match series.summary(newest) {
        Ok(summary) => Index::open(&series.dir, newest, summary.tail.hash),
        Err(_) => Ok(None),
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

    fn pair(&mut self, there: Option<Entry>, here: Option<WalkStep>) -> Result<(), Error> {
        let Some(path) = there.as_ref().map(|entry| &entry.path).or(here.as_ref().map(WalkStep::path)).cloned() else {
            return Ok(());
        };
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
        if self.leaves_vcs && (is_named || matches!(here, Some(WalkStep::Left { why: Why::Vcs, .. }))) {
            // A bare repository may have been an ordinary directory.
            let is_kept = there.is_some() && (is_named || self.kept_vcs);
            self.leave_vcs(path, is_kept, here.is_some());
            return Ok(());
        }
        let object = match here {
            None => None,
            Some(WalkStep::Object(object)) => Some(object),
            Some(WalkStep::Left { object, why }) => {
                self.done.kept.push((object.path.clone(), why.text()));
                self.leave_all(object.path, why.text(), there.is_some() || !why.is_rule());
                return Ok(());
            }
            Some(WalkStep::Unlisted { path, why }) => {
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
        let mut seen = match observe::object_of(object.at(), &object.stat) {
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
