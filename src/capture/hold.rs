//! A run held in a session. It is recorded before the command starts, so that what a killed recant leaves is found. It is collected when
//! nothing of the run is left.
//!
//! ```text
//!            begin                    run, collect                    keep
//! (nothing) -------> uncollected ----------------------> collected ---------> pending
//!                        |  recant killed: collect_ended      |  no change
//!                        +----------------------------------- +---------> (gone)
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use super::collect::facts::Facts;
use super::collect::modes::{self, Closed};
use super::collect::{clear_left_alone, clear_scratch, clear_work, collect, finish};
use super::command::{Command, Exit};
use super::error::{not_started, uncollected};
use super::layout::Route;
use super::memory::{self, Memory};
use super::plan::{Laid, Plan};
use super::refused;
use super::run::{Event, Leaving, run};
use crate::error::{At, Error};
use crate::fs::dir::Dir;
use crate::fs::interrupt::{self, Asked};
use crate::fs::mounts;
use crate::fs::path::AbsPath;
use crate::fs::{Fs, Span};
use crate::session::change::{Changes, Sort};
use crate::session::header::{Counts, Header, Sizes};
use crate::session::opened::{Locked, part};
use crate::session::run::{Arg, Coverage, Ending, How, Run, boot_id};
use crate::session::store::Store;
use crate::tree::state::State;

/// A run that is over and collected.
#[derive(Debug)]
pub struct Held {
    /// How the command ended.
    pub exit: Exit,
    /// The number of changes in the session; 0 if the run left nothing.
    pub changes: u64,
    /// The number of paths that changed against what the session held before.
    pub news: u64,
    /// The number of changes of each sort.
    pub sorts: BTreeMap<Sort, u64>,
    /// The coverage table: each place and what became of changes there.
    pub coverage: Vec<Coverage>,
    /// Facts that no change can tell, one line each.
    pub warnings: Vec<String>,
    /// The accesses that the run may have refused to a failed command, one line each.
    pub refused: Vec<String>,
    /// The number of changes in scratch places that were dropped.
    pub dropped: u64,
    /// The bytes that the command wrote, where they exceed its limit.
    pub too_much: Option<u64>,
}

/// Runs a command in a session that was just begun, or continues a pending one that came from a run. An error means that the command was
/// not started. The caller then removes a session that was just begun; a continued one is as it was.
pub fn hold(
    fs: &Fs,
    store: &Store,
    session: &mut Locked,
    plan: Plan,
    command: &Command,
    cwd: &AbsPath,
    hear: &mut dyn FnMut(Event),
) -> Result<Held, Error> {
    held(fs, store, session, plan, command, cwd, hear).map_err(not_started)
}

fn held(
    fs: &Fs,
    store: &Store,
    session: &mut Locked,
    plan: Plan,
    command: &Command,
    cwd: &AbsPath,
    hear: &mut dyn FnMut(Event),
) -> Result<Held, Error> {
    let held = part(&session.dir, b"held")?;
    let (earlier, before) = (session.run()?, session.header.clone());
    let known = earlier.as_ref().map_or(&[][..], |run| &run.places);
    plan.refuse_unseen(known, &session.changes_as_written()?)?;
    let memory = memory_for(&held, plan.route(), command, session.id().as_str(), hear)?;
    let laid = plan.lay_out(fs, memory.as_ref().map_or(&held, |memory| &memory.root), known)?;
    let held = match &memory {
        Some(memory) => memory.root.open_below(b"").at("open", "uppers in memory")?,
        None => held,
    };
    let laid = laid.in_memory(memory);
    let mut coverage = laid.coverage().to_vec();
    let mut record = record_of(command, cwd, &laid, earlier.as_ref());

    let mut closed = Vec::new();
    let ended = begin(fs, session, &record, start_of(&command.argv)).and_then(|()| {
        // U2: after the record is written, so that a session cut off from here on is collected anew.
        if earlier.is_some() {
            closed = modes::give_back(fs, &held)?;
        }
        run(&laid, command, &mut |event| {
            if let Event::Uncovered(path, why) = &event {
                let rows = coverage.iter_mut().filter(|row| row.path == *path);
                rows.for_each(|row| (row.how, row.why) = (How::Uncovered, Some(why.clone())));
            }
            hear(event);
        })
    });
    let ended = match (ended, &earlier) {
        (Ok(ended), _) => ended,
        (Err(error), None) => return Err(error),
        (Err(error), Some(earlier)) => {
            let back = Run { places: record.places, ..earlier.clone() };
            go_back(fs, session, &held, &back, before, &closed)?;
            return Err(error);
        }
    };
    record.coverage = coverage.clone();
    record.keep_of(earlier.as_ref());
    record.ending = Some(match ended.exit {
        Exit::Code(code) => Ending::Exited(code.into()),
        Exit::Signal(signal) => Ending::Signaled(signal),
    });
    record.started = ended.span.start();
    let refused = match ended.exit {
        Exit::Code(0) | Exit::Signal(_) => Vec::new(),
        Exit::Code(_) => refused::reasons(laid.route(), laid.ids(), cwd, &command.argv, &coverage),
    };
    // A request to end must not leave the command's changes in doubt, or lose them with the memory that they lie in.
    let _noting = interrupt::note(Asked::GoesOn);
    record.note(&ended.outputs);
    let collected = collect_ran(fs, store, session, &mut record, ended.leaving, (laid.memory.is_some(), ended.span), &held);
    match collected {
        Ok(Ran { news, sorts, dropped, mut warnings }) => {
            warnings.extend(ended.outputs);
            let changes = sorts.values().sum();
            Ok(Held { exit: ended.exit, changes, news, sorts, coverage, warnings, refused, dropped, too_much: ended.too_much })
        }
        // From here on the command has run: whatever fails, the session stays, and the next verb that names it collects it.
        Err(why) => Err(uncollected(session.id(), Some(ended.exit), laid.memory.is_some(), &why)),
    }
}

