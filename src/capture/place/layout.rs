//! The request for a run and its layout, as data: `mount_plan` decides, `choose_places` chooses, `space` mounts.

use std::ffi::OsString;
use std::path::PathBuf;

use super::pieces::{LaidSplit, Split};
use crate::capture::space::switches::Namespace;
use crate::error::{Error, IoError};
use crate::fs::{AbsPath, Dev, Dir, Entry, Fs, Sort, Stat, Time, leads_nowhere};
use crate::session::Place;

/// The request for a run.
#[derive(Debug, Clone)]
pub struct Request {
    /// The working directory, as [`working_directory`](super::mount_plan::working_directory) returns it.
    pub cwd: AbsPath,
    /// recant's store: hidden in the run.
    pub store: AbsPath,
    /// A directory that the run has in the place of the store, for a store of its own. `None`: it has none.
    pub own_store: Option<AbsPath>,
    /// The home directory, if there is one.
    pub home: Option<PathBuf>,
    /// Further directories to capture: `capture.also`.
    pub also: Vec<PathBuf>,
    /// The paths that stay real.
    pub passes: Vec<Pass>,
    /// Further paths to hide.
    pub hide: Vec<Hide>,
    /// Places whose changes are dropped at the end; they need not be there.
    pub scratch: Vec<AbsPath>,
    /// The program that will be run, to refuse at once one that can't work.
    pub program: OsString,
    /// The places that the session captured in earlier runs.
    pub known: Vec<Place>,
    /// The mark of the run's mounts: the session's id. Letters, digits and `-`.
    pub tag: String,
    /// The time from which the run counts, [`exact_now`](crate::fs::exact_now): later changes on the tree are foreign to it. The earlier
    /// the better, as the command waits until the clock that stamps files has passed it.
    pub since: Time,
}

/// A path that a run cannot read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hide {
    pub path: PathBuf,
    /// The secret in it, of a path that is closed; `None`: it was asked for.
    pub secret: Option<String>,
}

/// A path that stays real in a run: a socket, a file, or a directory with all in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// The path itself.
    pub path: PathBuf,
    /// The origin of the request: `--pass`, `$SSH_AUTH_SOCK`.
    pub why: String,
}

/// The way the namespace is set up, which decides the available calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// With CAP_SYS_ADMIN on the whole machine.
    Root,
    /// In a user namespace.
    User,
}

/// A directory to be captured, or a mounted file.
#[derive(Debug, Clone)]
pub struct Target {
    pub path: AbsPath,
    pub sort: Sort,
    /// The topmost mounts below it: moved into it, read-only (root alone).
    pub nested: Vec<AbsPath>,
    /// True if its mount is `nosuid`: the overlay is then too. `noexec` likewise.
    pub nosuid: bool,
    pub noexec: bool,
    pub need: Need,
    /// Its pieces, if it can't be a lower because something is mounted below it (a user's target alone).
    pub split: Option<Split>,
}

/// An overlay that is in its place.
#[derive(Debug)]
pub struct Attached {
    pub path: AbsPath,
    pub need: Need,
}

impl Attached {
    /// Tells whether an error means that a directory is gone that the run can do without. Another one may have its name by now.
    pub fn has_gone_by(&self, error: &IoError) -> bool {
        has_gone(self.need, &self.path, error)
    }
}

impl Target {
    /// The target's overlay, once it is in its place.
    pub fn attached(&self) -> Attached {
        Attached { path: self.path.clone(), need: self.need }
    }

    /// Tells whether an error means that it is gone: see [`Attached::has_gone_by`].
    pub fn has_gone_by(&self, error: &IoError) -> bool {
        has_gone(self.need, &self.path, error)
    }
}

fn has_gone(need: Need, path: &AbsPath, error: &IoError) -> bool {
    need != Need::Must && leads_nowhere(&error.source) && error.path == path.to_string()
}

/// The consequence if a place can't be captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The command is not started.
    Must,
    /// The command is not started, unless it is gone by then: nobody asked for it, and an earlier run of the session held it.
    Again,
    /// The run does without: it is one of many directories of a split one, and may vanish meanwhile.
    WhileThere,
    /// It stays read-only, with a warning: it is a mount that nobody asked for.
    OrReadOnly,
}

/// One target with its upper and work directory.
#[derive(Debug)]
pub struct Layer {
    pub place: Place,
    pub upper: Dir,
    pub work: Dir,
    /// The overlay's lower in place of the real directory: for a file an empty one, for a split directory a made-up one.
    pub lower: Option<Dir>,
    /// The uppers of earlier steps, over that, the newest first.
    pub sealed: Vec<Dir>,
    /// The bytes that the copy of a file takes in the upper before the command starts.
    pub copied: u64,
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

/// Root of another user namespace than the machine's own (a rootless container, `unshare -r`) has CAP_SYS_ADMIN, and yet the kernel refuses it
/// what root's overlays need: trusted xattrs and `redirect_dir`.
fn route() -> Route {
    let may_mount =
        rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(rustix::thread::CapabilitySet::SYS_ADMIN));
    if may_mount && rustix::process::geteuid().is_root() && Namespace::User.is_first() { Route::Root } else { Route::User }
}

impl Route {
    /// The start of the names of the xattrs in which overlayfs keeps its notes.
    pub fn notes(self) -> &'static str {
        match self {
            Self::Root => "trusted.overlay.",
            Self::User => "user.overlay.",
        }
    }
}

/// True if a directory with these xattrs hides what lies below it (overlayfs.rst, "whiteouts and opaque directories").
pub fn is_opaque(route: Route, xattrs: &[(Vec<u8>, Vec<u8>)]) -> bool {
    xattrs.iter().any(|(name, value)| name.strip_prefix(route.notes().as_bytes()) == Some(b"opaque") && value == b"y")
}

/// True if an open directory hides what lies below it: asked by one call, as a session of many steps has many.
pub fn is_opaque_directory(route: Route, dir: &Dir) -> Result<bool, IoError> {
    dir.has_xattr(&format!("{}opaque", route.notes()), b"y")
}

/// True for an xattr in which overlayfs keeps its own notes.
pub fn is_overlay_xattr(name: &[u8]) -> bool {
    name.starts_with(b"trusted.overlay.") || name.starts_with(b"user.overlay.")
}

/// True for overlayfs' mark that a name is gone: a character device 0:0 (overlayfs.rst, "whiteouts and opaque directories").
pub fn is_whiteout(stat: &Stat) -> bool {
    stat.sort == Sort::Char && stat.rdev == Dev(0, 0)
}

/// Opens a directory of the store, and makes it if it is missing.
pub fn directory(fs: &Fs, at: Entry<'_>) -> Result<Dir, Error> {
    match fs.mkdir(at, 0o700) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        other => other?,
    }
    Ok(at.open_dir()?)
}
