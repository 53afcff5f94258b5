//! A change put onto what is on the tree by now: a three-way merge by lines, where the content that the change was made of is known.

use std::fs::File;
use std::io::Read;
use std::time::Duration;

use super::sources::{Content, OnTree, Sources};
use super::view::TEXT_LIMIT;
use crate::blocks::merge::{Merged, merge};
use crate::error::{At, Error};
use crate::fs::path::AbsPath;
use crate::session::change::{Before, Change};
use crate::session::opened::Session;
use crate::session::sides::Side;
use crate::tree::hash::Hash;
use crate::tree::state::{Meta, State, What};

/// The longest time that is spent on merging one file.
const PATIENCE: Duration = Duration::from_secs(3);

/// The change that comes of putting one onto another.
pub enum Onto {
    /// The tree holds what the change was made of: it stays as it is.
    Same,
    /// The change from what is on the tree now, which has both in it.
    Merged(Box<Both>),
    /// They do not merge, for this reason.
    Conflict(String),
}

/// A change that has another one in it.
pub struct Both {
    /// The object on the tree now.
    pub before: Before,
    /// The object that is to be there.
    pub after: State,
    /// The content of that.
    pub content: Vec<u8>,
    /// The content that is there now.
    pub now: Vec<u8>,
}

/// Puts a change that was never on the tree onto what is there now.
///
/// # Errors
/// A content cannot be read.
pub fn onto(session: &Session, change: &Change, sources: &mut Sources<'_>) -> Result<Onto, Error> {
    if !change.marks.foreign && sources.on_tree(change, Side::Never) == OnTree::AsRecorded {
        return Ok(Onto::Same);
    }
    let (Some(before), Some(after)) = (&change.before.object, &change.after) else {
        return Ok(Onto::Conflict("only files that are changed on both sides are merged".into()));
    };
    let now = sources.now(&change.path)?;
    let Some(now) = now.filter(|now| [before, after, now].into_iter().all(is_text)) else {
        return Ok(Onto::Conflict("only files that are changed on both sides are merged".into()));
    };
    let Some(base) = session.original(change)? else {
        return Ok(Onto::Conflict(
            "what it was made of is not kept (capture.keep_before), so nothing tells the two changes apart".into(),
        ));
    };
    let (Content::File(mine), Content::File(theirs)) =
        (sources.content_now(&change.path), sources.after(change, Side::Never, &OnTree::Changed)?)
    else {
        return Ok(Onto::Conflict("it cannot be read".into()));
    };
    let [base, mine, theirs] = [base, mine, theirs].map(|file| read(&file, &change.path));
    let (base, mine, theirs) = (base?, mine?, theirs?);
    let Some(meta) = meta_of(&before.meta, &now.meta, &after.meta) else {
        return Ok(Onto::Conflict("both sides changed its mode, owner or extended attributes".into()));
    };
    match merge(&base, &mine, &theirs, PATIENCE) {
        Err(_) => Ok(Onto::Conflict("it is no text, or too different to be compared line by line".into())),
        Ok(Merged::Conflicts(places)) => Ok(Onto::Conflict(met(&places))),
        Ok(Merged::Content(content)) => {
            let now = State { what: file(&mine), ..now };
            let after = State { what: file(&content), meta: Meta { mtime: crate::fs::now(), ..meta } };
            let before = Before { object: Some(now), print: None };
            Ok(Onto::Merged(Box::new(Both { before, after, content, now: mine })))
        }
    }
}

fn is_text(state: &State) -> bool {
    matches!(state.what, What::File { index: None, size, .. } if size <= TEXT_LIMIT)
}

fn file(content: &[u8]) -> What {
    What::File { size: content.len() as u64, hash: Some(Hash::of(content)), index: None }
}

fn read(file: &File, path: &AbsPath) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    file.take(TEXT_LIMIT).read_to_end(&mut bytes).at("read", path)?;
    Ok(bytes)
}

/// The metadata with both changes in it; times do not count. `None` if both sides changed it, and not to the same.
fn meta_of(base: &Meta, mine: &Meta, theirs: &Meta) -> Option<Meta> {
    let same = |a: &Meta, b: &Meta| (a.mode, a.uid, a.gid, &a.xattrs) == (b.mode, b.uid, b.gid, &b.xattrs);
    match () {
        () if same(base, mine) || same(mine, theirs) => Some(theirs.clone()),
        () if same(base, theirs) => Some(mine.clone()),
        () => None,
    }
}

/// Names the lines where both sides changed something, in the content on the tree: at most a few of them.
fn met(places: &[crate::blocks::merge::Conflict]) -> String {
    const NAMED: usize = 3;
    let lines = |place: &crate::blocks::merge::Conflict| match place.ours.len() {
        0 => format!("before line {}", place.ours.start + 1),
        1 => format!("line {}", place.ours.start + 1),
        n => format!("lines {} to {}", place.ours.start + 1, place.ours.start + n),
    };
    let named: Vec<String> = places.iter().take(NAMED).map(lines).collect();
    let more = places.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("both sides changed {}{more} of what is on the tree", named.join(", "))
}
