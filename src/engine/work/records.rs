//! The records of an operation beside its journal: the manifest of what is in, and the one of what `--force` overwrote.

use std::collections::BTreeMap;
use std::fs::File;
use std::rc::Rc;

use crate::checkpoint::{DirectoryTime, Kept, NEW, Original, Reading, Writing, name_written};
use crate::engine::item::Item;
use crate::engine::job::Verb;
use crate::engine::journal::Journal;
use crate::engine::reach::Reach;
use crate::engine::report::LeftPath;
use crate::engine::step::Act;
use crate::error::Error;
use crate::fs::{AbsPath, Dir, Fs, Sort, Time};
use crate::session::{Change, Session, Side, Store, Written, log, part};
use crate::tree::{Fingerprint, Hash, Object, Seen, State, Walk, What, observe};

/// Opens the directory of a session's checkpoint.
pub fn directory(session: &Session) -> Result<Dir, Error> {
    part(&session.dir, b"checkpoint")
}

/// Makes the new manifest from the old one and the journal: lines of what is in, none of what went back. `put` has, for each item, the
/// ctime right after it was put: a later one is somebody else's. The caller syncs the file before it gets its name.
pub fn write_manifest(
    fs: &Fs,
    session: &Session,
    journal: &Journal,
    directory: &Dir,
    put: Option<&[Option<Time>]>,
) -> Result<File, Error> {
    let known = known_times(session, journal)?;
    let mut old = Reading::open(&session.dir)?;
    let mut new = Writing::begin(fs, directory)?;
    // If nothing stays in, no line stays.
    let mut next = if journal.head.header.counts.inside > 0 { old.next()? } else { None };
    for (i, item) in journal.items.iter().enumerate() {
        while let Some(original) = next.take_if(|original| original.path < item.path) {
            new.original(&original)?;
            next = old.next()?;
        }
        if next.take_if(|original| original.path == item.path).is_some() {
            next = old.next()?;
        }
        if item.side == Side::In {
            let put = put.and_then(|put| put_print(item, put[i]));
            new.original(&as_it_was(original(item, put), &known))?;
        }
    }
    while let Some(original) = next {
        new.original(&original)?;
        next = old.next()?;
    }
    let mut times = old.directory_times()?;
    for item in journal.items.iter().filter(|_| !journal.head.verb.inward()) {
        times.extend(came_back(item, times.get(&item.path)));
    }
    for time in journal.head.times.iter().filter(|time| !time.own) {
        let known = times.remove(&time.path);
        let Some(left) = time.new else { continue };
        let path = time.path.clone();
        let noted = match known {
            _ if journal.head.verb.inward() => DirectoryTime { path, old: time.original, left, committed: left },
            // A time that somebody has set is theirs from then on. (A recovery finds what was written already.)
            Some(known) if time.old.shows(known.left) || known.left == left => DirectoryTime { left, ..known },
            Some(_) | None => continue,
        };
        times.insert(time.path.clone(), noted);
    }
    new.end(times.values())
}

/// The directory times that an earlier part of the session noted, if one of these directories is an original now.
fn known_times(session: &Session, journal: &Journal) -> Result<BTreeMap<AbsPath, DirectoryTime>, Error> {
    let is_needed = |item: &Item| item.side == Side::In && item.was_dir();
    Ok(if journal.items.iter().any(is_needed) { Reading::open(&session.dir)?.directory_times()? } else { BTreeMap::new() })
}

/// The original of a directory that an earlier part of the session worked in, with its time from before that.
fn as_it_was(mut original: Original, known: &BTreeMap<AbsPath, DirectoryTime>) -> Original {
    if let (Some(State { what: What::Directory, meta }), Some(known)) = (&mut original.state, known.get(&original.path))
        && meta.mtime.shows(known.left)
    {
        meta.mtime = known.old;
    }
    original
}

/// The directory that a rollback has brought or set back, with its time: what comes back into it later changes that again.
fn came_back(item: &Item, known: Option<&DirectoryTime>) -> Option<(AbsPath, DirectoryTime)> {
    let (to, is_set) = (item.to.as_ref().filter(|to| to.state.is_dir())?, item.act == Act::SetMeta);
    if !item.moves() && !is_set {
        return None;
    }
    let mtime = to.state.meta.mtime;
    let committed = known.map(|known| known.committed).or(item.from.as_ref().map(|from| from.state.meta.mtime));
    let time = DirectoryTime { path: item.path.clone(), old: mtime, left: mtime, committed: committed.unwrap_or(mtime) };
    Some((item.path.clone(), time))
}

