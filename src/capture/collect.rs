//! Reads the uppers of a run into changes: compares each object of an upper with the real one, which is the overlay's
//! lower again now that the mounts are gone.
//!
//! Takes stored facts alone, so that what a killed recant left is read in the same way. No recursion, paths only below
//! held folders: neither depth nor length of a path is a limit. What is told by comparing, never by overlayfs' notes:
//! an upper holds files that are equal to their originals (opened for writing, chmod and back), and `opaque` says no more
//! than that a folder was renamed. Its notes are used for what has no other sign: whiteouts, opaque folders, and `origin`.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use rustix::fs::SeekFrom;
use rustix::io::Errno;
use serde_json::Map;

use super::error::Error;
use super::plan::{Laid, Route};
use super::redirect;
use crate::error::At;
use crate::fs::Fs;
use crate::fs::dir::{Dev, Dir, Entry, Sort, Stat, Time};
use crate::fs::path::AbsPath;
use crate::session::change::{Before, Change, Changes, FolderTime, Marks};
use crate::session::run::Place;
use crate::tree::digest::Digest;
use crate::tree::look::{self, Seen};
use crate::tree::state::{Meta, State, What};
use crate::tree::walk::Walk;

/// What is known of a run: from `run.json`, or from the run that just ended.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The session's `held` folder, with `upper/<k>` in it.
    pub held: &'a Dir,
    /// The captured places.
    pub places: &'a [Place],
    /// recant's store: nothing in it is ever a change.
    pub store: &'a AbsPath,
    /// When the command started: what has a later ctime on the tree changed during the run.
    pub started: Time,
    /// When the session's first command started; the same in a session of one run.
    pub first: Time,
    /// What earlier runs of the session left: their paths keep the `before` that they had then.
    pub known: &'a Changes,
    /// How it was captured: overlayfs keeps its notes in `trusted.` or `user.` xattrs.
    pub route: Route,
}

/// What a run left.
#[derive(Debug, Default)]
pub struct Collected {
    /// The net changes in path order, numbered from 1, and the times of folders that are no changes.
    pub changes: Changes,
    /// What can't be told by a change, a line each, for people.
    pub warnings: Vec<String>,
}

impl Collected {
    /// Whether the run left nothing at all.
    pub fn is_empty(&self) -> bool {
        self.changes.list.is_empty() && self.changes.folder_times.is_empty()
    }
}

/// Collects a run that ended under this recant: reads the uppers, makes them durable, clears the work folders.
pub fn finish(fs: &Fs, laid: &Laid, facts: &Facts<'_>) -> Result<Collected, Error> {
    let collected = collect(facts, fs)?;
    // The times of folders alone make no session.
    if !collected.changes.list.is_empty()
        && let Some(layer) = laid.layers.first()
    {
        // The overlays are volatile: nothing of the uppers was synced until now. All lie on the store's file system; the
        // descriptor is older than the command, so that an error of its writes is not missed (docs/ARCHITECTURE.md, D7).
        fs.sync_fs(&layer.upper).at("sync", layer.upper.path().display())?;
    }
    // Else the session goes, or the next run in it clears them.
    if !collected.is_empty() {
        clear_work(fs, facts.held, facts.places)?;
    }
    Ok(collected)
}

/// Removes what overlayfs left in the work folders; a volatile mount's mark there forbids the next one.
pub fn clear_work(fs: &Fs, held: &Dir, places: &[Place]) -> Result<(), Error> {
    let Ok(works) = held.at(b"work").open_dir() else { return Ok(()) };
    for place in places {
        let number = place.k.to_string();
        let work = works.at(number.as_bytes());
        fs.remove_all(work).at("clear the work folder", work)?;
    }
    // What a fill that was cut off at its very end left.
    let fill = held.at(b"fill");
    Ok(fs.remove_all(fill).at("clear the folder", fill)?)
}

