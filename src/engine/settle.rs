//! Settle: what came out finds its home, the manifest is written, everything that was only on the way goes; last the
//! journal. Done again by recovery it does the same (docs/ARCHITECTURE.md, phase 6).

use std::collections::BTreeSet;
use std::fs::File;

use super::Error;
use super::apply::{Done, Sealed};
use super::durable::MANY;
use super::item::Item;
use super::job::Verb;
use super::journal::Journal;
use super::reach::{Reach, split};
use super::report::Report;
use super::step::{Act, Spot, Step};
use crate::checkpoint::manifest::{FolderTime, Kept, Original, Reading, Writing, name_written};
use crate::error::At;
use crate::fs::Fs;
use crate::fs::dir::{Dir, Time, leads_nowhere};
use crate::fs::path::Shown;
use crate::session::header::Origin;
use crate::session::log;
use crate::session::sides::Side;
use crate::session::store::{Locked, Session, Store};
use crate::tree::look;
use crate::tree::state::Fingerprint;

/// When settling is done: right after the seal, or by a later recant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When<'a> {
    /// What lies on the tree is what was just put there, where it still has the ctime that it had then: its fingerprints
    /// are taken.
    Now(&'a [Option<Time>]),
    /// Somebody may have been at work since: nothing is taken from the tree.
    Recovering,
}

impl Sealed {
    /// Settles and gives the report. Nothing is undone any more: an error leaves the journal for the next verb.
    pub fn settle(self, fs: &Fs, store: &Store, session: &mut Locked) -> Result<Report, Error> {
        let Done { journal, mut reach, mut told, put } = self.done;
        match settle(fs, store, session, &mut reach, &journal, When::Now(&put)) {
            Ok(notes) => told.notes.extend(notes),
            Err(error) => {
                return Err(Error::Stuck {
                    path: store.journals().at(session.id().as_str().as_bytes()).to_string(),
                    why: format!("cannot tidy up: {error}"),
                    state: format!("the {} is done and durable; the next recant ends the tidying", journal.head.verb.word()),
                });
            }
        }
        Ok(told.report(journal))
    }
}

/// Settles a sealed journal.
pub fn settle(
    fs: &Fs,
    store: &Store,
    session: &Session,
    reach: &mut Reach,
    journal: &Journal,
    when: When<'_>,
) -> Result<Vec<String>, Error> {
    let mut notes = Vec::new();
    for step in journal.steps().filter(|step| step.act != Act::SetMeta) {
        bring_home(fs, reach, &step, when, &mut notes)?;
    }
    let manifest = write_manifest(fs, reach, session, journal, when)?;
    write_forced_befores(fs, session, journal)?;
    for item in &journal.items {
        if let Some(spare) = journal.frame().places(item).spare {
            remove(fs, reach, &spare)?;
        }
    }
    forget_uppers(fs, session)?;
    manifest.name(fs, session)?;
    sync_homes(fs, reach, session, journal)?;
    if let Err(error) = note(fs, store, session, journal, when) {
        notes.push(format!("the log could not be written: {error}"));
    }
    Journal::remove(fs, store, session.id())?;
    Ok(notes)
}

/// The homes and the manifest are durable, and the temporary names gone, before the journal, which alone knows the way there,
/// goes (D2, D4, D5).
fn sync_homes(fs: &Fs, reach: &mut Reach, session: &Session, journal: &Journal) -> Result<(), Error> {
    let (mut held, mut beside) = (BTreeSet::from([b"checkpoint".to_vec()]), BTreeSet::new());
    for item in &journal.items {
        let places = journal.frame().places(item);
        for spot in [places.home, places.to, places.out, places.spare].into_iter().flatten() {
            match spot {
                Spot::Session(below) if held.len() <= MANY => held.extend([split(&below).0.to_vec()]),
                Spot::Session(_) => {}
                Spot::Tree(path) => beside.extend(path.parent()),
            }
        }
    }
    if held.len() > MANY {
        fs.sync_fs(&session.dir).at("sync the file system of", session.dir.path().display())?;
    } else {
        for below in &held {
            match reach.held(below) {
                Ok(dir) => fs.sync_dir(&dir).at("sync", dir.path().display())?,
                // An upper that is not needed any more.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).at("open the session's folder", Shown(below)).map_err(Error::from),
            }
        }
    }
    for path in &beside {
        match reach.roots.folder(path) {
            Ok(dir) => {
                // The temporary names that went have changed its time again.
                if let Some(new) = journal.head.times.iter().find(|time| time.path == *path).and_then(|time| time.new) {
                    fs.set_mtime(dir.at(b"."), new).at("set the time of", path)?;
                }
                if dir.readable() {
                    fs.sync_dir(&dir).at("sync", path)?;
                    continue;
                }
                let root = reach.roots.root_of(path).at("find the mount of", path)?;
                fs.sync_fs(&root.dir).at("sync the file system of", &root.mount.point)?;
            }
            Err(error) if leads_nowhere(&error) => {}
            Err(error) => return Err(error).at("open the folder", path).map_err(Error::from),
        }
    }
    Ok(())
}

