//! What a run is asked for and what is laid out for it, as data: `plan` decides, `places` chooses, `space` mounts.

use std::ffi::OsString;
use std::path::PathBuf;

use super::pieces::{LaidSplit, Split};
use crate::error::{At, Error, IoError};
use crate::fs::Fs;
use crate::fs::device::Dev;
use crate::fs::dir::{Dir, Entry, Sort, Stat, Time, leads_nowhere};
use crate::fs::path::AbsPath;
use crate::session::run::Place;

/// What a run is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// The working folder, as [`working_folder`](super::plan::working_folder) gives it.
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
    /// Places whose changes are dropped at the end; they need not be there.
    pub scratch: Vec<AbsPath>,
    /// The program that will be run, to tell at once of one that can't work.
    pub program: OsString,
    /// The places that the session captured in earlier runs.
    pub known: Vec<Place>,
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
    /// With CAP_SYS_ADMIN on the whole machine.
    Root,
    /// In a user namespace.
    User,
}

/// A folder to be captured, or a file that is mounted.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub path: AbsPath,
    pub sort: Sort,
    /// The topmost mounts below it: moved into it, read-only (root alone).
    pub nested: Vec<AbsPath>,
    /// Whether its mount is `nosuid`, and `noexec`: the overlay is then too.
    pub nosuid: bool,
    /// See `nosuid`.
    pub noexec: bool,
    /// What its failing means.
    pub need: Need,
    /// What it is put together from, where it can be no lower: something is mounted below it (a user's target alone).
    pub split: Option<Split>,
}

/// An overlay that is in its place.
#[derive(Debug)]
pub(super) struct Attached {
    /// The captured directory or file.
    pub path: AbsPath,
    /// See [`Target::need`].
    pub need: Need,
}

impl Attached {
    /// Whether an error tells that a directory has gone which the run does without. Another one may have its name by now.
    pub(super) fn has_gone_by(&self, error: &IoError) -> bool {
        has_gone(self.need, &self.path, error)
    }
}

impl Target {
    /// Its overlay, once it is in its place.
    pub(super) fn attached(&self) -> Attached {
        Attached { path: self.path.clone(), need: self.need }
    }

    /// As [`Attached::has_gone_by`].
    pub(super) fn has_gone_by(&self, error: &IoError) -> bool {
        has_gone(self.need, &self.path, error)
    }
}

fn has_gone(need: Need, path: &AbsPath, error: &IoError) -> bool {
    need == Need::WhileThere && leads_nowhere(&error.source) && error.path == path.to_string()
}

/// What it means that a place can't be captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// The command is not started.
    Must,
    /// One of many directories of a split one: it may vanish meanwhile, and the run does without.
    WhileThere,
    /// A mount that nobody asked for: it stays read-only, which is said.
    OrReadOnly,
}

/// One target with its upper and work folder.
#[derive(Debug)]
pub(super) struct Layer {
    pub place: Place,
    pub upper: Dir,
    pub work: Dir,
    /// What the overlay lies over in place of the real directory: of a file an empty one, of a split directory a made-up one.
    pub lower: Option<Dir>,
    /// What the copy of a file takes in the upper before the command is there, in bytes.
    pub copied: u64,
    /// Of a split directory.
    pub split: Option<LaidSplit>,
}

impl Route {
    /// The route of this process's runs.
    pub fn here() -> Self {
        route()
    }

    /// The route that a run of the user `uid` takes, or took, on this machine.
    pub fn of(uid: u32) -> Self {
        if uid == 0 { route() } else { Self::User }
    }
}

fn route() -> Route {
    let may_mount =
        rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(rustix::thread::CapabilitySet::SYS_ADMIN));
    if may_mount && rustix::process::geteuid().is_root() && is_first_namespace() { Route::Root } else { Route::User }
}

/// Whether this is the machine's own user namespace. Root of another one (a container without root, `unshare -r`) has
/// CAP_SYS_ADMIN, and yet the kernel refuses it what root's overlays need: trusted xattrs and `redirect_dir`.
fn is_first_namespace() -> bool {
    /// PROC_USER_INIT_INO, the kernel's include/linux/proc_ns.h.
    const FIRST: u64 = 0xEFFF_FFFD;
    use std::os::unix::fs::MetadataExt;
    // Without /proc nothing tells; no run can be set up then.
    std::fs::metadata("/proc/self/ns/user").is_ok_and(|namespace| namespace.ino() == FIRST)
}

/// An xattr that overlayfs keeps its own notes in.
pub(super) fn is_overlay_xattr(name: &[u8]) -> bool {
    name.starts_with(b"trusted.overlay.") || name.starts_with(b"user.overlay.")
}

/// How overlayfs writes down that a name is gone: a character device 0:0 (overlayfs.rst, "whiteouts and opaque directories").
pub(super) fn is_whiteout(stat: &Stat) -> bool {
    stat.sort == Sort::Char && stat.rdev == Dev(0, 0)
}

/// A folder of the store's, made where it is missing.
pub(super) fn folder(fs: &Fs, at: Entry<'_>) -> Result<Dir, Error> {
    match fs.mkdir(at, 0o700) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        other => other.at("make the folder", at)?,
    }
    Ok(at.open_dir().at("open the folder", at)?)
}
