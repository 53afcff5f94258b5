//! Settle: what came out finds its home, the manifest is written, everything that was only on the way goes; last the
//! journal. Done again by recovery it does the same (docs/ARCHITECTURE.md, phase 6).

use std::collections::BTreeSet;

use super::Error;
use super::apply::Sealed;
use super::job::Verb;
use super::journal::Journal;
use super::plan::Outcome;
use super::prepare::{MANY, Reach};
use super::report::Report;
use super::step::{Act, Spot, Step};
use crate::checkpoint::manifest::{FolderTime, Kept, Manifest, Original};
use crate::error::At;
use crate::fs::Fs;
use crate::fs::dir::{Time, leads_nowhere};
use crate::fs::path::{AbsPath, Shown};
use crate::session::header::Origin;
use crate::session::log;
use crate::session::sides::Side;
use crate::session::store::{Locked, Session, Store, sides_name};
use crate::tree::look;

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
        let mut report = self.report;
        match settle(fs, store, session, &self.journal, When::Now(&self.put)) {
            Ok(notes) => report.notes.extend(notes),
            Err(error) => {
                return Err(Error::Stuck {
                    path: store.journals().at(session.id().as_str().as_bytes()).to_string(),
                    why: format!("cannot tidy up: {error}"),
                    state: format!("the {} is done and durable; the next recant ends the tidying", self.journal.head.verb.word()),
                });
            }
        }
        Ok(report)
    }
}

/// Settles a sealed journal.
pub fn settle(fs: &Fs, store: &Store, session: &Session, journal: &Journal, when: When<'_>) -> Result<Vec<String>, Error> {
    let mut reach = Reach::new(&session.dir)?;
    let mut notes = Vec::new();
    let moving = || journal.steps.iter().filter(|step| step.act != Act::SetMeta);
    for step in moving() {
        bring_home(fs, &mut reach, step, when, &mut notes)?;
    }
    write_manifest(fs, &mut reach, session, journal, when)?;
    write_forced_befores(fs, session, journal)?;
    let spares = moving().filter_map(|step| step.spare.as_ref());
    for spare in spares.chain(journal.outcomes.iter().filter_map(|outcome| outcome.spare.as_ref())) {
        remove(fs, &mut reach, spare)?;
    }
    forget_uppers(fs, session)?;
    let old_sides = sides_name(journal.head.generation);
    fs.unlink_if_there(session.dir.at(&old_sides)).at("remove", session.dir.at(&old_sides))?;
    sync_homes(fs, &mut reach, session, journal)?;
    if let Err(error) = note(fs, store, session, journal, when) {
        notes.push(format!("the log could not be written: {error}"));
    }
    Journal::remove(fs, store, session.id())?;
    Ok(notes)
}

