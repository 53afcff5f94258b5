//! `commit ID PATH:2,5-7` and `commit ID --patch`: a part of a session becomes a session of its own, committed at once. The rest goes on, made
//! of what is on the tree then.

use super::super::apply::{self, Terms, Whole};
use super::super::args;
use super::super::chosen::chosen;
use super::super::picks;
use super::super::problem::Problem;
use super::super::which::Want;
use super::super::{Call, Ended};
use super::ask::ask;
use super::piece::{self, Bytes, Committed, Piece};
use super::select::{self, Selection, Way};
use crate::capture::choice::{choose, may_choose};
use crate::capture::chosen::{Choice, Content};
use crate::commit;
use crate::diff::entries::{Entries, Taken, part_of};
use crate::diff::sources::{OnTree, Sources};
use crate::engine::job::Verb;
use crate::error::{Error, Kind, command};
use crate::fs::interrupt::{self, Asked};
use crate::session::before;
use crate::session::change::{Before, Change, Changes};
use crate::session::opened::Locked;
use crate::session::sides::Side;
use crate::session::store::Store;
use crate::tree::state::Object;

/// Commits a session, or the part that the call asks for.
///
/// # Errors
/// The words name what the session does not hold; all that stands against a commit.
pub fn commit(call: &Call, args: &args::Commit) -> Result<Ended, Problem> {
    call.collected.replace(Some(Vec::new()));
    match part(call, args)? {
        Some(ended) => Ok(ended),
        None => apply::commit(call, args),
    }
}

/// Commits a part of a session, if the call asks for one. `None` if it names whole paths alone.
fn part(call: &Call, args: &args::Commit) -> Result<Option<Ended>, Problem> {
    let what = &args.what;
    if !args.patch && what.picked.is_none() && !what.paths.iter().any(|word| select::may_name_blocks(word)) {
        return Ok(None);
    }
    let want = Want::Commit;
    let (store, mut session) = if what.dry_run { apply::to_look_at(call, &what.id, want)? } else { call.locked(&what.id, want)? };
    let (changes, session_id) = (session.changes()?, session.id().to_string());
    let is_part = match &what.picked {
        Some(_) if what.beside => true,
        Some(picked) => picks::is_part(picked, &session, &changes)?,
        None => args.patch || select::names_blocks(&what.paths, &changes)?,
    };
    if !is_part {
        return Ok(None);
    }
    refuse(args, &session)?;
    let selection = selected(call, args, &session, &changes)?;
    if selection.is_empty() {
        return Ok(Some(nothing(call, &session)));
    }
    if !what.beside && selection.len() == changes.list.len() && selection.values().all(|taken| *taken == Taken::Whole) {
        // All there is: no part of it. By its paths, as a command may go on in the session until it is locked again.
        drop(session);
        let mut all = args.clone();
        (all.patch, all.what.id) = (false, session_id);
        all.what.paths = changes.list.iter().map(|change| change.path.as_path().to_path_buf()).collect();
        return apply::commit(call, &all).map(Some);
    }
    commit_part(call, args, (store, &mut session), &changes, selection).map(Some)
}

fn nothing(call: &Call, session: &Locked) -> Ended {
    call.out.note(format_args!("nothing of session {} was chosen, and nothing was changed", session.id().tail()));
    Ended::Done
}

/// Refuses what takes no part, before anything is done.
fn refuse(args: &args::Commit, session: &Locked) -> Result<(), Problem> {
    if args.confirm_within.is_some() {
        let problem = Problem::new(Kind::Usage, "a part of a session is not committed with --confirm-within");
        return Err(problem.remedy("name whole paths, or commit the part without it"));
    }
    if args.merge {
        let problem = Problem::new(Kind::Usage, "--merge takes whole paths");
        return Err(problem.remedy("name them without numbers, or commit the blocks without --merge"));
    }
    commit::refuse_unsynced(session, args.accept_unsynced)?;
    Ok(may_choose(session)?)
}

fn selected(call: &Call, args: &args::Commit, session: &Locked, changes: &Changes) -> Result<Selection, Problem> {
    if let Some(picked) = &args.what.picked {
        return picks::selection(picked, session, changes);
    }
    let (sides, words) = (session.sides(changes.list.len())?, &args.what.paths);
    let mut sources = Sources::of(session)?;
    if args.patch {
        ask(call, "Commit", (changes, &sides), &chosen(session.id(), changes, words)?, &mut sources)
    } else {
        select::named(session.id(), (changes, &sides), words, &mut sources)
    }
}