/// Reads the uppers into changes, renamed folders filled in before. Syncs nothing. May be cut off, and gives the same when it is
/// done again.
pub fn collect(facts: &Facts<'_>, fs: &Fs) -> Result<Collected, Error> {
    let found = read(facts, fs)?;
    if !found.redirected.get() {
        return Ok(found.into_collected());
    }
    let mut warnings = Vec::new();
    redirect::fill(facts, fs, &mut warnings)?;
    let mut found = read(facts, fs)?;
    found.warnings.append(&mut warnings);
    Ok(found.into_collected())
}

fn read<'a>(facts: &'a Facts<'a>, fs: &'a Fs) -> Result<Found<'a>, Error> {
    let mut found = Found {
        facts,
        fs,
        list: Vec::new(),
        times: Vec::new(),
        warnings: Vec::new(),
        groups: HashMap::new(),
        gone: Vec::new(),
        redirected: Cell::new(false),
    };
    for place in facts.places {
        if let Some((upper, real)) = tops(facts, place)? {
            found.place(place, &upper, real.as_ref())?;
        }
    }
    Ok(found)
}

/// The upper of a place, and the real folder, each where it is there.
#[expect(clippy::type_complexity, reason = "a pair of folders, each with its own way to be missing")]
pub(super) fn tops(facts: &Facts<'_>, place: &Place) -> Result<Option<(Rc<Dir>, Option<Rc<Dir>>)>, Error> {
    let root = Dir::open("/".as_ref()).at("open the folder", "/")?;
    let number = place.k.to_string();
    let uppers = match facts.held.at(b"upper").open_dir() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        uppers => uppers.at("open the folder of", "the uppers")?,
    };
    let upper = match uppers.open_below(number.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        upper => Rc::new(upper.at("open the upper folder", &place.path)?),
    };
    let real = match root.open_across(&place.path.as_bytes()[1..]) {
        Ok(real) => Some(Rc::new(real)),
        Err(error) if is_absent(&error) => None,
        Err(error) => Err(error).at("open the folder", &place.path)?,
    };
    Ok(Some((upper, real)))
}

/// No such path, or something on the way is no folder.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP))
}

/// A folder on the way down.
struct Level {
    /// How much of the path below the place leads here.
    length: usize,
    upper: Option<Rc<Dir>>,
    /// The real folder at this path, where there is one.
    has_real: bool,
    real: Option<Rc<Dir>>,
    /// Whether names that only the real folder has were seen in the run.
    merged: bool,
    names: std::vec::IntoIter<Name>,
    /// The mode to give back to the upper folder, which could not be listed with it.
    mode: Option<u32>,
}

struct Name {
    name: Vec<u8>,
    in_upper: bool,
}

/// So many folders on the way down stay open.
const OPEN_LEVELS: usize = 64;

struct Found<'a> {
    facts: &'a Facts<'a>,
    fs: &'a Fs,
    list: Vec<Change>,
    times: Vec<FolderTime>,
    warnings: Vec<String>,
    /// Objects of the uppers with several names: what to record for each name, and whether it must be recorded.
    groups: HashMap<(Dev, u64), Vec<Linked>>,
    /// Copied-up objects where the real one is gone: see [`Found::mark_removed`].
    gone: Vec<Gone>,
    /// A folder was renamed.
    redirected: Cell<bool>,
}

struct Gone {
    path: AbsPath,
    /// What the upper has: a file's content, where it is one that can be read.
    state: State,
    digest: Option<Digest>,
}

struct Linked {
    change: Change,
    /// Whether this name gets another object, so that the others must get the same one.
    moves: bool,
    /// Whether it is a change at all, links aside.
    counts: bool,
}

