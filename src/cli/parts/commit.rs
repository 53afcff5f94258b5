//! `commit ID PATH`, `commit ID PATH:2,5-7` and `commit ID --patch`: a part of a session becomes a session of its own, committed at once. The
//! rest goes on, made of what is on the tree then.

use super::super::apply::{self, Terms, Whole};
use super::super::args;
use super::super::call::Call;
use super::super::ended::Ended;
use super::super::merge;
use super::super::picks;
use super::super::since;
use super::ask::ask;
use super::piece::{self, Bytes, Committed, Piece};
use super::select::{self, Selection, Way};
use crate::capture::choice::may_choose;
use crate::cli::place::all_whole;
use crate::commit;
use crate::diff::entries::{Entries, Taken, part_of};
use crate::diff::sources::Sources;
use crate::engine::job::Verb;
use crate::error::{Error, Kind};
use crate::fs::Fs;
use crate::fs::interrupt::{self, Asked};
use crate::session::before;
use crate::session::change::{Change, Changes};
use crate::session::id::Id;
use crate::session::opened::{Locked, Session};
use crate::session::parting::{Parting, Stays, may_part};
use crate::session::run::Run;
use crate::session::sides::Side;
use crate::session::store::Store;
use crate::tree::state::{Object, State};
use crate::verb::chosen::chosen;
use crate::verb::want::Want;

/// Commits a session, or the part that the call asks for.
///
/// # Errors
/// The words name what the session does not hold; all that stands against a commit.
pub fn commit(call: &Call, args: &args::Commit) -> Result<Ended, Error> {
    call.collected.replace(Some(Vec::new()));
    match part(call, args)? {
        Some(ended) => Ok(ended),
        None => apply::commit(call, args),
    }
}

/// Commits a part of a session, if the call asks for one. `None` if it asks for all, or for whole paths that go by the session's own commit.
fn part(call: &Call, args: &args::Commit) -> Result<Option<Ended>, Error> {
    let what = &args.what;
    if !args.patch && what.picked.is_none() && what.paths.is_empty() {
        return Ok(None);
    }
    let want = Want::Commit;
    let (store, mut session) = if what.dry_run { apply::to_look_at(call, &what.id, want)? } else { call.locked(&what.id, want)? };
    let (mut changes, session_id) = (session.changes()?, session.id().to_string());
    let is_part = match &what.picked {
        Some(_) if what.beside => true,
        Some(picked) => picks::is_part(picked, &session, &changes)?,
        None if args.patch || select::names_blocks(&what.paths, &changes)? => true,
        None => may_part(&session.header),
    };
    if !is_part {
        return Ok(None);
    }
    let by_paths = !args.patch && what.picked.is_none() && !select::names_blocks(&what.paths, &changes)?;
    let mut selection = if by_paths {
        commit::refuse_unsynced(&session, args.accept_unsynced)?;
        // What is not in it is refused there, with what the word may mean.
        let Ok(mut wanted) = chosen(session.id(), &changes, &all_whole(&what.paths)?) else { return Ok(None) };
        if args.merge {
            let mut paths = wanted.iter().map(|i| changes.list[*i].path.clone()).collect();
            if !what.dry_run {
                ask_before(call, store, &session, what)?;
            }
            if !merge::merge(call, store, &mut session, what.dry_run, &mut paths)? {
                return Ok(Some(Ended::Done));
            }
            changes = session.changes()?;
            wanted = paths.iter().filter_map(|path| changes.list.binary_search_by(|change| change.path.cmp(path)).ok()).collect();
        }
        wanted.into_iter().map(|i| (i, Taken::Whole)).collect()
    } else {
        refuse(args, &session)?;
        selected(call, args, &session, &changes)?
    };
    let mut notes = select::with_names(&session, &changes, &mut selection)?;
    notes.extend(select::settle(&changes, Way::Forth, |_| true, &mut selection));
    if selection.is_empty() {
        notes.iter().for_each(|note| call.out.note(note));
        return Ok(Some(nothing(call, &session)));
    }
    let is_all = selection.len() == changes.list.len();
    if !what.beside && is_all && selection.values().all(|taken| *taken == Taken::Whole) {
        // All there is: no part of it. By its paths, as a command may go on in the session until it is locked again.
        drop(session);
        notes.iter().for_each(|note| call.out.note(note));
        let mut all = args.clone();
        (all.patch, all.merge, all.what.id) = (false, false, session_id);
        all.what.paths = changes.list.iter().map(|change| change.path.as_path().to_path_buf()).collect();
        return apply::commit(call, &all).map(Some);
    }
    if !may_part(&session.header) || selection.values().any(|taken| *taken != Taken::Whole) {
        may_choose(&session)?;
    }
    commit_part(call, args, (store, &mut session), &changes, (&selection, notes)).map(Some)
}

/// Asks what a person is asked before a commit, unless the screen has asked.
fn ask_before(call: &Call, store: &Store, session: &Locked, what: &args::What) -> Result<(), Error> {
    if what.beside {
        return Ok(());
    }
    apply::ask_of_failed(call, session)?;
    if what.picked.is_none() {
        since::ask(call, store, session)?;
    }
    Ok(())
}

fn nothing(call: &Call, session: &Locked) -> Ended {
    call.out.note(format_args!("nothing of session {} was chosen, and nothing was changed", session.id().tail()));
    Ended::Done
}

