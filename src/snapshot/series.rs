//! A series: the snapshots of one directory, and its lock.

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::{busy, damaged, none, refused, unknown};
use super::manifest::{self, Head, Reading, Tail};
use crate::error::{Error, Kind};
use crate::fs::{AbsPath, Dir, Fs, Lock};
use crate::session::{Store, read_small};
use crate::tree::{Hash, json};

/// The snapshots of a directory.
pub struct Series {
    pub dir: Dir,
    /// The directory that they are of, by its real path.
    pub directory: AbsPath,
}

/// The lock of a series, held by whoever creates, prunes or restores (N8).
pub struct Locked {
    _lock: Lock,
}

/// The content of `folder.json`.
#[derive(Serialize, Deserialize)]
struct Directory {
    schema: u32,
    #[serde(rename = "folder")]
    directory: AbsPath,
}

/// A snapshot as a listing shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    pub head: Head,
    pub tail: Tail,
}

/// A snapshot that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Broken {
    pub n: u64,
    pub why: String,
}

const SNAPSHOTS: &[u8] = b"snapshots";
const DIRECTORY: &[u8] = b"folder.json";

/// The name of a directory's series: half of the SHA-256 of its path.
pub fn key(directory: &AbsPath) -> String {
    let mut text = Hash::of(directory.as_bytes()).to_string();
    text.truncate(32);
    text
}

impl Series {
    /// The series of `directory`; `None` if no snapshot of it was ever taken.
    pub fn open(store: &Store, directory: &AbsPath) -> Result<Option<Self>, Error> {
        let Some(series) = Self::unread(store, directory)? else { return Ok(None) };
        match directory_of(&series.dir)? {
            None => Ok(None),
            Some(found) if found == *directory => Ok(Some(series)),
            Some(found) => {
                Err(damaged(series.dir.at(DIRECTORY), format!("it says that the snapshots are of {found}, not of {directory}")))
            }
        }
    }

    /// The series directory for `directory`, whatever it says of itself: to be removed.
    pub fn unread(store: &Store, directory: &AbsPath) -> Result<Option<Self>, Error> {
        let path = [SNAPSHOTS, b"/", key(directory).as_bytes()].concat();
        match store.dir.open_below(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            dir => Ok(Some(Self { dir: dir?, directory: directory.clone() })),
        }
    }

    /// Removes the series with all that is in it, durably: numbers begin at 0 again. [`Store::sweep_removed`] removes the rest, once the
    /// lock is released.
    pub fn remove(&self, fs: &Fs, store: &Store, _lock: &Locked) -> Result<(), Error> {
        let all = store.dir.open_below(SNAPSHOTS)?;
        store.remove_directory(fs, all.at(key(&self.directory).as_bytes()))
    }

    /// The series of `directory`, made if it is missing.
    pub fn create(fs: &Fs, store: &Store, directory: &AbsPath) -> Result<Self, Error> {
        if let Some(series) = Self::open(store, directory)? {
            return Ok(series);
        }
        let all = make(fs, &store.dir, SNAPSHOTS)?;
        let dir = make(fs, &all, key(directory).as_bytes())?;
        make(fs, &dir, super::content::BLOBS)?;
        let series = Self { dir, directory: directory.clone() };
        // Another recant may be making it now, or have made it.
        let lock = series.lock(fs)?;
        if let Some(made) = Self::open(store, directory)? {
            return Ok(made);
        }
        let at = series.dir.at(DIRECTORY);
        // A series counts once it names its directory; `make` does D2 and D3 for the directories above.
        fs.replace(at, &json::line(&Directory { schema: 1, directory: directory.clone() }))?;
        drop(lock);
        Ok(series)
    }