impl<'a> Found<'a> {
    fn into_collected(mut self) -> Collected {
        for mut group in std::mem::take(&mut self.groups).into_values() {
            // A link made in the run: each name of the object is put, so that they share it on the tree, too.
            if group.iter().any(|linked| linked.moves) {
                for linked in &mut group {
                    linked.change.marks.same_content = false;
                    linked.change.marks.linked = true;
                }
                self.list.extend(group.into_iter().map(|linked| linked.change));
            } else {
                self.list.extend(group.into_iter().filter(|linked| linked.counts).map(|linked| linked.change));
            }
        }
        self.list.sort_by(|a, b| a.path.cmp(&b.path));
        self.mark_removed();
        self.keep_known();
        for (change, n) in self.list.iter_mut().zip(1..) {
            change.n = n;
        }
        // A folder whose names change keeps a time that was put back; one that is like before in all is not spoken of.
        let parents: HashSet<AbsPath> = self.list.iter().filter_map(|change| change.path.parent()).collect();
        self.times.retain(|time| time.before != time.after || parents.contains(&time.path));
        self.times.sort_by(|a, b| a.path.cmp(&b.path));
        Collected { changes: Changes { list: self.list, folder_times: self.times }, warnings: self.warnings }
    }

    /// A copied-up object whose original is gone was renamed in the run, or somebody removed the original meanwhile. A rename
    /// leaves a deletion of the very object somewhere; where there is none it was somebody. (Renamed and then edited looks the
    /// same; it comes here only where somebody changed the folder during the run, and is a conflict to be on the safe side.)
    fn mark_removed(&mut self) {
        for gone in std::mem::take(&mut self.gone) {
            let deleted = self.list.iter().filter(|change| change.after.is_none());
            let renamed =
                deleted.into_iter().any(|change| change.before.object.as_ref().is_some_and(|old| gone.was(change, old)));
            if !renamed && let Ok(i) = self.list.binary_search_by(|change| change.path.cmp(&gone.path)) {
                self.list[i].marks.foreign = true;
            }
        }
    }

    /// What an earlier run of the session found on the tree is what its paths were changed from, whatever is there now.
    fn keep_known(&mut self) {
        for change in &mut self.list {
            if let Some(known) = self.facts.known.at(&change.path) {
                change.before = known.before.clone();
                change.marks.foreign |= known.marks.foreign;
            }
        }
        for time in &mut self.times {
            let known = self.facts.known.folder_times.binary_search_by(|known| known.path.cmp(&time.path));
            if let Ok(i) = known {
                time.before = self.facts.known.folder_times[i].before;
            }
        }
    }

    /// Reads one place.
    fn place(&mut self, place: &Place, upper: &Rc<Dir>, real: Option<&Rc<Dir>>) -> Result<(), Error> {
        self.top(place, upper, real)?;
        let mut path = Vec::new();
        let opaque = self.is_opaque(&upper.xattrs().at("read the extended attributes", &place.path)?);
        let mut levels = vec![self.level(upper.clone(), real.cloned(), 0, !opaque, None, &place.path)?];
        while let Some(level) = levels.last_mut() {
            path.truncate(level.length);
            let Some(name) = level.names.next() else {
                self.leave(upper, &path, level)?;
                levels.pop();
                continue;
            };
            // Opened again where the way down was longer than the folders that stay open.
            let dir = reopened(&mut level.upper, upper, &path).at("open the folder", &place.path)?;
            let below = match (level.has_real, real) {
                (true, Some(top)) => reopened(&mut level.real, top, &path).map(Some).or_else(absent_is_none),
                _ => Ok(None),
            };
            let below = below.at("open the folder", &place.path)?;
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(&name.name);
            let full = full_path(&place.path, &path);
            if full.is_under(self.facts.store) {
                continue;
            }
            let merged = level.merged;
            let at = dir.at(&name.name);
            let new = if name.in_upper { at.stat().at("look at the upper of", &full)? } else { None };
            let new = new.filter(|stat| !is_whiteout(stat));
            let mode = self.make_readable(at, new.as_ref())?;
            let down = self.name(at, &full, new, below.as_ref(), merged)?;
            let Some(Down { has_real, merged }) = down else {
                if let Some(mode) = mode {
                    self.fs.set_mode(at, mode).at("set the mode", at)?;
                }
                continue;
            };
            let upper_below = Rc::new(at.open_dir().at("open the folder", at)?);
            let real_below = match below.filter(|_| has_real) {
                Some(real) => Some(Rc::new(real.open_below(&name.name).at("open the folder", &full)?)),
                None => None,
            };
            let level = self.level(upper_below, real_below, path.len(), merged, mode, &full)?;
            if let Some(far) = levels.len().checked_sub(OPEN_LEVELS) {
                (levels[far].upper, levels[far].real) = (None, None);
            }
            levels.push(level);
        }
        Ok(())
    }

