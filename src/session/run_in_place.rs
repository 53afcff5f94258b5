//! Commands on the real tree (`run --in`) that are under way: `running/<id>` of the store has what makes a session of their changes.
//!
//! A record is durable before its command starts. Recant holds its lock, and the command's init its file, half of that: once both are
//! gone, nothing of the command runs. The session gets the record's id, so that a run makes at most one session.
//!
//! ```text
//! begin ----> under way ----> session <id> sealed ----> end
//!                |                  ^
//!                | recant killed    | whoever recovers
//!                v                  |
//!             cut off --------------+     or nothing changed, or given up: end
//! ```

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::acting_agent::ActingAgent;
use super::error::{bad_key, busy, damaged};
use super::id;
use super::id::Id;
use super::open_session::read_small;
use super::remove_session::HALF_MADE;
use super::run_record::Arg;
use super::store::{RUNNING, Store};
use crate::error::{At, Error, Kind};
use crate::fs::{AbsPath, Dir, Fs, Lock, Time, mounts};
use crate::tree::{json, time};

const LOCK: &[u8] = b"lock";
const RECORD: &[u8] = b"run.json";
/// The most bytes of a record: it may have many paths of files with names elsewhere.
const MOST: u64 = 1 << 30;
/// The longest wait for an init that ends what a killed recant has started, or for another recant that makes the session.
const PATIENCE: Duration = Duration::from_secs(10);

/// The facts that the session is made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub schema: u32,
    pub session: Id,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub argv: Vec<Arg>,
    /// The directory in which it was begun; missing if that was gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<AbsPath>,
    /// The agent that had it run; missing for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ActingAgent>,
    /// The directories that it may write to, in path order.
    #[serde(rename = "folders")]
    pub directories: Vec<Directory>,
    /// Directories that were made for it, in that order; they go again if they are still empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<Arg>,
}

/// A run that is about to begin.
#[derive(Debug)]
pub struct Wanted<'a> {
    pub name: Option<&'a str>,
    pub argv: Vec<Arg>,
    pub directories: Vec<Directory>,
    pub made: Vec<Arg>,
}

/// A directory whose changes go into the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directory {
    #[serde(rename = "folder")]
    pub directory: AbsPath,
    /// The snapshot that was taken of it before.
    pub before: u64,
    /// The time of that: another snapshot may get its number, once all are dropped.
    #[serde(with = "time")]
    pub taken: Time,
    /// The mount point of its file system.
    pub mount: AbsPath,
    /// The first name of each file in it that has other names elsewhere.
    #[serde(default, skip_serializing_if = "HashSet::is_empty")]
    pub elsewhere: HashSet<AbsPath>,
}

/// A run whose record nobody else uses while this is held.
#[derive(Debug)]
pub struct Held {
    pub id: Id,
    dir: Dir,
    _lock: Lock,
}

#[derive(Debug)]
pub enum Standing {
    Alive,
    /// It has ended, and its record is gone.
    Over,
    CutOff(Held),
}

impl Record {
    pub fn words(&self) -> Vec<OsString> {
        self.argv.iter().map(|Arg(word)| OsString::from_vec(word.clone())).collect()
    }
}

impl Directory {
    /// Makes one from a snapshot that was just taken.
    ///
    /// # Errors
    /// The mounts cannot be read.
    pub fn new(directory: &AbsPath, before: u64, taken: Time, elsewhere: &HashSet<AbsPath>) -> Result<Self, Error> {
        let mounts = mounts::read()?;
        let mount = mounts::containing(&mounts, directory).map_or(directory, |mount| &mount.point).clone();
        Ok(Self { directory: directory.clone(), before, taken, mount, elsewhere: elsewhere.clone() })
    }

    /// True if its file system is mounted: without it all that is in it would count as removed.
    ///
    /// # Errors
    /// The mounts cannot be read.
    pub fn is_mounted(&self) -> Result<bool, Error> {
        let mounts = mounts::read()?;
        Ok(mounts.iter().any(|mount| mount.point == self.mount))
    }
}

/// Begins a run. It is locked before anybody sees it.
///
/// # Errors
/// Those of a name that is not available; a failed system call.
pub fn begin_run(fs: &Fs, store: &Store, wanted: Wanted<'_>) -> Result<Held, Error> {
    let Wanted { name, argv, directories, made } = wanted;
    if let Some(name) = name {
        id::check_name(name).map_err(|why| bad_key(name, why))?;
    }
    let _numbering = store.numbering(fs)?;
    let headers = store.sweep_begun(fs)?;
    if let Some(name) = name {
        store.name_is_free(&headers, name, store.begins_in.as_ref())?;
    }
    let id = store.draw_id(&headers, name)?;
    let all = made_directory(fs, store)?;
    // Named like a session's: what a kill leaves of it is swept with those.
    let temp = [HALF_MADE, id.as_str().as_bytes()].concat();
    let temp = store.sessions().at(&temp);
    fs.mkdir(temp, 0o700)?;
    let dir = temp.open_dir()?;
    let lock = Lock::try_take(fs, dir.at(LOCK))?;
    let lock = lock.ok_or_else(|| busy(format!("the run of session {id}")))?;
    let (name, cwd, by) = (name.map(Into::into), store.begins_in.clone(), store.by.clone());
    let record = Record { schema: 1, session: id.clone(), name, argv, cwd, by, directories, made };
    // D1, D2: content before name.
    fs.replace(dir.at(RECORD), &json::line(&record))?;
    let at = all.at(id.as_str().as_bytes());
    fs.place(temp, at).at("name the run", at)?;
    // D2, D3: without it a power cut could leave changes of a started command that nothing tells of.
    fs.sync_dir(&all)?;
    let dir = at.open_dir()?;
    Ok(Held { id, dir, _lock: lock })
}

