//! Sessions: begun, filled by hand, listed, and shown as what they change.

use std::fmt;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::SystemTime;

use super::{Error, Store, absolute, path_of};
use crate::diff::patch;
use crate::diff::renames::Renames;
use crate::diff::sources::Sources;
use crate::diff::view::View;
use crate::error::At;
use crate::fs::dir::Time;
use crate::session::change::Sort;
use crate::session::header::{self, Header, Origin};
use crate::session::id::Id;
use crate::session::opened;
use crate::session::stage::{self, Desk};
use crate::session::store;

/// Names a session for ever: `YYYYMMDD-HHMMSS-xxxx`, by local time. Parsed from that text, and written as it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(Id);

impl SessionId {
    pub(super) fn inner(&self) -> &Id {
        &self.0
    }
}

#[doc(hidden)]
impl From<Id> for SessionId {
    fn from(id: Id) -> Self {
        Self(id)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for SessionId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let none = || Error::refused(format!("{text:?} is no session's id: it is not YYYYMMDD-HHMMSS-xxxx"), None);
        Id::parse(text).map(Self).ok_or_else(none)
    }
}

/// A session, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// The name that it was given, if any.
    pub name: Option<String>,
    /// When it was begun.
    pub begun: SystemTime,
    /// Where it stands.
    pub status: Status,
    /// How many paths it changes.
    pub changes: u64,
}

impl Session {
    fn of(header: &Header) -> Self {
        Self {
            id: header.id.clone().into(),
            name: header.name.clone(),
            begun: moment(header.created),
            status: Status::of(header.status()),
            changes: header.counts.changes,
        }
    }
}

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// A command runs in it, or what it changed is not collected yet.
    Running,
    /// Its changes are held, none was ever real.
    Pending,
    /// All are real.
    Committed,
    /// Some are real, some are not.
    Partial,
    /// All are taken back.
    RolledBack,
    /// What it held is gone.
    Discarded,
}

impl Status {
    fn of(status: header::Status) -> Self {
        match status {
            header::Status::Running => Self::Running,
            header::Status::Pending => Self::Pending,
            header::Status::Committed => Self::Committed,
            header::Status::Partial => Self::Partial,
            header::Status::RolledBack => Self::RolledBack,
            header::Status::Discarded => Self::Discarded,
        }
    }
}

/// One change to stage. A folder above the path that is missing has to be staged before it.
pub enum Edit<'a> {
    /// A file with this content, in place of what is there but a folder.
    Write {
        /// Where.
        path: &'a Path,
        /// The content, read to its end.
        content: Box<dyn Read + 'a>,
        /// The permission bits, such as `0o644`; without, those of the file that is there, or 0666 less the umask.
        mode: Option<u32>,
    },
    /// Nothing there any more.
    Delete {
        /// Where.
        path: &'a Path,
        /// Of a folder, with all that is in it; without, one that is not empty is refused.
        recursive: bool,
    },
    /// A folder, where nothing is.
    Mkdir {
        /// Where.
        path: &'a Path,
        /// The permission bits; without, 0777 less the umask.
        mode: Option<u32>,
    },
    /// A symbolic link, in place of what is there but a folder.
    Symlink {
        /// Where.
        path: &'a Path,
        /// What it leads to, as it is to stand in the link.
        target: &'a Path,
    },
    /// Other permission bits for what is there.
    Mode {
        /// Where.
        path: &'a Path,
        /// The permission bits, set-user-ID, set-group-ID and sticky bit among them.
        mode: u32,
    },
}

impl Edit<'_> {
    fn stage(self, desk: &mut Desk<'_>) -> Result<(), Error> {
        let root = Path::new("/");
        match self {
            Self::Write { path, mut content, mode } => {
                let write = stage::Write { content: &mut *content, source: "the content", mode, over_folder: false };
                desk.write(absolute(path)?, root, write)
            }
            Self::Delete { path, recursive } => desk.delete(absolute(path)?, root, recursive),
            Self::Mkdir { path, mode } => desk.mkdir(absolute(path)?, root, mode),
            Self::Symlink { path, target } => desk.symlink(target.as_os_str().as_bytes(), absolute(path)?, root, false),
            Self::Mode { path, mode } => desk.chmod(mode, absolute(path)?, root),
        }?;
        Ok(())
    }
}

/// One path, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The path.
    pub path: PathBuf,
    /// What becomes of it, or became.
    pub kind: ChangeKind,
}

/// What becomes of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChangeKind {
    /// Something comes where nothing was.
    Created,
    /// Another content, or another kind of object.
    Modified,
    /// What was there goes.
    Deleted,
    /// Mode, owner or extended attributes alone.
    Metadata,
    /// The time of the last change alone.
    Times,
    /// Nothing: it is as wanted already.
    Unchanged,
}

impl ChangeKind {
    fn of(sort: Sort) -> Self {
        match sort {
            Sort::Created => Self::Created,
            Sort::Modified => Self::Modified,
            Sort::Deleted => Self::Deleted,
            Sort::Metadata => Self::Metadata,
            Sort::Times => Self::Times,
        }
    }
}

/// # Sessions
impl Store {
    /// Begins a session without changes. `name` has letters, digits, `.`, `_` and `-`, a letter first, 64 at most; it is free where no session
    /// that is held or partly real has it and was begun in the same project (the project of the working directory).
    ///
    /// # Errors
    /// [`Kind::Refused`](super::Kind): the name is none, or taken.
    pub fn begin(&self, name: Option<&str>) -> Result<SessionId, Error> {
        self.recover_first()?;
        let session = self.store.begin(&self.fs, Origin::Staged, name, None)?;
        self.clear_away();
        Ok(session.id().clone().into())
    }

