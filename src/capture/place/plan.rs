//! The checked list of mounts for a run: which places get an overlay, what stays real, what is hidden. Made before anything is mounted,
//! from mountinfo and the directories as they are. The plan decides, `space` only mounts.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use super::choose::may_write;
use super::choose::stat;
use super::choose::{Notice, Places};
use super::covers::Cover;
use super::layout::directory;
use super::layout::{Layer, Need, Request, Route, Target};
use super::mounted_file;
use super::split;
use crate::capture::error::gains_rights;
use crate::capture::error::not_shown;
use crate::capture::error::not_started;
use crate::capture::error::unmapped;
use crate::capture::layers::merge::By;
use crate::capture::layers::merge::merge;
use crate::capture::layers::opened_modes;
use crate::capture::layers::sealed::Sealed;
use crate::capture::layers::upper::dress;
use crate::capture::run::ids::Ids;
use crate::capture::run::ids::remedy;
use crate::capture::space::memory::Memory;
use crate::error::{At, Error, reason};
use crate::fs::Fs;
use crate::fs::dir::{Dir, Entry, Sort, Stat, Time};
use crate::fs::mounts::{self, Watch};
use crate::fs::path::{AbsPath, Shown};
use crate::session::net::Net;
use crate::session::run::{Coverage, Place};

/// The mounts of a run.
#[derive(Debug)]
pub struct Plan {
    pub(crate) route: Route,
    pub(crate) targets: Vec<Target>,
    pub(crate) passes: Vec<AbsPath>,
    pub(crate) hidden: Vec<AbsPath>,
    /// Sockets of processes outside: masked where they do not lie in an overlay, in which they are dead.
    pub sockets: Vec<AbsPath>,
    /// Directories in which all sockets and FIFOs of processes outside are dead.
    pub covers: Vec<Cover>,
    pub(crate) ids: Ids,
    pub(crate) request: Request,
    /// Tells whether what is mounted is still what it was made for.
    watch: Watch,
    coverage: Vec<Coverage>,
    warnings: Vec<String>,
    notices: Vec<Notice>,
}

/// A plan whose uppers exist.
#[derive(Debug)]
pub struct Laid {
    pub plan: Plan,
    pub layers: Vec<Layer>,
    /// The tmpfs that holds the uppers, if they lie in memory.
    pub memory: Option<Memory>,
    /// The places that could not be made ready, and so are read-only.
    pub uncovered: Vec<(AbsPath, String)>,
}

/// Programs that are useless without the right to change the user.
const GAINERS: &[&[u8]] = &[b"sudo", b"su", b"doas"];

/// The working directory's path, checked to lead to it: it may have been removed, or lie outside this process's root. A directory closed to
/// the caller gets another message than one that is gone: under sudo it may be another user's.
pub fn working_directory() -> Result<AbsPath, Error> {
    let wrong = |path: String, why: Option<io::ErrorKind>| {
        let closed = why == Some(io::ErrorKind::PermissionDenied);
        let (gone, closed_to_you) = ("the working directory no longer has a path", "you may not enter the working directory");
        crate::capture::error::working_directory(path, if closed { closed_to_you } else { gone })
    };
    let path = std::env::current_dir().map_err(|error| wrong(".".into(), Some(error.kind())))?;
    let shown = path.display().to_string();
    let path = AbsPath::parse(path.as_os_str().as_encoded_bytes()).map_err(|_| wrong(shown.clone(), None))?;
    let stat = |path: &Path| Dir::open(path).and_then(|dir| dir.stat());
    let here = stat(Path::new(".")).map_err(|error| wrong(shown.clone(), Some(error.kind())))?;
    match stat(path.as_path()) {
        Ok(there) if (there.dev, there.ino) == (here.dev, here.ino) => Ok(path),
        other => Err(wrong(shown, other.err().map(|error| error.kind()))),
    }
}