/// Refuses what takes no part, before anything is done.
fn refuse(args: &args::Commit, session: &Locked) -> Result<(), Error> {
    if args.merge {
        let problem = Error::usage("--merge takes whole paths");
        return Err(problem.with_remedy("name them without numbers, or commit the blocks without --merge"));
    }
    commit::refuse_unsynced(session, args.accept_unsynced)
}

fn selected(call: &Call, args: &args::Commit, session: &Locked, changes: &Changes) -> Result<Selection, Error> {
    if let Some(picked) = &args.what.picked {
        return picks::selection(picked, session, changes);
    }
    let (sides, words) = (session.sides(changes.list.len())?, &args.what.paths);
    let mut sources = Sources::of(session)?;
    if args.patch {
        ask(call, "Commit", (changes, &sides), &chosen(session.id(), changes, &all_whole(words)?)?, &mut sources)
    } else {
        select::named(session.id(), (changes, &sides), words, &mut sources)
    }
}

fn commit_part(
    call: &Call,
    args: &args::Commit,
    (store, session): (&Store, &mut Locked),
    changes: &Changes,
    (selection, notes): (&Selection, Vec<String>),
) -> Result<Ended, Error> {
    if !args.what.dry_run && !args.merge {
        ask_before(call, store, session, &args.what)?;
    }
    let run = session.run()?;
    let mut sources = Sources::of(session)?;
    let taken = |(i, taken): (&usize, &Taken)| take(run.as_ref(), &changes.list[*i], taken, &mut sources);
    let (pieces, rests): (Vec<Piece>, Vec<Option<Object>>) =
        selection.iter().map(taken).collect::<Result<Vec<_>, Error>>()?.into_iter().unzip();
    let of = session.id().clone();
    let words = match args.what.beside {
        true => ["agent", "run:", "own", "files", "of", of.tail()].map(str::to_owned).to_vec(),
        false => piece::words(Verb::Commit, &of, args.patch || args.what.picked.is_some(), &args.what.paths),
    };
    let terms = Terms {
        of: &of,
        verb: Verb::Commit,
        force: args.force,
        within: args.confirm_within,
        beside: args.what.beside,
        takes_back: None,
        reason: args.what.message.as_deref(),
    };
    let note = |part: &Id, put: &[Object]| {
        let parting = parting_of(&call.fs, session, part, (&pieces, put, rests), &words)?;
        store.note_parting(&call.fs, session.id(), &parting)
    };
    let done = piece::commit(call, store, session, (&pieces, &words), (&terms, args.what.dry_run), note);
    let _noting = interrupt::note(Asked::GoesOn);
    // Where it came to nothing, what cannot be forgotten now is when the session is locked next.
    let gone_on = session.settle_parting(&call.fs, store);
    let Committed { id, mut report, waiting } = done?;
    report.notes.splice(0..0, notes);
    let ended = if report.left.is_empty() { Ended::Done } else { Ended::With(Kind::LeftOut) };
    let changes = session.header.counts.changes;
    // What was done is said in any case.
    let whole = Whole { session: &of, changes };
    apply::say_part(call, &id, &report, args.what.dry_run, (waiting.as_ref(), whole));
    gone_on.map_err(|error| apply::untold(&error, of.tail(), id.tail()))?;
    Ok(ended)
}

/// The record of what leaves the session with these pieces. `rests`: what each change leads to then; `None` for one that leaves whole.
fn parting_of(
    fs: &Fs,
    session: &Locked,
    part: &Id,
    (pieces, put, rests): (&[Piece], &[Object], Vec<Option<Object>>),
    words: &[String],
) -> Result<Parting, Error> {
    let (mut left, mut stays) = (Vec::new(), Vec::new());
    for ((piece, put), rest) in pieces.iter().zip(put).zip(rests) {
        if let Bytes::Made(content) = &piece.content {
            // A merge begins with it, where somebody edits the file now.
            before::keep_bytes(fs, &session.dir, content)?;
        }
        let path = piece.change.path.clone();
        match rest {
            Some(after) => stays.push(Stays { path, before: put.clone(), after }),
            None => left.push(path),
        }
    }
    Ok(Parting { part: part.clone(), lines: session.header.lines, words: piece::argv(words), left, stays })
}

/// The piece that is taken of a change, and the object that the rest of it leads to; `None` if there is no rest.
fn take(run: Option<&Run>, change: &Change, taken: &Taken, sources: &mut Sources<'_>) -> Result<(Piece, Option<Object>), Error> {
    let path = &change.path;
    match taken {
        Taken::Whole => {
            let after = change.after.clone();
            let content = match Session::held_at(change, Side::Never, run) {
                Some(at) if change.marks.linked || after.as_ref().is_some_and(State::is_file) => Bytes::Held(at),
                _ => Bytes::None,
            };
            Ok((Piece { change: change.clone(), after, content }, None))
        }
        Taken::Part { .. } if change.marks.linked => {
            let why = format!("{path}: it has several names, which leave together");
            Err(Error::refused(why).with_path(path).with_remedy("name it without blocks: all of them go along"))
        }
        Taken::Part { blocks, meta } => {
            let gone = || Error::refused(format!("{path}: it was changed meanwhile")).with_path(path).with_remedy("try again");
            let Entries::Text(text) = Entries::of(change, Side::Never, sources)? else { return Err(gone()) };
            let (state, content) = part_of(change, &text, blocks, *meta).ok_or_else(gone)?;
            let content = if text.is_old(&content) { Bytes::None } else { Bytes::Made(content) };
            Ok((Piece { change: change.clone(), after: Some(state), content }, Some(text.rest(change))))
        }
    }
}
