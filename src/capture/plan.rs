//! The checked list of mounts for a run: which places get an overlay, what stays real, what is hidden. Made before
//! anything is mounted, from mountinfo and the folders as they are; it decides, `space` only does.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::error::Error;
use crate::error::At;
use crate::fs::Fs;
use crate::fs::dir::{Dir, Entry, Sort, Stat, Time};
use crate::fs::mounts::{self, Mount};
use crate::fs::path::{AbsPath, Shown};
use crate::session::run::{Coverage, How, Place};
use rustix::fs::Access;

/// What a run is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// The working folder, as [`working_folder`] gives it.
    pub cwd: AbsPath,
    /// recant's store: hidden in the run.
    pub store: AbsPath,
    /// The home folder, where there is one.
    pub home: Option<PathBuf>,
    /// Further folders to capture: `capture.also`.
    pub also: Vec<PathBuf>,
    /// What stays real.
    pub passes: Vec<Pass>,
    /// Further places that are not to be seen.
    pub hide: Vec<PathBuf>,
    /// The program that will be run, to tell at once of one that can't work.
    pub program: OsString,
    /// A word that marks the run's mounts: the session's id. Letters, digits and `-`.
    pub tag: String,
    /// When the run begins to count, [`exact_now`](crate::fs::exact_now): what changes on the tree later is foreign to it. The
    /// earlier the better, as the command waits for the clock that files are stamped with to pass it.
    pub since: Time,
}

/// A path that stays real in a run: a socket, a file, or a folder with all in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// Where it is.
    pub path: PathBuf,
    /// Who asked for it: `--pass`, `$SSH_AUTH_SOCK`.
    pub why: String,
}

/// Who sets up the namespace, and so which calls there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// With CAP_SYS_ADMIN outside.
    Root,
    /// In a user namespace.
    User,
}

/// What will be mounted.
#[derive(Debug)]
pub struct Plan {
    pub(super) route: Route,
    pub(super) targets: Vec<Target>,
    pub(super) passes: Vec<AbsPath>,
    pub(super) hidden: Vec<AbsPath>,
    pub(super) cwd: AbsPath,
    pub(super) tag: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// When the run begins to count.
    pub(super) since: Time,
    coverage: Vec<Coverage>,
    warnings: Vec<String>,
}

/// A folder to be captured.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub path: AbsPath,
    /// The topmost mounts below it: attached again, read-only (root alone: a user's target has none).
    pub nested: Vec<AbsPath>,
    /// Whether its mount is `nosuid`, and `noexec`: the overlay is then too.
    pub nosuid: bool,
    /// See `nosuid`.
    pub noexec: bool,
    /// One of many folders of a place that is captured by its folders: it may vanish meanwhile, and the run does without.
    pub may_vanish: bool,
}

/// A plan whose uppers are there.
#[derive(Debug)]
pub struct Laid {
    pub(super) plan: Plan,
    pub(super) layers: Vec<Layer>,
}

/// One target with its upper and work folder.
#[derive(Debug)]
pub(super) struct Layer {
    pub place: Place,
    pub upper: Dir,
    pub work: Dir,
}

/// File systems of which an overlay makes no sense: their files are the kernel's.
const PSEUDO: &[&str] = &[
    "proc",
    "sysfs",
    "cgroup",
    "cgroup2",
    "devtmpfs",
    "devpts",
    "debugfs",
    "tracefs",
    "securityfs",
    "pstore",
    "bpf",
    "configfs",
    "mqueue",
    "autofs",
    "hugetlbfs",
    "efivarfs",
    "fusectl",
    "binfmt_misc",
];

/// What marks the top folder of a project.
const PROJECT: &[&[u8]] = &[b".git", b".hg", b".jj", b".svn", b".bzr"];

/// Programs that are of no use without the right to change the user.
const GAINERS: &[&[u8]] = &[b"sudo", b"su", b"doas"];

