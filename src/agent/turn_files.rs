//! The files of turns: `agents/turns/<key>/<n>.jsonl` of the store, `<key>` being that of the directory's snapshots. Lines are appended
//! alone, each by one write(2), so that hooks that run at once do not mix theirs. They are not synced: what a power cut takes of them makes
//! `agent undo` leave more paths, never fewer.

use std::collections::BTreeSet;
use std::io::Read;
use std::time::{Duration, Instant};

use serde::de::IgnoredAny;

use super::project_walk::Look;
use super::turn::{Head, Line, Turn};
use crate::error::{At, Error};
use crate::fs::{AbsPath, Dir, Fs, Lock};
use crate::session::{Store, busy};
use crate::snapshot::series;
use crate::tree::json;

pub struct Turns {
    dir: Dir,
}

/// The most bytes that are read of a turn's file.
const MOST: u64 = 64 << 20;

/// The path of the turns of a directory in the store.
fn path(directory: &AbsPath) -> Vec<u8> {
    [b"agents/turns/", series::key(directory).as_bytes()].concat()
}

fn name(n: u64) -> Vec<u8> {
    format!("{n}.jsonl").into_bytes()
}

/// The name of the last look of a turn.
fn look_name(n: u64) -> Vec<u8> {
    format!("{n}.look").into_bytes()
}

/// The lines of a turn's file. One without its end is being written, or was cut off: its look was not replaced then, so that the next one tells
/// the same. One of a kind that is unknown counts for nothing; one that is garbled may have told of anything.
pub fn lines(bytes: &[u8]) -> impl Iterator<Item = Line> {
    let whole = bytes.iter().rposition(|b| *b == b'\n').unwrap_or(0);
    bytes[..whole].split(|b| *b == b'\n').filter_map(|line| match serde_json::from_slice(line) {
        Ok(line) => Some(line),
        Err(_) if serde_json::from_slice::<IgnoredAny>(line).is_ok() => None,
        Err(_) => Some(Line::Blind),
    })
}

/// The longest wait for the head of a turn whose file is there.
const UNWRITTEN: Duration = Duration::from_millis(200);
/// The longest wait for another hook of the same turn.
const PATIENCE: Duration = Duration::from_secs(10);