    /// All series of a store, by the paths of their directories; and the names of those that are unreadable.
    pub fn all(store: &Store) -> Result<(Vec<Self>, Vec<String>), Error> {
        let all = match store.dir.open_below(SNAPSHOTS) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((Vec::new(), Vec::new())),
            all => all?,
        };
        let (mut found, mut broken) = (Vec::new(), Vec::new());
        for name in all.names()? {
            let told = all.at(&name).open_dir().map(|dir| (directory_of(&dir), dir));
            match told {
                Ok((Ok(Some(directory)), dir)) if key(&directory).as_bytes() == name => found.push(Self { dir, directory }),
                // It is being made just now.
                Ok((Ok(None), _)) => {}
                // Removed since the names were read.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                _ => broken.push(String::from_utf8_lossy(&name).into_owned()),
            }
        }
        found.sort_by(|a, b| a.directory.cmp(&b.directory));
        broken.sort();
        Ok((found, broken))
    }

    /// Takes the lock, waiting for at most 10 s.
    pub fn lock(&self, fs: &Fs) -> Result<Locked, Error> {
        let at = self.dir.at(b"lock");
        let lock = Lock::wait(at, Duration::from_secs(10), || (), |at| Lock::try_take(fs, at))?;
        let lock = lock.ok_or_else(|| busy(&self.directory))?;
        // If it was removed during the wait, it belongs to nobody any more.
        let above = self.dir.above()?;
        let named = above.at(key(&self.directory).as_bytes()).stat()?;
        let own = self.dir.stat()?;
        match named {
            Some(named) if named.inode() == own.inode() => Ok(Locked { _lock: lock }),
            _ => Err(refused(&self.directory, "another recant has just removed all its snapshots").with_remedy("try again")),
        }
    }

    /// Restores this user's rights on all files of the series, as [`Store::regain`] does for the rest of the store.
    pub fn regain(&self, fs: &Fs) -> Result<bool, Error> {
        Ok(fs.regain(&self.dir, usize::MAX)?)
    }

    /// The numbers of all snapshots, the oldest first.
    pub fn numbers(&self) -> Result<Vec<u64>, Error> {
        self.with_ending(".jsonl")
    }

    /// The numbers of the bases that are no longer snapshots.
    pub fn bases(&self) -> Result<Vec<u64>, Error> {
        self.with_ending(".base")
    }

    /// The numbers whose files have this ending.
    pub fn with_ending(&self, ending: &str) -> Result<Vec<u64>, Error> {
        let names = self.dir.names()?;
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| number(name, ending)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The snapshots for a listing, the oldest first; an unreadable one hides no other.
    pub fn summaries(&self) -> Result<(Vec<Summary>, Vec<Broken>), Error> {
        let (mut found, mut broken) = (Vec::new(), Vec::new());
        for n in self.numbers()? {
            match self.summary(n) {
                Ok(summary) => found.push(summary),
                // Pruned since the names were read.
                Err(error) if error.kind() == Kind::Damaged && !self.is_there(n)? => {}
                Err(error) => broken.push(Broken { n, why: error.to_string() }),
            }
        }
        Ok((found, broken))
    }

    /// The snapshots for a listing, each read to its end: one with only its ends readable is in both lists.
    pub fn looked_over(&self) -> Result<(Vec<Summary>, Vec<Broken>), Error> {
        let (found, mut broken) = self.summaries()?;
        let mut looking = Looking::of(self);
        for n in found.iter().map(|summary| summary.head.n) {
            if let Err(error) = looking.at(n)
                && self.is_there(n)?
            {
                broken.push(Broken { n, why: error.to_string() });
            }
        }
        broken.sort_by_key(|broken| broken.n);
        Ok((found, broken))
    }

    /// The newest snapshot that can be read whole, with its base; and the newer ones that cannot.
    pub fn newest_whole(&self) -> Result<(Option<Summary>, Vec<Broken>), Error> {
        let (mut looking, mut broken) = (Looking::of(self), Vec::new());
        for n in self.numbers()?.into_iter().rev() {
            match looking.at(n) {
                Ok(summary) => return Ok((Some(summary), broken)),
                Err(error) => broken.push(Broken { n, why: error.to_string() }),
            }
        }
        Ok((None, broken))
    }

    /// The head and tail of one snapshot.
    pub fn summary(&self, n: u64) -> Result<Summary, Error> {
        let name = manifest::name(n);
        let at = self.dir.at(&name);
        let (head, tail) = manifest::ends(at)?;
        if head.n != n || head.directory != self.directory {
            return Err(damaged(at, "it belongs to another snapshot"));
        }
        Ok(Summary { head, tail })
    }

    /// Tells whether snapshot `n` has its name.
    pub fn is_there(&self, n: u64) -> Result<bool, Error> {
        let name = manifest::name(n);
        Ok(self.dir.at(&name).stat()?.is_some())
    }

    /// The number that `key` stands for: `last` (the newest that somebody asked for: no run took it, and no agent's hook), a number, or a label (the newest that has it).
    pub fn find(&self, key: &str) -> Result<u64, Error> {
        let numbers = self.numbers()?;
        if numbers.is_empty() {
            return Err(none(&self.directory));
        }
        if key == "last" {
            // An unreadable one may be anybody's: damage is reported rather than skipped.
            let is_asked_for = |n: &u64| self.summary(*n).map_or(true, |summary| !summary.head.run && !summary.head.is_of_turn());
            if let Some(last) = numbers.iter().rev().copied().find(is_asked_for) {
                return Ok(last);
            }
        } else if let Ok(n) = key.parse::<u64>() {
            if numbers.contains(&n) {
                return Ok(n);
            }
        } else {
            let (summaries, _) = self.summaries()?;
            if let Some(found) = summaries.iter().rev().find(|summary| summary.head.label.as_deref() == Some(key)) {
                return Ok(found.head.n);
            }
        }
        let (summaries, broken) = self.summaries()?;
        let label = |head: &Head| match &head.label {
            Some(label) => format!(" ({label})"),
            None if head.run => " (a run's)".into(),
            None => String::new(),
        };
        let there = summaries.iter().map(|s| format!("{}{}", s.head.n, label(&s.head)));
        let there: Vec<String> = there.chain(broken.iter().map(|broken| format!("{} (damaged)", broken.n))).collect();
        Err(unknown(key, &self.directory, &there))
    }
}

