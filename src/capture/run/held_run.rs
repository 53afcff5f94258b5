//! A run held in a session. It is recorded before the command starts, so that what a killed recant leaves is found. It is collected when
//! nothing of the run is left.
//!
//! ```text
//!            begin                    run, collect                    keep
//! (nothing) -------> uncollected ----------------------> collected ---------> pending
//!                        |  recant killed: collect_killed     |  no change
//!                        +----------------------------------- +---------> (gone)
//! ```

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

use super::command::Command;
use super::join;
use super::keep_changes::{CollectedRun, StepsBelow, collect_ran, dangers, forget, remove_uppers};
use super::size_limit::Meter;
use super::supervise::{EndedRun, Event, run_captured};
use crate::capture::collect::open_up;
use crate::capture::error::{not_started, uncollected};
use crate::capture::layers::merge_many::{leave_out, merge_many};
use crate::capture::layers::sealed_uppers::Sealed;
use crate::capture::place::layout::Route;
use crate::capture::place::mount_plan::{Laid, Plan};
use crate::capture::space::uppers_in_memory;
use crate::capture::space::uppers_in_memory::Memory;
use crate::error::{At, Error, Kind};
use crate::fs::{AbsPath, Dir, Fs, OnSignal, interrupt};
use crate::session::{
    ActingAgent, Arg, CommandRecord, Coverage, Ending, Header, How, Locked, Net, Place, Run, Service, Session, Sort, Stopped,
    Store, boot_id, part,
};
use crate::tree::Danger;

/// A run that is over and collected.
#[derive(Debug)]
pub struct Held {
    pub ending: Ending,
    /// The way in which it was stopped, if it is a service.
    pub stopped: Option<Stopped>,
    /// The number of net changes in the session; 0 if it holds nothing.
    pub changes: u64,
    /// The step that the run became; `None` if it changed nothing.
    pub step: Option<u32>,
    /// The number of paths that the run changed.
    pub news: u64,
    /// The number of its changes of each sort.
    pub sorts: BTreeMap<Sort, u64>,
    /// Those that a person should see before all others.
    pub dangers: Vec<(AbsPath, Danger)>,
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
        let held = || changes.list.iter().zip(&sides).filter(|(_, side)| !side.is_in()).map(|(change, _)| change);
        held().for_each(|change| *self.sorts.entry(change.sort()).or_default() += 1);
        self.dangers = dangers(held());
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
    hear: &mut dyn FnMut(Event),
) -> Result<Held, Error> {
    let (mut plan, mut left) = (plan, AGAIN);
    loop {
        match attempt(fs, store, session, plan, command, hear).map_err(not_started)? {
            Attempt::Ran(held) => return Ok(held),
            Attempt::Outdated(_, why) if left == 0 => return Err(not_started(why)),
            Attempt::Outdated(anew, _) => (plan, left) = (*anew, left - 1),
        }
    }
}

/// The number of times that a run is planned anew, as the mounts are others than those that it was planned for.
const AGAIN: usize = 4;

/// A try to start a command.
enum Attempt {
    Ran(Held),
    /// It was not started, and why; something was mounted or unmounted since it was planned, which the new plan knows. An ordinary user's
    /// overlay cannot be made of a directory that something was mounted in (EINVAL).
    Outdated(Box<Plan>, Error),
}

fn attempt(
    fs: &Fs,
    store: &Store,
    session: &mut Locked,
    plan: Plan,
    command: &Command,
    hear: &mut dyn FnMut(Event),
) -> Result<Attempt, Error> {
    let held = part(&session.dir, b"held")?;
    let earlier = if session.header.lines > 0 { session.run()? } else { None };
    let known = earlier.as_ref().map_or(&[][..], |run| &run.places);
    let net = Net::open(session)?;
    plan.refuse_unseen(known, &net)?;
    let (step, sealed) = (session.header.next_step(), seal_below(fs, &held, session, (plan.route, known))?);
    let memory = memory_for(&held, plan.route, command, session.id().as_str(), hear)?;
    // Left by a choice that was cut off: a place that this command has not would keep it.
    if session.header.lines > 0 {
        remove_uppers(fs, &held, known, step)?;
    }
    open_up::forget(fs, &held, &known.iter().map(|place| place.upper_name(step)).collect::<Vec<_>>())?;
    let laid = plan.lay_out(fs, memory.as_ref().map_or(&held, |memory| &memory.root), known, (step, &sealed))?;
    let held = match &memory {
        Some(memory) => memory.root.open_below(b"").at("open", "uppers in memory")?,
        None => held,
    };
    let laid = laid.in_memory(memory);
    session.forget_beside(fs)?;
    laid.entrance.replace(Some(join::open(fs, session)?));
    let mut record = record_of(command, store.by.as_ref(), &laid, earlier.as_ref());

    let (began, mut coverage) = (Instant::now(), laid.plan.coverage().to_vec());
    let ended = match start(fs, session, (&record, &laid, &held), command, &mut coverage, hear) {
        Ok(ended) => ended,
        Err(error) => {
            if earlier.is_some() {
                forget(fs, session, &held, &record)?;
            }
            let anew = if error.kind() == Kind::NoCapture { laid.plan.anew()? } else { None };
            return match anew {
                Some(plan) => Ok(Attempt::Outdated(Box::new(plan), error)),
                None => Err(error),
            };
        }
    };
    record.command.took = u64::try_from(began.elapsed().as_nanos()).ok();
    record.coverage = coverage.clone();
    record.keep_of(earlier.as_ref());
    record.command.ending = Some(ended.exit);
    record.command.service.iter_mut().for_each(|service| service.stopped = ended.stopped);
    record.command.started = ended.span.start();
    record.note(&ended.notes);
    let below = StepsBelow { net: &net, sealed: &sealed, step };
    collect_run(fs, store, session, (record, coverage, ended), laid.memory.is_some(), (&held, below)).map(Attempt::Ran)
}

