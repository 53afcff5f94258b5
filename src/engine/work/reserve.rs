//! The reserve: room on disk, and names, that a commit leaves in the session's directory, so that its rollback works on a full disk
//! (I28). Rollback frees it before it writes journal, header and manifest; content is moved and needs no room.
//!
//! The first of its files holds room. All of them hold inodes: at most three new files exist at once beside those that they replace, and
//! one is to spare. The last is the commit's own journal, once it is settled: a rollback's has about as many bytes, and to keep room for it
//! beside a journal that goes was a third of what a commit takes (on ext4 2.8 KB a change; now 1.9: a `changes.jsonl` with hashes, the
//! journal, the manifest, and 115 bytes for the name of a blob).
//!
//! On btrfs freed blocks do not guarantee room for metadata. There no reserve is kept, and a rollback is refused before its first effect
//! if too little is free.

use std::time::{Duration, Instant};

use crate::engine::error::no_room;
use crate::engine::journal::Journal;
use crate::error::{Against, At, Error};
use crate::fs::{Entry, Fs};
use crate::session::{RESERVE, Session, Store};
use crate::settings;

/// For a header, the line of the log, directories that grow by a block, and partly used blocks: bytes.
const SLACK: u64 = 96 << 10;
/// On xfs, which begins a rename into a directory that must grow only if the most that this could take is free.
const SLACK_XFS: u64 = 768 << 10;
/// Bytes that a change takes in a journal, about.
const A_CHANGE: u64 = 2 << 10;
/// The longest wait for freed inodes.
const PATIENCE: Duration = Duration::from_secs(2);
/// BTRFS_SUPER_MAGIC and XFS_SUPER_MAGIC: statfs(2).
const BTRFS: i64 = 0x9123_683e;
const XFS: i64 = 0x5846_5342;

/// Keeps room for the rollback of a commit with a journal of so many bytes, beside the room of the journal itself.
pub fn keep(fs: &Fs, store: &Store, session: &Session, journal: u64) -> Result<(), Error> {
    let beside = if is_one_file_system(store, session)? { journal / 4 } else { journal + journal / 4 };
    keep_bytes(fs, session, beside + needed(session)?)
}

/// Keeps the room of a settled commit's journal. If that fails the journal is still there.
pub fn keep_journal(fs: &Fs, store: &Store, session: &Session) -> Result<(), Error> {
    let [.., last] = RESERVE;
    if session.header.counts.inside > 0 && is_one_file_system(store, session)? && !is_btrfs(session)? {
        Journal::become_reserve(fs, store, session.id(), session.dir.at(last))?;
    }
    Ok(())
}

fn is_one_file_system(store: &Store, session: &Session) -> Result<bool, Error> {
    Ok(store.journals().stat()?.dev == session.dir.stat()?.dev)
}

/// Keeps the reserve again for what is still in, after a rollback that failed or left some of it.
pub fn keep_again(fs: &Fs, session: &Session) -> Result<(), Error> {
    if session.header.counts.inside == 0 { Ok(()) } else { keep_bytes(fs, session, needed(session)?) }
}

fn keep_bytes(fs: &Fs, session: &Session, bytes: u64) -> Result<(), Error> {
    if is_btrfs(session)? {
        return Ok(());
    }
    for (i, name) in RESERVE.iter().enumerate() {
        let at = session.dir.at(name);
        let stat = at.stat()?;
        if i > 0 {
            if stat.is_none() {
                fs.create(at, 0o600)?;
            }
            continue;
        }
        if stat.is_some_and(|stat| stat.size >= bytes) {
            continue;
        }
        let file = fs.append(at)?;
        match fs.allocate(&file, bytes, at) {
            // FUSE, NFS and others have no fallocate(2), and guarantee nothing.
            Err(error) if matches!(error.errno(), Some(libc::EOPNOTSUPP | libc::ENOSYS)) => {}
            kept => kept.at("keep room for a rollback in", at)?,
        }
    }
    Ok(())
}