impl Plan {
    /// Decides what is mounted where. Errors: what would let the command write past the capture, or can't work.
    pub fn make(request: &Request) -> Result<Self, Error> {
        let route = Route::here();
        refuse_gainer(route, &request.program)?;
        let ids = Ids::own(route);
        let (mounts, watch) = mounts::watched().map_err(|error| not_started(error.into()))?;
        let places = Places::choose(request, route, &ids, &mounts).map_err(not_started)?;
        let plan = Self {
            route,
            targets: places.targets,
            passes: places.passes,
            hidden: places.hidden,
            sockets: places.sockets,
            covers: places.covers,
            ids,
            request: request.clone(),
            watch,
            coverage: places.coverage,
            warnings: places.warnings,
            notices: places.notices,
        };
        plan.check_cwd().map_err(not_started)?;
        Ok(plan)
    }

    /// The plan for what is mounted now; `None` if nothing was mounted or unmounted since this one was made.
    pub fn anew(&self) -> Result<Option<Self>, Error> {
        if self.watch.has_changed() { Self::make(&self.request).map(Some) } else { Ok(None) }
    }

    /// The coverage table: each place and what happens to changes there, in path order.
    pub fn coverage(&self) -> &[Coverage] {
        &self.coverage
    }

    /// Warnings before the command starts, one line each: places that were asked for and can't be captured.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Warnings that stay the same from run to run: once is enough.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// The user or root that sets up the namespace.
    pub fn route(&self) -> Route {
        self.route
    }

    /// Refuses a session with a change that the command could not see: at a mounted file that gets no copy this time, or below something
    /// that was mounted since.
    pub fn refuse_unseen(&self, known: &[Place], net: &Net) -> Result<(), Error> {
        let is_seen = |path: &AbsPath| !self.hidden.iter().any(|hidden| path.is_under(hidden));
        let innermost = |path: &AbsPath| known.iter().filter(|place| path.is_under(&place.path)).max_by_key(|p| p.path.depth());
        for place in known.iter().filter(|place| place.file.is_some() && is_seen(&place.path)) {
            let is_copied = |target: &Target| target.path == place.path && target.sort == Sort::File;
            if !self.targets.iter().any(is_copied) && !net.under(&place.path)?.is_empty() {
                let row = self.coverage.iter().find(|row| row.path == place.path);
                let why = row.and_then(|row| row.why.clone()).unwrap_or_else(|| "the file is gone".into());
                return Err(not_shown(&place.path, &why, None));
            }
        }
        let mut mounts: Vec<AbsPath> = mounts::read()?.into_iter().map(|mount| mount.point).collect();
        mounts.sort();
        // Nothing is held under these, nor under a mount in them.
        let mut free: Option<&AbsPath> = None;
        for over in &mounts {
            if free.is_some_and(|free| over.is_under(free)) {
                continue;
            }
            let Some(place) = innermost(over).filter(|place| place.path != *over) else { continue };
            // What lies in a place below the mount is seen there.
            let inner = known.iter().filter(|inner| *inner != place && inner.path.is_under(over)).map(|inner| &inner.path);
            let inner: Vec<&AbsPath> = inner.chain(self.hidden.iter().filter(|hidden| hidden.is_under(over))).collect();
            let hidden = net.find_under(over, &inner)?;
            if hidden.is_none() && inner.is_empty() {
                free = Some(over);
            }
            if let Some(change) = hidden {
                return Err(not_shown(&change.path, "something was mounted over it since", Some(over)));
            }
        }
        Ok(())
    }

