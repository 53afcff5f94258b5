//! Sessions: begun, filled by hand, listed, and shown by their changes.

use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::id::SessionId;
use super::store::{Store, absolute, path_of};
use crate::compare::{Form, Renames, Sources, View, patch};
use crate::error::{At, Error};
use crate::fs::Time;
use crate::session::{Header, Origin, Sort, Staging, header, log, open_session, stage, store};

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// The name that it was given, if any.
    pub name: Option<String>,
    /// When it was begun.
    pub begun: SystemTime,
    /// The status.
    pub status: Status,
    /// The number of paths that it changes.
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

/// The status of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// A command runs in it, or its changes are not collected yet.
    Running,
    /// Its changes are held; none was ever on the tree.
    Pending,
    /// All are on the tree, but for what was left out or taken back.
    Committed,
    /// All are rolled back.
    RolledBack,
    /// Its changes are gone.
    Discarded,
}

impl Status {
    fn of(status: header::Status) -> Self {
        match status {
            header::Status::Running => Self::Running,
            header::Status::Pending => Self::Pending,
            header::Status::Committed => Self::Committed,
            header::Status::RolledBack => Self::RolledBack,
            header::Status::Discarded => Self::Discarded,
        }
    }
}

/// One change to stage. A missing directory above the path has to be staged first.
pub enum Edit<'a> {
    /// A file with this content, in place of anything but a directory.
    Write {
        /// The path.
        path: &'a Path,
        /// The content, read to its end.
        content: Box<dyn Read + 'a>,
        /// The permission bits, such as `0o644`; else those of the existing file, or 0666 less the umask.
        mode: Option<u32>,
    },
    /// The deletion of a path.
    Delete {
        /// The path.
        path: &'a Path,
        /// Deletes a directory with all that is in it; without it, one that is not empty is refused.
        recursive: bool,
    },
    /// A new directory.
    Mkdir {
        /// The path.
        path: &'a Path,
        /// The permission bits; else 0777 less the umask.
        mode: Option<u32>,
    },
    /// A symbolic link, in place of anything but a directory.
    Symlink {
        /// The path.
        path: &'a Path,
        /// The text of the link.
        target: &'a Path,
    },
    /// Other permission bits for an existing object.
    Mode {
        /// The path.
        path: &'a Path,
        /// The permission bits, with set-user-ID, set-group-ID and sticky bit.
        mode: u32,
    },
}

