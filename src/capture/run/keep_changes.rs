//! Reads what a run changed, and writes it into its session: as the first changes, or as a further step.

use std::collections::{BTreeMap, BTreeSet};

use super::supervise::EndingInit;
use crate::capture::collect::facts::{Facts, Numbers};
use crate::capture::collect::keep_originals::keep_originals;
use crate::capture::collect::net_with_step::Composed;
use crate::capture::collect::{Collected, clear_work, finish, open_up, read_so_far};
use crate::capture::layers::sealed_uppers::Sealed;
use crate::capture::place::copy_mounted_file;
use crate::capture::place::layout::Route;
use crate::capture::space::uppers_in_memory;
use crate::error::Error;
use crate::fs::{AbsPath, Dir, Fs, Span, mounts};
use crate::session::{
    Change, Changes, Counts, Coverage, Failed, HeaderFacts, How, LastAct, Locked, Net, Place, Run, Session, Sizes, Sort, Step,
    Store, part,
};
use crate::tree::{Danger, State, json};

pub struct CollectedRun {
    /// The number of net changes in the session.
    pub changes: u64,
    /// The number of paths that the run changed.
    pub news: u64,
    /// The number of its changes of each sort.
    pub sorts: BTreeMap<Sort, u64>,
    /// Those that a person should see before all others.
    pub dangers: Vec<(AbsPath, Danger)>,
    pub dropped: u64,
    pub warnings: Vec<String>,
}

/// The steps that a run lies over, and its own number.
#[derive(Clone, Copy)]
pub struct StepsBelow<'a> {
    pub net: &'a Net,
    pub sealed: &'a Sealed,
    pub step: u32,
}

pub fn collect_ran(
    fs: &Fs,
    store: &Store,
    session: &mut Locked,
    record: &mut Run,
    leaving: EndingInit,
    (in_memory, span): (bool, Span),
    (held, over): (&Dir, StepsBelow<'_>),
) -> Result<CollectedRun, Error> {
    let mut collected = finish(fs, leaving, &Facts { span: Some(span), ..facts(held, record, store, session, over)? })?;
    keep_before(fs, session, record, &mut collected)?;
    if in_memory {
        uppers_in_memory::carry(fs, session, held, record, collected.own())?;
    }
    record.note(&collected.warnings);
    record.beside = session.beside()?;
    let (sorts, news) = (Step::count(&collected.own().list), collected.own().list.len() as u64);
    let dangers = dangers(&collected.own().list);
    let (dropped, warnings) = (collected.dropped, collected.warnings.clone());
    keep(fs, session, held, record, &collected, false)?;
    session.forget_beside(fs)?;
    Ok(CollectedRun { changes: session.header.counts.changes, news, sorts, dangers, dropped, warnings })
}

/// Those of the changes that a person should see before all others, what gives rights first.
pub fn dangers<'c>(changes: impl IntoIterator<Item = &'c Change>) -> Vec<(AbsPath, Danger)> {
    let mut found: Vec<_> = changes.into_iter().filter_map(|change| Some((change.path.clone(), change.danger()?))).collect();
    found.sort_by_key(|(_, danger)| Danger::place(Some(*danger)));
    found
}

/// The facts about a step, from its record.
pub fn facts<'a>(
    held: &'a Dir,
    record: &'a Run,
    store: &'a Store,
    session: &Session,
    over: StepsBelow<'a>,
) -> Result<Facts<'a>, Error> {
    let header = &session.header;
    let too_many = |_| crate::session::not_now(session.id(), "it holds more changes than can be numbered");
    // The first step's are numbered from 1; each line since then has a number of its own.
    let lines = if over.step > 1 { header.lines } else { 0 };
    let from = u32::try_from(lines + 1).map_err(too_many)?;
    Ok(Facts {
        held,
        places: &record.places,
        store: &store.path,
        started: record.command.started,
        span: None,
        step: over.step,
        sealed: over.sealed,
        net: over.net,
        numbers: Numbers { changes: if over.step > 1 { header.counts.changes } else { 0 }, from },
        scratch: &record.scratch,
        looks: false,
        in_memory: record.in_memory,
        cut_off: record.may_lack(),
        route: Route::of(record.uid),
    })
}

