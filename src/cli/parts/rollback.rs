//! `rollback ID PATH:2,5-7` and `rollback ID --patch`: a part of what a session put on the tree is taken back, by a session of its own. The
//! rollback of that one gives it again.

use super::super::apply::{self, Terms};
use super::super::args;
use super::super::chosen::chosen;
use super::super::problem::Problem;
use super::super::which::Want;
use super::super::{Call, Ended};
use super::ask::ask;
use super::piece::{self, Bytes, Committed, Piece};
use super::select::{self, Selection};
use crate::diff::entries::{Entries, Taken};
use crate::diff::sources::{OnTree, Sources};
use crate::engine::job::Verb;
use crate::error::{Kind, command};
use crate::fs::path::AbsPath;
use crate::rollback::with_needed as rollback_with_needed;
use crate::session::change::{Before, Change, Changes, Marks};
use crate::session::error::not_now;
use crate::session::opened::Locked;
use crate::session::sides::Side;

/// Rolls a session back, or the part that the call asks for.
///
/// # Errors
/// The words name what the session did not put on the tree, or what somebody has changed since; all that stands against it.
pub fn rollback(call: &Call, args: &args::Back) -> Result<Ended, Problem> {
    match part(call, args)? {
        Some(ended) => Ok(ended),
        None => apply::rollback(call, args),
    }
}

/// Takes back a part of a session, if the call asks for one. `None` if it names whole paths alone.
fn part(call: &Call, args: &args::Back) -> Result<Option<Ended>, Problem> {
    let what = &args.what;
    if !args.patch && !what.paths.iter().any(|word| select::may_name_blocks(word)) {
        return Ok(None);
    }
    let want = Want::RollBack;
    let (store, session) = if what.dry_run { apply::to_look_at(call, what.key(), want)? } else { call.locked(what.key(), want)? };
    let changes = session.changes()?;
    if !args.patch && !select::names_blocks(&what.paths, &changes)? {
        return Ok(None);
    }
    if what.gate {
        let problem = Problem::new(Kind::Usage, "a part of a session is not taken back on several machines");
        return Err(problem.remedy("name whole paths, or one machine"));
    }
    let sides = session.sides(changes.list.len())?;
    refuse_nothing(&session, &sides)?;
    let selection = selected(call, args, &session, (&changes, &sides))?;
    if selection.is_empty() {
        call.out.note(format_args!("nothing of session {} was chosen, and nothing was changed", session.id().tail()));
        return Ok(Some(Ended::Done));
    }
    let (selection, notes) = with_needed(&session, &changes, selection)?;
    let mut sources = Sources::of(&session)?;
    let back = |(i, taken): (&usize, &Taken)| back(&session, (&changes.list[*i], sides[*i]), taken, &mut sources);
    let pieces = selection.iter().map(back).collect::<Result<Vec<_>, Problem>>()?;
    drop(sources);
    let words = piece::words(Verb::Rollback, session.id(), args.patch, &what.paths);
    let terms = Terms { of: session.id(), verb: Verb::Rollback, force: args.force };
    let Committed { id, mut report, .. } = piece::commit(call, store, (&pieces, &words), &terms, what.dry_run)?;
    report.notes.splice(0..0, notes);
    apply::say_back(call, &id, &report, (what.dry_run, args.all), session.id());
    Ok(Some(if report.left.is_empty() { Ended::Done } else { Ended::With(Kind::LeftOut) }))
}

/// Refuses a session of which nothing is on the tree.
fn refuse_nothing(session: &Locked, sides: &[Side]) -> Result<(), Problem> {
    if sides.iter().any(|side| side.is_in()) {
        return Ok(());
    }
    let remedy = command(format_args!("show {}", session.id().tail()));
    Err(not_now(session.id(), "nothing of it is on the tree").with_remedy(remedy).into())
}

fn selected(
    call: &Call,
    args: &args::Back,
    session: &Locked,
    (changes, sides): (&Changes, &[Side]),
) -> Result<Selection, Problem> {
    let words = &args.what.paths;
    let mut sources = Sources::of(session)?;
    if args.patch {
        let wanted: Vec<usize> = chosen(session.id(), changes, words)?.into_iter().filter(|i| sides[*i].is_in()).collect();
        return ask(call, "Take back", (changes, sides), &wanted, &mut sources);
    }
    let mut selection = select::named(session.id(), (changes, sides), words, &mut sources)?;
    selection.retain(|i, _| sides[*i].is_in());
    Ok(selection)
}

/// Adds what the chosen whole changes need: the directories that come back above them. Notes say what comes along.
fn with_needed(session: &Locked, changes: &Changes, mut selection: Selection) -> Result<(Selection, Vec<String>), Problem> {
    let whole = selection.iter().filter(|(_, taken)| **taken == Taken::Whole).map(|(i, _)| changes.list[*i].path.clone());
    let whole: Vec<AbsPath> = whole.collect();
    if whole.is_empty() {
        return Ok((selection, Vec::new()));
    }
    let needed = rollback_with_needed(session, &whole)?;
    selection.extend(needed.chosen.into_iter().map(|i| (i, Taken::Whole)));
    Ok((selection, needed.notes))
}

/// The change that takes back what is taken of another one.
fn back(session: &Locked, (change, side): (&Change, Side), taken: &Taken, sources: &mut Sources<'_>) -> Result<Piece, Problem> {
    let path = &change.path;
    if change.marks.linked || change.marks.link_broken {
        let why = format!("{path}: it has, or had, several names, which would be files of their own");
        let whole = command(format_args!("rollback {} {path}", session.id().tail()));
        return Err(Problem::refused(why).path(path).remedy(format!("{whole} takes it back as it was")));
    }
    // The tree holds what the change led to, and its own record tells what that was.
    let reversed = |hash_of: &Change| Change {
        before: Before { object: hash_of.after.clone(), print: None },
        marks: Marks { same_content: change.marks.same_content, ..Marks::default() },
        ..change.clone()
    };
    match taken {
        Taken::Whole => {
            let kept = sources.kept(change)?;
            let content = match change.in_place() {
                true => Bytes::None,
                false => Bytes::whole(path, &kept, || sources.before(change, side, &OnTree::AsRecorded))?,
            };
            Ok(Piece { change: reversed(change), after: kept, content })
        }
        Taken::Part { blocks, meta } => {
            let gone = || Problem::refused(format!("{path}: it was changed meanwhile")).path(path).remedy("try again");
            let Entries::Text(text) = Entries::of(change, side, sources)? else { return Err(gone()) };
            let (state, content) = text.without(change, blocks, *meta).ok_or_else(gone)?;
            let content = if text.is_new(&content) { Bytes::None } else { Bytes::Made(content) };
            Ok(Piece { change: reversed(change), after: Some(state), content })
        }
    }
}
