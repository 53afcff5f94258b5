//! Guesses afterwards what a run may have refused to a command that failed. The kernel counts no refused calls, and watching each one would
//! cost more than the run. So this looks at the places that the command was pointed at, its working directory and the paths among its
//! words, for what works without recant and is refused inside. A successful run is not examined.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::ids::{Ids, is_in, remedy};
use super::layout::Route;
use super::places::{may_write, stat};
use crate::fs::dir::{Dir, Sort, Stat};
use crate::fs::path::AbsPath;
use crate::session::run::{Coverage, How};

/// The most names of the working directory, and words of the command, that are looked at.
const LOOKED_AT: usize = 500;

/// The most reasons of one kind that are given.
const TOLD: usize = 3;

/// The reasons, one line each; empty if none was found.
pub(super) fn reasons(route: Route, ids: &Ids, cwd: &AbsPath, argv: &[OsString], coverage: &[Coverage]) -> Vec<String> {
    let looking = Looking { route, coverage, ids };
    let named = named(cwd, argv);
    let mut closed: Vec<String> = named.iter().filter_map(|path| looking.closed(path)).collect();
    let mut foreign: Vec<String> = Vec::new();
    if route == Route::User {
        foreign = here(cwd).into_iter().chain(named).filter_map(|path| looking.unmapped(&path)).collect();
    }
    let mut reasons = Vec::new();
    for list in [&mut closed, &mut foreign] {
        list.sort();
        list.dedup();
        let more = list.len().saturating_sub(TOLD);
        list.truncate(TOLD);
        if let Some(last) = list.last_mut().filter(|_| more > 0) {
            last.push_str(&format!(" (and {more} more like it)"));
        }
        reasons.append(list);
    }
    if route == Route::User && git_clones_a_directory(cwd, argv) {
        reasons.push(
            "git clone of a directory that was there before the run fails with 'hardlink different from source': a new name has \
             another inode number in the run; git clone --no-hardlinks works"
                .into(),
        );
    }
    reasons
}

struct Looking<'a> {
    route: Route,
    coverage: &'a [Coverage],
    ids: &'a Ids,
}

impl Looking<'_> {
    /// The reason for a path where the command could write without recant, but not in the run.
    fn closed(&self, path: &AbsPath) -> Option<String> {
        let row = self.coverage.iter().filter(|row| path.is_under(&row.path)).max_by_key(|row| row.path.depth())?;
        // A covered directory is read-only; the sockets and FIFOs in it are dead.
        let is_dead = || stat(path).is_some_and(|stat| matches!(stat.sort, Sort::Socket | Sort::Fifo));
        let how = if row.how == How::Masked && !is_dead() { How::ReadOnly } else { row.how };
        let what = match how {
            How::ReadOnly | How::Uncovered => "is read-only in the run",
            How::Hidden => "is hidden in the run",
            How::Masked => "is a socket or FIFO that is dead in the run",
            How::Captured | How::Passed | How::Private | How::Scratch => return None,
        };
        let directory =
            stat(path).filter(|stat| stat.sort == Sort::Directory).map_or_else(|| path.parent(), |_| Some(path.clone()))?;
        if matches!(how, How::ReadOnly | How::Uncovered) && !may_write(&directory) {
            return None;
        }
        let remedy = match (how, self.route) {
            (How::Masked, _) => format!("--pass {path} leaves it real"),
            (How::ReadOnly | How::Uncovered, Route::User) => {
                format!("capture.also = [\"{directory}\"] holds what is written there")
            }
            _ => row.why.clone().unwrap_or_default(),
        };
        Some(format!("{path} {what}: {remedy}"))
    }

    /// The reason for an object of another user, or of a group that the run's namespace does not map.
    fn unmapped(&self, path: &AbsPath) -> Option<String> {
        let stat = stat(path)?;
        // The top directory of a captured place is the upper's and may be changed; outside captured places owners do not matter.
        let row = self.coverage.iter().filter(|row| path.is_under(&row.path)).max_by_key(|row| row.path.depth())?;
        if row.how != How::Captured || row.path == *path {
            return None;
        }
        if self.ids.has(stat.uid, stat.gid) || stat.sort == Sort::Symlink || !self.may_write_to(&stat) {
            return None;
        }
        let fails = "changing it fails in the run with 'Value too large for defined data type'";
        Some(if stat.uid == self.ids.uid {
            format!("{path} belongs to group {}: {fails}; {}", stat.gid, remedy(Some(stat.gid)))
        } else {
            format!("{path} belongs to user {}: {fails}; {}", stat.uid, remedy(None))
        })
    }

    /// Tells whether the user may write to it without recant: access(2) of an existing object, links aside.
    fn may_write_to(&self, stat: &Stat) -> bool {
        let bits = if stat.uid == self.ids.uid {
            0o200
        } else if is_in(stat.gid) {
            0o020
        } else {
            0o002
        };
        stat.mode & bits != 0
    }
}

/// The names in the working directory.
fn here(cwd: &AbsPath) -> Vec<AbsPath> {
    let names = Dir::open(cwd.as_path()).and_then(|dir| dir.names()).unwrap_or_default();
    names.iter().take(LOOKED_AT).filter_map(|name| cwd.join(name).ok()).collect()
}

/// The paths among the command's words: whole words, and the part after a `=`.
fn named(cwd: &AbsPath, argv: &[OsString]) -> Vec<AbsPath> {
    let words = argv.iter().skip(1).take(LOOKED_AT).map(|word| word.as_bytes());
    let words = words.flat_map(|word| [Some(word), word.iter().position(|b| *b == b'=').map(|at| &word[at + 1..])]).flatten();
    let path = |word: &[u8]| {
        let whole = cwd.as_path().join(OsStr::from_bytes(word));
        let parent = std::fs::canonicalize(whole.parent()?).ok()?;
        AbsPath::parse(parent.join(whole.file_name()?).as_os_str().as_bytes()).ok()
    };
    words.filter(|word| word.contains(&b'/') || stat_name(cwd, word)).filter_map(path).collect()
}

/// Tells whether a word is a name in the working directory.
fn stat_name(cwd: &AbsPath, word: &[u8]) -> bool {
    cwd.join(word).is_ok_and(|path| stat(&path).is_some())
}

/// Recognizes `git clone` of a directory: the only program known to check that a hard link is one.
fn git_clones_a_directory(cwd: &AbsPath, argv: &[OsString]) -> bool {
    let [program, rest @ ..] = argv else { return false };
    program.as_bytes().ends_with(b"git")
        && rest.iter().find(|word| !word.as_bytes().starts_with(b"-")).is_some_and(|word| *word == "clone")
        && named(cwd, argv).iter().any(|path| stat(path).is_some_and(|stat| stat.sort == Sort::Directory))
}
