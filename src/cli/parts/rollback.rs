//! `rollback ID PATH:2,5-7` and `rollback ID --patch`: a part of what a session put on the tree is taken back, by a session of its own. The
//! rollback of that one gives it again.

use super::super::apply::{self, Terms};
use super::super::args;
use super::super::call::Call;
use super::super::ended::Ended;
use super::super::merge;
use super::super::picks;
use super::ask::ask;
use super::piece::{self, Bytes, Committed, Piece};
use super::select::{self, Selection, Way};
use crate::cli::place::all_whole;
use crate::diff::entries::{Entries, Taken};
use crate::diff::merge::{Both, Onto, out_of};
use crate::diff::sources::Sources;
use crate::engine::job::Verb;
use crate::error::{Against, Error, Kind, command, shell_word};
use crate::session::change::{Before, Change, Changes, Marks};
use crate::session::error::not_now;
use crate::session::opened::Locked;
use crate::session::sides::Side;
use crate::tree::state::State;
use crate::verb::chosen::chosen;
use crate::verb::want::Want;

/// Rolls a session back, or the part that the call asks for.
///
/// # Errors
/// The words name what the session did not put on the tree, or what somebody has changed since; all that stands against it.
pub fn rollback(call: &Call, args: &args::Back) -> Result<Ended, Error> {
    match part(call, args)? {
        Some(ended) => Ok(ended),
        None => apply::rollback(call, args),
    }
}

/// Takes back a part of a session, if the call asks for one. `None` if it names whole paths alone.
fn part(call: &Call, args: &args::Back) -> Result<Option<Ended>, Error> {
    let what = &args.what;
    if !args.patch && !args.merge && what.picked.is_none() && !what.paths.iter().any(|word| select::may_name_blocks(word)) {
        return Ok(None);
    }
    let want = Want::RollBack;
    let (store, session) = if what.dry_run { apply::to_look_at(call, &what.id, want)? } else { call.locked(&what.id, want)? };
    let changes = session.changes()?;
    let in_blocks = match &what.picked {
        Some(picked) => picks::is_in_blocks(picked, &changes),
        None => args.patch || select::names_blocks(&what.paths, &changes)?,
    };
    if !in_blocks && !args.merge {
        return Ok(None);
    }
    if in_blocks && args.force {
        let problem = Error::usage("--force overwrites whole files, and blocks are taken out of what is there");
        return Err(problem.with_remedy("name whole paths, or leave --force out"));
    }
    let sides = session.sides(changes.list.len())?;
    refuse_nothing(&session, &sides)?;
    let mut selection = selected(call, args, &session, (&changes, &sides))?;
    if selection.is_empty() {
        call.out.note(format_args!("nothing of session {} was chosen, and nothing was changed", session.id().tail()));
        return Ok(Some(Ended::Done));
    }
    let notes = select::settle(&changes, Way::Back, |i| sides[i].is_in(), &mut selection);
    let mut sources = Sources::of(&session)?;
    let (mut pieces, mut against, mut merges) = (Vec::new(), Vec::new(), false);
    for (i, taken) in &selection {
        match back(&session, (&changes.list[*i], sides[*i]), taken, &mut sources)? {
            Back::Plain(piece) => pieces.push(piece),
            Back::Merged(piece) => {
                merges = true;
                pieces.push(piece);
            }
            Back::Nothing => merges = true,
            Back::Conflict(why) => against.push(Against { path: changes.list[*i].path.to_string(), why }),
        }
    }
    drop(sources);
    if !in_blocks && !merges && against.is_empty() {
        return Ok(None);
    }
    if !against.is_empty() {
        return Err(merge::refused(session.id(), against));
    }
    if pieces.is_empty() {
        let id = session.id().tail();
        call.out.note(format_args!("the tree has nothing more of that part of session {id}, and nothing was changed"));
        return Ok(Some(Ended::Done));
    }
    let words = piece::words(Verb::Rollback, session.id(), in_blocks, &what.paths);
    let terms = Terms {
        of: session.id(),
        verb: Verb::Rollback,
        force: args.force,
        within: None,
        beside: false,
        takes_back: what.takes_back,
        reason: what.message.as_deref(),
    };
    let Committed { id, mut report, .. } =
        piece::commit(call, store, &session, (&pieces, &words), (&terms, what.dry_run), |_, _| Ok(()))?;
    report.notes.splice(0..0, notes);
    apply::say_back(call, &id, &report, what.dry_run, session.id());
    Ok(Some(if report.left.is_empty() { Ended::Done } else { Ended::With(Kind::LeftOut) }))
}

/// Refuses a session of which nothing is on the tree.
fn refuse_nothing(session: &Locked, sides: &[Side]) -> Result<(), Error> {
    if sides.iter().any(|side| side.is_in()) {
        return Ok(());
    }
    let remedy = command(format_args!("show {}", session.id().tail()));
    Err(not_now(session.id(), "nothing of it is on the tree").with_remedy(remedy))
}

fn selected(call: &Call, args: &args::Back, session: &Locked, (changes, sides): (&Changes, &[Side])) -> Result<Selection, Error> {
    let words = &args.what.paths;
    if let Some(picked) = &args.what.picked {
        return picks::selection(picked, session, changes);
    }
    let mut sources = Sources::of(session)?;
    if args.patch {
        let wanted: Vec<usize> =
            chosen(session.id(), changes, &all_whole(words)?)?.into_iter().filter(|i| sides[*i].is_in()).collect();
        return ask(call, "Take back", (changes, sides), &wanted, &mut sources);
    }
    if words.is_empty() {
        let may = |i: usize| args.what.only.as_ref().is_none_or(|only| only.has(i));
        let inside = sides.iter().enumerate().filter(|(i, side)| side.is_in() && may(*i));
        return Ok(inside.map(|(i, _)| (i, Taken::Whole)).collect());
    }
    let mut selection = select::named(session.id(), (changes, sides), words, &mut sources)?;
    selection.retain(|i, _| sides[*i].is_in());
    Ok(selection)
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
        let why = format!("{path}: it has, or had, several names, which would be files of their own");
        let whole = command(format_args!("rollback {} --force {}", session.id().tail(), shell_word(path.as_bytes())));
        // Edited since, it would be a conflict without.
        let remedy = format!("{whole} takes it back, and keeps a copy of what is there now");
        return Err(Error::refused(why).with_path(path).with_remedy(remedy));
    }
    let (after, content) = match taken {
        Taken::Whole => match out_of(change, sources, None)? {
            Some(onto) => return Ok(merged(change, onto)),
            None => {
                let kept = sources.kept(change)?;
                let content = match change.in_place() {
                    true => Bytes::None,
                    false if !kept.as_ref().is_some_and(State::is_file) => Bytes::None,
                    false => match sources.original_at(change)? {
                        Ok((place, _)) => Bytes::Kept(place),
                        Err(why) => return Err(Error::refused(format!("{path}: {why}")).with_path(path)),
                    },
                };
                (kept, content)
            }
        },
        Taken::Part { blocks, meta } => {
            let gone = || Error::refused(format!("{path}: it was changed meanwhile")).with_path(path).with_remedy("try again");
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

fn merged(change: &Change, onto: Onto) -> Back {
    match onto {
        Onto::Conflict(why) => Back::Conflict(why),
        Onto::Same => Back::Nothing,
        Onto::Merged(both) => {
            let Both { before, after, content, .. } = *both;
            let change = Change { marks: Marks::default(), ..reversed(change, before) };
            Back::Merged(Piece { change, after: Some(after), content: Bytes::Made(content) })
        }
    }
}
