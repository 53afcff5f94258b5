//! Commands on the real tree (`run --in`) that are under way: `running/<id>` of the store has what makes the session of what they change.
//!
//! A record is durable before its command is started. Its lock is held by recant, and its file, which is half of that, by the command's init,
//! too: once both are gone, nothing of the command runs any more. The session gets the id of the record, so that a run becomes one session at most, whoever makes it.
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

use super::error::{bad_key, busy, damaged};
use super::id::{self, Id};
use super::opened::read_small;
use super::run::Arg;
use super::store::{HALF_MADE, RUNNING, Store};
use crate::error::{At, Error, Kind};
use crate::fs::dir::{Dir, Time};
use crate::fs::lock::Lock;
use crate::fs::path::AbsPath;
use crate::fs::{Fs, mounts};
use crate::tree::json;
use crate::tree::time;

const LOCK: &[u8] = b"lock";
const RECORD: &[u8] = b"run.json";
/// Paths of files with names elsewhere may be many.
const MOST: u64 = 1 << 30;
/// So long an init is waited for that ends what a killed recant has started, or another recant that makes the session.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the session is made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The version of this file's form.
    pub schema: u32,
    /// The session to be.
    pub session: Id,
    /// The name that it is to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The command and its arguments.
    pub argv: Vec<Arg>,
    /// The directory in which it was begun; missing where that was gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<AbsPath>,
    /// What it may write to, in path order.
    pub folders: Vec<Folder>,
    /// Directories that were made for it, in that order, and go again where they are empty still.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<Arg>,
}

/// A run that is about to begin.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// The name that its session is to have.
    pub name: Option<&'a str>,
    /// [`Record::argv`].
    pub argv: Vec<Arg>,
    /// [`Record::folders`].
    pub folders: Vec<Folder>,
    /// [`Record::made`].
    pub made: Vec<Arg>,
}

/// A directory whose changes come into the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Folder {
    /// Which.
    pub folder: AbsPath,
    /// The snapshot that was taken of it before.
    pub before: u64,
    /// When that was: another one may get its number, once all are dropped.
    #[serde(with = "time")]
    pub taken: Time,
    /// Where its file system was mounted.
    pub mount: AbsPath,
    /// The first name of each file in it that has others elsewhere.
    #[serde(default, skip_serializing_if = "HashSet::is_empty")]
    pub elsewhere: HashSet<AbsPath>,
}

/// A run whose record nobody else uses as long as this is held.
#[derive(Debug)]
pub struct Held {
    /// The session to be.
    pub id: Id,
    dir: Dir,
    _lock: Lock,
}

/// How a run stands whose record is there.
#[derive(Debug)]
pub enum Standing {
    /// It is under way.
    Alive,
    /// It has ended, and its record is gone.
    Over,
    /// It was cut off.
    CutOff(Held),
}

impl Record {
    /// The command's words.
    pub fn words(&self) -> Vec<OsString> {
        self.argv.iter().map(|Arg(word)| OsString::from_vec(word.clone())).collect()
    }
}

impl Folder {
    /// Of a snapshot that was just taken.
    ///
    /// # Errors
    /// It cannot be told what is mounted.
    pub fn new(folder: &AbsPath, before: u64, taken: Time, elsewhere: &HashSet<AbsPath>) -> Result<Self, Error> {
        let mounts = mounts::read().at("read", "/proc/self/mountinfo")?;
        let mount = mounts::containing(&mounts, folder).map_or(folder, |mount| &mount.point).clone();
        Ok(Self { folder: folder.clone(), before, taken, mount, elsewhere: elsewhere.clone() })
    }

    /// Whether its file system is mounted: without it all that is in it would count as removed.
    ///
    /// # Errors
    /// It cannot be told what is mounted.
    pub fn is_mounted(&self) -> Result<bool, Error> {
        let mounts = mounts::read().at("read", "/proc/self/mountinfo")?;
        Ok(mounts.iter().any(|mount| mount.point == self.mount))
    }
}

/// Begins a run. Held from before anybody sees it.
///
/// # Errors
/// Those of a name that cannot be had; a failed system call.
pub fn begin(fs: &Fs, store: &Store, wanted: Wanted<'_>) -> Result<Held, Error> {
    let Wanted { name, argv, folders, made } = wanted;
    if let Some(name) = name {
        id::check_name(name).map_err(|why| bad_key(name, why))?;
    }
    let _numbering = store.numbering(fs)?;
    let headers = store.sweep_begun(fs)?;
    if let Some(name) = name {
        store.name_is_free(&headers, name, store.begins_in.as_ref())?;
    }
    let id = store.draw_id(&headers, name)?;
    let all = made_folder(fs, store)?;
    // As a session's: what a kill leaves of it is swept with those.
    let temp = [HALF_MADE, id.as_str().as_bytes()].concat();
    let temp = store.sessions().at(&temp);
    fs.mkdir(temp, 0o700).at("make the folder", temp)?;
    let dir = temp.open_dir().at("open the folder", temp)?;
    let lock = Lock::try_take(fs, dir.at(LOCK)).at("lock", dir.at(LOCK))?;
    let lock = lock.ok_or_else(|| busy(format!("the run of session {id}")))?;
    let (name, cwd) = (name.map(Into::into), store.begins_in.clone());
    let record = Record { schema: 1, session: id.clone(), name, argv, cwd, folders, made };
    // D1, D2: content before name.
    fs.replace(dir.at(RECORD), &json::line(&record)).at("write", dir.at(RECORD))?;
    let at = all.at(id.as_str().as_bytes());
    fs.place(temp, at).at("name the run", at)?;
    // D2, D3: a command that is started without it would change what nothing tells of after a power cut.
    fs.sync_dir(&all).at("sync", all.path().display())?;
    let dir = at.open_dir().at("open the folder", at)?;
    Ok(Held { id, dir, _lock: lock })
}

