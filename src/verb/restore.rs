//! Puts back what snapshots have, by a session of its own: the act of `snapshot restore` and `agent undo`.

use std::collections::HashMap;

use super::act::carry_out as act;
use super::act::carry_out::Conflicts;
use super::act::temporary::{filled, take_away};
use super::desk::Desk;
use super::error;
use super::fact::Fact;
use super::restore_row::Row;
use crate::engine::{Effect, LeftPath, PathOutcome, Report};
use crate::error::{Error, Kind};
use crate::fs::AbsPath;
use crate::session::{Id, Locked, Session, Store, log};
use crate::snapshot::{Compared, Difference, Series, fill, fill_to_ask, whole};

/// The entry of the log: for the session, and the number of paths that were changed and left, if it was done.
pub type Entering<'a> = dyn Fn(&Session, Option<(usize, usize)>) -> log::Entry + 'a;

/// An act that puts back what snapshots have.
pub struct PutBack<'a> {
    /// The command of its session.
    pub command: String,
    /// The act after "cannot" in a sentence.
    pub act: String,
    /// The snapshot that has most of it.
    pub n: u64,
    pub entry: &'a Entering<'a>,
    /// True if it goes on over what somebody does meanwhile.
    pub force: bool,
    /// True if nothing is to be changed.
    pub dry_run: bool,
}

/// The paths that went back, or would, and those that stay.
#[derive(Debug)]
pub struct WentBack {
    /// The session that did it; `None` in a dry run.
    pub session: Option<Id>,
    pub paths: Vec<Row>,
    pub left: Vec<LeftPath>,
}

/// Puts the differences back, or tells what that would do. What cannot go back stays, and leaves `compared`.
///
/// # Errors
/// Nothing of it can go back; all that stands against a commit.
pub fn put_back(
    desk: &Desk,
    store: &Store,
    series: &Series,
    compared: &mut Compared,
    putting: &PutBack<'_>,
) -> Result<WentBack, Error> {
    let (session, report) = loop {
        let done = match putting.dry_run {
            true => ask(desk, store, series, compared, putting).map(|report| (None, report)),
            false => commit(desk, store, series, compared, putting).map(|(session, report)| (Some(session), report)),
        };
        match done {
            Err(error) if give_up(series, compared, &error) => {}
            done => break done?,
        }
    };
    report.notes.iter().for_each(|note| desk.caller.tell(Fact::Warning(note)));
    let left = self::left(series, compared)?.into_iter().chain(report.left).collect();
    Ok(WentBack { session: session.map(|session| session.id().clone()), paths: rows(series, compared)?, left })
}

/// Makes a session of the differences, and commits it. If that comes to nothing, the session is removed.
fn commit(
    desk: &Desk,
    store: &Store,
    series: &Series,
    compared: &Compared,
    putting: &PutBack<'_>,
) -> Result<(Locked, Report), Error> {
    let mut writing_out = None;
    let fill = |session: &mut Locked| fill(&desk.fs, series, compared, session).map(|writing| writing_out = writing);
    let mut session = filled(desk, store, store.begin_own(&desk.fs, putting.command.clone())?, fill)?;
    let terms = (Conflicts::forced(putting.force), Effect::Apply);
    let done = act::restore(desk, store, &mut session, &putting.act, terms);
    drop(writing_out);
    let counts = done.as_ref().ok().map(|report| (report.rows.len(), report.left.len()));
    desk.note_in_log(store, &(putting.entry)(&session, counts));
    match done {
        Ok(report) => Ok((session, report)),
        Err(problem) => {
            // Nothing was changed, and the snapshot still has the content. If the engine is stuck, the session stays.
            if problem.kind() != Kind::Stuck {
                take_away(desk, store, session);
            }
            Err(of_snapshot(problem, series, putting.n))
        }
    }
}

/// Asks the engine what it would do, with a session without content that is removed again.
fn ask(desk: &Desk, store: &Store, series: &Series, compared: &Compared, putting: &PutBack<'_>) -> Result<Report, Error> {
    let fill = |session: &mut Locked| fill_to_ask(&desk.fs, series, compared, session);
    let mut session = filled(desk, store, store.begin_own(&desk.fs, putting.command.clone())?, fill)?;
    let done = act::restore(desk, store, &mut session, &putting.act, (Conflicts::Stop, Effect::Print));
    take_away(desk, store, session);
    done.map_err(|problem| of_snapshot(problem, series, putting.n))
}

/// Names the snapshot in the error for damage that the engine finds when it hashes large files: that names a session which is removed by
/// then.
fn of_snapshot(problem: Error, series: &Series, n: u64) -> Error {
    if problem.kind() == Kind::Damaged { error::damaged_content(problem, &series.directory, n) } else { problem }
}

/// Leaves the paths that prevented an act. False if it was prevented by something else.
fn give_up(series: &Series, compared: &mut Compared, error: &Error) -> bool {
    let prevented_by = act::prevented_by(error);
    let rows: HashMap<&str, &str> = prevented_by.iter().map(|row| (&*row.path, &*row.why)).collect();
    let why = |path: &AbsPath| {
        let mut above = std::iter::successors(Some(path.clone()), AbsPath::parent);
        above.find_map(|above| rows.get(&*above.to_string()).map(|why| (above, (*why).to_owned())))
    };
    compared.give_up(&series.directory, why)
}

/// The paths that differ, each with what becomes of it.
///
/// # Errors
/// One of them is too long.
pub fn rows(series: &Series, compared: &Compared) -> Result<Vec<Row>, Error> {
    let row = |difference: &Difference| Ok(Row { path: whole(&series.directory, &difference.path)?, done: done(difference) });
    compared.differences.iter().map(row).collect()
}

fn done(difference: &Difference) -> PathOutcome {
    match (&difference.now, &difference.then) {
        (None, _) => PathOutcome::Recreated,
        (_, None) => PathOutcome::Removed,
        _ if difference.is_metadata() => PathOutcome::Metadata,
        _ if difference.merged.is_some() => PathOutcome::Merged,
        _ => PathOutcome::Restored,
    }
}

/// The paths that stay, each with the reason, and what opens it if rights keep recant out: `--force` does not help there.
///
/// # Errors
/// One of them is too long.
pub fn left(series: &Series, compared: &Compared) -> Result<Vec<LeftPath>, Error> {
    let row = |(inner, why): &(AbsPath, String)| {
        let path = whole(&series.directory, inner)?;
        let is_closed = compared.closed.iter().any(|closed| inner.is_under(closed));
        let why = if is_closed { error::closed(&path, why) } else { why.clone() };
        Ok(LeftPath { path, why })
    };
    compared.left.iter().map(row).collect()
}
