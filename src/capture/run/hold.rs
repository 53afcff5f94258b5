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
use std::time::Instant;

use super::command::Command;
use super::limit::Meter;
use super::start::run;
use super::start::{Ended, Event, Leaving};
use crate::capture::collect::Collected;
use crate::capture::collect::clear;
use crate::capture::collect::clear_work;
use crate::capture::collect::collect;
use crate::capture::collect::compose::Composed;
use crate::capture::collect::facts::{Facts, Numbers};
use crate::capture::collect::finish;
use crate::capture::collect::modes;
use crate::capture::collect::originals::keep_originals;
use crate::capture::collect::read_so_far;
use crate::capture::error::not_started;
use crate::capture::error::uncollected;
use crate::capture::layers::blocks::leave_out;
use crate::capture::layers::blocks::merge_many;
use crate::capture::layers::sealed::Sealed;
use crate::capture::place::layout::Route;
use crate::capture::place::layout::directory;
use crate::capture::place::mounted_file;
use crate::capture::place::plan::{Laid, Plan};
use crate::capture::space::memory;
use crate::capture::space::memory::Memory;
use crate::error::{At, Error, Kind};
use crate::fs::dir::Dir;
use crate::fs::interrupt::{self, Asked};
use crate::fs::mounts;
use crate::fs::path::AbsPath;
use crate::fs::{Fs, Span};
use crate::session::act::Acted;
use crate::session::by::By;
use crate::session::change::{Change, Changes, Sort};
use crate::session::header::{Counts, Header, Sizes};
use crate::session::net::Net;
use crate::session::opened::{Locked, Session, part};
use crate::session::run::{Arg, Coverage, Ending, Failed, How, Place, Run, boot_id};
use crate::session::steps::{Base, Step, Told};
use crate::session::store::Store;
use crate::tree::json;
use crate::tree::state::State;

/// A run that is over and collected.
#[derive(Debug)]
pub struct Held {
    pub ending: Ending,
    /// The number of net changes in the session; 0 if it holds nothing.
    pub changes: u64,
    /// The step that the run became; `None` if it changed nothing.
    pub step: Option<u32>,
    /// The number of paths that the run changed.
    pub news: u64,
    /// The number of its changes of each sort.
    pub sorts: BTreeMap<Sort, u64>,
    /// The coverage table: each place and what became of changes there.
    pub coverage: Vec<Coverage>,
    /// Facts that no change can tell, one line each.
    pub warnings: Vec<String>,
    /// The number of changes in scratch places that were dropped.
    pub dropped: u64,
    /// The bytes that the command wrote, where they exceed its limit.
    pub too_much: Option<u64>,
}

impl Held {
    /// Counts again what the session holds: some of it has been committed by itself.
    ///
    /// # Errors
    /// The session cannot be read.
    pub fn recount(&mut self, session: &Session) -> Result<(), Error> {
        let changes = session.changes()?;
        let sides = session.sides(changes.list.len())?;
        self.sorts = BTreeMap::new();
        let held = changes.list.iter().zip(&sides).filter(|(_, side)| !side.is_in());
        held.for_each(|(change, _)| *self.sorts.entry(change.sort()).or_default() += 1);
        self.changes = self.sorts.values().sum();
        Ok(())
    }
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
    let (mut plan, mut left) = (plan, AGAIN);
    loop {
        match held(fs, store, session, plan, command, cwd, hear).map_err(not_started)? {
            Tried::Ran(held) => return Ok(held),
            Tried::Outdated(_, why) if left == 0 => return Err(not_started(why)),
            Tried::Outdated(anew, _) => (plan, left) = (*anew, left - 1),
        }
    }
}

/// The number of times that a run is planned anew, as the mounts are others than those that it was planned for.
const AGAIN: usize = 4;

/// A try to start a command.
enum Tried {
    Ran(Held),
    /// It was not started, and why; something was mounted or unmounted since it was planned, which the new plan knows. An ordinary user's
    /// overlay cannot be made of a directory that something was mounted in (EINVAL).
    Outdated(Box<Plan>, Error),
}

