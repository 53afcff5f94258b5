//! A plan in the making: what goes on, what stands against it, and what is left out.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::Error;
use super::conflict::Conflict;
use super::job::{Job, Move, Verb};
use super::look::{Looked, Verdict};
use super::plan::{Outcome, Roads};
use super::report::{Done, Row};
use super::step::Spot;
use crate::checkpoint::manifest::Kept;
use crate::error::At;
use crate::fs::path::AbsPath;
use crate::fs::roots::Roots;
use crate::session::sides::Side;
use crate::session::store::Session;
use crate::tree::look::Seen;
use crate::tree::state::{Identity, Object, State, What, sort_word};

/// A plan in the making.
pub(super) struct Draft<'j, 's> {
    pub job: &'j Job,
    pub session: &'s Session,
    pub roads: Roads,
    pub roots: Roots,
    pub session_mount: u64,
    /// Folders that go.
    pub leaving: HashSet<AbsPath>,
    /// How many of an inode's names go, for inodes that have several.
    pub names_here: HashMap<Identity, u32>,
    pub me: rustix::fs::Uid,
    pub going: Vec<Going<'j>>,
    pub already: Vec<Row>,
    pub left: Vec<(AbsPath, String)>,
    pub notes: Vec<String>,
    pub conflicts: Vec<Conflict>,
    pub refused: Vec<(String, String)>,
    pub damaged: Vec<(String, String)>,
    pub sides: Vec<Side>,
    pub outcomes: Vec<Outcome>,
}

/// A move that is to be made.
pub(super) struct Going<'j> {
    pub mv: &'j Move,
    pub from: Option<Seen>,
    pub to: Option<Seen>,
    pub kept_found: bool,
    /// The folder that it lies in is there now.
    pub in_folder: bool,
}

impl Going<'_> {
    pub fn was_folder(&self) -> bool {
        self.from.as_ref().is_some_and(|seen| seen.state.is_folder())
    }

    pub fn becomes_folder(&self) -> bool {
        self.mv.to.as_ref().is_some_and(State::is_folder)
    }

    pub fn leaves_folder(&self) -> bool {
        self.was_folder() && !self.becomes_folder()
    }
}
impl<'j, 's> Draft<'j, 's> {
    pub fn new(session: &'s Session, job: &'j Job, roads: Roads) -> Result<Self, Error> {
        Ok(Self {
            job,
            session,
            roads,
            roots: Roots::read().at("read the mounts from", "/proc/self/mountinfo")?,
            session_mount: session.dir.stat().at("look at", session.dir.path().display())?.mount,
            leaving: HashSet::new(),
            names_here: HashMap::new(),
            me: rustix::process::geteuid(),
            going: Vec::with_capacity(job.moves.len()),
            already: Vec::new(),
            left: job.left.clone(),
            notes: Vec::new(),
            conflicts: Vec::new(),
            refused: Vec::new(),
            damaged: Vec::new(),
            sides: job.sides.clone(),
            outcomes: Vec::new(),
        })
    }

    pub fn sort_out(&mut self, looked: Vec<Looked>) -> Result<(), Error> {
        for (mv, looked) in self.job.moves.iter().zip(looked) {
            self.notes.extend(looked.note);
            let kept_found = matches!(looked.verdict, Verdict::Keep);
            match looked.verdict {
                Verdict::Go | Verdict::Keep => {
                    self.going.push(Going {
                        mv,
                        from: looked.found,
                        to: looked.to,
                        kept_found,
                        in_folder: looked.parent_mount.is_some(),
                    });
                }
                Verdict::AlreadySo => self.note_already(mv),
                Verdict::Conflict(conflict) => self.conflicts.push(conflict),
                Verdict::Refused(why) => self.refused.push((mv.path.to_string(), why)),
                Verdict::Damaged(why) => self.damaged.push((mv.path.to_string(), why)),
            }
        }
        Ok(())
    }

