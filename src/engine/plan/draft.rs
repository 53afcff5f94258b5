//! A plan in the making: what goes on, what is against it, and what is left out.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::conflict;
use super::conflict::{Conflict, Hindrances};
use super::examine::{ExaminedMove, Verdict};
use super::road::Roads;
use crate::engine::error::{damaged, refused, refused_at};
use crate::engine::item::Item;
use crate::engine::job::{OnConflict, Verb};
use crate::engine::reach::Reach;
use crate::engine::step::Act;
use crate::error::{Against, Error};
use crate::fs::{AbsPath, Inode, Sort};
use crate::session::{Session, Side};
use crate::settings;
use crate::tree::sort_word;

/// A plan in the making.
pub struct Draft<'s> {
    pub verb: Verb,
    pub session: &'s Session,
    pub reach: Reach,
    pub roads: Roads,
    /// The top of the tree that was last found missing.
    pub missing: Option<AbsPath>,
    pub leaving: HashSet<AbsPath>,
    /// How many of an inode's names go, for inodes that have several.
    pub names_here: HashMap<Inode, u32>,
    pub me: rustix::fs::Uid,
    /// In path order.
    pub items: Vec<Item>,
    pub left: Vec<(AbsPath, String)>,
    pub notes: Vec<String>,
    pub conflicts: Vec<Conflict>,
    /// Paths in conflict at which no directory was expected: if there are others below, one is to come.
    coming: HashSet<AbsPath>,
    pub refused: Vec<Against>,
    pub damaged: Vec<Against>,
    pub sides: Vec<Side>,
}

impl<'s> Draft<'s> {
    pub fn new(session: &'s Session, verb: Verb, sides: Vec<Side>) -> Result<Self, Error> {
        let reach = Reach::new(&session.dir)?;
        Ok(Self {
            verb,
            session,
            roads: Roads::from(&session.dir, reach.roots.mounts())?,
            reach,
            missing: None,
            leaving: HashSet::new(),
            names_here: HashMap::new(),
            me: rustix::process::geteuid(),
            items: Vec::new(),
            left: Vec::new(),
            notes: Vec::new(),
            conflicts: Vec::new(),
            coming: HashSet::new(),
            refused: Vec::new(),
            damaged: Vec::new(),
            sides,
        })
    }

    /// The nearest directory, from `directory` upwards, that is not known to be missing. Of a deep tree that comes, each path asks for it.
    pub fn not_missing(&self, directory: Option<AbsPath>) -> Option<AbsPath> {
        match &self.missing {
            Some(top) if directory.as_ref()?.is_under(top) => top.parent(),
            _ => directory,
        }
    }

    pub fn sort_out(&mut self, looked: ExaminedMove) {
        let ExaminedMove { item, verdict, note } = looked;
        self.notes.extend(note);
        match verdict {
            Verdict::Go | Verdict::Keep | Verdict::AlreadySo => self.items.push(item),
            Verdict::Conflict(conflict) => {
                if item.planning.expected != Some(Sort::Directory) {
                    self.coming.insert(item.path);
                }
                self.conflicts.push(conflict);
            }
            Verdict::Refused(why) => self.refused.push(Against::new(&item.path, why)),
            Verdict::Damaged(why) => self.damaged.push(Against::new(&item.path, why)),
        }
    }

    /// Checks that a directory that goes holds only what goes with it. Deepest first, so that what stays keeps its directories.
    pub fn check_directories_that_go(&mut self) -> Result<(), Error> {
        let leaving: Vec<usize> = (0..self.items.len()).filter(|i| self.items[*i].leaves_directory()).collect();
        let mut stays: BTreeSet<usize> = BTreeSet::new();
        for i in leaving.into_iter().rev() {
            let item = &self.items[i];
            // An object that --force found in place of another is moved out whole.
            if item.forced && item.planning.expected != Some(Sort::Directory) {
                continue;
            }
            let path = &item.path;
            let dir = self.reach.roots.directory(path)?;
            let mut foreign = Vec::new();
            let names = match dir.names() {
                Err(error) if error.errno() == Some(libc::EACCES) => {
                    let why = "you cannot list it, so what else is in it is not known: make it readable (chmod u+r) and go on \
                               with --force, or let root do it";
                    self.refused.push(Against::new(path, why));
                    continue;
                }
                names => names?,
            };
            for name in names {
                let child = path.join(&name).map_err(|error| refused_at(path, error))?;
                let found = self.items.binary_search_by(|item| item.path.cmp(&child));
                match found {
                    Ok(at) if self.items[at].moves() && self.items[at].to.is_none() && !stays.contains(&at) => {}
                    _ => foreign.push(child),
                }
            }
            if foreign.is_empty() {
                continue;
            }
            if self.verb == Verb::Rollback && item.to.is_none() {
                stays.insert(i);
                let shown: Vec<String> = foreign.iter().take(3).map(ToString::to_string).collect();
                let more = if foreign.len() > 3 {
                    format!(" and {} more", settings::grouped(foreign.len() as u64 - 3))
                } else {
                    String::new()
                };
                self.left.push((
                    path.clone(),
                    format!("the directory is kept, because something else is in it: {}{more}", shown.join(", ")),
                ));
            } else {
                let conflicts =
                    foreign.iter().map(|child| Conflict::because(child, "it lies in a directory that would be removed"));
                self.conflicts.extend(conflicts);
            }
        }
        let mut i = 0;
        self.items.retain(|_| {
            i += 1;
            !stays.contains(&(i - 1))
        });
        Ok(())
    }