/// The working folder's path, checked to lead to it: it may have been removed or lie outside this process's root.
pub fn working_folder() -> Result<AbsPath, Error> {
    let gone = |path: String| Error::WorkingFolder { path, what: "the working folder has no path any more" };
    let path = std::env::current_dir().map_err(|_| gone(".".into()))?;
    let shown = path.display().to_string();
    let path = AbsPath::parse(path.as_os_str().as_encoded_bytes()).map_err(|_| gone(shown.clone()))?;
    let here = Dir::open(Path::new(".")).at("open the working folder", &path)?.stat().at("look at the working folder", &path)?;
    match Dir::open(path.as_path()).and_then(|dir| dir.stat()) {
        Ok(there) if (there.dev, there.ino) == (here.dev, here.ino) => Ok(path),
        _ => Err(gone(shown)),
    }
}

/// The top folder of the project that `cwd` lies in: the nearest one upward with a repository, else `cwd`.
pub fn project_of(cwd: &AbsPath) -> AbsPath {
    let mut at = Some(cwd.clone());
    while let Some(folder) = at {
        let is_top =
            Dir::open(folder.as_path()).is_ok_and(|dir| PROJECT.iter().any(|mark| matches!(dir.at(mark).stat(), Ok(Some(_)))));
        if is_top && folder.depth() > 0 {
            return folder;
        }
        at = folder.parent();
    }
    cwd.clone()
}

impl Plan {
    /// Decides what is mounted where. Errors: what would let the command write past the capture, or can't work.
    pub fn make(request: &Request) -> Result<Self, Error> {
        let route = route();
        refuse_gainer(route, &request.program)?;
        let mounts = mounts::read().at("read the mounts", "/proc/self/mountinfo")?;
        let mut making = Making {
            request,
            route,
            mounts: &mounts,
            targets: Vec::new(),
            coverage: Vec::new(),
            warnings: Vec::new(),
            opened: Vec::new(),
        };
        making.choose();
        making.say_rest();
        let passes = making.passes();
        let hidden = making.hidden()?;
        let Making { mut targets, mut coverage, warnings, .. } = making;
        targets.retain(|target| !passes.iter().any(|pass| target.path.is_under(pass)));
        coverage.sort_by(|a, b| a.path.cmp(&b.path));
        let plan = Self {
            route,
            targets,
            passes,
            hidden,
            cwd: request.cwd.clone(),
            tag: request.tag.clone(),
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            since: request.since,
            coverage,
            warnings,
        };
        plan.check_cwd()?;
        Ok(plan)
    }

    /// What happens to changes where, in path order.
    pub fn coverage(&self) -> &[Coverage] {
        &self.coverage
    }

    /// What a person should hear before the command starts: what was asked for and can't be captured. A line each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Who sets up the namespace.
    pub fn route(&self) -> Route {
        self.route
    }

    /// The folders that are captured.
    pub fn captured(&self) -> impl Iterator<Item = &AbsPath> {
        self.targets.iter().map(|target| &target.path)
    }

    /// Makes the upper and work folders below `held`. A place of `known` keeps its upper, with what is in it; its work
    /// folder is made anew. Each new upper looks like the folder that it covers, since the overlay's top shows the upper's
    /// owner, mode, times and xattrs.
    pub fn lay_out(mut self, fs: &Fs, held: &Dir, known: &[Place]) -> Result<Laid, Error> {
        let (uppers, works) = (folder(fs, held.at(b"upper"))?, folder(fs, held.at(b"work"))?);
        let mut free = known.iter().map(|place| place.k + 1).max().unwrap_or(0);
        let mut layers = Vec::with_capacity(self.targets.len());
        let mut targets = std::mem::take(&mut self.targets);
        targets.retain(|target| !target.may_vanish || stat(&target.path).is_some());
        self.targets = targets;
        for target in &self.targets {
            let place = known.iter().find(|place| place.path == target.path).cloned().unwrap_or_else(|| {
                free += 1;
                Place { path: target.path.clone(), k: free - 1 }
            });
            let number = place.k.to_string();
            let (upper, work) = (uppers.at(number.as_bytes()), works.at(number.as_bytes()));
            if !known.contains(&place) {
                fs.mkdir(upper, 0o700).at("make the upper folder", upper)?;
                self.dress(fs, upper, &target.path)?;
            }
            // A volatile overlay leaves a mark in its work folder that forbids the next mount (overlayfs.rst, "Volatile mount").
            if !known.is_empty() {
                fs.remove_all(work).at("clear the work folder", work)?;
            }
            fs.mkdir(work, 0o700).at("make the work folder", work)?;
            let (upper, work) =
                (upper.open_dir().at("open the upper folder", upper)?, work.open_dir().at("open the work folder", work)?);
            layers.push(Layer { place, upper, work });
        }
        Ok(Laid { plan: self, layers })
    }