/// Makes a session that a command was to go on in what it was before: the command was not started, or left nothing.
pub fn forget(fs: &Fs, session: &mut Locked, held: &Dir, record: &Run) -> Result<(), Error> {
    remove_uppers(fs, held, &record.places, session.header.next_step())?;
    clear_work(fs, held, &record.places)?;
    open_up::open_again(fs, held)?;
    session.end_going_on(fs)
}

pub fn remove_uppers(fs: &Fs, held: &Dir, places: &[Place], step: u32) -> Result<(), Error> {
    let uppers = match held.at(b"upper").open_dir() {
        // A power cut took it.
        Err(error) if error.leads_nowhere() => return Ok(()),
        uppers => uppers?,
    };
    for place in places {
        let name = place.upper_name(step);
        fs.remove_all(uppers.at(&name))?;
    }
    Ok(())
}

/// Looks at what a command that runs in a session has changed so far: the session with these changes. Nothing is changed for it, no lock is
/// taken, and a file that is being written is shown as it is.
///
/// # Errors
/// What the session holds cannot be read. What runs in memory cannot be looked at from outside.
pub fn changes_so_far(fs: &Fs, store: &Store, session: Session) -> Result<(Session, Vec<String>), Error> {
    let record = match session.going_on()? {
        Some(run) => Some(run),
        None => session.run()?,
    };
    let Some(run) = record else { return Ok((session, Vec::new())) };
    if run.in_memory {
        return Ok((session, vec!["what the command writes lies in memory, where only the command can see it".into()]));
    }
    let held = part(&session.dir, b"held")?;
    let net = Net::open(&session)?;
    let sealed = Sealed::of(&held, &session, session.header.chain())?;
    let over = StepsBelow { net: &net, sealed: &sealed, step: session.header.next_step() };
    let found = read_so_far(fs, &Facts { looks: true, ..facts(&held, &run, store, &session, over)? })?;
    let changes = session.changes()?.with(found.composed.added.net_lines());
    Ok((session.running(run, changes), found.warnings))
}

/// Keeps what the changed files held before: `capture.keep_before`.
pub fn keep_before(fs: &Fs, session: &Session, record: &Run, collected: &mut Collected) -> Result<(), Error> {
    if record.keeps_nothing_before { Ok(()) } else { keep_originals(fs, session, &mut collected.composed.added) }
}

/// Writes what was collected into the session, as its first changes or as a further step. A run that left nothing leaves no step.
pub fn keep(fs: &Fs, session: &mut Locked, held: &Dir, record: &Run, collected: &Collected, unsynced: bool) -> Result<(), Error> {
    let Composed { added, changes } = &collected.composed;
    if session.header.lines == 0 {
        // A copy that the command left alone would stand for the file in the next steps.
        if record.places.iter().any(|place| place.file.is_some()) && !record.in_memory && !added.own.list.is_empty() {
            clear_unused(fs, held, record, 1, &added.own)?;
        }
        return keep_first(fs, session, record, &added.own, unsynced);
    }
    if added.own.list.is_empty() {
        note_without_step(fs, session, record)?;
        return forget(fs, session, held, record);
    }
    clear_unused(fs, held, record, session.header.next_step(), &added.own)?;
    let step = Step { unsynced, ..Step::of(record, session.header.head(), &added.own, size_of(&added.own)) };
    let facts = header_facts(session, &added.own, *changes)?;
    session.add_step(fs, &Net::open(session)?, (step, added), record, facts)
}

/// All that the header says of what the session holds, with what a step adds.
pub fn header_facts(session: &Session, own: &Changes, changes: u64) -> Result<HeaderFacts, Error> {
    let mut mounts = session.header.mounts.clone();
    mounts.extend(mounts_of(own)?);
    mounts.sort();
    mounts.dedup();
    Ok(HeaderFacts { changes, mounts, freed: 0 })
}

