//! `checkpoint list`, `show` and `verify`: the originals that commits took off the tree.

use std::borrow::Cow;
use std::cell::RefCell;
use std::time::{Duration, Instant};

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::desk::Desk;
use super::error::at_work;
use super::resolve::standing::is_held;
use crate::checkpoint::verify::verify as check;
use crate::checkpoint::{Fault, Kept, Reading, Verdict};
use crate::engine::refuse_interrupted;
use crate::error::{Error, Kind};
use crate::fs::{AbsPath, Time};
use crate::session::{Broken, Change, Checkpoint, Header, Id, Session, Sort, Status, Store, changes_file};
use crate::tree::{Each, Object, printed, time};

/// The checkpoints, the newest first. JSON: docs/json.md.
#[derive(Debug, Default, Serialize)]
pub struct Listed {
    pub checkpoints: Vec<Row>,
    /// The sessions that cannot be read.
    pub damaged: Vec<Broken>,
}

/// A checkpoint of a listing.
#[derive(Debug, Serialize)]
pub struct Row {
    pub id: Id,
    pub name: Option<String>,
    pub status: Status,
    pub checkpoint: Checkpoint,
    /// The number of paths that are on the tree.
    pub paths: u64,
    pub bytes: u64,
    #[serde(with = "time")]
    pub changed: Time,
}

impl Row {
    fn of(header: Header) -> Self {
        let (status, Header { id, name, checkpoint, counts, sizes, changed, .. }) = (header.status(), header);
        Self { id, name, status, checkpoint, paths: counts.inside, bytes: sizes.checkpoint, changed }
    }
}

/// Lists the checkpoints. Reads headers only.
///
/// # Errors
/// The store cannot be read.
pub fn list(desk: &Desk) -> Result<Listed, Error> {
    let (headers, damaged) = desk.store()?.map_or(Ok(Default::default()), Store::headers)?;
    let checkpoints = headers.into_iter().rev().filter(|header| header.counts.ever_in > 0).map(Row::of).collect();
    Ok(Listed { checkpoints, damaged })
}

/// The checkpoint of a session. Its originals are a stream: each is read when it is asked for. JSON: docs/json.md.
pub struct Shown<'s> {
    pub header: &'s Header,
    originals: RefCell<Originals>,
    failed: RefCell<Option<Error>>,
}

/// An original, with the change of its path.
#[derive(Debug, Serialize)]
pub struct Original {
    pub path: AbsPath,
    pub change: Option<Sort>,
    /// The object that was there; `None` for nothing.
    #[serde(serialize_with = "printed")]
    pub before: Object,
    /// The reason why it is not kept, if so.
    pub uncovered: Option<Cow<'static, str>>,
}

struct Originals {
    manifest: Reading,
    changes: changes_file::Reading,
    change: Option<Change>,
}

impl Originals {
    fn next(&mut self) -> Result<Option<Original>, Error> {
        let Some(original) = self.manifest.next()? else { return Ok(None) };
        while self.change.as_ref().is_some_and(|change| change.path < original.path) {
            self.change = self.changes.next()?;
        }
        let change = self.change.as_ref().filter(|change| change.path == original.path).map(Change::sort);
        let uncovered = match original.kept {
            Kept::Uncovered { why } => Some(why),
            _ => None,
        };
        Ok(Some(Original { path: original.path, change, before: original.state, uncovered }))
    }
}

impl Shown<'_> {
    /// Passes the originals to `show`, in path order.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn for_each(&self, show: &mut dyn FnMut(Original)) -> Result<(), Error> {
        while let Some(original) = self.originals.borrow_mut().next()? {
            show(original);
        }
        Ok(())
    }

    /// The next original; none after a failure, which is kept.
    fn next(&self) -> Option<Original> {
        self.originals.borrow_mut().next().unwrap_or_else(|problem| {
            self.failed.replace(Some(problem));
            None
        })
    }
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Header { id, checkpoint, sizes, .. } = self.header;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("session", id)?;
        map.serialize_entry("status", self.header.status().word())?;
        map.serialize_entry("checkpoint", checkpoint)?;
        map.serialize_entry("bytes", &sizes.checkpoint)?;
        map.serialize_entry("originals", &Each(|| std::iter::from_fn(|| self.next())))?;
        map.end()
    }
}

