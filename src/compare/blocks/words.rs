//! The words in which changed lines differ, for marks within them.

use std::ops::Range;

use super::align::compare;
use super::block::Block;

/// The most bytes of both sides together that are compared by words: nobody reads more of them at a glance.
const MOST: usize = 16 << 10;

/// The changed bytes of old and new lines. Each line has its ranges from left to right, none empty, no two that touch. The bytes outside
/// of them are the same on both sides, in the same order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks {
    /// For each old line the bytes that went.
    pub old: Vec<Vec<Range<usize>>>,
    /// For each new line the bytes that came.
    pub new: Vec<Vec<Range<usize>>>,
}

impl Marks {
    /// True if they tell more than the lines alone: most of these is the same.
    pub fn help(&self, old: &[&[u8]], new: &[&[u8]]) -> bool {
        let marked: usize = self.old.iter().chain(&self.new).flatten().map(ExactSizeIterator::len).sum();
        let all: usize = old.iter().chain(new).map(|line| line.len()).sum();
        marked * 2 < all
    }
}

/// Compares the lines of a block by words; `None` for more than 16 KiB. No word is cut: a run of ASCII letters, digits, `_` and bytes above
/// ASCII. So no character is cut either, in UTF-8 or any other encoding that has ASCII for its lower half.
pub fn words(old: &[&[u8]], new: &[&[u8]]) -> Option<Marks> {
    if old.iter().chain(new).map(|line| line.len()).sum::<usize>() > MOST {
        return None;
    }
    let [before, after]: [Vec<&[u8]>; 2] = [old, new].map(|lines| lines.iter().flat_map(|line| tokens(line)).collect());
    let changes = joined(compare(&before, &after, None), &before);
    let (went, came): (Vec<_>, Vec<_>) = changes.into_iter().map(|change| (change.old, change.new)).unzip();
    Some(Marks { old: marks(old, &went), new: marks(new, &came) })
}

/// Joins changes with blanks alone between them: 'a b' that became 'c d' is one.
fn joined(changes: Vec<Block>, before: &[&[u8]]) -> Vec<Block> {
    let are_blanks = |tokens: &[&[u8]]| tokens.iter().all(|token| kind(token[0]) == Kind::Blank);
    let mut joined: Vec<Block> = Vec::new();
    for change in changes {
        match joined.last_mut().filter(|last| are_blanks(&before[last.old.end..change.old.start])) {
            Some(last) => *last = Block { old: last.old.start..change.old.end, new: last.new.start..change.new.end },
            None => joined.push(change),
        }
    }
    joined
}

/// The parts that a line is compared by: words, runs of blanks, its end, and each other byte by itself.
fn tokens(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.chunk_by(|a, b| kind(*a) == kind(*b) && kind(*a) != Kind::Sign)
}

#[derive(PartialEq)]
enum Kind {
    Word,
    Blank,
    End,
    Sign,
}

fn kind(byte: u8) -> Kind {
    match byte {
        b'_' | 0x80.. => Kind::Word,
        _ if byte.is_ascii_alphanumeric() => Kind::Word,
        b' ' | b'\t' => Kind::Blank,
        b'\r' | b'\n' => Kind::End,
        _ => Kind::Sign,
    }
}

/// The bytes of each line that ranges of tokens have.
fn marks(lines: &[&[u8]], changed: &[Range<usize>]) -> Vec<Vec<Range<usize>>> {
    let (mut numbers, mut changed) = (0.., changed.iter().peekable());
    let mut is_changed = |number: usize| {
        while changed.next_if(|range| range.end <= number).is_some() {}
        changed.peek().is_some_and(|range| range.contains(&number))
    };
    let of_line = |line: &&[u8]| {
        let (mut found, mut at) = (Vec::<Range<usize>>::new(), 0);
        for (token, number) in tokens(line).zip(&mut numbers) {
            let end = at + token.len();
            match found.last_mut() {
                _ if !is_changed(number) => {}
                Some(last) if last.end == at => last.end = end,
                _ => found.push(at..end),
            }
            at = end;
        }
        found
    };
    lines.iter().map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use crate::compare::blocks::words::*;

    /// The lines with what is marked in brackets.
    fn shown(lines: &[&[u8]], marks: &[Vec<Range<usize>>]) -> String {
        let show = |(line, marks): (&&[u8], &Vec<Range<usize>>)| {
            let mut text = line.to_vec();
            marks.iter().rev().for_each(|mark| {
                text.insert(mark.end, b']');
                text.insert(mark.start, b'[');
            });
            text.escape_ascii().to_string()
        };
        lines.iter().zip(marks).map(show).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn whole_words_blanks_and_signs_are_marked() {
        for (old, new, went, came) in [
            (&b"let a_b = 1;\n"[..], &b"let a_c = 12;\n"[..], "let [a_b] = [1];\\n", "let [a_c] = [12];\\n"),
            (b"f(a)\n", b"f(a, b)\n", "f(a)\\n", "f(a[, b])\\n"),
            (b"a  b\r\n", b"a b\n", "a[  ]b[\\r\\n]", "a[ ]b[\\n]"),
            (b"gr\xc3\xbcn\n", b"gr\xc3\xb6n\n", "[gr\\xc3\\xbcn]\\n", "[gr\\xc3\\xb6n]\\n"),
            (b"one\ntwo\n", b"one\n2 three\n", "one\\n|[two]\\n", "one\\n|[2 three]\\n"),
        ] {
            let lines = [old, new].map(|content| content.split_inclusive(|byte| *byte == b'\n').collect::<Vec<_>>());
            let marks = words(&lines[0], &lines[1]).expect("short");
            assert_eq!((&*shown(&lines[0], &marks.old), &*shown(&lines[1], &marks.new)), (went, came));
        }
    }

    #[test]
    fn more_than_a_glance_is_not_compared_by_words() {
        let half = vec![b'x'; MOST / 2];
        assert!(words(&[&half], &[&half]).is_some());
        assert!(words(&[&half], &[&half, b"x"]).is_none());
    }
}
