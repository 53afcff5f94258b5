//! `undo` and `redo` without an id: the newest act of this project, or of a session, taken back.

use super::apply;
use super::args;
use super::call::Call;
use super::discard;
use super::ended::Ended;
use super::{agents, parts, text};
use crate::engine::job::Verb;
use crate::engine::ready;
use crate::engine::report::Report;
use crate::error::{Error, Kind, command};
use crate::session::act::TakesBack;
use crate::session::header::{Checkpoint, Header, Status};
use crate::session::id::Id;
use crate::session::log;
use crate::session::store::Store;
use crate::session::undo::{Acts, BROUGHT_BACK, Deed, FREED, Inverse};
use crate::verb::guard;
use crate::verb::scope::Scope;
use crate::verb::want::Want;

/// The most paths that are shown before the question.
const SHOWN: usize = 10;

/// Takes an act back after a person at the terminal has seen what that does, or with `-y`.
///
/// # Errors
/// There is no such act, or it is not the caller's to take back unasked; all that stands against the act's inverse.
pub fn undo(call: &Call, args: &args::Undo) -> Result<Ended, Error> {
    let store = call.store()?.ok_or_else(|| nothing("undo"))?;
    let deed = match &args.id {
        Some(key) => of_session(call, store, key),
        None => newest(call, store, args.dry_run),
    };
    if let Some(variable) = guard::limited(call).filter(|_| !args.dry_run)
        && !deed.as_ref().is_ok_and(|deed| is_own(store, deed) && is_of_held(deed))
    {
        return Err(deed.map_or_else(|nothing| nothing, |deed| crate::verb::error::refused(variable, &of(&deed))));
    }
    let deed = deed?;
    if args.id.is_none() && !args.dry_run {
        refuse_others(call, store, &deed)?;
    }
    if !args.dry_run && !call.yes && !call.can_ask {
        return Err(unasked(&deed));
    }
    carry_out(call, store, &deed, TakesBack::Undoes(deed.n), How { dry_run: args.dry_run, merge: args.merge, force: args.force })
}

/// Commits a session again, or takes the newest undo back.
///
/// # Errors
/// The newest act is no undo; all that stands against the act's inverse.
pub fn redo(call: &Call, args: &args::Redo) -> Result<Ended, Error> {
    if let Some(id) = &args.id {
        let what = args::What {
            id: id.clone(),
            paths: args.paths.clone(),
            dry_run: args.dry_run,
            message: None,
            picked: args.picked.clone(),
            beside: false,
            takes_back: None,
            only: None,
        };
        return apply::redo(call, &what, args.force);
    }
    let store = call.store()?.ok_or_else(|| nothing("redo"))?;
    let acts = acts(call, store)?;
    let deed = acts.to_redo(|deed| is_ours(store, deed)).ok_or_else(|| no_undo(&acts))?;
    if let Some((_, id)) = acts.lost.as_ref().filter(|(n, _)| *n > deed.n) {
        return Err(lost(store, id, None));
    }
    // What was undone was seen then.
    let how = How { dry_run: args.dry_run, merge: false, force: args.force };
    carry_out(call, store, deed, TakesBack::Redoes(deed.n), how)
}

/// The options of a call.
#[derive(Clone, Copy)]
struct How {
    dry_run: bool,
    merge: bool,
    force: bool,
}

/// Carries out the inverse of an act. An undo asks before that.
fn carry_out(call: &Call, store: &Store, deed: &Deed, takes_back: TakesBack, how: How) -> Result<Ended, Error> {
    let How { dry_run, merge, force } = how;
    let what = args::What {
        id: deed.session.to_string(),
        paths: Vec::new(),
        dry_run,
        message: None,
        picked: None,
        beside: false,
        takes_back: Some(takes_back),
        only: deed.acted.purpose.part.clone(),
    };
    let asks = matches!(takes_back, TakesBack::Undoes(_)) && !dry_run && !merge;
    match deed.inverse {
        Inverse::RollBack => {
            let back = args::Back { what, patch: false, merge, force };
            if matches!(takes_back, TakesBack::Undoes(_)) {
                say_turns(call, store, deed);
            }
            if asks {
                ask(call, store, deed, || apply::would_roll_back(call, &back))?;
            }
            let ended = parts::rollback::rollback(call, &back)?;
            note_done(call, store, &deed.session, Verb::Rollback, &back.what)?;
            Ok(ended)
        }
        Inverse::Redo => {
            if asks {
                ask(call, store, deed, || apply::would_redo(call, &what, force))?;
            }
            let ended = apply::redo(call, &what, force)?;
            note_done(call, store, &deed.session, Verb::Redo, &what)?;
            Ok(ended)
        }
        Inverse::BringBack => bring_back(call, store, deed, takes_back, dry_run),
        Inverse::Discard => discard::again(call, store, &deed.session, takes_back, dry_run),
        Inverse::None => Err(nothing("undo")),
    }
}

