//! Takes an operation back after a failure or a crash: undoes it, and finishes what has to stay because somebody has changed it.

use super::finish;
use super::finish::finish;
use super::remove_prepared::add_kept;
use super::remove_prepared::clean;
use super::undo_steps::undo;
use crate::engine::error::stuck;
use crate::engine::item;
use crate::engine::journal::{Draft, Journal, prepared_spots_of};
use crate::engine::reach::Reach;
use crate::engine::report::LeftPath;
use crate::engine::work::records;
use crate::error::{Against, Error, Kind, Reason};
use crate::fs::{Fs, OnSignal, interrupt};
use crate::session::{Session, Store};

/// The remains of an operation that was taken back.
#[derive(Debug, Default)]
pub struct Remains {
    /// Paths that somebody has changed: they are left as they are. What belongs to their changes is sealed.
    pub left: Vec<LeftPath>,
    /// Names of recant's own that stay, or may lie in a directory that is not where it was; and what was given up.
    pub strays: Vec<LeftPath>,
    pub notes: Vec<String>,
}

/// Takes back what a failed operation has done, its first `begun` steps and all that Prepare made. Returns the error to report. `reach`
/// has the directories that it worked in.
pub fn after_failure(
    fs: &Fs,
    store: &Store,
    session: &Session,
    mut reach: Reach,
    journal: &Journal,
    begun: usize,
    why: Error,
) -> Error {
    // Whoever asked it to end has been heard: a copy or a hash of the undo is not to stop at that.
    let _noting = interrupt::note(OnSignal::GoesOn);
    match take_back_begun(fs, store, session, &mut reach, journal, begun) {
        Ok(Remains { left, strays, .. }) if left.is_empty() => undone(why, &strays),
        Ok(Remains { left, strays, .. }) => left_behind(session, journal, &why, &left, &strays),
        Err(error) => half_done(store, journal, &format!("{why}; and the undo failed: {error}")),
    }
}

/// The error when all was undone. `strays` were made ready and stay, or may lie in a directory that is not where it was.
fn undone(why: Error, strays: &[LeftPath]) -> Error {
    let undone = if !strays.is_empty() {
        why.with_kind(Kind::LeftOut).with_state(format!("undone, except for this:\n{}", shown(strays)))
    } else {
        why.with_state("what had been done was undone: the tree is as it was")
    };
    undone.with_reason(Reason::Undone)
}

/// The error when paths that somebody has changed are done and sealed, the rest undone. `strays` are recant's own names that stay.
fn left_behind(session: &Session, journal: &Journal, why: &Error, left: &[LeftPath], strays: &[LeftPath]) -> Error {
    let verb = journal.head.verb;
    let first = left.first().map(|left| &left.path);
    let rows: Vec<Against> = left.iter().chain(strays).map(|left| Against::new(&left.path, &*left.why)).collect();
    let message = format!("{why}; undone except for {} path{}", rows.len(), if rows.len() == 1 { "" } else { "s" });
    let state = format!("at these paths the {} is done, and what was there before is kept; all else is as it was", verb.word());
    Error::new(Kind::LeftOut, message)
        .with_path(first.map(ToString::to_string).unwrap_or_default())
        .with_rows(rows)
        .with_reason(Reason::LeftBehind)
        .with_state(state)
        .with_remedy_if(first.map(|path| finish::how_to_go_on(verb.inward(), session.id().as_str(), path)))
}

fn shown(left: &[LeftPath]) -> String {
    left.iter().map(LeftPath::to_string).collect::<Vec<_>>().join("\n")
}

fn half_done(store: &Store, journal: &Journal, why: &str) -> Error {
    let path = store.journals().at(journal.head.session.as_str().as_bytes()).to_string();
    let state = "it is done in part; the journal stays, and nothing more is touched";
    stuck(path, why, state)
}

/// Removes what Prepare made, before there was a journal.
pub fn take_back_prepared(fs: &Fs, store: &Store, session: &Session, reach: &mut Reach, draft: &Draft, why: Error) -> Error {
    let cleaned = clean(fs, session, reach, None, (&draft.made, &draft.times))
        .and_then(|strays| Journal::remove(fs, store, session.id()).map(|()| strays));
    match cleaned {
        Ok(strays) => undone(why, &strays),
        Err(error) if error.kind() == Kind::Stuck => error,
        Err(error) => stuck(
            session.dir.path().display(),
            format!("{why}; and what was made ready could not be removed: {error}"),
            "the tree is as it was except for temporary names beside the targets",
        ),
    }
}

/// Takes a whole operation back, durably, and removes its journal.
pub fn take_back(fs: &Fs, store: &Store, session: &Session, journal: &Journal) -> Result<Remains, Error> {
    let mut reach = Reach::of(&session.dir, journal)?;
    match &journal.head.rest {
        None => take_back_begun(fs, store, session, &mut reach, journal, journal.turns.len()),
        // It was undone, and interrupted after that.
        Some(left) => {
            let notes = finish(fs, store, session, &mut reach, journal)?;
            Ok(Remains { left: left.clone(), strays: Vec::new(), notes })
        }
    }
}

fn take_back_begun(
    fs: &Fs,
    store: &Store,
    session: &Session,
    reach: &mut Reach,
    journal: &Journal,
    begun: usize,
) -> Result<Remains, Error> {
    let mut stays = undo(fs, session, reach, journal, begun)?;
    let gone = finish::vanished_items(reach, journal, &mut stays)?;
    let given_up = finish::give_up(fs, reach, journal, &gone)?;
    let rest = finish::journal_of_rest(fs, session, reach, journal, &stays, !given_up.is_empty())?;
    let made = match &rest {
        None => journal.prepared_spots(),
        Some(rest) => {
            let is_undone = |item: &&item::Item| rest.items.binary_search_by(|kept| kept.path.cmp(&item.path)).is_err();
            let frame = journal.frame();
            journal.items.iter().filter(is_undone).flat_map(|item| prepared_spots_of(&frame, item)).collect()
        }
    };
    let mut strays = clean(fs, session, reach, Some(journal), (&made, &journal.head.times))?;
    add_kept(reach, session, &made, &mut strays)?;
    strays.extend(given_up);
    let is_named = |mode: &LeftPath| rest.as_ref().is_some_and(|rest| rest.items.iter().any(|item| item.path == mode.path));
    strays.extend(finish::modes(journal, &stays).into_iter().filter(|mode| !is_named(mode)));
    note_strays(fs, store, journal, &strays)?;
    let Some(rest) = rest else {
        Journal::remove(fs, store, session.id())?;
        return Ok(Remains { left: Vec::new(), strays, notes: Vec::new() });
    };
    rest.write_new(fs, store)?.replace(fs, store, session.id())?;
    let notes = finish(fs, store, session, reach, &rest)?;
    Ok(Remains { left: rest.head.rest.unwrap_or_default(), strays, notes })
}

/// Logs what stays. I8: if recant is killed after the journal is gone there is no report, and nothing else names it.
fn note_strays(fs: &Fs, store: &Store, journal: &Journal, strays: &[LeftPath]) -> Result<(), Error> {
    let notes: Vec<String> = strays.iter().map(LeftPath::to_string).collect();
    if notes.is_empty() { Ok(()) } else { records::note_report(fs, store, journal, notes) }
}
