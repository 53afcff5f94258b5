//! `undo` and `redo` without an id: the newest act of this project, or of a session, taken back.

use serde::Serialize;

use super::act::acted::Acted;
use super::agent::project_turns::Here;
use super::desk::Desk;
use super::discard::{Sessions, again};
use super::error::{self, Never};
use super::fact::Fact;
use super::question::Question;
use super::redo;
use super::resolve::guard;
use super::resolve::scope::Scope;
use super::resolve::target::{Target, What};
use super::resolve::wanted_act::Want;
use super::rollback::{Rollback, rollback};
use super::summary::{self, Way};
use crate::engine::{Report, Verb, recover_and_lock};
use crate::error::Error;
use crate::session::{Acts, BROUGHT_BACK, Checkpoint, Header, Id, Inverse, Status, Store, TakesBack, UndoableAct, log};

/// The options of an undo.
#[derive(Debug, Clone, Copy, Default)]
pub struct How {
    /// True if it is only to tell what it would do.
    pub dry_run: bool,
    /// True if the changes are taken out of files that somebody has edited since.
    pub merge: bool,
    /// True if it goes on over conflicts.
    pub force: bool,
}

/// An act that was taken back, or would be.
pub enum Undone {
    /// A commit, rollback or redo. `None`: there was nothing to do, as was told.
    Acted(Option<Box<Acted>>),
    Back(BroughtBack),
    Discarded(Sessions),
}

/// A discarded session that is there again, or would be. JSON: docs/json.md.
#[derive(Debug, Serialize)]
pub struct BroughtBack {
    pub session: Id,
    pub changes: u64,
    /// Its status now; `None` where it only would come back.
    #[serde(skip)]
    pub status: Option<Status>,
    /// True for a run that was cut off, of which nobody knows yet what it changed.
    #[serde(skip)]
    pub uncollected: bool,
}

/// Takes an act back after a person at the terminal has seen what that does, or with `-y`: the newest of the session that `key` means, else of
/// this project.
///
/// # Errors
/// There is no such act, or it is not the caller's to take back unasked; all that stands against the act's inverse.
pub fn undo(desk: &Desk, key: Option<&str>, how: How) -> Result<Undone, Error> {
    let store = desk.store()?.ok_or_else(error::nothing_to_undo)?;
    let deed = match key {
        Some(key) => of_session(desk, store, key),
        None => newest(desk, store, how.dry_run),
    };
    if let Some(variable) = guard::limited(desk).filter(|_| !how.dry_run)
        && !deed.as_ref().is_ok_and(|deed| is_own(store, deed) && is_of_held(deed))
    {
        return Err(deed.map_or_else(|nothing| nothing, |deed| error::refused(variable, error::undo_of(&deed.session))));
    }
    let deed = deed?;
    if key.is_none() && !how.dry_run {
        refuse_others(desk, store, &deed)?;
    }
    if !how.dry_run && !desk.yes && !desk.can_ask {
        return Err(error::undo_unasked(&deed.session));
    }
    carry_out(desk, store, &deed, TakesBack::Undoes(deed.n), how)
}

/// Takes the newest undo back.
///
/// # Errors
/// The newest act is no undo; all that stands against the act's inverse.
pub fn redo_newest(desk: &Desk, how: How) -> Result<Undone, Error> {
    let store = desk.store()?.ok_or_else(|| error::nothing_to_redo(None))?;
    let acts = acts(desk, store)?;
    let deed = acts.to_redo(|deed| is_ours(store, deed)).ok_or_else(|| {
        let newest = acts.all.first().filter(|deed| deed.inverse == Inverse::Redo);
        error::nothing_to_redo(newest.map(|deed| &deed.session))
    })?;
    if let Some((_, id)) = acts.lost.as_ref().filter(|(n, _)| *n > deed.n) {
        return Err(lost(store, id, None));
    }
    // What was undone was seen then.
    carry_out(desk, store, deed, TakesBack::Redoes(deed.n), How { merge: false, ..how })
}

