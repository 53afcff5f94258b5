//! Finds the session that a word means. `last`: that of the newest act in this project. A name: the newest session of this project that got
//! it, or the only one that has it. No word reaches further back because a verb cannot act on what it means. A verb that only reads takes
//! the store's newest if this project has none.

use super::call::Call;
use super::collect;
use super::scope::{Scope, begun_in};
use crate::engine::job::Verb;
use crate::error::{Error, Kind, Reason, command};
use crate::session::act::Acted;
use crate::session::header::{Checkpoint, Header, Origin};
use crate::session::id::Id;
use crate::session::prune::is_awaited;
use crate::session::store::{Named, Store};

/// The act that a verb wants to do with the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    Look,
    Commit,
    RollBack,
    Redo,
    /// To drop what it holds.
    Discard,
    /// To let its commit stay.
    Confirm,
    Stage,
    /// To run a further command in it.
    GoOn,
    /// To make it stand at another step.
    Rewind,
    /// To begin another session as it is at a step.
    Fork,
    /// To change something else about it: its name, or what the store keeps of it.
    Tend,
}

impl From<Verb> for Want {
    fn from(verb: Verb) -> Self {
        match verb {
            Verb::Commit => Want::Commit,
            Verb::Rollback => Want::RollBack,
            Verb::Redo => Want::Redo,
        }
    }
}

impl Want {
    /// Tells whether the verb can act on a session, as far as its header tells. A run that is under way, or not collected yet, counts as a
    /// pending session.
    pub fn fits(self, header: &Header) -> bool {
        let counts = header.counts;
        if header.discarded.is_some() {
            return false;
        }
        if header.uncollected {
            return !matches!(self, Want::RollBack | Want::Redo | Want::Confirm | Want::Stage);
        }
        let is_final = header.checkpoint == Checkpoint::Pruned && counts.inside > 0;
        match self {
            Want::Look | Want::Tend => counts.changes > 0 || header.steps.is_some(),
            // What was rolled back is committed again by redo, or by its id.
            Want::Commit => is_awaited(header) && !is_final,
            Want::RollBack => counts.inside > 0 && !is_final,
            Want::Redo => counts.inside < counts.ever_in && !is_final || header.is_as_undone(),
            // If some of it is on the tree, the verb says what can be done: it must not drop an older one in its place.
            Want::Discard => is_awaited(header),
            Want::Confirm => header.waits().is_some(),
            Want::Stage => header.origin == Origin::Staged && counts.ever_in == 0,
            Want::GoOn | Want::Rewind | Want::Fork => {
                let holds = counts.changes > 0 || header.steps.is_some();
                header.origin == Origin::Captured && holds && (counts.ever_in == 0 || header.may_reopen())
            }
        }
    }

    /// The participle of the act, for messages.
    fn done(self) -> &'static str {
        match self {
            Want::Look => "shown",
            Want::Commit => "committed",
            Want::RollBack => "rolled back",
            Want::Redo => "redone",
            Want::Discard => "discarded",
            Want::Confirm => "confirmed",
            Want::Stage => "staged in",
            Want::GoOn => "gone on in",
            Want::Rewind => "rewound",
            Want::Fork => "forked",
            Want::Tend => "changed",
        }
    }

    /// The command for this act on a session of another project.
    fn command(self, id: &Id) -> String {
        command(match self {
            Want::Commit => format!("commit {id}"),
            Want::RollBack => format!("rollback {id}"),
            Want::Redo => format!("redo {id}"),
            Want::Discard => format!("discard {id}"),
            Want::Confirm => format!("confirm {id}"),
            Want::Stage => format!("session write {id} PATH"),
            Want::GoOn => format!("run --session {id} -- COMMAND"),
            Want::Rewind => format!("rewind {id} STEP"),
            Want::Fork => format!("fork {id}"),
            Want::Look | Want::Tend => format!("show {id}"),
        })
    }
}