fn held(
    fs: &Fs,
    store: &Store,
    session: &mut Locked,
    plan: Plan,
    command: &Command,
    cwd: &AbsPath,
    hear: &mut dyn FnMut(Event),
) -> Result<Tried, Error> {
    let held = part(&session.dir, b"held")?;
    let earlier = if session.header.lines > 0 { session.run()? } else { None };
    let known = earlier.as_ref().map_or(&[][..], |run| &run.places);
    let net = Net::open(session)?;
    plan.refuse_unseen(known, &net)?;
    let head = session.header.head();
    let has_left = session.header.steps.as_ref().is_some_and(|steps| head < steps.left);
    let joined = if command.joins && head > 0 && !has_left && !is_chosen(session, head)? { Some(head) } else { None };
    let base = joined.map(|head| below(session, head)).transpose()?;
    let chain = base.as_ref().map_or_else(|| session.header.chain(), |base| base.chain.clone());
    let (step, mut sealed) = (session.header.next_step(), Sealed::of(&held, session, chain)?);
    leave_out(fs, &held, (plan.route(), known), &mut sealed, session)?;
    merge_many(fs, &held, (plan.route(), known), &mut sealed, || session.steps())?;
    let memory = memory_for(&held, plan.route(), command, session.id().as_str(), hear)?;
    // Left by a choice that was cut off: a place that this command has not would keep it.
    if session.header.lines > 0 {
        remove_uppers(fs, &held, known, step)?;
    }
    modes::forget(fs, &held, &known.iter().map(|place| place.upper_name(step)).collect::<Vec<_>>())?;
    let laid = plan.lay_out(fs, memory.as_ref().map_or(&held, |memory| &memory.root), known, (step, &sealed, joined))?;
    let held = match &memory {
        Some(memory) => memory.root.open_below(b"").at("open", "uppers in memory")?,
        None => held,
    };
    let laid = laid.in_memory(memory);
    let mut coverage = laid.coverage().to_vec();
    let mut record = record_of(command, (cwd, store.by.as_ref()), &laid, earlier.as_ref());
    record.on = base.as_ref().map(|base| base.chain.last().copied().unwrap_or(0));

    let began = Instant::now();
    let ended = match start(fs, session, (&record, &laid, &held), command, &mut coverage, hear) {
        Ok(ended) => ended,
        Err(error) => {
            if earlier.is_some() {
                forget(fs, session, &held, &record)?;
            }
            let anew = if error.kind() == Kind::NoCapture { laid.plan.anew()? } else { None };
            return match anew {
                Some(plan) => Ok(Tried::Outdated(Box::new(plan), error)),
                None => Err(error),
            };
        }
    };
    record.took = u64::try_from(began.elapsed().as_nanos()).ok();
    record.coverage = coverage.clone();
    record.keep_of(earlier.as_ref());
    let ending = ended.exit;
    record.ending = Some(ending);
    record.started = ended.span.start();
    // A request to end must not leave the command's changes in doubt, or lose them with the memory that they lie in.
    let _noting = interrupt::note(Asked::GoesOn);
    record.note(&ended.outputs);
    let net_below = base.as_ref().map(|base| Net::of(&base.changes));
    let below = Over { net: net_below.as_ref().unwrap_or(&net), sealed: &sealed, step, base: base.as_ref() };
    let collected =
        collect_ran(fs, store, session, &mut record, ended.leaving, (laid.memory.is_some(), ended.span), (&held, below));
    match collected {
        Ok(Ran { changes, news, sorts, dropped, mut warnings }) => {
            warnings.extend(ended.outputs);
            let step = Some(step).filter(|step| session.header.head() == *step);
            // A renamed directory's content comes with the collecting.
            let too_much = ended.too_much.or_else(|| ended.meter.as_ref().and_then(Meter::over));
            Ok(Tried::Ran(Held { ending, changes, step, news, sorts, coverage, warnings, dropped, too_much }))
        }
        // From here on the command has run: whatever fails, the session stays, and the next verb that names it collects it.
        Err(why) => Err(uncollected(session.id(), Some(ended.exit), laid.memory.is_some(), &why)),
    }
}

/// The step below the one at the head.
fn below(session: &Session, head: u32) -> Result<Base, Error> {
    let on = session.steps()?.get(&session.header, head)?.on;
    Base::at(session, on)
}

fn record_of(command: &Command, (cwd, by): (&AbsPath, Option<&By>), laid: &Laid, earlier: Option<&Run>) -> Run {
    let mut record = Run {
        argv: command.argv.iter().map(|arg| Arg(arg.as_bytes().to_vec())).collect(),
        cwd: cwd.clone(),
        uid: rustix::process::geteuid().as_raw(),
        by: by.cloned(),
        started: laid.started(),
        first: earlier.map(Run::first),
        ending: None,
        took: None,
        on: None,
        boot: boot_id(),
        places: merged(earlier.map_or(&[], |run| &run.places), laid.places()),
        coverage: laid.coverage().to_vec(),
        notes: Vec::new(),
        scratch: laid.scratch().to_vec(),
        keeps_nothing_before: !command.keeps_before,
        in_memory: laid.memory.is_some(),
    };
    record.keep_of(earlier);
    record
}

