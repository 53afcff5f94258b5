//! Items: one planned path of an operation each. They are the lines of the journal, and all that memory holds of an operation. Steps,
//! places and reports follow from them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::job::Verb;
use super::place_in_session::{SessionPlace, is_place};
use super::step::{Act, Places, Spot, Step};
use crate::checkpoint::Kept;
use crate::fs::{AbsPath, Inode, Sort};
use crate::session::{Id, Side, object_name, set_mode};
use crate::tree::{Seen, State};

/// One path of an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// The index of the change among the session's, in path order.
    pub index: u32,
    pub n: u32,
    pub path: AbsPath,
    pub act: Act,
    /// The object at the path before, as planning saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Seen>,
    /// The object that the path is to hold at last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Seen>,
    /// The place of `to` below the session's directory; `None` where Prepare makes it from the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<SessionPlace>,
    /// The file on the tree that a commit or redo gives a further name: `to`, in place of what is `held`, which stays in the session. In a
    /// rollback `from` is that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Box<AbsPath>>,
    /// The directory of the temporary name, `.recant-<session>-<n>`, where objects have to be copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Box<AbsPath>>,
    /// A new directory as it is placed. Its last step sets what is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed: Option<Box<State>>,
    pub kept: Kept,
    /// The side that the change is on afterwards.
    pub side: Side,
    /// True if `from` was found, by `--force`, in place of what was expected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
    /// True if `from` is a directory that `--force` moves out with all that is in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// True if `from` is a directory of the user's own that is opened for the work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub opened: bool,
    /// True if Prepare makes what is placed, so that undo removes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fresh: bool,
    /// True if it is copied, taken away and placed, and its content tells it apart ([`Road`](super::plan::road::Road)).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub portable: bool,
    /// True if it is removed, and made, in the path's own directory, each by its step: no rename leads there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_place: bool,
    /// Facts for planning alone.
    #[serde(skip)]
    pub planning: Planning,
}

/// Facts that planning alone needs of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Planning {
    /// The kind of object that was expected.
    pub expected: Option<Sort>,
    /// True if the path's directory is there now.
    pub in_directory: bool,
    /// True if `to` lies in the store with exactly the recorded metadata: nothing is to be set.
    pub as_recorded: bool,
    /// True if `to` lies in the store with the recorded owner.
    pub owned: bool,
    /// The xattr that overlayfs left on `to`, if removing it is all that is to be done.
    pub mark: Option<&'static [u8]>,
    /// True if `to` is put with the metadata that it has, as it shares it with names on the tree.
    pub as_it_is: bool,
    /// True if planning read content whose hash the session does not have yet.
    pub learned: bool,
    /// True if the path is a mount point: only its metadata can be set.
    pub mounted: bool,
    /// True if the path's directory is encrypted by its file system.
    pub encrypted: bool,
    pub there: Option<Inode>,
    /// True if `to` is what a forced rollback took off the tree.
    pub gives_back: bool,
    /// The inode in the store that is wanted, if it has several names.
    pub shared_in_store: Option<Inode>,
}

impl Item {
    /// The inode at the path, if it has several names.
    pub fn shared(&self) -> Option<Inode> {
        self.planning.there.filter(|_| !self.was_dir() && self.from.as_ref().is_some_and(|from| from.nlink > 1))
    }

    /// True if a directory is at the path.
    pub fn was_dir(&self) -> bool {
        self.from.as_ref().is_some_and(|seen| seen.state.is_dir())
    }

    pub fn becomes_directory(&self) -> bool {
        self.to.as_ref().is_some_and(|seen| seen.state.is_dir())
    }

    pub fn leaves_directory(&self) -> bool {
        self.moves() && self.was_dir() && !self.becomes_directory()
    }

    /// True if a last step of its own sets metadata.
    fn is_finished(&self) -> bool {
        self.act == Act::SetMeta || self.moves() && self.becomes_directory()
    }

    pub fn moves(&self) -> bool {
        matches!(self.act, Act::Place | Act::Replace | Act::Remove)
    }

    /// True if two names cannot swap: `from` goes out first, then `to` comes.
    pub fn is_parted(&self) -> bool {
        self.portable && self.act == Act::Replace
    }

    /// True if what goes is removed in place and made again by an undo: not every file system renames a directory.
    pub fn made_again(&self) -> bool {
        self.portable && self.was_dir() || self.in_place && self.from.is_some()
    }

    /// True if `verb` overwrites something by force and keeps it under `displaced/`. A commit makes it the `before`, where it can.
    pub fn displaces(&self, verb: Verb) -> bool {
        self.forced && self.from.is_some() && !(verb == Verb::Commit && self.teaches())
    }

    /// True if what was found by force is noted: by that a redo gives back what a rollback overwrote, or takes away what it put where
    /// nothing was.
    pub fn is_noted(&self, verb: Verb) -> bool {
        self.displaces(verb) || verb == Verb::Rollback && self.forced && self.side == Side::Lost
    }

