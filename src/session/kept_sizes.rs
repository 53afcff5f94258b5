//! `sizes`, in the store: the room that its sessions take on the disk, as it was counted since each changed last. A hint, not synced and
//! not exported: a session that it does not tell of, or tells of as it was before a change, is counted.
//!
//! Every change of a session replaces its header, whose time `changed` is then another one: by it a size is believed, unless an operation
//! is under way or was cut off. None is kept that was counted while somebody was at work in the session.
//!
//! Counting at each look was 62 of 65 system calls a session. In the header the number would have to be known before the seal, when half of
//! what it counts is still to move; and a sum of changes drifts from what du(1) says.

use std::collections::{HashMap, HashSet};

use super::header::Header;
use super::id::Id;
use super::open_session::{Locked, read_small};
use super::prune_sessions::bytes_used;
use super::store::Store;
use super::temporary::is_among;
use crate::error::Error;
use crate::fs::{Fs, Lock, Time, exact_now};
use crate::tree::{Hash, is_young};

const NAME: &[u8] = b"sizes";
/// Its name while it is written.
const TEMPORARY: &[u8] = b"sizes.new";
/// The bytes that it has at most: of a million sessions and more.
const LIMIT: u64 = 64 << 20;
const MAGIC: &[u8; 16] = b"recant-sizes  1\n";
const HASH: usize = 32;
/// The bytes of an id, and those of what is told about its session.
const ID: usize = 20;
const COUNTED: usize = 21;
/// The number of paths from which whoever changes them counts.
const MANY: u64 = 10_000;

/// The room that a session takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Bytes on disk, as du(1) counts.
    pub bytes: u64,
    /// True if something is in `displaced/`.
    pub displaces: bool,
}

/// Finds the sizes of these sessions: all of the store, or those that it shows.
///
/// # Errors
/// A session cannot be read.
pub fn sizes(fs: &Fs, store: &Store, headers: &[Header]) -> Result<Vec<Size>, Error> {
    let mut kept = Kept::read(store);
    let journals = store.journals().names()?;
    kept.known.retain(|id, _| !journals.iter().any(|journal| journal.starts_with(id)));
    let sizes = headers.iter().map(|header| kept.size(store, header)).collect::<Result<_, _>>()?;
    if kept.has_news && store.only.is_none() {
        kept.forget_all_but(headers);
        kept.write(fs, store);
    }
    Ok(sizes)
}

impl Locked {
    /// Counts the bytes on disk of the session after that many paths were changed in it, if the next look at the store would take long
    /// to. Where that fails, it does.
    pub fn keep_size(&self, fs: &Fs, store: &Store, paths: u64) {
        if paths >= MANY
            && let Ok(size) = count(store, self.id())
        {
            let mut kept = Kept::read(store);
            kept.known.insert(key(&self.header), Counted { changed: self.header.changed, size });
            kept.write(fs, store);
        }
    }
}

fn count(store: &Store, id: &Id) -> Result<Size, Error> {
    let displaced = store.sessions().open_below(format!("{id}/displaced").as_bytes());
    // One that cannot be read may have something in it.
    let displaces = match displaced.and_then(|displaced| displaced.names()) {
        Ok(names) => !names.is_empty(),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    };
    Ok(Size { bytes: bytes_used(store, id)?, displaces })
}

/// When a session had changed last, and the room that it took then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    changed: Time,
    size: Size,
}

/// The sizes that are known, by the ids of their sessions.
#[derive(Debug, Default)]
struct Kept {
    known: HashMap<[u8; ID], Counted>,
    has_news: bool,
}

impl Kept {
    /// Reads them; none if they cannot be believed.
    fn read(store: &Store) -> Self {
        let bytes = read_small(store.dir.at(NAME), LIMIT).ok().flatten().unwrap_or_default();
        Self { known: parse(&bytes).unwrap_or_default(), has_news: false }
    }