/// Carries out the inverse of an act. An undo asks before that.
fn carry_out(desk: &Desk, store: &Store, deed: &UndoableAct, takes_back: TakesBack, how: How) -> Result<Undone, Error> {
    let How { dry_run, merge, force } = how;
    let what = deed.acted.purpose.part.clone().map_or(What::All, What::Moved);
    let of = Target { what, dry_run, takes_back: Some(takes_back), ..Target::all(deed.session.as_str()) };
    let is_undo = matches!(takes_back, TakesBack::Undoes(_));
    let asks = is_undo && !dry_run && !merge && !desk.yes && desk.can_ask;
    let to_tell = || of.clone().dry_run();
    let acted = match deed.inverse {
        Inverse::RollBack => {
            if is_undo {
                say_turns(desk, store, deed);
            }
            if asks && let Some(would) = rollback(desk, &Rollback { of: to_tell(), merge, force })? {
                ask(desk, store, deed, &would.report)?;
            }
            let acted = rollback(desk, &Rollback { of, merge, force })?;
            say_unnoted(desk, note_done(desk, store, deed, Verb::Rollback, (takes_back, dry_run)));
            acted
        }
        Inverse::Redo => {
            if asks {
                ask(desk, store, deed, &redo::redo(desk, &to_tell(), force)?.report)?;
            }
            let acted = redo::redo(desk, &of, force)?;
            say_unnoted(desk, note_done(desk, store, deed, Verb::Redo, (takes_back, dry_run)));
            Some(acted)
        }
        Inverse::BringBack => return bring_back(desk, store, deed, takes_back, dry_run).map(Undone::Back),
        Inverse::Discard => return again(desk, store, &deed.session, takes_back, dry_run).map(Undone::Discarded),
        Inverse::None => return Err(error::nothing_to_undo()),
    };
    Ok(Undone::Acted(acted.map(Box::new)))
}

/// Warns if that could not be noted: the act itself is done, and its report is owed.
fn say_unnoted(desk: &Desk, noted: Result<(), Error>) {
    if let Err(error) = noted {
        desk.caller.tell(Fact::NotLogged(&error));
    }
}

/// Notes that an act is taken back whose inverse found all as it is to be: no operation says so, and the next undo would meet it again.
fn note_done(
    desk: &Desk,
    store: &Store,
    deed: &UndoableAct,
    verb: Verb,
    (takes_back, dry_run): (TakesBack, bool),
) -> Result<(), Error> {
    let is_it = |entry: &log::Entry| entry.purpose.takes_back == Some(takes_back);
    if dry_run || log::read(store)?.entries.iter().rev().any(is_it) {
        return Ok(());
    }
    let mut session = store.lock_session(&desk.fs, &deed.session)?;
    session.takes_back(takes_back);
    let header = Header { acted: Some(session.act(&desk.fs)?), ..session.header.clone() };
    session.save(&desk.fs, header)?;
    let entry = log::Entry::new(verb.word(), session.id(), session.header.generation, "done", 0);
    desk.note_in_log(store, &entry.of_act(&session.header));
    Ok(())
}