    /// Gives an upper the looks of the folder that it covers.
    fn dress(&self, fs: &Fs, upper: Entry<'_>, covered: &AbsPath) -> Result<(), Error> {
        let dir = Dir::open(covered.as_path()).at("open the folder to capture", covered)?;
        let stat = dir.stat().at("look at the folder to capture", covered)?;
        if self.route == Route::Root {
            fs.set_owner(upper, stat.uid, stat.gid).at("set the owner of the upper folder", upper)?;
        }
        for (name, value) in dir.xattrs().at("read the extended attributes", covered)? {
            if is_overlay_xattr(&name) {
                continue;
            }
            match fs.set_xattr(upper, &name, &value) {
                // A user can't set what is the system's; the store's file system need not have what the folder's has.
                Err(error)
                    if self.route == Route::User || matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EPERM)) => {}
                other => other.at("set an extended attribute of the upper folder", upper)?,
            }
        }
        fs.set_mode(upper, stat.mode).at("set the mode of the upper folder", upper)?;
        fs.set_mtime(upper, stat.mtime).at("set the time of the upper folder", upper)?;
        Ok(())
    }

    /// A user namespace maps one user and one group. What belongs to another can't be copied up (EOVERFLOW), nor can
    /// anything be made in such a folder: refused here, rather than by a riddle in the command's output.
    fn check_cwd(&self) -> Result<(), Error> {
        let dir = Dir::open(self.cwd.as_path()).at("open the working folder", &self.cwd)?;
        let own = dir.stat().at("look at the working folder", &self.cwd)?;
        if self.hidden.iter().any(|hidden| self.cwd.is_under(hidden)) {
            let path = self.cwd.to_string();
            return Err(Error::WorkingFolder { path, what: "it lies in a folder that is hidden in the run (recant's store?)" });
        }
        let held = self.targets.iter().filter(|target| self.cwd.is_under(&target.path)).max_by_key(|t| t.path.depth());
        let Some(held) = held else { return Ok(()) };
        // Each folder on the way down is copied up with what changes below it.
        let above = std::iter::successors(self.cwd.parent(), AbsPath::parent);
        for folder in above.take_while(|above| above.is_under(&held.path) && *above != held.path) {
            let is_own = |stat: &Stat| (stat.uid, stat.gid) == (self.uid, self.gid);
            if let (Route::User, Some(stat)) = (self.route, stat(&folder).filter(|stat| !is_own(stat))) {
                let belongs = if stat.uid == self.uid { format!("group {}", stat.gid) } else { format!("user {}", stat.uid) };
                let group = (stat.uid == self.uid).then_some(stat.gid);
                return Err(Error::Unmapped { path: folder, belongs, group });
            }
        }
        let is_top = held.path == self.cwd;
        // The top of an overlay belongs to the upper; only a setgid folder hands its group on.
        let foreign_group = own.gid != self.gid && (!is_top || own.mode & 0o2000 != 0);
        let foreign_user = own.uid != self.uid && !is_top;
        match self.route {
            Route::User if foreign_group => {
                let (path, belongs) = (self.cwd.clone(), format!("group {}", own.gid));
                Err(Error::Unmapped { path, belongs, group: Some(own.gid) })
            }
            Route::User if foreign_user && may_write(&self.cwd) => {
                Err(Error::Unmapped { path: self.cwd.clone(), belongs: format!("user {}", own.uid), group: None })
            }
            Route::User | Route::Root => Ok(()),
        }
    }
}

