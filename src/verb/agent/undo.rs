//! `agent undo`: takes turns back by a session of its own.

use serde::Serialize;

use super::diff::outside;
use super::project_turns::is_back;
use super::project_turns::{Here, Undone};
use super::take_snapshots::Taken;
use super::uncovered::{NotCovered, not_covered};
use crate::agent::undo::undo as compare;
use crate::agent::{Asked, Built, Chosen, Line, Reach, Turn, Turns, Undo};
use crate::engine::LeftPath;
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Id, Session, log};
use crate::snapshot::{Compared, Series, whole};
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::fact::Fact;
use crate::verb::question::Question;
use crate::verb::restore::{PutBack, WentBack, left, put_back, rows};
use crate::verb::restore_row::Row;

/// The turns that are to be taken back, and how.
pub struct TakeBack {
    /// The first one; `None`: the newest that changed something.
    pub n: Option<u64>,
    pub reach: Reach,
    /// True if others' work on the paths goes, too.
    pub force: bool,
    pub dry_run: bool,
}

/// Turns that were taken back, or would be, as JSON has them: docs/json.md.
#[derive(Serialize)]
pub struct TakenBack {
    pub directory: AbsPath,
    pub turns: Vec<u64>,
    pub dry_run: bool,
    /// The session that did it; `None` if nothing was done.
    pub session: Option<Id>,
    pub paths: Vec<Row>,
    /// The paths that stay.
    pub skipped: Vec<LeftPath>,
    pub not_covered: Vec<NotCovered>,
    /// The sessions that took all of it back before.
    #[serde(skip)]
    pub already: Vec<Id>,
    /// The directories that were built from sources which go back.
    #[serde(skip)]
    pub built: Vec<Built>,
    /// True if some of it changed while a command ran, and no tool named it.
    #[serde(skip)]
    pub by_commands: bool,
    /// The first of the turns.
    #[serde(skip)]
    pub first: Option<Turn>,
}

impl TakenBack {
    /// True if nothing of the turns stays.
    pub fn is_whole(&self) -> bool {
        self.skipped.is_empty() && self.not_covered.is_empty()
    }
}

/// Takes turns back. `paths`: these alone, with the directory as `/`; all if there is none.
///
/// # Errors
/// There is no such turn, or none is covered; nobody can be asked, or the answer is no; all that stands against a restore.
pub fn undo(
    desk: &Desk,
    asked: &TakeBack,
    paths: impl FnOnce(&AbsPath) -> Result<Vec<AbsPath>, Error>,
) -> Result<TakenBack, Error> {
    let here = Here::find(desk)?;
    let meant = here.meant(&here.all()?, asked.n)?;
    let series = here.series()?;
    if !asked.dry_run {
        if !desk.yes && !desk.can_ask {
            return Err(error::turns_unasked(meant));
        }
        desk.prepare_to_change(here.store)?;
    }
    let lock = series.lock(&desk.fs)?;
    let turns = here.settled(&Taken { desk, store: here.store, turns: &here.turns, series: &series, lock: &lock }, meant)?;
    let undone = here.undone(&turns)?;
    let near = Turns::near(here.store, &here.directory)?;
    let chosen = Chosen::from(&turns, &near, (meant, asked.reach), &undone);
    let paths = paths(&here.directory).map_err(|problem| error::name_paths_of(problem, &here.directory))?;
    refuse_pruned(&here, &series, &chosen)?;
    let found = compare(&here.store.path, &series, &chosen, Asked { paths: &paths, force: asked.force })?;
    let Some(found) = found else { return Err(error::no_turn_covered(chosen.back.first().copied())) };
    refuse_unknown(&here, &chosen, &found.compared, &paths, asked.n)?;
    let mut undoing =
        Undoing { desk, asked, here: &here, series: &series, turns: &turns, chosen: &chosen, undone: &undone, meant, found };
    undoing.carry_out()
}

fn refuse_pruned(here: &Here<'_>, series: &Series, chosen: &Chosen<'_>) -> Result<(), Error> {
    for turn in &chosen.back {
        if let Some((n, _)) = turn.before.filter(|_| turn.covered)
            && !series.is_there(n)?
        {
            return Err(error::turn_pruned(&here.directory, turn.head.n, n));
        }
    }
    Ok(())
}

/// Refuses paths that neither the turns nor the project has. `n`: the turn that was named.
fn refuse_unknown(
    here: &Here<'_>,
    chosen: &Chosen<'_>,
    compared: &Compared,
    paths: &[AbsPath],
    n: Option<u64>,
) -> Result<(), Error> {
    let wrote = |path: &AbsPath| chosen.back.iter().flat_map(|turn| &turn.wrote).any(|wrote| wrote.path.is_under(path));
    match paths.iter().zip(&compared.found).find(|(path, found)| !**found && !wrote(path)) {
        None => Ok(()),
        Some((path, _)) => Err(error::not_of_turns(&whole(&here.directory, path)?, n)),
    }
}

