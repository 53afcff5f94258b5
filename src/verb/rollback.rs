//! `rollback`: what a session put on the tree is taken back, all or a part. Blocks, and what is merged, are taken back by a session of its
//! own, and the rollback of that one gives it again.

use super::act::acted::{Acted, PartOf};
use super::act::carry_out::on_session;
use super::act::carry_out::{Act, Conflicts};
use super::desk::Desk;
use super::error;
use super::fact::Fact;
use super::parts::picks;
use super::parts::piece::{self, Bytes, Committed, Piece, Terms};
use super::parts::select::{self, Selection, Way};
use super::question::Choosing;
use super::resolve::target::{Target, What};
use super::resolve::wanted_act::Want;
use crate::compare::{Entries, MergeResult, MergedChange, Sources, Taken, out_of};
use crate::engine::{Effect, Report, SinceAct, Verb};
use crate::error::{Against, Error};
use crate::session::{ActingAgent, Before, Change, Changes, Locked, Marks, Side, Store};
use crate::tree::State;

/// A rollback that is asked for.
#[derive(Debug, Clone)]
pub struct Rollback {
    pub(crate) of: Target,
    /// True if it goes on over conflicts.
    pub(crate) force: bool,
    /// True if the changes are taken out of files that somebody has edited since.
    pub(crate) merge: bool,
}

impl Rollback {
    /// Rolls this back, without options.
    pub fn of(of: Target) -> Self {
        Self { of, force: false, merge: false }
    }

    /// Goes on over conflicts where possible. What is there is kept for `recant cat ID PATH --displaced`.
    pub fn force(self) -> Self {
        Self { force: true, ..self }
    }
}

/// Rolls a session back, or the part that is asked for: restores the originals, exactly, all of them or none. Returns the act. `None`: there
/// is nothing to do.
///
/// # Errors
/// Those of [`commit`](crate::commit()); somebody has changed what the session put on the tree.
pub fn rollback(desk: &Desk, call: &Rollback) -> Result<Option<Acted>, Error> {
    let (store, mut session) = call.of.open(desk, Want::RollBack)?;
    if call.merge || may_be_part(&call.of.what) {
        match part(desk, store, &session, call)? {
            Part::None => return Ok(None),
            Part::Acted(acted) => return Ok(Some(*acted)),
            Part::Plain => {}
        }
    }
    call.of.note_purpose(&mut session);
    let paths = call.of.paths(store, &session, Verb::Rollback)?;
    let act = Act { only: call.of.what.moved(), ..Act::new(desk, Verb::Rollback, Conflicts::forced(call.force)) };
    let (report, rest) = on_session(desk, store, &mut session, &paths, call.of.effect(), &act)?;
    Ok(Some(Acted::of(&session, report, rest)))
}

/// True unless whole changes are meant in any case.
fn may_be_part(what: &What) -> bool {
    match what {
        What::All | What::Moved(_) => false,
        What::Named(words) => words.iter().any(select::may_name_blocks),
        What::Asked(_) | What::Picked(_) | What::Beside(_) => true,
    }
}

/// True if blocks are meant, or a directory without all that lies below it.
fn in_blocks(what: &What, changes: &Changes) -> Result<bool, Error> {
    match what {
        What::All | What::Moved(_) => Ok(false),
        What::Named(words) => select::names_blocks(words, changes),
        What::Picked(picked) | What::Beside(picked) => Ok(picks::is_in_blocks(picked, changes)),
        What::Asked(_) => Ok(true),
    }
}

/// Rolls back a commit that nobody confirmed.
///
/// # Errors
/// All that stands against it.
pub fn take_back(desk: &Desk, store: &Store, session: &mut Locked) -> Result<Report, Error> {
    session.acts_by(ActingAgent { agent: "deadline".into(), session: None, turn: None });
    // What is found is stored, and compared with what was found before.
    let since = SinceAct::of(&session.header, Verb::Rollback).map(SinceAct::without_time);
    let act = Act { since, ..Act::new(desk, Verb::Rollback, Conflicts::Stop) };
    let (report, rest) = on_session(desk, store, session, &[], Effect::Apply, &act)?;
    if let Some(of) = &session.header.of {
        desk.caller.tell(Fact::Rest { of, part: session.id(), rest: &rest });
    }
    Ok(report)
}

/// The end of a rollback of a part.
enum Part {
    /// There is nothing to take back.
    None,
    Acted(Box<Acted>),
    /// The session's own rollback does it.
    Plain,
}

/// Takes back blocks, or what is merged, by a session of its own.
fn part(desk: &Desk, store: &Store, session: &Locked, call: &Rollback) -> Result<Part, Error> {
    let changes = session.changes()?;
    let in_blocks = in_blocks(&call.of.what, &changes)?;
    if !in_blocks && !call.merge {
        return Ok(Part::Plain);
    }
    if in_blocks && call.force {
        return Err(error::forces_whole());
    }
    let sides = session.sides(changes.list.len())?;
    if !sides.iter().any(|side| side.is_in()) {
        return Err(error::not_on_tree(session.id()));
    }
    let mut selection = selected(desk, call, session, (&changes, &sides))?;
    if selection.is_empty() {
        desk.caller.tell(Fact::NothingChosen(session.id()));
        return Ok(Part::None);
    }
    let notes = select::settle(&changes, Way::Back, |i| sides[i].is_in(), &mut selection);
    let Found { pieces, merges, against } = pieces(session, (&changes, &sides), &selection)?;
    if !in_blocks && !merges && against.is_empty() {
        return Ok(Part::Plain);
    }
    if !against.is_empty() {
        return Err(error::do_not_merge(session.id(), against, false));
    }
    if pieces.is_empty() {
        desk.caller.tell(Fact::NothingOnTree(session.id()));
        return Ok(Part::None);
    }
    let words = piece::words(Verb::Rollback, session.id(), &call.of.what);
    let terms = Terms { of: session, verb: Verb::Rollback, target: &call.of, words: &words, force: call.force, within: None };
    let Committed { id, mut report, .. } = piece::commit(desk, store, &pieces, &terms, |_, _| Ok(()))?;
    report.notes.splice(0..0, notes);
    let of = session.id().clone();
    let part_of = Some(PartOf { session: of, changes: session.header.counts.changes, is_back: true });
    Ok(Part::Acted(Box::new(Acted {
        session: id,
        name: None,
        report,
        waiting: None,
        part_of,
        policy: None,
        behind: None,
        rest: None,
    })))
}