    /// The names to look at in a folder: those of the upper, and where the real ones were not seen in the run, these too.
    fn level(
        &mut self,
        upper: Rc<Dir>,
        real: Option<Rc<Dir>>,
        length: usize,
        merged: bool,
        mode: Option<u32>,
        path: &AbsPath,
    ) -> Result<Level, Error> {
        let mut names: Vec<Name> =
            upper.names().at("list the upper of", path)?.into_iter().map(|name| Name { name, in_upper: true }).collect();
        if let (Some(real), false) = (&real, merged) {
            match real.names() {
                Ok(real) => names.extend(real.into_iter().map(|name| Name { name, in_upper: false })),
                Err(error) => {
                    self.warnings.push(format!("{path}: what was in it can't be listed: {}", crate::error::reason(&error)))
                }
            }
        }
        // The upper's comes first of two equals and is kept.
        names.sort_by(|a, b| a.name.cmp(&b.name).then(b.in_upper.cmp(&a.in_upper)));
        names.dedup_by(|a, b| a.name == b.name);
        let has_real = real.is_some();
        Ok(Level { length, upper: Some(upper), has_real, real, merged, names: names.into_iter(), mode })
    }

    /// Gives a folder of the upper back the mode that it could not be listed with.
    fn leave(&self, top: &Rc<Dir>, path: &[u8], level: &mut Level) -> Result<(), Error> {
        if let Some(mode) = level.mode {
            let cut = path.iter().rposition(|b| *b == b'/');
            let (parent, name) = cut.map_or((&b""[..], path), |at| (&path[..at], &path[at + 1..]));
            let parent = top.open_below(parent).at("open the folder above", top.path().display())?;
            self.fs.set_mode(parent.at(name), mode).at("set the mode", parent.at(name))?;
        }
        Ok(())
    }

    /// The captured folder itself: its mode, owner, xattrs and times. A user's upper was made with what the user may set, so
    /// that only mode and time tell something.
    fn top(&mut self, place: &Place, upper: &Dir, real: Option<&Rc<Dir>>) -> Result<(), Error> {
        let Some(real) = real else { return Ok(()) };
        let before = self.as_shown(look::folder(real).at("look at", &place.path)?);
        let mut after = self.upper_state(look::folder(upper).at("look at the upper of", &place.path)?.state);
        if self.facts.route == Route::User {
            let meta = before.state.meta.clone();
            after.meta = Meta { mode: after.meta.mode, mtime: after.meta.mtime, ..meta };
            if before.state.meta.uid != upper.stat().at("look at the upper of", &place.path)?.uid {
                // Of another's folder (/tmp) nothing but the time can be set by this user.
                after.meta.mode = before.state.meta.mode;
            }
        }
        let stat = real.stat().at("look at", &place.path)?;
        let new = upper.stat().at("look at the upper of", &place.path)?;
        self.folder(&place.path, before, &stat, &new, after);
        Ok(())
    }

