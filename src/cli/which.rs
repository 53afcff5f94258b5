//! Finds the session that a word means. `last`: the newest one of this project on which the verb can act. A name: the same of those with
//! that name, or the only one that has it. A verb that only reads takes the store's newest if this project has none.

use super::problem::Problem;
use super::scope::{Scope, begun_in};
use super::{Call, collect};
use crate::engine::job::Verb;
use crate::error::{Error, Kind, Reason, command};
use crate::session::confirm;
use crate::session::header::{Checkpoint, Header, Origin};
use crate::session::id::Id;
use crate::session::prune::is_awaited;
use crate::session::store::{Named, Store};

/// The act that a verb wants to do with the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// To read it.
    Look,
    /// To commit it.
    Commit,
    /// To roll it back.
    RollBack,
    /// To redo it.
    Redo,
    /// To drop what it holds.
    Discard,
    /// To let its commit stay.
    Confirm,
    /// To stage changes in it.
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
    pub fn fits(self, store: &Store, header: &Header) -> bool {
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
            Want::Redo => counts.inside < counts.ever_in && !is_final,
            // If it is partial, the verb says what can be done: it must not drop an older one in its place.
            Want::Discard => is_awaited(header),
            // An unreadable record counts; the verb reports it.
            Want::Confirm => !matches!(confirm::read(store, &header.id), Ok(None)),
            Want::Stage => header.origin == Origin::Staged && counts.ever_in == 0,
            Want::GoOn | Want::Rewind | Want::Fork => {
                header.origin == Origin::Captured && (counts.changes > 0 || header.steps.is_some()) && counts.ever_in == 0
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
/// Errors: `key` means nothing; no session of this project; several elsewhere.
pub fn find(call: &Call, store: &Store, key: &str, want: Want) -> Result<Id, Problem> {
    if key != "last" {
        return match store.look_up(key).map_err(|error| or_pending_here(call, store, error))? {
            Named::Id(id) => Ok(id),
            Named::Name(all) => called(call, store, key, want, &all),
        };
    }
    // A call from another machine has no project here.
    let (id, note) = if call.is_far { (collect::newest(call, store)?, None) } else { last(call, store, want)? };
    if call.last.replace(Some(id.clone())).as_ref() != Some(&id) {
        call.out.note(format_args!("last is {id}{}", note.unwrap_or_default()));
    }
    Ok(id)
}

/// The scope of a verb. One that only reads goes on without a working directory.
fn scope(call: &Call, want: Want) -> Result<Scope, Problem> {
    Scope::of(call).or_else(|problem| if want == Want::Look { Ok(Scope::everywhere()) } else { Err(problem) })
}

/// The session that a name means to a verb, among all that have the name, the newest first: the newest of this project on which it can
/// act, else the only one. If several are of other projects, it is ambiguous.
fn called(call: &Call, store: &Store, name: &str, want: Want, all: &[Header]) -> Result<Id, Problem> {
    let scope = scope(call, want)?;
    let kept: Vec<&Header> = all.iter().filter(|header| header.discarded.is_none()).collect();
    let (here, elsewhere): (Vec<&Header>, Vec<&Header>) = kept.iter().partition(|header| scope.has(store, header));
    let fits = |header: &&&Header| want.fits(store, header);
    if let Some(fit) = here.iter().find(fits) {
        let passed = Passed(here.iter().take_while(|header| header.id != fit.id).map(|header| Passed::text_of(header)).collect());
        passed.say(call);
        return Ok(fit.id.clone());
    }
    match elsewhere.iter().find(fits) {
        Some(fit) if kept.len() > 1 && want != Want::Look => Err(which_of(store, name, want, &here, fit)),
        Some(fit) => {
            let place = begun_in(store, fit).map(|dir| format!(", begun in {}", call.out.place(&dir))).unwrap_or_default();
            call.out.note(format_args!("{name} is session {}{place}", fit.id.tail()));
            Ok(fit.id.clone())
        }
        // The verb itself says why it cannot act on it.
        None => Ok(here.first().or(kept.first()).map_or(&all[0], |header| *header).id.clone()),
    }
}

/// The error if several sessions have the name, and the one on which the verb can act is of another project.
fn which_of(store: &Store, name: &str, want: Want, here: &[&Header], fit: &Header) -> Problem {
    let state = match here.first() {
        Some(header) => format!("nothing was changed; here: {}", Passed::text_of(header)),
        None => "nothing was changed".into(),
    };
    let problem = Problem::refused(format!("no session of this project that is named {name} can be {}", want.done()));
    Problem { state: Some(state), ..problem }.remedy(newest_elsewhere(store, want, fit))
}

/// The newest session of this project that fits, and a note on it.
fn last(call: &Call, store: &Store, want: Want) -> Result<(Id, Option<String>), Problem> {
    let here = match Scope::here() {
        Ok(here) => here,
        Err(_) if want == Want::Look => return Ok((collect::newest(call, store)?, None)),
        Err(problem) => return Err(problem),
    };
    let (headers, _) = store.headers()?;
    let mut passed = Passed::default();
    for header in headers.iter().rev().filter(|header| counts(want, header) && here.has(store, header)) {
        match collected(call, store, header, want)? {
            Some(header) if want.fits(store, &header) => {
                passed.say(call);
                return Ok((header.id, None));
            }
            Some(header) => passed.0.push(Passed::text_of(&header)),
            None => {}
        }
    }
    if want == Want::Look {
        let id = collect::newest(call, store)?;
        let dir = begun_in(store, &store.session(&id)?.header);
        return Ok((id, dir.map(|dir| format!(", begun in {dir}: this project has none"))));
    }
    let elsewhere = headers.iter().rev().find(|header| want.fits(store, header) && !here.has(store, header));
    Err(none_here(store, &here, want, elsewhere, &passed))
}

/// The session that `key` means, found without effects: no run is collected, and nothing is printed.
pub fn meant(call: &Call, key: &str, want: Want) -> Option<Id> {
    let (Ok(Some(store)), Ok(here)) = (call.store(), Scope::of(call)) else { return None };
    let all = match key {
        "last" => store.headers().ok()?.0.into_iter().rev().filter(|header| !header.beside).collect(),
        key => match store.look_up(key).ok()? {
            Named::Id(id) => return Some(id),
            Named::Name(all) => all,
        },
    };
    let fits = |header: &&Header| want.fits(store, header);
    let only = || all.iter().find(fits).filter(|_| all.len() == 1);
    all.iter().find(|header| fits(header) && here.has(store, header)).or_else(only).map(|header| header.id.clone())
}

/// True if a session could be `last`, or has to be named as passed over.
fn counts(want: Want, header: &Header) -> bool {
    let empty_desk = want == Want::Stage && header.origin == Origin::Staged;
    !header.beside
        && header.discarded.is_none()
        && (header.counts.changes > 0 || header.steps.is_some() || header.uncollected || empty_desk)
}

/// The header of a session after its run is collected, if that was cut off and the verb could act on its changes: else an older session
/// would count as the newest. `None` for a first run that is under way or left nothing.
fn collected(call: &Call, store: &Store, header: &Header, want: Want) -> Result<Option<Header>, Problem> {
    if !header.uncollected || !want.fits(store, header) {
        return Ok(Some(header.clone()));
    }
    let mut locked = match store.lock_session(&call.fs, &header.id) {
        // A further run works in a session that exists, which is meant: the verb says what it cannot do now.
        Err(error) if error.kind() == Kind::Busy && header.counts.changes > 0 => return Ok(Some(header.clone())),
        Err(error) if error.kind() == Kind::Busy => {
            call.out.note(format_args!("a run of session {} is under way: it is not meant by 'last' yet", header.id));
            return Ok(None);
        }
        locked => locked?,
    };
    if locked.header.uncollected && collect::collect(call, store, &mut locked).is_err() {
        // It is meant all the same: the verb says why it cannot be collected.
        return Ok(Some(header.clone()));
    }
    Ok((locked.header.counts.changes > 0).then(|| locked.header.clone()))
}

/// Newer sessions of this project that were passed over: the verb cannot act on them.
#[derive(Default)]
struct Passed(Vec<String>);

impl Passed {
    /// The most that are named.
    const NAMED: usize = 3;

    /// A session and its status.
    fn text_of(header: &Header) -> String {
        let pruned = if header.checkpoint == Checkpoint::Pruned { ", its checkpoint pruned" } else { "" };
        format!("{} ({}{pruned})", header.id.tail(), header.status().word().replace('_', " "))
    }

    fn text(&self) -> Option<String> {
        let named = self.0.iter().take(Self::NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        match self.0.len() {
            0 => None,
            n if n > Self::NAMED => Some(format!("{named} and {} more", n - Self::NAMED)),
            _ => Some(named),
        }
    }

    fn say(&self, call: &Call) {
        if let Some(text) = self.text() {
            call.out.note(format_args!("passed over: {text}"));
        }
    }
}

fn none_here(store: &Store, here: &Scope, want: Want, elsewhere: Option<&Header>, passed: &Passed) -> Problem {
    let project = here.project.as_ref().map(|project| format!(": {project}")).unwrap_or_default();
    let problem = Problem::refused(format!("no session of this project can be {}{project}", want.done()));
    let state = passed.text().map(|text| format!("nothing was changed; here: {text}")).or(problem.state.clone());
    let remedy = match elsewhere {
        None => command("list --all shows all sessions"),
        Some(header) => newest_elsewhere(store, want, header),
    };
    Problem { state, ..problem }.remedy(remedy)
}

fn newest_elsewhere(store: &Store, want: Want, header: &Header) -> String {
    let place = begun_in(store, header).map(|dir| format!(", begun in {dir}")).unwrap_or_default();
    format!("the newest elsewhere{place}: {}", want.command(&header.id))
}

/// Names the sessions that are pending in this project, if no name is similar.
fn or_pending_here(call: &Call, store: &Store, error: Error) -> Problem {
    let is_far_off = error.reason() == Some(&Reason::Unknown { near: false });
    let problem = Problem::from(error);
    let pending = if is_far_off { pending_here(call, store) } else { Vec::new() };
    if pending.is_empty() {
        return problem;
    }
    let list = command("list --all shows all sessions");
    problem.remedy(format!("pending here: {}; {list}", pending.join(", ")))
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
