//! The part of a session that the words of a call name.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::compare::blocks::numbers;
use crate::compare::{Choice, Entries, Sources, Taken};
use crate::engine::Rules;
use crate::engine::plan::choose;
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Change, Changes, Id, Session, Side, Sort};
use crate::tree::{Object, State};
use crate::verb::error;
use crate::verb::resolve::named_changes::TypedPath;

/// The word that stands for a file's metadata among the numbers of its blocks.
pub const META: &str = "m";

/// The changes of which something is taken, by index in path order, and what.
pub type Selection = BTreeMap<usize, Taken>;

/// A word of a call: a path, or one with the numbers of blocks behind it.
struct Word {
    path: AbsPath,
    numbers: Option<String>,
}

impl Word {
    /// Reads a word. A path that really ends like a list of blocks wins, unless there is a change with such blocks as well: a command may
    /// have made the one so that somebody takes it for the other.
    fn read(word: &TypedPath, changes: &Changes) -> Result<Self, Error> {
        let path = changes.named(word.path())?;
        let Some((of, numbers)) = split(word.path()) else { return Ok(Self { path, numbers: None }) };
        let of = changes.named(of)?;
        let is_changed = |path: &AbsPath| !changes.under(path).is_empty();
        match (is_changed(&path), is_changed(&of)) {
            (true, true) => Err(error::two_meanings(&path, &of)),
            (false, _) if path.as_path().symlink_metadata().is_err() => Ok(Self { path: of, numbers: Some(numbers.to_owned()) }),
            _ => Ok(Self { path, numbers: None }),
        }
    }
}

/// Splits `PATH:2,5-7` or `PATH:m`. `None` for other words.
fn split(word: &Path) -> Option<(&Path, &str)> {
    let bytes = word.as_os_str().as_bytes();
    let colon = bytes.iter().rposition(|byte| *byte == b':')?;
    let numbers = std::str::from_utf8(&bytes[colon + 1..]).ok()?;
    let is_list = !numbers.is_empty() && numbers.bytes().all(|byte| byte.is_ascii_digit() || b",-m".contains(&byte));
    let is_named = colon > 0 && bytes[colon - 1] != b'/';
    (is_named && is_list).then(|| (Path::new(OsStr::from_bytes(&bytes[..colon])), numbers))
}

/// True for a word that names blocks, unless it is a path that ends so.
pub fn may_name_blocks(word: &TypedPath) -> bool {
    split(word.path()).is_some()
}

