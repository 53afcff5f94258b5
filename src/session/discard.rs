//! Discarded sessions: put aside with all that they have, until they are brought back, or freed.
//!
//! **I22** A discard replaces the header, and touches nothing else of the session, whatever that holds; so does what brings it back. Freed,
//! it is a record: its content goes after the header says so (I12).

use super::error::not_now;
use super::header::Header;
use super::id::Id;
use super::open_session::Locked;
use super::prune_sessions;
use super::store::Store;
use crate::error::{At, Error, Kind, command};
use crate::fs::{Fs, Time};
use crate::remedy::Remedy;

/// Bytes of discarded sessions that are kept; the oldest over it are freed.
pub const MOST: u64 = 5 << 30;

/// Bytes that have to be free on the store's file system, else the oldest discarded sessions are freed.
const ROOM: u64 = 64 << 20;

impl Header {
    /// True if it is discarded and can be brought back.
    pub fn is_aside(&self) -> bool {
        self.discarded.is_some() && !self.freed
    }

    /// The reason why nothing can be done with it, and the remedy, for one that is discarded.
    pub fn why_discarded(&self) -> (&'static str, Option<Remedy>) {
        match self.freed {
            true => ("it is discarded, and its content is freed", None),
            false => ("it is discarded", Some(command(format_args!("undo {}", self.id.tail())) + " brings it back")),
        }
    }
}

impl Locked {
    /// Puts the session aside, durably. Nothing of a run that was cut off is collected for it.
    ///
    /// # Errors
    /// Changes of it are on the tree and can be taken back; it is discarded already. Nothing was changed.
    pub fn put_aside(&mut self, fs: &Fs) -> Result<(), Error> {
        prune_sessions::refuse_discard(&self.header)?;
        let acted = Some(self.act(fs)?);
        let header = Header { discarded: Some(crate::fs::now()), acted, ..self.header.clone() };
        self.save_at_last(fs, header, &[], &[])
    }

    /// Brings a discarded session back, durably. Returns its name, if another session has got that meanwhile: it comes back without.
    ///
    /// # Errors
    /// It is not discarded, or was freed. Nothing was changed.
    pub fn bring_back(&mut self, fs: &Fs, store: &Store) -> Result<Option<String>, Error> {
        if !self.header.is_aside() {
            let why = if self.header.freed { "it was discarded, and its content is freed" } else { "it is not discarded" };
            return Err(not_now(self.id(), why));
        }
        let acted = Some(self.act(fs)?);
        let _numbering = store.numbering(fs)?;
        let (headers, _) = store.every_header()?;
        let mut header = Header { discarded: None, acted, ..self.header.clone() };
        let others = || headers.iter().filter(|other| other.id != header.id);
        let taken = header.name.clone().filter(|name| store.name_is_free(others(), name, header.cwd.as_ref()).is_err());
        if taken.is_some() {
            header.name = None;
        }
        self.save_at_last(fs, header, &[], &[]).map(|()| taken)
    }
}

/// The number of discarded sessions to free, the oldest of `headers`: discarded `keep` seconds ago or earlier, or over [`MOST`] bytes.
fn overdue(headers: &[Header], keep: i64, now: Time) -> usize {
    let mut kept = 0_u64;
    let is_due = |header: &&&Header| {
        kept = kept.saturating_add(header.sizes.all());
        kept > MOST || header.discarded.is_some_and(|at| now.s.saturating_sub(at.s) >= keep)
    };
    by_age(headers).iter().filter(is_due).count()
}

/// The sessions that are aside, those first that were discarded last.
fn by_age(headers: &[Header]) -> Vec<&Header> {
    let mut aside: Vec<&Header> = headers.iter().filter(|header| header.is_aside()).collect();
    aside.sort_by_key(|header| std::cmp::Reverse(header.discarded.map(|at| (at.s, at.ns))));
    aside
}

impl Store {
    /// Frees discarded sessions that are overdue, and the oldest others while the store's file system is full. Returns their ids. What
    /// another recant holds waits for the next time.
    ///
    /// # Errors
    /// The sessions cannot be listed; one cannot be freed whole.
    pub fn free_overdue(&self, fs: &Fs, keep: i64) -> Result<Vec<Id>, Error> {
        let (headers, _) = self.headers()?;
        let (due, mut freed) = (overdue(&headers, keep, crate::fs::now()), Vec::new());
        for (i, header) in by_age(&headers).into_iter().rev().enumerate() {
            if i >= due && !self.is_full()? {
                break;
            }
            match self.lock_session(fs, &header.id) {
                Ok(mut session) if session.header.is_aside() => prune_sessions::free(fs, &mut session)?,
                Ok(_) => continue,
                Err(error) if error.kind() == Kind::Busy => continue,
                Err(error) => return Err(error),
            }
            freed.push(header.id.clone());
        }
        Ok(freed)
    }

    /// True if its file system has less than 64 MiB left, or less than a sixteenth of its size.
    fn is_full(&self) -> Result<bool, Error> {
        let found = rustix::fs::fstatvfs(&*self.dir).at("ask for the free room of", &self.path)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize) < ROOM.min(found.f_blocks.saturating_mul(found.f_frsize) / 16))
    }
}

#[cfg(test)]
mod tests {
    use crate::session::discard::*;
    use crate::session::header::{Origin, Sizes};

    #[test]
    fn the_oldest_go_by_age_and_by_amount() {
        let discarded = |(i, (at, held)): (usize, &(i64, u64))| {
            let id = Id::parse(&format!("20260301-10150{i}-k3fa")).unwrap();
            let sizes = Sizes { held: *held, ..Sizes::default() };
            let discarded = Some(Time { s: *at, ns: 0 });
            Header { sizes, discarded, ..Header::new(id, i as u64, Origin::Staged, Time::default()) }
        };
        for (of, due) in [
            (&[(100, 1), (200, 1), (300, 1)][..], 0),
            (&[(99, 1), (200, 1)], 0),
            (&[(50, 1), (0, 1), (200, 1)], 2),
            (&[(200, MOST), (300, 1)], 1),
            (&[(300, MOST), (200, 1)], 1),
            (&[(200, 1), (250, MOST), (300, 1)], 2),
        ] {
            let headers: Vec<Header> = of.iter().enumerate().map(discarded).collect();
            assert_eq!(overdue(&headers, 1000, Time { s: 1050, ns: 0 }), due, "{of:?}");
        }
    }
}
