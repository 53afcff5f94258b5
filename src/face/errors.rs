//! Errors as text, and the remedy that is the same for all verbs where a file system cannot be written to.

use anstyle::{AnsiColor, Style};

use super::figures::{filled, filled_remedy, grouped};
use crate::compare::{Names, cut, escape_terminal};
use crate::error::{Against, Error, command};
use crate::fs::{AbsPath, TooLarge};
use crate::remedy::{Remedy, words};

/// A reason why a file system cannot be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Barrier {
    /// No room, or no quota.
    Full,
    /// Mounted for reading only.
    ReadOnly,
    /// Not permitted.
    NotYours,
    /// An extended attribute is larger than the file system keeps.
    Attribute,
}

impl Barrier {
    /// The barrier by the system call at the bottom of an error.
    fn of(error: &Error) -> Option<Self> {
        let io = error.io()?;
        if io.get_ref().is_some_and(|error| error.is::<TooLarge>()) {
            return Some(Self::Attribute);
        }
        match io.raw_os_error()? {
            libc::ENOSPC | libc::EDQUOT => Some(Self::Full),
            libc::EROFS => Some(Self::ReadOnly),
            libc::EACCES | libc::EPERM => Some(Self::NotYours),
            _ => None,
        }
    }
}

/// Adds the remedy for a barrier to an error that has none. For the store it says what the path alone would not tell: that it is the
/// store's, and that another store can be named.
pub fn barred(error: Error, store: &AbsPath) -> Error {
    let Some(barrier) = Barrier::of(&error).filter(|_| error.advice().is_none()) else { return error };
    let path = error.path().and_then(|path| AbsPath::parse(path).ok());
    // A directory above the store, if the store could not be made.
    let is_its = |path: AbsPath| path.is_under(store) || store.is_under(&path) && !store.as_path().exists();
    let remedy = if path.is_some_and(is_its) { Some(of_store(barrier, store)) } else { of_tree(barrier, error.path()) };
    match remedy {
        Some(remedy) => error.with_remedy(remedy),
        None => error,
    }
}

fn of_store(barrier: Barrier, store: &AbsPath) -> Remedy {
    const OTHER: &str = "or use another store: --store DIR, RECANT_STORE";
    match barrier {
        Barrier::Full => {
            let room = words(format_args!("make room where the store is, {store}: "));
            room + command("status") + " shows what a prune frees; " + OTHER
        }
        Barrier::ReadOnly => {
            words(format_args!("the store, {store}, is on a read-only file system: mount it for writing, {OTHER}"))
        }
        Barrier::NotYours => words(format_args!("the store, {store}, has to be writable for you, {OTHER}")),
        Barrier::Attribute => "use a store on the file system of the file: --store DIR, RECANT_STORE".into(),
    }
}

fn of_tree(barrier: Barrier, path: Option<&str>) -> Option<Remedy> {
    let path = path?;
    match barrier {
        Barrier::Full => {
            Some(words(format_args!("make room on the file system of {path}, or raise the quota there, and try again")))
        }
        Barrier::ReadOnly => Some(words(format_args!("mount the file system of {path} for writing, and try again"))),
        // The message tells which right is missing.
        Barrier::NotYours | Barrier::Attribute => None,
    }
}

/// An error as text for standard error, without the last newline: the paths in the way, then what happened, what is true now and what to
/// do, a line each. Names the first `most` paths, as people read them, and counts the others. With `fill`, lines are at most 80 columns
/// wide, but for commands.
pub fn text(error: &Error, color: bool, names: &Names, most: usize, fill: bool) -> String {
    let broken = |line: String| if fill { filled(&line) } else { line };
    let style = if color { Style::new().bold().fg_color(Some(AnsiColor::Red.into())) } else { Style::new() };
    let mut text = String::new();
    let (shown, more) = cut(error.rows().len(), most);
    for Against { path, why } in &error.rows()[..shown] {
        text.push_str(&broken(one_line(&format!("{}: {why}", names.show_text(path)))));
        text.push('\n');
    }
    if more > 0 {
        text.push_str(&format!("… and {} more: -v names them all\n", grouped(more as u64)));
    }
    text.push_str(&format!("{style}recant:{style:#} {}", broken(one_line(error.message()))));
    let state = error.state().map(|state| broken(one_line(state)));
    let remedy = error.advice().map(|remedy| if fill { filled_remedy(remedy, 8) } else { one_line(&remedy.to_string()) });
    for line in state.into_iter().chain(remedy) {
        text.push_str("\n        ");
        text.push_str(&line);
    }
    text
}

/// Joins lines and shows control characters, so that a name cannot look like another line of the report or control a terminal.
fn one_line(text: &str) -> String {
    let line = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    escape_terminal::message(&line).into_owned()
}
