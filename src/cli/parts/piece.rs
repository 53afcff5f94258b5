//! Pieces of a session that a call takes, opened, and the session of its own that they become.

use std::io::{Cursor, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::super::apply::{self, Terms};
use super::super::begun::{filled, take_away};
use super::super::call::Call;
use super::super::confirm::{self, Waiting};
use crate::engine::Effect;
use crate::engine::job::Verb;
use crate::engine::report::Report;
use crate::error::{Error, Kind};
use crate::fs::dir::Entry;
use crate::fs::path::Shown;
use crate::session::change::Change;
use crate::session::error::damaged;
use crate::session::id::Id;
use crate::session::opened::{Locked, Opener, Session};
use crate::session::run::Arg;
use crate::session::stage::Desk;
use crate::session::store::Store;
use crate::tree::state::Object;

/// A change to be made: what a part takes of one of a session, forth or back.
pub struct Piece {
    /// The path, and what has to be there.
    pub change: Change,
    pub after: Object,
    pub content: Bytes,
}

/// The content of a piece.
pub enum Bytes {
    /// No file, or one whose content stays.
    None,
    /// The object that the session of the change holds at a place: the part gets a further name of it.
    Held(Vec<u8>),
    /// The file that it keeps at a place: the part gets a copy.
    Kept(Vec<u8>),
    /// These bytes.
    Made(Vec<u8>),
}

/// A part that was committed, or would be.
pub struct Committed {
    /// Its session; gone after a dry run.
    pub id: Id,
    pub report: Report,
    pub waiting: Option<Waiting>,
}

/// Makes a session of pieces of session `of`, and commits it; `words`: its command, for listings. `ready` is told its id, and the objects
/// that it will put, before anything is changed. Where that comes to nothing, no session is left.
///
/// # Errors
/// All that stands against a commit.
pub fn commit(
    call: &Call,
    store: &Store,
    of: &Session,
    (pieces, words): (&[Piece], &[String]),
    (terms, dry_run): (&Terms<'_>, bool),
    ready: impl FnOnce(&Id, &[Object]) -> Result<(), Error>,
) -> Result<Committed, Error> {
    let mut put = Vec::new();
    let words = words.join(" ");
    let begun = match terms.verb {
        _ if terms.beside => store.begin_beside(&call.fs, words)?,
        Verb::Commit => store.begin_part(&call.fs, &of.header, words)?,
        Verb::Rollback | Verb::Redo => store.begin_own(&call.fs, words)?,
    };
    let mut session = filled(call, store, begun, |session| fill(call, store, session, (of, pieces)).map(|found| put = found))?;
    let effect = if dry_run { Effect::Print } else { Effect::Apply };
    let id = session.id().clone();
    let readied = if dry_run { Ok(()) } else { ready(&id, &put) };
    let done = match readied {
        Ok(()) => {
            let within = terms.within.filter(|_| !dry_run);
            within.map_or(Ok(true), |seconds| confirm::arm(call, store, &mut session, seconds))?;
            let done = apply::commit_part(call, store, &mut session, terms, effect);
            done.map(|report| (report, within.and_then(|seconds| confirm::begin(call, store, &mut session, seconds))))
        }
        Err(error) => Err(error),
    };
    // If the engine is stuck, the session stays.
    if dry_run || done.as_ref().is_err_and(|problem| !matches!(problem.kind(), Kind::Stuck)) {
        take_away(call, store, session);
    }
    done.map(|(report, waiting)| Committed { id, report, waiting })
}

/// Fills the session. Returns the objects as it holds them.
fn fill(call: &Call, store: &Store, session: &mut Locked, (of, pieces): (&Session, &[Piece])) -> Result<Vec<Object>, Error> {
    let mut places = Opener::new(of);
    let mut desk = Desk::open(&call.fs, store, session, false)?;
    let taken = pieces.iter().map(|Piece { change, after, content }| match content {
        Bytes::None => desk.take(change, after.clone(), None),
        Bytes::Held(place) => hold(&mut desk, change, places.at(place)?),
        Bytes::Kept(place) => desk.take(change, after.clone(), Some(&mut places.at(place)?.open_file()?)),
        Bytes::Made(bytes) => desk.take(change, after.clone(), Some(&mut Cursor::new(bytes))),
    });
    match taken.collect() {
        Ok(put) => desk.finish().map(|_left_for_the_next_staging| put),
        Err(error) => {
            desk.give_up();
            Err(error)
        }
    }
}

/// Gives the part a further name of what the session holds, or a copy where that cannot have one.
fn hold(desk: &mut Desk<'_>, change: &Change, from: Entry<'_>) -> Result<Object, Error> {
    match desk.take_held(change, from) {
        Ok(()) => Ok(change.after.clone()),
        Err(error) if error.io().is_some_and(|error| error.kind() == ErrorKind::NotFound) => Err(damaged(from, "it is missing")),
        Err(error) if change.marks.linked || error.io().is_none() => Err(error),
        Err(_) => desk.take(change, change.after.clone(), Some(&mut from.open_file()?)),
    }
}

/// The words of a call, for the record.
pub fn words(verb: Verb, id: &Id, patch: bool, paths: &[PathBuf]) -> Vec<String> {
    let patch = patch.then(|| "--patch".to_owned());
    let paths = paths.iter().map(|path| Shown(path.as_os_str().as_bytes()).to_string());
    [verb.word().to_owned(), id.tail().to_owned()].into_iter().chain(patch).chain(paths).collect()
}

/// The words as the step that a choice becomes shows them.
pub fn argv(words: &[String]) -> Vec<Arg> {
    ["recant"].into_iter().chain(words.iter().map(String::as_str)).map(|word| Arg(word.as_bytes().to_vec())).collect()
}