/// Reads manifests to their ends; a base that several have is read once.
pub struct Looking<'a> {
    series: &'a Series,
    bases: HashMap<u64, Option<String>>,
}

impl<'a> Looking<'a> {
    /// Makes a reader for the snapshots of `series`.
    pub fn of(series: &'a Series) -> Self {
        Self { series, bases: HashMap::new() }
    }

    /// The head and tail of a snapshot whose manifest and base are whole.
    pub fn at(&mut self, n: u64) -> Result<Summary, Error> {
        let summary = self.series.summary(n)?;
        let dir = &self.series.dir;
        let name = manifest::name(n);
        Reading::open(dir.at(&name), n)?;
        let Some(base) = summary.head.base else { return Ok(summary) };
        let look = || manifest::open_base(dir, base).err().map(|error| error.to_string());
        match self.bases.entry(base).or_insert_with(look) {
            None => Ok(summary),
            Some(why) => Err(damaged(dir.at(&name), format!("it is based on snapshot {base}, which cannot be read: {why}"))),
        }
    }
}

/// The number in a name such as `12.jsonl`.
fn number(name: &[u8], ending: &str) -> Option<u64> {
    let text = std::str::from_utf8(name).ok()?.strip_suffix(ending)?;
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| plain)
}

fn directory_of(dir: &Dir) -> Result<Option<AbsPath>, Error> {
    let at = dir.at(DIRECTORY);
    let Some(bytes) = read_small(at, 1 << 20)? else { return Ok(None) };
    match serde_json::from_slice::<Directory>(&bytes) {
        Ok(directory) if directory.schema == 1 => Ok(Some(directory.directory)),
        Ok(directory) => Err(damaged(at, format!("its schema is {}", directory.schema))),
        Err(error) => Err(damaged(at, error)),
    }
}

/// Makes a directory of recant's own in `above`, durably.
fn make(fs: &Fs, above: &Dir, name: &[u8]) -> Result<Dir, Error> {
    let at = above.at(name);
    match fs.mkdir(at, 0o700) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        made => {
            made?;
            // D3: a new directory lasts once the one above it is synced.
            fs.sync_dir(above)?;
        }
    }
    Ok(at.open_dir()?)
}