/// The record of a run that begins.
fn record_of(command: &Command, cwd: &AbsPath, laid: &Laid, earlier: Option<&Run>) -> Run {
    let mut record = Run {
        argv: command.argv.iter().map(|arg| Arg(arg.as_bytes().to_vec())).collect(),
        cwd: cwd.clone(),
        uid: rustix::process::geteuid().as_raw(),
        started: laid.started(),
        first: earlier.map(Run::first),
        ending: None,
        boot: boot_id(),
        places: merged(earlier.map_or(&[], |run| &run.places), laid.places()),
        coverage: laid.coverage().to_vec(),
        notes: Vec::new(),
        hides: earlier.map(|run| run.hides.clone()).unwrap_or_default(),
        scratch: laid.scratch().to_vec(),
        in_memory: laid.memory.is_some(),
        extra: Default::default(),
    };
    record.keep_of(earlier);
    record
}

/// Restores the session as the run before left it, since the command was not started. What the set-up made stays recorded, as a further run
/// finds it there: uppers, and fresh copies of mounted files.
fn go_back(fs: &Fs, session: &mut Locked, held: &Dir, back: &Run, before: Header, closed: &[Closed]) -> Result<(), Error> {
    modes::open_again(fs, held, closed)?;
    clear_work(fs, held, &back.places)?;
    if !closed.is_empty() {
        // No header may make the session pending while its content is closed (U2, D7).
        fs.sync_fs(&session.dir)?;
    }
    session.keep_run(fs, back, before)
}

/// Notes that a command runs in the session. What the session holds already is durable, so the files replaced here must be too (D1).
fn begin(fs: &Fs, session: &mut Locked, record: &Run, command: String) -> Result<(), Error> {
    let mut header = session.header.clone();
    (header.uncollected, header.command) = (true, Some(command));
    if session.header.lines > 0 {
        return session.keep_run(fs, record, header);
    }
    let is_noted = session.header.uncollected && session.header.command == header.command;
    session.note_run(fs, record)?;
    if is_noted { Ok(()) } else { session.save_later(fs, header) }
}

/// Makes a tmpfs for the uppers if the store's file system can hold none. `None` also where a tmpfs can't be had: the set-up reports that.
fn memory_for(
    held: &Dir,
    route: Route,
    command: &Command,
    tag: &str,
    hear: &mut dyn FnMut(Event),
) -> Result<Option<Memory>, Error> {
    if route == Route::User || !memory::is_needed(held)? {
        return Ok(None);
    }
    let limit = memory::limit(command.max_size);
    hear(Event::InMemory(limit));
    Ok(Some(memory::make(limit, tag)?))
}

/// The changes collected from a run that has ended.
struct Ran {
    /// The number of paths that changed against what was held before.
    news: u64,
    /// The number of changes of each sort.
    sorts: BTreeMap<Sort, u64>,
    /// The number of changes that were dropped.
    dropped: u64,
    warnings: Vec<String>,
}

fn collect_ran(
    fs: &Fs,
    store: &Store,
    session: &mut Locked,
    record: &mut Run,
    leaving: Leaving,
    (in_memory, span): (bool, Span),
    held: &Dir,
) -> Result<Ran, Error> {
    let known = session.changes_as_written()?;
    let mut collected = finish(fs, leaving, &Facts { span: Some(span), ..facts(held, record, store, &known) })?;
    if in_memory {
        memory::carry(fs, session, held, record, &collected.changes)?;
    }
    record.note(&collected.warnings);
    record.hides = std::mem::take(&mut collected.hides);
    let mut sorts = BTreeMap::new();
    collected.changes.list.iter().for_each(|change| *sorts.entry(change.sort()).or_insert(0) += 1);
    let news = known.differing(&collected.changes);
    keep(fs, session, record, &collected.changes, false)?;
    Ok(Ran { news, sorts, dropped: collected.dropped, warnings: collected.warnings })
}