/// The acts in this project.
fn acts(desk: &Desk, store: &Store) -> Result<Acts, Error> {
    let (scope, entries) = (Scope::of(desk)?, log::read(store)?.entries);
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

/// The error if the log lacks the newest act, which is on this session. `before`: the act before it.
fn lost(store: &Store, id: &Id, before: Option<&UndoableAct>) -> Error {
    let newest = store.session(id).ok().and_then(|session| UndoableAct::of_newest(&session.header));
    let remedy = match (newest, before) {
        (Some(newest), _) if newest.inverse != Inverse::None => Some(error::takes_it_back(&newest.session)),
        (_, before) => before.map(|before| error::before_it(&before.session)),
    };
    error::not_in_log(id, remedy)
}

fn is_own(store: &Store, deed: &UndoableAct) -> bool {
    deed.acted.is_own(store.by.as_ref())
}

/// True for an act on what is held alone.
fn is_of_held(deed: &UndoableAct) -> bool {
    matches!(deed.inverse, Inverse::BringBack | Inverse::Discard | Inverse::None)
}

/// True for an act that is the caller's to take back: what others did to held sessions is not.
fn is_ours(store: &Store, deed: &UndoableAct) -> bool {
    !is_of_held(deed) || is_own(store, deed)
}

/// The reason why an act cannot be taken back any more.
fn never(store: &Store, deed: &UndoableAct) -> Option<Never> {
    let (is_rollback, is_redo) = (deed.inverse == Inverse::RollBack, deed.inverse == Inverse::Redo);
    match store.session(&deed.session).map(|session| session.header) {
        Err(error) if error.is_unknown() => Some(Never::Pruned),
        Ok(header) if deed.inverse == Inverse::BringBack && header.freed => Some(Never::Freed),
        Ok(header) if is_rollback && header.checkpoint == Checkpoint::Pruned => Some(Never::WithoutCheckpoint),
        Ok(header) if (is_redo || is_rollback) && header.went_on_since(deed.generation) => Some(Never::WentOn),
        Ok(header) if is_rollback && header.counts.inside == 0 => Some(Never::NotOnTree),
        Ok(header) if is_redo && header.discarded.is_some() => Some(Never::Discarded),
        _ => None,
    }
}

/// The newest act of the project that has an inverse and is not undone. What others did to held sessions is passed over, and said.
fn newest(desk: &Desk, store: &Store, dry_run: bool) -> Result<UndoableAct, Error> {
    let acts = acts(desk, store)?;
    let ours: Vec<&UndoableAct> = acts.all.iter().filter(|deed| is_ours(store, deed)).collect();
    let mut standing = ours.iter().copied().filter(|deed| acts.stands(deed)).peekable();
    let own = standing.next_if(|deed| deed.inverse == Inverse::None && ours.first() == Some(deed));
    let mut inverted = standing.filter(|deed| deed.inverse != Inverse::None);
    let deed = inverted.next();
    let mut before = || inverted.find(|deed| never(store, deed).is_none());
    if let Some(own) = own {
        say_or_refuse(desk, store, own, deed.filter(|deed| never(store, deed).is_none()).or_else(&mut before), dry_run)?;
    }
    if let Some((_, id)) = acts.lost.as_ref().filter(|(n, _)| deed.is_none_or(|deed| *n > deed.n)) {
        return Err(lost(store, id, deed));
    }
    let deed = deed.ok_or_else(error::nothing_to_undo)?;
    if let Some(why) = never(store, deed) {
        return Err(error::never(&deed.session, why, before().map(|before| &before.session)));
    }
    let others: Vec<&UndoableAct> = acts.all.iter().filter(|other| other.n > deed.n && !is_ours(store, other)).collect();
    if let [newest, ..] = &others[..] {
        desk.caller.tell(Fact::PassedOver { count: others.len(), newest: &newest.session });
    }
    Ok(deed.clone())
}

/// Refuses to take back unasked what somebody else did.
fn refuse_others(desk: &Desk, store: &Store, deed: &UndoableAct) -> Result<(), Error> {
    if is_own(store, deed) || desk.can_ask && !desk.yes {
        return Ok(());
    }
    Err(error::not_yours(&deed.session, &what(store, deed)))
}

/// Names the caller's own newest act, which `undo` does not take back; refuses where nobody can be asked about the one before it.
fn say_or_refuse(
    desk: &Desk,
    store: &Store,
    own: &UndoableAct,
    before: Option<&UndoableAct>,
    dry_run: bool,
) -> Result<(), Error> {
    let newest = error::newest_is(&own.session, own.verb.as_deref(), step_below(store, &own.session));
    if desk.can_ask && !desk.yes || dry_run {
        desk.caller.tell(Fact::Newest(&newest));
        return Ok(());
    }
    Err(error::has_no_undo(newest, before.map(|before| &before.session)))
}

/// The step that the head of a session of several stands on.
fn step_below(store: &Store, id: &Id) -> Option<u32> {
    let session = store.session(id).ok()?;
    session.header.steps.as_ref()?;
    let list = session.steps().ok()?;
    Some(list.get(&session.header, session.header.head()).ok()?.on)
}

/// The newest act on the session of a call that has an inverse and is not undone; where the log lacks the newest, that one.
fn of_session(desk: &Desk, store: &Store, key: &str) -> Result<UndoableAct, Error> {
    let id = desk.find(store, Some(key), Want::Look)?;
    let header = store.session(&id)?.header;
    let entries = log::read(store)?.entries;
    let of_it = entries.iter().filter(|entry| entry.session == id);
    let acts = Acts::of(of_it, std::slice::from_ref(&header));
    let is_past = |deed: &UndoableAct| !is_of_held(deed) && header.went_on_since(deed.generation);
    let may = |deed: &&UndoableAct| acts.stands(deed) && deed.inverse != Inverse::None && !is_past(deed);
    let deed = match acts.lost {
        None => acts.all.iter().find(may).cloned(),
        Some(_) => UndoableAct::of_newest(&header).filter(|deed| deed.inverse != Inverse::None),
    };
    deed.ok_or_else(|| error::nothing_of(&header))
}

/// Asks about what an act's inverse would do to the tree.
fn ask(desk: &Desk, store: &Store, deed: &UndoableAct, would: &Report) -> Result<(), Error> {
    if would.rows.is_empty() || desk.yes || !desk.can_ask {
        return Ok(());
    }
    let summed = summary::of_report(desk, (&deed.session, Way::of(would.verb)), would);
    desk.confirm(Question::Undo { act: &what(store, deed), would, id: &deed.session, summed })
}

/// An act in words: what it was, on what, when and by whom.
fn what(store: &Store, deed: &UndoableAct) -> String {
    let command = store.session(&deed.session).ok().and_then(|session| session.header.command);
    error::act_of(deed, is_own(store, deed), command.as_deref())
}

/// Brings a discarded session back.
fn bring_back(
    desk: &Desk,
    store: &Store,
    deed: &UndoableAct,
    takes_back: TakesBack,
    dry_run: bool,
) -> Result<BroughtBack, Error> {
    let id = &deed.session;
    let changes = store.session(id)?.header.counts.changes;
    if dry_run {
        return Ok(BroughtBack { session: id.clone(), changes, status: None, uncollected: false });
    }
    desk.confirm(Question::BringBack { id, changes })?;
    let mut session = recover_and_lock::lock(&desk.fs, store, id, |_| Ok(()), || desk.prepare_to_change(store))?;
    guard::refuse_a_persons(desk, &session)?;
    session.takes_back(takes_back);
    let taken = session.bring_back(&desk.fs, store)?;
    let header = &session.header;
    let entry = log::Entry::new(BROUGHT_BACK, id, header.generation, "done", header.counts.changes);
    desk.note_in_log(store, &entry.of_act(header));
    if let Some(name) = &taken {
        desk.caller.tell(Fact::NameTaken { id, name });
    }
    let (status, uncollected) = (Some(header.status()), header.uncollected);
    Ok(BroughtBack { session: id.clone(), changes: header.counts.changes, status, uncollected })
}

/// Names the undo of turns, if this one would take an agent's hooks away.
fn say_turns(desk: &Desk, store: &Store, deed: &UndoableAct) {
    let session = store.session(&deed.session).ok();
    let command = session.and_then(|session| session.header.command);
    if let Some(install) = command.filter(|of| of.starts_with("agent install ")).filter(|_| Here::if_any(desk).is_some()) {
        desk.caller.tell(Fact::TakesHooksAway(&install));
    }
}