/// The session that `key` means. Says which session `last` is, and which one a name is if it is another project's.
///
/// Errors: `key` means nothing; the verb cannot act on `last`, or somebody else acted on it; no session of this project; several elsewhere.
pub fn find(call: &Call, store: &Store, key: &str, want: Want) -> Result<Id, Error> {
    let id = find_to_look(call, store, key, want)?;
    if key == "last" {
        ask_of_others(call, store, want, &store.session(&id)?.header)?;
    }
    Ok(id)
}

/// As [`find`], for a verb that only says what it would do.
pub fn find_to_look(call: &Call, store: &Store, key: &str, want: Want) -> Result<Id, Error> {
    if let Some((of, _)) = at_step(key) {
        let id = find_to_look(call, store, of, want)?;
        return refuse_gone_on(key, &store.session(&id)?.header).map(|()| id);
    }
    if key != "last" {
        return match store.look_up(key).map_err(|error| or_pending_here(call, store, error))? {
            Named::Id(id) => Ok(id),
            Named::Name(all) => called(call, store, key, want, &all),
        };
    }
    let (id, note) = last(call, store, want)?;
    if call.last.replace(Some(id.clone())).as_ref() != Some(&id) {
        call.out.note(format_args!("last is {id}{}", note.unwrap_or_default()));
    }
    Ok(id)
}

/// The two parts of `ID@N`: no id and no name has an `@`.
fn at_step(key: &str) -> Option<(&str, u32)> {
    let (key, step) = key.split_once('@')?;
    Some((key, step.parse().ok()?))
}

/// Refuses a session that went on since `key`, as `ID@N`, named its step. Under its lock nobody adds another.
pub fn refuse_gone_on(key: &str, header: &Header) -> Result<(), Error> {
    let Some((_, step)) = at_step(key) else { return Ok(()) };
    let (head, tail) = (header.head(), header.id.tail());
    if head == step {
        return Ok(());
    }
    let problem = Error::refused(format!("session {tail} stands at step {head}, and not at {step}"));
    Err(problem.with_remedy(match step < header.next_step() {
        true => format!("{} shows what came since", command(format_args!("diff {tail} --since {step}"))),
        false => command(format_args!("steps {tail}")),
    }))
}

/// The scope of a verb. One that only reads goes on without a working directory.
fn scope(call: &Call, want: Want) -> Result<Scope, Error> {
    Scope::of(call).or_else(|problem| if want == Want::Look { Ok(Scope::everywhere()) } else { Err(problem) })
}

/// The session that a name means, among all that got it, the newest first: the newest of this project, else the only one. If several are of
/// other projects, it is ambiguous.
fn called(call: &Call, store: &Store, name: &str, want: Want, all: &[Header]) -> Result<Id, Error> {
    let scope = scope(call, want)?;
    let here: Vec<&Header> = all.iter().filter(|header| scope.has(store, header)).collect();
    if let Some(meant) = newest_called(&here, want) {
        let older = here.iter().find(|header| header.root() != meant.root() && want.fits(header));
        return match older {
            Some(before) if !want.fits(meant) => Err(does_not_fit(name, want, meant, Some(before))),
            // Without an older one the verb itself says why it cannot act on it.
            _ => Ok(meant.id.clone()),
        };
    }
    match all.iter().find(|header| want.fits(header)) {
        Some(fit) if all.len() > 1 && want != Want::Look => Err(which_of(store, name, want, fit)),
        Some(fit) => {
            let place = begun_in(store, fit).map(|dir| format!(", begun in {}", call.out.place(&dir))).unwrap_or_default();
            call.out.note(format_args!("{name} is session {}{place}", fit.id.tail()));
            Ok(fit.id.clone())
        }
        // The verb itself says why it cannot act on it.
        None => Ok(all[0].id.clone()),
    }
}

/// The session that a name means among those of a project that got it, the newest first: the newest of them, or of its parts the one on which
/// somebody acted last and the verb can act. What looks means what is left.
fn newest_called<'h>(here: &[&'h Header], want: Want) -> Option<&'h Header> {
    let whole = here.iter().find(|header| header.of.is_none()).or(here.first())?;
    let kin = here.iter().filter(|header| header.root() == whole.root() && want != Want::Look && want.fits(header));
    kin.max_by_key(|header| order(header)).or(Some(whole)).copied()
}

