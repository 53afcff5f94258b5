//! Looking at what a path names: its state and fingerprint, content unread.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::git_index;
use super::state::{Fingerprint, Identity, Likeness, Meta, Object, State, What};
use crate::fs::dir::{Dir, Entry, Sort, Stat, Time, leads_nowhere, stat_of, xattrs_of};
use crate::fs::path::AbsPath;

/// An object as it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Its state; a file's digest only where content was read.
    pub state: State,
    /// Which object it is, and the cheap sign of no change.
    pub print: Fingerprint,
    /// How many names it has.
    pub nlink: u32,
    /// Bytes on disk.
    pub blocks: u64,
}

/// Times closer to now than this may repeat at the next change: a tick of the slowest kernel clock (CONFIG_HZ=100) and one to spare.
const GRANULARITY_NS: i128 = 20_000_000;

/// The fingerprint of a stat that was just taken.
pub fn fingerprint(stat: &Stat) -> Fingerprint {
    fingerprint_of(identity(stat), stat.ctime)
}

/// The same of what a stat has told, written down now.
pub fn fingerprint_of(identity: Identity, ctime: Time) -> Fingerprint {
    // A ctime in the future (the clock was set back) is as doubtful as a young one.
    Fingerprint { identity, ctime, racy: is_young(ctime, crate::fs::now()) }
}

/// The same of a file system that keeps whole seconds, or every other one: ext3 and ext4 with inodes of 128 bytes, FAT, old servers of NFS.
const WHOLE_SECONDS_NS: i128 = 2_000_000_000 + GRANULARITY_NS;

/// Whether a time is so close to another one, or behind it, that something between the two may have left no trace in it.
pub fn is_young(time: Time, then: Time) -> bool {
    let nanos = |t: Time| i128::from(t.s) * 1_000_000_000 + i128::from(t.ns);
    nanos(then) - nanos(time) < if time.ns == 0 { WHOLE_SECONDS_NS } else { GRANULARITY_NS }
}

/// Which object a stat is of.
pub fn identity(stat: &Stat) -> Identity {
    Identity { ino: stat.ino, btime: stat.btime, loose: false }
}

/// Looks at `at`; content is not read. `None` where there is nothing.
pub fn look(at: Entry<'_>) -> io::Result<Option<Seen>> {
    let Some(stat) = at.stat()? else { return Ok(None) };
    seen(at, &stat).map(Some)
}

/// The same where the stat is there already.
pub fn seen(at: Entry<'_>, stat: &Stat) -> io::Result<Seen> {
    let what = match stat.sort {
        Sort::File => What::File { size: stat.size, digest: None, index: None },
        Sort::Folder => What::Folder,
        Sort::Symlink => What::Symlink { target: at.read_link()?.into() },
        Sort::Fifo => What::Fifo,
        Sort::Socket => What::Socket,
        Sort::Char => What::Char(stat.rdev),
        Sort::Block => What::Block(stat.rdev),
    };
    Ok(assemble(what, stat, at.xattrs()?))
}

/// The same of a file that is open, which spares looking its name up again.
pub fn seen_open(file: &File, stat: &Stat) -> io::Result<Seen> {
    Ok(assemble(What::File { size: stat.size, digest: None, index: None }, stat, xattrs_of(file)?))
}

/// The state of a held folder.
pub fn folder(dir: &Dir) -> io::Result<Seen> {
    Ok(assemble(What::Folder, &dir.stat()?, dir.xattrs()?))
}

fn assemble(what: What, stat: &Stat, xattrs: Vec<(Vec<u8>, Vec<u8>)>) -> Seen {
    let state = State { what, meta: Meta::of(stat, xattrs) };
    Seen { state, print: fingerprint(stat), nlink: stat.nlink, blocks: stat.blocks * 512 }
}

/// Reads the file at `at` and gives its digest, with the stat of what was read. A file that changes while it is read is
/// read again, three times at most; then the error says so.
pub fn digest(at: Entry<'_>) -> io::Result<(Digest, Stat)> {
    digest_of(&at.open_file()?)
}

/// The same of a file that is open.
pub fn digest_of(file: &File) -> io::Result<(Digest, Stat)> {
    digest_since(file, stat_of(file)?)
}

/// The same where it was looked at before: what changed since then counts as changed while it was read.
pub fn digest_since(file: &File, before: Stat) -> io::Result<(Digest, Stat)> {
    read_since(file, before, false).map(|(content, stat)| (content.digest, stat))
}

/// What reading a file told.
#[derive(Debug, Clone, Copy)]
pub struct Content {
    /// Of all of it.
    pub digest: Digest,
    /// What it [means](git_index::meaning), where that was asked for and it is an index of git's.
    pub index: Option<Digest>,
}

