//! Foresees, in the run's init, which calls of the command the kernel refuses because of the run. recant is told of each ([`Refusal`]), looks at
//! the real tree, and tells a person of those that would have worked without it ([`refusal_notes`](super::refusal_notes)).
//!
//! - **H17** No call waits for this, nor is one answered otherwise: its arguments are read before the answer, all else comes after it. recant
//!   hears of all of it before it hears that the run has ended ([`ForeseenRefusals::looking`]).

use std::collections::HashSet;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};

use rustix::fs::{Access, AtFlags};
use rustix::io::Errno;

use super::call_listener::{WaitingCall, bytes_of};
use super::call_path::{CallPath, Place};
use super::messages::{Refusal, Word, say};
use super::rename_call::Rename;
use super::seccomp_filter::AskedCall;
use crate::error::{At, IoError};
use crate::fs::{Sort, Stat, Time, is_overlay};

/// The most refusals that recant is told of, and the most renames that are remembered.
const MOST: usize = 1000;
const MOST_RENAMES: usize = 64;

/// The id that the kernel shows for one that is not mapped: user_namespaces(7), /proc/sys/kernel/overflowuid.
const OVERFLOW: u32 = 65534;

/// A call that may be refused, as it was passed.
#[derive(Debug)]
pub enum SeenCall {
    Write { path: CallPath, to: Written },
    Rename(Rename),
    Link { from: CallPath, to: CallPath },
    Connect(CallPath),
}

/// The object that a call writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// The object that is there.
    Object,
    /// The object that is there, or a new name.
    Either,
    /// A name that is not there yet.
    NewName,
}

impl SeenCall {
    /// Reads the arguments of a call. `None` if they cannot be read, or if the call is not looked at.
    pub fn of(asked: AskedCall, call: &WaitingCall) -> Option<Self> {
        let [a, b, c, d, ..] = call.arguments;
        let named = |directory: i32, address| CallPath::read(call.thread, directory, address);
        let here = |address| named(libc::AT_FDCWD, address);
        let write = |path: Option<CallPath>, to| Some(Self::Write { path: path?, to });
        #[expect(clippy::cast_possible_truncation, reason = "the kernel reads these arguments as int")]
        let (first, second, third) = (a as i32, b as i32, c as i32);
        match asked {
            AskedCall::Rename | AskedCall::Renameat | AskedCall::Renameat2 => Rename::of(asked, call).map(Self::Rename),
            AskedCall::Link => Some(Self::Link { from: here(a)?, to: here(b)? }),
            AskedCall::Linkat => Some(Self::Link { from: named(first, b)?, to: named(third, d)? }),
            AskedCall::Creat => write(here(a), Written::Either),
            AskedCall::Open => write(here(a), opened(second)?),
            AskedCall::Openat => write(named(first, b), opened(third)?),
            AskedCall::Openat2 => write(named(first, b), opened(flags_of(call.thread, c)?)?),
            AskedCall::Mkdir => write(here(a), Written::NewName),
            AskedCall::Mkdirat => write(named(first, b), Written::NewName),
            AskedCall::Symlink => write(here(b), Written::NewName),
            AskedCall::Symlinkat => write(named(second, c), Written::NewName),
            AskedCall::Connect => socket(call.thread, b, c).map(Self::Connect),
        }
    }
}

/// The object that open(2) writes to with these flags. `None` if it only reads.
fn opened(flags: i32) -> Option<Written> {
    let has = |flag| flags & flag == flag;
    match () {
        () if has(libc::O_PATH) => None,
        () if has(libc::O_TMPFILE) => Some(Written::Object),
        () if has(libc::O_CREAT | libc::O_EXCL) => Some(Written::NewName),
        () if has(libc::O_CREAT) => Some(Written::Either),
        () if flags & libc::O_ACCMODE != 0 || has(libc::O_TRUNC) => Some(Written::Object),
        () => None,
    }
}

/// The flags of openat2(2), at the beginning of its `struct open_how`.
fn flags_of(thread: u32, address: u64) -> Option<i32> {
    let bytes = bytes_of(thread, address, 8).ok()?;
    i32::try_from(u64::from_ne_bytes(bytes.try_into().ok()?)).ok()
}

/// The path in a socket's address (unix(7)). `None` for another kind of address, and for an abstract name.
fn socket(thread: u32, address: u64, len: u64) -> Option<CallPath> {
    const MOST: u64 = 110;
    let bytes = bytes_of(thread, address, usize::try_from(len.min(MOST)).ok()?).ok()?;
    let (family, path) = bytes.split_at_checked(2)?;
    let path = path.split(|byte| *byte == 0).next().filter(|path| !path.is_empty())?;
    (family == u16::try_from(libc::AF_UNIX).ok()?.to_ne_bytes())
        .then(|| CallPath::of(thread, libc::AT_FDCWD, path.to_vec()))
        .flatten()
}

/// The refusals of a run.
pub struct ForeseenRefusals {
    /// The run's start.
    since: Time,
    /// Told of each.
    recant: UnixStream,
    known: Mutex<HashSet<Refusal>>,
    renames: Mutex<Vec<Apart>>,
    /// Read-locked by whoever looks at a call, from before its answer on.
    looking: RwLock<()>,
}

/// A rename or link between two mounts.
struct Apart {
    from: Place,
    to: Place,
    is_link: bool,
    /// The object that had the new name.
    had: Option<Stat>,
}