    /// The size of a session, counted if it is not known.
    fn size(&mut self, store: &Store, header: &Header) -> Result<Size, Error> {
        let id = key(header);
        if let Some(known) = self.known.get(&id).filter(|known| known.changed == header.changed && !header.uncollected) {
            return Ok(known.size);
        }
        let before = at_rest(store, header).filter(|changed| !is_young(*changed, exact_now()));
        let size = count(store, &header.id)?;
        if before.is_some() && at_rest(store, header) == before {
            self.known.insert(id, Counted { changed: header.changed, size });
            self.has_news = true;
        }
        Ok(size)
    }

    fn forget_all_but(&mut self, headers: &[Header]) {
        let there: HashSet<_> = headers.iter().map(key).collect();
        self.known.retain(|id, _| there.contains(id));
    }

    /// Writes them. Where that fails, what was counted is counted again.
    fn write(&self, fs: &Fs, store: &Store) {
        if fs.replace_later(store.dir.at(NAME), &to_bytes(&self.known)).is_err() {
            drop(fs.unlink_if_there(store.dir.at(TEMPORARY)));
        }
    }
}

fn key(header: &Header) -> [u8; ID] {
    header.id.as_str().as_bytes().try_into().expect("an id has 20 characters")
}

/// When a name in a session's directory was changed last; `None` if somebody is at work in it, or what is there is not all that
/// its header tells of.
fn at_rest(store: &Store, header: &Header) -> Option<Time> {
    let dir = store.session_dir(&header.id).ok()?;
    let changed = dir.stat().ok()?.ctime;
    let now = store.header_in(&dir, &header.id).ok()?;
    let has_journal = is_among(&store.journals().names().ok()?, &header.id);
    let is_held = Lock::is_held(dir.at(b"lock")).ok()?;
    (now.changed == header.changed && !now.uncollected && !has_journal && !is_held).then_some(changed)
}

fn parse(bytes: &[u8]) -> Option<HashMap<[u8; ID], Counted>> {
    let (rest, hash) = bytes.split_last_chunk::<HASH>()?;
    let rows = rest.strip_prefix(MAGIC)?;
    if Hash::of(rest).0 != *hash {
        return None;
    }
    let row = |row: &[u8]| {
        let (id, row) = row.split_first_chunk::<ID>()?;
        let (s, row) = row.split_first_chunk()?;
        let (ns, row) = row.split_first_chunk()?;
        let (bytes, displaces) = row.split_first_chunk()?;
        let changed = Time { s: i64::from_le_bytes(*s), ns: u32::from_le_bytes(*ns) };
        let size = Size { bytes: u64::from_le_bytes(*bytes), displaces: displaces == [1] };
        Some((*id, Counted { changed, size }))
    };
    rows.chunks(ID + COUNTED).map(row).collect()
}

fn to_bytes(known: &HashMap<[u8; ID], Counted>) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for (id, Counted { changed, size }) in known {
        bytes.extend(id);
        bytes.extend(changed.s.to_le_bytes());
        bytes.extend(changed.ns.to_le_bytes());
        bytes.extend(size.bytes.to_le_bytes());
        bytes.push(size.displaces.into());
    }
    let hash = Hash::of(&bytes);
    bytes.extend(hash.0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(n: u8) -> HashMap<[u8; ID], Counted> {
        let size = |n: u8| Size { bytes: u64::from(n) << 40, displaces: n % 2 == 1 };
        let counted = |n: u8| Counted { changed: Time { s: i64::from(n) - 3, ns: 7 }, size: size(n) };
        (0..n).map(|n| ([b'a' + n; ID], counted(n))).collect()
    }

    #[test]
    fn sizes_are_read_as_they_were_written() {
        for n in [0, 1, 9] {
            assert_eq!(parse(&to_bytes(&known(n))), Some(known(n)), "{n} sessions");
        }
    }

    #[test]
    fn nothing_counts_of_what_is_torn_or_has_a_bit_flipped() {
        let bytes = to_bytes(&known(3));
        (0..bytes.len()).for_each(|end| assert_eq!(parse(&bytes[..end]), None, "torn behind {end} bytes"));
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(parse(&bytes), None, "bit {bit}");
        }
    }
}