/// Notes that a command runs in the session, and runs it. What turns out not to be covered becomes so in `coverage`.
fn start(
    fs: &Fs,
    session: &mut Locked,
    (record, laid, held): (&Run, &Laid, &Dir),
    command: &Command,
    coverage: &mut [Coverage],
    hear: &mut dyn FnMut(Event),
) -> Result<Ended, Error> {
    begin(fs, session, record, start_of(&command.argv))?;
    // H9: after the record is written, so that a session cut off from here on is collected.
    if record.first.is_some() {
        modes::give_back(fs, held)?;
    }
    run(laid, command, &mut |event| {
        if let Event::Uncovered(path, why) = &event {
            let rows = coverage.iter_mut().filter(|row| row.path == *path);
            rows.for_each(|row| (row.how, row.why) = (How::Uncovered, Some(why.clone())));
        }
        hear(event);
    })
}

/// Makes a session that a command was to go on in what it was before: the command was not started, or left nothing.
fn forget(fs: &Fs, session: &mut Locked, held: &Dir, record: &Run) -> Result<(), Error> {
    remove_uppers(fs, held, &record.places, session.header.next_step())?;
    clear_work(fs, held, &record.places)?;
    modes::open_again(fs, held)?;
    session.end_going_on(fs)
}

/// Removes a step's uppers, if it has any.
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

/// Notes that a command runs in the session.
fn begin(fs: &Fs, session: &mut Locked, record: &Run, command: String) -> Result<(), Error> {
    if session.header.lines > 0 {
        return session.note_going_on(fs, record);
    }
    let noted = &session.header;
    let is_noted = noted.uncollected && noted.command.as_ref() == Some(&command) && noted.by == record.by;
    let header = Header { uncollected: true, command: Some(command), by: record.by.clone(), ..session.header.clone() };
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
    /// The number of net changes in the session.
    changes: u64,
    /// The number of paths that the run changed.
    news: u64,
    /// The number of its changes of each sort.
    sorts: BTreeMap<Sort, u64>,
    /// The number of changes that were dropped.
    dropped: u64,
    warnings: Vec<String>,
}

/// The steps that a run lies over, and its own number.
#[derive(Clone, Copy)]
pub struct Over<'a> {
    pub net: &'a Net,
    pub sealed: &'a Sealed,
    pub step: u32,
    /// The step that it stands on, where that is not the one at the head.
    pub base: Option<&'a Base>,
}

fn collect_ran(
    fs: &Fs,
    store: &Store,
    session: &mut Locked,
    record: &mut Run,
    leaving: Leaving,
    (in_memory, span): (bool, Span),
    (held, over): (&Dir, Over<'_>),
) -> Result<Ran, Error> {
    let mut collected = finish(fs, leaving, &Facts { span: Some(span), ..facts(held, record, store, session, over)? })?;
    keep_before(fs, session, record, &mut collected)?;
    if in_memory {
        memory::carry(fs, session, held, record, collected.own())?;
    }
    record.note(&collected.warnings);
    let (sorts, news) = (Step::count(&collected.own().list), collected.own().list.len() as u64);
    let (dropped, warnings) = (collected.dropped, collected.warnings.clone());
    keep(fs, session, held, (record, over.base), &collected, false)?;
    Ok(Ran { changes: session.header.counts.changes, news, sorts, dropped, warnings })
}

/// The facts about a step, from its record.
pub fn facts<'a>(
    held: &'a Dir,
    record: &'a Run,
    store: &'a Store,
    session: &Session,
    over: Over<'a>,
) -> Result<Facts<'a>, Error> {
    let header = &session.header;
    let too_many = |_| crate::session::error::not_now(session.id(), "it holds more changes than can be numbered");
    // The first step's are numbered from 1; each line since then has a number of its own.
    let lines = if over.step > 1 { header.lines } else { 0 };
    let count = over.base.map_or(header.counts.changes, |base| base.changes.list.len() as u64);
    let from = u32::try_from(lines + 1).map_err(too_many)?;
    Ok(Facts {
        held,
        places: &record.places,
        store: &store.path,
        started: record.started,
        span: None,
        step: over.step,
        sealed: over.sealed,
        net: over.net,
        numbers: Numbers { changes: if over.step > 1 { count } else { 0 }, from },
        scratch: &record.scratch,
        looks: false,
        in_memory: record.in_memory,
        cut_off: record.may_lack(),
        route: Route::of(record.uid),
    })
}