impl ForeseenRefusals {
    pub fn new(since: Time, recant: &UnixStream) -> Result<Self, IoError> {
        let recant = recant.try_clone().at("take a socket for", "refused calls")?;
        Ok(Self { since, recant, known: Mutex::default(), renames: Mutex::default(), looking: RwLock::default() })
    }

    /// Lets the run not end before what is returned is dropped.
    pub fn looking(&self) -> RwLockReadGuard<'_, ()> {
        self.looking.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at a call that was answered.
    pub fn look(&self, call: &SeenCall) {
        match call {
            SeenCall::Write { path, to } => self.look_at_write(path, *to),
            SeenCall::Rename(rename) => {
                let (from, to) = rename.paths();
                self.look_at_move(from, to, false);
            }
            SeenCall::Link { from, to } => self.look_at_move(from, to, true),
            SeenCall::Connect(path) => self.look_at_socket(path),
        }
    }

    /// Waits for what is looked at, and tells of the renames that came to nothing, once the command has ended.
    pub fn end(&self) {
        drop(self.looking.write().unwrap_or_else(PoisonError::into_inner));
        for apart in self.renames.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            if let Some(refusal) = apart.refusal() {
                self.tell(refusal);
            }
        }
    }

    fn look_at_write(&self, path: &CallPath, to: Written) {
        let is_there = is_there(path, matches!(to, Written::Object | Written::Either));
        let is_name = match (to, is_there) {
            (Written::Object | Written::Either, true) => false,
            (Written::Either | Written::NewName, false) => true,
            (Written::Object, false) | (Written::NewName, true) => return,
        };
        let shown = || path.place().and_then(|place| Some((place.path()?.as_bytes().to_vec(), place)));
        match may_write(path, is_name) {
            Err(Errno::ROFS) => {
                if let Some((path, _)) = shown() {
                    self.tell(Refusal::ReadOnly { path, is_name });
                }
            }
            Ok(()) if may_be_unmapped(path, is_name) => {
                if let Some((path, place)) = shown()
                    && is_overlay(place.at().dir).unwrap_or(false)
                {
                    self.tell(Refusal::NotMapped { path, is_name });
                }
            }
            _ => {}
        }
    }

    fn look_at_move(&self, from: &CallPath, to: &CallPath, is_link: bool) {
        if from.is_beside(to) {
            return;
        }
        let Some((from, to)) = from.place().zip(to.place()) else { return };
        let mut renames = self.renames.lock().unwrap_or_else(PoisonError::into_inner);
        if renames.len() < MOST_RENAMES && from.stat().is_ok_and(|stat| stat.is_some()) && from.is_beside(&to).is_ok_and(|is| !is)
        {
            let had = to.stat().ok().flatten();
            renames.push(Apart { from, to, is_link, had });
        }
    }

    fn look_at_socket(&self, path: &CallPath) {
        let Some((place, stat)) = path.place().and_then(|place| place.stat().ok().flatten().map(|stat| (place, stat))) else {
            return;
        };
        // One that was made in the run, where the run can make one, is its own.
        let is_of_run = || {
            let can_be = may_write(path, true) != Err(Errno::ROFS);
            can_be && stat.btime.is_some_and(|born| born > self.since)
        };
        if stat.sort == Sort::File || stat.sort == Sort::Directory || is_of_run() {
            return;
        }
        if let Some(path) = place.path() {
            let (dev, ino) = ((stat.dev.0, stat.dev.1), stat.ino);
            self.tell(Refusal::Socket { path: path.as_bytes().to_vec(), dev, ino });
        }
    }

    /// Tells recant, once.
    fn tell(&self, refusal: Refusal) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MOST && known.insert(refusal.clone()) {
            say(&self.recant, &Word::Refused(refusal));
        }
    }
}

impl Apart {
    /// `None` if the program did it in another way, as mv(1) does, which copies.
    fn refusal(&self) -> Option<Refusal> {
        self.from.stat().ok()??;
        let is_same = |had: Stat, now: Stat| (had.inode(), had.ctime) == (now.inode(), now.ctime);
        let is_as_before = match (self.had, self.to.stat().ok()?) {
            (None, None) => true,
            (Some(had), Some(now)) => is_same(had, now),
            _ => false,
        };
        let bytes = |place: &Place| place.path().map(|path| path.as_bytes().to_vec());
        is_as_before.then_some(Refusal::Apart { from: bytes(&self.from)?, to: bytes(&self.to)?, is_link: self.is_link })
    }
}

/// True if there is something at a path, or for `follow` at what a link there leads to.
fn is_there(path: &CallPath, follow: bool) -> bool {
    let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    rustix::fs::statat(path.start(), path.below(), flags).is_ok()
}

/// Asks the kernel whether an object, or a name in its directory, may be written: EACCES comes before EROFS (access(2)).
fn may_write(path: &CallPath, is_name: bool) -> Result<(), Errno> {
    let (path_of, search) = if is_name { (path.parent(), Access::EXEC_OK) } else { (path.below(), Access::empty()) };
    rustix::fs::accessat(path.start(), path_of, Access::WRITE_OK | search, AtFlags::empty())
}

/// True if an object, or its directory, shows an id that is not mapped.
fn may_be_unmapped(path: &CallPath, is_name: bool) -> bool {
    let path_of = if is_name { path.parent() } else { path.below() };
    let stat = rustix::fs::statat(path.start(), path_of, AtFlags::empty());
    stat.is_ok_and(|stat| stat.st_uid == OVERFLOW || stat.st_gid == OVERFLOW)
}
