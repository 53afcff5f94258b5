//! `discard`: put sessions aside, or free what they hold.

use serde::Serialize;

use super::args;
use super::call::Call;
use super::discard_paths;
use super::ended::Ended;
use super::list::heads;
use super::{parts, text};
use crate::checkpoint::manifest;
use crate::engine::ready;
use crate::error::{Error, Kind, command};
use crate::fs::dir::Time;
use crate::fs::interrupt::{self, Asked};
use crate::session::act::TakesBack;
use crate::session::header::{Header, Status};
use crate::session::id::Id;
use crate::session::log;
use crate::session::opened::Locked;
use crate::session::prune;
use crate::session::store::Store;
use crate::session::undo::FREED;
use crate::tree::time;
use crate::verb::guard;
use crate::verb::scope::Scope;
use crate::verb::want::Want;
use crate::verb::which;

#[derive(Serialize, Default)]
struct Done {
    discarded: Vec<Discarded>,
    skipped: Vec<Skipped>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
}

#[derive(Serialize)]
struct Discarded {
    session: Id,
    changes: u64,
    bytes: u64,
    /// The number of its steps, if it has more than one.
    #[serde(skip)]
    steps: u64,
    /// True for a run that was cut off, of which nobody knows yet what it changed.
    #[serde(skip)]
    uncollected: bool,
    /// The end of the time in which it can be brought back; missing where that cannot be.
    #[serde(with = "time::option", skip_serializing_if = "Option::is_none")]
    until: Option<Time>,
}

impl Discarded {
    fn of(call: &Call, header: &Header, end: End) -> Self {
        let kept = |now: Time| Time { s: now.s.saturating_add(call.config.discarded.value), ..now };
        let until = (end == End::Aside).then(|| kept(header.discarded.unwrap_or_else(crate::fs::now)));
        let steps = header.steps.as_ref().map_or(0, |steps| steps.last.into());
        Self {
            session: header.id.clone(),
            changes: out_of(header),
            bytes: header.sizes.all(),
            steps,
            uncollected: header.uncollected,
            until,
        }
    }
}

/// The fate of a discarded session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It is put aside.
    Aside,
    /// It is freed at once.
    Now,
}

/// A session that stays as it is.
#[derive(Serialize)]
struct Skipped {
    session: Id,
    why: &'static str,
}

/// Discards sessions, or paths of one.
pub fn discard(call: &Call, args: &args::Discard) -> Result<Ended, Error> {
    let Some(key) = args.id.as_ref().filter(|_| !args.all) else { return all_pending(call) };
    if let Some(ended) = parts::discard::asked(call, key, args)? {
        return Ok(ended);
    }
    if let Some(paths) = discard_paths::paths(call, key, &args.paths)? {
        return discard_paths::discard(call, key, &paths, args);
    }
    let others = args.paths.iter().map(|key| key.to_string_lossy().into_owned());
    let keys: Vec<String> = [key.clone()].into_iter().chain(others).collect();
    named(call, &keys, args)
}

/// Discards the sessions that are named. All are found, locked and checked before the first one is discarded.
fn named(call: &Call, keys: &[String], args: &args::Discard) -> Result<Ended, Error> {
    let (end, dry_run) = (if args.now { End::Now } else { End::Aside }, args.dry_run);
    let mut sessions: Vec<Locked> = Vec::new();
    let mut done = Done { dry_run, ..Done::default() };
    let mut store = None;
    for key in keys {
        let opened = call.store_with(key)?;
        store = Some(opened);
        let id = call.find(opened, Some(key), Want::Discard)?;
        // A session that is named twice counts once.
        if sessions.iter().any(|known| *known.id() == id) {
            continue;
        }
        let session = locked(call, opened, &id)?;
        which::refuse_gone_on(key, &session.header)?;
        sessions.push(session);
    }
    let Some(store) = store else { return Ok(Ended::Done) };
    let stays = |session: &Locked| session.header.discarded.is_some() && (end == End::Aside || session.header.freed);
    let (gone, mut sessions): (Vec<Locked>, Vec<Locked>) = sessions.into_iter().partition(stays);
    let skip = |session: &Locked| Skipped { session: session.id().clone(), why: ALREADY };
    done.skipped.extend(gone.iter().map(skip));
    for session in sessions.iter().filter(|session| session.header.discarded.is_none()) {
        prune::refuse_discard(&session.header)?;
    }
    if dry_run {
        done.discarded = sessions.iter().map(|session| Discarded::of(call, &session.header, end)).collect();
        return finish(call, store, Ok(()), &done);
    }
    if end == End::Now {
        ask(call, &sessions)?;
    }
    sessions.iter_mut().for_each(|session| session.for_reason(args.message.as_deref()));
    let act = || sessions.iter_mut().try_for_each(|session| drop_held(call, store, session, end, &mut done));
    finish(call, store, noting(act), &done)
}