/// The uppers that the command runs over, merged where they are many.
fn seal_below(fs: &Fs, held: &Dir, session: &Session, (route, known): (Route, &[Place])) -> Result<Sealed, Error> {
    let mut sealed = Sealed::of(held, session, session.header.chain())?;
    leave_out(fs, held, (route, known), &mut sealed, session)?;
    merge_many(fs, held, (route, known), &mut sealed, || session.steps())?;
    Ok(sealed)
}

/// Collects the changes of a command that has run. Whatever fails, the session stays, and the next verb that names it collects it.
fn collect_run(
    fs: &Fs,
    store: &Store,
    session: &mut Locked,
    (mut record, coverage, ended): (Run, Vec<Coverage>, EndedRun),
    in_memory: bool,
    (held, below): (&Dir, StepsBelow<'_>),
) -> Result<Held, Error> {
    // A request to end must not leave the command's changes in doubt, or lose them with the memory that they lie in.
    let _noting = interrupt::note(OnSignal::GoesOn);
    let EndedRun { exit, stopped, span, notes, too_much, meter, leaving, .. } = ended;
    let step = below.step;
    let collected = collect_ran(fs, store, session, &mut record, leaving, (in_memory, span), (held, below));
    let CollectedRun { changes, news, sorts, dangers, dropped, mut warnings } =
        collected.map_err(|why| uncollected(session.id(), Some(exit), in_memory, &why))?;
    warnings.extend(notes);
    let step = Some(step).filter(|step| session.header.head() == *step);
    // A renamed directory's content comes with the collecting.
    let too_much = too_much.or_else(|| meter.as_ref().and_then(Meter::over));
    Ok(Held { ending: exit, stopped, changes, step, news, sorts, dangers, coverage, warnings, dropped, too_much })
}

fn record_of(command: &Command, by: Option<&ActingAgent>, laid: &Laid, earlier: Option<&Run>) -> Run {
    let mut record = Run {
        command: CommandRecord {
            argv: command.argv.iter().map(|arg| Arg(arg.as_bytes().to_vec())).collect(),
            label: command.label.clone(),
            cwd: laid.plan.cwd().clone(),
            by: by.cloned(),
            started: laid.plan.request.since,
            ending: None,
            took: None,
            service: command.service.as_ref().map(|service| Service::named(&service.name)),
        },
        uid: rustix::process::geteuid().as_raw(),
        first: earlier.map(Run::first),
        beside: Vec::new(),
        boot: boot_id(),
        places: merged(earlier.map_or(&[], |run| &run.places), laid.places()),
        coverage: laid.plan.coverage().to_vec(),
        notes: Vec::new(),
        scratch: laid.plan.request.scratch.clone(),
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
) -> Result<EndedRun, Error> {
    begin(fs, session, record, record.command.called())?;
    // H9: after the record is written, so that a session cut off from here on is collected.
    if record.first.is_some() {
        open_up::give_back(fs, held)?;
    }
    let began = Instant::now();
    run_captured(laid, command, &mut |event| {
        if let Event::OnlyJoined(ending, stopped) = event {
            // Told by the step in any case.
            let _untold = session.note_first_ended(fs, &ended_first(record, (ending, stopped), began));
        }
        if let Event::Uncovered(path, why) = &event {
            let rows = coverage.iter_mut().filter(|row| row.path == *path);
            rows.for_each(|row| (row.how, row.why) = (How::Uncovered, Some(why.clone())));
        }
        hear(event);
    })
}

/// The record of a command that has ended while others go on in its run.
fn ended_first(record: &Run, (ending, stopped): (Ending, Option<Stopped>), began: Instant) -> Run {
    let mut record = record.clone();
    (record.command.ending, record.command.took) = (Some(ending), u64::try_from(began.elapsed().as_nanos()).ok());
    record.command.service.iter_mut().for_each(|service| service.stopped = stopped);
    record
}

fn begin(fs: &Fs, session: &mut Locked, record: &Run, command: String) -> Result<(), Error> {
    if session.header.lines > 0 {
        return session.note_going_on(fs, record);
    }
    let noted = &session.header;
    let is_noted = noted.uncollected && noted.command.as_ref() == Some(&command) && noted.by == record.command.by;
    let header = Header { uncollected: true, command: Some(command), by: record.command.by.clone(), ..session.header.clone() };
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
    if route == Route::User || !uppers_in_memory::is_needed(held)? {
        return Ok(None);
    }
    let limit = uppers_in_memory::limit(command.max_size);
    hear(Event::InMemory(limit));
    Ok(Some(uppers_in_memory::make(limit, tag)?))
}

/// The places of this run, and those of earlier runs of the session, whose uppers stay.
fn merged(known: &[Place], now: Vec<Place>) -> Vec<Place> {
    let mut places = now;
    places.extend(known.iter().filter(|old| !places.iter().any(|place| place.k == old.k)).cloned().collect::<Vec<_>>());
    places
}

/// The start of the command line, for listings: at most 200 characters, one line.
pub fn start_of(argv: &[OsString]) -> String {
    crate::session::start_of(argv.iter().map(|word| word.as_bytes()))
}