/// Notes that an act is taken back whose inverse found all as it is to be: no operation says so, and the next undo would meet it again.
fn note_done(call: &Call, store: &Store, id: &Id, verb: Verb, what: &args::What) -> Result<(), Error> {
    let Some(takes_back) = what.takes_back.filter(|_| !what.dry_run) else { return Ok(()) };
    let is_it = |entry: &log::Entry| entry.purpose.takes_back == Some(takes_back);
    if log::read(store)?.entries.iter().rev().any(is_it) {
        return Ok(());
    }
    let mut session = store.lock_session(&call.fs, id)?;
    session.takes_back(takes_back);
    let header = Header { acted: Some(session.act(&call.fs)?), ..session.header.clone() };
    session.save(&call.fs, header)?;
    let entry = log::Entry::new(verb.word(), id, session.header.generation, "done", 0);
    call.note_in_log(store, &entry.of_act(&session.header));
    Ok(())
}

/// The acts in this project.
fn acts(call: &Call, store: &Store) -> Result<Acts, Error> {
    let (scope, entries) = (Scope::of(call)?, log::read(store)?.entries);
    let (headers, _) = store.headers()?;
    let is_known = |id: &Id| headers.iter().any(|header| header.id == *id);
    let holds = |header: &Header| header.counts.changes > 0 || header.steps.is_some();
    let is_of_here = |header: &&Header| !header.beside && holds(header) && scope.has(store, header);
    let here: Vec<Header> = headers.iter().filter(is_of_here).cloned().collect();
    // Of a session that was pruned since, the log alone tells.
    let is_here = |entry: &&log::Entry| {
        here.iter().any(|header| header.id == entry.session)
            || !is_known(&entry.session) && entry.about.cwd.as_ref().is_some_and(|dir| scope.has_directory(dir))
    };
    Ok(Acts::of(entries.iter().filter(is_here), &here))
}

/// The error if the log lacks the newest act, which is on this session.
fn lost(store: &Store, id: &Id, before: Option<&Deed>) -> Error {
    let problem = Error::refused(format!("the log has no line of the newest act, on session {}", id.tail()));
    let newest = store.session(id).ok().and_then(|session| Deed::of_newest(&session.header));
    match (newest, before) {
        (Some(newest), _) if newest.inverse != Inverse::None => problem.with_remedy(format!("{} takes it back", of(&newest))),
        (_, Some(before)) => problem.with_remedy(before_it(before)),
        (_, None) => problem.with_remedy(command(format_args!("show {}", id.tail()))),
    }
}

fn is_own(store: &Store, deed: &Deed) -> bool {
    deed.acted.is_own(store.by.as_ref())
}

/// True for an act on what is held alone.
fn is_of_held(deed: &Deed) -> bool {
    matches!(deed.inverse, Inverse::BringBack | Inverse::Discard | Inverse::None)
}

/// True for an act that is the caller's to take back: what others did to held sessions is not.
fn is_ours(store: &Store, deed: &Deed) -> bool {
    !is_of_held(deed) || is_own(store, deed)
}

/// The reason why an act cannot be taken back any more.
fn never(store: &Store, deed: &Deed) -> Option<&'static str> {
    match store.session(&deed.session).map(|session| session.header) {
        Err(error) if error.is_unknown() => Some("was pruned"),
        Ok(header) if deed.inverse == Inverse::BringBack && header.freed => Some("is freed"),
        Ok(header) if deed.inverse == Inverse::RollBack && header.checkpoint == Checkpoint::Pruned => {
            Some("has no checkpoint any more")
        }
        Ok(header) if matches!(deed.inverse, Inverse::Redo | Inverse::RollBack) && header.went_on_since(deed.generation) => {
            Some("went on since")
        }
        Ok(header) if deed.inverse == Inverse::RollBack && header.counts.inside == 0 => Some("is not on the tree"),
        Ok(header) if deed.inverse == Inverse::Redo && header.discarded.is_some() => Some("is discarded"),
        _ => None,
    }
}

