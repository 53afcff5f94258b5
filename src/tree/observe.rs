//! Looks at the object of a path: its state and fingerprint, without reading content.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};

use super::git_index;
use super::hash::Hash;
use super::state::{Fingerprint, Identity, Likeness, Meta, Object, State, What};
use crate::error::{At, IoError};
use crate::fs::{AbsPath, Dir, Entry, Sort, Stat, Time, stat_of, xattrs_but, xattrs_of};

/// An object as it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Its state; a file's hash only if content was read.
    pub state: State,
    /// Its identity, and a cheap sign that it is unchanged.
    pub print: Fingerprint,
    pub nlink: u32,
    /// Bytes on disk.
    pub blocks: u64,
}

impl Seen {
    /// True if its numbers do not tell which object it is, so that its content has to: [`Identity::loose`].
    pub fn is_told_by_content(&self) -> bool {
        self.print.identity.loose
    }
}

/// Times closer to now than this may repeat at the next change: a tick of the slowest kernel clock (CONFIG_HZ=100) and one to spare.
const GRANULARITY_NS: i128 = 20_000_000;

/// Makes the fingerprint of a stat that was just taken.
pub fn fingerprint(stat: &Stat) -> Fingerprint {
    fingerprint_of(identity(stat), stat.ctime)
}

/// Makes a fingerprint, now, from parts of a stat.
pub fn fingerprint_of(identity: Identity, ctime: Time) -> Fingerprint {
    // A ctime in the future (the clock was set back) proves as little as a young one.
    Fingerprint { identity, ctime, racy: is_young(ctime, crate::fs::now()) }
}

/// The granularity of file systems with whole or even seconds: ext3 and ext4 with inodes of 128 bytes, FAT, old servers of NFS.
const WHOLE_SECONDS_NS: i128 = 2_000_000_000 + GRANULARITY_NS;

/// True if `time` is so close to `then`, or after it, that a change between the two may not show in it.
pub fn is_young(time: Time, then: Time) -> bool {
    let nanos = |t: Time| i128::from(t.s) * 1_000_000_000 + i128::from(t.ns);
    nanos(then) - nanos(time) < if time.ns == 0 { WHOLE_SECONDS_NS } else { GRANULARITY_NS }
}

/// The identity of the object of a stat.
pub fn identity(stat: &Stat) -> Identity {
    Identity { ino: stat.ino, btime: stat.btime, loose: false }
}

/// Looks at `at` without reading content. `None` if nothing is there.
pub fn object(at: Entry<'_>) -> Result<Option<Seen>, IoError> {
    let Some(stat) = at.stat()? else { return Ok(None) };
    object_of(at, &stat).map(Some)
}

/// Looks at an object whose stat was already taken.
pub fn object_of(at: Entry<'_>, stat: &Stat) -> Result<Seen, IoError> {
    let what = match stat.sort {
        Sort::File => What::File { size: stat.size, hash: None, index: None },
        Sort::Directory => What::Directory,
        Sort::Symlink => What::Symlink { target: at.read_link()?.into() },
        Sort::Fifo => What::Fifo,
        Sort::Socket => What::Socket,
        Sort::Char => What::Char(stat.rdev),
        Sort::Block => What::Block(stat.rdev),
    };
    Ok(assemble(what, stat, at.xattrs()?))
}

/// Looks at an open file, which saves looking its name up again.
pub fn seen_open(file: &File, stat: &Stat) -> io::Result<Seen> {
    Ok(assemble(What::File { size: stat.size, hash: None, index: None }, stat, xattrs_of(file)?))
}

/// Looks at an open file, without the values of xattrs that are `unread`.
pub fn seen_open_but(file: &File, stat: &Stat, unread: impl Fn(&[u8]) -> bool) -> io::Result<Seen> {
    Ok(assemble(What::File { size: stat.size, hash: None, index: None }, stat, xattrs_but(file, unread)?))
}

