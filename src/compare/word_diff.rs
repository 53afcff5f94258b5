//! Both sides of a difference in one text, as `git diff --word-diff` has them: `[-old-]{+new+}`.

use super::blocks::words::Marks;
use super::span::{Part, Span, Take, pieces};

pub fn write_same(take: &mut Take<'_>, lines: &[&[u8]]) {
    Inline::new(take).put(Part::Both, &lines.concat());
}

/// Writes lines and those that replace them in one text. Words that are not marked are the same on both.
pub fn write_changed(take: &mut Take<'_>, old: &[&[u8]], new: &[&[u8]], marks: Option<&Marks>) {
    let mut inline = Inline::new(take);
    let Some(marks) = marks else {
        inline.put(Part::Old, &old.concat());
        return inline.put(Part::New, &new.concat());
    };
    // What went, by the number of bytes before it that are on both sides.
    let mut gone = Vec::new();
    let mut before = 0;
    for (line, changed) in old.iter().zip(&marks.old) {
        for (marked, piece) in pieces(line, changed) {
            if marked { gone.push((before, piece)) } else { before += piece.len() }
        }
    }
    let mut gone = gone.into_iter().peekable();
    let mut at = 0;
    for (line, changed) in new.iter().zip(&marks.new) {
        for (marked, mut piece) in pieces(line, changed) {
            let end = at + if marked { 1 } else { piece.len() };
            while let Some((before, text)) = gone.next_if(|(before, _)| *before < end) {
                let (same, rest) = piece.split_at(before.saturating_sub(at));
                inline.put(Part::Both, same);
                inline.put(Part::Old, text);
                (at, piece) = (at + same.len(), rest);
            }
            inline.put(if marked { Part::New } else { Part::Both }, piece);
            at += if marked { 0 } else { piece.len() };
        }
    }
    gone.for_each(|(_, text)| inline.put(Part::Old, text));
}

/// Text that becomes lines, in which what went and what came stands in brackets.
struct Inline<'t, 'w> {
    take: &'t mut Take<'w>,
    line: Vec<Span>,
}

impl<'t, 'w> Inline<'t, 'w> {
    fn new(take: &'t mut Take<'w>) -> Self {
        Self { take, line: Vec::new() }
    }

    fn put(&mut self, part: Part, text: &[u8]) {
        let (open, close) = match part {
            Part::Old => ("[-", "-]"),
            Part::New => ("{+", "+}"),
            _ => ("", ""),
        };
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let text = line.strip_suffix(b"\n");
            if let words @ [_, ..] = text.unwrap_or(line) {
                self.line.push(Span::plain(part, [open.as_bytes(), words, close.as_bytes()].concat()));
            }
            if text.is_some() {
                (self.take)(&std::mem::take(&mut self.line));
            }
        }
    }
}

impl Drop for Inline<'_, '_> {
    fn drop(&mut self) {
        if !self.line.is_empty() {
            (self.take)(&self.line);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::compare::blocks::words::words;
    use crate::compare::word_diff::*;

    fn inline(old: &str, new: &str) -> String {
        let mut lines = Vec::new();
        let marks = words(&[old.as_bytes()], &[new.as_bytes()]);
        let mut take = |spans: &[Span]| lines.push(spans.iter().flat_map(|span| span.text.clone()).collect::<Vec<u8>>());
        write_changed(&mut take, &[old.as_bytes()], &[new.as_bytes()], marks.as_ref());
        String::from_utf8(lines.concat()).unwrap()
    }

    /// The text of one side: without the words of the other, and without the brackets of its own.
    fn side(text: &str, own: [&str; 2], others: [&str; 2]) -> String {
        let mut parts = text.split(others[0]);
        let first = parts.next().unwrap_or_default().to_owned();
        let text = parts.fold(first, |text, part| text + part.split_once(others[1]).expect("a closing bracket").1);
        text.replace(own[0], "").replace(own[1], "")
    }

    #[test]
    fn each_side_is_its_own_words_and_those_of_both() {
        let words = ["a", "bc", " ", "  ", "\t", ",", "(", "größe", "_1", "é"];
        // The numbers of a linear congruential generator (Knuth).
        let mut seed = 1u64;
        let mut roll = |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(seed >> 33).unwrap() % n
        };
        for _ in 0..2_000 {
            let mut line = || (0..roll(12)).map(|_| words[roll(words.len())]).collect::<String>() + "\n";
            let (old, new) = (line(), line());
            let text = inline(&old, &new) + "\n";
            assert_eq!(side(&text, ["[-", "-]"], ["{+", "+}"]), old, "{old:?} {new:?}: {text:?}");
            assert_eq!(side(&text, ["{+", "+}"], ["[-", "-]"]), new, "{old:?} {new:?}: {text:?}");
        }
    }
}
