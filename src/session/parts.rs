//! A part leaves a session: it is committed as a session of its own, and the rest goes on without it.
//!
//! **I24** Both happen or neither does: the part's seal decides. Before it, `parting/ID` of the store tells, durably, what then leaves the
//! session `ID`; whoever locks that one next does it, if the part was sealed, or forgets it.
//!
//! ```text
//!   part filled -> parting/ID -> part sealed -> steps.jsonl, session.json -> names in held/ go -> parting/ID goes
//!   |-- killed here: the part is swept ------|-- killed here: done by the next lock ---------------------------|
//! ```
//!
//! The part's files are further names of what the session holds. A path that left is in none of its steps any more, until the part is rolled
//! back (`capture::rejoin`): then the steps before have it again. A redo of the part has it leave again.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::acting_agent::ActingAgent;
use super::change::{Before, Change, Changes, Line};
use super::error::{damaged, not_now};
use super::header::{Header, Origin, Status};
use super::id::Id;
use super::net_changes::Net;
use super::open_session::{Locked, Opener, Session, mkdir_if_missing, read_small, with_own_rights};
use super::run_record::{Arg, CommandRecord, Run};
use super::sides::Side;
use super::stage::Staging;
use super::steps::{Added, HeaderFacts, Step};
use super::store::Store;
use crate::error::{Error, Kind, command};
use crate::fs::{AbsPath, Dev, Dir, Fs, Sort, Time, leads_nowhere, resolve};
use crate::tree::{Object, State, json};

/// The directory, in the store.
const DIRECTORY: &[u8] = b"parting";

/// Bytes that such a file may have.
const MOST: u64 = 1 << 30;

/// The record of what leaves a session once its part is sealed.
#[derive(Debug, Serialize, Deserialize)]
pub struct Parting {
    pub part: Id,
    /// The lines of the session's header that counted before.
    pub lines: u64,
    /// The words of the call, for `steps`.
    pub words: Vec<Arg>,
    /// The paths that leave, in path order.
    pub left: Vec<AbsPath>,
    /// The files of which some blocks leave, in path order.
    pub stays: Vec<RemainingBlocks>,
}

/// A file of which some blocks leave: the session then leads from what the part puts there to what it held.
#[derive(Debug, Serialize, Deserialize)]
pub struct RemainingBlocks {
    pub path: AbsPath,
    pub before: Object,
    pub after: Object,
}

/// True for a session that a part can leave: nothing of it is or was on the tree, or it is open again.
pub fn may_part(header: &Header) -> bool {
    header.status() == Status::Pending
}

impl Store {
    /// Notes durably what leaves a session once its part is sealed. The caller holds the locks of both.
    ///
    /// # Errors
    /// A system call failed: nothing leaves.
    pub fn note_parting(&self, fs: &Fs, of: &Id, parting: &Parting) -> Result<(), Error> {
        let directory = self.dir.at(DIRECTORY);
        if directory.stat()?.is_none() {
            mkdir_if_missing(fs, directory)?;
            fs.sync_dir(&self.dir)?; // D3
        }
        Ok(fs.replace(directory.open_dir()?.at(of.as_str().as_bytes()), &json::text(parting))?)
    }

    /// Forgets it: the part came to nothing, or has left. Durably, as what is noted of one time is wrong the next.
    ///
    /// # Errors
    /// A system call failed.
    pub fn forget_parting(&self, fs: &Fs, of: &Id) -> Result<(), Error> {
        let Some(directory) = self.partings()? else { return Ok(()) };
        fs.unlink_if_there(directory.at(of.as_str().as_bytes()))?;
        Ok(fs.sync_dir(&directory)?) // D2
    }