/// The error if several sessions have the name, all of other projects.
fn which_of(store: &Store, name: &str, want: Want, fit: &Header) -> Error {
    Error::refused(format!("no session of this project is named {name}")).with_remedy(newest_elsewhere(store, want, fit))
}

/// The session of the newest act in this project, and a note on it.
fn last(call: &Call, store: &Store, want: Want) -> Result<(Id, Option<String>), Error> {
    let scope = scope(call, want)?;
    let (mut headers, _) = store.headers()?;
    headers.retain(|header| !header.beside);
    let (mut here, elsewhere): (Vec<Header>, Vec<Header>) = headers.into_iter().partition(|header| scope.has(store, header));
    here.sort_by_key(order);
    let mut newest = None;
    while let Some(header) = here.pop() {
        match collected(call, store, header)? {
            Some(header) if counts(want, &header) => {
                newest = Some(header);
                break;
            }
            _ => {}
        }
    }
    let Some(newest) = newest else {
        let newest = elsewhere.iter().filter(|header| counts(want, header)).max_by_key(|header| order(header));
        return match newest.filter(|_| want == Want::Look) {
            Some(newest) => {
                let note = begun_in(store, newest).map(|dir| format!(", begun in {dir}: this project has none"));
                Ok((newest.id.clone(), note))
            }
            None => Err(none_here(store, &scope, want, elsewhere.iter().rev().find(|header| want.fits(header)))),
        };
    };
    if want != Want::Look && !want.fits(&newest) {
        let before = here.iter().rev().find(|header| want.fits(header));
        return Err(does_not_fit("last", want, &newest, before));
    }
    Ok((newest.id, None))
}

/// The place of a session's newest act among all acts. A first run that is not collected may have acted last.
fn order(header: &Header) -> (u64, u64) {
    let of_run = if header.uncollected { u64::MAX } else { 0 };
    (header.acted.as_ref().map_or(of_run, |acted| acted.n), header.seq)
}

/// True if somebody acted on a session. One that was begun to stage in it, and holds nothing, is meant for that alone.
fn counts(want: Want, header: &Header) -> bool {
    let is_empty = header.counts.changes == 0 && header.steps.is_none() && header.discarded.is_none();
    header.uncollected || header.acted.is_some() && (!is_empty || want == Want::Stage || want == Want::Tend)
}

/// The header of a session after a run in it that was cut off is collected. `None` for one whose first run is under way, or left nothing.
fn collected(call: &Call, store: &Store, header: Header) -> Result<Option<Header>, Error> {
    if !header.uncollected || header.discarded.is_some() {
        return Ok(Some(header));
    }
    let mut locked = match store.lock_session(&call.fs, &header.id) {
        Err(error) if error.kind() == Kind::Busy && header.acted.is_none() => {
            call.out.note(format_args!("a run of session {} is under way: it is not meant by 'last' yet", header.id));
            return Ok(None);
        }
        // The verb says what it cannot do now.
        Err(error) if error.kind() == Kind::Busy => return Ok(Some(header)),
        locked => locked?,
    };
    if locked.header.uncollected && collect::collect(call, store, &mut locked).is_err() {
        // It is meant all the same: the verb says why it cannot be collected.
        return Ok(Some(header));
    }
    Ok(Some(locked.header.clone()).filter(|header| header.counts.changes > 0))
}

/// Asks before what somebody else did last is decided: it came in between.
fn ask_of_others(call: &Call, store: &Store, want: Want, newest: &Header) -> Result<(), Error> {
    let decides = matches!(want, Want::Commit | Want::RollBack | Want::Redo | Want::Discard);
    let Some(other) = newest.acted.as_ref().filter(|acted| decides && !acted.is_own(store.by.as_ref())) else { return Ok(()) };
    let (tail, whose) = (newest.id.tail(), whose(other));
    if call.can_ask {
        return call.ask(&format!("The newest act here is {whose}, on session {tail}: go on?"));
    }
    let problem = Error::refused(format!("last is {tail}, and the newest act on it is {whose}"));
    Err(problem.with_remedy(want.command(&newest.id)))
}

