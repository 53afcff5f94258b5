//! The knowledge from which the places of a run are chosen.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::covers::Cover;
use super::layout::{Need, Request, Route, Target};
use crate::capture::run::ids::Ids;
use crate::error::IoError;
use crate::fs::{AbsPath, Dir, Mount, Sort, Stat};
use crate::session::Coverage;

/// File systems that get no overlay: their files are the kernel's.
pub const PSEUDO: &[&str] = &[
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
    "nsfs",
    "rpc_pipefs",
    "nfsd",
    "selinuxfs",
];

/// The places where a run has mounts of its own.
pub const OWN: &[&str] = &["/proc", DEV];

/// The private /dev; in it, /dev/shm alone can hold a wanted place.
pub const DEV: &str = "/dev";

#[derive(Debug, Default)]
pub struct Places {
    /// The captured places in path order: each after those that it lies in.
    pub targets: Vec<Target>,
    pub passes: Vec<AbsPath>,
    pub hidden: Vec<AbsPath>,
    /// Sockets that somebody listens at: dead in an overlay, masked elsewhere.
    pub sockets: Vec<AbsPath>,
    /// Directories in which all sockets and FIFOs of others are dead, in path order (an ordinary user's run).
    pub covers: Vec<Cover>,
    /// The coverage table: each place and what becomes of changes there, in path order.
    pub coverage: Vec<Coverage>,
    /// Warnings for a person before the command starts.
    pub warnings: Vec<String>,
}

pub struct Wanted {
    pub path: AbsPath,
    pub why: String,
    pub need: Need,
    /// True if it gets an overlay of its own even where another one covers it.
    pub apart: bool,
    /// A directory; or a file that is mounted, or was when an earlier run of the session held it.
    pub sort: Sort,
}

impl Wanted {
    pub fn new(path: AbsPath, why: impl Into<String>) -> Self {
        Self { path, why: why.into(), need: Need::Must, apart: false, sort: Sort::Directory }
    }
}

pub struct Choosing<'a> {
    pub request: &'a Request,
    pub route: Route,
    pub ids: &'a Ids,
    pub mounts: &'a [Mount],
    pub places: Places,
    pub wanted: Vec<AbsPath>,
    /// The number of overlays that directories of split ones may still get.
    pub overlays_left: usize,
    /// The bytes of files in split directories that may still be copied.
    pub copies_left: u64,
    /// The wanted mounted files, in path order.
    pub files: Vec<AbsPath>,
    /// Mounts that could be written without recant, and are not captured.
    pub uncovered: Vec<AbsPath>,
    /// A mount that would have to be moved into an overlay, and whose directory or file was deleted.
    pub deleted: Option<(AbsPath, Sort)>,
    /// The objects at mount points, each looked at once, and the parent of the last one: a container host has hundreds in one directory.
    pub looked: RefCell<StatCache>,
}

/// The cache of [`Choosing::point`].
#[derive(Default)]
pub struct StatCache {
    pub found: HashMap<AbsPath, Option<Stat>>,
    pub parent: Option<(AbsPath, Dir)>,
}

impl StatCache {
    /// Looks at a path as [`stat`] does, from the held parent.
    pub fn look(&mut self, path: &AbsPath) -> Option<Stat> {
        let Some((parent, name)) = path.parent().zip(path.split().map(|(_, name)| name)) else { return stat(path) };
        if self.parent.as_ref().is_none_or(|(held, _)| *held != parent) {
            self.parent = Some((parent.clone(), Dir::open(parent.as_path()).ok()?));
        }
        self.parent.as_ref()?.1.at(name).stat().ok()?
    }
}

/// Tells whether a path lies in a mount of the run's own.
pub fn is_own(path: &AbsPath) -> bool {
    OWN.iter().any(|own| is_below(path, own))
}

pub fn is_below(path: &AbsPath, top: &str) -> bool {
    AbsPath::parse(top).is_ok_and(|top| path.is_under(&top))
}

/// Tells whether the caller may write in a directory; a read-only mount counts as no: access(2).
pub fn may_write(path: &AbsPath) -> bool {
    rustix::fs::access(path.as_path(), Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// The real path of a directory that was asked for. `None` if there is none.
pub fn real(path: &Path) -> Option<AbsPath> {
    let path: PathBuf = std::fs::canonicalize(path).ok()?;
    AbsPath::parse(path.as_os_str().as_encoded_bytes()).ok()
}

/// Looks at a path without following a link at its last name. `None` also where it cannot be looked at: the caller then gives it no overlay
/// of its own, and the mounts are compared with the plan before the command starts.
pub fn stat(path: &AbsPath) -> Option<Stat> {
    stat_at(path).ok().flatten()
}

pub fn stat_at(path: &AbsPath) -> Result<Option<Stat>, IoError> {
    match path.parent().zip(path.split()) {
        Some((parent, (_, name))) => Dir::open(parent.as_path())?.at(name).stat(),
        None => Dir::open(path.as_path())?.stat().map(Some),
    }
}