/// Looks at what a command that runs in a session has changed so far: the session with these changes. Nothing is changed for it, no lock is
/// taken, and a file that is being written is shown as it is.
///
/// # Errors
/// What the session holds cannot be read. What runs in memory cannot be looked at from outside.
pub fn look(fs: &Fs, store: &Store, session: Session) -> Result<(Session, Vec<String>), Error> {
    let record = match session.going_on()? {
        Some(run) => Some(run),
        None => session.run()?,
    };
    let Some(run) = record else { return Ok((session, Vec::new())) };
    if run.in_memory {
        return Ok((session, vec!["what the command writes lies in memory, where only the command can see it".into()]));
    }
    let held = part(&session.dir, b"held")?;
    let base = run.on.map(|on| Base::at(&session, on)).transpose()?;
    let net = base.as_ref().map_or_else(|| Net::open(&session), |base| Ok(Net::of(&base.changes)))?;
    let sealed = Sealed::of(&held, &session, base.as_ref().map_or_else(|| session.header.chain(), |base| base.chain.clone()))?;
    let over = Over { net: &net, sealed: &sealed, step: session.header.next_step(), base: base.as_ref() };
    let found = read_so_far(fs, &Facts { looks: true, ..facts(&held, &run, store, &session, over)? })?;
    let below = base.map_or_else(|| session.changes(), |base| Ok(base.changes))?;
    let changes = below.with(found.composed.added.net_lines());
    Ok((session.running(run, changes), found.warnings))
}

/// True for a step that is a person's choice: what it says of the net changes is in no upper that a command could go on in.
fn is_chosen(session: &Session, n: u32) -> Result<bool, Error> {
    Ok(session.steps()?.get(&session.header, n).is_ok_and(|step| step.chosen))
}

/// Collects the run of a session whose recant was killed; the caller holds its lock, so nothing of the run is left. A run of another boot
/// may have lost content: the session is marked. Returns the number of changes.
pub fn collect_ended(fs: &Fs, store: &Store, session: &mut Locked) -> Result<u64, Error> {
    let collected = collect_left(fs, store, session);
    collected.map_err(|why| uncollected(session.id(), None, false, &why))
}

fn collect_left(fs: &Fs, store: &Store, session: &mut Locked) -> Result<u64, Error> {
    let held = part(&session.dir, b"held")?;
    if session.is_going_on()? {
        return collect_going_on(fs, store, session, &held);
    }
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
    // The power may have taken the directory with all that was in it.
    directory(fs, held.at(b"upper"))?;
    let unsynced = record.may_lack();
    let collected = collected(fs, store, session, &held, (&mut record, &Net::empty(), &Sealed::default(), None))?;
    let own = collected.composed.added.own;
    keep_first(fs, session, &record, &own, unsynced)?;
    if session.header.uncollected { keep_nothing(fs, session, unsynced) } else { Ok(session.header.counts.changes) }
}

/// Collects a command that went on in the session. If a power cut took its record, the session stands at its last step.
fn collect_going_on(fs: &Fs, store: &Store, session: &mut Locked, held: &Dir) -> Result<u64, Error> {
    match session.going_on()? {
        Some(mut record) => {
            let earlier = session.run()?;
            record.keep_of(earlier.as_ref());
            collect_into(fs, store, session, held, &mut record)?;
        }
        None => {
            if let Some(record) = session.run()? {
                forget(fs, session, held, &record)?;
            }
        }
    }
    session.end_going_on(fs)?;
    Ok(session.header.counts.changes)
}

fn collect_into(fs: &Fs, store: &Store, session: &mut Locked, held: &Dir, record: &mut Run) -> Result<(), Error> {
    let unsynced = record.may_lack();
    let base = record.on.map(|on| Base::at(session, on)).transpose()?;
    let net = base.as_ref().map_or_else(|| Net::open(session), |base| Ok(Net::of(&base.changes)))?;
    let chain = base.as_ref().map_or_else(|| session.header.chain(), |base| base.chain.clone());
    let mut sealed = Sealed::of(held, session, chain)?;
    // Another boot's blocks are gone.
    leave_out(fs, held, (Route::of(record.uid), &record.places), &mut sealed, session)?;
    let collected = collected(fs, store, session, held, (record, &net, &sealed, base.as_ref()))?;
    keep(fs, session, held, (record, base.as_ref()), &collected, unsynced)
}