impl Laid {
    /// The places as they are to be recorded before the run: all that is needed to read the uppers later.
    pub fn places(&self) -> Vec<Place> {
        self.layers.iter().map(|layer| layer.place.clone()).collect()
    }

    /// From when on a change of the real tree is one during the run.
    pub fn started(&self) -> Time {
        self.plan.since
    }

    /// What happens to changes where.
    pub fn coverage(&self) -> &[Coverage] {
        self.plan.coverage()
    }
}

/// An xattr that overlayfs keeps its own notes in.
pub(super) fn is_overlay_xattr(name: &[u8]) -> bool {
    name.starts_with(b"trusted.overlay.") || name.starts_with(b"user.overlay.")
}

impl Route {
    /// The route that a run of the user `uid` takes, or took, on this machine.
    pub fn of(uid: u32) -> Self {
        if uid == 0 { route() } else { Self::User }
    }
}

fn route() -> Route {
    let may_mount =
        rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(rustix::thread::CapabilitySet::SYS_ADMIN));
    if may_mount && rustix::process::geteuid().is_root() { Route::Root } else { Route::User }
}

fn refuse_gainer(route: Route, program: &OsString) -> Result<(), Error> {
    let name = Path::new(program).file_name().unwrap_or_default().as_encoded_bytes();
    if route == Route::User && GAINERS.contains(&name) {
        return Err(Error::GainsRights { program: Shown(name).to_string() });
    }
    Ok(())
}

/// Whether the caller may write in a folder, the mount's being read-only included: access(2).
fn may_write(path: &AbsPath) -> bool {
    rustix::fs::access(path.as_path(), Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// The real path of a folder that was asked for. `None` where there is none.
fn real(path: &Path) -> Option<AbsPath> {
    AbsPath::parse(std::fs::canonicalize(path).ok()?.as_os_str().as_encoded_bytes()).ok()
}

/// A folder of the store's, made where it is missing.
fn folder(fs: &Fs, at: Entry<'_>) -> Result<Dir, Error> {
    match fs.mkdir(at, 0o700) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        other => other.at("make the folder", at)?,
    }
    Ok(at.open_dir().at("open the folder", at)?)
}

/// A plan in the making.
struct Making<'a> {
    request: &'a Request,
    route: Route,
    mounts: &'a [Mount],
    targets: Vec<Target>,
    coverage: Vec<Coverage>,
    warnings: Vec<String>,
    /// Folders whose folders are captured one by one.
    opened: Vec<AbsPath>,
}