    /// Checks the metadata that an original shares with names still on the tree. If somebody has set it since, that is a conflict; by
    /// force it comes back as it is now. Where this job sets it back under another name, that step does it.
    pub fn check_shared_metadata(&mut self, on_conflict: OnConflict) {
        if self.verb.inward() {
            return;
        }
        let staying = self.items.iter().filter(|item| item.act == Act::SetMeta);
        let set_back: HashSet<Inode> = staying.filter_map(Item::shared).collect();
        let differs =
            |item: &&mut Item| item.moves() && item.held.is_some() && !item.planning.as_recorded && !item.becomes_directory();
        for item in self.items.iter_mut().filter(differs) {
            let Some(inode) = item.planning.shared_in_store else { continue };
            item.planning.as_it_is = on_conflict == OnConflict::Keep || set_back.contains(&inode);
            if !item.planning.as_it_is {
                let why = "the kept original has other metadata, set since through another name of the file";
                self.conflicts.push(Conflict::because(&item.path, why).forcible(true));
            }
        }
    }

    /// Checks that two names of a file are to get the same metadata, as they share it.
    pub fn check_metadata_of_names(&mut self) -> Result<(), Error> {
        let mut set: HashMap<Inode, &Item> = HashMap::new();
        for item in self.items.iter().filter(|item| item.act == Act::SetMeta) {
            let Some(inode) = item.shared() else { continue };
            let Some(other) = set.insert(inode, item) else { continue };
            let (Some(one), Some(two)) = (&other.to, &item.to) else { continue };
            if one.state.meta_difference(&two.state).is_some() {
                let why = format!("it is a hard link to {}, for which the session has other metadata", other.path);
                self.refused.push(Against::new(&item.path, why));
            }
        }
        Ok(())
    }

    /// Refuses a job with paths on a file system that is no longer mounted: what is found there proves nothing.
    pub fn check_mounts(&mut self, on_conflict: OnConflict) {
        if on_conflict == OnConflict::Keep {
            return;
        }
        let is_mounted = |point: &&AbsPath| self.reach.roots.mounts().iter().any(|mount| mount.point == **point);
        for point in self.session.header.mounts.iter().filter(|point| !is_mounted(point)) {
            if self.items.iter().any(|item| item.path != *point && item.path.is_under(point)) {
                let why = "its file system is no longer mounted: mount it and try again (--force goes on without it)";
                self.refused.push(Against::new(point, why));
            }
        }
    }

    /// Refuses modes by which an ordinary user shuts themselves out: recant could no longer look there, and so not undo it.
    pub fn check_what_is_closed(&mut self) {
        if !self.verb.inward() || self.me.is_root() {
            return;
        }
        for (i, item) in self.items.iter().enumerate() {
            let Some(to) = item.to.as_ref().map(|to| &to.state) else { continue };
            let holds_more = || self.items.get(i + 1).is_some_and(|next| next.path.is_under(&item.path));
            let (needed, rights) = match to.sort() {
                Sort::File if item.act != Act::Stay => (0o400, "u+r"),
                Sort::Directory if item.moves() || item.act == Act::SetMeta && holds_more() => (0o500, "u+rx"),
                _ => continue,
            };
            if to.meta.mode & needed != needed {
                let why = format!(
                    "with mode {:04o} you could not read it, so it could not be rolled back: it needs {rights}; or name only the other paths",
                    to.meta.mode
                );
                self.refused.push(Against::new(&item.path, why));
            }
        }
    }