    /// Stages changes in a session that [`Store::begin`] began and of which nothing was ever real: all of them, or none. Later ones see what
    /// earlier ones have staged. The tree is only read.
    ///
    /// # Errors
    /// [`Kind::Refused`](super::Kind): the session is none of these; a path's folder is missing; a folder is in the way; the path is the
    /// store's. `Busy`: another has the session's lock. `LeftOut`: staged, and may be lost by a power cut.
    pub fn stage<'a>(&self, id: &SessionId, edits: impl IntoIterator<Item = Edit<'a>>) -> Result<(), Error> {
        let mut session = self.locked(id)?;
        let mut desk = Desk::open(&self.fs, &self.store, &mut session, false)?;
        match edits.into_iter().try_for_each(|edit| edit.stage(&mut desk)) {
            // What stays of content that was replaced goes with the next staging.
            Ok(()) => Ok(desk.finish().map(drop)?),
            Err(error) => {
                desk.give_up();
                Err(error)
            }
        }
    }

    /// The session that `key` means: an id, its last four characters, a name (then the newest that is not discarded), or the start of an id.
    ///
    /// # Errors
    /// [`Kind::Refused`](super::Kind): none, or several, whose ids the text has.
    pub fn find(&self, key: &str) -> Result<SessionId, Error> {
        Ok(self.store.find(key, |header| header.discarded.is_none())?.into())
    }

    /// All sessions, the oldest first; behind them an error for each that cannot be read, which hides no other.
    ///
    /// # Errors
    /// The list itself cannot be read.
    pub fn sessions(&self) -> Result<Vec<Result<Session, Error>>, Error> {
        let (headers, broken) = self.store.headers()?;
        let damaged = |broken: store::Broken| {
            let path = format!("{}/sessions/{}", self.store.path, broken.name);
            Err(crate::session::error::damaged(path, broken.why).into())
        };
        Ok(headers.iter().map(Session::of).map(Ok).chain(broken.into_iter().map(damaged)).collect())
    }

    /// What a session changes, in the order of paths, whether it is real or not.
    ///
    /// # Errors
    /// [`Kind::Refused`](super::Kind): there is no such session. `Damaged`: it cannot be read. `Busy`: another was at work in it meanwhile.
    pub fn changes(&self, id: &SessionId) -> Result<Vec<Change>, Error> {
        self.read(id, |session| {
            let list = session.changes()?.list;
            Ok(list.iter().map(|change| Change { path: path_of(&change.path), kind: ChangeKind::of(change.sort()) }).collect())
        })
    }

    /// Writes a session's changes as a patch that `git apply` takes at `/`; what it has no words for (folders, owners, conflicts) stands in
    /// lines that begin with `#`. Content of more than 8 MiB is not in it, which such a line says.
    ///
    /// # Errors
    /// As of [`Store::changes`]; `Refused` also for a discarded session, and where `to` fails. What was written by then stays.
    pub fn patch(&self, id: &SessionId, to: &mut dyn Write) -> Result<(), Error> {
        self.read(id, |session| {
            if session.header.discarded.is_some() {
                return Err(Error::refused(format!("session {id} is discarded: what it held is gone"), None));
            }
            let changes = session.changes()?.list;
            let sides = session.sides(changes.len())?;
            let mut sources = Sources::of(session)?;
            let renames = Renames::find(&changes, &sides, &mut sources)?;
            for (i, (change, side)) in changes.iter().zip(&sides).enumerate() {
                let mut view = View::of(change, *side, &mut sources, true)?;
                view.remarks.extend(renames.from(&changes, i).map(|from| format!("renamed from {from}")));
                view.remarks.extend(renames.to(&changes, i).map(|to| format!("renamed to {to}")));
                let mut written = Ok(());
                patch::write(&view, &mut |_, line| {
                    if written.is_ok() {
                        written = to.write_all(&[line, b"\n"].concat());
                    }
                });
                written.at("write", "the patch").map_err(crate::error::Error::from)?;
            }
            Ok(())
        })
    }

    /// Reads a session; believed only where nobody was at work in it meanwhile.
    fn read<T>(&self, id: &SessionId, look: impl FnOnce(&opened::Session) -> Result<T, Error>) -> Result<T, Error> {
        let mut session = self.store.session(id.inner())?;
        if session.header.uncollected {
            drop(self.locked(id)?);
            session = self.store.session(id.inner())?;
        }
        let found = look(&session);
        if self.store.is_at_work(&session) {
            return Err(crate::session::error::busy(format!("session {id}")).into());
        }
        if found.is_err() {
            // Half done, it is no damage.
            crate::engine::ready::refuse_interrupted(&self.store, id.inner())?;
        }
        found
    }

    /// What cannot be removed now goes the next time.
    pub(super) fn clear_away(&self) {
        drop(self.store.sweep_removed(&self.fs));
    }
}

/// As the standard library has it.
pub(super) fn moment(time: Time) -> SystemTime {
    let (s, ns) = (time.s, time.ns);
    let whole = std::time::Duration::from_secs(s.unsigned_abs());
    let second = if s < 0 { SystemTime::UNIX_EPOCH - whole } else { SystemTime::UNIX_EPOCH + whole };
    second + std::time::Duration::from_nanos(ns.into())
}
