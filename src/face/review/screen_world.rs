//! `review`: what the screen looks at, and what its acts do. Each act is the verb that a person could type, carried out by the same code.

use super::acts::Acts;
use super::compare::Compare;
use super::error_lines::said;
use super::{lists, pair, session as of_session, snapshot};
use crate::compare::Taken;
use crate::error::Error;
use crate::face::args;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::screen::world;
use crate::face::screen::world::{Act, Decision, Look, Place, Planned, Program, Row, ViewedChanges, World};
use crate::fs::{AbsPath, Presence, interrupt};
use crate::remedy::shell;
use crate::session::Id;
use crate::verb::agent::project_turns::Here;
use crate::verb::parts::picks;
use crate::verb::resolve::find_session;
use crate::verb::{Want, to_decide};
use std::io::IsTerminal;

/// The subject that the screen was opened for.
enum Subject {
    Session(Id),
    /// The heads of two sessions.
    Pair(Id, Id),
    /// A snapshot of a directory against what is there now.
    Snapshot(AbsPath, u64),
}

/// The subject and the acts on it.
struct Reviewed<'c> {
    call: &'c Call,
    store: AbsPath,
    subject: Subject,
    acts: Acts<'c>,
    /// Shows that the session is looked at; a hint, which may be missing.
    presence: Option<Presence>,
    /// True if the project has turns of agents.
    has_turns: bool,
    /// With `--next`: the sessions that were shown.
    shown: Option<Vec<Id>>,
}

/// Shows the screen.
///
/// # Errors
/// There is no terminal, or a small one (2); what is to be shown cannot be read.
pub fn review(call: &Call, args: &args::Review) -> Result<Ended, Error> {
    refuse_without_terminal(call)?;
    let waiting = if args.next { to_decide(call)? } else { Vec::new() };
    let subject = match waiting.first() {
        Some(id) => session(call, Some(id.as_str()))?,
        None if args.next => {
            call.out.note(NOTHING_WAITS);
            return Ok(Ended::Done);
        }
        None => subject(call, args)?,
    };
    let store = call.store_path()?;
    let has_turns = Here::find(call).is_ok_and(|here| here.all().is_ok_and(|turns| !turns.is_empty()));
    let names = call.out.names();
    let mut reviewed = Reviewed { call, store, subject, acts: Acts::new(call), has_turns, shown: None, presence: None };
    reviewed.show_presence();
    reviewed.shown = args.next.then(|| reviewed.session().cloned().into_iter().collect());
    let show = Box::new(move |path: &AbsPath| names.show(path));
    crate::face::screen::show(&mut reviewed, show, call.out.is_colored()).map_err(Error::refused)?;
    reviewed.acts.said().iter().for_each(|line| call.out.say(line));
    if args.next && to_decide(call)?.is_empty() {
        call.out.note(NOTHING_WAITS);
    }
    Ok(interrupt::status().map_or(Ended::Done, Ended::Asked))
}

const NOTHING_WAITS: &str = "nothing waits";

/// The smallest window: the screen's own words say the same while it is resized.
const SMALLEST: (u16, u16) = (80, 24);

fn refuse_without_terminal(call: &Call) -> Result<(), Error> {
    let usage = |why: String| Error::usage(why);
    if !call.out.is_text() {
        return Err(
            usage("review is a screen, and prints no JSON".into()).with_remedy(shell("recant diff --json") + " is for programs")
        );
    }
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(usage("review is a screen, and there is no terminal".into())
            .with_remedy(shell("recant diff") + " prints the changes"));
    }
    if std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty()) {
        return Err(usage("review needs a terminal that can draw: TERM is unset, or dumb".into())
            .with_remedy(shell("recant diff") + " prints the changes"));
    }
    let (width, height) = SMALLEST;
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 && (size.ws_col < width || size.ws_row < height) => {
            let why =
                format!("the window has {} columns and {} rows, and review needs {width} and {height}", size.ws_col, size.ws_row);
            Err(usage(why).with_remedy("make it larger; " + shell("recant diff") + " prints the changes in any window"))
        }
        _ => Ok(()),
    }
}

fn subject(call: &Call, args: &args::Review) -> Result<Subject, Error> {
    if let Some(key) = &args.snapshot {
        let (directory, n) = snapshot::meant(call, args.dir.as_deref(), key)?;
        return Ok(Subject::Snapshot(directory, n));
    }
    // Who names none wants to decide: the newest that still holds something goes before one that is committed.
    let held = match (&args.id, call.store()?) {
        (None, Some(store)) => find_session::find(call, store, "last", Want::Commit).ok(),
        _ => None,
    };
    let key = held.as_ref().map(Id::as_str).or(args.id.as_deref());
    let subject = session(call, key)?;
    match (subject, &args.with) {
        (Subject::Session(id), Some(other)) => {
            let (_, other) = call.looked_at(Some(other))?;
            crate::verb::diff::refuse_discarded(&other)?;
            Ok(Subject::Pair(id, other.id().clone()))
        }
        (subject, _) => Ok(subject),
    }
}

