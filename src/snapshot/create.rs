//! Create: walk → compare with the index → read and digest what is new (`reading`) → store → one sync → the manifest gets its name.

mod reading;

use std::collections::{HashMap, HashSet, VecDeque};

use super::before::{self, Peeked};
use super::content::{Keeping, PACKED};
use super::digesting::Digesting;
use super::error::{refused, unswept};
use super::index::{Index, Known, Making, has_content};
use super::manifest::{self, At, Counts, Entry, Head, Merged, PathLine, Reading, Writing};
use super::place;
use super::prune;
use super::rules::{Rules, Source, vcs_above};
use super::series::{Broken, Locked, Looking, Series, Summary};
use super::sound::Fault;
use super::walk::{Ahead, Met, Object, Told, Why};
use crate::error::At as _;
use crate::error::Error;
use crate::fs::Fs;
use crate::fs::device::Dev;
use crate::fs::dir::{Sort, Stat, Time};
use crate::fs::interrupt;
use crate::fs::path::AbsPath;
use crate::tree::digest::Digest;

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// What the user says of it.
    pub message: Option<String>,
    /// A word to call it by.
    pub label: Option<String>,
    /// What the caller wants to find again.
    pub meta: Vec<(String, String)>,
    /// At most one snapshot for this.
    pub once: Option<String>,
    /// None where nothing changed: no object, no rule, and no word that it is to be found by.
    pub if_changed: bool,
    /// By a run, before or after its command.
    pub run: bool,
    /// What is left out.
    pub rules: Source,
    /// At most so many objects.
    pub limit: Option<u64>,
}

impl Asked {
    /// Whether it is to be found by what this snapshot does not have: a label, a key, or as the newest that somebody asked for.
    fn names_another(&self, than: &Head) -> bool {
        let is_new = |asked: &Option<String>, had: &Option<String>| asked.is_some() && asked != had;
        is_new(&self.label, &than.label) || is_new(&self.once, &than.key) || than.run && !self.run
    }
}

/// What became of it.
#[derive(Debug, Clone)]
pub struct Made {
    /// The number that stands for the state.
    pub n: u64,
    /// Whether it is new.
    pub how: How,
    /// Numbers for people; those of the snapshot that stands for it where none was made.
    pub counts: Counts,
    /// What could not be read, and why.
    pub unread: Vec<(AbsPath, String)>,
    /// What was left out, but for what rules say.
    pub left: Vec<(AbsPath, Why)>,
    /// The first name of each file that has others, which are not in the snapshot.
    pub elsewhere: HashSet<AbsPath>,
    /// Version control's own that was left out.
    pub repositories: Vec<AbsPath>,
    /// What of earlier snapshots is damaged; this one needs none of it.
    pub damaged: Vec<String>,
    /// Globs that nothing fitted.
    pub unfitted: Vec<String>,
    /// Why its index could not be written, by which the next one would be quicker.
    pub unindexed: Option<String>,
}

/// Whether a snapshot was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It was.
    New,
    /// Nothing has changed since this one.
    Unchanged,
    /// There is one with that key.
    Once,
}

/// Takes a snapshot. `store` is recant's own folder, which is left out.
pub fn create(fs: &Fs, store: &AbsPath, series: &Series, _lock: &Locked, asked: &Asked) -> Result<Made, Error> {
    let numbers = series.numbers()?;
    if let Some(found) = asked.once.as_ref().map(|key| with_key(series, key)).transpose()?.flatten() {
        let (n, counts) = (found.head.n, found.tail.counts);
        return Ok(Made {
            n,
            how: How::Once,
            counts,
            unread: Vec::new(),
            left: Vec::new(),
            elsewhere: HashSet::new(),
            repositories: Vec::new(),
            damaged: Vec::new(),
            unfitted: Vec::new(),
            unindexed: None,
        });
    }
    // A damaged one stands for nothing, but keeps its number: nothing of a new one may rest on it.
    let (last, broken) = series.newest_whole()?;
    let n = numbers.last().map_or(0, |last| last + 1);
    sweep(fs, series, n)?;
    let taken = take(fs, store, series, n, last.as_ref(), asked);
    let taken = taken.map(|made| {
        let broken = broken.into_iter().map(|Broken { n, why }| format!("snapshot {n} cannot be read: {why}"));
        Made { damaged: broken.chain(made.damaged).collect(), ..made }
    });
    if !matches!(taken, Ok(Made { how: How::New, .. })) {
        // Where the name is there and only its sync has failed, it is complete: its content stays. Tidying: where it fails, the next
        // one sweeps.
        drop(series.numbers().and_then(|numbers| sweep(fs, series, numbers.last().map_or(0, |last| last + 1))));
    }
    // On a full disk everything else needs the room. What stays for want of a readable manifest goes with the next prune.
    taken.map_err(|error| match prune::sweep(fs, series) {
        Ok(()) => error,
        Err(left) => unswept(error, &left, &series.folder),
    })
}

