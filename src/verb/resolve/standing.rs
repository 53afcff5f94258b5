//! How a session stands: its status, with its conditions.

use crate::error::Error;
use crate::session::{Counts, Failed, Header, Id, Session, Status, Store};

/// The sessions among those with a journal whose operation was cut off. While an operation runs, its lock is held.
pub fn cut_off(store: &Store, mut journaled: Vec<Id>) -> Vec<Id> {
    journaled.retain(|id| !store.session(id).is_ok_and(|session| is_held(&session)));
    journaled
}

/// True if another recant has the session's lock.
pub fn is_held(session: &Session) -> bool {
    session.is_held().is_ok_and(|held| held)
}

/// The facts about a session that a listing shows beside its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub word: &'static str,
    pub imported: bool,
    /// Its run has ended and waits to be collected.
    pub ended: bool,
    pub failed: Option<Failed>,
    /// Its content may not have reached the disk.
    pub unsynced: bool,
    pub interrupted: bool,
    /// The number of paths where an interrupted operation could not be taken back.
    pub left: usize,
    pub counts: Counts,
}

impl Standing {
    /// Finds the standing of a session.
    pub fn now(store: &Store, header: &Header) -> Result<Self, Error> {
        Self::of(store, header, &cut_off(store, store.journaled()?))
    }

    pub fn of(store: &Store, header: &Header, cut_off: &[Id]) -> Result<Self, Error> {
        let interrupted = cut_off.contains(&header.id);
        let (word, imported) = (header.status().word(), header.imported.is_some());
        let (unsynced, left) = (header.unsynced, header.left.len());
        let failed = header.failed.filter(|_| header.status() == Status::Pending);
        let counts = header.counts;
        let mut standing = Self { word, imported, ended: false, failed, unsynced, interrupted, left, counts };
        if header.uncollected && header.discarded.is_none() {
            let session = store.session(&header.id)?;
            if !session.is_held()? {
                (standing.word, standing.ended) = ("pending", true);
                standing.failed = Failed::of(None, None);
                standing.unsynced |= session.of_another_boot()?;
            }
        }
        Ok(standing)
    }
}