/// The newest act of the project that has an inverse and is not undone. What others did to held sessions is passed over, and said.
fn newest(call: &Call, store: &Store, dry_run: bool) -> Result<Deed, Error> {
    let acts = acts(call, store)?;
    let ours: Vec<&Deed> = acts.all.iter().filter(|deed| is_ours(store, deed)).collect();
    let mut standing = ours.iter().copied().filter(|deed| acts.stands(deed)).peekable();
    let own = standing.next_if(|deed| deed.inverse == Inverse::None && ours.first() == Some(deed));
    let mut inverted = standing.filter(|deed| deed.inverse != Inverse::None);
    let deed = inverted.next();
    let mut before = || inverted.find(|deed| never(store, deed).is_none());
    if let Some(own) = own {
        say_or_refuse(call, store, own, deed.filter(|deed| never(store, deed).is_none()).or_else(&mut before), dry_run)?;
    }
    if let Some((_, id)) = acts.lost.as_ref().filter(|(n, _)| deed.is_none_or(|deed| *n > deed.n)) {
        return Err(lost(store, id, deed));
    }
    let deed = deed.ok_or_else(|| nothing("undo"))?;
    if let Some(why) = never(store, deed) {
        let problem = Error::refused(format!("the newest act is on session {}, which {why}", deed.session.tail()));
        return Err(problem.with_remedy_if(before().map(before_it)));
    }
    let others: Vec<&Deed> = acts.all.iter().filter(|other| other.n > deed.n && !is_ours(store, other)).collect();
    if let [newest, ..] = &others[..] {
        let (acts, newest) = (text::count(others.len() as u64, "act"), newest.session.tail());
        call.out.note(format_args!("passed over: {acts} of others on held sessions, the newest on {newest}"));
    }
    Ok(deed.clone())
}

/// Refuses to take back unasked what somebody else did.
fn refuse_others(call: &Call, store: &Store, deed: &Deed) -> Result<(), Error> {
    if is_own(store, deed) || call.can_ask && !call.yes {
        return Ok(());
    }
    let problem = Error::refused(format!("the newest act here is not yours: {}", what(store, deed)));
    Err(problem.with_remedy(of(deed)))
}

/// Names the caller's own newest act, which `undo` does not take back; refuses where nobody can be asked about the one before it.
fn say_or_refuse(call: &Call, store: &Store, own: &Deed, before: Option<&Deed>, dry_run: bool) -> Result<(), Error> {
    let tail = own.session.tail();
    let newest = match own.verb.as_deref() {
        Some(FREED) => format!("the newest act is {FREED} of session {tail}: nothing takes it back"),
        Some(verb) => format!("the newest act is {verb} of session {tail}: {}", command(format_args!("rewind {tail} STEP"))),
        None => {
            let back = step_below(store, &own.session).map_or(format!("discard {tail}"), |on| format!("rewind {tail} {on}"));
            format!("the newest act is held in session {tail}: {}", command(back))
        }
    };
    if call.can_ask && !call.yes || dry_run {
        call.out.note(newest);
        return Ok(());
    }
    let problem = Error::refused(newest);
    Err(problem.with_remedy_if(before.map(before_it)))
}

/// The step that the head of a session of several stands on.
fn step_below(store: &Store, id: &Id) -> Option<u32> {
    let session = store.session(id).ok()?;
    session.header.steps.as_ref()?;
    let list = session.steps().ok()?;
    Some(list.get(&session.header, session.header.head()).ok()?.on)
}

fn before_it(deed: &Deed) -> String {
    format!("the one before it: {}", of(deed))
}

/// The command that takes an act back.
fn of(deed: &Deed) -> String {
    command(format_args!("undo {}", deed.session.tail()))
}

/// The newest act on the session of a call that has an inverse and is not undone; where the log lacks the newest, that one.
fn of_session(call: &Call, store: &Store, key: &str) -> Result<Deed, Error> {
    let id = call.find(store, Some(key), Want::Look)?;
    let header = store.session(&id)?.header;
    let entries = log::read(store)?.entries;
    let of_it = entries.iter().filter(|entry| entry.session == id);
    let acts = Acts::of(of_it, std::slice::from_ref(&header));
    let is_past = |deed: &Deed| !is_of_held(deed) && header.went_on_since(deed.generation);
    let may = |deed: &&Deed| acts.stands(deed) && deed.inverse != Inverse::None && !is_past(deed);
    let deed = match acts.lost {
        None => acts.all.iter().find(may).cloned(),
        Some(_) => Deed::of_newest(&header).filter(|deed| deed.inverse != Inverse::None),
    };
    deed.ok_or_else(|| {
        let state = header.status().word().replace('_', " ");
        let problem = Error::refused(format!("session {} is {state}: nothing to undo", id.tail()));
        let verb = match header.status() {
            Status::RolledBack => "redo",
            Status::Pending if header.steps.is_some() => "steps",
            _ => "show",
        };
        problem.with_remedy(command(format_args!("{verb} {}", id.tail())))
    })
}