fn commit_part(
    call: &Call,
    args: &args::Commit,
    (store, session): (&Store, &mut Locked),
    changes: &Changes,
    mut selection: Selection,
) -> Result<Ended, Problem> {
    let notes = select::settle(changes, Way::Forth, |_| true, &mut selection);
    if selection.is_empty() {
        notes.iter().for_each(|note| call.out.note(note));
        return Ok(nothing(call, session));
    }
    let mut sources = Sources::of(session)?;
    let taken = |(i, taken): (&usize, &Taken)| take(&changes.list[*i], taken, &mut sources);
    let (pieces, rests): (Vec<Piece>, Vec<Option<Object>>) =
        selection.iter().map(taken).collect::<Result<Vec<_>, Problem>>()?.into_iter().unzip();
    drop(sources);
    let of = session.id().clone();
    let words = match args.what.beside {
        true => ["agent", "run:", "own", "files", "of", of.tail()].map(str::to_owned).to_vec(),
        false => piece::words(Verb::Commit, &of, args.patch || args.what.picked.is_some(), &args.what.paths),
    };
    let terms = Terms { of: &of, verb: Verb::Commit, force: args.force, beside: args.what.beside };
    let Committed { id, put, mut report } = piece::commit(call, store, (&pieces, &words), &terms, args.what.dry_run)?;
    report.notes.splice(0..0, notes);
    if !args.what.dry_run {
        let rest = || go_on(call, store, session, (pieces, put, rests), &words);
        rest().map_err(|error| still_held(error, of.tail(), id.tail()))?;
    }
    let ended = if report.left.is_empty() { Ended::Done } else { Ended::With(Kind::LeftOut) };
    let changes = session.header.counts.changes;
    apply::say_part(call, &id, &report, (args.what.dry_run, args.all), Whole { session: &of, changes });
    Ok(ended)
}

/// Makes what is left of the session one that is made of what is on the tree now. `rests`: what each change leads to then, if not to what was
/// put.
fn go_on(
    call: &Call,
    store: &Store,
    session: &mut Locked,
    (pieces, put, rests): (Vec<Piece>, Vec<Object>, Vec<Option<Object>>),
    words: &[String],
) -> Result<(), Error> {
    let _noting = interrupt::note(Asked::GoesOn);
    let mut choices = Vec::with_capacity(pieces.len());
    for ((piece, put), rest) in pieces.into_iter().zip(put).zip(rests) {
        if let Bytes::Made(content) = &piece.content {
            // A merge begins with it, where somebody edits the file now.
            before::keep_bytes(&call.fs, &session.dir, content)?;
        }
        let (after, before) = (rest.unwrap_or(put.clone()), Before { object: put, print: None });
        choices.push(Choice { path: piece.change.path, before, after, content: Content::AsHeld });
    }
    choose(&call.fs, store, session, piece::argv(words), choices).map(drop)
}

/// The error if the session could not be told of what was committed of it.
fn still_held(error: Error, of: &str, part: &str) -> Problem {
    let why = format!("session {part} is committed, and session {of} still holds what it took: {error}");
    let problem = Problem::new(Kind::LeftOut, why);
    problem.remedy(format!("{} takes it back, and session {of} is as before", command(format_args!("rollback {part}"))))
}

/// The piece that is taken of a change, and the object that the rest of it leads to; `None` if there is no rest.
fn take(change: &Change, taken: &Taken, sources: &mut Sources<'_>) -> Result<(Piece, Option<Object>), Problem> {
    let path = &change.path;
    if change.marks.linked {
        let why = format!("{path}: it has several names, which would be files of their own in another session");
        return Err(Problem::refused(why).path(path).remedy("name the other paths, or commit the session whole"));
    }
    match taken {
        Taken::Whole => {
            let after = change.after.clone();
            let content = match change.in_place() {
                true => Bytes::None,
                false => Bytes::whole(path, &after, || sources.after(change, Side::Never, &OnTree::Changed))?,
            };
            Ok((Piece { change: change.clone(), after, content }, None))
        }
        Taken::Part { blocks, meta } => {
            let gone = || Problem::refused(format!("{path}: it was changed meanwhile")).path(path).remedy("try again");
            let Entries::Text(text) = Entries::of(change, Side::Never, sources)? else { return Err(gone()) };
            let (state, content) = part_of(change, &text, blocks, *meta).ok_or_else(gone)?;
            let content = if text.is_old(&content) { Bytes::None } else { Bytes::Made(content) };
            Ok((Piece { change: change.clone(), after: Some(state), content }, Some(text.rest(change))))
        }
    }
}