/// A session, which the person looks at from now on.
fn session(call: &Call, key: Option<&str>) -> Result<Subject, Error> {
    let (store, session) = call.looked_at(key)?;
    crate::verb::diff::refuse_discarded(&session)?;
    call.looked(store, &session);
    Ok(Subject::Session(session.id().clone()))
}

impl Reviewed<'_> {
    /// With `--next`: the sessions that are still to be shown.
    fn further(&self) -> Result<Vec<Id>, Error> {
        let Some(shown) = &self.shown else { return Ok(Vec::new()) };
        let mut waiting = to_decide(self.call)?;
        waiting.retain(|id| !shown.contains(id));
        Ok(waiting)
    }

    /// Shows that the session is looked at: an agent that waits goes on once the person has come to an end.
    fn show_presence(&mut self) {
        self.presence = None;
        let shown = self.session().and_then(|id| of_session::opened(&self.store).ok()?.session(id).ok());
        self.presence = shown.and_then(|session| session.show_review(&self.call.fs).ok().flatten());
    }

    fn session(&self) -> Option<&Id> {
        match &self.subject {
            Subject::Session(id) => Some(id),
            Subject::Pair(..) | Subject::Snapshot(..) => None,
        }
    }
}

impl World for Reviewed<'_> {
    fn look(&mut self, place: &Place) -> Look {
        let store = self.store.clone();
        let has_turns = self.has_turns;
        match (place, &self.subject) {
            (Place::Turn(n), _) => snapshot::of_turn(self.call, *n),
            (Place::Step(n), Subject::Session(id)) => of_session::of_step(store, id.clone(), *n),
            (_, Subject::Session(id)) => of_session::look(store, id.clone(), has_turns),
            (_, Subject::Pair(old, new)) => pair::look(store, old.clone(), new.clone()),
            (_, Subject::Snapshot(directory, n)) => snapshot::look(store, directory.clone(), *n, has_turns),
        }
    }

    fn pick(&mut self, seen: &ViewedChanges, act: Act, parts: Vec<(usize, Taken)>) -> Result<Planned, String> {
        // These take paths, with all that lies below them.
        if matches!(act, Act::Restore | Act::Merge) || act == Act::Commit && seen.may.redo {
            picks::refuse_open(&seen.changes, &parts).map_err(|problem| self.call.out.sentence(&said(problem)))?;
        }
        match &self.subject {
            Subject::Session(id) => {
                let planned = of_session::pick(&self.store, id, seen, act, parts)?;
                let notes = planned.notes.iter().map(|note| self.call.out.sentence(note)).collect();
                Ok(Planned { notes, ..planned })
            }
            Subject::Pair(..) | Subject::Snapshot(..) => Ok(snapshot::pick(seen, parts)),
        }
    }

    fn perform(&mut self, deed: Decision) -> world::Ended {
        match (&self.subject, deed) {
            (_, Decision::Undo) => self.acts.undo(),
            (_, Decision::UndoTurn(n)) => self.acts.undo_turn(n),
            (Subject::Session(id), Decision::Picked(act, picked, reason)) => {
                self.acts.on_session(&id.clone(), act, (picked, reason))
            }
            (Subject::Session(id), Decision::Rewind(n)) => self.acts.rewind(&id.clone(), n),
            (Subject::Snapshot(directory, n), Decision::Picked(_, picked, _)) => {
                self.acts.restore(&self.store.clone(), &directory.clone(), *n, &picked)
            }
            (_, Decision::Picked(..) | Decision::Rewind(_)) => world::Ended::Refused(vec!["this can only be looked at".into()]),
        }
    }

    fn goes_on(&self) -> bool {
        self.shown.is_some()
    }

    fn further(&self) -> usize {
        // What cannot be read is said when the next one is looked for.
        self.further().map_or(0, |further| further.len())
    }

    fn go_on(&mut self) -> Result<bool, String> {
        let further = self.further().map_err(said)?;
        let Some(id) = further.first() else { return Ok(false) };
        self.subject = session(self.call, Some(id.as_str())).map_err(said)?;
        self.shown.get_or_insert_default().push(id.clone());
        self.show_presence();
        Ok(true)
    }

    fn last(&self) -> Option<String> {
        self.acts.last()
    }

    fn steps(&mut self) -> Result<(Vec<String>, Vec<Row>), String> {
        match self.session() {
            Some(id) => lists::steps(&self.store, id),
            None => Err("there are no steps here".into()),
        }
    }

    fn turns(&mut self) -> Result<(Vec<String>, Vec<Row>), String> {
        lists::turns(self.call)
    }

    fn open(&mut self, seen: &ViewedChanges, i: usize, with: Program) -> world::Ended {
        let change = &seen.changes[i];
        match (with, &self.subject) {
            (Program::Editor, Subject::Session(id)) => self.acts.edit(&id.clone(), change),
            (Program::Editor, _) => world::Ended::Refused(vec!["nothing is held here that could be edited".into()]),
            (Program::Tool, Subject::Session(id)) => self.acts.tool(Compare::Session(id), &change.path),
            (Program::Tool, Subject::Pair(old, new)) => self.acts.tool(Compare::Pair(old, new), &change.path),
            (Program::Tool, Subject::Snapshot(directory, n)) => self.acts.tool(Compare::Snapshot(directory, *n), &change.path),
        }
    }
}