    /// Checks what lies in a directory that is moved out whole by force. What is already as wanted would be lost, and what differs from
    /// the record could not be swapped any more.
    pub fn check_what_goes_along(&mut self) {
        let mut whole = None;
        for item in &self.items {
            match whole {
                Some(top) if item.path.is_under(top) => {
                    // An object that is to go may go with it.
                    if item.to.is_some() && (item.act == Act::Stay || item.from.is_some()) {
                        let why = "it lies in a directory that --force would move out whole (move that directory away)";
                        self.conflicts.push(Conflict::because(&item.path, why));
                    }
                }
                _ => whole = item.whole.then_some(&item.path),
            }
        }
    }

    /// Checks that a path without a directory gets one that comes with it.
    pub fn check_directories_that_come(&mut self) -> Result<(), Error> {
        let comes = |item: &&Item| item.act == Act::SetMeta || item.moves() && item.to.is_some();
        let mut lost = Vec::new();
        for item in self.items.iter().filter(|item| !item.planning.in_directory).filter(comes) {
            let Some(parent) = item.path.parent() else { continue };
            let comes = self
                .items
                .binary_search_by(|other| other.path.cmp(&parent))
                .is_ok_and(|at| self.items[at].moves() && self.items[at].becomes_directory());
            if !comes {
                lost.push((item.path.clone(), parent));
            }
        }
        let mut last: Option<(AbsPath, Option<(AbsPath, Sort)>)> = None;
        for (path, parent) in lost {
            let obstacle = match last.take() {
                Some((of, known)) if of == parent => known,
                Some((_, Some(known))) if parent.is_under(&known.0) => Some(known),
                _ => self.obstacle(&parent)?,
            };
            self.conflicts.push(self.without_directory(&path, obstacle.as_ref()));
            last = Some((parent, obstacle));
        }
        Ok(())
    }

    /// The conflict of a path that has no directory, as something else is in the place of one above it, or nothing.
    fn without_directory(&self, path: &AbsPath, obstacle: Option<&(AbsPath, Sort)>) -> Conflict {
        let Some((place, sort)) = obstacle else { return Conflict::because(path, "its directory is missing (make it first)") };
        let why = |remedy: &str| format!("its directory is missing, as a {} is at {place} ({remedy})", sort_word(*sort));
        // A directory of the session's comes there, once what is there gives way.
        match self.conflicts.iter().find(|conflict| conflict.path == *place).filter(|_| self.coming.contains(place)) {
            Some(above) => Conflict::because(path, why("move it away")).forcible(above.forcible),
            None => Conflict::because(path, why("move it away, and make the directory")),
        }
    }

    /// The topmost object from `directory` upwards that is no directory. `None` if it is there, or nothing is in its place.
    fn obstacle(&mut self, directory: &AbsPath) -> Result<Option<(AbsPath, Sort)>, Error> {
        let mut here = Some(directory.clone());
        while let Some((at, above)) = here.take().and_then(|at| at.parent().map(|above| (at, above))) {
            match self.reach.roots.directory(&above) {
                Ok(dir) => {
                    let found = dir.at(at.name()).stat()?.filter(|stat| stat.sort != Sort::Directory);
                    return Ok(found.map(|stat| (at, stat.sort)));
                }
                Err(error) if error.leads_nowhere() => here = Some(above),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    pub fn fail_if_any(&mut self) -> Result<(), Error> {
        if !self.damaged.is_empty() {
            return Err(damaged(std::mem::take(&mut self.damaged)));
        }
        if !self.refused.is_empty() {
            return Err(refused(std::mem::take(&mut self.refused)));
        }
        if !self.conflicts.is_empty() {
            return Err(conflict::refused(each_once(std::mem::take(&mut self.conflicts))));
        }
        Ok(())
    }

    /// Takes out the conflicts, whatever else is against the job, and what was refused.
    pub fn hindrances(&mut self) -> Hindrances {
        let mut conflicts = each_once(std::mem::take(&mut self.conflicts));
        let refused = std::mem::take(&mut self.refused);
        // Refused and damaged paths were not sorted in, so that a directory that goes took them for somebody else's.
        let other: HashSet<&str> = refused.iter().chain(&self.damaged).map(|against| &*against.path).collect();
        conflicts.retain(|conflict| !other.contains(&*conflict.path.to_string()));
        Hindrances { conflicts, refused }
    }
}

/// Sorts by path and keeps the first of several at a path.
fn each_once(mut conflicts: Vec<Conflict>) -> Vec<Conflict> {
    conflicts.sort_by(|a, b| a.path.cmp(&b.path));
    conflicts.dedup_by(|a, b| a.path == b.path);
    conflicts
}