    /// The sessions of which a part was leaving when recant was killed, or is.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn parting_ids(&self) -> Result<Vec<Id>, Error> {
        let names = self.partings()?.map_or(Ok(Vec::new()), |directory| directory.names())?;
        Ok(names.iter().filter_map(|name| Id::parse(std::str::from_utf8(name).ok()?)).collect())
    }

    fn partings(&self) -> Result<Option<Dir>, Error> {
        match self.dir.at(DIRECTORY).open_dir() {
            Err(error) if error.leads_nowhere() => Ok(None),
            directory => Ok(Some(directory?)),
        }
    }

    fn parting_of(&self, id: &Id) -> Result<Option<Parting>, Error> {
        let Some(directory) = self.partings()? else { return Ok(None) };
        let at = directory.at(id.as_str().as_bytes());
        let Some(bytes) = read_small(at, MOST)? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| damaged(at, error))
    }

    /// Ends what was cut off while parts left sessions that nobody holds. Returns those where that failed.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn settle_partings(&self, fs: &Fs) -> Result<Vec<(Id, Error)>, Error> {
        let mut failed = Vec::new();
        for id in self.parting_ids()? {
            let settled = match self.lock_session(fs, &id) {
                // Whoever holds it is at it, or ends it.
                Err(error) if error.kind() == Kind::Busy => Ok(()),
                Err(error) if error.is_unknown() => self.forget_parting(fs, &id),
                locked => locked.and_then(|mut locked| locked.settle_parting(fs, self)),
            };
            failed.extend(settled.err().map(|error| (id, error)));
        }
        Ok(failed)
    }
}

impl Locked {
    /// Ends what was cut off while a part left this session: it has left if it was sealed.
    ///
    /// # Errors
    /// The part's commit was interrupted, and is not recovered; a system call failed. The next lock tries again.
    pub fn settle_parting(&mut self, fs: &Fs, store: &Store) -> Result<(), Error> {
        let Some(parting) = store.parting_of(self.id())? else { return Ok(()) };
        if store.journaled()?.contains(&parting.part) {
            let why = format!("the commit of its part {} was interrupted, and is not recovered", parting.part.tail());
            return Err(not_now(self.id(), why).with_remedy(command("recover")));
        }
        match store.session(&parting.part) {
            Err(error) if error.is_unknown() => {}
            // Never sealed, or undone.
            Ok(part) if part.header.counts.inside == 0 => {}
            part => {
                drop(part?);
                self.part_with(fs, store, &parting)?;
            }
        }
        store.forget_parting(fs, self.id())
    }

    /// Goes on without what left. A second time it does nothing.
    ///
    /// # Errors
    /// A system call failed; the next lock tries again.
    pub fn part_with(&mut self, fs: &Fs, store: &Store, parting: &Parting) -> Result<(), Error> {
        self.belongs_to_another_act();
        match self.header.origin {
            Origin::Staged if self.header.lines == parting.lines => self.unstage(fs, store, parting),
            Origin::Staged => Ok(()),
            Origin::Captured => {
                let then = match self.changes_before(parting)? {
                    Some(then) => then,
                    None => self.step_without(fs, store.by.as_ref(), parting)?,
                };
                self.let_go(fs, parting, &then)
            }
        }
    }

    /// The net changes before it left, if there is a step at which it did.
    fn changes_before(&self, parting: &Parting) -> Result<Option<Changes>, Error> {
        if self.header.steps.is_none() {
            return Ok(None);
        }
        let mut list = self.steps()?;
        let Some((n, on)) = list.split_of(&parting.part).filter(|(_, is_back)| !is_back).map(|(split, _)| (split.n, split.on))
        else {
            return Ok(None);
        };
        list.join(n);
        list.net(self, on).map(Some)
    }

    fn unstage(&mut self, fs: &Fs, store: &Store, parting: &Parting) -> Result<(), Error> {
        let changes = self.changes()?;
        let left = parting.left.iter().filter_map(|path| Some((path, changes.at(path)?.after.clone())));
        let left = left.map(|(path, after)| (path, after.clone(), after));
        let stays = parting.stays.iter().map(|one| (&one.path, one.before.clone(), one.after.clone()));
        let mut desk = Staging::open(fs, store, self, false)?;
        for (path, object, after) in left.chain(stays) {
            if let Err(error) = desk.choose(path, (Before { object, print: None }, after), None) {
                desk.give_up();
                return Err(error);
            }
        }
        desk.finish().map(drop)
    }

