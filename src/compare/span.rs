//! Lines of a patch in parts, for those who print them.

use std::ops::Range;

/// The kind of a line in a patch, for its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A remark, skipped by programs that read patches.
    Remark,
    /// A line of a file's head.
    Head,
    Place,
    /// A line of both sides, after a blank.
    Both,
    /// A line of the old side, after `-`.
    Old,
    /// A line of the new side, after `+`.
    New,
    /// A line in place of others, or about the last one.
    Note,
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub part: Part,
    /// True for words in which a line differs from the one in its place, if that is asked for.
    pub marked: bool,
    /// Its bytes.
    pub text: Vec<u8>,
}

impl Span {
    /// A part without marks.
    pub fn plain(part: Part, text: Vec<u8>) -> Self {
        Self { part, marked: false, text }
    }
}

/// Takes the lines of a patch, each without its end: the spans of a line, in order.
pub type Take<'t> = dyn FnMut(&[Span]) + 't;

/// The text of a line in pieces: true for those that are marked. A mark may go beyond the text.
pub fn pieces<'t>(text: &'t [u8], marks: &[Range<usize>]) -> Vec<(bool, &'t [u8])> {
    let mut found = Vec::new();
    let mut at = 0;
    for mark in marks {
        let (start, end) = (mark.start.min(text.len()), mark.end.min(text.len()));
        found.push((false, &text[at..start]));
        found.push((true, &text[start..end]));
        at = end;
    }
    found.push((false, &text[at..]));
    found.retain(|(_, piece)| !piece.is_empty());
    found
}
