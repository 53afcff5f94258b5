//! Pieces of a session that a call takes, opened, and the session of its own that they become.

use std::io::{Cursor, ErrorKind};
use std::os::unix::ffi::OsStrExt;

use crate::engine::{Report, SinceAct, Verb};
use crate::error::{Error, Kind};
use crate::fs::{Entry, Shown};
use crate::session::{Arg, Change, Id, Locked, Opener, Session, Staging as Stage, Store, damaged};
use crate::settings::OnLimit;
use crate::tree::Object;
use crate::verb::act::carry_out::{Act, Conflicts, carry_out};
use crate::verb::act::deadline;
use crate::verb::act::temporary::{filled, take_away};
use crate::verb::act::unconfirmed::Waiting;
use crate::verb::desk::Desk;
use crate::verb::error::{MISSING, Subject};
use crate::verb::resolve::target::{Target, What};

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

/// The terms of a part's commit.
pub struct Terms<'a> {
    /// The session that it is taken of.
    pub of: &'a Session,
    /// For messages: the verb that was called.
    pub verb: Verb,
    pub target: &'a Target,
    /// Its command, for listings.
    pub words: &'a [String],
    pub force: bool,
    /// Seconds after which it is rolled back unless somebody confirms it.
    pub within: Option<i64>,
}

impl Terms<'_> {
    fn begin(&self, desk: &Desk, store: &Store) -> Result<Locked, Error> {
        let words = self.words.join(" ");
        match (self.verb, &self.target.what) {
            (_, What::Beside(_)) => store.begin_beside(&desk.fs, words),
            (Verb::Commit, _) => store.begin_part(&desk.fs, &self.of.header, words),
            (Verb::Rollback | Verb::Redo, _) => store.begin_own(&desk.fs, words),
        }
    }

    fn act(&self, desk: &Desk) -> Act<'static> {
        let since = SinceAct::of(&self.of.header, self.verb);
        let act = Act { accept_unsynced: true, since, ..self.target.act(desk, Conflicts::forced(self.force)) };
        if self.verb == Verb::Commit { act } else { Act { on_limit: OnLimit::Full, ..act } }
    }
}

/// Makes a session of pieces of another one, and commits it. `ready` is told its id, and the objects that it will put, before anything is
/// changed. Where that comes to nothing, no session is left.
///
/// # Errors
/// All that stands against a commit.
pub fn commit(
    desk: &Desk,
    store: &Store,
    pieces: &[Piece],
    terms: &Terms<'_>,
    ready: impl FnOnce(&Id, &[Object]) -> Result<(), Error>,
) -> Result<Committed, Error> {
    let (mut put, dry_run) = (Vec::new(), terms.target.dry_run);
    let fill_it = |session: &mut Locked| fill(desk, store, session, (terms.of, pieces)).map(|found| put = found);
    let mut session = filled(desk, store, terms.begin(desk, store)?, fill_it)?;
    let id = session.id().clone();
    let readied = if dry_run { Ok(()) } else { ready(&id, &put) };
    let done = readied.and_then(|()| committed(desk, store, &mut session, terms));
    // If the engine is stuck, the session stays.
    if dry_run || done.as_ref().is_err_and(|problem| !matches!(problem.kind(), Kind::Stuck)) {
        take_away(desk, store, session);
    }
    done.map(|(report, waiting)| Committed { id, report, waiting })
}

fn committed(desk: &Desk, store: &Store, session: &mut Locked, terms: &Terms<'_>) -> Result<(Report, Option<Waiting>), Error> {
    let within = terms.within.filter(|_| !terms.target.dry_run);
    within.map_or(Ok(true), |seconds| deadline::arm(desk, store, session, seconds))?;
    terms.target.note_purpose(session);
    let subject = Subject::Session(terms.verb, terms.of.id());
    let report = carry_out(desk, store, session, &[], terms.target.effect(), &terms.act(desk), subject)?;
    Ok((report, within.and_then(|seconds| deadline::begin(desk, store, session, seconds))))
}

/// Fills the session. Returns the objects as it holds them.
fn fill(desk: &Desk, store: &Store, session: &mut Locked, (of, pieces): (&Session, &[Piece])) -> Result<Vec<Object>, Error> {
    let mut places = Opener::new(of);
    let mut stage = Stage::open(&desk.fs, store, session, false)?;
    let taken = pieces.iter().map(|Piece { change, after, content }| match content {
        Bytes::None => stage.take(change, after.clone(), None),
        Bytes::Held(place) => hold(&mut stage, change, places.at(place)?),
        Bytes::Kept(place) => stage.take(change, after.clone(), Some(&mut places.at(place)?.open_file()?)),
        Bytes::Made(bytes) => stage.take(change, after.clone(), Some(&mut Cursor::new(bytes))),
    });
    match taken.collect() {
        Ok(put) => stage.finish().map(|_left_for_the_next_staging| put),
        Err(error) => {
            stage.give_up();
            Err(error)
        }
    }
}

/// Gives the part a further name of what the session holds, or a copy where that cannot have one.
fn hold(stage: &mut Stage<'_>, change: &Change, from: Entry<'_>) -> Result<Object, Error> {
    match stage.take_held(change, from) {
        Ok(()) => Ok(change.after.clone()),
        Err(error) if error.io().is_some_and(|error| error.kind() == ErrorKind::NotFound) => Err(damaged(from, MISSING)),
        Err(error) if change.marks.linked || error.io().is_none() => Err(error),
        Err(_) => stage.take(change, change.after.clone(), Some(&mut from.open_file()?)),
    }
}

/// The words of a call, for the record; `--patch` where parts were chosen one by one.
pub fn words(verb: Verb, id: &Id, what: &What) -> Vec<String> {
    let patch = matches!(what, What::Asked(_) | What::Picked(_)).then(|| "--patch".to_owned());
    let paths = what.words().iter().map(|word| Shown(word.typed().as_os_str().as_bytes()).to_string());
    [verb.word().to_owned(), id.tail().to_owned()].into_iter().chain(patch).chain(paths).collect()
}

/// The words as the step that a choice becomes shows them.
pub fn argv(words: &[String]) -> Vec<Arg> {
    ["recant"].into_iter().chain(words.iter().map(String::as_str)).map(|word| Arg(word.as_bytes().to_vec())).collect()
}