    /// Adds the step at which it left: one that no upper belongs to. Returns the net changes before.
    fn step_without(&mut self, fs: &Fs, by: Option<&ActingAgent>, parting: &Parting) -> Result<Changes, Error> {
        let Some(run) = self.run()? else { return Err(not_now(self.id(), "the record of its run is missing")) };
        let now = self.changes()?;
        let mut net = lines_without(&now, &parting.left);
        for stays in &parting.stays {
            if let Some(known) = now.at(&stays.path) {
                let before = Before { object: stays.before.clone(), print: None };
                net.push(Line::Change(Box::new(known.leading(before, stays.after.clone()))));
            }
        }
        let size = |change: &Change| change.after.as_ref().filter(|_| !change.in_place()).map_or(0, State::size);
        let freed = parting.left.iter().filter_map(|path| now.at(path)).map(size).sum();
        let changes = now.clone().with(net.clone()).list.len() as u64;
        let record = Run {
            command: CommandRecord::at_once(parting.words.clone(), resolve::absolute(Path::new("."))?, by.cloned()),
            beside: Vec::new(),
            ..run.clone()
        };
        let uid = rustix::process::geteuid().as_raw();
        let step = Step {
            uid,
            chosen: true,
            parted: Some(parting.part.clone()),
            ..Step::of(&record, self.header.head(), &Changes::default(), 0)
        };
        let added = Added { own: Changes::default(), net, left: parting.left.clone() };
        // They show it still.
        self.remove_blocks(fs)?;
        let told = HeaderFacts { changes, mounts: self.header.mounts.clone(), freed };
        self.add_step(fs, &Net::open(self)?, (step, &added), &run, told)?;
        Ok(now)
    }
}

impl Locked {
    /// Removes this session's names of what a part has, once it has left: a full disk must not come between.
    fn let_go(&self, fs: &Fs, parting: &Parting, then: &Changes) -> Result<(), Error> {
        let Some(run) = self.run()? else { return Ok(()) };
        let (mut places, mut time) = (Opener::new(self), None);
        for change in parting.left.iter().filter_map(|path| then.at(path)) {
            let Some(place) = Session::held_at(change, Side::Never, Some(&run)) else { continue };
            let at = match places.at(&place) {
                Err(error) if error.io().is_some_and(leads_nowhere) => continue,
                at => at?,
            };
            let upper = at.dir.path();
            // Earlier steps show the time of its directory.
            if time.as_ref().is_none_or(|(known, _): &(Dir, Time)| known.path() != upper) {
                put_back(fs, time.take())?;
                time = Some((at.dir.again()?, at.dir.stat()?.mtime));
            }
            // It hides what uppers of earlier steps have there, as it did: a whiteout (overlayfs.rst).
            let hides = || if change.step.is_some() { fs.mknod(at, Sort::Char, 0o600, Dev(0, 0)) } else { Ok(()) };
            with_own_rights(fs, at.dir, || match fs.unlink(at) {
                // A directory stays, and what is gone went before this was cut off.
                Err(error) if matches!(error.kind(), ErrorKind::IsADirectory | ErrorKind::NotFound) => Ok(()),
                unlinked => Ok(unlinked.and_then(|()| hides())?),
            })?;
        }
        put_back(fs, time)
    }
}

/// Puts a directory's mtime back.
fn put_back(fs: &Fs, time: Option<(Dir, Time)>) -> Result<(), Error> {
    let Some((dir, mtime)) = time else { return Ok(()) };
    Ok(fs.set_mtime(dir.at(b"."), mtime)?)
}

/// The lines that make the net changes those without some paths.
pub fn lines_without(now: &Changes, left: &[AbsPath]) -> Vec<Line> {
    let leaves: HashSet<&AbsPath> = left.iter().collect();
    let left_in: HashSet<AbsPath> = left.iter().filter_map(AbsPath::parent).collect();
    let stays = now.list.iter().map(|change| &change.path).filter(|path| !leaves.contains(path));
    let stays_in: HashSet<AbsPath> = stays.filter_map(AbsPath::parent).collect();
    let gone = now.list.iter().filter(|change| leaves.contains(&change.path));
    let gone = gone.map(|change| Line::None { n: change.n, path: change.path.clone() });
    // Where nothing is different any more, the tree's own time counts.
    let ended = now.directory_times.iter().filter(|time| left_in.contains(&time.path) && !stays_in.contains(&time.path));
    gone.chain(ended.map(|time| Line::None { n: 0, path: time.path.clone() })).collect()
}
