//! A change put onto what is on the tree by now: a three-way merge by lines, where the content that the change was made of is known.

use std::time::Duration;

use super::blocks::three_way::{Merged, merge};
use super::entries::read_text;
use super::sources::{Content, OnTree, Sources};
use super::view::TEXT_LIMIT;
use crate::error::Error;
use crate::session::{Before, Change, Session, Side};
use crate::tree::{Hash, Meta, State, What, sort_word};

/// The longest time that is spent on merging one file.
const PATIENCE: Duration = Duration::from_secs(3);

/// The change that comes of putting one onto another, or of taking it out.
pub enum MergeResult {
    /// It stays as it is: the tree holds what the change was made of, or nothing more of what is taken out.
    Same,
    /// The change from what is on the tree now, which has both in it.
    Merged(Box<MergedChange>),
    /// They do not merge, for this reason.
    Conflict(String),
}

/// A change that has another one in it.
pub struct MergedChange {
    pub before: Before,
    /// The object that is to be there.
    pub after: State,
    pub content: Vec<u8>,
    pub now: Vec<u8>,
}

/// Puts a change that is not on the tree, on this side of it, onto what is there now.
///
/// # Errors
/// A content cannot be read.
pub fn onto(session: &Session, (change, side): (&Change, Side), sources: &mut Sources<'_>) -> Result<MergeResult, Error> {
    if !change.marks.foreign && sources.on_tree(change, side) == OnTree::AsRecorded {
        return Ok(MergeResult::Same);
    }
    let now = sources.now(&change.path)?;
    let (Some(before), Some(after), Some(now)) = (&change.before.object, &change.after, now.clone()) else {
        return Ok(MergeResult::Conflict(not_both(now.as_ref())));
    };
    if ![before, after, &now].into_iter().all(is_text) {
        return Ok(MergeResult::Conflict(not_both(Some(&now))));
    }
    let Some(base) = session.original(change)? else {
        return Ok(MergeResult::Conflict(no_original(session, change)?));
    };
    let base = read_text(&base, &change.path)?;
    let Content::File(mine) = sources.content_now(&change.path) else {
        return Ok(MergeResult::Conflict("it cannot be read".into()));
    };
    let mine = read_text(&mine, &change.path)?;
    // The content of a change of metadata alone is what it was made of.
    let theirs = match change.in_place() {
        true => base.clone(),
        false => match sources.after(change, side, &OnTree::Changed)? {
            Content::File(file) => read_text(&file, &change.path)?,
            Content::Gone(why) => return Ok(MergeResult::Conflict(why)),
        },
    };
    let Some(meta) = meta_of(&before.meta, &now.meta, &after.meta) else {
        return Ok(MergeResult::Conflict("both sides changed its mode, owner or extended attributes".into()));
    };
    Ok(merged(&base, mine, &theirs, (now, meta)))
}

/// Takes a change that is on the tree out of what is there now: all of it, or what leaves `rest` of it, an object with its content. `None` if
/// nobody has changed the path since.
///
/// # Errors
/// A content cannot be read.
pub fn out_of(change: &Change, sources: &mut Sources<'_>, rest: Option<(&State, &[u8])>) -> Result<Option<MergeResult>, Error> {
    if sources.on_tree(change, Side::In) == OnTree::AsRecorded {
        return Ok(None);
    }
    let (kept, now) = (sources.original_object(change)?, sources.now(&change.path)?);
    let (Some(kept), Some(now), Some(after)) = (kept, now.clone(), &change.after) else {
        return Ok(Some(MergeResult::Conflict(not_both(now.as_ref()))));
    };
    if ![&kept, &now, after].into_iter().all(is_text) {
        return Ok(Some(MergeResult::Conflict(not_both(Some(&now)))));
    }
    let base = match sources.committed(change)? {
        Content::File(file) => read_text(&file, &change.path)?,
        Content::Gone(why) => return Ok(Some(MergeResult::Conflict(why))),
    };
    let Content::File(mine) = sources.content_now(&change.path) else {
        return Ok(Some(MergeResult::Conflict("it cannot be read".into())));
    };
    let mine = read_text(&mine, &change.path)?;
    let theirs = match rest {
        Some((_, rest)) => rest.to_vec(),
        None => match sources.before(change, Side::In, &OnTree::Changed)? {
            Content::File(file) => read_text(&file, &change.path)?,
            Content::Gone(why) => return Ok(Some(MergeResult::Conflict(why))),
        },
    };
    let wanted = rest.map_or(&kept, |(state, _)| state);
    Ok(Some(taken_out((after, &base), (now, mine), (wanted, &theirs))))
}

