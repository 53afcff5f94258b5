//! `discard`: drop what sessions hold.

use serde::Serialize;

use super::args;
use super::awaited;
use super::collect;
use super::discard_paths;
use super::list::heads;
use super::problem::Problem;
use super::scope::Scope;
use super::which::Want;
use super::{Call, Ended, parts, text};
use crate::checkpoint::manifest;
use crate::error::{Error, Kind, command};
use crate::fs::interrupt::{self, Asked};
use crate::session::header::{Header, Status};
use crate::session::id::Id;
use crate::session::log;
use crate::session::opened::{Locked, Session};
use crate::session::own_store;
use crate::session::prune;
use crate::session::store::Store;

/// `{"schema":2,"discarded":[…],"skipped":[…],"dry_run?":true}`.
#[derive(Serialize, Default)]
struct Done {
    discarded: Vec<Discarded>,
    skipped: Vec<Skipped>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
    /// The number of steps of the sessions that are discarded.
    #[serde(skip)]
    steps: u64,
}

/// A session that is discarded.
#[derive(Serialize)]
struct Discarded {
    session: Id,
    changes: u64,
    bytes: u64,
}

impl Discarded {
    fn of(header: &Header) -> Self {
        Self { session: header.id.clone(), changes: out_of(header), bytes: header.sizes.all() }
    }
}

/// A session that stays as it is.
#[derive(Serialize)]
struct Skipped {
    session: Id,
    why: &'static str,
}

/// Drops what sessions hold; their headers stay as a record.
pub fn discard(call: &Call, args: &args::Discard) -> Result<Ended, Problem> {
    let Some(key) = args.id.as_ref().filter(|_| !args.all) else { return all_pending(call) };
    if let Some(ended) = parts::discard::asked(call, key, args)? {
        return Ok(ended);
    }
    if let Some(paths) = discard_paths::paths(call, key, &args.paths)? {
        return discard_paths::discard(call, key, &paths, args.dry_run);
    }
    let others = args.paths.iter().map(|key| key.to_string_lossy().into_owned());
    named(call, &[key.clone()].into_iter().chain(others).collect::<Vec<_>>(), args.dry_run)
}

/// Discards the sessions that are named. All are found, locked and checked before the first one is discarded.
fn named(call: &Call, keys: &[String], dry_run: bool) -> Result<Ended, Problem> {
    let mut sessions: Vec<Locked> = Vec::new();
    let mut done = Done::default();
    let mut store = None;
    for key in keys {
        let opened = call.store_with(key)?;
        store = Some(opened);
        let id = call.find(opened, Some(key), Want::Discard)?;
        // A session that is named twice counts once.
        if sessions.iter().any(|known| *known.id() == id) {
            continue;
        }
        sessions.push(locked(call, opened, &id)?);
    }
    let Some(store) = store else { return Ok(Ended::Done) };
    let is_gone = |session: &Locked| session.header.discarded.is_some();
    let (gone, mut sessions): (Vec<Locked>, Vec<Locked>) = sessions.into_iter().partition(is_gone);
    let skip = |session: &Locked| Skipped { session: session.id().clone(), why: ALREADY };
    done.skipped.extend(gone.iter().map(skip));
    for session in &sessions {
        awaited::refuse_discard(store, &session.header)?;
        prune::refuse_discard(&session.header)?;
    }
    if dry_run {
        done.dry_run = true;
        done.discarded = sessions.iter().map(|session| Discarded::of(&session.header)).collect();
        return finish(call, Ok(()), &done);
    }
    ask(call, &sessions)?;
    let act = || sessions.iter_mut().try_for_each(|session| drop_held(call, store, session, &mut done));
    finish(call, noting(act), &done)
}

/// Locks a session to discard it. What is left of a run is collected first; if that cannot be, it is discarded as it lies.
fn locked(call: &Call, store: &Store, id: &Id) -> Result<Locked, Problem> {
    if store.session(id)?.header.uncollected
        && let Ok(mut session) = store.lock_session(&call.fs, id)
    {
        // The store that an agent had inside may have filled the disk.
        own_store::remove(&call.fs, &session.dir).map_err(Error::from)?;
        if let Err(problem) = collect::collect(call, store, &mut session) {
            call.out.warn(problem.message);
            return Ok(session);
        }
    }
    Ok(call.locked(id.as_str(), Want::Discard)?.1)
}

const ALREADY: &str = "it is discarded already";
const CHANGED: &str = "another recant has changed it meanwhile: look again";
const HELD: &str = "another recant holds it";