    /// Looks at one name: `new` is what the upper has, whiteouts aside. Where it is a folder, how to go on in it.
    fn name(
        &mut self,
        at: Entry<'_>,
        path: &AbsPath,
        new: Option<Stat>,
        real: Option<&Rc<Dir>>,
        merged: bool,
    ) -> Result<Option<Down>, Error> {
        let old = match real {
            Some(dir) => dir.at(at.name).stat().at("look at", path)?,
            None => None,
        };
        // A mount in a captured place: read-only in the run, so nothing of it is in the upper.
        if old.is_some_and(|stat| stat.mount_root) {
            return Ok(None);
        }
        let old = old.and_then(|stat| Some((real?, stat)));
        match (new, old) {
            (None, None) => Ok(None),
            (None, Some((dir, stat))) => {
                self.deleted(path, dir, at.name, &stat)?;
                Ok(None)
            }
            (Some(new), None) => {
                if real.is_some_and(|dir| self.was_removed_meanwhile(at, dir)) {
                    let state = look::seen(at, &new).at("look at the upper of", path)?.state;
                    let digest = if new.sort == Sort::File { look::digest(at).ok().map(|(digest, _)| digest) } else { None };
                    self.gone.push(Gone { path: path.clone(), state, digest });
                }
                self.put(path, at, &new, None)?;
                Ok((new.sort == Sort::Folder).then_some(Down { has_real: false, merged: false }))
            }
            (Some(new), Some((dir, old))) => match (new.sort == Sort::Folder, old.sort == Sort::Folder) {
                (true, true) => {
                    let before = self.real(dir.at(at.name), &old).at("look at", path)?;
                    let seen = look::seen(at, &new).at("look at the upper of", path)?;
                    let (opaque, lost) = (self.is_opaque_state(&seen.state), self.lost(&seen.state));
                    // Made afresh in the run, and by somebody else meanwhile.
                    let twice = seen.state.meta.xattr(&self.note("origin")).is_none()
                        && old.btime.is_some_and(|made| made > self.start_for(Some(&new)));
                    let after = self.upper_state(seen.state);
                    if lost || twice {
                        let marks = Marks { foreign: true, ..Marks::default() };
                        self.list.push(change(path, Some(before), Some(after), marks));
                    } else {
                        self.folder(path, before, &old, &new, after);
                    }
                    Ok(Some(Down { has_real: true, merged: merged && !opaque && !lost }))
                }
                (true, false) => {
                    self.put(path, at, &new, Some((dir.at(at.name), &old)))?;
                    Ok(Some(Down { has_real: false, merged: false }))
                }
                (false, was_folder) => {
                    self.put(path, at, &new, Some((dir.at(at.name), &old)))?;
                    if was_folder {
                        self.deleted_below(path, dir, at.name)?;
                    }
                    Ok(None)
                }
            },
        }
    }

    /// A folder that was there and is: a change of its metadata, or its time (many of which are dropped at the end).
    fn folder(&mut self, path: &AbsPath, before: Seen, old: &Stat, new: &Stat, after: State) {
        if before.state.meta_difference(&after).is_some() {
            let marks = Marks { foreign: self.is_foreign(old, Some(new)), ..Marks::default() };
            self.list.push(change(path, Some(before), Some(after), marks));
        } else if old.mtime <= self.facts.started {
            let (before, after) = (before.state.meta.mtime, after.meta.mtime);
            self.times.push(FolderTime { path: path.clone(), before, after });
        }
    }