fn selected(desk: &Desk, call: &Rollback, session: &Locked, (changes, sides): (&Changes, &[Side])) -> Result<Selection, Error> {
    let is_in = |i: usize| sides[i].is_in();
    let mut sources = Sources::of(session)?;
    let mut selection = match &call.of.what {
        What::Picked(picked) | What::Beside(picked) => return picks::selection(picked, session, changes),
        What::Asked(words) => {
            let mut choosing = Choosing::of(Want::RollBack, session.id(), (changes, sides), words)?;
            choosing.wanted.retain(|i| is_in(*i));
            return desk.choose(choosing, &mut sources);
        }
        What::Named(words) => select::named(session.id(), (changes, sides), words, &mut sources)?,
        What::All => (0..sides.len()).map(|i| (i, Taken::Whole)).collect(),
        What::Moved(part) => (0..sides.len()).filter(|i| part.has(*i)).map(|i| (i, Taken::Whole)).collect(),
    };
    selection.retain(|i, _| is_in(*i));
    Ok(selection)
}

/// The pieces that take a selection back.
#[derive(Default)]
struct Found {
    pieces: Vec<Piece>,
    /// True if somebody has edited some of it since.
    merges: bool,
    /// Those that do not merge.
    against: Vec<Against>,
}

fn pieces(session: &Locked, (changes, sides): (&Changes, &[Side]), selection: &Selection) -> Result<Found, Error> {
    let (mut found, mut sources) = (Found::default(), Sources::of(session)?);
    for (i, taken) in selection {
        let change = &changes.list[*i];
        // Nothing of it merges, nor has to.
        if change.was_gone() {
            continue;
        }
        let back = back(session, (change, sides[*i]), taken, &mut sources)?;
        found.merges |= matches!(back, Back::Merged(_) | Back::Nothing);
        match back {
            Back::Plain(piece) | Back::Merged(piece) => found.pieces.push(piece),
            Back::Nothing => {}
            Back::Conflict(why) => found.against.push(Against { path: change.path.to_string(), why }),
        }
    }
    Ok(found)
}

/// The way in which a change is taken back.
enum Back {
    /// The tree has what the session put there.
    Plain(Piece),
    /// Somebody has changed it since, and keeps that.
    Merged(Piece),
    /// The tree has nothing of it any more.
    Nothing,
    /// The two do not merge, for this reason.
    Conflict(String),
}

/// The change that takes back what is taken of another one.
fn back(session: &Locked, (change, side): (&Change, Side), taken: &Taken, sources: &mut Sources<'_>) -> Result<Back, Error> {
    let path = &change.path;
    if change.marks.linked || change.marks.link_broken {
        return Err(error::names_part(session.id(), path));
    }
    let (after, content) = match taken {
        Taken::Whole => match out_of(change, sources, None)? {
            Some(onto) => return Ok(merged(change, onto)),
            None => {
                let kept = sources.original_object(change)?;
                let content = match change.in_place() {
                    true => Bytes::None,
                    false if !kept.as_ref().is_some_and(State::is_file) => Bytes::None,
                    false => match sources.original_at(change)? {
                        Ok((place, _)) => Bytes::Kept(place),
                        Err(why) => return Err(error::unreadable(path, &why)),
                    },
                };
                (kept, content)
            }
        },
        Taken::Part { blocks, meta } => {
            let gone = || error::changed_meanwhile(path);
            let Entries::Text(text) = Entries::of(change, side, sources)? else { return Err(gone()) };
            let (state, content) = text.without(change, blocks, *meta).ok_or_else(gone)?;
            if let Some(onto) = out_of(change, sources, Some((&state, &content)))? {
                return Ok(merged(change, onto));
            }
            (Some(state), if text.is_new(&content) { Bytes::None } else { Bytes::Made(content) })
        }
    };
    // The tree holds what the change led to, and its own record tells what that was.
    let before = Before { object: change.after.clone(), print: None };
    Ok(Back::Plain(Piece { change: reversed(change, before), after, content }))
}

fn reversed(change: &Change, before: Before) -> Change {
    Change { before, marks: Marks { same_content: change.marks.same_content, ..Marks::default() }, ..change.clone() }
}

fn merged(change: &Change, onto: MergeResult) -> Back {
    match onto {
        MergeResult::Conflict(why) => Back::Conflict(why),
        MergeResult::Same => Back::Nothing,
        MergeResult::Merged(both) => {
            let MergedChange { before, after, content, .. } = *both;
            let change = Change { marks: Marks::default(), ..reversed(change, before) };
            Back::Merged(Piece { change, after: Some(after), content: Bytes::Made(content) })
        }
    }
}
