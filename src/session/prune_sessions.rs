//! Finds what can be let go, and lets it go: held content, checkpoints, whole sessions.

use std::collections::HashSet;
use std::io;
use std::rc::Rc;

use super::error::{not_emptied, not_now};
use super::header::{Checkpoint, Header, Status};
use super::id::Id;
use super::merge_base;
use super::open_session::{Locked, read_small};
use super::own_store;
use super::store::Store;
use crate::error::{Error, IoError, command};
use crate::fs::{Dir, Fs, Sort, Time};
use crate::tree::Walk;

/// The sessions to prune. All given conditions have to hold.
#[derive(Debug, Clone, Copy, Default)]
pub struct Which {
    /// Older than this many seconds.
    pub older_than: Option<i64>,
    /// All but this many of the newest.
    pub keep: Option<usize>,
    /// As many of the oldest as bring the sum of their bytes down to this.
    pub max_size: Option<u64>,
}

impl Which {
    /// True if no condition is given.
    pub fn is_unbounded(&self) -> bool {
        self.older_than.is_none() && self.keep.is_none() && self.max_size.is_none()
    }
}

/// True if a commit may still be wanted: it holds changes that were never committed, or steps to go back to.
pub fn is_awaited(header: &Header) -> bool {
    let has_steps = header.steps.is_some() && header.counts.ever_in == 0;
    header.discarded.is_none() && (header.counts.ever_in < header.counts.changes || has_steps)
}

/// True if a rollback could still need this session's checkpoint: something of it is on the tree.
pub fn is_needed(header: &Header) -> bool {
    header.counts.inside > 0 && header.checkpoint == Checkpoint::Kept
}

/// Chooses the sessions that `which` names, out of `headers`; both the oldest first. `size` tells their bytes.
pub fn choose<'h>(headers: &[&'h Header], which: Which, now: Time, size: impl Fn(&Header) -> u64) -> Vec<&'h Header> {
    let newest_kept = which.keep.map_or(headers.len(), |keep| headers.len().saturating_sub(keep));
    let mut excess = which.max_size.map(|max| headers.iter().map(|h| size(h)).sum::<u64>().saturating_sub(max));
    let mut chosen = Vec::new();
    for header in &headers[..newest_kept] {
        if which.older_than.is_some_and(|age| now.s - header.changed.s < age) {
            continue;
        }
        match &mut excess {
            Some(0) => break,
            Some(excess) => *excess = excess.saturating_sub(size(header)),
            None => {}
        }
        chosen.push(*header);
    }
    chosen
}

/// The most times that a session is counted again because it changes meanwhile.
const COUNTS: usize = 3;

/// Counts the bytes on disk of a session's directory with all in it, by st_blocks of stat(2), as du(1) does; 0 if it is gone.
///
/// Errors: what cannot be read. Directories of a run's upper that are closed to their owner count without their content.
pub fn bytes_used(store: &Store, id: &Id) -> Result<u64, Error> {
    let mut bytes = 0;
    for _ in 0..COUNTS {
        let dir = match store.session_dir(id) {
            Err(error) if error.is_unknown() => return Ok(0),
            dir => Rc::new(dir?),
        };
        match count(&dir, &mut bytes) {
            // Another recant removes something from it: the count is near enough in the end.
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => {}
            counted => return Ok(counted.map(|()| bytes)?),
        }
    }
    Ok(bytes)
}

fn count(dir: &Rc<Dir>, bytes: &mut u64) -> Result<(), IoError> {
    *bytes = dir.stat()?.blocks * 512;
    let mut linked = HashSet::new();
    for found in Walk::under(dir.clone())?.past_closed() {
        let stat = found?.stat;
        if stat.sort == Sort::Directory || stat.nlink == 1 || linked.insert(stat.ino) {
            *bytes += stat.blocks * 512;
        }
    }
    Ok(())
}

/// The files in a session's directory that keep room on disk, and names, for the rollback of a commit.
pub const RESERVE: [&[u8]; 4] = [b"reserve", b"reserve.1", b"reserve.2", b"reserve.3"];

fn drop_reserve(fs: &Fs, dir: &Dir) -> Result<(), IoError> {
    for name in RESERVE {
        fs.unlink_if_there(dir.at(name))?;
    }
    Ok(())
}

/// Frees what a session holds, which counts as discarded then; its header stays as a record. Only for a session with nothing on the tree,
/// or nothing there that could be rolled back.
pub fn free(fs: &Fs, session: &mut Locked) -> Result<(), Error> {
    let mut header = session.header.clone();
    if header.discarded.is_none() {
        refuse_discard(&header)?;
        header.discarded = Some(crate::fs::now());
        header.acted = Some(session.act(fs)?);
    }
    (header.freed, header.sizes) = (true, Default::default());
    let id = session.id().clone();
    let not_all = |why: Error| {
        not_emptied(
            format!("session {id} is discarded"),
            why,
            command(format_args!("prune --sessions {id}")) + " removes the rest",
        )
    };
    give_up(fs, session, header, &[b"held/objects", b"held/upper", b"held/work"], not_all)
}