/// Whose an act was, for a person: `claude 7's`, `user 1000's`.
fn whose(acted: &Acted) -> String {
    match &acted.by {
        Some(by) => format!("{by}'s"),
        None => format!("user {}'s", acted.uid),
    }
}

/// The session that `key` means, found without effects: no run is collected, and nothing is printed.
pub fn meant(call: &Call, key: &str, want: Want) -> Option<Id> {
    let (Ok(Some(store)), Ok(here)) = (call.store(), Scope::of(call)) else { return None };
    let key = at_step(key).map_or(key, |(key, _)| key);
    if key == "last" {
        return newest(store, &here).filter(|newest| want.fits(newest)).map(|newest| newest.id);
    }
    match store.look_up(key).ok()? {
        Named::Id(id) => Some(id),
        Named::Name(all) => {
            let of_here: Vec<&Header> = all.iter().filter(|header| here.has(store, header)).collect();
            let only = || all.first().filter(|_| all.len() == 1);
            newest_called(&of_here, want).or_else(only).map(|header| header.id.clone())
        }
    }
}

/// The session of the newest act in a project. No run is collected for it.
pub fn newest(store: &Store, here: &Scope) -> Option<Header> {
    let (headers, _) = store.headers().ok()?;
    let acted = headers.into_iter().filter(|header| !header.beside && counts(Want::Look, header) && here.has(store, header));
    acted.max_by_key(order)
}

/// The state of a session, for a message.
fn state_of(header: &Header) -> String {
    let pruned = if header.checkpoint == Checkpoint::Pruned { ", its checkpoint pruned" } else { "" };
    format!("{}{}{pruned}", header.status().word().replace('_', " "), super::standing::but(header.counts))
}

/// The error if a verb cannot act on the session that a word means. It names the one before it, on which it can.
fn does_not_fit(word: &str, want: Want, newest: &Header, before: Option<&Header>) -> Error {
    let (tail, state) = (newest.id.tail(), state_of(newest));
    let cannot = if newest.status().word() == want.done() { String::new() } else { format!(": it cannot be {}", want.done()) };
    let problem = Error::refused(format!("{word} is {tail}, which is {state}{cannot}"));
    match before {
        Some(before) => problem.with_remedy(format!("the one before it: {}", want.command(&before.id))),
        None => problem.with_remedy(command(format_args!("show {tail}"))),
    }
}

fn none_here(store: &Store, here: &Scope, want: Want, elsewhere: Option<&Header>) -> Error {
    let project = here.project.as_ref().map(|project| format!(": {project}")).unwrap_or_default();
    let problem = Error::refused(format!("no session of this project can be {}{project}", want.done()));
    problem.with_remedy(match elsewhere {
        None => command("list --all shows all sessions"),
        Some(header) => newest_elsewhere(store, want, header),
    })
}

fn newest_elsewhere(store: &Store, want: Want, header: &Header) -> String {
    let place = begun_in(store, header).map(|dir| format!(", begun in {dir}")).unwrap_or_default();
    format!("the newest elsewhere{place}: {}", want.command(&header.id))
}

/// Names the sessions that are pending in this project, if no name is similar.
fn or_pending_here(call: &Call, store: &Store, error: Error) -> Error {
    let is_far_off = error.reason() == Some(&Reason::Unknown { near: false });
    let problem = error;
    let pending = if is_far_off { pending_here(call, store) } else { Vec::new() };
    if pending.is_empty() {
        return problem;
    }
    let list = command("list --all shows all sessions");
    problem.with_remedy(format!("pending here: {}; {list}", pending.join(", ")))
}

/// The newest three pending sessions, with their names.
fn pending_here(call: &Call, store: &Store) -> Vec<String> {
    let (Ok(here), Ok((headers, _))) = (Scope::of(call), store.headers()) else { return Vec::new() };
    let pending = headers.iter().rev().filter(|header| {
        let counts = header.counts;
        header.discarded.is_none() && counts.changes > 0 && counts.ever_in == 0 && here.has(store, header)
    });
    let show = |header: &Header| {
        let name = header.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        format!("{}{name}", header.id.tail())
    };
    pending.take(3).map(show).collect()
}