    /// Makes the upper and work directories of a step below `held`, over the `sealed` uppers of earlier ones. A place of `known` keeps its
    /// number. The uppers begin as those of the step `joined`, if there is one. Else each upper looks like the directory that it covers, since the overlay's top shows the upper's owner, mode, times and xattrs.
    pub fn lay_out(
        mut self,
        fs: &Fs,
        held: &Dir,
        known: &[Place],
        (step, sealed, joined): (u32, &Sealed, Option<u32>),
    ) -> Result<Laid, Error> {
        let (uppers, works) = (directory(fs, held.at(b"upper"))?, directory(fs, held.at(b"work"))?);
        let mut free = known.iter().map(|place| place.k + 1).max().unwrap_or(0);
        let (mut layers, mut uncovered) = (Vec::with_capacity(self.targets.len()), Vec::new());
        for target in std::mem::take(&mut self.targets) {
            let is_file = target.sort == Sort::File;
            let earlier = known.iter().find(|place| place.path == target.path && place.file.is_some() == is_file);
            let mut place = earlier.cloned().unwrap_or_else(|| {
                free += 1;
                Place { path: target.path.clone(), k: free - 1, mtime: None, inode: None, file: None }
            });
            let (number, name) = (place.k.to_string(), place.upper_name(step));
            let (upper, work) = (uppers.at(&name), works.at(number.as_bytes()));
            let below = sealed.below(held, &place, self.route)?;
            let begins = match joined.map(|step| place.upper_name(step)) {
                Some(joined) => Some(uppers.at(&joined))
                    .filter(|at| at.stat().is_ok_and(|stat| stat.is_some()))
                    .map(|at| at.open_dir())
                    .transpose()?,
                None => None,
            };
            let mut copied = 0;
            if is_file {
                match mounted_file::lay(fs, (&uppers, begins.as_ref().or(below.first())), (&mut place, step), self.route)? {
                    Ok(bytes) => copied = bytes,
                    Err(error) if target.need != Need::OrReadOnly => return Err(error.into()),
                    Err(error) => {
                        uncovered.push((target.path, format!("cannot {}: {}", error.act, reason(&error.source))));
                        continue;
                    }
                }
            } else if let Some(begins) = begins {
                fs.remove_all(upper)?;
                let notes = merge(fs, (self.route, sealed), (vec![(step, begins)], None), (upper, &name), By::Copy)?;
                opened_modes::append(fs, &uppers, &notes)?;
                // What the joined step made of its time counts.
                place.mtime = None;
            } else {
                make_anew(fs, upper)?;
                let shows = match below.first() {
                    Some(sealed) => sealed.again(),
                    None => Dir::open(target.path.as_path()).at("open the directory to capture", &target.path),
                };
                let dressed = shows.and_then(|shows| {
                    let mtime = dress(fs, self.route, &self.ids, upper, (&shows, sealed))?;
                    let stat = shows.stat()?;
                    Ok((mtime, (stat.dev.0, stat.dev.1, stat.ino)))
                });
                match dressed {
                    // It was removed, or its disk died, and nobody asked for it: what is there now is read-only.
                    Err(error)
                        if target.need != Need::Must
                            && (target.has_gone_by(&error) || Dir::open(target.path.as_path()).is_err()) =>
                    {
                        fs.remove_all(upper)?;
                        continue;
                    }
                    dressed => {
                        let (mtime, inode) = dressed?;
                        (place.mtime, place.inode) = (Some(mtime), Some(inode).filter(|_| below.is_empty()));
                    }
                }
            }
            make_anew(fs, work)?;
            let upper = upper.open_dir()?;
            let mut work = work.open_dir()?;
            let (mut lower, mut split) = (None, None);
            if is_file || target.split.is_some() {
                let made_up = directory(fs, work.at(b"lower"))?;
                if let Some(pieces) = &target.split {
                    let works = directory(fs, work.at(b"works"))?;
                    let mut laid = split::lay(fs, &self.ids, pieces, &target.path, (sealed, &below), (&upper, &made_up, works))?;
                    uncovered.append(&mut laid.uncopied);
                    split = Some(laid);
                }
                (lower, work) = (Some(made_up), directory(fs, work.at(b"work"))?);
            }
            // The copy of a mounted file is all that its overlay shows.
            let sealed = if is_file { Vec::new() } else { below };
            layers.push(Layer { place, upper, work, lower, sealed, copied, split });
            self.targets.push(target);
        }
        Ok(Laid { plan: self, layers, memory: None, uncovered })
    }