impl Edit<'_> {
    fn stage(self, desk: &mut Staging<'_>) -> Result<(), Error> {
        let root = Path::new("/");
        match self {
            Self::Write { path, mut content, mode } => {
                let write = stage::Write { content: &mut *content, source: "the content", mode, over_directory: false };
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

/// A path, and the change there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The path.
    pub path: PathBuf,
    /// The kind of the change.
    pub kind: ChangeKind,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChangeKind {
    /// A new object.
    Created,
    /// Other content, or another kind of object.
    Modified,
    /// A removed object.
    Deleted,
    /// Mode, owner or extended attributes alone.
    Metadata,
    /// The time of the last change alone.
    Times,
    /// None: the path is already as wanted.
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
    /// Begins a session without changes. `name` has letters, digits, `.`, `_` and `-`, a letter first, 64 at most. It is free unless a
    /// session that is held or partly committed has it, and was begun in the same project (the project of the working directory).
    ///
    /// # Errors
    /// [`Kind::Refused`](crate::Kind::Refused): the name is invalid, or taken.
    pub fn begin(&self, name: Option<&str>) -> Result<SessionId, Error> {
        self.recover_first()?;
        let session = self.store.begin(&self.fs, Origin::Staged, name, None)?;
        self.clear_away();
        Ok(session.id().clone().into())
    }

    /// Stages changes in a session that [`Store::begin`] began and that was never committed: all of them, or none. Later changes see what
    /// earlier ones have staged. The tree is only read.
    ///
    /// # Errors
    /// [`Kind::Refused`](crate::Kind::Refused): the session is of another kind; a path's directory is missing; a directory is in the way; the path
    /// is the store's. `Busy`: another holds the session's lock. `LeftOut`: staged, but a power cut may undo it.
    pub fn stage<'a>(&self, id: &SessionId, edits: impl IntoIterator<Item = Edit<'a>>) -> Result<(), Error> {
        let mut session = self.locked(id)?;
        let mut desk = Staging::open(&self.fs, &self.store, &mut session, false)?;
        match edits.into_iter().try_for_each(|edit| edit.stage(&mut desk)) {
            // Leftovers of replaced content go with the next staging.
            Ok(()) => Ok(desk.finish().map(drop)?),
            Err(error) => {
                desk.give_up();
                Err(error)
            }
        }
    }

    /// Puts a session aside: `recant undo ID` brings it back, until it is pruned. Its name is free then.
    ///
    /// # Errors
    /// [`Kind::Refused`](crate::Kind::Refused): changes of it are on the tree. `Busy`: another holds the session's lock. Others: it is discarded, but
    /// the log could not be written.
    pub fn discard(&self, id: &SessionId) -> Result<(), Error> {
        let mut session = self.locked(id)?;
        session.put_aside(&self.fs)?;
        let header = &session.header;
        let entry = log::Entry::new("discard", &header.id, header.generation, "done", header.counts.changes).of_act(header);
        log::append(&self.fs, &self.store, &entry)
    }

    /// Finds the session of `key`: an id, its last four characters, a name (the newest that is not discarded), or the start of an id.
    ///
    /// # Errors
    /// [`Kind::Refused`](crate::Kind::Refused): there is none, or there are several; the text has their ids.
    pub fn find(&self, key: &str) -> Result<SessionId, Error> {
        Ok(self.store.find(key, |header| header.discarded.is_none())?.into())
    }

    /// All sessions, the oldest first, then an error for each unreadable one.
    ///
    /// # Errors
    /// The list itself cannot be read.
    pub fn sessions(&self) -> Result<Vec<Result<Session, Error>>, Error> {
        let (headers, broken) = self.store.headers()?;
        let damaged = |broken: store::Broken| {
            let path = format!("{}/sessions/{}", self.store.path, broken.name);
            Err(crate::session::damaged(path, broken.why))
        };
        Ok(headers.iter().map(Session::of).map(Ok).chain(broken.into_iter().map(damaged)).collect())
    }

    /// The changes of a session in path order, committed or not.
    ///
    /// # Errors
    /// [`Kind::Refused`](crate::Kind::Refused): there is no such session. `Damaged`: it cannot be read. `Busy`: another was at work in it meanwhile.
    pub fn changes(&self, id: &SessionId) -> Result<Vec<Change>, Error> {
        self.read(id, |session| {
            let list = session.changes()?.list;
            Ok(list.iter().map(|change| Change { path: path_of(&change.path), kind: ChangeKind::of(change.sort()) }).collect())
        })
    }

    /// Writes a session's changes as a patch that `git apply` takes at `/`. Lines that begin with `#` say what a patch cannot (directories,
    /// owners, conflicts). Content of more than 8 MiB is left out; such a line says so.
    ///
    /// # Errors
    /// Those of [`Store::changes`]; `Refused` also for a discarded session, and if `to` fails. What was written by then stays.
    pub fn patch(&self, id: &SessionId, to: &mut dyn Write) -> Result<(), Error> {
        self.read(id, |session| {
            if session.header.freed {
                return Err(Error::refused(format!("session {id} is discarded: what it held is gone")));
            }
            let changes = session.changes()?.list;
            let sides = session.sides(changes.len())?;
            let mut sources = Sources::of(session)?;
            let mut renames = Renames::of(&changes);
            for (i, (change, side)) in changes.iter().zip(&sides).enumerate() {
                renames.learn(&changes, i, &mut |i, end| sources.open(&changes[i], sides[i], end))?;
                let mut view = View::of(change, *side, &mut sources, true)?;
                view.remarks.extend(renames.from(&changes, i).map(|from| format!("renamed from {from}")));
                view.remarks.extend(renames.to(&changes, i).map(|to| format!("renamed to {to}")));
                let mut written = Ok(());
                patch::write(&view, Form::default(), &mut |line| {
                    if written.is_ok() {
                        written = line.iter().try_for_each(|span| to.write_all(&span.text)).and_then(|()| to.write_all(b"\n"));
                    }
                });
                written.at("write", "the patch")?;
            }
            Ok(())
        })
    }

    /// Reads a session. Refused if somebody worked in it meanwhile.
    fn read<T>(&self, id: &SessionId, look: impl FnOnce(&open_session::Session) -> Result<T, Error>) -> Result<T, Error> {
        let mut session = self.store.session(id.inner())?;
        if session.header.uncollected {
            drop(self.locked(id)?);
            session = self.store.session(id.inner())?;
        }
        let found = look(&session);
        if self.store.is_at_work(&session) {
            return Err(crate::session::busy(format!("session {id}")));
        }
        if found.is_err() {
            // What an interrupted operation left half done is no damage.
            crate::engine::refuse_interrupted(&self.store, id.inner())?;
        }
        found
    }

    /// Removes leftovers in the store. What cannot be removed now goes the next time.
    pub(super) fn clear_away(&self) {
        drop(self.store.sweep_removed(&self.fs));
    }
}

/// Converts a time to that of the standard library.
pub(super) fn moment(time: Time) -> SystemTime {
    let (s, ns) = (time.s, time.ns);
    let whole = std::time::Duration::from_secs(s.unsigned_abs());
    let second = if s < 0 { SystemTime::UNIX_EPOCH - whole } else { SystemTime::UNIX_EPOCH + whole };
    second + std::time::Duration::from_nanos(ns.into())
}
