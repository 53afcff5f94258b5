//! Create: walk → compare with the index → read and hash new content (`read_object`) → store → one sync → the manifest gets its name.

mod draft;
mod read_object;

use std::collections::{HashMap, HashSet, VecDeque};

use super::choose_directory;
use super::content::{Keeping, PACKED};
use super::content_check::Fault;
use super::error::{refused, unswept};
use super::hashing::Hashing;
use super::index::{Index, Known, Making, has_content};
use super::manifest::{self, Closing, Counts, Entry, Head, Merged, Reading, Writing};
use super::previous_objects;
use super::prune_snapshots;
use super::rule_source::Source;
use super::rules::{Rules, Vcs, Why};
use super::series::{Broken, Locked, Looking, Series, Summary};
use super::snapshot_walk::{Object, WalkAhead, WalkEnd, WalkStep};
use crate::error::{At as _, Error};
use crate::fs::{AbsPath, Fs, Sort, Stat, Time, interrupt};
use crate::tree::vcs_above;
use draft::{Content, First, Seen, Taking, has_several_names};
use serde::Serialize;

/// A snapshot that is asked for.
#[derive(Debug, Clone, Default)]
pub struct SnapshotRequest {
    pub(crate) message: Option<String>,
    pub(crate) label: Option<String>,
    /// Keys and values that the caller wants to find again.
    pub(crate) meta: Vec<(String, String)>,
    /// A key that at most one snapshot has.
    pub(crate) once: Option<String>,
    /// True if no snapshot is wanted where nothing changed: no object, no rule, and no word to find it by.
    pub(crate) if_changed: bool,
    /// True if a run takes it, before or after its command.
    pub(crate) run: bool,
    /// The rules of what is left out.
    pub(crate) rules: Source,
    /// The most objects that it may have.
    pub(crate) limit: Option<u64>,
    /// True if it is to tell what was moved from what was made: an earlier one whose objects have other inode numbers does not do then.
    pub(crate) tells_moves: bool,
}

impl SnapshotRequest {
    /// A snapshot with a message, without version control's own (`.git` and the like) and what a `.recantignore` names.
    pub fn of(message: Option<&str>) -> Self {
        let rules = Source::Found(Rules { vcs: Vcs::Left, ..Rules::default() });
        Self { message: message.map(Into::into), rules, ..Self::default() }
    }

    /// Tells whether it must be found by something that `than` lacks: a label, a key, or being the newest that somebody asked for.
    fn names_another(&self, than: &Head) -> bool {
        let is_new = |asked: &Option<String>, had: &Option<String>| asked.is_some() && asked != had;
        is_new(&self.label, &than.label) || is_new(&self.once, &than.key) || than.run && !self.run
    }
}

#[derive(Debug, Clone)]
pub struct SnapshotResult {
    /// The number of the snapshot that has the state.
    pub n: u64,
    pub how: How,
    /// Numbers for people. If none was made, those of the existing snapshot.
    pub counts: Counts,
    /// The paths that could not be read, with the reason.
    pub unread: Vec<(AbsPath, String)>,
    /// The paths that were left out for other reasons than rules.
    pub left: Vec<(AbsPath, Why)>,
    /// The first name of each file that has other names outside the snapshot.
    pub elsewhere: HashSet<AbsPath>,
    /// Version control's own that was left out.
    pub repositories: Vec<AbsPath>,
    /// The damage in earlier snapshots; this one needs none of it.
    pub damaged: Vec<String>,
    pub unfitted: Vec<String>,
    /// The reason why its index, which makes the next one quicker, could not be written.
    pub unindexed: Option<String>,
    /// The time when all had been looked at: what is born later came after it.
    pub time: Time,
}

impl SnapshotResult {
    fn of(n: u64, how: How, counts: Counts, time: Time) -> Self {
        Self {
            n,
            how,
            counts,
            unread: Vec::new(),
            left: Vec::new(),
            elsewhere: HashSet::new(),
            repositories: Vec::new(),
            damaged: Vec::new(),
            unfitted: Vec::new(),
            unindexed: None,
            time,
        }
    }
}

/// The ways a request ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    #[serde(rename = "created")]
    New,
    /// Nothing has changed since this one.
    Unchanged,
    /// One with that key exists.
    Once,
}

/// Takes a snapshot. `store` is recant's own directory, which is left out.
pub fn create(
    fs: &Fs,
    store: &AbsPath,
    series: &Series,
    lock: &Locked,
    asked: &SnapshotRequest,
) -> Result<SnapshotResult, Error> {
    create_seen(fs, store, series, lock, asked, &mut |_| ())
}