/// The newest with a key that can be read.
fn with_key(series: &Series, key: &String) -> Result<Option<Summary>, Error> {
    let mut looking = Looking::of(series);
    let (summaries, _) = series.summaries()?;
    let mut found = summaries.into_iter().rev().filter(|summary| summary.head.key.as_ref() == Some(key));
    Ok(found.find_map(|summary| looking.at(summary.head.n).ok()))
}

/// So many objects are known before they are looked at. Each may keep a folder open.
const COMING: usize = 8;

fn temp_name(n: u64) -> Vec<u8> {
    format!("{n}.new").into_bytes()
}

fn whole_name(n: u64) -> Vec<u8> {
    format!("{n}.whole").into_bytes()
}

/// Removes what a snapshot that was cut off left: its manifest has no name.
fn sweep(fs: &Fs, series: &Series, n: u64) -> Result<(), Error> {
    for (ending, from) in [(".new", 0), (".whole", 0), (".pack", n)] {
        for left in series.with_ending(ending)?.into_iter().filter(|number| *number >= from) {
            let name = format!("{left}{ending}").into_bytes();
            let at = series.dir.at(&name);
            fs.unlink_if_there(at).at("remove", at)?;
        }
    }
    Ok(())
}

fn take(fs: &Fs, store: &AbsPath, series: &Series, n: u64, last: Option<&Summary>, asked: &Asked) -> Result<Made, Error> {
    let started = crate::fs::now();
    let index = match last {
        Some(last) => Index::open(&series.dir, last.head.n, last.tail.digest)?,
        None => None,
    };
    if let (None, Some(limit)) = (&index, asked.limit) {
        // Nothing is known of the folder yet: better to count first than to read everything in vain.
        place::refuse_large(&series.folder, store, &asked.rules, limit)?;
    }
    let base = last.filter(|_| index.is_some()).map(|last| last.head.base.unwrap_or(last.head.n));
    let head = Head {
        schema: 1,
        n,
        folder: series.folder.clone(),
        time: started,
        base,
        message: asked.message.clone(),
        label: asked.label.clone(),
        key: asked.once.clone(),
        run: asked.run,
        meta: asked.meta.iter().cloned().collect(),
    };
    let mut taking = Taking {
        series,
        index: index.as_ref(),
        last: last.map(|last| last.head.n),
        old: before::known(series, index.as_ref(), last)?,
        own: before::own(series, last, base)?,
        writing: Writing::begin(fs, &series.dir, &temp_name(n), &head)?,
        making: Making::begin(started),
        // Without an index all is read anyway, and nothing but the manifest speaks for what lies in the store.
        keeping: Keeping::begin(fs, &series.dir, n, index.is_none()),
        digesting: Digesting::default(),
        read_before: last.map(|last| last.head.time),
        learned: false,
        has_base: base.is_some(),
        links: HashMap::new(),
        unknown: None,
        counts: Counts::default(),
        changed: last.is_none(),
        unread: Vec::new(),
        left: Vec::new(),
        leaves_vcs: asked.rules.rules().leaves_vcs(),
        buffer: Vec::new(),
    };
    let mut walk = Ahead::new(&series.folder, store, &asked.rules)?;
    let mut coming = VecDeque::with_capacity(COMING);
    loop {
        while coming.len() < COMING
            && let Some(met) = walk.next()?
        {
            taking.foresee(&met);
            coming.push_back(met);
        }
        // Where it was asked to end, reading may have ended early, too: of the last object as well.
        interrupt::check().at("go on with", &series.folder)?;
        let Some(met) = coming.pop_front() else { break };
        taking.meet(met)?;
        if asked.limit.is_some_and(|limit| taking.counts.entries > limit) {
            let limit = asked.limit.unwrap_or_default();
            place::refuse_large(&series.folder, store, &asked.rules, limit)?;
        }
    }
    taking.pass_until(None)?;
    let told = walk.told().filter(|_| taking.counts.entries > 0);
    let Some(Told { rules, unfitted }) = told else { return Err(nothing_there(series)) };
    // Rules that cannot be read are no reason to take none.
    let has_rules = |last: &Summary| manifest::rules(&series.dir, last.head.n).is_ok_and(|had| had == rules);
    let same = last.filter(|last| asked.if_changed && !asked.names_another(&last.head) && has_rules(last));
    let made = taking.finish(fs, &head, &rules, same)?;
    Ok(Made { unfitted, repositories: rules.repositories, ..made })
}

