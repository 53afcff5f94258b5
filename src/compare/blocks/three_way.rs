//! Merges two changes of one content, by lines.

use std::ops::Range;
use std::time::Duration;

use super::block::Block;
use super::find_blocks::{Blocks, NotByLines, end_of};

/// A merge's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// The base with both changes in it.
    Content(Vec<u8>),
    /// The places where the changes meet, from the first line to the last: at least one.
    Conflicts(Vec<Conflict>),
}

/// A place that both sides changed, and not to the same. Lines count from 0; a range may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Its lines in the base.
    pub base: Range<usize>,
    /// Its lines in ours.
    pub ours: Range<usize>,
    /// Its lines in theirs.
    pub theirs: Range<usize>,
}

/// Merges the change from `base` to `ours` into `theirs`, as git-merge-file(1) does: changes that touch are a conflict, the same change on
/// both sides is none. `limit` is for both comparisons together.
///
/// To take the change from `base` to `ours` out of `theirs` is `merge(ours, base, theirs, limit)`.
pub fn merge(base: &[u8], ours: &[u8], theirs: &[u8], limit: Duration) -> Result<Merged, NotByLines> {
    let end = end_of(limit);
    let (ours, theirs) = (Blocks::before(end, base, ours)?, Blocks::before(end, base, theirs)?);
    let (base, our_lines, their_lines) = (ours.old_lines(), ours.new_lines(), theirs.new_lines());
    let (mut content, mut conflicts, mut at) = (Vec::new(), Vec::new(), 0);
    for place in places(ours.list(), theirs.list()) {
        content.extend_from_slice(&base[at..place.base.start]);
        at = place.base.end;
        match (became(&place.base, place.ours), became(&place.base, place.theirs)) {
            (Some(ours), Some(theirs)) if our_lines[ours.clone()] != their_lines[theirs.clone()] => {
                conflicts.push(Conflict { base: place.base, ours, theirs });
            }
            (Some(ours), _) => content.extend_from_slice(&our_lines[ours]),
            (None, Some(theirs)) => content.extend_from_slice(&their_lines[theirs]),
            (None, None) => {}
        }
    }
    content.extend_from_slice(&base[at..]);
    Ok(if conflicts.is_empty() { Merged::Content(content.concat()) } else { Merged::Conflicts(conflicts) })
}

/// Lines of the base that changed on at least one side, with the blocks of each side that lie in them.
struct Place<'b> {
    base: Range<usize>,
    ours: &'b [Block],
    theirs: &'b [Block],
}

/// Joins the blocks of two sides that overlap or touch into places, which do neither.
fn places<'b>(mut ours: &'b [Block], mut theirs: &'b [Block]) -> Vec<Place<'b>> {
    let mut found = Vec::new();
    while let Some(start) = [ours, theirs].iter().filter_map(|side| Some(side.first()?.old.start)).min() {
        let (mut base, mut a, mut b) = (start..start, 0, 0);
        // A block of one side may bring the place to the next one of the other.
        while take_touching(ours, &mut a, &mut base) | take_touching(theirs, &mut b, &mut base) {}
        found.push(Place { base, ours: &ours[..a], theirs: &theirs[..b] });
        (ours, theirs) = (&ours[a..], &theirs[b..]);
    }
    found
}

/// Goes on over the blocks from `next` that overlap or touch a place, which grows by them; false if there is none.
fn take_touching(blocks: &[Block], next: &mut usize, place: &mut Range<usize>) -> bool {
    let from = *next;
    while let Some(block) = blocks.get(*next).filter(|block| block.old.start <= place.end) {
        place.end = place.end.max(block.old.end);
        *next += 1;
    }
    *next > from
}

/// The lines that a place of the base became on a side with these blocks in it; `None` if that side did not change it.
fn became(base: &Range<usize>, blocks: &[Block]) -> Option<Range<usize>> {
    let (first, last) = (blocks.first()?, blocks.last()?);
    Some(first.new.start - (first.old.start - base.start)..last.new.end + (base.end - last.old.end))
}

#[cfg(test)]
mod tests {
    use crate::compare::blocks::three_way::*;

    #[test]
    fn changes_that_touch_are_a_conflict_with_the_lines_of_each_side() {
        let merged = |ours: &str, theirs: &str| merge(b"a\nb\nc\nd\ne\n", ours.as_bytes(), theirs.as_bytes(), Duration::MAX);
        let content = |content: &str| Ok(Merged::Content(content.into()));
        let conflict = |base, ours, theirs| Ok(Merged::Conflicts(vec![Conflict { base, ours, theirs }]));
        for (ours, theirs, wanted) in [
            ("a\nB\nc\nd\ne\n", "a\nb\nc\nD\ne\n", content("a\nB\nc\nD\ne\n")),
            ("a\nB\nc\nd\ne\n", "a\nB\nc\nd\nE", content("a\nB\nc\nd\nE")),
            ("a\nB\nc\nd\ne\n", "a\nb\nC\nd\ne\n", conflict(1..3, 1..3, 1..3)),
            ("0\na\nb\nc\nd\ne\n", "1\na\nb\nc\nd\ne\n", conflict(0..0, 0..1, 0..1)),
            ("0\na\nB\nB\nB\ne\n", "a\nb\nC\nC\nd\ne\n", conflict(1..4, 2..5, 1..5)),
            // Ours reaches over two of theirs.
            ("a\nX\ne\n", "a\nB\nc\nD\ne\n", conflict(1..4, 1..2, 1..4)),
        ] {
            assert_eq!(merged(ours, theirs), wanted, "{ours:?} {theirs:?}");
        }
        assert_eq!(merged("a\0", "b\n"), Err(NotByLines::Binary));
        let taken_out = merge(b"a\nB\nc\n", b"a\nb\nc\n", b"a\nB\nc\nd\n", Duration::MAX);
        assert_eq!(taken_out, content("a\nb\nc\nd\n"));
    }
}