    /// An object of the upper where nothing, or another object, is on the tree; dropped where they are equal.
    fn put(&mut self, path: &AbsPath, at: Entry<'_>, new: &Stat, old: Option<(Entry<'_>, &Stat)>) -> Result<(), Error> {
        let seen = look::seen(at, new).at("look at the upper of", path)?;
        self.warn_of_flags(path, &seen.state);
        let lost = self.lost(&seen.state);
        let after = self.upper_state(seen.state);
        let before = match old {
            Some((real, stat)) => Some(self.real(real, stat).at("look at", path)?),
            None => None,
        };
        let foreign = lost || old.is_some_and(|(_, stat)| self.is_foreign(stat, Some(new)));
        let mut marks = Marks { foreign, ..Marks::default() };
        let (mut equal, mut same) = (false, false);
        if let (Some(before), Some((real, stat))) = (&before, old) {
            same = before.state.sort() == after.sort() && same_content(&before.state, &after, real, at);
            let same_meta = before.state.meta_difference(&after).is_none();
            equal = same && same_meta && before.state.meta.mtime == after.meta.mtime;
            marks.link_broken = stat.sort == Sort::File && stat.nlink > 1 && !same;
            // Of symlinks and the like the states themselves tell.
            marks.same_content = same && after.sort() == Sort::File;
        }
        let before = before.map(|before| with_digest(before, old)).transpose().at("read", path)?;
        let is_linked = new.nlink > 1 && new.sort != Sort::Folder;
        if is_linked {
            let change = change(path, before, Some(after), marks);
            self.groups.entry((new.dev, new.ino)).or_default().push(Linked { change, moves: !same, counts: !equal });
        } else if !equal {
            self.list.push(change(path, before, Some(after), marks));
        }
        Ok(())
    }

    /// A name that is gone: every path under it is a change of its own.
    fn deleted(&mut self, path: &AbsPath, dir: &Rc<Dir>, name: &[u8], stat: &Stat) -> Result<(), Error> {
        self.delete_one(path, dir.at(name), stat)?;
        if stat.sort == Sort::Folder {
            self.deleted_below(path, dir, name)?;
        }
        Ok(())
    }

    fn deleted_below(&mut self, path: &AbsPath, dir: &Rc<Dir>, name: &[u8]) -> Result<(), Error> {
        let top = Rc::new(dir.open_below(name).at("open the folder", path)?);
        if !top.readable() {
            // An empty folder can be removed by who can't list it; a full one can't.
            return Ok(());
        }
        let walk = Walk::under(top)?;
        let mount = walk.mount();
        for found in walk {
            let found = found?;
            let full = full_path(path, &found.below);
            if found.stat.mount != mount || full.is_under(self.facts.store) {
                continue;
            }
            self.delete_one(&full, found.dir.at(found.name()), &found.stat)?;
        }
        Ok(())
    }

    fn delete_one(&mut self, path: &AbsPath, at: Entry<'_>, stat: &Stat) -> Result<(), Error> {
        let before = self.real(at, stat).at("look at", path)?;
        let before = with_digest(before, Some((at, stat))).at("read", path)?;
        let marks = Marks { foreign: self.is_foreign(stat, None), ..Marks::default() };
        self.list.push(change(path, Some(before), None, marks));
        Ok(())
    }

    /// Whether the real object changed since the command started that had it changed in the upper, where that can be told:
    /// what an earlier run of the session took away or copied up hid from this one what came later. A folder's ctime goes
    /// with its mtime when names in it change, which is no change of the folder itself.
    fn is_foreign(&self, real: &Stat, upper: Option<&Stat>) -> bool {
        let start = self.start_for(upper);
        let since = |time: Time| time > start;
        match real.sort {
            Sort::Folder => real.btime.is_some_and(since) || (since(real.ctime) && real.ctime != real.mtime),
            _ => since(real.ctime),
        }
    }

    /// From when on a change of the real tree is one that the run which made this object of the upper did not see.
    fn start_for(&self, upper: Option<&Stat>) -> Time {
        let of_this_run = upper.and_then(|stat| stat.btime).is_some_and(|made| made > self.facts.started);
        if of_this_run { self.facts.started } else { self.facts.first }
    }

    /// Whether an object of the upper was copied up from a real one that is no longer there, in a folder whose names
    /// changed during the run.
    fn was_removed_meanwhile(&self, at: Entry<'_>, real: &Dir) -> bool {
        real.stat().is_ok_and(|stat| stat.mtime > self.facts.first)
            && at.xattrs().is_ok_and(|all| all.iter().any(|(name, _)| name.as_slice() == self.note("origin")))
    }

    fn prefix(&self) -> &'static str {
        match self.facts.route {
            Route::Root => "trusted.overlay.",
            Route::User => "user.overlay.",
        }
    }

    /// The xattr in which overlayfs notes something.
    fn note(&self, what: &str) -> Vec<u8> {
        [self.prefix(), what].concat().into_bytes()
    }

    fn is_opaque(&self, xattrs: &[(Vec<u8>, Vec<u8>)]) -> bool {
        xattrs.iter().any(|(name, value)| *name == self.note("opaque") && value == b"y")
    }

    fn is_opaque_state(&self, state: &State) -> bool {
        state.meta.xattr(&self.note("opaque")) == Some(b"y")
    }

    /// A renamed folder whose rest is not in the upper: it is yet to be filled in, or what it was renamed from was taken away
    /// meanwhile and it never can be, which is a conflict.
    fn lost(&self, state: &State) -> bool {
        let lost = self.facts.route == Route::Root
            && state.is_folder()
            && !self.is_opaque_state(state)
            && state.meta.xattr(redirect::REDIRECT).is_some();
        if lost {
            self.redirected.set(true);
        }
        lost
    }

    /// chattr +i and +a of a copied-up file are kept in a note, not set.
    fn warn_of_flags(&mut self, path: &AbsPath, state: &State) {
        if let Some(flags) = state.meta.xattr(&self.note("protattr")) {
            let flags = String::from_utf8_lossy(flags).into_owned();
            self.warnings.push(format!("{path}: the attribute '{flags}' (chattr) is not part of the change"));
        }
    }

    /// The state as the command saw it: overlayfs' notes taken out, the command's own xattrs of that name unescaped.
    fn upper_state(&self, mut state: State) -> State {
        let prefix = self.prefix().as_bytes();
        if state.meta.xattrs.iter().all(|(name, _)| !name.starts_with(prefix)) {
            return state;
        }
        let kept = state.meta.xattrs.iter().filter_map(|(name, value)| match name.strip_prefix(prefix) {
            None => Some((name.clone(), value.clone())),
            Some(rest) => Some(([prefix, rest.strip_prefix(b"overlay.")?].concat().into(), value.clone())),
        });
        let mut kept: Vec<_> = kept.collect();
        kept.sort();
        state.meta.xattrs = kept.into();
        state
    }

    /// The real object, as an overlay shows it.
    fn real(&self, at: Entry<'_>, stat: &Stat) -> io::Result<Seen> {
        match look::seen(at, stat) {
            // xattrs of a file that its owner may not read, and which is not ours to chmod.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && stat.sort != Sort::Symlink => {
                let what = if stat.sort == Sort::Folder { What::Folder } else { What::File { size: stat.size, digest: None } };
                let state = State { what, meta: Meta::of(stat, Vec::new()) };
                Ok(Seen { state, print: look::fingerprint(stat), nlink: stat.nlink, blocks: stat.blocks * 512 })
            }
            seen => Ok(self.as_shown(seen?)),
        }
    }

    /// Without the xattrs that have the prefix of overlayfs' notes: they are not seen in a run.
    fn as_shown(&self, mut seen: Seen) -> Seen {
        let prefix = self.prefix().as_bytes();
        if seen.state.meta.xattrs.iter().any(|(name, _)| name.starts_with(prefix)) {
            let kept = seen.state.meta.xattrs.iter().filter(|(name, _)| !name.starts_with(prefix)).cloned();
            seen.state.meta.xattrs = kept.collect();
        }
        seen
    }

    /// A file or folder of the upper that its owner may not read gets a mode that lets it be, for a while: its xattrs and
    /// content could not be read, nor its names. The mode to give back. Root needs none of this.
    fn make_readable(&self, at: Entry<'_>, stat: Option<&Stat>) -> Result<Option<u32>, Error> {
        let needed = match stat.map(|stat| stat.sort) {
            Some(Sort::Folder) => 0o700,
            Some(Sort::File) => 0o400,
            _ => return Ok(None),
        };
        let mode = stat.map_or(needed, |stat| stat.mode);
        if mode & needed == needed || rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        self.fs.set_mode(at, mode | needed).at("set the mode", at)?;
        Ok(Some(mode))
    }
}

