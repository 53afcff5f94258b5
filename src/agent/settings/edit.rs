//! Edits of a text: what is put in, and what is cut out.

use std::fmt;
use std::ops::Range;

/// A text with something added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub after: String,
    /// The bytes of it that were added, in order: without them it is the text as it was.
    pub added: Vec<Range<usize>>,
}

impl Edit {
    /// A text in which all is new.
    pub fn whole(after: String) -> Self {
        let added = 0..after.len();
        Self { after, added: vec![added] }
    }

    /// Puts texts into `text`, each at an offset; of those at one offset the first comes first.
    pub fn of(text: &str, mut puts: Vec<(usize, String)>) -> Self {
        puts.sort_by_key(|(at, _)| *at);
        let (mut after, mut added, mut from) = (String::with_capacity(text.len() + 1024), Vec::<Range<usize>>::new(), 0);
        for (at, put) in puts {
            after.push_str(&text[from..at]);
            from = at;
            let start = after.len();
            after.push_str(&put);
            match added.last_mut() {
                Some(last) if last.end == start => last.end = after.len(),
                _ => added.push(start..after.len()),
            }
        }
        after.push_str(&text[from..]);
        Self { after, added }
    }

    /// The edit of a text that had `before` in front of it all the time.
    pub fn behind(mut self, before: &str) -> Self {
        self.after.insert_str(0, before);
        for range in &mut self.added {
            *range = range.start + before.len()..range.end + before.len();
        }
        self
    }
}

/// Cuts ranges out of a text; they may overlap. `None` if one is not within it, or cuts a character.
pub fn cut(text: &str, mut ranges: Vec<Range<usize>>) -> Option<String> {
    ranges.sort_by_key(|range| range.start);
    let (mut left, mut from) = (String::with_capacity(text.len()), 0);
    for range in ranges {
        if range.start > from {
            left.push_str(text.get(from..range.start)?);
        }
        from = from.max(range.end);
    }
    left.push_str(text.get(from..)?);
    Some(left)
}

/// The reason why a text is not edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The line, from 1; 0 if it is about the whole text.
    pub line: usize,
    pub why: String,
}

impl Wrong {
    pub fn at(text: &str, offset: usize, why: impl Into<String>) -> Self {
        Self { line: line_of(text, offset), why: why.into() }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.why),
            line => write!(f, "line {line}: {}", self.why),
        }
    }
}

pub fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// The end of a line, as a text has it.
pub fn newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Hooks of recant that stand in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The event; empty for a plugin, which tells of all.
    pub event: String,
    /// The program that is called: an absolute path, or a bare name.
    pub program: String,
    /// The line of the file, from 1.
    pub line: usize,
}