/// Notes what a command did that is no change of a file, though it makes no step: which places it had real, for one.
fn note_without_step(fs: &Fs, session: &Locked, record: &Run) -> Result<(), Error> {
    let Some(earlier) = session.run()? else { return Ok(()) };
    let is_passed = |row: &&Coverage| row.how == How::Passed;
    let known = |row: &Coverage| earlier.coverage.iter().filter(is_passed).any(|known| known.path == row.path);
    if record.coverage.iter().filter(is_passed).all(known) && record.notes.iter().all(|note| earlier.has_noted(note)) {
        return Ok(());
    }
    let told = Run { coverage: record.coverage.clone(), notes: record.notes.clone(), ..earlier };
    // D1: it replaces the one that tells where the session's content lies.
    Ok(fs.replace(session.dir.at(b"run.json"), &json::text(&told))?)
}

/// Removes the step's uppers that hold nothing, and copies of mounted files that it left alone: each upper is one more layer for the next
/// commands. What it wrote below a directory that it renamed or removed stays, as that was said to lie there.
fn clear_unused(fs: &Fs, held: &Dir, record: &Run, step: u32, own: &Changes) -> Result<(), Error> {
    let uppers = held.at(b"upper").open_dir()?;
    let mut used = BTreeSet::new();
    let paths = own.list.iter().map(|change| &change.path).chain(own.directory_times.iter().map(|time| &time.path));
    for path in paths {
        used.extend(Place::innermost(&record.places, path).map(|place| place.k));
    }
    for place in record.places.iter().filter(|place| !used.contains(&place.k)) {
        let name = place.upper_name(step);
        let upper = match uppers.at(&name).open_dir() {
            Err(error) if error.leads_nowhere() => continue,
            upper => upper?,
        };
        let is_needless = match (&place.file, place.path.split()) {
            (Some(file), Some((_, name))) => upper.at(name).stat()?.is_none_or(|stat| copy_mounted_file::is(&file.copy, &stat)),
            _ => upper.is_empty()?,
        };
        if is_needless {
            fs.remove_all(uppers.at(&name))?;
        }
    }
    Ok(())
}

/// The bytes of content of changes.
pub fn size_of(changes: &Changes) -> u64 {
    changes.list.iter().filter_map(|change| change.after.as_ref()).map(State::size).sum()
}

/// Writes the first changes of a session: lines, run.json, and last, durably, the header that makes it pending. The overlays were
/// volatile, so nothing of the uppers is synced yet: one sync of the store's file system makes all of it durable before the header gets its
/// name. The session's directory was opened before the command began, so no error of its writes is missed (docs/ARCHITECTURE.md, D7).
pub fn keep_first(fs: &Fs, session: &mut Locked, record: &Run, changes: &Changes, unsynced: bool) -> Result<(), Error> {
    let count = changes.list.len() as u64;
    if count == 0 {
        return Ok(());
    }
    session.complete(fs)?;
    let lines = count + changes.directory_times.len() as u64;
    let written = session.write_anew(fs, changes, lines)?;
    let mut header = session.header.clone();
    header.uncollected = false;
    header.unsynced = unsynced;
    header.failed = Failed::of(record.command.ending, record.command.service.as_ref());
    header.acted = Some(LastAct { by: record.command.by.clone(), ..session.act(fs)? });
    header.lines = lines;
    header.counts = Counts { changes: count, inside: 0, ever_in: 0 };
    header.mounts = mounts_of(changes)?;
    header.sizes = Sizes { held: size_of(changes), ..Sizes::default() };
    session.save_after_all(fs, written, record, header)
}

/// The mount points of the file systems that hold these paths, without `/`, sorted.
fn mounts_of(changes: &Changes) -> Result<Vec<AbsPath>, Error> {
    let mounts = mounts::read()?;
    let mut points = BTreeSet::new();
    let mut last = None;
    for directory in changes.list.iter().filter_map(|change| change.path.parent()) {
        // Paths in one directory follow each other.
        if last.as_ref() != Some(&directory) {
            points.extend(
                mounts::containing(&mounts, &directory).map(|mount| mount.point.clone()).filter(|point| point.depth() > 0),
            );
            last = Some(directory);
        }
    }
    Ok(points.into_iter().collect())
}