fn facts<'a>(held: &'a Dir, record: &'a Run, store: &'a Store, known: &'a Changes) -> Facts<'a> {
    Facts {
        held,
        places: &record.places,
        store: &store.path,
        started: record.started,
        first: record.first(),
        span: None,
        known,
        hides: &record.hides,
        scratch: &record.scratch,
        in_memory: record.in_memory,
        cut_off: record.may_lack(),
        route: Route::of(record.uid),
    }
}

/// Collects the run of a session whose recant was killed; the caller holds its lock, so nothing of the run is left. A run of another boot
/// may have lost content: the session is marked. Returns the number of changes.
pub fn collect_ended(fs: &Fs, store: &Store, session: &mut Locked) -> Result<u64, Error> {
    let collected = collect_left(fs, store, session);
    collected.map_err(|why| uncollected(session.id(), None, false, &why))
}

fn collect_left(fs: &Fs, store: &Store, session: &mut Locked) -> Result<u64, Error> {
    let held = part(&session.dir, b"held")?;
    let Some(mut record) = session.run()? else {
        // recant was killed before the command could start; or the power failed, and the record was lost.
        let at = session.dir.at(b"run.json");
        if at.stat()?.is_some() {
            fs.rename_over(at, session.dir.at(LOST))?;
        }
        // Set aside now, or before this was cut off last time.
        let is_lost = session.dir.at(LOST).stat()?.is_some();
        return keep_nothing(fs, session, is_lost);
    };
    if record.was_carried() {
        return keep_carried(fs, session, &record);
    }
    let unsynced = record.may_lack();
    let known = session.changes_as_written()?;
    let facts = facts(&held, &record, store, &known);
    let mut collected = collect(&facts, fs)?;
    clear_scratch(fs, &facts, &collected)?;
    clear_left_alone(fs, &facts, &collected)?;
    clear_work(fs, &held, &record.places)?;
    record.note(&collected.warnings);
    record.hides = std::mem::take(&mut collected.hides);
    match keep(fs, session, &record, &collected.changes, unsynced)? {
        0 if session.header.uncollected => keep_nothing(fs, session, unsynced),
        changes => Ok(changes),
    }
}

/// Keeps a run in memory whose recant, or machine, was stopped right before the header got its name: the session has what the uppers held;
/// the uppers are gone.
fn keep_carried(fs: &Fs, session: &mut Locked, record: &Run) -> Result<u64, Error> {
    let at = session.dir.at(b"changes.jsonl");
    if at.stat()?.is_none() {
        let why = "it is missing; the content of the run is in held/objects";
        return Err(crate::session::error::damaged(at, why));
    }
    let changes = session.changes_as_written()?;
    keep(fs, session, record, &changes, false)
}

/// The name under which an unreadable record is set aside.
const LOST: &[u8] = b"run.json.lost";

fn keep_nothing(fs: &Fs, session: &mut Locked, unsynced: bool) -> Result<u64, Error> {
    session.complete(fs)?;
    let mut header = session.header.clone();
    header.uncollected = false;
    header.unsynced |= unsynced;
    session.save(fs, header)?;
    Ok(0)
}

/// Writes what was collected into the session: lines, run.json, and last, durably, the header that makes it pending. The overlays were
/// volatile, so nothing of the uppers is synced yet: one sync of the store's file system makes all of it durable before the header gets its
/// name. The session's directory was opened before the command began, so no error of its writes is missed (docs/ARCHITECTURE.md, D7).
fn keep(fs: &Fs, session: &mut Locked, record: &Run, changes: &Changes, unsynced: bool) -> Result<u64, Error> {
    let count = changes.list.len() as u64;
    if count == 0 && session.header.lines == 0 {
        return Ok(0);
    }
    session.complete(fs)?;
    let lines = count + changes.directory_times.len() as u64;
    let written = session.write_anew(fs, changes, lines)?;
    let mut header = session.header.clone();
    header.uncollected = false;
    header.unsynced = unsynced;
    header.lines = lines;
    header.counts = Counts { changes: count, inside: 0, ever_in: 0 };
    header.mark = None;
    header.mounts = mounts_of(changes)?;
    let held = changes.list.iter().filter_map(|change| change.after.as_ref()).map(State::size).sum();
    header.sizes = Sizes { held, ..Sizes::default() };
    session.save_after_all(fs, written, record, header)?;
    Ok(count)
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

/// The places of this run, and those of earlier runs of the session, whose uppers stay.
fn merged(known: &[crate::session::run::Place], now: Vec<crate::session::run::Place>) -> Vec<crate::session::run::Place> {
    let mut places = now;
    places.extend(known.iter().filter(|old| !places.iter().any(|place| place.k == old.k)).cloned().collect::<Vec<_>>());
    places
}

/// The start of the command line, for listings: at most 200 characters, one line.
pub fn start_of(argv: &[OsString]) -> String {
    let words: Vec<String> = argv.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let line = words.join(" ");
    line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect()
}