impl Making<'_> {
    fn say(&mut self, path: &AbsPath, how: How, why: impl Into<String>, warn: bool) {
        let why = why.into();
        if warn {
            self.warnings.push(format!("{path}: {why}"));
        }
        self.coverage.push(Coverage { path: path.clone(), how, why: (!why.is_empty()).then_some(why) });
    }

    /// The places that are wanted, those that another one covers left out, each turned into targets.
    fn choose(&mut self) {
        let mut wanted: Vec<(AbsPath, &str)> = Vec::new();
        let project = project_of(&self.request.cwd);
        let why = if project == self.request.cwd { "the working folder" } else { "the working folder's project" };
        wanted.extend(self.request.home.as_deref().and_then(real).map(|home| (home, "home")));
        wanted.push((project, why));
        wanted.extend(["/tmp", "/var/tmp"].into_iter().filter_map(|path| Some((real(Path::new(path))?, "temporary files"))));
        for also in &self.request.also {
            match real(also) {
                Some(path) => wanted.push((path, "capture.also")),
                None => {
                    if let Ok(path) = AbsPath::parse(also.as_os_str().as_encoded_bytes()) {
                        self.say(&path, How::Uncovered, "capture.also: no such folder", true);
                    }
                }
            }
        }
        // Stable: of two reasons for one path the first stays.
        wanted.sort_by(|a, b| a.0.cmp(&b.0));
        wanted.dedup_by(|a, b| a.0 == b.0);
        let mut kept: Vec<(AbsPath, u64)> = Vec::new();
        for (path, why) in wanted {
            let Some(mount) = mounts::containing(self.mounts, &path) else { continue };
            if kept.iter().any(|(above, id)| path.is_under(above) && *id == mount.id && self.reaches(above, &path)) {
                continue;
            }
            if self.fits(&path, mount, why) {
                kept.push((path.clone(), mount.id));
                self.take(&path, mount, why);
            }
        }
        self.targets.sort_by(|a, b| a.path.cmp(&b.path));
    }

    /// Whether an overlay of `above` can take changes at `path` below it. Each folder on the way down is copied up with them,
    /// which in a user namespace fails (EOVERFLOW) for one of another's: /var/tmp/theirs/mine needs an overlay of its own.
    fn reaches(&self, above: &AbsPath, path: &AbsPath) -> bool {
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let own = |path: &AbsPath| stat(path).is_some_and(|stat| (stat.uid, stat.gid) == (uid, gid));
        self.route == Route::Root
            || std::iter::successors(Some(path.clone()), AbsPath::parent).take_while(|at| at != above).all(|at| own(&at))
    }

    /// Whether an overlay of this folder is of use; says why where it is not.
    fn fits(&mut self, path: &AbsPath, mount: &Mount, why: &str) -> bool {
        let asked = why == "capture.also";
        let refuse = if path.depth() == 0 {
            Some("the root folder itself is not captured: only the places listed are")
        } else if path.is_under(&self.request.store) {
            Some("it lies in recant's store")
        } else if PSEUDO.contains(&mount.fs_type.as_str()) {
            Some("its files are the kernel's own")
        } else if mount.read_only() {
            Some("its file system is mounted read-only")
        } else if !stat(path).is_some_and(|stat| stat.sort == Sort::Folder) {
            Some("it is no folder")
        } else if self.route == Route::User && !may_write(path) {
            Some("it is not writable for you")
        } else {
            None
        };
        if let Some(refuse) = refuse {
            self.say(path, How::ReadOnly, format!("{why}: {refuse}"), asked);
        }
        refuse.is_none()
    }

    /// Captures a folder with what lies below it; where a mount lies below and the kernel can't have that (a user
    /// namespace), its folders one by one.
    fn take(&mut self, path: &AbsPath, mount: &Mount, why: &str) {
        match self.route {
            Route::Root => {
                let nested = self.topmost_below(path);
                for point in &nested {
                    self.say(point, How::ReadOnly, format!("a mount below {path}"), false);
                }
                self.target(path, mount, nested, why, false);
            }
            Route::User if self.locked_below(path, mount.id).is_empty() => {
                self.target(path, mount, Vec::new(), why, false);
            }
            Route::User => self.take_siblings(path, mount, why),
        }
    }

    fn target(&mut self, path: &AbsPath, mount: &Mount, nested: Vec<AbsPath>, why: &str, may_vanish: bool) {
        if self.targets.iter().any(|target| target.path == *path) {
            return;
        }
        self.say(path, How::Captured, why, false);
        let has = |option| mounts::has(&mount.options, option);
        self.targets.push(Target { path: path.clone(), nested, nosuid: has("nosuid"), noexec: has("noexec"), may_vanish });
    }

    /// A user namespace locks inherited mounts in place; the kernel clones no mount whose locked children would be
    /// uncovered, so a folder with a mount below it can't be a lower. Its folders can, where none lies below them.
    fn take_siblings(&mut self, path: &AbsPath, mount: &Mount, why: &str) {
        // Both a place and one below it can come here.
        if self.opened.contains(path) {
            return;
        }
        self.opened.push(path.clone());
        let points = self.locked_below(path, mount.id);
        let first = points.first().map(ToString::to_string).unwrap_or_default();
        let says = format!("{why}: {first} is a mount below it, so new names directly in it, and its files, are refused");
        self.say(path, How::ReadOnly, says, true);
        for point in points.iter().filter(|point| point.parent().as_ref() == Some(path)) {
            self.say(point, How::ReadOnly, format!("a mount below {path}"), false);
        }
        let Ok(dir) = Dir::open(path.as_path()) else { return };
        let Ok(mut names) = dir.names() else { return };
        names.sort();
        for name in names {
            let Ok(child) = path.join(&name) else { continue };
            let Ok(Some(stat)) = dir.at(&name).stat() else { continue };
            let is_own = stat.sort == Sort::Folder && !stat.mount_root && child != self.request.store;
            if !is_own {
                continue;
            }
            if !self.locked_below(&child, mount.id).is_empty() {
                self.take_siblings(&child, mount, why);
            } else if may_write(&child) {
                self.target(&child, mount, Vec::new(), why, true);
            }
        }
    }

    /// The mounts below `path` that hang in the mount `mount`, hidden ones included: the kernel counts them all.
    fn locked_below(&self, path: &AbsPath, mount: u64) -> Vec<AbsPath> {
        let below = self.mounts.iter().filter(|m| m.parent == mount && m.point != *path && m.point.is_under(path));
        let mut points: Vec<_> = below.map(|m| m.point.clone()).collect();
        points.sort();
        points.dedup();
        points
    }

    /// The topmost mounts below `path` that can be seen.
    fn topmost_below(&self, path: &AbsPath) -> Vec<AbsPath> {
        let mut points: Vec<_> = self.mounts.iter().map(|m| m.point.clone()).filter(|p| p != path && p.is_under(path)).collect();
        points.sort();
        points.dedup();
        let mut topmost: Vec<AbsPath> = Vec::new();
        for point in points {
            let covered = topmost.last().is_some_and(|last| point.is_under(last));
            if !covered && stat(&point).is_some_and(|stat| stat.mount_root) {
                topmost.push(point);
            }
        }
        topmost
    }

    fn say_rest(&mut self) {
        let parse = |path: &str| AbsPath::parse(path).ok();
        let (rest, dev) = match self.route {
            Route::Root => ("everything else", "harmless nodes only"),
            Route::User => ("everything else: a user's capture has home, project, /tmp, /var/tmp and capture.also", ""),
        };
        if let Some(path) = parse("/") {
            self.say(&path, How::ReadOnly, rest, false);
        }
        if let (Some(path), Route::Root) = (parse("/dev"), self.route) {
            self.say(&path, How::Private, dev, false);
        }
        if let Some(path) = parse("/dev/shm") {
            self.say(&path, How::Private, "shared memory, gone at the end", false);
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

    fn hidden(&mut self) -> Result<Vec<AbsPath>, Error> {
        let store = self.request.store.clone();
        self.say(&store, How::Hidden, "recant's store", false);
        let mut hidden = vec![store];
        for hide in &self.request.hide {
            let path = std::fs::canonicalize(hide).at("find what is to be hidden", hide.display())?;
            if let Ok(path) = AbsPath::parse(path.as_os_str().as_encoded_bytes()) {
                self.say(&path, How::Hidden, "asked for", false);
                hidden.push(path);
            }
        }
        Ok(hidden)
    }
}

fn stat(path: &AbsPath) -> Option<Stat> {
    let (parent, name) = path.split()?;
    let parent = AbsPath::parse(parent).ok()?;
    Dir::open(parent.as_path()).ok()?.at(name).stat().ok()?
}