fn made_directory(fs: &Fs, store: &Store) -> Result<Dir, Error> {
    let at = store.dir.at(RUNNING);
    match fs.mkdir(at, 0o700) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        made => {
            made?;
            fs.sync_dir(&store.dir)?; // D3
        }
    }
    Ok(at.open_dir()?)
}

fn dir_of(store: &Store, id: &Id) -> Result<Option<Dir>, Error> {
    let path = [RUNNING, b"/", id.as_str().as_bytes()].concat();
    match store.dir.open_below(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        dir => Ok(Some(dir?)),
    }
}

/// True if a run was interrupted; changes nothing. A run counts as interrupted while its init still ends what it has started, and while
/// another recant makes its session.
///
/// # Errors
/// A system call failed.
pub fn is_cut_off(store: &Store, id: &Id) -> Result<bool, Error> {
    let Some(dir) = dir_of(store, id)? else { return Ok(false) };
    let at = dir.at(LOCK);
    Ok(!Lock::is_held(at)? || Lock::is_left(at)?)
}

/// Lists the runs that were interrupted, the oldest first.
///
/// # Errors
/// A system call failed.
pub fn cut_off(store: &Store) -> Result<Vec<Id>, Error> {
    let mut ids = store.running()?;
    let mut failed = Ok(());
    ids.retain(|id| is_cut_off(store, id).map_err(|error| failed = Err(error)).is_ok_and(|cut_off| cut_off));
    failed.map(|()| ids)
}

/// Takes over an interrupted run once its init has ended what it started, and others have let it go; calls `slow` if that takes long.
///
/// # Errors
/// It takes longer than 10 s; a system call failed.
pub fn take_lock(fs: &Fs, store: &Store, id: &Id, slow: impl FnOnce()) -> Result<Standing, Error> {
    let Some(dir) = dir_of(store, id)? else { return Ok(Standing::Over) };
    if !is_cut_off(store, id)? {
        return Ok(Standing::Alive);
    }
    let at = dir.at(LOCK);
    // Only the file, as an init has it: others wait meanwhile, and do not take an older session for the last one.
    let lock = Lock::wait(at, PATIENCE, slow, |at| Lock::try_take_file(fs, at))?;
    let lock = lock.ok_or_else(|| busy(format!("what was begun in the run of session {id}")))?;
    // Its former holder may have finished it.
    match dir_of(store, id)? {
        Some(now) if now.stat()?.inode() == dir.stat()?.inode() => {
            Ok(Standing::CutOff(Held { id: id.clone(), dir, _lock: lock }))
        }
        _ => Ok(Standing::Over),
    }
}

/// Reads the record of a run, whoever holds it. `None` if it has ended.
///
/// # Errors
/// The record cannot be trusted; a system call failed.
pub fn read(store: &Store, id: &Id) -> Result<Option<Record>, Error> {
    let Some(dir) = dir_of(store, id)? else { return Ok(None) };
    match read_in(&dir, id) {
        // It has ended since.
        Err(_) if dir_of(store, id)?.is_none() => Ok(None),
        record => record.map(Some),
    }
}

fn read_in(dir: &Dir, id: &Id) -> Result<Record, Error> {
    let at = dir.at(RECORD);
    let damaged = |why: String| damaged(at, why);
    let bytes = read_small(at, MOST)?.ok_or_else(|| damaged("it is missing".into()))?;
    let record: Record = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    if record.schema != 1 {
        return Err(damaged(format!("its schema is {}", record.schema)));
    }
    if record.session == *id { Ok(record) } else { Err(damaged(format!("it belongs to session {}", record.session))) }
}

/// Lists the snapshots of a directory that runs under way or interrupted need. An unreadable record needs none that is known.
///
/// # Errors
/// A system call failed.
pub fn needed(store: &Store, directory: &AbsPath) -> Result<Vec<u64>, Error> {
    let mut numbers = Vec::new();
    for id in store.running()? {
        let record = match read(store, &id) {
            Err(error) if error.kind() == Kind::Damaged => continue,
            record => record?,
        };
        let of_it = record.iter().flat_map(|record| &record.directories).filter(|of| of.directory == *directory);
        numbers.extend(of_it.map(|of| of.before));
    }
    Ok(numbers)
}

impl Held {
    /// Reads the facts that the session is made from.
    ///
    /// # Errors
    /// The record cannot be trusted.
    pub fn record(&self) -> Result<Record, Error> {
        read_in(&self.dir, &self.id)
    }

    /// True if its session was already sealed.
    ///
    /// # Errors
    /// Those of a session that cannot be read.
    pub fn is_sealed(&self, store: &Store) -> Result<bool, Error> {
        match store.session(&self.id) {
            Err(error) if error.is_unknown() => Ok(false),
            session => Ok(!session?.header.is_unsealed()),
        }
    }

    /// Restores this user's rights to the record, as [`Store::regain`] does for the rest of the store.
    ///
    /// # Errors
    /// A system call failed.
    pub fn regain(&self, fs: &Fs) -> Result<bool, Error> {
        Ok(fs.regain(&self.dir, usize::MAX)?)
    }

    /// Removes the record, durably: one that came back after a power cut would make a session of what others change.
    /// [`Store::sweep_removed`] removes the rest.
    ///
    /// # Errors
    /// A system call failed.
    pub fn end(self, fs: &Fs, store: &Store) -> Result<(), Error> {
        let all = store.dir.open_below(RUNNING)?;
        store.remove_directory(fs, all.at(self.id.as_str().as_bytes()))
    }
}
