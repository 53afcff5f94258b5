//! A session on the screen, and one of its steps.

use std::sync::Arc;

use super::error_lines::look as look_by;
use super::error_lines::said;
use crate::capture::may_choose;
use crate::capture::run::keep_changes;
use crate::compare::{Content, Differences, Entries, OnTree, Pick, Picked, Sources, States, Taken, View, mark_of};
use crate::error::{Error, Kind};
use crate::face::figures;
use crate::face::screen::sheet::Sheet;
use crate::face::screen::world::{Act, AllowedActs, Contents, Look, Open, Planned, ViewedChanges};
use crate::face::text::list::shown;
use crate::fs::{AbsPath, Fs};
use crate::session::{Before, Change, Changes, Header, How, Id, Marks, Run, Session, Side, Status, Store};
use crate::tree::{Hash, Object};
use crate::verb::Selection;
use crate::verb::parts::select::{Way, settle};

/// Opens the store again: another thread has none of its own.
pub fn opened(store: &AbsPath) -> Result<Store, Error> {
    Store::open(store)?.ok_or_else(|| Error::at(Kind::Refused, store, "the store is gone"))
}

/// A session as a command that runs in it has it so far, or as it is.
fn session_of(store: &Store, id: &Id) -> Result<Session, Error> {
    let session = store.session(id)?;
    if session.header.uncollected && session.is_held()? {
        return Ok(keep_changes::changes_so_far(&Fs::new(), store, session)?.0);
    }
    Ok(session)
}

pub fn look(store: AbsPath, id: Id, has_turns: bool) -> Look {
    look_by(move |mark| {
        let opened = opened(&store)?;
        let sealed = store_mark(&opened.session(&id)?.header);
        if mark == Some(sealed) {
            return Ok(None);
        }
        let session = session_of(&opened, &id)?;
        let is_running = session.is_so_far();
        let changes = session.changes()?;
        let now = if is_running { Hash::of(format!("{:?}", changes.list).as_bytes()) } else { sealed };
        if mark == Some(now) {
            return Ok(None);
        }
        let sides = Arc::new(session.sides(changes.list.len())?);
        let (header, run) = (&session.header, session.run()?);
        let mut notes = notes(header, run.as_ref());
        let times = changes.directory_times.len();
        notes.extend((times > 0).then(|| format!("{} whose time alone changes", figures::count(times as u64, "directory"))));
        let changes = Arc::new(changes.list);
        Ok(Some(ViewedChanges {
            title: title(header),
            state: if is_running { "running".into() } else { state(header) },
            about: about(&session),
            notes,
            may: may(&session, has_turns),
            mark: now,
            is_running,
            contents: contents(store.clone(), id.clone(), Arc::clone(&changes), Arc::clone(&sides)),
            changes,
            sides,
        }))
    })
}

/// The command that ran last in a session, rather than a person's choice.
fn about(session: &Session) -> String {
    let header = &session.header;
    let ran = || {
        let (list, chain) = (session.steps().ok()?, header.chain());
        let step = list.steps.iter().rev().find(|step| chain.contains(&step.n) && !step.chosen)?;
        Some(crate::face::text::steps::words(&step.command.argv))
    };
    let ran = if header.steps.is_some() && !session.is_so_far() { ran() } else { None };
    ran.or_else(|| header.command.as_deref().map(shown)).unwrap_or_default()
}

fn store_mark(header: &Header) -> Hash {
    Hash::of(format!("{header:?}").as_bytes())
}

fn title(header: &Header) -> String {
    let name = header.name.as_ref().map(|name| format!(" ({})", shown(name))).unwrap_or_default();
    format!("session {}{name}", header.id.tail())
}

fn state(header: &Header) -> String {
    let failed = header.failed.map(|failed| format!(", {}", failed.text())).unwrap_or_default();
    format!("{}{}{failed}", header.status().word().replace('_', " "), crate::verb::error::but(header.counts))
}

fn may(session: &Session, has_turns: bool) -> AllowedActs {
    let (header, so_far) = (&session.header, session.is_so_far());
    let looks = AllowedActs {
        steps: header.steps.is_some() || header.lines > 0 && session.run().is_ok_and(|run| run.is_some()),
        turns: has_turns,
        ..AllowedActs::default()
    };
    if so_far || header.uncollected {
        return looks;
    }
    let chooses = may_choose(session).is_ok();
    match header.status() {
        Status::Pending => AllowedActs { commit: true, discard: chooses, choose: chooses, ..looks },
        Status::Committed => AllowedActs { commit: header.is_in_part(), roll_back: true, ..looks },
        Status::RolledBack => AllowedActs { commit: true, redo: true, ..looks },
        Status::Running | Status::Discarded => looks,
    }
}