    /// Nothing to do on the tree, but the change is on the other side now. What would have come off the tree is not there
    /// any more: where it had content, that is lost.
    pub fn note_already(&mut self, mv: &Move) {
        let is_file = |object: &Object| matches!(object, Some(State { what: What::File { .. }, .. }));
        let lost = !mv.in_place && is_file(&mv.from);
        let side = if mv.side == Side::Out && lost { Side::Lost } else { mv.side };
        let kept =
            if lost { Kept::Uncovered { why: "it was not there any more when it was put back".into() } } else { Kept::Nothing };
        let kind = mv.to.as_ref().map_or("nothing", |state| sort_word(state.sort()));
        self.already.push(Row { path: mv.path.clone(), done: Done::AlreadySo, kind });
        self.outcomes.push(Outcome {
            index: mv.index,
            n: mv.n,
            path: mv.path.clone(),
            from: mv.from.clone(),
            to: mv.to.clone(),
            kept,
            side,
            forced: false,
            spare: mv.to_at.clone().map(Spot::Session),
        });
    }

    /// A folder that goes must hold nothing but what goes with it: deepest first, so that what is left holds its folders.
    pub fn check_folders_that_go(&mut self) -> Result<(), Error> {
        let leaving: Vec<usize> = (0..self.going.len()).filter(|i| self.going[*i].leaves_folder()).collect();
        let mut stays: BTreeSet<usize> = BTreeSet::new();
        for i in leaving.into_iter().rev() {
            let going = &self.going[i];
            // What --force found in place of something else is moved out whole.
            if going.kept_found && !going.mv.from.as_ref().is_some_and(State::is_folder) {
                continue;
            }
            let path = &going.mv.path;
            let dir = self.roots.folder(path).at("open the folder", path)?;
            let mut foreign = Vec::new();
            for name in dir.names().at("list the folder", path)? {
                let child = path.join(&name).map_err(|error| Error::Refused(vec![(path.to_string(), error.to_string())]))?;
                let found = self.going.binary_search_by(|going| going.mv.path.cmp(&child));
                match found {
                    Ok(at) if self.going[at].mv.to.is_none() && !stays.contains(&at) => {}
                    _ => foreign.push(child),
                }
            }
            if foreign.is_empty() {
                continue;
            }
            if self.job.verb == Verb::Rollback && going.mv.to.is_none() {
                stays.insert(i);
                let shown: Vec<String> = foreign.iter().take(3).map(ToString::to_string).collect();
                let more = if foreign.len() > 3 { format!(" and {} more", foreign.len() - 3) } else { String::new() };
                self.left
                    .push((path.clone(), format!("the folder is kept, as something else is in it: {}{more}", shown.join(", "))));
            } else {
                let conflicts =
                    foreign.iter().map(|child| Conflict::said(child, "nothing", "something in a folder that is to go"));
                self.conflicts.extend(conflicts);
            }
        }
        let mut i = 0;
        self.going.retain(|_| {
            i += 1;
            !stays.contains(&(i - 1))
        });
        Ok(())
    }

    /// What is to be put where no folder is now needs one that comes with it.
    pub fn check_folders_that_come(&mut self) {
        for going in self.going.iter().filter(|going| !going.in_folder && going.mv.to.is_some()) {
            let Some(parent) = going.mv.path.parent() else { continue };
            let comes =
                self.going.binary_search_by(|other| other.mv.path.cmp(&parent)).is_ok_and(|at| self.going[at].becomes_folder());
            if !comes {
                self.conflicts.push(Conflict::said(&going.mv.path, "its folder", "none, or a link on the way to it"));
            }
        }
    }

    pub fn fail_if_any(&mut self) -> Result<(), Error> {
        if !self.damaged.is_empty() {
            return Err(Error::Damaged(std::mem::take(&mut self.damaged)));
        }
        if !self.refused.is_empty() {
            return Err(Error::Refused(std::mem::take(&mut self.refused)));
        }
        if !self.conflicts.is_empty() {
            self.conflicts.sort_by(|a, b| a.path.cmp(&b.path));
            self.conflicts.dedup_by(|a, b| a.path == b.path);
            return Err(Error::Conflicts(std::mem::take(&mut self.conflicts)));
        }
        Ok(())
    }
}
