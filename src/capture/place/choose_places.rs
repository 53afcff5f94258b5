//! Chooses for a plan what is captured, and how, place by place, from mountinfo, the bound sockets, and the directories as they are. The
//! coverage table records the decisions.
//!
//! Root captures the whole tree: one overlay of `/`, and in it one of each other writable mount. An ordinary user can't (a user namespace
//! locks the mounts below each other). It captures what is his ([`own_places`]), each place by an overlay of its own.

pub use super::choosing::Places;
pub use super::choosing::may_write;
use super::choosing::real;
pub use super::choosing::stat;
use super::choosing::{Choosing, DEV, OWN, PSEUDO, Wanted};
use super::choosing::{is_below, is_own};
use super::{choose_pieces, own_places};
use std::cell::RefCell;
use std::collections::HashSet;

use super::layout::{Hide, Need, Request, Route, Target};
use crate::capture::error::{deleted_mount, store_in_private};
use crate::capture::run::ids::Ids;
use crate::error::{At, Error, recant};
use crate::fs::{AbsPath, Mount, Sort, Stat, mounts};
use crate::session::{Coverage, How};

/// The number of mounts in root's tree that are captured unasked, those next to `/` first. Each costs about 0.3 ms; a container host has
/// hundreds.
const MOUNTS: usize = 16;

/// The number of mounts left out that are named before a command starts.
const NAMED: usize = 3;

impl Places {
    pub fn choose(request: &Request, route: Route, ids: &Ids, mounts: &[Mount]) -> Result<Self, Error> {
        refuse_private(&request.store)?;
        let mut making = Choosing {
            request,
            route,
            ids,
            mounts,
            places: Places::default(),
            wanted: Vec::new(),
            overlays_left: choose_pieces::OVERLAYS,
            copies_left: choose_pieces::COPIES,
            files: Vec::new(),
            uncovered: Vec::new(),
            deleted: None,
            looked: RefCell::default(),
        };
        making.places.passes = making.passes();
        making.hide()?;
        let mut wanted = making.wanted();
        making.wanted = wanted.iter().map(|place| place.path.clone()).collect();
        making.add_files(&mut wanted);
        if route == Route::Root {
            making.add_mounts(&mut wanted);
        }
        making.warn_of_uncovered();
        making.take_all(wanted);
        if let Some((path, sort)) = making.deleted.take() {
            return Err(deleted_mount(&path, sort == Sort::Directory));
        }
        let passes = std::mem::take(&mut making.places.passes);
        making.say_rest(&passes);
        request.scratch.iter().for_each(|path| making.say(path, How::Scratch, "asked for", false));
        making.places.targets.retain(|target| !passes.iter().any(|pass| target.path.is_under(pass)));
        making.places.passes = passes;
        making.sockets()?;
        let mut places = making.places;
        places.targets.sort_by(|a, b| a.path.cmp(&b.path));
        places.coverage.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(places)
    }
}

/// Refuses a store below a private mount: it could not be hidden there, and root's run needs it for its mounts.
fn refuse_private(store: &AbsPath) -> Result<(), Error> {
    match OWN.iter().find(|place| is_below(store, place)) {
        Some(place) => Err(store_in_private(store, place)),
        None => Ok(()),
    }
}