    /// True if what a commit found by force is the `before` from now on.
    pub fn teaches(&self) -> bool {
        self.forced && !matches!(self.kept, Kept::Displaced { .. })
    }

    /// True if the recorded place of `to` can be trusted.
    pub fn lies_in_session(&self) -> bool {
        self.held.as_ref().is_none_or(|held| is_place(&held.place(self.n, &self.path)))
    }

    /// `to` as it is placed: a directory with the metadata in `placed`, all other objects as recorded.
    fn as_placed(&self) -> Option<Cow<'_, Seen>> {
        let to = self.to.as_ref()?;
        Some(match &self.placed {
            Some(placed) => Cow::Owned(Seen { state: State::clone(placed), ..to.clone() }),
            None => Cow::Borrowed(to),
        })
    }

    /// `from`, with the mode that it has while opened.
    fn as_opened(&self) -> Option<Cow<'_, Seen>> {
        let from = self.from.as_ref()?;
        Some(if self.opened { Cow::Owned(opened_up(from)) } else { Cow::Borrowed(from) })
    }
}

/// A directory with `u+rwx`, in its ACL as well.
pub fn opened_up(directory: &Seen) -> Seen {
    let mut open = directory.clone();
    set_mode(&mut open.state.meta, directory.state.meta.mode | 0o700);
    open
}

/// A directory of the user's own that lacks `u+rwx` and is worked in, or goes. It is opened for the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    pub path: AbsPath,
    #[serde(rename = "folder")]
    pub directory: Seen,
}

/// The facts that decide, beside an item, where its objects lie.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    pub session: &'a Id,
    pub verb: Verb,
    /// The generation that the operation leads to.
    pub generation: u64,
}

impl Frame<'_> {
    /// The places of an item's objects while they are not at its path.
    pub fn places(&self, item: &Item) -> Places {
        let held = || item.held.as_ref().map(|held| Spot::Session(held.place(item.n, &item.path)));
        match item.act {
            Act::SetMeta => return Places::default(),
            Act::Stay => return Places { spare: held(), ..Places::default() },
            Act::Place | Act::Replace | Act::Remove => {}
        }
        let beside = self.beside(item, "");
        let home = self.home(item).or_else(|| self.copy_for_undo(item));
        let (to, spare) = match (&item.to, &beside) {
            (None, _) => (None, None),
            (Some(_), Some(beside)) => (Some(beside.clone()), held()),
            (Some(_), None) if self.gives_name(item) => (Some(further_name(item)), held()),
            (Some(_), None) => (Some(held().unwrap_or_else(|| Spot::Session(object_name(item.n)))), None),
        };
        let copied = beside.is_some() && item.from.is_some() && home.is_some();
        let out = match item.act {
            Act::Replace if item.is_parted() => self.beside(item, "-out"),
            Act::Replace => to.clone(),
            Act::Remove if item.in_place => self.beside(item, "-out"),
            Act::Remove => beside.or_else(|| home.clone()).or_else(|| Some(gone(item))),
            _ => None,
        };
        Places { to, out, home, copied, spare }
    }

    /// The place of a copied original, `from`, that somebody still has open (D12): beside the target. Its inode makes the name unique; a
    /// generation would not, as they begin anew where a session is imported or its store was copied back.
    pub fn aside(&self, item: &Item, from: &Seen) -> Option<Spot> {
        self.beside(item, &format!("-kept-{}", from.print.identity.ino))
    }

    pub fn beside(&self, item: &Item, kind: &str) -> Option<Spot> {
        let name = format!(".recant-{}-{}{kind}", self.session, item.n);
        // A name of recant's own is always one component.
        item.beside.as_ref().and_then(|directory| directory.join(name.as_bytes()).ok()).map(Spot::Tree)
    }

    /// The place of the copy that an undo needs of what is removed in place and is not kept by policy.
    pub fn copy_for_undo(&self, item: &Item) -> Option<Spot> {
        let is_needed = item.in_place && item.moves() && item.from.is_some() && self.home(item).is_none();
        is_needed.then(|| gone(item))
    }

    /// True if Prepare gives a file on the tree a further name.
    pub fn gives_name(&self, item: &Item) -> bool {
        self.verb.inward() && item.original.is_some()
    }

    /// The place where what comes off the tree is kept.
    fn home(&self, item: &Item) -> Option<Spot> {
        item.from.as_ref()?;
        let displaced = item.displaces(self.verb);
        let below = match self.verb {
            Verb::Rollback if displaced => self.displaced(item.n),
            // The session holds a copy, and the inode has another name: here it would be one more.
            Verb::Rollback if item.original.is_some() => return None,
            Verb::Rollback => object_name(item.n),
            Verb::Commit | Verb::Redo => item.kept.place(item.n)?,
        };
        Some(Spot::Session(below))
    }

    fn displaced(&self, n: u32) -> Vec<u8> {
        format!("displaced/{}/{n}", self.generation).into_bytes()
    }

    pub fn step<'i>(&self, turn: Turn, items: &'i [Item], opened: &'i [Opened]) -> Step<'i> {
        let set_meta =
            |path, from, to, at| Step { act: Act::SetMeta, path, from, to, at, whole: false, again: false, in_place: false };
        match turn {
            Turn::Open(i) => {
                let Opened { path, directory } = &opened[i as usize];
                set_meta(path, Some(Cow::Borrowed(directory)), Some(Cow::Owned(opened_up(directory))), Places::default())
            }
            Turn::Close(i) => {
                let Opened { path, directory } = &opened[i as usize];
                set_meta(path, Some(Cow::Owned(opened_up(directory))), Some(Cow::Borrowed(directory)), Places::default())
            }
            Turn::Move(i) => {
                let item = &items[i as usize];
                let (from, to, at) = (item.as_opened(), item.as_placed(), self.places(item));
                if item.is_parted() {
                    let at = Places { out: None, home: None, copied: false, ..at };
                    let (path, in_place) = (&item.path, item.in_place);
                    return Step { act: Act::Place, path, from: None, to, at, whole: false, again: false, in_place };
                }
                let again = item.act == Act::Remove && item.made_again();
                Step { act: item.act, path: &item.path, from, to, at, whole: item.whole, again, in_place: item.in_place }
            }
            Turn::Take(i) => {
                let item = &items[i as usize];
                let at = Places { to: None, spare: None, ..self.places(item) };
                let (from, again) = (item.as_opened(), item.made_again());
                Step { act: Act::Remove, path: &item.path, from, to: None, at, whole: item.whole, again, in_place: item.in_place }
            }
            Turn::Finish(i) => {
                let item = &items[i as usize];
                let to = item.to.as_ref().map(Cow::Borrowed);
                match item.act {
                    Act::SetMeta => set_meta(&item.path, item.as_opened(), to, Places::default()),
                    // Undo looks there for a directory that is not in its place.
                    _ => {
                        let at = Places { to: self.places(item).to, ..Places::default() };
                        set_meta(&item.path, item.as_placed(), to, at)
                    }
                }
            }
        }
    }
}