/// The homes are durable, and the temporary names gone, before the journal, which alone knows the way there, goes (D4, D5).
fn sync_homes(fs: &Fs, reach: &mut Reach<'_>, session: &Session, journal: &Journal) -> Result<(), Error> {
    let spots = journal.steps.iter().flat_map(|step| [&step.home, &step.to_at, &step.out, &step.spare]).flatten();
    let spots = spots.chain(journal.outcomes.iter().filter_map(|outcome| outcome.spare.as_ref()));
    let (mut held, mut beside) = (BTreeSet::new(), BTreeSet::new());
    for spot in spots {
        match spot {
            Spot::Session(below) => held.extend([below.rsplitn(2, |b| *b == b'/').nth(1).unwrap_or_default().to_vec()]),
            Spot::Tree(path) => beside.extend(path.parent()),
        }
    }
    if held.len() > MANY {
        fs.sync_fs(&session.dir).at("sync the file system of", session.dir.path().display())?;
    } else {
        held.insert(Vec::new());
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
fn bring_home(fs: &Fs, reach: &mut Reach<'_>, step: &Step, when: When, notes: &mut Vec<String>) -> Result<(), Error> {
    let (Some(from), Some(out)) = (&step.from, &step.out) else { return Ok(()) };
    let Some(home) = step.home.as_ref().filter(|_| !step.copied) else {
        // Copied, or uncovered by policy: only now that nothing is undone any more it is let go (I7).
        if step.copied && written_since(reach, out, from)? {
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

fn written_since(reach: &mut Reach<'_>, out: &Spot, from: &look::Seen) -> Result<bool, Error> {
    let named = reach.spot(out).at("open the folder of", out)?;
    let Some(stat) = named.at().stat().at("look at", out)? else { return Ok(false) };
    Ok(!from.state.is_folder()
        && (stat.mtime != from.state.meta.mtime || from.state.digest().is_some() && stat.size != from.state.size()))
}

fn remove(fs: &Fs, reach: &mut Reach<'_>, spot: &Spot) -> Result<(), Error> {
    let named = match reach.spot(spot) {
        Ok(named) => named,
        Err(error) if leads_nowhere(&error) => return Ok(()),
        Err(error) => return Err(error).at("open the folder of", spot).map_err(Error::from),
    };
    fs.remove_all(named.at()).at("remove", spot)?;
    Ok(())
}

/// The old manifest and the journal make the new one: lines of what is in, none of what went back.
fn write_manifest(fs: &Fs, reach: &mut Reach<'_>, session: &Session, journal: &Journal, when: When<'_>) -> Result<(), Error> {
    let mut manifest = Manifest::read(&session.dir)?;
    let mut displaced = Manifest::default();
    // Of two steps of one path the last counts.
    let puts: std::collections::HashMap<&AbsPath, usize> =
        journal.steps.iter().enumerate().filter(|(_, step)| step.n != 0).map(|(i, step)| (&step.path, i)).collect();
    for outcome in &journal.outcomes {
        let original = Original {
            n: outcome.n,
            path: outcome.path.clone(),
            state: outcome.from.clone(),
            kept: outcome.kept.clone(),
            put: match (puts.get(&outcome.path), when) {
                (Some(i), When::Now(put)) => put_print(reach, &journal.steps[*i], put[*i])?,
                _ => None,
            },
        };
        if let Some(row) = displaced_row(&original, outcome, journal) {
            displaced.originals.insert(row.path.clone(), row);
        }
        if outcome.side == Side::In {
            manifest.originals.insert(original.path.clone(), original);
        } else {
            manifest.originals.remove(&outcome.path);
        }
    }
    for time in journal.head.times.iter().filter(|time| !time.own) {
        let known = manifest.folder_times.remove(&time.path);
        let Some(left) = time.new else { continue };
        let (old, committed) = match known {
            _ if journal.head.verb.inward() => (time.original, left),
            Some(known) => (known.old, known.committed),
            None => continue,
        };
        manifest.folder_times.insert(time.path.clone(), FolderTime { path: time.path.clone(), old, left, committed });
    }
    if !displaced.originals.is_empty() {
        let below = format!("displaced/{}", journal.head.generation + 1).into_bytes();
        let folder = reach.held(&below).at("open the folder", session.dir.path().display())?;
        displaced.write_in(fs, &folder)?;
    }
    Ok(manifest.write(fs, &session.dir)?)
}

/// What `--force` overwrote, as it stands in the manifest of its generation. Of an inode that stayed it is the metadata.
fn displaced_row(original: &Original, outcome: &Outcome, journal: &Journal) -> Option<Original> {
    let kept = match outcome.kept {
        Kept::Metadata => Kept::Metadata,
        _ => Kept::Displaced { generation: journal.head.generation + 1 },
    };
    outcome.displaces(journal.head.verb).then(|| Original { kept, put: None, ..original.clone() })
}

/// The fingerprint of what recant put there, had it the ctime `then`; none where somebody was at work since.
fn put_print(reach: &mut Reach<'_>, step: &Step, then: Option<Time>) -> Result<Option<crate::tree::state::Fingerprint>, Error> {
    let Some(to) = &step.to else { return Ok(None) };
    let named = match reach.path(&step.path) {
        Err(error) if leads_nowhere(&error) => return Ok(None),
        other => other.at("open the folder of", &step.path)?,
    };
    let Some(stat) = named.at().stat().at("look at", &step.path)? else { return Ok(None) };
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
    if journal.head.verb != Verb::Commit || !journal.outcomes.iter().any(|outcome| outcome.forced) {
        return Ok(());
    }
    let mut changes = session.changes()?;
    for outcome in journal.outcomes.iter().filter(|outcome| outcome.forced) {
        let Some(change) = changes.list.get_mut(outcome.index) else { continue };
        (change.before.object, change.before.print) = (outcome.from.clone(), None);
        change.after = outcome.to.clone();
    }
    Ok(session.rewrite(fs, &changes, session.header.lines)?)
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
        paths: journal.outcomes.len() as u64,
    };
    Ok(log::append(fs, store, &entry)?)
}