/// Shows what an act's inverse would do to the tree, and asks.
fn ask(call: &Call, store: &Store, deed: &Deed, would: impl FnOnce() -> Result<Report, Error>) -> Result<(), Error> {
    if call.yes || !call.can_ask {
        return Ok(());
    }
    let report = would()?;
    if report.rows.is_empty() {
        return Ok(());
    }
    call.out.say(format_args!("recant: undo takes back: {}", what(store, deed)));
    for row in report.rows.iter().take(SHOWN) {
        call.out.say(format_args!("  {:<9} {}", apply::word(report.verb, row.done), call.out.shown(&row.path)));
    }
    if let Some(more) = report.rows.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        let all = command(format_args!("{} {} --dry-run -v", report.verb.word(), deed.session.tail()));
        call.out.say(format_args!("  … and {more} more: {all}"));
    }
    let again = if report.verb == Verb::Redo { "Commit" } else { "Take" };
    let end = if report.verb == Verb::Redo { "again" } else { "back" };
    call.confirm(&format!("{again} {} {end}?", text::count(report.rows.len() as u64, "change")))
}

/// An act in words: what it was, on what, when and by whom.
fn what(store: &Store, deed: &Deed) -> String {
    let verb = deed.verb.as_deref().unwrap_or("a run");
    let by = match &deed.acted.by {
        Some(by) => format!(", by {by}"),
        None if is_own(store, deed) => String::new(),
        None => format!(", by user {}", deed.acted.uid),
    };
    let session = store.session(&deed.session).ok();
    let of = session.and_then(|session| session.header.command).map(|of| format!(" ({of})")).unwrap_or_default();
    text::within(&format!("{verb} of session {}{by}, {}{of}", deed.session.tail(), text::day(deed.time)), 54)
}

/// Brings a discarded session back.
fn bring_back(call: &Call, store: &Store, deed: &Deed, takes_back: TakesBack, dry_run: bool) -> Result<Ended, Error> {
    let (id, tail) = (&deed.session, deed.session.tail());
    let header = store.session(id)?.header;
    let changes = text::count(header.counts.changes, "change");
    if dry_run {
        call.out.note(format_args!("session {tail} would be brought back: {changes}"));
        return Ok(Ended::Done);
    }
    call.confirm(&format!("Bring session {tail} back, {changes}?"))?;
    let mut session = ready::lock(&call.fs, store, id, |_| Ok(()), || call.prepare_to_change(store))?;
    guard::refuse_a_persons(call, &session)?;
    session.takes_back(takes_back);
    let taken = session.bring_back(&call.fs, store)?;
    let header = &session.header;
    let entry = log::Entry::new(BROUGHT_BACK, id, header.generation, "done", header.counts.changes);
    call.note_in_log(store, &entry.of_act(header));
    if !call.out.is_text() {
        call.out.document(&Back { session: id, changes: header.counts.changes });
    }
    if let Some(name) = taken {
        call.out.warn(format_args!("another session is named {name} by now: {tail} comes back without a name"));
    }
    let state = if header.uncollected { "a run that was cut off".to_owned() } else { header.status().word().replace('_', " ") };
    call.out.note(format_args!("session {tail} is brought back: {changes}, {state}"));
    Ok(Ended::Done)
}

#[derive(serde::Serialize)]
struct Back<'a> {
    session: &'a Id,
    changes: u64,
}

/// Names the undo of turns, if this one would take an agent's hooks away.
fn say_turns(call: &Call, store: &Store, deed: &Deed) {
    let session = store.session(&deed.session).ok();
    let command_of_it = session.and_then(|session| session.header.command);
    let Some(install) = command_of_it.filter(|of| of.starts_with("agent install ")) else { return };
    if agents::turns::newest(call).is_some() {
        let undo = command("agent undo");
        call.out.note(text::filled(&format!("the newest act is {install}; {undo} takes back what an agent's turn wrote")));
    }
}

fn nothing(verb: &str) -> Error {
    let why = if verb == "redo" { "the newest act here is no undo" } else { "no act of this project has an undo left" };
    Error::refused(format!("nothing to {verb}: {why}")).with_remedy(command("log lists what was done"))
}

/// The error that the newest act is no undo; it names the redo of a rollback that is the newest.
fn no_undo(acts: &Acts) -> Error {
    let problem = nothing("redo");
    match acts.all.first().filter(|deed| deed.inverse == Inverse::Redo) {
        Some(deed) => problem.with_remedy(command(format_args!("redo {}", deed.session.tail()))),
        None => problem,
    }
}

/// The error that nobody can be asked.
fn unasked(deed: &Deed) -> Error {
    let yes = command(format_args!("undo {} -y", deed.session.tail()));
    Error::new(Kind::Usage, "undo asks first, and there is no terminal").with_remedy(format!("{yes} asks nothing"))
}
