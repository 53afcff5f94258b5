//! What an item says of its two sides, from the record and from what was seen.

use crate::checkpoint::manifest::Kept;
use crate::engine::item::{Item, Planning};
use crate::engine::job::Move;
use crate::engine::step::Act;
use crate::session::sides::Side;
use crate::tree::look::Seen;
use crate::tree::state::{Fingerprint, Identity, Meta, Object, State, What};

/// A move before it was looked at.
pub(super) fn unlooked(mv: &Move) -> Item {
    let expected = mv.from.as_ref().map(State::sort);
    Item {
        index: mv.index,
        n: mv.n,
        path: mv.path.clone(),
        act: Act::Stay,
        from: None,
        to: None,
        held: None,
        beside: None,
        placed: None,
        kept: Kept::Nothing,
        side: mv.side,
        forced: false,
        whole: false,
        opened: false,
        fresh: false,
        portable: false,
        planning: Planning { expected, ..Planning::default() },
    }
}

/// Nothing to do on the tree, but the change is on the other side now. What would have come off the tree is not there any
/// more: where it had content, that is lost.
pub(super) fn stays(mv: Move, item: &mut Item) {
    let is_file = |object: &Object| matches!(object, Some(State { what: What::File { .. }, .. }));
    if !mv.in_place && is_file(&mv.from) {
        item.kept = Kept::Uncovered { why: "it was not there any more when it was put back".into() };
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

/// Whether content was read whose digest was not known.
pub(super) fn learned(known: &Object, read: Option<&Seen>) -> bool {
    known.as_ref().is_some_and(|known| matches!(known.what, What::File { digest: None, .. }))
        && read.is_some_and(|read| read.state.digest().is_some())
}

/// The one xattr by which what lies in an upper differs from the record, if it is one that overlayfs leaves on copies.
pub(super) fn overlay_mark(held: &Meta, recorded: &Meta) -> Option<&'static [u8]> {
    const MARKS: [&[u8]; 2] = [b"trusted.overlay.origin", b"user.overlay.origin"];
    let mark = MARKS.into_iter().find(|mark| held.xattr(mark).is_some() && recorded.xattr(mark).is_none())?;
    let rest = held.xattrs.iter().filter(|(name, _)| **name != *mark);
    let plain = |meta: &Meta| (meta.mode, meta.uid, meta.gid, meta.mtime);
    // An owner who may not write takes no user.* xattr off without more ado.
    (plain(held) == plain(recorded) && recorded.mode & 0o200 != 0 && rest.eq(&recorded.xattrs)).then_some(mark)
}

/// An inode that stays, and so does its content: that which is found by force, and the digest that was taken of it. What somebody has
/// written since keeps the time of that, unless the time is what changes.
pub(super) fn staying(from: &Seen, mut to: State, expected: Option<&State>, forced: bool) -> Seen {
    if forced || to.digest().is_none() {
        to.what = from.state.what.clone();
    }
    if forced && !to.is_folder() && expected.is_some_and(|expected| expected.meta.mtime == to.meta.mtime) {
        to.meta.mtime = from.state.meta.mtime;
    }
    Seen { state: to, print: from.print, nlink: from.nlink, blocks: from.blocks }
}

/// `to` as it is to be: what lies in the store, with the recorded metadata. Prepare makes it so.
pub(super) fn as_recorded(to: State, held: Option<Seen>) -> Seen {
    let Some(held) = held else { return unmade(to) };
    let mut state = to;
    if let (What::File { size, digest, .. }, Some(read)) = (&mut state.what, held.state.digest()) {
        (*size, *digest) = (held.state.size(), Some(read));
    }
    Seen { state, ..held }
}

/// What Prepare is to make from a record, or what is known of nothing on the tree: it has no identity. Its
/// content, where it has some, takes the room that it is long.
pub(super) fn unmade(state: State) -> Seen {
    let print = Fingerprint { identity: Identity { ino: 0, btime: None, loose: false }, ctime: Default::default(), racy: false };
    let blocks = state.size();
    Seen { state, print, nlink: 1, blocks }
}
