//! The changes in uppers, while these are read.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use super::facts::Facts;
use super::modes::Modes;
use crate::fs::Fs;
use crate::fs::device_number::Dev;
use crate::fs::path::AbsPath;
use crate::session::change::{Change, DirectoryTime};
use crate::tree::hash::Hash;
use crate::tree::state::State;

pub(super) struct Found<'a> {
    pub(super) facts: &'a Facts<'a>,
    pub(super) fs: &'a Fs,
    pub(super) modes: Modes<'a>,
    pub(super) list: Vec<Change>,
    pub(super) times: Vec<DirectoryTime>,
    pub(super) warnings: Vec<String>,
    /// Objects of the uppers with several names, with the change for each name.
    pub(super) groups: HashMap<(Dev, u64), Vec<Linked>>,
    /// Copied-up objects whose original is gone: see [`Found::mark_removed`].
    pub(super) gone: Vec<Gone>,
    pub(super) needless: Vec<AbsPath>,
    /// The directories whose time before is that of a sealed upper.
    pub(super) held_times: HashSet<AbsPath>,
    /// Uppers that were made before the command, each directory before its content.
    pub(super) laid: Vec<LaidUpper>,
    /// Real files with several names: the names that changed.
    pub(super) names: HashMap<(Dev, u64), Vec<AbsPath>>,
    /// True if a directory was renamed.
    pub(super) redirected: Cell<bool>,
}

pub(super) struct Linked {
    pub(super) change: Change,
    /// True if this name gets another object, so that the others must get it too.
    pub(super) moves: bool,
    /// True if it is a change even without the link.
    pub(super) counts: bool,
    /// True if an opaque directory of the upper hides what lies below.
    pub(super) hidden: bool,
    /// True if the original has further names, from which this one parts if it gets another object.
    pub(super) has_others: bool,
}

/// An object of the upper, copied up from one that is gone.
pub(super) struct Gone {
    pub path: AbsPath,
    /// The state in the upper, with a file's content if it can be read.
    pub state: State,
    pub hash: Option<Hash>,
}

/// An upper that was found.
pub(super) struct LaidUpper {
    pub path: AbsPath,
    /// Its path below the session's `held` directory.
    pub upper: Vec<u8>,
}