/// A place of its own in the session for what is not kept.
fn gone(item: &Item) -> Spot {
    Spot::Session(format!("held/objects/gone-{}", item.n).into_bytes())
}

/// A place of its own in the session for a further name of a file on the tree.
fn further_name(item: &Item) -> Spot {
    Spot::Session(format!("held/objects/name-{}", item.n).into_bytes())
}

/// One step in the order of all, by its item or opened directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    Open(u32),
    /// Takes out what is there, where it cannot swap names with what comes next.
    Take(u32),
    Move(u32),
    Finish(u32),
    /// Gives an opened directory its mode again.
    Close(u32),
}

/// Converts an index to the number of a change, item or opened directory. `Session::sides_of_all` refuses a session of more changes, and
/// there are no more of the others.
pub fn number(index: usize) -> u32 {
    u32::try_from(index).expect("a session has fewer than 2^32 changes")
}

/// The steps in their order (docs/ARCHITECTURE.md, Plan). Directories are opened; then all that comes, changes or goes, but directories
/// that go, in path order, so that a new directory comes before what lies in it; directories that go, deepest first; last the metadata,
/// deepest first. Both lists are in path order.
pub fn turns(items: &[Item], opened: &[Opened]) -> Vec<Turn> {
    let which = |which: fn(&Item) -> bool| (0..items.len()).filter(move |i| which(&items[*i])).map(number);
    let mut turns: Vec<Turn> = (0..opened.len()).map(|i| Turn::Open(number(i))).collect();
    turns.extend(which(|item| item.moves() && !item.leaves_directory()).map(Turn::Move));
    let mut going: Vec<Turn> = which(Item::leaves_directory).map(Turn::Move).collect();
    going.reverse();
    turns.append(&mut going);
    let mut last: Vec<Turn> = which(Item::is_finished).map(Turn::Finish).collect();
    // An opened directory that goes, or whose own metadata is set, is not closed again.
    let stays = |directory: &Opened| {
        let own = items.binary_search_by(|item| item.path.cmp(&directory.path)).ok().map(|i| &items[i]);
        !own.is_some_and(|item| item.is_finished() || item.moves() && item.was_dir())
    };
    last.extend((0..opened.len()).filter(|i| stays(&opened[*i])).map(|i| Turn::Close(number(i))));
    let path = |turn: &Turn| match turn {
        Turn::Take(i) | Turn::Move(i) | Turn::Finish(i) => &items[*i as usize].path,
        Turn::Open(i) | Turn::Close(i) => &opened[*i as usize].path,
    };
    last.sort_by(|a, b| path(b).cmp(path(a)));
    let parted = |turn: &Turn| match turn {
        Turn::Move(i) if items[*i as usize].is_parted() => Some(Turn::Take(*i)),
        _ => None,
    };
    if items.iter().any(Item::is_parted) {
        turns = turns.into_iter().flat_map(|turn| parted(&turn).into_iter().chain([turn])).collect();
    }
    turns.append(&mut last);
    turns
}