/// Locks a session to discard it as it lies: nothing of a run that was cut off is collected for that.
fn locked(call: &Call, store: &Store, id: &Id) -> Result<Locked, Error> {
    let session = ready::lock(&call.fs, store, id, |_| Ok(()), || call.prepare_to_change(store))?;
    guard::refuse_waiting(&session.header, "discard")?;
    guard::refuse_a_persons(call, &session)?;
    Ok(session)
}

/// Discards a session again whose discard was undone, as the act that takes that back.
pub fn again(call: &Call, store: &Store, id: &Id, takes_back: TakesBack, dry_run: bool) -> Result<Ended, Error> {
    let mut session = locked(call, store, id)?;
    session.takes_back(takes_back);
    let mut done = Done { dry_run, ..Done::default() };
    if dry_run {
        done.discarded.push(Discarded::of(call, &session.header, End::Aside));
        return finish(call, store, Ok(()), &done);
    }
    let acted = noting(|| drop_held(call, store, &mut session, End::Aside, &mut done));
    finish(call, store, acted, &done)
}

const ALREADY: &str = "it is discarded already";
const CHANGED: &str = "another recant has changed it meanwhile: look again";
const HELD: &str = "another recant holds it";

/// Asks once about all that is freed; not if none of them holds anything, nor has a step.
fn ask(call: &Call, sessions: &[Locked]) -> Result<(), Error> {
    let held: u64 = sessions.iter().map(|session| out_of(&session.header)).sum();
    if held == 0 && sessions.iter().all(|session| session.header.steps.is_none() && !session.header.uncollected) {
        return Ok(());
    }
    let mut overwritten = "";
    for session in sessions {
        if manifest::keeps_overwritten(&session.dir)? {
            overwritten = ", with what --force overwrote";
        }
    }
    let tails: Vec<&str> = sessions.iter().map(|session| session.id().tail()).collect();
    let of = format!("session{} {}", if tails.len() == 1 { "" } else { "s" }, tails.join(", "));
    let held = text::count(held, "held change");
    call.confirm(&format!("Free {held} of {of}{overwritten}? Nothing brings that back."))
}

/// The number of held changes of a session: those not on the tree.
fn out_of(header: &Header) -> u64 {
    header.counts.changes - header.counts.inside
}

/// Discards all that are pending in this project: shows them, then asks. Without a terminal `-y` is needed.
fn all_pending(call: &Call) -> Result<Ended, Error> {
    let mut done = Done::default();
    let Some(store) = call.store()? else { return finished(call, Ok(()), &done) };
    let (headers, _) = store.headers()?;
    let scope = Scope::of(call)?;
    let mut chosen = Vec::new();
    for header in headers.into_iter().rev() {
        if header.status() == Status::Pending && scope.has(store, &header) {
            chosen.push(header);
        }
    }
    if !chosen.is_empty() {
        show_and_ask(call, &chosen)?;
    }
    let act = || {
        for header in &chosen {
            let mut session = match locked(call, store, &header.id) {
                Ok(session) => session,
                Err(problem) if problem.kind() == Kind::Busy => {
                    done.skipped.push(Skipped { session: header.id.clone(), why: HELD });
                    continue;
                }
                Err(problem) => return Err(problem),
            };
            let is_as_shown = session.header.changed == header.changed && session.header.counts == header.counts;
            if !is_as_shown {
                done.skipped.push(Skipped { session: header.id.clone(), why: CHANGED });
                continue;
            }
            drop_held(call, store, &mut session, End::Aside, &mut done)?;
        }
        Ok(())
    };
    let acted = noting(act);
    finish(call, store, acted, &done)
}

fn show_and_ask(call: &Call, chosen: &[Header]) -> Result<(), Error> {
    let held: u64 = chosen.iter().map(out_of).sum();
    let place = if call.is_far { " of all projects" } else { "" };
    let sessions = text::count(chosen.len() as u64, "pending session");
    let what = format!("{sessions}{place} with {}", text::count(held, "held change"));
    call.need_asking(&format!("discard --all drops {what}"), &command("list --status pending"))?;
    if call.yes {
        return Ok(());
    }
    let whole = command("list --status pending --limit 0");
    for line in heads(call, &chosen.iter().collect::<Vec<_>>(), call.out.limit(), &whole) {
        call.out.say(line);
    }
    call.confirm(&format!("Discard {what}?"))
}

/// Notes signals meanwhile. One stops `act` between two sessions.
fn noting(act: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    let _noting = interrupt::note(Asked::Stops);
    act()
}