/// Collects what a killed recant left as a step over others.
fn collected(
    fs: &Fs,
    store: &Store,
    session: &Session,
    held: &Dir,
    (record, net, sealed, base): (&mut Run, &Net, &Sealed, Option<&Base>),
) -> Result<Collected, Error> {
    let mut collected = {
        let step = if session.is_going_on()? { session.header.next_step() } else { 1 };
        let facts = facts(held, record, store, session, Over { net, sealed, step, base })?;
        let collected = collect(&facts, fs)?;
        clear(fs, &facts, &collected)?;
        collected
    };
    keep_before(fs, session, record, &mut collected)?;
    record.note(&collected.warnings);
    Ok(collected)
}

/// Keeps what the changed files held before: `capture.keep_before`.
fn keep_before(fs: &Fs, session: &Session, record: &Run, collected: &mut Collected) -> Result<(), Error> {
    if record.keeps_nothing_before { Ok(()) } else { keep_originals(fs, session, &mut collected.composed.added) }
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
    keep_first(fs, session, record, &changes, false)?;
    Ok(changes.list.len() as u64)
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

/// Writes what was collected into the session, as its first changes or as a further step. A run that left nothing leaves no step.
fn keep(
    fs: &Fs,
    session: &mut Locked,
    held: &Dir,
    (record, base): (&Run, Option<&Base>),
    collected: &Collected,
    unsynced: bool,
) -> Result<(), Error> {
    let Composed { added, changes } = &collected.composed;
    if session.header.lines == 0 {
        // A copy that the command left alone would stand for the file in the next steps.
        if record.places.iter().any(|place| place.file.is_some()) && !record.in_memory && !added.own.list.is_empty() {
            clear_unused(fs, held, record, 1, &added.own)?;
        }
        return keep_first(fs, session, record, &added.own, unsynced);
    }
    if base.is_none() && added.own.list.is_empty() || base.is_some() && is_as_head(session, &added.own)? {
        note_without_step(fs, session, record)?;
        return forget(fs, session, held, record);
    }
    clear_unused(fs, held, record, session.header.next_step(), &added.own)?;
    let on = base.map_or(session.header.head(), |base| base.chain.last().copied().unwrap_or(0));
    let step = Step { unsynced, ..Step::of(record, on, &added.own, size_of(&added.own)) };
    let told = told(session, &added.own, *changes)?;
    session.add_step(fs, &Net::open(session)?, (step, added), record, (told, base))
}

/// All that the header says of what the session holds, with what a step adds.
pub fn told(session: &Session, own: &Changes, changes: u64) -> Result<Told, Error> {
    let mut mounts = session.header.mounts.clone();
    mounts.extend(mounts_of(own)?);
    mounts.sort();
    mounts.dedup();
    Ok(Told { changes, mounts, freed: 0 })
}

/// Tells whether a command that went on in the upper of the head's step left that as it was.
fn is_as_head(session: &Session, own: &Changes) -> Result<bool, Error> {
    let head = session.steps()?.own(session, session.header.head())?;
    let same = |(a, b): (&Change, &Change)| a.path == b.path && a.after == b.after;
    Ok(head.list.len() == own.list.len() && head.list.iter().zip(&own.list).all(same))
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
        let innermost = record.places.iter().filter(|place| path.is_under(&place.path)).max_by_key(|place| place.path.depth());
        used.extend(innermost.map(|place| place.k));
    }
    for place in record.places.iter().filter(|place| !used.contains(&place.k)) {
        let name = place.upper_name(step);
        let upper = match uppers.at(&name).open_dir() {
            Err(error) if error.leads_nowhere() => continue,
            upper => upper?,
        };
        let is_needless = match (&place.file, place.path.split()) {
            (Some(file), Some((_, name))) => upper.at(name).stat()?.is_none_or(|stat| mounted_file::is(&file.copy, &stat)),
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
fn keep_first(fs: &Fs, session: &mut Locked, record: &Run, changes: &Changes, unsynced: bool) -> Result<(), Error> {
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
    header.failed = Failed::of(record.ending);
    header.acted = Some(Acted { by: record.by.clone(), ..session.act(fs)? });
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

/// The places of this run, and those of earlier runs of the session, whose uppers stay.
fn merged(known: &[Place], now: Vec<Place>) -> Vec<Place> {
    let mut places = now;
    places.extend(known.iter().filter(|old| !places.iter().any(|place| place.k == old.k)).cloned().collect::<Vec<_>>());
    places
}

/// The start of the command line, for listings: at most 200 characters, one line.
pub fn start_of(argv: &[OsString]) -> String {
    crate::session::run::start_of(argv.iter().map(|word| word.as_bytes()))
}
