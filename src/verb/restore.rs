//! Putting back what snapshots have: a session of the differences, committed by the engine like any other.

use std::collections::HashMap;

use super::act::carry_out::{self, Conflicts};
use super::act::temporary::{filled, take_away};
use super::desk::Desk;
use super::error::{closed_path, damaged_snapshot};
use super::fact::Said;
use super::restored::Row;
use crate::engine::Effect;
use crate::engine::report::{Left, Report};
use crate::error::{Error, Kind};
use crate::fs::path::AbsPath;
use crate::session::log;
use crate::session::opened::{Locked, Session};
use crate::session::store::Store;
use crate::snapshot::compare::{self, Compared};
use crate::snapshot::series::Series;
use crate::snapshot::{restore, whole};

pub type Entering<'a> = dyn Fn(&Session, Option<(usize, usize)>) -> log::Entry + 'a;

/// An act that puts back what snapshots have.
pub struct Putting<'a> {
    pub recorded: String,
    /// The act after "cannot" in a sentence.
    pub act: &'a str,
    /// The snapshot that has most of it.
    pub n: u64,
    /// The log's entry: for the session, and the number of paths that were changed and left, if it was done.
    pub entry: &'a Entering<'a>,
    /// True if it goes on over what somebody does meanwhile.
    pub force: bool,
}

/// Makes a session of the differences, and commits it. If that comes to nothing, the session is removed.
fn put_back(
    desk: &Desk,
    store: &Store,
    series: &Series,
    compared: &Compared,
    putting: &Putting<'_>,
) -> Result<(Locked, Report), Error> {
    let mut writing_out = None;
    let fill = |session: &mut Locked| restore::fill(&desk.fs, series, compared, session).map(|writing| writing_out = writing);
    let mut session = filled(desk, store, store.begin_own(&desk.fs, putting.recorded.clone())?, fill)?;
    let terms = (Conflicts::forced(putting.force), Effect::Apply);
    let done = carry_out::restore(desk, store, &mut session, putting.act, terms);
    drop(writing_out);
    let counts = done.as_ref().ok().map(|report| (report.rows.len(), report.left.len()));
    desk.note_in_log(store, &(putting.entry)(&session, counts));
    match done {
        Ok(report) => Ok((session, report)),
        Err(problem) => {
            let problem = damaged_snapshot(problem, &series.directory, putting.n);
            // Nothing was changed, and the snapshot still has the content. If the engine is stuck, the session stays.
            if !matches!(problem.kind(), Kind::Stuck) {
                take_away(desk, store, session);
            }
            Err(problem)
        }
    }
}

/// Does what [`put_back`] does, but for what cannot be done: that stays, with the reason, and the rest goes back.
pub fn put_back_what_can(
    desk: &Desk,
    store: &Store,
    series: &Series,
    compared: &mut Compared,
    putting: &Putting<'_>,
) -> Result<(Locked, Report), Error> {
    loop {
        match put_back(desk, store, series, compared, putting) {
            Err(error) if give_up(series, compared, &error) => {}
            done => return done,
        }
    }
}

/// Reports what the engine would do, as [`would`] does, but for what it cannot do.
pub fn would_what_can(
    desk: &Desk,
    store: &Store,
    series: &Series,
    compared: &mut Compared,
    recorded: (String, &str, u64),
) -> Result<Report, Error> {
    let (recorded, act, n) = recorded;
    loop {
        match would(desk, store, series, compared, (recorded.clone(), act, n)) {
            Err(error) if give_up(series, compared, &error) => {}
            done => return done,
        }
    }
}

/// Leaves the paths that prevented an act. False if it was prevented by something else.
fn give_up(series: &Series, compared: &mut Compared, error: &Error) -> bool {
    let prevented_by = carry_out::prevented_by(error);
    let rows: HashMap<&str, &str> = prevented_by.iter().map(|row| (&*row.path, &*row.why)).collect();
    let why = |path: &AbsPath| {
        let mut above = std::iter::successors(Some(path.clone()), AbsPath::parent);
        above.find_map(|above| rows.get(&*above.to_string()).map(|why| (above, (*why).to_owned())))
    };
    compared.give_up(&series.directory, why)
}

/// Reports what the engine would do. Asks it as a restore does, with a session without content that is removed again.
fn would(
    desk: &Desk,
    store: &Store,
    series: &Series,
    compared: &Compared,
    (recorded, act, n): (String, &str, u64),
) -> Result<Report, Error> {
    let fill = |session: &mut Locked| restore::fill_to_ask(&desk.fs, series, compared, session);
    let mut session = filled(desk, store, store.begin_own(&desk.fs, recorded)?, fill)?;
    let done = carry_out::restore(desk, store, &mut session, act, (Conflicts::Stop, Effect::Print));
    take_away(desk, store, session);
    let report = done.map_err(|problem| damaged_snapshot(problem, &series.directory, n))?;
    report.notes.iter().for_each(|note| desk.caller.tell(Said::Warning(note)));
    Ok(report)
}

/// The paths that the comparison left out, then those that the engine did.
pub fn and_of(mut left: Vec<Left>, report: &Report) -> Vec<Left> {
    left.extend(report.left.iter().cloned());
    left
}

pub fn rows(series: &Series, compared: &Compared) -> Result<Vec<Row>, Error> {
    let row = |d: &compare::Difference| {
        let done = match (&d.now, &d.then) {
            (None, _) => "recreated",
            (_, None) => "removed",
            _ if d.is_metadata() => "metadata",
            _ if d.merged.is_some() => "merged",
            _ => "restored",
        };
        Ok(Row { path: whole(&series.directory, &d.path)?, done })
    };
    compared.differences.iter().map(row).collect()
}

pub fn left(series: &Series, compared: &Compared) -> Result<Vec<Left>, Error> {
    let row = |(path, why): &(AbsPath, String)| {
        let path = whole(&series.directory, path)?;
        let why = closed_path(&path, why);
        Ok(Left { path, why })
    };
    compared.left.iter().map(row).collect()
}
