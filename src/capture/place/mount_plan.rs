//! The checked list of mounts for a run: which places get an overlay, what stays real, what is hidden. Made before anything is mounted,
//! from mountinfo and the directories as they are. The plan decides, `space` only mounts.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;

use super::choose_places::{Places, may_write, stat};
use super::copy_mounted_file;
use super::covers::Cover;
use super::lay_uppers::LayingUppers;
use super::layout::{Layer, Request, Route, Target};
use crate::capture::error::{gains_rights, not_shown, not_started, unmapped};
use crate::capture::layers::sealed_uppers::Sealed;
use crate::capture::run::ids::{Ids, remedy};
use crate::capture::space::uppers_in_memory::Memory;
use crate::error::{At, Error, shell_word};
use crate::fs::mounts::{self, Watch};
use crate::fs::{AbsPath, Dir, Fs, Mount, Shown, Sort, Stat, Time};
use crate::session::{Coverage, How, Net, Place};

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
    /// The mounts that there were when it was made.
    pub mounts: Vec<Mount>,
    /// Tells whether these are still all.
    watch: Watch,
    coverage: Vec<Coverage>,
    warnings: Vec<String>,
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
    /// The socket at which other commands may join.
    pub entrance: RefCell<Option<UnixListener>>,
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
            mounts,
            watch,
            coverage: places.coverage,
            warnings: places.warnings,
        };
        plan.check_cwd().map_err(not_started)?;
        Ok(plan)
    }

    /// The plan for what is mounted now; `None` if nothing was mounted or unmounted since this one was made.
    pub fn anew(&self) -> Result<Option<Self>, Error> {
        if self.watch.has_changed() { Self::make(&self.request).map(Some) } else { Ok(None) }
    }

    /// The command's working directory.
    pub fn cwd(&self) -> &AbsPath {
        &self.request.cwd
    }

    /// The coverage table: each place and what happens to changes there, in path order.
    pub fn coverage(&self) -> &[Coverage] {
        &self.coverage
    }

    /// Warnings before the command starts, one line each: places that were asked for and can't be captured.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Refuses a session with a change that the command could not see: at a mounted file that gets no copy this time, or below something
    /// that was mounted since.
    pub fn refuse_unseen(&self, known: &[Place], net: &Net) -> Result<(), Error> {
        let is_seen = |path: &AbsPath| !self.hidden.iter().any(|hidden| path.is_under(hidden));
        for place in known.iter().filter(|place| place.file.is_some() && is_seen(&place.path)) {
            let is_copied = |target: &Target| target.path == place.path && target.sort == Sort::File;
            if !self.targets.iter().any(is_copied) && !net.under(&place.path)?.is_empty() {
                let row = self.coverage.iter().find(|row| row.path == place.path);
                let why = row.and_then(|row| row.why.clone()).unwrap_or_else(|| "the file is gone".into());
                return Err(not_shown(&place.path, &why, None));
            }
        }
        let now = if self.watch.has_changed() { Some(mounts::read()?) } else { None };
        let mut mounts: Vec<&AbsPath> = now.as_ref().unwrap_or(&self.mounts).iter().map(|mount| &mount.point).collect();
        mounts.sort();
        // Nothing is held under these, nor under a mount in them.
        let mut free: Option<&AbsPath> = None;
        for over in mounts {
            if free.is_some_and(|free| over.is_under(free)) {
                continue;
            }
            let Some(place) = Place::innermost(known, over).filter(|place| place.path != *over) else { continue };
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
    /// number. The uppers begin as those of the step `joined`, if there is one; else each upper looks like the directory that it covers.
    pub fn lay_out(mut self, fs: &Fs, held: &Dir, known: &[Place], (step, sealed): (u32, &Sealed)) -> Result<Laid, Error> {
        let mut laying = LayingUppers::new(fs, held, (self.route, &self.ids), known, (step, sealed))?;
        let mut layers = Vec::with_capacity(self.targets.len());
        for target in std::mem::take(&mut self.targets) {
            if let Some(layer) = laying.layer(&target)? {
                layers.push(layer);
                self.targets.push(target);
            }
        }
        let uncovered = laying.uncovered;
        Ok(Laid { plan: self, layers, memory: None, uncovered, entrance: RefCell::default() })
    }

    /// Refuses a working directory whose owner or group is not mapped: a user namespace maps one user and the groups of [`Ids`]. What
    /// belongs to others can't be copied up (EOVERFLOW), and nothing can be made there. The command would fail with a riddle.
    fn check_cwd(&self) -> Result<(), Error> {
        let dir = Dir::open(self.request.cwd.as_path()).at("open the working directory", &self.request.cwd)?;
        let own = dir.stat().at("look at the working directory", &self.request.cwd)?;
        if self.hidden.iter().any(|hidden| self.request.cwd.is_under(hidden)) {
            let path = self.request.cwd.to_string();
            let is_closed = |row: &Coverage| row.how == How::Closed && self.request.cwd.is_under(&row.path);
            if let Some(closed) = self.coverage.iter().find(|row| is_closed(row)) {
                let remedy = format!("--open {} opens it", shell_word(closed.path.as_bytes()));
                return Err(crate::capture::error::working_directory(
                    path,
                    "it lies in a directory that is closed to the command",
                )
                .with_remedy(remedy));
            }
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
        let above = self.request.cwd.ancestors();
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

    /// The command starts only when the clock of files is past this time.
    pub fn ready_after(&self) -> Time {
        let copied = copy_mounted_file::copied_at(self.layers.iter().map(|layer| &layer.place));
        copied.map_or(self.plan.request.since, |copied| copied.max(self.plan.request.since))
    }
}

fn refuse_gainer(route: Route, program: &OsString) -> Result<(), Error> {
    let name = Path::new(program).file_name().unwrap_or_default().as_encoded_bytes();
    if route == Route::User && GAINERS.contains(&name) {
        return Err(gains_rights(Shown(name)));
    }
    Ok(())
}