fn drop_held(call: &Call, store: &Store, session: &mut Locked, end: End, done: &mut Done) -> Result<(), Error> {
    interrupt::check().map_err(|asked| Error::refused(asked.to_string()))?;
    let before = session.header.clone();
    let _noting = interrupt::note(Asked::GoesOn);
    let discarded = match end {
        End::Aside => session.put_aside(&call.fs),
        End::Now => prune::free(&call.fs, session),
    };
    if is_done(&discarded) {
        let verb = if end == End::Now { FREED } else { "discard" };
        let entry = log::Entry::new(verb, session.id(), before.generation, "done", before.counts.changes);
        call.note_in_log(store, &entry.of_act(&session.header));
    }
    // If only a part could be removed, the error says that it is discarded.
    if discarded.is_ok() {
        done.discarded.push(Discarded::of(call, &before, end));
    }
    discarded
}

/// Reports what was discarded, also before an error that stopped it, and frees what was discarded long ago.
fn finish(call: &Call, store: &Store, acted: Result<(), Error>, done: &Done) -> Result<Ended, Error> {
    let ended = finished(call, acted, done);
    if !done.dry_run {
        free_overdue(call, store);
    }
    ended
}

/// Frees what was discarded long ago. Nobody waits for that: an error is a warning.
pub fn free_overdue(call: &Call, store: &Store) {
    match store.free_overdue(&call.fs, call.config.discarded.value) {
        Ok(freed) if freed.is_empty() => {}
        Ok(freed) => {
            for id in &freed {
                let entry = log::Entry::new("prune --discarded", id, 0, "done", 0);
                call.note_in_log(store, &entry);
            }
            let ids = freed.iter().map(Id::tail).collect::<Vec<_>>().join(", ");
            call.out.note(text::filled(&format!("what was discarded before is freed (retention.discarded): {ids}")));
        }
        Err(error) => call.out.warn(format_args!("what was discarded before could not be freed: {error}")),
    }
}

fn finished(call: &Call, acted: Result<(), Error>, done: &Done) -> Result<Ended, Error> {
    if !call.out.is_text() {
        if acted.is_ok() || !done.discarded.is_empty() {
            call.out.document(done);
        }
    } else {
        say(call, done, acted.is_ok());
    }
    acted.map_err(|problem| after(problem, done))?;
    let left_out = done.skipped.iter().any(|skipped| skipped.why != ALREADY);
    Ok(if left_out { Ended::With(Kind::LeftOut) } else { Ended::Done })
}

/// The error that stopped it, with what was discarded before.
fn after(problem: Error, done: &Done) -> Error {
    match text::count(done.discarded.len() as u64, "session") {
        _ if done.discarded.is_empty() => problem,
        sessions => problem.after(&format!("{sessions} discarded before it")),
    }
}

fn say(call: &Call, done: &Done, is_whole: bool) {
    for Skipped { session, why } in &done.skipped {
        let line = format!("session {} stays as it is: {why}", session.tail());
        if *why == ALREADY { call.out.note(line) } else { call.out.warn(line) }
    }
    let sum = |of: fn(&Discarded) -> u64| done.discarded.iter().map(of).sum::<u64>();
    let (changes, bytes) = (text::count(sum(|d| d.changes), "change"), text::bytes(sum(|d| d.bytes)));
    let steps = sum(|d| d.steps);
    let changes = if steps > 0 { format!("{changes}, {}", text::count(steps, "step")) } else { changes };
    let cut_off = done.discarded.iter().any(|d| d.uncollected);
    let changes = if cut_off { format!("{changes}, and what a run changed that was cut off") } else { changes };
    let (is, would) = if done.dry_run { (" would be", " would be") } else { (" is", "") };
    let is_freed = done.discarded.first().is_some_and(|first| first.until.is_none());
    let discarded = if is_freed { "freed, and nothing brings it back" } else { "discarded" };
    let whose = match &done.discarded[..] {
        [] if done.skipped.is_empty() && is_whole => {
            let place = if call.is_far { "on this machine" } else { "in this project" };
            call.out.note(format_args!("no pending session {place}: nothing to discard"));
            return;
        }
        [] => return,
        [one] => {
            call.out.note(format_args!("session {}{is} {discarded}: {changes}, {bytes}", one.session));
            one.session.tail()
        }
        many => {
            let sessions = text::count(many.len() as u64, "session");
            call.out.note(format_args!("{sessions}{would} {discarded}: {changes}, {bytes}"));
            "ID"
        }
    };
    if let Some(until) = done.discarded[0].until.filter(|_| !done.dry_run) {
        let undo = command(format_args!("undo {whose}"));
        call.out.note(format_args!("to have it again, until {}: {undo}", text::day(until)));
    }
}

/// Tells whether a session counts as given up, even if not all of it could be removed.
pub fn is_done(given_up: &Result<(), Error>) -> bool {
    match given_up {
        Ok(()) => true,
        Err(error) => error.kind() == Kind::LeftOut,
    }
}

/// Appends a line to the log, about a session in the state of `header`.
pub fn note_in_log(call: &Call, store: &Store, verb: &str, header: &Header) {
    let entry = log::Entry::new(verb, &header.id, header.generation, "done", header.counts.changes).of(header);
    call.note_in_log(store, &entry);
}