/// Takes a snapshot, and shows `see` what the walk has met, before its content is read.
pub fn create_seen(
    fs: &Fs,
    store: &AbsPath,
    series: &Series,
    _lock: &Locked,
    asked: &SnapshotRequest,
    see: &mut dyn FnMut(&WalkStep),
) -> Result<SnapshotResult, Error> {
    let numbers = series.numbers()?;
    if let Some(found) = asked.once.as_ref().map(|key| with_key(series, key)).transpose()?.flatten() {
        let time = manifest::closing(&series.dir, found.head.n)?.time;
        return Ok(SnapshotResult::of(found.head.n, How::Once, found.tail.counts, time));
    }
    // A damaged snapshot keeps its number, but a new one must not rest on it.
    let (last, broken) = series.newest_whole()?;
    let n = numbers.last().map_or(0, |last| last + 1);
    sweep(fs, series, n)?;
    let taken = take_snapshot(fs, store, series, (n, last.as_ref()), asked, see);
    let taken = taken.map(|made| {
        let broken = broken.into_iter().map(|Broken { n, why }| format!("snapshot {n} cannot be read: {why}"));
        SnapshotResult { damaged: broken.chain(made.damaged).collect(), ..made }
    });
    if !matches!(taken, Ok(SnapshotResult { how: How::New, .. })) {
        // If the name is there and only its sync has failed, it is complete: its content stays. This is tidying: if it fails, the next
        // snapshot does it.
        drop(series.numbers().and_then(|numbers| sweep(fs, series, numbers.last().map_or(0, |last| last + 1))));
    }
    // On a full disk everything else needs the room. What stays for want of a readable manifest is removed by the next prune.
    taken.map_err(|error| match prune_snapshots::sweep(fs, series) {
        Ok(()) => error,
        Err(left) => unswept(error, &left, &series.directory),
    })
}

/// The newest readable snapshot with a key.
fn with_key(series: &Series, key: &String) -> Result<Option<Summary>, Error> {
    let mut looking = Looking::of(series);
    let (summaries, _) = series.summaries()?;
    let mut found = summaries.into_iter().rev().filter(|summary| summary.head.key.as_ref() == Some(key));
    Ok(found.find_map(|summary| looking.at(summary.head.n).ok()))
}

/// The number of objects that the walk is ahead. Each may keep a directory open.
const COMING: usize = 8;

fn temp_name(n: u64) -> Vec<u8> {
    format!("{n}.new").into_bytes()
}

fn whole_name(n: u64) -> Vec<u8> {
    format!("{n}.whole").into_bytes()
}

/// Removes what an interrupted snapshot left: its manifest has no name.
fn sweep(fs: &Fs, series: &Series, n: u64) -> Result<(), Error> {
    for (ending, from) in [(".new", 0), (".whole", 0), (".pack", n)] {
        for left in series.with_ending(ending)?.into_iter().filter(|number| *number >= from) {
            let name = format!("{left}{ending}").into_bytes();
            let at = series.dir.at(&name);
            fs.unlink_if_there(at)?;
        }
    }
    Ok(())
}

fn take_snapshot(
    fs: &Fs,
    store: &AbsPath,
    series: &Series,
    (n, last): (u64, Option<&Summary>),
    asked: &SnapshotRequest,
    see: &mut dyn FnMut(&WalkStep),
) -> Result<SnapshotResult, Error> {
    let started = crate::fs::now();
    // It is some steps ahead once the index is read.
    let mut walk = WalkAhead::new(&series.directory, store, &asked.rules)?;
    let index = last.map(|last| Index::open(&series.dir, last.head.n, last.tail.hash)).transpose()?.flatten();
    if let (None, Some(limit)) = (&index, asked.limit) {
        // Nothing is known of the directory yet: better to count first than to read everything in vain.
        choose_directory::refuse_large(&series.directory, store, &asked.rules, limit)?;
    }
    let base = last.filter(|_| index.is_some()).map(|last| last.head.base.unwrap_or(last.head.n));
    let head = Head {
        schema: 1,
        n,
        directory: series.directory.clone(),
        time: started,
        base,
        message: asked.message.clone(),
        label: asked.label.clone(),
        key: asked.once.clone(),
        run: asked.run,
        meta: asked.meta.iter().cloned().collect(),
    };
    let mut taking = Taking::begin(fs, series, (index.as_ref(), last), &head, asked)?;
    taking.meet_all(&mut walk, store, asked, see)?;
    let time = crate::fs::now();
    let end = walk.facts().filter(|_| taking.counts.entries > 0);
    let Some(WalkEnd { rules, unfitted }) = end else { return Err(nothing_there(series)) };
    // Unreadable old rules do not prevent a new snapshot.
    let has_rules = |last: &Summary| manifest::rules(&series.dir, last.head.n).is_ok_and(|had| had == rules);
    let same = last.filter(|last| asked.if_changed && !asked.names_another(&last.head) && has_rules(last));
    let closing = Closing { rules, time };
    let made = taking.finish(fs, &head, &closing, same)?;
    // What is born after this call bears a later time.
    while !crate::fs::stamps_are_past(time) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Ok(SnapshotResult { unfitted, repositories: closing.rules.repositories, ..made })
}