/// Turns that are about to be taken back.
struct Undoing<'a> {
    desk: &'a Desk,
    asked: &'a TakeBack,
    here: &'a Here<'a>,
    series: &'a Series,
    /// All turns of the directory.
    turns: &'a [Turn],
    chosen: &'a Chosen<'a>,
    undone: &'a Undone,
    meant: u64,
    found: Undo,
}

impl Undoing<'_> {
    fn carry_out(&mut self) -> Result<TakenBack, Error> {
        let value = self.value()?;
        if value.paths.is_empty() {
            return Ok(value);
        }
        let act = error::undo_of_turns(&value.turns);
        // The directory is that of the session.
        let (recorded, n) = (format!("agent undo {}", self.meant), self.found.n);
        let Self { desk, asked, here, series, .. } = *self;
        if !asked.dry_run {
            let TakenBack { turns, paths: rows, skipped: kept, not_covered, .. } = &value;
            desk.confirm(Question::UndoTurns { turns, rows, kept, not_covered })?;
        }
        let meant = self.meant;
        let entry = move |session: &Session, counts| entry(meant, session, counts);
        let putting = PutBack { command: recorded, act, n, entry: &entry, force: asked.force, dry_run: asked.dry_run };
        let WentBack { session, paths, left } = put_back(desk, here.store, series, &mut self.found.compared, &putting)?;
        if let Some(id) = &session {
            self.note_undone(id)?;
            self.tell_running()?;
        }
        Ok(TakenBack { session, paths, skipped: left, ..value })
    }

    /// The value before anything is done.
    fn value(&self) -> Result<TakenBack, Error> {
        let (chosen, found) = (self.chosen, &self.found);
        // The first one is named whatever it did: it was asked for.
        let has_part = |turn: &&&Turn| turn.head.n == self.meant || !turn.wrote.is_empty() && !is_back(turn, self.undone);
        let numbers: Vec<u64> = chosen.back.iter().filter(has_part).map(|turn| turn.head.n).collect();
        let first = chosen.back.iter().find(|turn| numbers.first() == Some(&turn.head.n)).copied();
        let is_all_back = numbers.len() == 1 && first.is_some_and(|turn| is_back(turn, self.undone));
        let paths = rows(self.series, &found.compared)?;
        let goes_back: Vec<AbsPath> = paths.iter().map(|row| row.path.clone()).collect();
        for turn in &chosen.back {
            outside(turn).into_iter().for_each(|path| self.desk.caller.tell(Fact::WroteOutside { n: turn.head.n, path }));
        }
        Ok(TakenBack {
            directory: self.here.directory.clone(),
            turns: numbers,
            dry_run: self.asked.dry_run,
            session: None,
            paths,
            skipped: left(self.series, &found.compared)?,
            not_covered: not_covered(&self.desk.names(), &self.here.directory, found.fates.clone(), &goes_back)?,
            already: first.filter(|_| is_all_back).map_or(Vec::new(), |turn| self.here.undone_by(turn)),
            built: found.built.clone(),
            by_commands: found.by_commands > 0,
            first: first.cloned(),
        })
    }

    /// Notes in each turn of which something went back, or was as before already, the session that did it.
    fn note_undone(&self, id: &Id) -> Result<(), Error> {
        for turn in &self.chosen.back {
            let before = self.undone.get(&turn.head.n);
            let is_its = |path: &&AbsPath| {
                turn.wrote.iter().any(|wrote| wrote.path == **path) && !before.is_some_and(|before| before.contains(*path))
            };
            let same: Vec<AbsPath> = self.found.same.iter().filter(is_its).cloned().collect();
            if !same.is_empty() || self.found.compared.differences.iter().any(|difference| is_its(&&difference.path)) {
                self.here.turns.add(&self.desk.fs, turn.head.n, &[Line::Undone { session: id.clone(), same }])?;
            }
        }
        Ok(())
    }

    /// Tells the turns that run just now which paths were put back: an agent that is held undoes in a turn.
    fn tell_running(&self) -> Result<(), Error> {
        let back: Vec<AbsPath> = self.found.compared.differences.iter().map(|difference| difference.path.clone()).collect();
        for turn in self.turns.iter().filter(|turn| turn.ended.is_none()) {
            self.here.turns.add(&self.desk.fs, turn.head.n, &[Line::Back(back.clone())])?;
        }
        Ok(())
    }
}

/// The line of the log, with the numbers of paths that were changed and left if it was done.
fn entry(meant: u64, session: &Session, counts: Option<(usize, usize)>) -> log::Entry {
    let (result, paths) = match counts {
        Some((paths, 0)) => ("done", paths),
        Some((paths, _)) => ("left", paths),
        None => ("failed", 0),
    };
    let (id, generation) = (session.id(), session.header.generation);
    log::Entry::new(format!("agent undo {meant}"), id, generation, result, paths as u64).of(&session.header)
}