/// Opens the checkpoint of the session that `key` means, else of `last`, and passes it to `show`.
///
/// # Errors
/// No session is meant; the originals cannot be read; an error of `show`.
pub fn show(desk: &Desk, key: Option<&str>, show: &mut dyn FnMut(&Shown<'_>) -> Result<(), Error>) -> Result<(), Error> {
    let (store, session) = desk.session(key)?;
    desk.believed(store, &session, show_of(&session, show))
}

fn show_of(session: &Session, show: &mut dyn FnMut(&Shown<'_>) -> Result<(), Error>) -> Result<(), Error> {
    let mut changes = session.read_changes()?;
    let originals = Originals { manifest: Reading::of(session)?, change: changes.next()?, changes };
    let shown = Shown { header: &session.header, originals: RefCell::new(originals), failed: RefCell::default() };
    show(&shown)?;
    shown.failed.into_inner().map_or(Ok(()), Err)
}

/// The findings about checkpoints. JSON: docs/json.md.
#[derive(Debug, Default, Serialize)]
pub struct Verified {
    pub checkpoints: Vec<Findings>,
    /// The sessions that cannot be read.
    #[serde(skip)]
    pub damaged: Vec<Broken>,
    /// The sessions whose checkpoint could not be read, each with the reason.
    #[serde(skip)]
    pub unread: Vec<(Id, Error)>,
}

/// The findings about one checkpoint.
#[derive(Debug, Serialize)]
pub struct Findings {
    pub session: Id,
    #[serde(flatten)]
    pub verdict: Verdict,
}

impl Verified {
    /// The originals that are not as they were taken.
    pub fn faults(&self) -> impl Iterator<Item = &Fault> {
        self.checkpoints.iter().flat_map(|findings| &findings.verdict.faults)
    }

    /// The worst that was found; `None` if all is whole.
    pub fn worst(&self) -> Option<Kind> {
        let is_halted = |kind: &Kind| matches!(kind, Kind::Stuck | Kind::Busy);
        let unread = || self.unread.iter().map(|(_, why)| why.kind());
        let is_damaged = !self.damaged.is_empty() || unread().any(|kind| !is_halted(&kind));
        if is_damaged || self.faults().any(|fault| !fault.written_to) {
            return Some(Kind::Damaged);
        }
        unread().max().or_else(|| self.faults().next().map(|_| Kind::Conflict))
    }
}

/// Reads every original of the checkpoint that `key` means, or of all.
///
/// # Errors
/// No session is meant, or its checkpoint cannot be read; the store cannot be read.
pub fn verify(desk: &Desk, key: Option<&str>) -> Result<Verified, Error> {
    let mut done = Verified::default();
    let progress = desk.caller.progress();
    let seen = |done, of| progress.at("verifying", done, of);
    if key.is_some() {
        let (store, session) = desk.session(key)?;
        let session = session.id().clone();
        done.checkpoints.push(Findings { verdict: verdict(store, &session, &seen)?, session });
        return Ok(done);
    }
    let Some(store) = desk.store()? else { return Ok(done) };
    let (headers, damaged) = store.headers()?;
    done.damaged = damaged;
    let is_kept = |header: &Header| header.counts.inside > 0 && header.checkpoint == Checkpoint::Kept;
    for Header { id: session, .. } in headers.into_iter().filter(is_kept) {
        match verdict(store, &session, &seen) {
            Ok(verdict) => done.checkpoints.push(Findings { session, verdict }),
            Err(why) => done.unread.push((session, why)),
        }
    }
    Ok(done)
}

/// Verifies one session. Faults count only if nobody worked in it meanwhile; else it waits until that ends, as long as for a lock, and
/// verifies again. What an interrupted operation left half done is no damage.
fn verdict(store: &Store, id: &Id, seen: &dyn Fn(usize, usize)) -> Result<Verdict, Error> {
    let start = Instant::now();
    loop {
        let session = store.session(id)?;
        let found = check(&session, seen);
        if found.as_ref().is_ok_and(|verdict| verdict.faults.is_empty()) {
            return found;
        }
        if !store.is_at_work(&session) {
            refuse_interrupted(store, id)?;
            return found;
        }
        while is_held(&session) {
            if start.elapsed() > Duration::from_secs(10) {
                return Err(at_work(id));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