fn nothing_there(series: &Series) -> Error {
    refused(&series.folder, "there is nothing there").with_remedy("name a folder or file that is there")
}

/// A snapshot on its way.
struct Taking<'a> {
    series: &'a Series,
    index: Option<&'a Index>,
    last: Option<u64>,
    /// What the snapshot before saw.
    old: Peeked<'a, Known>,
    /// Its differences from the base.
    own: Peeked<'a, PathLine>,
    writing: Writing<'a>,
    making: Making,
    keeping: Keeping<'a>,
    digesting: Digesting,
    /// When the snapshot before began: most of what is older is known by it.
    read_before: Option<Time>,
    learned: bool,
    has_base: bool,
    /// The first name of each inode that has several.
    links: HashMap<(Dev, u64), First>,
    /// A folder that the walk came to, and that was not there any more, or could not be read, when it was looked at.
    unknown: Option<AbsPath>,
    counts: Counts,
    changed: bool,
    unread: Vec<(AbsPath, String)>,
    left: Vec<(AbsPath, Why)>,
    leaves_vcs: bool,
    buffer: Vec<u8>,
}

/// The first name of an inode.
#[derive(Clone)]
struct First {
    path: AbsPath,
    content: Content,
    /// How many were met so far.
    names: u32,
}

/// Content that need not be read, as long as the file has this stat.
#[derive(Clone, Copy)]
struct Content {
    stat: Stat,
    digest: Option<Digest>,
    at: Option<At>,
    written: bool,
}

impl Content {
    fn of(known: &Known, stat: &Stat) -> Self {
        Self { stat: *stat, digest: known.digest, at: known.at, written: known.written }
    }
}

/// What looking at an object told.
enum Seen {
    /// All of it, and the stat that it goes with.
    Whole { entry: Box<Entry>, stat: Stat, written: bool },
    /// Nothing.
    Unread(String),
    /// It went away meanwhile.
    Gone,
}