impl Turns {
    /// The turns of `directory`; `None` if there are none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn open(store: &Store, directory: &AbsPath) -> Result<Option<Self>, Error> {
        match store.dir.open_below(&path(directory)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            dir => Ok(Some(Self { dir: dir? })),
        }
    }

    /// The turns of `directory`, with a place for more.
    ///
    /// # Errors
    /// The place cannot be made.
    pub fn create(fs: &Fs, store: &Store, directory: &AbsPath) -> Result<Self, Error> {
        Ok(Self { dir: super::directory::directory(fs, store, &path(directory))? })
    }

    /// The numbers of all turns, the oldest first.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn numbers(&self) -> Result<BTreeSet<u64>, Error> {
        let number = |name: Vec<u8>| std::str::from_utf8(name.strip_suffix(b".jsonl")?).ok()?.parse().ok();
        Ok(self.dir.names()?.into_iter().filter_map(number).collect())
    }

    /// Begins a turn: gives it the next number, and writes its head. If the same event began it already, as hooks in two settings tell it
    /// twice, it is that one, and `false`.
    ///
    /// # Errors
    /// Its file cannot be made.
    pub fn begin(&self, fs: &Fs, mut head: Head) -> Result<(Head, bool), Error> {
        let until = Instant::now() + UNWRITTEN;
        loop {
            let last = self.numbers()?.last().copied().unwrap_or(0);
            match self.turn(last)? {
                Some(twin) if twin.is_twin(&head) => return Ok((twin.head, false)),
                // Another hook has made the file, and has not written its head yet; or was killed there.
                None if last > 0 && Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                }
                _ => {}
            }
            head.n = last + 1;
            let own = name(head.n);
            let at = self.dir.at(&own);
            match fs.create(at, 0o600) {
                Ok(file) => {
                    fs.write(&file, &json::line(&Line::Turn(head.clone())), at)?;
                    return Ok((head, true));
                }
                // Another hook was quicker.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The turns of projects in `directory` or around it, as far as they concern it.
    ///
    /// # Errors
    /// A directory of turns cannot be read.
    pub fn near(store: &Store, directory: &AbsPath) -> Result<Vec<Turn>, Error> {
        let is_near = |other: &AbsPath| other != directory && (other.is_under(directory) || directory.is_under(other));
        let mut near = Vec::new();
        for turns in Self::everywhere(store)? {
            if turns.first()?.is_some_and(|first| is_near(&first.head.directory)) {
                near.extend(turns.all()?.into_iter().map(|turn| turn.within(directory)));
            }
        }
        Ok(near)
    }

    /// The turns of every directory.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn everywhere(store: &Store) -> Result<Vec<Self>, Error> {
        let all = match store.dir.open_below(b"agents/turns") {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            all => all?,
        };
        Ok(all.names()?.iter().filter_map(|name| all.at(name).open_dir().ok()).map(|dir| Self { dir }).collect())
    }

    /// The oldest turn.
    ///
    /// # Errors
    /// Its file cannot be read.
    pub fn first(&self) -> Result<Option<Turn>, Error> {
        self.numbers()?.first().map_or(Ok(None), |n| self.turn(*n))
    }

    /// Appends lines to a turn, by one write.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn add(&self, fs: &Fs, n: u64, lines: &[Line]) -> Result<(), Error> {
        let own = name(n);
        let at = self.dir.at(&own);
        let file = fs.append(at)?;
        let bytes: Vec<u8> = lines.iter().flat_map(json::line).collect();
        Ok(fs.write(&file, &bytes, at)?)
    }

    /// Keeps the look from before a turn, from which its changes are told.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep_look(&self, fs: &Fs, n: u64, look: &Look) -> Result<(), Error> {
        Ok(fs.replace_later(self.dir.at(&look_name(n)), &look.bytes())?)
    }

    /// Removes the look of a turn in which nothing happens any more.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn drop_look(&self, fs: &Fs, n: u64) -> Result<(), Error> {
        Ok(fs.unlink_if_there(self.dir.at(&look_name(n)))?)
    }

    /// Looks at the directory by `look`, and appends what has changed since the last look of a turn, then `lines`. A turn without a look has no
    /// snapshot yet: then `lines` alone. Hooks that run at once wait for each other.
    ///
    /// # Errors
    /// The directory cannot be looked at; a system call failed.
    pub fn look(
        &self,
        fs: &Fs,
        n: u64,
        look: impl FnOnce(Option<&Look>) -> Result<Look, Error>,
        lines: Vec<Line>,
    ) -> Result<(), Error> {
        let (own, looks) = (name(n), look_name(n));
        let at = self.dir.at(&own);
        // The file alone: its directory belongs to no lock.
        let lock = Lock::wait(at, PATIENCE, || (), |at| Lock::try_take_file(fs, at))?;
        let _lock = lock.ok_or_else(|| busy(format!("turn {n}")))?;
        let earlier = match self.dir.at(&looks).open_file() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return self.add(fs, n, &lines),
            file => {
                let mut bytes = Vec::new();
                file?.read_to_end(&mut bytes).at("read", self.dir.at(&looks))?;
                Look::read(&bytes)
            }
        };
        let now = look(earlier.as_ref())?;
        let changes = earlier.map(|earlier| now.changes_since(&earlier));
        let is_same = changes.as_ref().is_some_and(Vec::is_empty);
        let first = changes.map_or(Line::Blind, Line::Seen);
        self.add(fs, n, &[vec![first], lines].concat())?;
        if is_same {
            return Ok(());
        }
        // After its lines: if this is cut off, the next look tells them once more, and as somebody else's.
        self.keep_look(fs, n, &now)
    }

    /// Reads a turn; `None` if there is none of that number, or its head is torn.
    ///
    /// # Errors
    /// Its file cannot be read.
    pub fn turn(&self, n: u64) -> Result<Option<Turn>, Error> {
        let own = name(n);
        let at = self.dir.at(&own);
        let file = match at.open_file() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut bytes = Vec::new();
        file.take(MOST).read_to_end(&mut bytes).at("read", at)?;
        Ok(Turn::of(lines(&bytes)))
    }

    /// Reads all turns, the oldest first.
    ///
    /// # Errors
    /// One of their files cannot be read.
    pub fn all(&self) -> Result<Vec<Turn>, Error> {
        self.numbers()?.into_iter().filter_map(|n| self.turn(n).transpose()).collect()
    }

    /// Removes the files of turns, not durably.
    ///
    /// # Errors
    /// One of them cannot be removed.
    pub fn remove(&self, fs: &Fs, turns: &[u64]) -> Result<(), Error> {
        let names = turns.iter().flat_map(|n| [look_name(*n), name(*n)]);
        names.into_iter().try_for_each(|name| Ok(fs.unlink_if_there(self.dir.at(&name))?))
    }
}
