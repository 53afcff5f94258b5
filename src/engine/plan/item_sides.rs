//! Fills in the two sides of an item, from the record and from what was seen.

use crate::checkpoint::Kept;
use crate::engine::item::{Item, Planning};
use crate::engine::job::Move;
use crate::engine::step::Act;
use crate::session::Side;
use crate::tree::{Fingerprint, Identity, Meta, Object, Seen, State, What};

/// Makes the item of a move that was not looked at yet.
pub fn unlooked(mv: &Move) -> Item {
    let expected = mv.from.as_ref().map(State::sort);
    Item {
        index: mv.index,
        n: mv.n,
        path: mv.path.clone(),
        act: Act::Stay,
        from: None,
        to: None,
        held: None,
        original: None,
        beside: None,
        placed: None,
        kept: Kept::Nothing,
        side: mv.side,
        forced: false,
        whole: false,
        opened: false,
        fresh: false,
        portable: false,
        in_place: false,
        planning: Planning { expected, gives_back: mv.gives_back, ..Planning::default() },
    }
}

/// Leaves the tree alone and turns the change to its other side. What would have come off the tree is gone: if it had content, that is
/// lost.
pub fn stays(mv: Move, item: &mut Item) {
    let is_file = |object: &Object| matches!(object, Some(State { what: What::File { .. }, .. }));
    if !mv.in_place && is_file(&mv.from) {
        item.kept = Kept::Uncovered { why: "it was already gone before the rollback".into() };
        if item.side == Side::Out {
            item.side = Side::Lost;
        }
    }
    if mv.in_place {
        item.kept = Kept::Metadata;
    }
    (item.from, item.to) = (mv.from.map(unmade), mv.to.map(unmade));
    item.held = mv.to_at;
}

/// True if content was read whose hash was not known.
pub fn learned(known: &Object, read: Option<&Seen>) -> bool {
    known.as_ref().is_some_and(|known| matches!(known.what, What::File { hash: None, .. }))
        && read.is_some_and(|read| read.state.hash().is_some())
}

/// The xattrs that overlayfs leaves on copies. Their values tell nothing.
pub const MARKS: [&[u8]; 2] = [b"trusted.overlay.origin", b"user.overlay.origin"];

/// The one xattr in which an object in an upper differs from the record, if it is one that overlayfs leaves on copies.
pub fn overlay_mark(held: &Meta, recorded: &Meta) -> Option<&'static [u8]> {
    let mark = MARKS.into_iter().find(|mark| held.xattr(mark).is_some() && recorded.xattr(mark).is_none())?;
    let rest = held.xattrs.iter().filter(|(name, _)| **name != *mark);
    let plain = |meta: &Meta| (meta.mode, meta.uid, meta.gid, meta.mtime);
    // An owner who may not write cannot remove a user.* xattr.
    (plain(held) == plain(recorded) && recorded.mode & 0o200 != 0 && rest.eq(&recorded.xattrs)).then_some(mark)
}

/// The `to` of an inode that stays, with its content: what is found by force, and its hash. A file that somebody has written to since
/// keeps its mtime, unless the mtime is what changes.
pub fn staying(from: &Seen, mut to: State, expected: Option<&State>, forced: bool) -> Seen {
    if forced || to.hash().is_none() {
        to.what = from.state.what.clone();
    }
    if forced && !to.is_dir() && expected.is_some_and(|expected| expected.meta.mtime == to.meta.mtime) {
        to.meta.mtime = from.state.meta.mtime;
    }
    Seen { state: to, print: from.print, nlink: from.nlink, blocks: from.blocks }
}

/// `to` as Prepare makes it: the object in the store, with the recorded metadata.
pub fn as_recorded(to: State, held: Option<Seen>) -> Seen {
    let Some(held) = held else { return unmade(to) };
    let mut state = to;
    if let (What::File { size, hash, .. }, Some(read)) = (&mut state.what, held.state.hash()) {
        (*size, *hash) = (held.state.size(), Some(read));
    }
    Seen { state, ..held }
}

/// An object without identity: one that Prepare makes from a record, or that is not on the tree. It takes as many bytes as its content is
/// long.
pub fn unmade(state: State) -> Seen {
    let print = Fingerprint { identity: Identity { ino: 0, btime: None, loose: false }, ctime: Default::default(), racy: false };
    let blocks = state.size();
    Seen { state, print, nlink: 1, blocks }
}