/// Facts that a person has to know beside the changes.
fn notes(header: &Header, run: Option<&Run>) -> Vec<String> {
    let mut notes = Vec::new();
    if header.unsynced {
        notes.push(crate::face::text::fact::UNSYNCED.to_owned());
    }
    notes.extend(header.left.iter().map(|left| format!("{}: left as it was changed since", left.path)));
    if let Some(run) = run {
        let places = |how: How| run.coverage.iter().filter(move |place| place.how == how);
        notes
            .extend(places(How::Uncovered).map(|place| {
                format!("not held: {}: {}", place.path, place.why.as_deref().unwrap_or("it could not be captured"))
            }));
        notes.extend(places(How::Passed).map(|place| format!("real, not held: {}", place.path)));
        notes.extend(run.notes.iter().map(|note| shown(note)));
    }
    notes
}

fn contents(store: AbsPath, id: Id, changes: Arc<Vec<Change>>, sides: Arc<Vec<Side>>) -> Open {
    Arc::new(move |serve| {
        let open = || -> Result<Session, Error> { session_of(&opened(&store)?, &id) };
        let session = open().map_err(said)?;
        let sources = Sources::of(&session).map_err(said)?;
        serve(&mut OfSession { session: &session, sources, changes: &changes, sides: &sides });
        Ok(())
    })
}

struct OfSession<'s> {
    session: &'s Session,
    sources: Sources<'s>,
    changes: &'s [Change],
    sides: &'s [Side],
}

impl Contents for OfSession<'_> {
    fn sheet(&mut self, i: usize) -> Sheet {
        let mark = self.mark(i);
        Sheet { mark, ..self.read(i).unwrap_or_else(|error| Sheet::failed(&said(error))) }
    }

    fn mark(&mut self, i: usize) -> Option<Hash> {
        // What a command is writing changes all the time, and is looked at as a whole.
        let stands = !self.session.is_so_far();
        stands.then(|| mark_of(&self.changes[i], self.sides[i], &mut self.sources))
    }
}

impl OfSession<'_> {
    fn read(&mut self, i: usize) -> Result<Sheet, Error> {
        let (change, side) = (&self.changes[i], self.sides[i]);
        let view = View::of(change, side, &mut self.sources, true)?;
        Ok(match Entries::of(change, side, &mut self.sources)? {
            Entries::Text(text) => Sheet::in_blocks(&view, &text),
            Entries::Whole(why) if view.conflict && !side.is_in() => self.conflict(change, side, view, why)?,
            Entries::Changed if !side.is_in() => self.conflict(change, side, view, CHANGED)?,
            Entries::Whole(why) => Sheet::whole(&view, why),
            Entries::Changed => Sheet::whole(&view, CHANGED),
        })
    }

    /// Shows what became of a change's original on the tree, and what is held; without the original, the one against the other.
    fn conflict(&mut self, change: &Change, side: Side, mut view: View<'_>, why: &'static str) -> Result<Sheet, Error> {
        let (now, held) = (self.sources.now(&change.path)?, &change.after);
        view.remarks.retain(|remark| !remark.ends_with(", not shown"));
        let mut sheet = Sheet::whole(&view, why);
        let base = self.sources.base(change)?.is_some();
        let before = if base { &change.before.object } else { &now };
        let read_base = |sources: &mut Sources<'_>| Ok(sources.base(change)?.map_or(Content::Gone(String::new()), Content::File));
        let read_now = |sources: &mut Sources<'_>| Ok(sources.content_now(&change.path));
        let read_held = |sources: &mut Sources<'_>| sources.after(change, side, &OnTree::Changed);
        if base {
            let on_tree = between(change, before, now.clone());
            let labels = ("before", "on the tree now");
            let view = View::of_two(&on_tree, labels, "", &mut self.sources, read_base, read_now)?;
            sheet.add("since then, on the tree", &quiet(view));
        }
        let of_held = between(change, before, held.clone());
        let labels = ("before", "held");
        let view = match base {
            true => View::of_two(&of_held, labels, "", &mut self.sources, read_base, read_held)?,
            false => View::of_two(&of_held, labels, "", &mut self.sources, read_now, read_held)?,
        };
        sheet.add(if base { "held, from the same original" } else { "held, against the tree as it is now" }, &quiet(view));
        if self.session.header.counts.ever_in == 0 && base {
            sheet.whole = "it was changed since: m merges the two";
        }
        Ok(sheet)
    }
}