/// True if one of the words names blocks.
///
/// # Errors
/// Those of a path that cannot be resolved.
pub fn names_blocks(words: &[TypedPath], changes: &Changes) -> Result<bool, Error> {
    for word in words {
        if Word::read(word, changes)?.numbers.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The part that the words name: whole changes at and under a path, or blocks of one.
///
/// # Errors
/// A path that is not in the session; one with numbers that has no such blocks (2).
pub fn named(
    id: &Id,
    (changes, sides): (&Changes, &[Side]),
    words: &[TypedPath],
    sources: &mut Sources<'_>,
) -> Result<Selection, Error> {
    let mut selection = Selection::new();
    let mut parts: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for word in words {
        let Word { path, numbers } = Word::read(word, changes)?;
        let under = changes.under(&path);
        if under.is_empty() {
            return Err(error::not_in_session(id, changes, &path));
        }
        match numbers {
            None => selection.extend(under.map(|i| (i, Taken::Whole))),
            Some(_) if changes.list[under.start].path != path => return Err(error::no_blocks(id, &path)),
            Some(numbers) => parts.entry(under.start).or_default().extend(numbers.split(',').map(str::to_owned)),
        }
    }
    for (i, words) in parts {
        if !selection.contains_key(&i)
            && let Some(taken) = of_blocks(id, (&changes.list[i], sides[i]), &words, sources)?
        {
            selection.insert(i, taken);
        }
    }
    Ok(selection)
}

/// The way that the chosen changes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From what was there to what is held: a commit.
    Forth,
    /// From what is held, or on the tree, to what was there: a discard, a rollback.
    Back,
}

/// Makes a selection one that can be done by itself: a directory that others need to be in comes along, and one that goes stays if something
/// below it does. `may`: what is to be chosen from. Returns notes on both.
pub fn settle(changes: &Changes, way: Way, may: impl Fn(usize) -> bool, selection: &mut Selection) -> Vec<String> {
    let is_dir = |object: &Object| object.as_ref().is_some_and(State::is_dir);
    let turns = |i: usize| {
        let change = &changes.list[i];
        let (from, to) = (is_dir(&change.before.object), is_dir(&change.after));
        if way == Way::Forth { (from, to) } else { (to, from) }
    };
    let mut notes = Vec::new();
    // What stays leaves what lies below it as it is: the deepest first.
    for i in (0..changes.list.len()).rev().filter(|i| turns(*i) == (true, false)) {
        let path = &changes.list[i].path;
        let stays = changes.under(path).find(|k| *k != i && may(*k) && !selection.contains_key(k));
        if let Some(stays) = stays.filter(|_| selection.remove(&i).is_some()) {
            notes.push(error::stays_with(path, &changes.list[stays].path));
        }
    }
    for i in selection.keys().copied().collect::<Vec<_>>() {
        for above in std::iter::successors(changes.list[i].path.parent(), AbsPath::parent) {
            let Ok(k) = changes.list.binary_search_by(|change| change.path.cmp(&above)) else { continue };
            if turns(k) == (false, true) && may(k) && selection.insert(k, Taken::Whole).is_none() {
                notes.push(error::comes_with(&above, &changes.list[i].path));
            }
        }
    }
    notes
}

/// Has all names of a file come along that one of is taken whole, in the session or on the tree. Returns notes.
///
/// # Errors
/// What the session holds, or the tree has, cannot be looked at.
pub fn with_names(session: &Session, changes: &Changes, selection: &mut Selection) -> Result<Vec<String>, Error> {
    let run = session.run()?;
    let lies = |i: usize| Session::held_at(&changes.list[i], Side::Never, run.as_ref());
    let whole = selection.iter().filter(|(_, taken)| **taken == Taken::Whole).map(|(i, _)| *i).collect();
    let rules = Rules { may: &|_| true, needed: &|_| false, lies: &lies };
    let choose::Choice { chosen, notes } = choose::with_needed(session, changes, whole, &rules)?;
    selection.extend(chosen.into_iter().map(|i| (i, Taken::Whole)));
    Ok(notes)
}

/// The part of a change that these words take, each a number, a range or `m`; `None` if that is nothing.
fn of_blocks(
    id: &Id,
    (change, side): (&Change, Side),
    words: &BTreeSet<String>,
    sources: &mut Sources<'_>,
) -> Result<Option<Taken>, Error> {
    let path = &change.path;
    let text = match Entries::of(change, side, sources)? {
        Entries::Text(text) => text,
        Entries::Changed => return Err(error::blocks_changed(id, path, side.is_in())),
        Entries::Whole(_) if change.sort() == Sort::Metadata && words.iter().all(|word| word == META) => {
            return Ok(Some(Taken::Whole));
        }
        Entries::Whole(why) => return Err(error::is_whole(id, path, why)),
    };
    let meta = words.contains(META);
    if meta && text.meta.is_empty() {
        return Err(error::has_metadata(id, path));
    }
    let list: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != META).collect();
    let count = text.blocks().list().len();
    let numbers = match &list[..] {
        [] => BTreeSet::new(),
        list => numbers::parse(&list.join(","), count).map_err(|error| error::takes_no_blocks(id, path, &error.to_string()))?,
    };
    Ok(text.taken(Choice::of_blocks(numbers), meta))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_split_where_all_behind_the_last_colon_is_a_list() {
        for (word, wanted) in [
            ("a:2", Some(("a", "2"))),
            ("a/b.rs:2,5-7,m", Some(("a/b.rs", "2,5-7,m"))),
            ("a:2:3", Some(("a:2", "3"))),
            ("a:", None),
            (":2", None),
            ("a/:2", None),
            ("a:x", None),
            ("a", None),
            ("C:m/x", None),
        ] {
            assert_eq!(split(Path::new(word)), wanted.map(|(path, numbers)| (Path::new(path), numbers)), "{word}");
        }
    }
}
