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

pub struct Found<'a> {
    pub facts: &'a Facts<'a>,
    pub fs: &'a Fs,
    pub modes: Modes<'a>,
    pub list: Vec<Change>,
    pub times: Vec<DirectoryTime>,
    pub warnings: Vec<String>,
    /// Objects of the uppers with several names, with the change for each name.
    pub groups: HashMap<(Dev, u64), Vec<Linked>>,
    /// Copied-up objects whose original is gone: see [`Found::mark_removed`].
    pub gone: Vec<Gone>,
    pub needless: Vec<AbsPath>,
    /// The directories whose time before is that of a sealed upper.
    pub held_times: HashSet<AbsPath>,
    /// Uppers that were made before the command, each directory before its content.
    pub laid: Vec<LaidUpper>,
    /// Real files with several names: the names that changed.
    pub names: HashMap<(Dev, u64), Vec<AbsPath>>,
    /// True if a directory was renamed.
    pub redirected: Cell<bool>,
}

pub struct Linked {
    pub change: Change,
    /// True if this name gets another object, so that the others must get it too.
    pub moves: bool,
    /// True if it is a change even without the link.
    pub counts: bool,
    /// True if an opaque directory of the upper hides what lies below.
    pub hidden: bool,
    /// True if the original has further names, from which this one parts if it gets another object.
    pub has_others: bool,
}

/// An object of the upper, copied up from one that is gone.
pub struct Gone {
    pub path: AbsPath,
    /// The state in the upper, with a file's content if it can be read.
    pub state: State,
    pub hash: Option<Hash>,
}

/// An upper that was found.
pub struct LaidUpper {
    pub path: AbsPath,
    /// Its path below the session's `held` directory.
    pub upper: Vec<u8>,
}