const CHANGED: &str = "it was changed since";

/// The view without the reason that stands above it.
fn quiet(mut view: View<'_>) -> View<'_> {
    view.remarks.retain(|remark| !remark.is_empty());
    view.conflict = false;
    view
}

fn between(change: &Change, before: &Object, after: Object) -> Change {
    Change {
        before: Before { object: before.clone(), print: None },
        after,
        marks: Marks { same_content: change.in_place(), ..Marks::default() },
        ..change.clone()
    }
}

/// Plans to act on parts of a session's changes.
pub fn pick(store: &AbsPath, id: &Id, shown: &ViewedChanges, act: Act, parts: Vec<(usize, Taken)>) -> Result<Planned, String> {
    let open = || -> Result<Session, Error> { opened(store)?.session(id) };
    let session = open().map_err(said)?;
    let mut sources = Sources::of(&session).map_err(said)?;
    // What has to come along, or to stay, is picked and said before it is confirmed.
    let mut selection: Selection = parts.into_iter().collect();
    let changes = Changes { list: shown.changes.to_vec(), ..Changes::default() };
    let (way, of_in) = if act == Act::Commit { (Way::Forth, false) } else { (Way::Back, act == Act::RollBack) };
    let settled = match act {
        Act::Merge => Vec::new(),
        _ => settle(&changes, way, |i| shown.sides[i].is_in() == of_in, &mut selection),
    };
    if selection.is_empty() {
        return Err(settled.join("; "));
    }
    let parts: Vec<(usize, Taken)> = selection.into_iter().collect();
    let mut conflicts = 0;
    let mut picks = Vec::with_capacity(parts.len());
    for (i, taken) in parts {
        let (change, side) = (&shown.changes[i], shown.sides[i]);
        conflicts += usize::from(sources.on_tree(change, side) != OnTree::AsRecorded || change.marks.foreign && !side.is_in());
        picks.push(Pick { path: change.path.clone(), taken, seen: mark_of(change, side, &mut sources) });
    }
    let is_one = conflicts == 1;
    let (are, it) = if is_one { ("has", "is a conflict") } else { ("have", "are conflicts") };
    let notes = (conflicts > 0).then(|| format!("{conflicts} of these {are} changed on the tree since: that {it}"));
    Ok(Planned { picked: Picked(picks), notes: notes.into_iter().chain(settled).collect() })
}

/// How to look at what a step changed.
pub fn of_step(store: AbsPath, id: Id, n: u32) -> Look {
    look_by(move |mark| {
        if mark.is_some() {
            // A step is what it is.
            return Ok(None);
        }
        let session = opened(&store)?.session(&id)?;
        let list = session.steps()?;
        let step = list.get(&session.header, n)?;
        list.check(&session.header, n)?;
        let changes = list.own(&session, n)?.list;
        let sides = vec![Side::Never; changes.len()];
        Ok(Some(ViewedChanges {
            title: title(&session.header),
            state: String::new(),
            about: crate::face::text::steps::words(&step.command.argv),
            notes: Vec::new(),
            may: AllowedActs { steps: true, ..AllowedActs::default() },
            mark: Hash::of(format!("step {n}").as_bytes()),
            is_running: false,
            contents: contents_of_step(store.clone(), id.clone(), n),
            changes: Arc::new(changes),
            sides: Arc::new(sides),
        }))
    })
}

fn contents_of_step(store: AbsPath, id: Id, n: u32) -> Open {
    Arc::new(move |serve| {
        let mut served = || -> Result<(), Error> {
            let session = opened(&store)?.session(&id)?;
            let (head, own) = (session.changes()?, session.steps()?.own(&session, n)?);
            let differences = Differences::of_step(&own);
            let states = States::of([(&session, &head)])?;
            serve(&mut OfStates { states, differences: &differences });
            Ok(())
        };
        served().map_err(said)
    })
}

/// The contents of differences between states of sessions.
pub struct OfStates<'d, 's, 'c> {
    pub states: States<'s>,
    pub differences: &'d Differences<'c>,
}

impl Contents for OfStates<'_, '_, '_> {
    fn sheet(&mut self, i: usize) -> Sheet {
        match self.states.view(&self.differences.changes.list[i], self.differences.ends[i]) {
            Ok(view) => Sheet::whole(&view, "it is only looked at"),
            Err(problem) => Sheet::failed(&said(problem)),
        }
    }
}