fn nothing_there(series: &Series) -> Error {
    refused(&series.directory, "there is nothing there").with_remedy("name a directory or file that is there")
}

impl<'a> Taking<'a> {
    fn begin(
        fs: &'a Fs,
        series: &'a Series,
        (index, last): (Option<&'a Index>, Option<&Summary>),
        head: &Head,
        asked: &SnapshotRequest,
    ) -> Result<Self, Error> {
        // Where that cannot be read, nothing counts as older.
        let existed = last.and_then(|last| manifest::closing(&series.dir, last.head.n).ok()).map(|closing| closing.time);
        Ok(Self {
            series,
            index,
            last: last.map(|last| last.head.n),
            old: previous_objects::objects(series, index, last)?,
            own: previous_objects::own_lines(series, last, head.base)?,
            writing: Writing::begin(fs, &series.dir, &temp_name(head.n), head)?,
            making: Making::begin(head.time),
            // Without an index all is read anyway, and only the manifest says what lies in the store.
            keeping: Keeping::begin(fs, &series.dir, head.n, index.is_none()),
            hashing: Hashing::default(),
            read_before: last.map(|last| last.head.time),
            existed,
            tells_moves: asked.tells_moves,
            learned: false,
            is_outdated: index.is_none(),
            has_base: head.base.is_some(),
            links: HashMap::new(),
            unknown: None,
            counts: Counts::default(),
            changed: last.is_none(),
            unread: Vec::new(),
            left: Vec::new(),
            leaves_vcs: asked.rules.rules().leaves_vcs(),
            buffer: Vec::new(),
        })
    }

    fn meet_all(
        &mut self,
        walk: &mut WalkAhead<'_>,
        store: &AbsPath,
        asked: &SnapshotRequest,
        see: &mut dyn FnMut(&WalkStep),
    ) -> Result<(), Error> {
        let mut coming = VecDeque::with_capacity(COMING);
        loop {
            while coming.len() < COMING
                && let Some(step) = walk.next()?
            {
                self.hash_early(&step);
                coming.push_back(step);
            }
            // After a request to end, reading may have stopped early, even in the last object.
            interrupt::check().at("go on with", &self.series.directory)?;
            let Some(step) = coming.pop_front() else { break };
            see(&step);
            self.meet(step)?;
            if let Some(limit) = asked.limit.filter(|limit| self.counts.entries > *limit) {
                choose_directory::refuse_large(&self.series.directory, store, &asked.rules, limit)?;
            }
        }
        self.pass_until(None)
    }

    /// Lets a coming file be hashed early: a new large one, where blocks are shared and it is only read.
    fn hash_early(&mut self, met: &WalkStep) {
        let WalkStep::Object(object) = met else { return };
        let stat = &object.stat;
        let is_new = self.read_before.is_none_or(|then| stat.ctime >= then);
        if self.keeping.shares && is_new && stat.sort == Sort::File && stat.nlink == 1 && stat.size >= PACKED {
            self.hashing.offer(object);
        }
    }

    fn meet(&mut self, met: WalkStep) -> Result<(), Error> {
        // The walk is ahead and holds a directory even if it was moved; its content would appear without its parent.
        if self.unknown.as_ref().is_some_and(|directory| met.path().is_under(directory)) {
            return Ok(());
        }
        match met {
            WalkStep::Object(object) => self.meet_object(&object),
            WalkStep::Unlisted { path, why } => {
                self.unread.push((path.clone(), why.to_string()));
                self.not_read(path, why.to_string())
            }
            WalkStep::Left { why, .. } if why.is_rule() => {
                self.counts.excluded += 1;
                Ok(())
            }
            WalkStep::Left { why: Why::Vcs, .. } => Ok(()),
            WalkStep::Left { object, why } => {
                self.left.push((object.path.clone(), why));
                self.not_read(object.path, why.text().to_owned())
            }
        }
    }

    /// Passes over objects that are gone, up to `path`.
    fn pass_until(&mut self, path: Option<&AbsPath>) -> Result<(), Error> {
        let is_before = |there: &AbsPath| path.is_none_or(|path| there < path);
        loop {
            let old = self.old.next.as_ref().map(|known| &known.path).filter(|there| is_before(there));
            let own = self.own.next.as_ref().map(|(there, _)| there).filter(|there| is_before(there));
            let Some(next) = old.into_iter().chain(own).min().cloned() else { return Ok(()) };
            if old == Some(&next)
                && let Some(known) = self.old.take()?
            {
                self.changed = true;
                // An earlier snapshot may have kept what this one's rule leaves out; nobody has deleted that.
                let is_left_out = self.leaves_vcs && vcs_above(&known.path).is_some();
                self.counts.deleted += u64::from(!known.is_dir && !is_left_out);
            }
            if self.own.next.as_ref().is_some_and(|(there, _)| *there == next) {
                self.own.take()?;
            }
            if self.has_base {
                self.writing.removed(&next)?;
            }
        }
    }

    /// The facts known of a path from before, and its line in the differences.
    fn known_before(&mut self, path: &AbsPath) -> Result<(Option<Known>, Option<Box<Entry>>), Error> {
        self.pass_until(Some(path))?;
        let old = if self.old.next.as_ref().is_some_and(|known| known.path == *path) { self.old.take()? } else { None };
        let is_own = self.own.next.as_ref().is_some_and(|(there, _)| there == path);
        let own = if is_own { self.own.take()?.and_then(|(_, entry)| entry) } else { None };
        Ok((old, own))
    }

    fn meet_object(&mut self, object: &Object) -> Result<(), Error> {
        let (mut old, own) = self.known_before(&object.path)?;
        if let Some(known) = &mut old
            && let (Some(hash), Some(at)) = (known.hash, known.at)
            && !self.keeping.has(hash, at, known.size)?
        {
            // Its content is missing: read the file, and store it once more.
            (known.at, known.key) = (None, None);
        }
        let believed = self.index.is_some_and(|index| old.as_ref().is_some_and(|known| index.believes(known, &object.stat)));
        // A renamed directory alone may change which name of a file is the first, and the file's times do not show that.
        if let Some(known) = old.as_ref().filter(|_| believed && !has_several_names(&object.stat)) {
            if let Some(own) = own {
                let _its_sign_is_known = self.writing.entry(&own)?;
            }
            self.count(known.is_dir, has_content(&object.stat).then_some(object.stat.size));
            self.making.add(known, Some(&object.stat));
            return Ok(());
        }
        self.is_outdated |= !believed;
        let seen = self.look(object, old.as_ref(), believed)?;
        let is_unknown = object.stat.sort == Sort::Directory && object.path.depth() > 0 && !matches!(seen, Seen::Whole { .. });
        self.unknown = is_unknown.then(|| object.path.clone());
        match seen {
            Seen::Gone => {
                // As if the walk had not met it.
                if let Some(known) = old {
                    self.changed = true;
                    self.counts.deleted += u64::from(!known.is_dir);
                    if self.has_base {
                        self.writing.removed(&object.path)?;
                    }
                }
                Ok(())
            }
            Seen::Unread(why) => {
                self.unread.push((object.path.clone(), why.clone()));
                let entry = Entry::unread(object.path.clone(), why);
                self.record(entry, old, own, Some((&object.stat, true)))
            }
            Seen::Whole { entry, stat, written } => self.record(*entry, old, own, Some((&stat, written))),
        }
    }

    fn not_read(&mut self, path: AbsPath, why: String) -> Result<(), Error> {
        let (old, own) = self.known_before(&path)?;
        self.record(Entry::unread(path, why), old, own, None)
    }

    fn record(
        &mut self,
        mut entry: Entry,
        old: Option<Known>,
        own: Option<Box<Entry>>,
        stat: Option<(&Stat, bool)>,
    ) -> Result<(), Error> {
        if let Some((stat, _)) = stat {
            entry.ino = Some(stat.ino);
            let is_moved = old.as_ref().is_none_or(|old| old.ino.is_some_and(|ino| ino != stat.ino));
            entry.older = is_moved && stat.btime.is_some_and(|born| Some(born) <= self.existed);
        }
        let known = previous_objects::known_of(&entry, 0);
        let same = old.as_ref().is_some_and(|old| old.mark == known.mark);
        // Its content was not where the snapshot before has it, or lacked its holes.
        let was_moved = same && old.as_ref().is_some_and(|old| old.at != entry.at);
        let is_another = same && old.as_ref().is_some_and(|old| old.ino != entry.ino);
        match (&old, same) {
            (None, _) => self.counts.added += u64::from(!known.is_dir),
            (Some(_), false) => self.counts.modified += u64::from(!known.is_dir),
            (Some(_), true) => {}
        }
        self.changed |= !same || was_moved || is_another && self.tells_moves;
        let was_moved = was_moved || is_another;
        let (at, sign) = match own {
            // The line of the snapshot before says the same.
            Some(own) if same && !was_moved => (own.at, self.writing.entry(&own)?),
            None if same && !was_moved && self.has_base => (entry.at, entry.sign()),
            _ => (entry.at, self.writing.entry(&entry)?),
        };
        let known = Known { at, sign, ..known };
        if known.unread {
            self.counts.unread += 1;
            self.counts.entries += 1;
        } else {
            self.count(known.is_dir, known.hash.map(|_| known.size));
        }
        if let Some((stat, written)) = stat {
            let known = Known { written, ..known };
            self.remember(stat, &known);
            self.making.add(&known, Some(stat));
        } else {
            // So that it does not count as new next time.
            self.making.add(&known, None);
        }
        Ok(())
    }

    fn count(&mut self, is_dir: bool, size: Option<u64>) {
        self.counts.entries += 1;
        self.counts.files += u64::from(!is_dir);
        self.counts.bytes += size.unwrap_or(0);
    }

    fn remember(&mut self, stat: &Stat, known: &Known) {
        if has_several_names(stat) && !known.unread {
            let first = || First { path: known.path.clone(), content: Content::of(known, stat), names: 0 };
            self.links.entry((stat.dev, stat.ino)).or_insert_with(first).names += 1;
        }
    }

    /// Makes content and manifest durable, then gives the manifest its name (N1). Makes no snapshot if no object has changed and `same` can
    /// stand for it.
    fn finish(mut self, fs: &Fs, head: &Head, closing: &Closing, same: Option<&Summary>) -> Result<SnapshotResult, Error> {
        let (dir, n) = (&self.series.dir, head.n);
        let (unread, left) = (std::mem::take(&mut self.unread), std::mem::take(&mut self.left));
        let has_others = |first: &First| first.names < first.content.stat.nlink;
        let elsewhere = self.links.drain().map(|(_, first)| first).filter(has_others).map(|first| first.path).collect();
        if let Some(last) = same.filter(|_| !self.changed) {
            let put = if self.is_outdated { self.making.put(fs, dir, last.head.n, last.tail.hash) } else { Ok(()) };
            let unindexed = put.err().map(|error| error.to_string());
            let damaged = damaged(self.keeping);
            let unchanged = SnapshotResult::of(last.head.n, How::Unchanged, last.tail.counts, closing.time);
            return Ok(SnapshotResult { unread, left, elsewhere, damaged, unindexed, ..unchanged });
        }
        self.counts.stored = self.keeping.stored;
        let counts = self.counts;
        let much = head.base.is_some() && self.writing.objects.saturating_mul(4) > counts.entries;
        let (mut file, mut hash) = self.writing.end(closing, counts)?;
        let mut temp = temp_name(n);
        if much {
            // The differences are many: a whole manifest is shorter to read, and no longer needs the base.
            let mut merged = Merged::of(dir, Reading::open(dir.at(&temp), n)?)?;
            let mut whole = Writing::begin(fs, dir, &whole_name(n), &Head { base: None, ..head.clone() })?;
            while let Some(entry) = merged.next()? {
                let _its_sign_is_known = whole.entry(&entry)?;
            }
            (file, hash) = whole.end(closing, counts)?;
            fs.unlink(dir.at(&temp))?;
            temp = whole_name(n);
        }
        self.keeping.sync(&file)?; // D1
        let name = manifest::name(n);
        fs.rename_over(dir.at(&temp), dir.at(&name))?;
        fs.sync_dir(dir)?; // D2
        // The snapshot is made. Without an index the next one reads all (N5).
        let unindexed = self.making.put(fs, dir, n, hash).err().map(|error| error.to_string());
        let damaged = damaged(self.keeping);
        let new = SnapshotResult::of(n, How::New, counts, closing.time);
        Ok(SnapshotResult { unread, left, elsewhere, damaged, unindexed, ..new })
    }
}

fn damaged(keeping: Keeping<'_>) -> Vec<String> {
    keeping.into_faults().map(|Fault { path, why }| format!("{path}: {why}")).collect()
}