/// Tells a file by its stat, if its fingerprint shows that it is as it is `known`: its xattrs are, too, as a change of these moves the
/// ctime.
pub fn recognized(stat: &Stat, known: &State, print: &Fingerprint) -> Option<Seen> {
    let what = What::File { size: stat.size, hash: None, index: None };
    let mut seen = assemble(what, stat, Vec::new());
    seen.state.meta.xattrs = known.meta.xattrs.clone();
    (stat.sort == Sort::File && seen.unchanged_since(known, print)).then_some(seen)
}

pub fn directory(dir: &Dir) -> Result<Seen, IoError> {
    Ok(assemble(What::Directory, &dir.stat()?, dir.xattrs()?))
}

fn assemble(what: What, stat: &Stat, xattrs: Vec<(Vec<u8>, Vec<u8>)>) -> Seen {
    let state = State { what, meta: Meta::of(stat, xattrs) };
    Seen { state, print: fingerprint(stat), nlink: stat.nlink, blocks: stat.blocks * 512 }
}

/// Hashes the file at `at`; also returns the stat of what was read. A file that changes meanwhile is read again, at most three times;
/// then it is an error.
pub fn hash(at: Entry<'_>) -> Result<(Hash, Stat), IoError> {
    hash_of(&at.open_file()?).at("read", at)
}

/// Hashes an open file, as `hash` does.
pub fn hash_of(file: &File) -> io::Result<(Hash, Stat)> {
    hash_since(file, stat_of(file)?)
}

/// Hashes an open file that was looked at before: a change since then counts as one during the reading.
pub fn hash_since(file: &File, before: Stat) -> io::Result<(Hash, Stat)> {
    read_since(file, before, false).map(|(content, stat)| (content.hash, stat))
}

/// The results of reading a file.
#[derive(Debug, Clone, Copy)]
pub struct Content {
    pub hash: Hash,
    /// The hash of its [meaning](git_index::meaning), if that was asked for and it is a git index.
    pub index: Option<Hash>,
}