fn made_folder(fs: &Fs, store: &Store) -> Result<Dir, Error> {
    let at = store.dir.at(RUNNING);
    match fs.mkdir(at, 0o700) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        made => {
            made.at("make the folder", at)?;
            fs.sync_dir(&store.dir).at("sync", store.path.as_path().display())?; // D3
        }
    }
    Ok(at.open_dir().at("open the folder", at)?)
}

fn dir_of(store: &Store, id: &Id) -> Result<Option<Dir>, Error> {
    let path = [RUNNING, b"/", id.as_str().as_bytes()].concat();
    match store.dir.open_below(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        dir => Ok(Some(dir.at("open the folder", format_args!("{}/running/{id}", store.path))?)),
    }
}

/// Whether a run was cut off; makes and changes nothing. One whose init still ends what it has started counts as cut off, and so does one
/// whose session another recant is making.
///
/// # Errors
/// A system call failed.
pub fn is_cut_off(store: &Store, id: &Id) -> Result<bool, Error> {
    let Some(dir) = dir_of(store, id)? else { return Ok(false) };
    let at = dir.at(LOCK);
    Ok(!Lock::is_held(at).at("look at", at)? || Lock::is_left(at).at("look at", at)?)
}

/// The runs that were cut off, the oldest first.
///
/// # Errors
/// A system call failed.
pub fn cut_off(store: &Store) -> Result<Vec<Id>, Error> {
    let mut ids = store.running()?;
    let mut failed = Ok(());
    ids.retain(|id| is_cut_off(store, id).map_err(|error| failed = Err(error)).is_ok_and(|cut_off| cut_off));
    failed.map(|()| ids)
}

/// Takes over a run that was cut off, once its init has ended what it has started, and others have let it go; `slow` is called where that lasts.
///
/// # Errors
/// It lasts longer than 10 s; a system call failed.
pub fn take(fs: &Fs, store: &Store, id: &Id, slow: impl FnOnce()) -> Result<Standing, Error> {
    let Some(dir) = dir_of(store, id)? else { return Ok(Standing::Over) };
    if !is_cut_off(store, id)? {
        return Ok(Standing::Alive);
    }
    let at = dir.at(LOCK);
    // The file alone, as an init has it: who comes meanwhile waits, and does not take an older session for what was done last.
    let lock = Lock::wait(PATIENCE, slow, || Lock::try_take_file(fs, at)).at("lock", at)?;
    let lock = lock.ok_or_else(|| busy(format!("what was begun in the run of session {id}")))?;
    // Whoever had it before may have come to its end.
    match dir_of(store, id)? {
        Some(now) if now.stat().at("look at", at)?.inode() == dir.stat().at("look at", at)?.inode() => {
            Ok(Standing::CutOff(Held { id: id.clone(), dir, _lock: lock }))
        }
        _ => Ok(Standing::Over),
    }
}

/// What is known of a run, whoever holds it. `None` where it has ended.
///
/// # Errors
/// The record cannot be believed; a system call failed.
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
    if record.session == *id { Ok(record) } else { Err(damaged(format!("it is that of session {}", record.session))) }
}

/// The snapshots of a directory that runs need which are under way or were cut off. A record that cannot be read needs none that anybody knows.
///
/// # Errors
/// A system call failed.
pub fn needed(store: &Store, folder: &AbsPath) -> Result<Vec<u64>, Error> {
    let mut numbers = Vec::new();
    for id in store.running()? {
        let record = match read(store, &id) {
            Err(error) if error.kind() == Kind::Damaged => continue,
            record => record?,
        };
        let of_it = record.iter().flat_map(|record| &record.folders).filter(|of| of.folder == *folder);
        numbers.extend(of_it.map(|of| of.before));
    }
    Ok(numbers)
}

impl Held {
    /// What the session is made from.
    ///
    /// # Errors
    /// It cannot be believed.
    pub fn record(&self) -> Result<Record, Error> {
        read_in(&self.dir, &self.id)
    }

    /// Whether its session was sealed already.
    ///
    /// # Errors
    /// Those of a session that cannot be read.
    pub fn is_sealed(&self, store: &Store) -> Result<bool, Error> {
        match store.session(&self.id) {
            Err(error) if error.is_unknown() => Ok(false),
            session => Ok(!session?.header.is_unsealed()),
        }
    }

    /// Gives this user its rights to the record back, as [`Store::regain`] does for the rest of the store.
    ///
    /// # Errors
    /// A system call failed.
    pub fn regain(&self, fs: &Fs) -> Result<bool, Error> {
        Ok(fs.regain(&self.dir, usize::MAX).at("set the modes of", self.dir.path().display())?)
    }

    /// Takes the record away, durably: one that came back after a power cut would make a session of what others change. What it leaves is for
    /// [`Store::sweep_removed`].
    ///
    /// # Errors
    /// A system call failed.
    pub fn end(self, fs: &Fs, store: &Store) -> Result<(), Error> {
        let all = store.dir.open_below(RUNNING).at("open", store.dir.at(RUNNING))?;
        store.remove_folder(fs, all.at(self.id.as_str().as_bytes()))
    }
}