/// From where `to` lay, or from the temporary name, to its home; what was copied there before is let go.
fn bring_home(fs: &Fs, reach: &mut Reach, step: &Step<'_>, when: When<'_>, notes: &mut Vec<String>) -> Result<(), Error> {
    let (Some(from), Some(out)) = (&step.from, &step.at.out) else { return Ok(()) };
    let Some(home) = step.at.home.as_ref().filter(|_| !step.at.copied) else {
        // Copied, or uncovered by policy: only now that nothing is undone any more it is let go (I7).
        if step.at.copied && written_since(reach, out, from)? {
            notes.push(format!("{}: it was written to while it was committed; what was there last is kept as {out}", step.path));
            return Ok(());
        }
        return remove(fs, reach, out);
    };
    if home == out {
        return Ok(());
    }
    let there = match reach.spot(out) {
        // Settled before a crash: not even the upper that it lay in is there any more.
        Err(error) if when == When::Recovering && leads_nowhere(&error) => return Ok(()),
        other => other.at("open the folder of", out)?,
    };
    if when == When::Recovering {
        let stat = there.at().stat().at("look at", out)?;
        // Settled before a crash: it is at home already, and the name is free or has another use.
        if stat.is_none_or(|stat| look::identity(&stat) != from.print.identity) {
            return Ok(());
        }
    }
    let named = reach.spot(home).at("open the folder of", home)?;
    match fs.place(there.at(), named.at()) {
        // An object that nothing names, left by an earlier crash.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let same = named.at().stat().at("look at", home)?.is_some_and(|stat| look::identity(&stat) == from.print.identity);
            if same {
                fs.unlink(there.at()).at("remove", out)?;
            } else {
                fs.remove_all(named.at()).at("remove", home)?;
                fs.place(there.at(), named.at()).at("put away", home)?;
            }
        }
        other => other.at("put away", home)?,
    }
    Ok(())
}

fn written_since(reach: &mut Reach, out: &Spot, from: &look::Seen) -> Result<bool, Error> {
    let named = reach.spot(out).at("open the folder of", out)?;
    let Some(stat) = named.at().stat().at("look at", out)? else { return Ok(false) };
    Ok(!from.state.is_folder()
        && (stat.mtime != from.state.meta.mtime || from.state.digest().is_some() && stat.size != from.state.size()))
}

fn remove(fs: &Fs, reach: &mut Reach, spot: &Spot) -> Result<(), Error> {
    let named = match reach.spot(spot) {
        Ok(named) => named,
        Err(error) if leads_nowhere(&error) => return Ok(()),
        Err(error) => return Err(error).at("open the folder of", spot).map_err(Error::from),
    };
    fs.remove_all(named.at()).at("remove", spot)?;
    Ok(())
}

/// The new manifest, written whole but not under its name.
struct NewManifest {
    folder: Dir,
    file: File,
}

impl NewManifest {
    /// D1: its lines before its name, which is synced with the homes.
    fn name(self, fs: &Fs, session: &Session) -> Result<(), Error> {
        fs.sync(&self.file, self.folder.path()).at("sync", session.dir.at(b"checkpoint"))?;
        Ok(name_written(fs, &self.folder)?)
    }
}

/// The old manifest and the journal make the new one: lines of what is in, none of what went back.
fn write_manifest(
    fs: &Fs,
    reach: &mut Reach,
    session: &Session,
    journal: &Journal,
    when: When<'_>,
) -> Result<NewManifest, Error> {
    let folder = session.dir.open_below(b"checkpoint").at("open the folder", session.dir.at(b"checkpoint"))?;
    let mut old = Reading::open(&session.dir)?;
    let mut new = Writing::begin(fs, &folder)?;
    let mut next = old.next()?;
    for (i, item) in journal.items.iter().enumerate() {
        while let Some(original) = next.take_if(|original| original.path < item.path) {
            new.original(&original)?;
            next = old.next()?;
        }
        if next.take_if(|original| original.path == item.path).is_some() {
            next = old.next()?;
        }
        if item.side == Side::In {
            let put = match when {
                When::Now(put) => put_print(reach, item, put[i])?,
                When::Recovering => None,
            };
            new.original(&original(item, put))?;
        }
    }
    while let Some(original) = next {
        new.original(&original)?;
        next = old.next()?;
    }
    let mut times = old.folder_times()?;
    for time in journal.head.times.iter().filter(|time| !time.own) {
        let known = times.remove(&time.path);
        let Some(left) = time.new else { continue };
        let (old, committed) = match known {
            _ if journal.head.verb.inward() => (time.original, left),
            Some(known) => (known.old, known.committed),
            None => continue,
        };
        times.insert(time.path.clone(), FolderTime { path: time.path.clone(), old, left, committed });
    }
    let file = new.end(times.values())?;
    write_displaced(fs, reach, session, journal)?;
    Ok(NewManifest { folder, file })
}