/// Writes the header that says what is given up, durably, and then empties `held` and the directories of every original (I12). If the
/// header's name cannot be made durable the bytes stay; `not_all` makes the error.
fn give_up(
    fs: &Fs,
    session: &mut Locked,
    header: Header,
    held: &[&[u8]],
    not_all: impl Fn(Error) -> Error + Copy,
) -> Result<(), Error> {
    // No verb goes on any more with what an interrupted operation has left.
    let header = Header { left: Vec::new(), ..header };
    let written = |session: &Locked| read_small(session.dir.at(b"session.json"), u64::MAX);
    let before = written(session)?;
    session.save(fs, header).map_err(|error| match (error, written(session)) {
        (why, Ok(now)) if why.io().is_some() && now != before => not_all(why),
        (error, _) => error,
    })?;
    for directory in held.iter().chain(&[merge_base::DIRECTORY, b"checkpoint/blobs", b"checkpoint/objects", b"displaced"]) {
        empty(fs, &session.dir, directory).map_err(|why| not_all(why.into()))?;
    }
    own_store::remove(fs, &session.dir).map_err(|why| not_all(why.into()))
}

/// Refuses a session that cannot be discarded. It is locked: one that counts as running is one whose run cannot be collected.
pub fn refuse_discard(header: &Header) -> Result<(), Error> {
    let status = header.status();
    let is_final = header.is_in_part() && header.checkpoint == Checkpoint::Pruned;
    if !matches!(status, Status::Pending | Status::RolledBack | Status::Running) && !is_final {
        let (why, remedy) = match status {
            Status::Discarded => ("it is discarded already".into(), None),
            Status::Committed if header.checkpoint == Checkpoint::Pruned => {
                let remedy = command(format_args!("prune --sessions {}", header.id)) + " removes its record";
                ("it is committed, and its checkpoint was pruned: nothing is held".into(), Some(remedy))
            }
            _ => {
                let [rollback, prune] =
                    ["rollback", "prune --checkpoints"].map(|verb| command(format_args!("{verb} {}", header.id)));
                let remedy = rollback + " first; or " + prune + " gives up its rollback";
                (format!("it is {}: its changes are on the tree", status.word()), Some(remedy))
            }
        };
        return Err(not_now(&header.id, why).with_remedy_if(remedy));
    }
    Ok(())
}

/// Drops the originals of a session: what is committed cannot be rolled back any more. If nothing is on the tree no rollback is lost: the
/// next commit begins a checkpoint of its own, which is kept.
pub fn drop_checkpoint(fs: &Fs, session: &mut Locked) -> Result<(), Error> {
    let mut header = session.header.clone();
    if header.counts.inside > 0 {
        header.checkpoint = Checkpoint::Pruned;
    }
    (header.sizes.checkpoint, header.sizes.displaced) = (0, 0);
    let id = session.id().clone();
    let not_all = |why: Error| {
        not_emptied(
            format!("the checkpoint of session {id} is given up"),
            why,
            command(format_args!("prune --checkpoints {id}")) + " removes the rest",
        )
    };
    give_up(fs, session, header, &[], not_all)?;
    drop_reserve(fs, &session.dir).map_err(|why| not_all(why.into()))
}

fn empty(fs: &Fs, dir: &Dir, below: &[u8]) -> Result<(), IoError> {
    let directory = match dir.open_below(below) {
        Ok(directory) => directory,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for name in directory.names()? {
        fs.remove_all(directory.at(&name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::session::header::{Counts, Origin};
    use crate::session::prune_sessions::*;

    #[test]
    fn the_oldest_go_first_and_every_condition_has_to_hold() {
        let headers: Vec<Header> = (0..5_i64)
            .map(|i| {
                let id = Id::parse(&format!("20260301-10150{i}-k3fa")).unwrap();
                Header::new(id, i.unsigned_abs(), Origin::Staged, Time { s: i * 100, ns: 0 })
            })
            .collect();
        let headers: Vec<&Header> = headers.iter().collect();
        let now = Time { s: 500, ns: 0 };
        let pick = |which| choose(&headers, which, now, |_| 10).iter().map(|h| h.seq).collect::<Vec<_>>();
        assert_eq!(pick(Which::default()), [0, 1, 2, 3, 4]);
        assert_eq!(pick(Which { keep: Some(2), ..Which::default() }), [0, 1, 2]);
        assert_eq!(pick(Which { keep: Some(9), ..Which::default() }), [0_u64; 0]);
        assert_eq!(pick(Which { older_than: Some(250), ..Which::default() }), [0, 1, 2]);
        assert_eq!(pick(Which { max_size: Some(35), ..Which::default() }), [0, 1]);
        assert_eq!(pick(Which { max_size: Some(35), older_than: Some(450), ..Which::default() }), [0]);
    }

    #[test]
    fn what_is_on_the_tree_and_can_be_taken_back_is_not_discarded() {
        let id = Id::parse("20260301-101500-k3fa").unwrap();
        let mut header = Header::new(id, 1, Origin::Staged, Time::default());
        for ((changes, inside, ever_in), checkpoint, may) in [
            ((3, 0, 0), Checkpoint::Kept, true),
            ((3, 0, 3), Checkpoint::Kept, true),
            ((3, 1, 3), Checkpoint::Kept, false),
            ((3, 3, 3), Checkpoint::Kept, false),
            ((3, 1, 3), Checkpoint::Pruned, true),
            ((3, 3, 3), Checkpoint::Pruned, false),
        ] {
            (header.counts, header.checkpoint) = (Counts { changes, inside, ever_in }, checkpoint);
            assert_eq!(refuse_discard(&header).is_ok(), may, "{:?} {checkpoint:?}", header.counts);
        }
        header.discarded = Some(Time::default());
        assert!(refuse_discard(&header).is_err());
    }
}