/// Takes the change from `before` to `after` out of what is there now; each is an object with its content. [`MergeResult::Same`] if nothing of it
/// is left there.
pub fn taken_out(after: (&State, &[u8]), now: (State, Vec<u8>), before: (&State, &[u8])) -> MergeResult {
    if ![after.0, &now.0, before.0].into_iter().all(is_text) {
        return MergeResult::Conflict(not_both(Some(&now.0)));
    }
    let Some(meta) = meta_of(&after.0.meta, &now.0.meta, &before.0.meta) else {
        return MergeResult::Conflict("both sides changed its mode, owner or extended attributes".into());
    };
    let is_out = |both: &MergedChange| {
        let meta = both.before.object.as_ref().and_then(|now| now.meta_difference(&both.after));
        both.content == both.now && meta.is_none()
    };
    match merged(after.1, now.1, before.1, (now.0, meta)) {
        MergeResult::Merged(both) if is_out(&both) => MergeResult::Same,
        onto => onto,
    }
}

fn merged(base: &[u8], mine: Vec<u8>, theirs: &[u8], (now, meta): (State, Meta)) -> MergeResult {
    match merge(base, &mine, theirs, PATIENCE) {
        Err(_) => MergeResult::Conflict("it is not text, or too different to compare line by line".into()),
        Ok(Merged::Conflicts(places)) => MergeResult::Conflict(met(&places)),
        Ok(Merged::Content(content)) => {
            let now = State { what: file(&mine), ..now };
            let after = State { what: file(&content), meta: Meta { mtime: crate::fs::now(), ..meta } };
            let before = Before { object: Some(now), print: None };
            MergeResult::Merged(Box::new(MergedChange { before, after, content, now: mine }))
        }
    }
}

/// The reason why there is nothing to merge, with what is on the tree.
/// The reason why the session keeps no original of a change.
fn no_original(session: &Session, change: &Change) -> Result<String, Error> {
    let why = match session.run()? {
        _ if change.marks.foreign => "it was changed while the command ran, so there is no copy of it from before",
        Some(run) if run.keeps_nothing_before => "no copy of it from before the run is kept (capture.keep_before)",
        _ => "no copy of it from before the run is kept: it was too large, open for writing, or one of too many",
    };
    Ok(why.to_owned())
}

fn not_both(now: Option<&State>) -> String {
    let there = now.map_or_else(|| "nothing".to_owned(), |now| format!("a {}", sort_word(now.sort())));
    format!("only texts that both sides changed are merged, and the tree has {there} there")
}

fn is_text(state: &State) -> bool {
    matches!(state.what, What::File { index: None, size, .. } if size <= TEXT_LIMIT)
}

fn file(content: &[u8]) -> What {
    What::File { size: content.len() as u64, hash: Some(Hash::of(content)), index: None }
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
fn met(places: &[super::blocks::three_way::Conflict]) -> String {
    const NAMED: usize = 3;
    let lines = |place: &super::blocks::three_way::Conflict| match place.ours.len() {
        0 => format!("before line {}", place.ours.start + 1),
        1 => format!("line {}", place.ours.start + 1),
        n => format!("lines {} to {}", place.ours.start + 1, place.ours.start + n),
    };
    let named: Vec<String> = places.iter().take(NAMED).map(lines).collect();
    let more = places.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("both sides changed {}{more} of what is on the tree", named.join(", "))
}
