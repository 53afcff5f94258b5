//! The kinds of what is pruned of sessions, and what is lost with it.

use crate::error::Error;
use crate::fs::Fs;
use crate::session::{Header, Locked, Store, is_awaited, is_needed, prune_sessions};
use crate::verb::prunable::{Committed, keeps_overwritten, may_go, may_lose_checkpoint};

/// A kind of what is pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    #[default]
    Sessions,
    /// The originals that commits have kept, and what `--force` overwrote; the sessions stay.
    Checkpoints,
    /// The content of discarded sessions; their records stay.
    Discarded,
}

impl Kind {
    /// Tells whether a session may lose it without being named; a committed one as `committed` says.
    ///
    /// # Errors
    /// The session cannot be read.
    pub fn may_go(self, store: &Store, header: &Header, committed: Committed) -> Result<bool, Error> {
        match self {
            Self::Sessions => may_go(store, header, committed),
            Self::Checkpoints => Ok(header.sizes.checkpoint > 0 && may_lose_checkpoint(store, header, committed)?),
            Self::Discarded => Ok(header.is_aside()),
        }
    }

    /// Counts the bytes that it takes on disk.
    ///
    /// # Errors
    /// The session cannot be read.
    pub fn size(self, store: &Store, header: &Header) -> Result<u64, Error> {
        match self {
            Self::Sessions | Self::Discarded => prune_sessions::bytes_used(store, &header.id),
            Self::Checkpoints => Ok(header.sizes.checkpoint.saturating_add(header.sizes.displaced)),
        }
    }

    /// Counts the bytes that it takes of all these.
    ///
    /// # Errors
    /// One of the sessions cannot be read.
    pub fn sizes(self, store: &Store, headers: &[Header]) -> Result<u64, Error> {
        headers.iter().map(|header| self.size(store, header)).sum()
    }

    /// Finds what is lost with it.
    pub(super) fn losses(self, store: &Store, header: &Header) -> Result<Vec<Loss>, Error> {
        let held = self == Self::Sessions && is_awaited(header);
        let overwritten = keeps_overwritten(store, header)?;
        let losses = [(is_needed(header), Loss::Rollback), (held, Loss::Held), (overwritten, Loss::Overwritten)];
        let losses: Vec<Loss> = losses.into_iter().filter(|(is_lost, _)| *is_lost).map(|(_, loss)| loss).collect();
        Ok(if losses.is_empty() { vec![Loss::Redo] } else { losses })
    }

    pub(super) fn remove(self, fs: &Fs, store: &Store, mut session: Locked) -> Result<(), Error> {
        match self {
            Self::Sessions => store.remove_session(fs, session),
            Self::Checkpoints => prune_sessions::drop_checkpoint(fs, &mut session),
            Self::Discarded => prune_sessions::free(fs, &mut session),
        }
    }

    /// The option of `prune` for it.
    pub fn option(self) -> &'static str {
        match self {
            Self::Sessions => "--sessions",
            Self::Checkpoints => "--checkpoints",
            Self::Discarded => "--discarded",
        }
    }

    /// Its word for one session.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sessions => "session",
            Self::Checkpoints => "checkpoint",
            Self::Discarded => "discarded session",
        }
    }

    /// The verb in the log.
    pub(super) fn logged(self) -> String {
        if self == Self::Sessions { "prune".into() } else { format!("prune {}", self.option()) }
    }
}

/// The loss with sessions that are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Nothing but a redo.
    Redo,
    /// Their rollback.
    Rollback,
    /// The changes that they hold.
    Held,
    /// The objects that `--force` overwrote.
    Overwritten,
    /// All that is in them: they are damaged.
    Damaged,
}