/// Frees the reserve for a rollback that is about to write.
pub fn free(fs: &Fs, session: &Session) -> Result<(), Error> {
    let needed = needed(session)?;
    let low = Free::of(session)?.is_low(needed);
    if is_btrfs(session)? {
        let why = format!("a rollback needs {} there, and less is free", settings::bytes(needed));
        return if low { Err(no_room(vec![Against::new(session.dir.path().display(), why)])) } else { Ok(()) };
    }
    drop_all(fs, session)?;
    if low {
        // D2: ext4 and xfs give freed blocks away again once the transaction that freed them is on disk (directory: not caught here).
        fs.sync_dir(&session.dir)?;
        wait_for_inodes(session)?;
    }
    Ok(())
}

/// Waits for the inodes of removed files, which xfs frees in the background, within milliseconds on an idle disk. If they do not come,
/// the next call that needs one fails.
fn wait_for_inodes(session: &Session) -> Result<(), Error> {
    let until = Instant::now() + PATIENCE;
    let freed = RESERVE.len() as u64;
    let is_xfs = kind(session)? == XFS;
    while is_xfs && Free::of(session)?.inodes.is_some_and(|inodes| inodes < freed) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Removes the reserve: nothing of the session is in.
pub fn drop_all(fs: &Fs, session: &Session) -> Result<(), Error> {
    for name in RESERVE {
        let at: Entry<'_> = session.dir.at(name);
        if at.stat()?.is_some() {
            fs.remove_all(at)?;
        }
    }
    Ok(())
}

fn kind(session: &Session) -> Result<i64, Error> {
    let found = rustix::fs::fstatfs(&session.dir).at("ask for the file system of", session.dir.path().display())?;
    Ok(found.f_type)
}

fn is_btrfs(session: &Session) -> Result<bool, Error> {
    Ok(kind(session)? == BTRFS)
}

fn slack(session: &Session) -> Result<u64, Error> {
    Ok(if kind(session)? == XFS { SLACK_XFS } else { SLACK })
}

/// Bytes for a rollback of all that is in.
fn needed(session: &Session) -> Result<u64, Error> {
    Ok(session.header.counts.inside * A_CHANGE + slack(session)?)
}

/// The free bytes and inodes of a file system, for the caller.
struct Free {
    bytes: u64,
    /// `None` where it does not count them (btrfs).
    inodes: Option<u64>,
}

impl Free {
    fn of(session: &Session) -> Result<Self, Error> {
        let found = rustix::fs::fstatvfs(&session.dir).at("ask for the free room of", session.dir.path().display())?;
        let inodes = (found.f_files > 0).then_some(found.f_favail);
        Ok(Self { bytes: found.f_bavail.saturating_mul(found.f_frsize), inodes })
    }

    /// True if so many bytes, with one MiB to spare, or some inodes, may be lacking.
    fn is_low(&self, needed: u64) -> bool {
        self.inodes.is_some_and(|inodes| inodes < 64) || self.bytes < needed + (1 << 20)
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::work::reserve::*;

    #[test]
    fn room_is_low_where_a_rollback_may_not_get_its_bytes_and_one_mib_or_some_inodes() {
        const MIB: u64 = 1 << 20;
        for (bytes, inodes, needed, low) in [
            (0, Some(1000), MIB / 8, true),
            (MIB, Some(1000), MIB / 8, true),
            (3 * MIB, Some(1000), MIB / 8, false),
            (3 * MIB, Some(1000), 3 * MIB, true),
            (5 * MIB, Some(1000), 3 * MIB, false),
            (5 * MIB, Some(0), MIB, true),
            (5 * MIB, Some(8), MIB, true),
            // A file system that does not count inodes has as many as fit.
            (5 * MIB, None, MIB, false),
            (MIB, None, MIB, true),
        ] {
            assert_eq!(Free { bytes, inodes }.is_low(needed), low, "{needed} of {bytes}, {inodes:?}");
        }
    }
}