impl Choosing<'_> {
    /// The object at a mount point, as [`stat`] returns it.
    pub fn point(&self, path: &AbsPath) -> Option<Stat> {
        let mut looked = self.looked.borrow_mut();
        if let Some(found) = looked.found.get(path) {
            return *found;
        }
        let found = looked.look(path);
        looked.found.insert(path.clone(), found);
        found
    }

    pub fn say(&mut self, path: &AbsPath, how: How, why: impl Into<String>, warn: bool) {
        let why = why.into();
        if warn {
            self.places.warnings.push(format!("{path}: {why}"));
        }
        self.places.coverage.push(Coverage { path: path.clone(), how, why: (!why.is_empty()).then_some(why) });
    }

    /// The places that are wanted whatever mounts there are.
    fn wanted(&mut self) -> Vec<Wanted> {
        let mut wanted = self.own_places();
        for also in &self.request.also {
            match real(also) {
                Some(path) => {
                    let sort = if self.is_mounted_file(&path) { Sort::File } else { Sort::Directory };
                    wanted.push(Wanted { sort, ..Wanted::new(path, ALSO) });
                }
                None => {
                    if let Ok(path) = AbsPath::parse(also.as_os_str().as_encoded_bytes()) {
                        self.say(&path, How::Uncovered, "capture.also: no such directory", true);
                    }
                }
            }
        }
        for known in &self.request.known {
            let sort = if known.file.is_some() { Sort::File } else { Sort::Directory };
            // Its upper has what the command must see; the overlay of the tree has not.
            let why = "an earlier run of the session";
            if stat(&known.path).is_some_and(|stat| (stat.sort == Sort::File) == (sort == Sort::File)) {
                wanted.push(Wanted { need: Need::Again, apart: true, sort, ..Wanted::new(known.path.clone(), why) });
            }
        }
        wanted
    }

    /// Adds root's mounts: a wanted place is captured with the whole mount that it lies in, and all other mounts are captured too.
    fn add_mounts(&mut self, wanted: &mut Vec<Wanted>) {
        for place in wanted.iter_mut().filter(|place| !place.apart && !is_own(&place.path)) {
            if let Some(mount) = mounts::containing(self.mounts, &place.path) {
                place.path = mount.point.clone();
            }
        }
        let Ok(top) = AbsPath::parse("/") else { return };
        // Of several reasons the first is told.
        wanted.insert(0, Wanted::new(top.clone(), "the whole tree"));
        let mut others: Vec<&Mount> = self.mounts.iter().filter(|mount| mount.point != top && !is_own(&mount.point)).collect();
        others.sort_by_key(|mount| mount.point.depth());
        let mut left = MOUNTS;
        for mount in others {
            let is_wanted = wanted.iter().any(|place| place.path == mount.point);
            let seen = self.point(&mount.point).filter(|stat| stat.mount == mount.id && stat.sort != Sort::File && !is_wanted);
            let Some(stat) = seen else { continue };
            let kernel_s = is_below(&mount.point, "/sys");
            if kernel_s && mount.point.depth() > 1 {
                continue;
            }
            let refuse = if kernel_s || PSEUDO.contains(&mount.fs_type.as_str()) {
                (How::ReadOnly, "its files are the kernel's own")
            } else if mount.read_only() {
                (How::ReadOnly, "its file system is mounted read-only")
            } else if stat.sort != Sort::Directory {
                (How::Uncovered, "what is mounted there is neither a directory nor a file")
            } else if left == 0 {
                (How::Uncovered, "there are many mounts: it is captured where capture.also names it")
            } else {
                left -= 1;
                wanted.push(Wanted { need: Need::OrReadOnly, ..Wanted::new(mount.point.clone(), "a mount") });
                continue;
            };
            self.leave(&mount.point, refuse.0, refuse.1);
        }
    }

    /// Records a mount that is not captured.
    pub fn leave(&mut self, point: &AbsPath, how: How, why: impl Into<String>) {
        if how == How::Uncovered {
            self.uncovered.push(point.clone());
        }
        self.say(point, how, why, false);
    }

    /// Warns of the uncaptured mounts. There may be hundreds; each is in the table.
    fn warn_of_uncovered(&mut self) {
        if self.uncovered.is_empty() {
            return;
        }
        self.uncovered.sort_by_key(AbsPath::depth);
        let named: Vec<String> = self.uncovered.iter().take(NAMED).map(ToString::to_string).collect();
        let more = self.uncovered.len() - named.len();
        let and = if more == 0 { String::new() } else { format!(" and {more} more mounts") };
        let what = format!(
            "{}{and}: not captured, so read-only for the command ({recant} doctor says why)",
            named.join(", "),
            recant = recant()
        );
        self.places.warnings.push(what);
    }

    /// Turns the wanted places into targets, without those that another one covers.
    fn take_all(&mut self, mut wanted: Vec<Wanted>) {
        // Stable: of two reasons for one path the first stays. The upper of an earlier run counts whatever the reason.
        wanted.sort_by(|a, b| a.path.cmp(&b.path));
        wanted.dedup_by(|later, first| {
            let is_same = later.path == first.path;
            first.apart |= is_same && later.apart;
            if is_same && later.need == Need::Must {
                first.need = Need::Must;
            }
            is_same
        });
        self.wanted = wanted.iter().map(|place| place.path.clone()).collect();
        self.files = wanted.iter().filter(|place| place.sort == Sort::File).map(|place| place.path.clone()).collect();
        let mut kept: Vec<(AbsPath, u64)> = Vec::new();
        for place in wanted {
            let Some(mount) = mounts::containing(self.mounts, &place.path) else { continue };
            let covers =
                |(above, id): &(AbsPath, u64)| place.path.is_under(above) && *id == mount.id && self.reaches(above, &place.path);
            if let Some((above, _)) = kept.iter().find(|kept| !place.apart && covers(kept)) {
                self.needs_at_least(above, place.need);
                continue;
            }
            if self.fits(&place, mount) {
                kept.push((place.path.clone(), mount.id));
                self.take(&place, mount);
            }
        }
    }

    /// Makes a target that covers another place as necessary as that one is.
    fn needs_at_least(&mut self, above: &AbsPath, need: Need) {
        let above = self.places.targets.iter_mut().filter(|target| target.path == *above && need == Need::Must);
        above.for_each(|target| target.need = Need::Must);
    }

    /// Tells whether an overlay of `above` can take changes at `path` below it. Each directory on the way is copied up with them. In a user
    /// namespace that fails (EOVERFLOW) for another's directory: /var/tmp/theirs/mine needs an overlay of its own.
    fn reaches(&self, above: &AbsPath, path: &AbsPath) -> bool {
        let own = |path: &AbsPath| stat(path).is_some_and(|stat| self.ids.has(stat.uid, stat.gid));
        self.route == Route::Root
            || std::iter::successors(Some(path.clone()), AbsPath::parent).take_while(|at| at != above).all(|at| own(&at))
    }

    /// Tells whether a place can have an overlay; records the reason where it can't.
    fn fits(&mut self, place: &Wanted, mount: &Mount) -> bool {
        let (path, why) = (&place.path, &place.why);
        let refuse = if path.depth() == 0 && self.route == Route::User {
            Some("the root directory itself is not captured: only the places listed are")
        } else if path.is_under(&self.request.store) {
            Some("it lies in recant's store")
        } else if PSEUDO.contains(&mount.fs_type.as_str()) {
            Some("its files are the kernel's own")
        } else if is_below(path, DEV) && !is_below(path, "/dev/shm") {
            Some("a run has its own /dev")
        } else if mount.read_only() {
            Some("its file system is mounted read-only")
        } else if place.sort == Sort::File {
            stat(path).and_then(|stat| self.refuse_file(mount, &stat)).map(|(_, why)| why)
        } else if !stat(path).is_some_and(|stat| stat.sort == Sort::Directory) {
            Some("it is not a directory")
        } else if self.route == Route::User && !may_write(path) {
            Some("it is not writable for you")
        } else {
            None
        };
        if let Some(refuse) = refuse {
            let text = if path.depth() == 0 { refuse.to_owned() } else { format!("{why}: {refuse}") };
            self.say(path, How::ReadOnly, text, why == ALSO);
        }
        refuse.is_none()
    }

    /// Captures a directory with what lies below it. In a user namespace the kernel refuses an overlay with a mount below it: that
    /// directory is put together from pieces.
    fn take(&mut self, place: &Wanted, mount: &Mount) {
        let (path, why) = (&place.path, &*place.why);
        match self.route {
            _ if place.sort == Sort::File => {
                self.target(path, mount, Vec::new(), why, place.need);
            }
            Route::Root => {
                let nested = self.topmost_below(path);
                self.target(path, mount, nested, why, place.need);
            }
            Route::User if self.locked_below(path, mount.id).is_empty() => {
                self.target(path, mount, Vec::new(), why, place.need);
            }
            Route::User => self.take_split(path, mount, why, place.need),
        }
    }

    pub fn target(&mut self, path: &AbsPath, mount: &Mount, nested: Vec<AbsPath>, why: &str, need: Need) {
        if self.places.targets.iter().any(|target| target.path == *path) {
            return;
        }
        let sort = if self.files.binary_search(path).is_ok() { Sort::File } else { Sort::Directory };
        // Both are mounted at their paths, which can't be seen by then. Root's directories lie in one overlay.
        if self.is_hidden(path) && (self.route == Route::User || sort == Sort::File) {
            return;
        }
        self.say(path, How::Captured, why, false);
        let has = |option| mounts::has(&mount.options, option);
        let (nosuid, noexec) = (has("nosuid"), has("noexec"));
        self.places.targets.push(Target { path: path.clone(), sort, nested, nosuid, noexec, need, split: None });
    }

    /// The mounts below `path` that hang in the mount `mount`. Hidden ones count too, as for the kernel.
    pub fn locked_below(&self, path: &AbsPath, mount: u64) -> Vec<AbsPath> {
        let below = self.mounts.iter().filter(|m| m.parent == mount && m.point != *path && m.point.is_under(path));
        let mut points: Vec<_> = below.map(|m| m.point.clone()).collect();
        points.sort();
        points.dedup();
        points
    }

    /// The topmost visible mounts below `path`, without the run's own.
    fn topmost_below(&mut self, path: &AbsPath) -> Vec<AbsPath> {
        let below = |p: &AbsPath| p != path && p.is_under(path) && (!is_own(p) || is_own(path));
        let mut points: Vec<_> = self.mounts.iter().map(|m| m.point.clone()).filter(below).collect();
        points.sort();
        points.dedup();
        let mut topmost: Vec<AbsPath> = Vec::new();
        for point in points {
            let covered = topmost.last().is_some_and(|last| point.is_under(last));
            let Some(stat) = self.point(&point).filter(|stat| stat.mount_root && !covered) else { continue };
            // The kernel moves no deleted mount; over a file a copy is put instead.
            if self.mounts.iter().any(|mount| mount.id == stat.mount && mount.is_deleted()) {
                if self.files.binary_search(&point).is_err() {
                    self.deleted.get_or_insert((point, stat.sort));
                }
                continue;
            }
            topmost.push(point);
        }
        topmost
    }

    fn say_rest(&mut self, passes: &[AbsPath]) {
        let rows: &[(&str, How, &str)] = match self.route {
            Route::Root => &[
                (DEV, How::Private, "harmless nodes only"),
                ("/dev/shm", How::Private, "shared memory, gone at the end"),
                ("/proc", How::Private, "the run's own processes"),
            ],
            Route::User => &[
                ("/", How::ReadOnly, own_places::REST),
                (DEV, How::Private, "harmless nodes only"),
                ("/dev/shm", How::Private, "shared memory, gone at the end"),
            ],
        };
        for (path, how, why) in rows {
            if let Ok(path) = AbsPath::parse(path)
                && !passes.iter().any(|pass| path.is_under(pass))
            {
                self.say(&path, *how, *why, false);
            }
        }
    }

    fn passes(&mut self) -> Vec<AbsPath> {
        let mut passes = Vec::new();
        for pass in &self.request.passes {
            match real(&pass.path) {
                Some(path) if path.is_under(&self.request.store) || self.request.store.is_under(&path) => {
                    self.say(&path, How::Hidden, format!("{}: it holds recant's store", pass.why), true);
                }
                Some(path) => {
                    self.say(&path, How::Passed, pass.why.clone(), false);
                    passes.push(path);
                }
                None => {
                    if let Ok(path) = AbsPath::parse(pass.path.as_os_str().as_encoded_bytes()) {
                        self.say(&path, How::Uncovered, format!("{}: nothing there to pass", pass.why), true);
                    }
                }
            }
        }
        passes.sort();
        passes.dedup();
        passes
    }

    fn hide(&mut self) -> Result<(), Error> {
        let store = self.request.store.clone();
        self.say(&store, How::Hidden, "recant's store", false);
        self.places.hidden.push(store);
        for Hide { path, secret } in &self.request.hide {
            let real = match (std::fs::canonicalize(path), secret) {
                // Nothing is there to read, or not for this user.
                (Err(_), Some(_)) => continue,
                (found, _) => found.at("find the path to hide", path.display())?,
            };
            let Ok(path) = AbsPath::parse(real.as_os_str().as_encoded_bytes()) else { continue };
            match secret {
                Some(what) => self.say(&path, How::Closed, what.clone(), false),
                None => self.say(&path, How::Hidden, "asked for", false),
            }
            self.places.hidden.push(path);
        }
        // A path in a hidden directory needs no hiding of its own.
        let hidden = self.places.hidden.clone();
        self.places.hidden.retain(|path| !hidden.iter().any(|above| above != path && path.is_under(above)));
        // The store stays first.
        let mut seen = HashSet::new();
        self.places.hidden.retain(|path| seen.insert(path.clone()));
        Ok(())
    }

    /// Tells whether a path lies in an overlay, with no mount in between.
    pub fn is_captured(&self, path: &AbsPath) -> bool {
        let Some(mount) = mounts::containing(self.mounts, path) else { return false };
        let in_same = |top: &AbsPath| mounts::containing(self.mounts, top).is_some_and(|own| own.id == mount.id);
        self.places.targets.iter().any(|target| path.is_under(&target.path) && in_same(&target.path))
    }
}

const ALSO: &str = "capture.also";