/// Makes the manifest line of an item.
fn original(item: &Item, put: Option<Fingerprint>) -> Original {
    let state = item.from.as_ref().map(|from| from.state.clone());
    let kept = if state.is_some() { item.kept.clone() } else { Kept::Nothing };
    Original { n: item.n, path: item.path.clone(), state, kept, put }
}

/// Writes the manifest of what `--force` found: what it overwrote, or that nothing was there. Of an inode that stayed it is the metadata.
pub fn write_displaced(fs: &Fs, reach: &mut Reach, journal: &Journal) -> Result<(), Error> {
    let generation = journal.head.generation + 1;
    let mut displaced = journal.items.iter().filter(|item| item.is_noted(journal.head.verb)).peekable();
    if displaced.peek().is_none() {
        return Ok(());
    }
    let below = format!("displaced/{generation}").into_bytes();
    let directory = reach.held(&below)?;
    let mut rows = Writing::begin(fs, &directory)?;
    for item in displaced {
        let kept = match &item.from {
            None => Kept::Nothing,
            Some(_) if item.act == Act::SetMeta => Kept::Metadata,
            Some(_) => Kept::Displaced { generation },
        };
        rows.original(&Original { kept, ..original(item, None) })?;
    }
    let file = rows.end(std::iter::empty())?;
    // D1 (file: not caught here: the model of power cuts overwrites nothing by force).
    fs.sync(&file, directory.at(NEW))?;
    name_written(fs, &directory)?;
    // D2 (directory: not caught here, as above), before the seal says that there is something under `displaced/`.
    Ok(fs.sync_dir(&directory)?)
}

/// Bytes on disk below a directory, as far as it is readable: for people, so nothing fails for it.
pub fn bytes_below(directory: &Rc<Dir>) -> u64 {
    let walk = Walk::under(directory.clone()).map(Walk::past_closed).into_iter().flatten();
    let seen = walk.map_while(Result::ok).filter(|found| found.stat.sort != Sort::Directory);
    seen.map(|found| found.stat.blocks * 512).sum()
}

/// The log's word for an operation that was sealed.
pub const DONE: &str = "done";
/// The log's word for an operation that was undone except for what is sealed.
const LEFT: &str = "left";
/// The log's word for a line that tells what else came of an operation.
const REPORTED: &str = "reported";

/// Appends a line to the log, durably.
pub fn note(fs: &Fs, store: &Store, journal: &Journal, result: &str) -> Result<(), Error> {
    log::append(fs, store, &entry(journal, result))
}

/// Logs what is sealed: that it is done, or what of it had to stay, and why.
pub fn note_sealed(fs: &Fs, store: &Store, journal: &Journal) -> Result<(), Error> {
    let Some(rest) = &journal.head.rest else { return note(fs, store, journal, DONE) };
    let notes = rest.iter().map(LeftPath::to_string).collect();
    log::append(fs, store, &log::Entry { notes, ..entry(journal, LEFT) })
}

/// Logs what is sealed, unless the log says so already.
pub fn note_sealed_once(fs: &Fs, store: &Store, journal: &Journal) -> Result<(), Error> {
    let result = if journal.head.rest.is_some() { LEFT } else { DONE };
    if last_noted(store, journal)?.as_deref() == Some(result) { Ok(()) } else { note_sealed(fs, store, journal) }
}

/// Logs what else came of a sealed operation, such as what was put aside.
pub fn note_report(fs: &Fs, store: &Store, journal: &Journal, notes: Vec<String>) -> Result<(), Error> {
    log::append(fs, store, &log::Entry { notes, ..entry(journal, REPORTED) })
}

fn entry(journal: &Journal, result: &str) -> log::Entry {
    let head = &journal.head;
    let about = if result == log::UNDONE { log::Entry::of } else { log::Entry::of_act };
    let entry = log::Entry::new(head.verb.word(), &head.session, head.generation + 1, result, journal.items.len() as u64);
    about(entry, &head.header)
}

/// The note that the log could not be written: no reason to undo what is sealed.
pub fn log_failed(error: &Error) -> String {
    format!("the log could not be written: {error}")
}

/// The log's last word on the operation, if any.
pub fn last_noted(store: &Store, journal: &Journal) -> Result<Option<String>, Error> {
    let head = &journal.head;
    let entries = log::read(store)?.entries;
    let of_it = |entry: &&log::Entry| {
        entry.session == head.session
            && entry.generation == head.generation + 1
            && entry.verb == head.verb.word()
            && entry.result != REPORTED
    };
    Ok(entries.iter().rev().find(of_it).map(|entry| entry.result.clone()))
}

