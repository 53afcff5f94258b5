//! A snapshot in the making.

use std::collections::HashMap;

use crate::fs::{AbsPath, Dev, Sort, Stat, Time};
use crate::snapshot::content::Keeping;
use crate::snapshot::hashing::Hashing;
use crate::snapshot::index::{Index, Known, Making};
use crate::snapshot::manifest::{At, Counts, Entry, PathLine, Writing};
use crate::snapshot::previous_objects::Peeked;
use crate::snapshot::rules::Why;
use crate::snapshot::series::Series;
use crate::tree::Hash;

/// A snapshot in the making.
pub(super) struct Taking<'a> {
    pub(super) series: &'a Series,
    pub(super) index: Option<&'a Index>,
    pub(super) last: Option<u64>,
    /// The objects that the snapshot before saw.
    pub(super) old: Peeked<'a, Known>,
    /// The differences of the snapshot before from the base.
    pub(super) own: Peeked<'a, PathLine>,
    pub(super) writing: Writing<'a>,
    pub(super) making: Making,
    pub(super) keeping: Keeping<'a>,
    pub(super) hashing: Hashing,
    /// The time when the snapshot before began: most older content is known from it.
    pub(super) read_before: Option<Time>,
    /// The time until when all that existed at the snapshot before was born.
    pub(super) existed: Option<Time>,
    pub(super) tells_moves: bool,
    pub(super) learned: bool,
    /// True once an object was met that the index does not vouch for: the next snapshot needs another one.
    pub(super) is_outdated: bool,
    pub(super) has_base: bool,
    /// The first name of each inode that has several.
    pub(super) links: HashMap<(Dev, u64), First>,
    /// A directory of the walk that was gone, or unreadable, when it was looked at.
    pub(super) unknown: Option<AbsPath>,
    pub(super) counts: Counts,
    pub(super) changed: bool,
    pub(super) unread: Vec<(AbsPath, String)>,
    pub(super) left: Vec<(AbsPath, Why)>,
    pub(super) leaves_vcs: bool,
    pub(super) buffer: Vec<u8>,
}

/// The first name of an inode.
#[derive(Clone)]
pub(super) struct First {
    pub(super) path: AbsPath,
    pub(super) content: Content,
    /// The number of names met so far.
    pub(super) names: u32,
}

/// Content that need not be read, as long as the file has this stat.
#[derive(Clone, Copy)]
pub(super) struct Content {
    pub(super) stat: Stat,
    pub(super) hash: Option<Hash>,
    pub(super) at: Option<At>,
    pub(super) written: bool,
}

impl Content {
    pub(super) fn of(known: &Known, stat: &Stat) -> Self {
        Self { stat: *stat, hash: known.hash, at: known.at, written: known.written }
    }
}

/// The result of a look at an object.
pub(super) enum Seen {
    Whole {
        entry: Box<Entry>,
        stat: Stat,
        written: bool,
    },
    /// It could not be read, for this reason.
    Unread(String),
    Gone,
}

pub(super) fn has_several_names(stat: &Stat) -> bool {
    stat.nlink > 1 && stat.sort != Sort::Directory
}
