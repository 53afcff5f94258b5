//! The changes in uppers, while these are read.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::io;

use super::facts::Facts;
use super::open_up::Modes;
use super::tree_below::HELD;
use crate::error::IoError;
use crate::fs::{AbsPath, Dev, Entry, Fs, Sort};
use crate::session::{Before, Change, DirectoryTime, Marks};
use crate::tree::{Hash, Seen, State, observe};

pub struct UpperReader<'a> {
    pub facts: &'a Facts<'a>,
    pub fs: &'a Fs,
    pub modes: Modes<'a>,
    pub list: Vec<Change>,
    pub times: Vec<DirectoryTime>,
    pub warnings: Vec<String>,
    /// Objects of the uppers with several names, with the change for each name.
    pub groups: HashMap<(Dev, u64), Vec<LinkedChange>>,
    /// Copied-up objects whose original is gone: see [`UpperReader::mark_removed`].
    pub gone: Vec<RemovedOriginal>,
    pub needless: Vec<AbsPath>,
    /// The directories whose time before is that of a sealed upper.
    pub held_times: HashSet<AbsPath>,
    /// Uppers that were made before the command, each directory before its content.
    pub laid: Vec<LaidUpper>,
    /// Real files with several names: the names that changed.
    pub names: HashMap<(Dev, u64), Vec<AbsPath>>,
    /// Programs that are new at their paths and have lost their capability.
    pub programs: Vec<CopiedProgram>,
    /// True if a directory was renamed.
    pub redirected: Cell<bool>,
}

pub struct LinkedChange {
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
pub struct RemovedOriginal {
    pub path: AbsPath,
    /// The state in the upper, with a file's content if it can be read.
    pub state: State,
    pub hash: Option<Hash>,
}

/// A program of the upper that is new at its path, and has lost its real capability.
pub struct CopiedProgram {
    pub path: AbsPath,
    pub hash: Option<Hash>,
}

/// An upper that was found.
pub struct LaidUpper {
    pub path: AbsPath,
    /// Its path below the session's `held` directory.
    pub upper: Vec<u8>,
}

pub fn change(path: &AbsPath, before: Option<Seen>, after: Option<State>, marks: Marks, is_held: bool) -> Change {
    let (object, print) = before.map_or((None, None), |seen| (Some(seen.state), Some(seen.print)));
    let (print, from) = if is_held { (None, Some(HELD)) } else { (print, None) };
    Change { n: 0, path: path.clone(), before: Before { object, print }, after, marks, step: None, from, original: None }
}

/// Tells whether two states of one content are equal. git rewrites its index to remember what it has seen: that is no difference, and
/// neither is its time.
pub fn is_equal(before: &State, after: &State) -> bool {
    let same_time = before.meta.mtime == after.meta.mtime || before.means_same(after);
    before.meta_difference(after).is_none() && same_time
}

/// Adds the content's hash where the fingerprint proves nothing: its ctime is too young, or the file lies on overlayfs, where any change of
/// metadata makes another inode of it. A file that can't be read keeps the doubt, which is a conflict at commit.
pub fn with_hash(mut seen: Seen, at: Entry<'_>) -> Result<Seen, IoError> {
    if seen.state.sort() == Sort::File
        && (seen.print.racy || at.is_on_overlay()?)
        && let Some(hash) = hash(at)?
    {
        seen.set_hash(hash);
    }
    Ok(seen)
}

/// The hash of a file. `None` if its reader may not read it: the doubt remains, and that is a conflict.
pub fn hash(at: Entry<'_>) -> Result<Option<Hash>, IoError> {
    match observe::hash(at) {
        Ok((hash, _)) => Ok(Some(hash)),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        Err(error) => Err(error),
    }
}