/// The fingerprint of what recant put there, with the ctime `then` right after. A write in the same clock tick leaves the ctime: its
/// mtime shows it, unless that is as young.
fn put_print(item: &Item, then: Option<Time>) -> Option<Fingerprint> {
    // What is given back is not what the change led to.
    let is_its = item.act != Act::Stay && !item.planning.gives_back;
    let to = item.to.as_ref().filter(|to| is_its && !to.is_told_by_content())?;
    then.map(|ctime| {
        let print = observe::fingerprint_of(to.print.identity, ctime);
        Fingerprint { racy: print.racy || observe::is_young(to.state.meta.mtime, ctime), ..print }
    })
}

/// Writes `changes.jsonl` with the hashes that planning took, under another name: facts, which outlast an undo. What `--force` found in
/// place of a `before` is written once it is sealed ([`write_forced_befores`]).
pub fn write_hashes(fs: &Fs, session: &Session, items: &[Item]) -> Result<Written, Error> {
    let mut known = Known::of(items);
    session.write_taught(fs, |index, change| {
        if let Some(item) = known.at(index, change) {
            learn(&mut change.before.object, item.from.as_ref());
            learn(&mut change.after, item.to.as_ref());
        }
        Ok(())
    })
}

/// Writes the hashes of an interrupted operation again, before it is undone or settled. Afterwards its objects have another ctime, and
/// one without a hash would look changed. A power cut may have kept the names of the journal and of these hashes, and lost what was done
/// next on another file system. Writes only if something is to be learned.
pub fn learn_again(fs: &Fs, session: &Session, journal: &Journal) -> Result<(), Error> {
    if !journal.head.verb.inward() {
        return Ok(());
    }
    let (mut known, mut reading, mut index) = (Known::of(&journal.items), session.read_changes()?, 0);
    while let Some(change) = reading.next()? {
        if known.at(index, &change).is_some_and(|item| {
            hash_for(&change.before.object, item.from.as_ref()).or(hash_for(&change.after, item.to.as_ref())).is_some()
        }) {
            return write_hashes(fs, session, &journal.items)?.put(fs, &session.dir);
        }
        index += 1;
    }
    Ok(())
}

/// The items that know facts of a session's changes, in the order of the changes.
struct Known<'a>(std::iter::Peekable<std::slice::Iter<'a, Item>>);

impl<'a> Known<'a> {
    fn of(items: &'a [Item]) -> Self {
        Self(items.iter().peekable())
    }

    /// The item of a change. A line with another path would be of another session.
    fn at(&mut self, index: usize, change: &Change) -> Option<&'a Item> {
        while self.0.next_if(|item| (item.index as usize) < index).is_some() {}
        self.0.next_if(|item| item.index as usize == index).filter(|item| !item.forced && item.path == change.path)
    }
}

fn learn(known: &mut Object, read: Option<&Seen>) {
    let found = hash_for(known, read);
    if let Some(State { what: What::File { hash, .. }, .. }) = known.as_mut().filter(|_| found.is_some()) {
        *hash = found;
    }
}

/// The hash that a known object lacks and that was taken of what was found in its place.
fn hash_for(known: &Object, read: Option<&Seen>) -> Option<Hash> {
    match (&known.as_ref()?.what, &read?.state.what) {
        (What::File { hash: None, size, .. }, What::File { hash, size: found, .. }) if size == found => *hash,
        _ => None,
    }
}

/// Writes what a commit or redo found by force as the `before`: rollback brings it back, and a redo after that expects it. Where the inode stays, its content is that of the `after`
/// too.
pub fn write_forced_befores(fs: &Fs, session: &Session, journal: &Journal) -> Result<(), Error> {
    // A redo keeps what it found beside: what the record would then say has to fit what it says of the other paths, as a file in place of
    // a file does.
    let verb = journal.head.verb;
    let is_file = |item: &Item| item.from.as_ref().is_some_and(|from| from.state.is_file());
    let teaches = |item: &&Item| match verb {
        Verb::Commit => item.teaches(),
        Verb::Redo => item.forced && item.moves() && is_file(item),
        Verb::Rollback => false,
    };
    if !journal.items.iter().any(|item| teaches(&item)) {
        return Ok(());
    }
    let mut teaching = journal.items.iter().filter(teaches).peekable();
    let written = session.write_taught(fs, |index, change| {
        if let Some(item) = teaching.next_if(|item| item.index as usize == index) {
            if verb == Verb::Redo && !change.before.object.as_ref().is_some_and(State::is_file) {
                return Ok(());
            }
            (change.before.object, change.before.print) = (item.from.as_ref().map(|from| from.state.clone()), None);
            if verb == Verb::Commit {
                change.after = item.to.as_ref().map(|to| to.state.clone());
            }
        }
        Ok::<(), Error>(())
    })?;
    written.put(fs, &session.dir)
}