impl Content {
    /// Of an open file of `size` bytes, as [`Digest::of_file`]; where it `may_mean` something, with that.
    pub fn of_file(file: &File, size: u64, may_mean: bool) -> io::Result<Self> {
        if !may_mean || size > git_index::MOST {
            return Ok(Self { digest: Digest::of_file(file, size)?, index: None });
        }
        let mut bytes = Vec::new();
        let mut piece = vec![0; 128 << 10];
        // At its offsets, as a descriptor may be another's too.
        while (bytes.len() as u64) < size {
            match file.read_at(&mut piece, bytes.len() as u64) {
                Ok(0) => break,
                Ok(got) => bytes.extend_from_slice(&piece[..got]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(usize::try_from(size).unwrap_or(usize::MAX));
        Ok(Self { digest: Digest::of(&bytes), index: git_index::meaning(&bytes) })
    }
}

/// As [`digest_since`]; with what the file means, where it `may_mean` something.
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

/// Puts into the state of the file at `at`, whose path is `path`, what it means, if that can be an index of git's: by this it is told from
/// another one from then on. One that may not be read means nothing.
pub fn learn_meaning(at: Entry<'_>, path: &AbsPath, state: &mut State) -> io::Result<()> {
    if !state.is_file() || state.size() > git_index::MOST || !git_index::may_lie_at(path) {
        return Ok(());
    }
    match at.open_file().and_then(|file| read_since(&file, stat_of(&file)?, true)) {
        Ok((content, _)) => state.set_index(content.index),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Whether an object that was put away as `then`, and holds something else now, was written to by somebody: its time tells. A write in the
/// tick of the clock in which that was taken leaves it; what was appended then leaves also what was there. All else is damage.
pub fn was_written_since(at: Entry<'_>, now: &State, then: &State) -> io::Result<bool> {
    if now.meta.mtime != then.meta.mtime {
        return Ok(true);
    }
    match then.digest() {
        Some(digest) if now.size() > then.size() => Ok(Digest::of_file(&at.open_file()?, then.size())? == digest),
        _ => Ok(false),
    }
}

/// Whether something is in the folder at `at` that was empty as `then`. One that is missing counts as empty: rmdir(2) tells where it is
/// let go. So does one that may not be listed, unless its mode has changed since: who worked in it has closed it.
///
/// # Errors
/// Where it cannot be listed for another reason.
pub fn is_filled(at: Entry<'_>, then: &State) -> io::Result<bool> {
    match at.open_dir().and_then(|folder| folder.is_empty()) {
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
            Ok(at.stat()?.is_some_and(|stat| stat.mode != then.meta.mode))
        }
        Err(error) if leads_nowhere(&error) => Ok(false),
        is_empty => Ok(!is_empty?),
    }
}

impl Seen {
    /// Puts the digest of the content into the state.
    pub fn set_digest(&mut self, digest: Digest) {
        if let What::File { digest: known, .. } = &mut self.state.what {
            *known = Some(digest);
        }
    }

    /// Puts what was read of the content into the state.
    pub fn learn(&mut self, content: Content) {
        self.set_digest(content.digest);
        self.state.set_index(content.index);
    }

    /// Whether this is, by its fingerprint, the object `known` in the state in which `print` was taken of it: same
    /// object, size, mtime and ctime, and the ctime old enough then to tell.
    pub fn unchanged_since(&self, known: &State, print: &Fingerprint) -> bool {
        !print.racy
            && self.print.identity == print.identity
            && self.print.ctime == print.ctime
            && self.state.sort() == known.sort()
            && self.state.size() == known.size()
            && self.state.meta.mtime == known.meta.mtime
    }
}

/// Compares what is at `at` with what is expected there, reading content only where nothing else can tell.
///
/// In: the expected object and, where one was taken, its fingerprint. Out: what was seen (with its digest, if it had to be
/// read), and whether it is the same. A captured `before` has no digest: another fingerprint is then a difference, but for an index of git's
/// that means the same still: git rewrites it whenever somebody looks at the repository.
pub fn compare(at: Entry<'_>, expected: &Object, print: Option<&Fingerprint>) -> io::Result<(Option<Seen>, Likeness)> {
    let mut found = look(at)?;
    let likeness = judge(&mut found, expected, print, |may_mean| {
        let file = at.open_file()?;
        read_since(&file, stat_of(&file)?, may_mean).map(|(content, _)| content)
    })?;
    Ok((found, likeness))
}

/// The same where it was looked at already; `read` reads its content, and is told whether that may be an index of git's.
pub fn judge(
    found: &mut Option<Seen>,
    expected: &Object,
    print: Option<&Fingerprint>,
    read: impl FnOnce(bool) -> io::Result<Content>,
) -> io::Result<Likeness> {
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
    if expected.digest().is_some() || expected.index().is_some() {
        found.learn(read(expected.index().is_some())?);
    }
    Ok(match expected.likeness(&found.state) {
        // No digest was taken of it that could tell.
        Likeness::ReadToTell => Likeness::Differs(super::state::Difference::Touched),
        likeness => likeness,
    })
}