/// The line of an item.
fn original(item: &Item, put: Option<Fingerprint>) -> Original {
    let state = item.from.as_ref().map(|from| from.state.clone());
    Original { n: item.n, path: item.path.clone(), state, kept: item.kept.clone(), put }
}

/// What `--force` overwrote has a manifest of its own. Of an inode that stayed it is the metadata.
fn write_displaced(fs: &Fs, reach: &mut Reach, session: &Session, journal: &Journal) -> Result<(), Error> {
    let generation = journal.head.generation + 1;
    let mut displaced = journal.items.iter().filter(|item| item.displaces(journal.head.verb)).peekable();
    if displaced.peek().is_none() {
        return Ok(());
    }
    let below = format!("displaced/{generation}").into_bytes();
    let folder = reach.held(&below).at("open the folder", session.dir.path().display())?;
    let mut rows = Writing::begin(fs, &folder)?;
    for item in displaced {
        let kept = if item.act == Act::SetMeta { Kept::Metadata } else { Kept::Displaced { generation } };
        rows.original(&Original { kept, ..original(item, None) })?;
    }
    let file = rows.end(std::iter::empty())?;
    fs.sync(&file, folder.path()).at("sync", folder.path().display())?; // D1
    name_written(fs, &folder)?;
    Ok(fs.sync_dir(&folder).at("sync", folder.path().display())?) // D2
}

/// The fingerprint of what recant put there, had it the ctime `then`; none where somebody was at work since.
fn put_print(reach: &mut Reach, item: &Item, then: Option<Time>) -> Result<Option<Fingerprint>, Error> {
    let Some(to) = item.to.as_ref().filter(|_| item.act != Act::Stay) else { return Ok(None) };
    let named = match reach.path(&item.path) {
        Err(error) if leads_nowhere(&error) => return Ok(None),
        other => other.at("open the folder of", &item.path)?,
    };
    let Some(stat) = named.at().stat().at("look at", &item.path)? else { return Ok(None) };
    // A folder's ctime changes with its names.
    let ours = look::identity(&stat) == to.print.identity
        && (to.state.is_folder()
            || then == Some(stat.ctime)
                && stat.mtime == to.state.meta.mtime
                && (to.state.size() == stat.size || to.state.digest().is_none()));
    Ok(ours.then(|| look::fingerprint(&stat)))
}

/// `commit --force` takes what it found as the `before`: rollback gives that back. Where the inode stays, its content is
/// that of the `after` too.
fn write_forced_befores(fs: &Fs, session: &Session, journal: &Journal) -> Result<(), Error> {
    if journal.head.verb != Verb::Commit || !journal.items.iter().any(|item| item.forced) {
        return Ok(());
    }
    let mut forced = journal.items.iter().filter(|item| item.forced).peekable();
    let written = session.write_taught(fs, |index, change| {
        if let Some(item) = forced.next_if(|item| item.index as usize == index) {
            (change.before.object, change.before.print) = (item.from.as_ref().map(|from| from.state.clone()), None);
            change.after = item.to.as_ref().map(|to| to.state.clone());
        }
        Ok::<(), Error>(())
    })?;
    Ok(written.put(fs, &session.dir)?)
}

/// Once every change has been on the tree, nothing of a capture is needed in its uppers: what stays there is whiteouts,
/// emptied folders and copies that were no change.
fn forget_uppers(fs: &Fs, session: &Session) -> Result<(), Error> {
    let header = &session.header;
    if header.origin != Origin::Captured || header.counts.ever_in < header.counts.changes {
        return Ok(());
    }
    for below in [&b"held/upper"[..], b"held/work"] {
        let dir = session.dir.open_below(below).at("open the folder", session.dir.path().display())?;
        for name in dir.names().at("list", dir.path().display())? {
            fs.remove_all(dir.at(&name)).at("remove", dir.at(&name))?;
        }
    }
    Ok(())
}

fn note(fs: &Fs, store: &Store, session: &Session, journal: &Journal, when: When<'_>) -> Result<(), Error> {
    let generation = journal.head.generation + 1;
    if when == When::Recovering {
        let (entries, _) = log::read(store)?;
        let noted = |entry: &log::Entry| entry.session == *session.id() && entry.generation == generation;
        if entries.iter().rev().take(16).any(noted) {
            return Ok(());
        }
    }
    let entry = log::Entry {
        time: crate::fs::now(),
        verb: journal.head.verb.word().into(),
        session: session.id().clone(),
        generation,
        result: "done".into(),
        paths: journal.items.len() as u64,
    };
    Ok(log::append(fs, store, &entry)?)
}