impl Taking<'_> {
    /// Has a file that will be met digested meanwhile: a large one that is new, where blocks are shared, so that it is only read.
    fn foresee(&mut self, met: &Met) {
        let Met::Object(object) = met else { return };
        let stat = &object.stat;
        let is_new = self.read_before.is_none_or(|then| stat.ctime >= then);
        if self.keeping.shares && is_new && stat.sort == Sort::File && stat.nlink == 1 && stat.size >= PACKED {
            self.digesting.offer(object);
        }
    }

    fn meet(&mut self, met: Met) -> Result<(), Error> {
        // The walk is ahead, and holds the folder wherever somebody has moved it: what lies in it would stand there without it.
        if self.unknown.as_ref().is_some_and(|folder| met.path().is_under(folder)) {
            return Ok(());
        }
        match met {
            Met::Object(object) => self.object(&object),
            Met::Unlisted { path, why } => {
                self.unread.push((path.clone(), why.clone()));
                self.not_read(path, why)
            }
            Met::Left { why: Why::Rules, .. } => {
                self.counts.excluded += 1;
                Ok(())
            }
            Met::Left { why: Why::Vcs, .. } => Ok(()),
            Met::Left { path, why } => {
                self.left.push((path.clone(), why));
                self.not_read(path, why.text().to_owned())
            }
        }
    }

    /// Passes by what was there and is not, up to `path`.
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
                // An earlier one may have kept what this one's rule leaves out, which nobody has deleted.
                let is_left_out = self.leaves_vcs && vcs_above(&known.path).is_some();
                self.counts.deleted += u64::from(!known.is_folder && !is_left_out);
            }
            if self.own.next.as_ref().is_some_and(|(there, _)| *there == next) {
                self.own.take()?;
            }
            if self.has_base {
                self.writing.gone(&next)?;
            }
        }
    }

    /// What is known of a path from before, and its line in the differences.
    fn known(&mut self, path: &AbsPath) -> Result<(Option<Known>, Option<Box<Entry>>), Error> {
        self.pass_until(Some(path))?;
        let old = if self.old.next.as_ref().is_some_and(|known| known.path == *path) { self.old.take()? } else { None };
        let is_own = self.own.next.as_ref().is_some_and(|(there, _)| there == path);
        let own = if is_own { self.own.take()?.and_then(|(_, entry)| entry) } else { None };
        Ok((old, own))
    }

    fn object(&mut self, object: &Object) -> Result<(), Error> {
        let (mut old, own) = self.known(&object.path)?;
        if let Some(known) = &mut old
            && let (Some(digest), Some(at)) = (known.digest, known.at)
            && !self.keeping.has(digest, at, known.size)?
        {
            // It is read, and stored once more.
            (known.at, known.key) = (None, None);
        }
        let believed = self.index.is_some_and(|index| old.as_ref().is_some_and(|known| index.believes(known, &object.stat)));
        // Which name of a file is its first may have changed with a folder's name alone, of which its times tell nothing.
        if let Some(known) = old.as_ref().filter(|_| believed && !has_several_names(&object.stat)) {
            if let Some(own) = own {
                let _its_sign_is_known = self.writing.entry(&own)?;
            }
            self.count(known.is_folder, has_content(&object.stat).then_some(object.stat.size));
            self.making.add(known, &object.stat);
            return Ok(());
        }
        let seen = self.look(object, old.as_ref(), believed)?;
        let is_unknown = object.stat.sort == Sort::Folder && object.path.depth() > 0 && !matches!(seen, Seen::Whole { .. });
        self.unknown = is_unknown.then(|| object.path.clone());
        match seen {
            Seen::Gone => {
                // As if the walk had not come to it.
                if let Some(known) = old {
                    self.changed = true;
                    self.counts.deleted += u64::from(!known.is_folder);
                    if self.has_base {
                        self.writing.gone(&object.path)?;
                    }
                }
                Ok(())
            }
            Seen::Unread(why) => {
                self.unread.push((object.path.clone(), why.clone()));
                let entry = Entry { path: object.path.clone(), state: None, at: None, link: None, unread: Some(why) };
                self.put(entry, old, own, Some((&object.stat, true)))
            }
            Seen::Whole { entry, stat, written } => self.put(*entry, old, own, Some((&stat, written))),
        }
    }

    fn not_read(&mut self, path: AbsPath, why: String) -> Result<(), Error> {
        let (old, own) = self.known(&path)?;
        self.put(Entry { path, state: None, at: None, link: None, unread: Some(why) }, old, own, None)
    }

    fn put(
        &mut self,
        entry: Entry,
        old: Option<Known>,
        own: Option<Box<Entry>>,
        stat: Option<(&Stat, bool)>,
    ) -> Result<(), Error> {
        let known = before::known_of(&entry, 0);
        let same = old.as_ref().is_some_and(|old| old.mark == known.mark);
        // Its content was not where the snapshot before has it, or not with its holes.
        let was_moved = same && old.as_ref().is_some_and(|old| old.at != entry.at);
        match (&old, same) {
            (None, _) => self.counts.added += u64::from(!known.is_folder),
            (Some(_), false) => self.counts.modified += u64::from(!known.is_folder),
            (Some(_), true) => {}
        }
        self.changed |= !same || was_moved;
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
            self.count(known.is_folder, known.digest.map(|_| known.size));
        }
        if let Some((stat, written)) = stat {
            let known = Known { written, ..known };
            self.remember(stat, &known);
            self.making.add(&known, stat);
        } else {
            // So that it is not taken for new next time. No stat is like this one.
            self.making.add(&known, &nothing());
        }
        Ok(())
    }

    fn count(&mut self, is_folder: bool, size: Option<u64>) {
        self.counts.entries += 1;
        self.counts.files += u64::from(!is_folder);
        self.counts.bytes += size.unwrap_or(0);
    }

    fn remember(&mut self, stat: &Stat, known: &Known) {
        if has_several_names(stat) && !known.unread {
            let first = || First { path: known.path.clone(), content: Content::of(known, stat), names: 0 };
            self.links.entry((stat.dev, stat.ino)).or_insert_with(first).names += 1;
        }
    }

    /// N1: content and manifest are durable, then the manifest gets its name.
    /// None is made where `same` stands for it if no object has changed.
    fn finish(mut self, fs: &Fs, head: &Head, rules: &Rules, same: Option<&Summary>) -> Result<Made, Error> {
        let (dir, n) = (&self.series.dir, head.n);
        let (unread, left) = (std::mem::take(&mut self.unread), std::mem::take(&mut self.left));
        let has_others = |first: &First| first.names < first.content.stat.nlink;
        let elsewhere = self.links.drain().map(|(_, first)| first).filter(has_others).map(|first| first.path).collect();
        if let Some(last) = same.filter(|_| !self.changed) {
            let unindexed = self.making.put(fs, dir, last.head.n, last.tail.digest).err().map(|error| error.to_string());
            let damaged = damaged(self.keeping);
            return Ok(Made {
                n: last.head.n,
                how: How::Unchanged,
                counts: last.tail.counts,
                unread,
                left,
                elsewhere,
                repositories: Vec::new(),
                damaged,
                unfitted: Vec::new(),
                unindexed,
            });
        }
        self.counts.stored = self.keeping.stored;
        let counts = self.counts;
        let much = head.base.is_some() && self.writing.objects.saturating_mul(4) > counts.entries;
        let (mut file, mut digest) = self.writing.end(rules, counts)?;
        let mut temp = temp_name(n);
        if much {
            // The differences have become many: a whole one is shorter to read, and lets the base go.
            let mut merged = Merged::of(dir, Reading::open(dir.at(&temp), n)?)?;
            let mut whole = Writing::begin(fs, dir, &whole_name(n), &Head { base: None, ..head.clone() })?;
            while let Some(entry) = merged.next()? {
                let _its_sign_is_known = whole.entry(&entry)?;
            }
            (file, digest) = whole.end(rules, counts)?;
            fs.unlink(dir.at(&temp)).at("remove", dir.at(&temp))?;
            temp = whole_name(n);
        }
        self.keeping.sync(&file)?; // D1
        let name = manifest::name(n);
        fs.rename_over(dir.at(&temp), dir.at(&name)).at("rename", dir.at(&temp))?;
        fs.sync_dir(dir).at("sync", dir.path().display())?; // D2
        // It is made. Without an index the next one reads all (N5).
        let unindexed = self.making.put(fs, dir, n, digest).err().map(|error| error.to_string());
        let damaged = damaged(self.keeping);
        let (repositories, unfitted) = (Vec::new(), Vec::new());
        Ok(Made { n, how: How::New, counts, unread, left, elsewhere, repositories, damaged, unfitted, unindexed })
    }
}

fn damaged(keeping: Keeping<'_>) -> Vec<String> {
    keeping.into_faults().map(|Fault { path, why }| format!("{path}: {why}")).collect()
}

fn has_several_names(stat: &Stat) -> bool {
    stat.nlink > 1 && stat.sort != Sort::Folder
}

fn nothing() -> Stat {
    Stat {
        sort: Sort::Folder,
        mode: 0,
        uid: 0,
        gid: 0,
        size: 0,
        blocks: 0,
        mtime: Default::default(),
        ctime: Default::default(),
        btime: None,
        ino: 0,
        nlink: 0,
        dev: Dev(0, 0),
        rdev: Dev(0, 0),
        mount: 0,
        locked: false,
        encrypted: false,
        mount_root: false,
    }
}