impl Content {
    /// Reads an open file of `size` bytes, as [`Hash::of_file`]; also its meaning, if it `may_mean` something.
    pub fn of_file(file: &File, size: u64, may_mean: bool) -> io::Result<Self> {
        if !may_mean || size > git_index::MOST {
            return Ok(Self { hash: Hash::of_file(file, size)?, index: None });
        }
        let mut bytes = Vec::new();
        let mut piece = vec![0; 128 << 10];
        // Reads at given offsets, as others may share the descriptor.
        while (bytes.len() as u64) < size {
            match file.read_at(&mut piece, bytes.len() as u64) {
                Ok(0) => break,
                Ok(got) => bytes.extend_from_slice(&piece[..got]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(usize::try_from(size).unwrap_or(usize::MAX));
        Ok(Self { hash: Hash::of(&bytes), index: git_index::meaning(&bytes) })
    }
}

/// Reads a file as [`hash_since`] does; also its meaning, if it `may_mean` something.
pub fn read_since(file: &File, mut before: Stat, may_mean: bool) -> io::Result<(Content, Stat)> {
    if before.sort != Sort::File {
        return Err(io::Error::other("it is no longer a file"));
    }
    for _ in 0..3 {
        let content = Content::of_file(file, before.size, may_mean)?;
        let after = stat_of(file)?;
        if (before.size, before.mtime, before.ctime) == (after.size, after.mtime, after.ctime) {
            return Ok((content, after));
        }
        before = after;
    }
    Err(io::Error::other("it changes while it is read"))
}

/// Adds its meaning to the state of the file at `at`, whose path is `path`, if that can be a git index. From then on the meaning tells it
/// from others. An unreadable one has none.
pub fn learn_meaning(at: Entry<'_>, path: &AbsPath, state: &mut State) -> Result<(), IoError> {
    if !state.is_file() || state.size() > git_index::MOST || !git_index::may_lie_at(path) {
        return Ok(());
    }
    match at.open_file().and_then(|file| stat_of(&file).and_then(|stat| read_since(&file, stat, true)).at("read", at)) {
        Ok((content, _)) => state.set_index(content.index),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// True if an object that was put away as `then`, and holds something else now, was written to: its mtime shows that. A write in the same
/// clock tick leaves the mtime, but if it appended, the old content is still there. All else is damage.
pub fn was_written_since(at: Entry<'_>, now: &State, then: &State) -> Result<bool, IoError> {
    if now.meta.mtime != then.meta.mtime {
        return Ok(true);
    }
    match then.hash() {
        Some(hash) if now.size() > then.size() => Ok(Hash::of_file(&at.open_file()?, then.size()).at("read", at)? == hash),
        _ => Ok(false),
    }
}

/// True if the directory at `at`, empty as `then`, holds something now. A missing one counts as empty: rmdir(2) tells where it is let go.
/// So does an unreadable one, unless its mode has changed since: somebody who worked in it has closed it.
///
/// # Errors
/// It cannot be listed for another reason.
pub fn is_filled(at: Entry<'_>, then: &State) -> Result<bool, IoError> {
    match at.open_dir().and_then(|directory| directory.is_empty()) {
        Err(error) if error.errno() == Some(libc::EACCES) => Ok(at.stat()?.is_some_and(|stat| stat.mode != then.meta.mode)),
        Err(error) if error.leads_nowhere() => Ok(false),
        is_empty => Ok(!is_empty?),
    }
}

impl Seen {
    /// Adds the hash of the content to the state.
    pub fn set_hash(&mut self, hash: Hash) {
        self.state.set_hash(hash);
    }

    /// Adds what was read of the content to the state.
    pub fn learn(&mut self, content: Content) {
        self.set_hash(content.hash);
        self.state.set_index(content.index);
    }

    /// True if its fingerprint shows the object `known` in the state that `print` was taken of: same object, size, mtime and ctime, with
    /// a ctime that was old enough to prove it.
    pub fn unchanged_since(&self, known: &State, print: &Fingerprint) -> bool {
        !print.racy
            && self.print.identity == print.identity
            && self.print.ctime == print.ctime
            && self.state.sort() == known.sort()
            && self.state.size() == known.size()
            && self.state.meta.mtime == known.meta.mtime
    }
}

/// Compares the object at `at` with the expected one. Reads content only if nothing else can tell.
///
/// In: the expected object and, if one was taken, its fingerprint. Out: what was seen (with its hash, if it had to be read), and whether
/// it is the same. A captured `before` has no hash: then another fingerprint is a difference, except for a git index of the same meaning,
/// which git rewrites whenever somebody looks at the repository.
pub fn compare(at: Entry<'_>, expected: &Object, print: Option<&Fingerprint>) -> Result<(Option<Seen>, Likeness), IoError> {
    let mut found = object(at)?;
    let likeness = judge(&mut found, expected, print, |may_mean| {
        let file = at.open_file()?;
        let read = stat_of(&file).and_then(|stat| read_since(&file, stat, may_mean));
        read.map(|(content, _)| content).at("read", at)
    })?;
    Ok((found, likeness))
}

/// Compares an object that was already looked at. `read` reads its content; its argument tells whether that may be a git index.
pub fn judge(
    found: &mut Option<Seen>,
    expected: &Object,
    print: Option<&Fingerprint>,
    read: impl FnOnce(bool) -> Result<Content, IoError>,
) -> Result<Likeness, IoError> {
    let (expected, found) = match (expected, found) {
        (None, None) => return Ok(Likeness::Same),
        (Some(expected), Some(found)) => (expected, found),
        _ => return Ok(Likeness::Differs(super::state::Difference::Presence)),
    };
    let likeness = expected.likeness(&found.state);
    let is_unread = likeness == Likeness::ReadToTell
        || expected.index().is_some() && likeness == Likeness::Differs(super::state::Difference::Content);
    if !is_unread || !found.state.is_file() {
        return Ok(likeness);
    }
    if print.is_some_and(|print| found.unchanged_since(expected, print)) {
        return Ok(Likeness::Same);
    }
    if expected.hash().is_some() || expected.index().is_some() {
        found.learn(read(expected.index().is_some())?);
    }
    Ok(match expected.likeness(&found.state) {
        // It has no hash that could tell.
        Likeness::ReadToTell => Likeness::Differs(super::state::Difference::Touched),
        likeness => likeness,
    })
}