impl Gone {
    /// Whether this is the deleted object, now under another name.
    fn was(&self, deleted: &Change, old: &State) -> bool {
        let alike = old.sort() == self.state.sort() && old.size() == self.state.size() && old.meta.mtime == self.state.meta.mtime;
        let same = || {
            let (parent, name) = deleted.path.split()?;
            let root = Dir::open("/".as_ref()).ok()?;
            let parent = root.open_across(parent.strip_prefix(b"/")?).ok()?;
            Some(look::digest(parent.at(name)).ok()?.0 == self.digest?)
        };
        alike && (self.state.sort() != Sort::File || same().unwrap_or(false))
    }
}

/// How to go on in a folder: whether a real one goes along, and whether its names were seen in the run.
struct Down {
    has_real: bool,
    merged: bool,
}

/// A name that the run took away: a character device 0:0 (overlayfs.rst, "whiteouts and opaque directories").
fn is_whiteout(stat: &Stat) -> bool {
    stat.sort == Sort::Char && stat.rdev == Dev(0, 0)
}

fn change(path: &AbsPath, before: Option<Seen>, after: Option<State>, marks: Marks) -> Change {
    let (object, print) = before.map_or((None, None), |seen| (Some(seen.state), Some(seen.print)));
    Change { n: 0, path: path.clone(), before: Before { object, print }, after, marks, extra: Map::new() }
}