    /// Refuses a working directory whose owner or group is not mapped: a user namespace maps one user and the groups of [`Ids`]. What
    /// belongs to others can't be copied up (EOVERFLOW), and nothing can be made there. The command would fail with a riddle.
    fn check_cwd(&self) -> Result<(), Error> {
        let dir = Dir::open(self.request.cwd.as_path()).at("open the working directory", &self.request.cwd)?;
        let own = dir.stat().at("look at the working directory", &self.request.cwd)?;
        if self.hidden.iter().any(|hidden| self.request.cwd.is_under(hidden)) {
            let path = self.request.cwd.to_string();
            return Err(crate::capture::error::working_directory(
                path,
                "it lies in a directory that is hidden in the run (recant's store?)",
            ));
        }
        if self.passes.iter().any(|pass| self.request.cwd.is_under(pass)) {
            // Passed: it is the real directory.
            return Ok(());
        }
        let held = self.targets.iter().filter(|target| self.request.cwd.is_under(&target.path)).max_by_key(|t| t.path.depth());
        let Some(held) = held else { return Ok(()) };
        // Each directory on the way down is copied up with what changes below it.
        let above = std::iter::successors(self.request.cwd.parent(), AbsPath::parent);
        for directory in above.take_while(|above| above.is_under(&held.path) && *above != held.path) {
            let is_own = |stat: &Stat| self.ids.has(stat.uid, stat.gid);
            if let (Route::User, Some(stat)) = (self.route, stat(&directory).filter(|stat| !is_own(stat))) {
                let is_mine = stat.uid == self.ids.uid;
                let belongs = if is_mine { format!("group {}", stat.gid) } else { format!("user {}", stat.uid) };
                return Err(unmapped(&directory, &belongs, remedy(is_mine.then_some(stat.gid))));
            }
        }
        let is_top = held.path == self.request.cwd;
        // The top of an overlay belongs to the upper; only a setgid directory passes its group on.
        let foreign_group = !self.ids.has(self.ids.uid, own.gid) && (!is_top || own.mode & 0o2000 != 0);
        let foreign_user = own.uid != self.ids.uid && !is_top;
        match self.route {
            Route::User if foreign_group => {
                let (path, belongs) = (self.request.cwd.clone(), format!("group {}", own.gid));
                Err(unmapped(&path, &belongs, remedy(Some(own.gid))))
            }
            Route::User if foreign_user && may_write(&self.request.cwd) => {
                Err(unmapped(&self.request.cwd, &format!("user {}", own.uid), remedy(None)))
            }
            Route::User | Route::Root => Ok(()),
        }
    }
}

impl Laid {
    /// Sets the tmpfs that holds the uppers. It is mounted nowhere yet.
    pub fn in_memory(self, memory: Option<Memory>) -> Self {
        Self { memory, ..self }
    }

    /// The places, to be recorded before the run: all that is needed to read the uppers later.
    pub fn places(&self) -> Vec<Place> {
        self.layers.iter().map(|layer| layer.place.clone()).collect()
    }

    /// The user that runs, and the mapped groups.
    pub fn ids(&self) -> &Ids {
        &self.plan.ids
    }

    /// The places whose changes are dropped at the end.
    pub fn scratch(&self) -> &[AbsPath] {
        &self.plan.request.scratch
    }

    /// The command starts only when the clock of files is past this time.
    pub fn ready_after(&self) -> Time {
        let copied = mounted_file::copied_at(self.layers.iter().map(|layer| &layer.place));
        copied.map_or(self.plan.request.since, |copied| copied.max(self.plan.request.since))
    }

    /// The time from which a change of the real tree counts as one during the run.
    pub fn started(&self) -> Time {
        self.plan.request.since
    }

    /// The coverage table: each place and what happens to changes there.
    pub fn coverage(&self) -> &[Coverage] {
        self.plan.coverage()
    }
}

/// Makes a directory. Removes what an interrupted run left of that name: a volatile overlay's mark in its work directory forbids the next
/// mount (overlayfs.rst, "Volatile mount").
fn make_anew(fs: &Fs, at: Entry<'_>) -> Result<(), Error> {
    match fs.mkdir(at, 0o700) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs.remove_all(at)?;
            Ok(fs.mkdir(at, 0o700)?)
        }
        made => Ok(made?),
    }
}

fn refuse_gainer(route: Route, program: &OsString) -> Result<(), Error> {
    let name = Path::new(program).file_name().unwrap_or_default().as_encoded_bytes();
    if route == Route::User && GAINERS.contains(&name) {
        return Err(gains_rights(Shown(name)));
    }
    Ok(())
}
