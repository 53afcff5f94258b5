//! The turns of the project that a call is made in.

use std::collections::{BTreeMap, BTreeSet};

use super::take_snapshots::Taken;
use super::take_snapshots::settle;
use crate::agent::{Place, Turn, Turns, fates, own};
use crate::capture::{capture, working_directory};
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Header, Id, Status, Store, own_store};
use crate::snapshot::Series;
use crate::tree::project_of;
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::resolve::scope::Scope;

/// The turns of a project, and the directory in which its agents were started.
pub struct Here<'d> {
    pub store: &'d Store,
    pub directory: AbsPath,
    pub turns: Turns,
}

/// The paths that are taken back, by turn, with the directory as `/`.
pub type Undone = BTreeMap<u64, BTreeSet<AbsPath>>;

impl<'d> Here<'d> {
    /// Finds them.
    ///
    /// # Errors
    /// No agent's turn was ever noted here.
    pub fn find(desk: &'d Desk) -> Result<Self, Error> {
        let cwd = working_directory()?;
        if let Some(here) = near(desk, &cwd)? {
            return Ok(here);
        }
        let directory = project_of(&cwd, dirs::home_dir().as_deref());
        Err(match former(desk, &directory)? {
            Some(former) => error::turns_moved(&directory, &former),
            None => error::no_turns(&directory, held(desk)?.as_ref()),
        })
    }

    /// Finds them, for a caller who does not ask for them; `None` if no agent's turn was ever noted here.
    pub fn if_any(desk: &'d Desk) -> Option<Self> {
        let cwd = working_directory().ok().filter(|_| !desk.is_far())?;
        near(desk, &cwd).ok()?
    }

    /// Its snapshots.
    ///
    /// # Errors
    /// They are gone.
    pub fn series(&self) -> Result<Series, Error> {
        Series::open(self.store, &self.directory)?.ok_or_else(|| error::snapshots_gone(&self.directory))
    }

    /// All turns, the oldest first. Those of another directory that was at this path count for nothing.
    ///
    /// # Errors
    /// A turn cannot be read.
    pub fn all(&self) -> Result<Vec<Turn>, Error> {
        let place = Place::of(&self.directory);
        let mut turns = self.turns.all()?;
        turns.retain(|turn| turn.head.place.may_be(place));
        Ok(turns)
    }

    /// All turns, the oldest first. Of those from `n` on whose agent told no end, a snapshot is taken that shows what they have done.
    ///
    /// # Errors
    /// A turn cannot be read; a snapshot cannot be taken.
    pub fn settled(&self, taken: &Taken<'_>, n: u64) -> Result<Vec<Turn>, Error> {
        let turns = self.all()?;
        let is_open = |turn: &&Turn| turn.head.n >= n && !turn.is_settled && turn.before.is_some();
        let open: Vec<&Turn> = turns.iter().filter(is_open).collect();
        if open.is_empty() {
            return Ok(turns);
        }
        open.into_iter().try_for_each(|turn| settle(taken, turn))?;
        self.all()
    }

    /// The number of the turn that is meant: the one that is named, else the newest that changed something and is not taken back.
    ///
    /// # Errors
    /// There is none.
    pub fn meant(&self, turns: &[Turn], n: Option<u64>) -> Result<u64, Error> {
        if let Some(n) = n {
            let is_there = turns.iter().any(|turn| turn.head.n == n);
            let is_dropped = turns.first().is_some_and(|first| n < first.head.n) && n > 0;
            return if is_there { Ok(n) } else { Err(error::no_turn(n, is_dropped)) };
        }
        let undone = self.undone(turns)?;
        let changed = |turn: &&Turn| !turn.wrote.is_empty() || !turn.is_settled;
        // An agent that is held means none that it is in.
        let may = |turn: &&Turn| capture().is_none() || turn.ended.is_some();
        // One that changed only what is not covered has nothing to take back, but what it did is named.
        let named = |turn: &&Turn| !fates(&[turn], None).is_empty();
        let newest = turns.iter().rev().filter(changed).filter(may).find(|turn| !is_back(turn, &undone));
        let newest = newest.or_else(|| turns.iter().rev().filter(may).find(named));
        newest.map(|turn| turn.head.n).ok_or_else(error::all_turns_back)
    }

    /// The paths of each turn that committed sessions have taken back.
    ///
    /// # Errors
    /// A session cannot be read.
    pub fn undone(&self, turns: &[Turn]) -> Result<Undone, Error> {
        let mut undone = Undone::new();
        for turn in turns {
            for (id, same) in &turn.undone {
                // Pruned: nobody can bring the turn back, and its paths are what they are.
                let Ok(session) = self.store.session(id) else { continue };
                let changes = session.changes()?;
                let sides = session.sides(changes.list.len())?;
                let inside = changes.list.iter().zip(sides).filter(|(_, side)| side.is_in());
                let paths =
                    inside.filter_map(|(change, _)| AbsPath::parse([b"/", change.path.below(&self.directory)?].concat()).ok());
                let is_all = session.header.is_all_in();
                let same = same.iter().filter(|_| is_all).cloned();
                undone.entry(turn.head.n).or_default().extend(paths.chain(same));
            }
        }
        Ok(undone)
    }

    /// The sessions that took something of a turn back and are committed, the oldest first.
    pub fn undone_by(&self, turn: &Turn) -> Vec<Id> {
        let is_committed = |id: &&Id| self.store.session(id).is_ok_and(|session| session.header.is_all_in());
        turn.undone.iter().map(|(id, _)| id).filter(is_committed).cloned().collect()
    }
}

/// True if all that a turn wrote is taken back.
pub fn is_back(turn: &Turn, undone: &Undone) -> bool {
    undone.get(&turn.head.n).is_some_and(|undone| own(turn).all(|wrote| undone.contains(&wrote.path)))
}

/// The turns of the project of `cwd`, or without a repository those of a directory above. `None` if no turn was ever noted here.
fn near<'d>(desk: &'d Desk, cwd: &AbsPath) -> Result<Option<Here<'d>>, Error> {
    let Some(store) = desk.store()? else { return Ok(None) };
    let project = project_of(cwd, dirs::home_dir().as_deref());
    for directory in [project].into_iter().chain(std::iter::successors(Some(cwd.clone()), AbsPath::parent)) {
        if let Some(turns) = Turns::open(store, &directory)?
            && turns.first()?.is_some()
        {
            return Ok(Some(Here { store, directory, turns }));
        }
    }
    Ok(None)
}

/// The path at which a directory was when turns were noted of it.
fn former(desk: &Desk, directory: &AbsPath) -> Result<Option<AbsPath>, Error> {
    let (Some(store), place) = (desk.store()?, Place::of(directory)) else { return Ok(None) };
    for turns in Turns::everywhere(store)? {
        if let Some(first) = turns.first()?
            && first.head.place.is(place)
            && !first.head.directory.as_path().exists()
        {
            return Ok(Some(first.head.directory));
        }
    }
    Ok(None)
}

/// The newest session in which an agent is held in this project, with a store of its own; `None` if none is.
fn held(desk: &Desk) -> Result<Option<Header>, Error> {
    let (Some(store), None) = (desk.store()?, capture()) else { return Ok(None) };
    let here = Scope::here()?;
    let (headers, _) = store.headers()?;
    for header in headers.into_iter().rev().filter(|header| here.has(store, header)) {
        let is_open = matches!(header.status(), Status::Running | Status::Pending);
        if is_open && own_store::of(store, &store.session(&header.id)?)?.is_some() {
            return Ok(Some(header));
        }
    }
    Ok(None)
}