/// Asks once about all of them; not if none of them holds anything, nor has a step.
fn ask(call: &Call, sessions: &[Locked]) -> Result<(), Problem> {
    let held: u64 = sessions.iter().map(|session| out_of(&session.header)).sum();
    let steps: u64 = sessions.iter().map(|session| steps_of(session)).sum();
    let unread = sessions.iter().any(|session| session.header.uncollected);
    if held == 0 && steps == 0 && !unread {
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
    let unread = if unread { ", with what could not be collected" } else { "" };
    call.confirm(&match steps {
        0 => format!("Discard {} of {of}{unread}{overwritten}?", text::count(held, "held change")),
        steps => format!("Discard {of}: {}{unread}{overwritten}?", with_steps(steps, held, tails.len())),
    })
}

/// The number of steps that a session can go back to. 0 for one that never was at another than its first.
fn steps_of(session: &Session) -> u64 {
    let header = &session.header;
    if header.steps.is_none() || header.generation > 0 {
        return 0;
    }
    // What cannot be read can still be discarded.
    session.steps().map_or(header.chain().len(), |list| list.kept(header).len()) as u64
}

/// "3 steps, 1 change at the head".
fn with_steps(steps: u64, changes: u64, sessions: usize) -> String {
    let heads = if sessions == 1 { "the head" } else { "their heads" };
    format!("{}, {} at {heads}", text::count(steps, "step"), text::count(changes, "change"))
}

/// The number of held changes of a session: those not on the tree.
fn out_of(header: &Header) -> u64 {
    header.counts.changes - header.counts.inside
}

/// Discards all that are pending in this project: shows them, then asks. Without a terminal `-y` is needed.
fn all_pending(call: &Call) -> Result<Ended, Problem> {
    let mut done = Done::default();
    let Some(store) = call.store()? else { return finish(call, Ok(()), &done) };
    let (headers, _) = store.headers()?;
    let scope = Scope::of(call)?;
    let mut chosen = Vec::new();
    for header in headers.into_iter().rev() {
        if header.status() == Status::Pending && scope.has(store, &header) {
            chosen.push(header);
        }
    }
    if !chosen.is_empty() {
        show_and_ask(call, store, &chosen)?;
    }
    let act = || {
        for header in &chosen {
            let mut session = match call.locked(header.id.as_str(), Want::Discard) {
                Ok((_, session)) => session,
                Err(problem) if problem.kind == Kind::Busy => {
                    done.skipped.push(Skipped { session: header.id.clone(), why: HELD });
                    continue;
                }
                Err(problem) => return Err(problem),
            };
            let is_as_shown = session.header.changed == header.changed && session.header.counts == header.counts;
            if !is_as_shown || awaited::refuse_discard(store, &session.header).is_err() {
                done.skipped.push(Skipped { session: header.id.clone(), why: CHANGED });
                continue;
            }
            drop_held(call, store, &mut session, &mut done)?;
        }
        Ok(())
    };
    let acted = noting(act);
    finish(call, acted, &done)
}

fn show_and_ask(call: &Call, store: &Store, chosen: &[Header]) -> Result<(), Problem> {
    let held: u64 = chosen.iter().map(out_of).sum();
    let with_steps = chosen.iter().filter(|header| header.steps.is_some());
    let steps: u64 = with_steps.filter_map(|header| store.session(&header.id).ok()).map(|session| steps_of(&session)).sum();
    let place = if call.is_far { " of all projects" } else { "" };
    let sessions = text::count(chosen.len() as u64, "pending session");
    let steps = if steps > 0 { format!("{}, ", text::count(steps, "step")) } else { String::new() };
    let what = format!("{sessions}{place} with {steps}{}", text::count(held, "held change"));
    call.need_asking(&format!("discard --all drops {what}"), &command("list --status pending"))?;
    if call.yes {
        return Ok(());
    }
    let whole = command("list --status pending --limit 0");
    for line in heads(call, &chosen.iter().collect::<Vec<_>>(), call.out.limit(false), &whole) {
        call.out.say(line);
    }
    call.confirm(&format!("Discard {what}?"))
}

/// Notes signals meanwhile. One stops `act` between two sessions.
fn noting(act: impl FnOnce() -> Result<(), Problem>) -> Result<(), Problem> {
    let _noting = interrupt::note(Asked::Stops);
    act()
}

fn drop_held(call: &Call, store: &Store, session: &mut Locked, done: &mut Done) -> Result<(), Problem> {
    interrupt::check().map_err(|asked| Problem::refused(asked.to_string()))?;
    let (before, steps) = (session.header.clone(), steps_of(session));
    let _noting = interrupt::note(Asked::GoesOn);
    let discarded = prune::discard(&call.fs, session);
    if is_done(&discarded) {
        note_in_log(call, store, "discard", &before);
    }
    // If only a part could be removed, the error says that it is discarded.
    if discarded.is_ok() {
        done.steps += steps;
        done.discarded.push(Discarded::of(&before));
    }
    Ok(discarded?)
}

/// Reports what was discarded, also before an error that stopped it.
fn finish(call: &Call, acted: Result<(), Problem>, done: &Done) -> Result<Ended, Problem> {
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
fn after(problem: Problem, done: &Done) -> Problem {
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
    let (is, would) = if done.dry_run { (" would be", " would be") } else { (" is", "") };
    let at_heads = with_steps(done.steps, sum(|d| d.changes), done.discarded.len());
    let changes = if done.steps == 0 { changes } else { at_heads };
    match &done.discarded[..] {
        [] if done.skipped.is_empty() && is_whole => {
            let place = if call.is_far { "on this machine" } else { "in this project" };
            call.out.note(format_args!("no pending session {place}: nothing to discard"));
        }
        [] => {}
        [one] => call.out.note(format_args!("session {}{is} discarded: {changes}, {bytes}", one.session)),
        many => {
            let sessions = text::count(many.len() as u64, "session");
            call.out.note(format_args!("{sessions}{would} discarded: {changes}, {bytes}"));
        }
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
