//! A snapshot on the screen, against what is there now; and what a turn of an agent changed.

use std::path::Path;
use std::sync::Arc;

use super::error_lines::look as look_by;
use super::error_lines::said;
use super::session::opened;
use crate::compare::{Pick, Picked, Taken};
use crate::engine::LeftPath;
use crate::error::{Error, Kind};
use crate::face::call::Call;
use crate::face::screen::sheet::Sheet;
use crate::face::screen::world::{AllowedActs, Contents, Look, Open, Planned, ViewedChanges};
use crate::fs::AbsPath;
use crate::remedy::shell;
use crate::session::{Change, Side};
use crate::snapshot::Series;
use crate::tree::Hash;
use crate::verb::Comparison;
use crate::verb::agent::project_turns::Here;
use crate::verb::error::turn_not_covered;
use crate::verb::snapshot::diff;
use crate::verb::snapshot::series::{number, series};

/// The directory and the number of the snapshot that is meant.
pub fn meant(call: &Call, dir: Option<&Path>, key: &str) -> Result<(AbsPath, u64), Error> {
    let (_, series) = series(call, dir)?;
    let n = number(&series, key, shell("recant review --snapshot N --dir DIR"))?;
    Ok((series.directory, n))
}

/// The two states that are compared: a snapshot, and a later one or the tree.
#[derive(Clone)]
struct Pair {
    store: AbsPath,
    directory: AbsPath,
    n: u64,
    m: Option<u64>,
}

impl Pair {
    fn compared(&self) -> Result<Comparison, Error> {
        let series = Series::open(&opened(&self.store)?, &self.directory)?;
        let series = series.ok_or_else(|| Error::at(Kind::Refused, &self.directory, "its snapshots are gone"))?;
        Comparison::of(&self.store, series, (self.n, self.m), &[], false)
    }

    fn seen(&self, title: String, state: String, may: AllowedActs) -> Result<ViewedChanges, Error> {
        let compared = self.compared()?;
        let changes = compared.changes.clone();
        Ok(ViewedChanges {
            title,
            state,
            about: self.directory.to_string(),
            notes: compared.left.iter().map(|LeftPath { path, why }| format!("{path}: not compared: {why}")).collect(),
            may,
            mark: Hash::of(format!("{changes:?}").as_bytes()),
            is_running: false,
            sides: Arc::new(vec![Side::Never; changes.len()]),
            changes: Arc::new(changes),
            contents: contents(compared),
        })
    }
}

fn contents(compared: Comparison) -> Open {
    Arc::new(move |serve| {
        serve(&mut OfSnapshot(compared.contents()));
        Ok(())
    })
}

/// How to look at what changed since a snapshot. It is walked once: what changes later is seen after an act.
pub fn look(store: AbsPath, directory: AbsPath, n: u64, has_turns: bool) -> Look {
    look_by(move |mark| {
        if mark.is_some() {
            return Ok(None);
        }
        let pair = Pair { store: store.clone(), directory: directory.clone(), n, m: None };
        let may = AllowedActs { restore: true, turns: has_turns, ..AllowedActs::default() };
        pair.seen(format!("snapshot {n}"), "against what is there now".into(), may).map(Some)
    })
}

/// How to look at what a turn changed.
pub fn of_turn(call: &Call, n: u64) -> Look {
    let found = turn(call, n).map_err(said);
    Arc::new(move |mark| {
        let (pair, title) = found.clone()?;
        if mark.is_some() {
            return Ok(None);
        }
        let may = AllowedActs { turns: true, ..AllowedActs::default() };
        pair.seen(title, String::new(), may).map(Some).map_err(said)
    })
}

fn turn(call: &Call, n: u64) -> Result<(Pair, String), Error> {
    let here = Here::find(call)?;
    let turns = here.all()?;
    let n = here.meant(&turns, Some(n))?;
    let turn = turns.iter().find(|turn| turn.head.n == n).ok_or_else(|| Error::refused(format!("there is no turn {n}")))?;
    let (before, _) = turn.before.ok_or_else(|| turn_not_covered(turn))?;
    let after = turn.after.filter(|_| turn.is_settled);
    let pair = Pair { store: call.store_path()?, directory: here.directory.clone(), n: before, m: after };
    Ok((pair, turn.head.agent.word().to_owned()))
}

struct OfSnapshot<'s>(diff::Contents<'s>);

impl Contents for OfSnapshot<'_> {
    fn sheet(&mut self, i: usize) -> Sheet {
        let view = self.0.view(i);
        view.map_or_else(|problem| Sheet::failed(&said(problem)), |view| Sheet::whole(&view, "a snapshot restores whole files"))
    }
}

/// Plans to act on differences to a snapshot.
pub fn pick(seen: &ViewedChanges, parts: Vec<(usize, Taken)>) -> Planned {
    let pick = |(i, taken): (usize, Taken)| Pick { path: seen.changes[i].path.clone(), taken, seen: mark_of(&seen.changes[i]) };
    Planned { picked: Picked(parts.into_iter().map(pick).collect()), notes: Vec::new() }
}

fn mark_of(change: &Change) -> Hash {
    Hash::of(format!("{change:?}").as_bytes())
}

/// The picks at which something else stands by now, each with what that is.
pub fn changed(store: &AbsPath, directory: &AbsPath, n: u64, picked: &Picked) -> Result<Vec<String>, Error> {
    let pair = Pair { store: store.clone(), directory: directory.clone(), n, m: None };
    let changes = pair.compared()?.changes;
    let differs = |pick: &&Pick| {
        let found = changes.binary_search_by(|change| change.path.cmp(&pick.path));
        found.map_or(true, |k| mark_of(&changes[k]) != pick.seen)
    };
    Ok(picked.0.iter().filter(differs).map(|pick| format!("{}: it changed since it was shown", pick.path)).collect())
}