/// The path of what lies below a place.
pub(super) fn full_path(place: &AbsPath, below: &[u8]) -> AbsPath {
    let place = if place.depth() == 0 { b"" } else { place.as_bytes() };
    AbsPath::parse([place, b"/", below].concat()).expect("names that the kernel gave are good names")
}

/// A folder on the way down, opened again where it was let go.
fn reopened(held: &mut Option<Rc<Dir>>, top: &Rc<Dir>, below: &[u8]) -> io::Result<Rc<Dir>> {
    if let Some(dir) = held {
        return Ok(dir.clone());
    }
    let dir = Rc::new(top.open_below(below)?);
    *held = Some(dir.clone());
    Ok(dir)
}

fn absent_is_none<T>(error: io::Error) -> io::Result<Option<T>> {
    if is_absent(&error) { Ok(None) } else { Err(error) }
}

/// A fingerprint whose ctime is too young proves nothing: then the content is read. A file that can't be read keeps the
/// doubt, which is a conflict at commit.
fn with_digest(mut seen: Seen, at: Option<(Entry<'_>, &Stat)>) -> io::Result<Seen> {
    if let (true, Sort::File, Some((at, _))) = (seen.print.racy, seen.state.sort(), at)
        && let Ok((digest, _)) = look::digest(at)
    {
        seen.set_digest(digest);
    }
    Ok(seen)
}

/// Whether two objects of one kind have the same content, target or device number. Files are compared byte by byte. One
/// that can't be read counts as different: then it is put whole, and nothing is lost.
fn same_content(old: &State, new: &State, real: Entry<'_>, upper: Entry<'_>) -> bool {
    match (&old.what, &new.what) {
        (What::File { size: a, .. }, What::File { size: b, .. }) => {
            a == b && (*a == 0 || same_bytes(real, upper, *a).unwrap_or(false))
        }
        (a, b) => a == b,
    }
}

const PIECE: usize = 128 << 10;

fn same_bytes(a: Entry<'_>, b: Entry<'_>, size: u64) -> io::Result<bool> {
    let (a, b) = (a.open_file()?, b.open_file()?);
    let (mut left, mut right) = (vec![0; PIECE.min(usize::try_from(size).unwrap_or(PIECE))], Vec::new());
    right.resize(left.len(), 0);
    let mut at = 0;
    while at < size {
        // Where both have a hole, nothing has to be read.
        let data = next_data(&a, at, size)?.min(next_data(&b, at, size)?);
        at = at.max(data);
        let (got, other) = (fill(&a, &mut left, at)?, fill(&b, &mut right, at)?);
        if left[..got] != right[..other] {
            return Ok(false);
        }
        if got == 0 {
            break;
        }
        at += got as u64;
    }
    Ok(true)
}

/// Where the next data begins: `size` where there is none.
fn next_data(file: &File, at: u64, size: u64) -> io::Result<u64> {
    match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(data) => Ok(data),
        Err(Errno::NXIO) => Ok(size),
        Err(Errno::INVAL) => Ok(at),
        Err(error) => Err(error.into()),
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(got) => filled += got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
