//! How much of a file's content is found in another one: diffcore-delta.c of git.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, BufRead, BufReader, Read};

/// The most bytes of a line that count as one piece.
const PIECE: u64 = 64;

/// A content as its pieces, which are lines as a rule.
pub struct Contents {
    /// The hash of each, and the bytes of all that have it. In order.
    pieces: Vec<(u64, u64)>,
    size: u64,
}

impl Contents {
    /// Reads a content. Errors: it cannot be read.
    pub fn of(file: &File) -> io::Result<Self> {
        let mut reader = BufReader::with_capacity(64 << 10, file);
        let (mut pieces, mut size, mut piece) = (HashMap::new(), 0, Vec::new());
        while reader.by_ref().take(PIECE).read_until(b'\n', &mut piece)? > 0 {
            let mut hasher = DefaultHasher::new();
            hasher.write(&piece);
            let bytes = piece.len() as u64;
            *pieces.entry(hasher.finish()).or_insert(0) += bytes;
            size += bytes;
            piece.clear();
        }
        let mut pieces: Vec<(u64, u64)> = pieces.into_iter().collect();
        pieces.sort_unstable();
        Ok(Self { pieces, size })
    }
}

/// The part of the larger content that both have, in percent; below 100, as contents that are equal are found by their hashes.
pub fn percent(a: &Contents, b: &Contents) -> u8 {
    let part = both(&a.pieces, &b.pieces) * 100 / a.size.max(b.size).max(1);
    u8::try_from(part).map_or(99, |part| part.min(99))
}

/// The most that [`percent`] can be, by the sizes alone.
pub fn most(a: &Contents, b: &Contents) -> u64 {
    a.size.min(b.size) * 100 / a.size.max(b.size).max(1)
}

/// Bytes of the pieces that are in both.
fn both(mut a: &[(u64, u64)], mut b: &[(u64, u64)]) -> u64 {
    let mut sum = 0;
    while let ([(one, bytes), rest @ ..], [(other, others), more @ ..]) = (a, b) {
        let order = one.cmp(other);
        sum += if order == Ordering::Equal { *bytes.min(others) } else { 0 };
        a = if order.is_le() { rest } else { a };
        b = if order.is_ge() { more } else { b };
    }
    sum
}

#[cfg(test)]
mod tests {
    use crate::compare::likeness::*;

    fn likeness(a: &str, b: &str) -> u8 {
        let contents = |text: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            io::Write::write_all(&mut file.as_file(), text.as_bytes()).unwrap();
            Contents::of(&file.reopen().unwrap()).unwrap()
        };
        percent(&contents(a), &contents(b))
    }

    #[test]
    fn the_part_that_stayed_counts_in_bytes_of_the_larger_one() {
        for (a, b, want) in [
            ("a\nb\nc\nd\n", "a\nb\nc\nx\n", 75),
            ("a\nb\nc\nd\n", "a\nb\n", 50),
            ("a\na\na\na\n", "a\n", 25),
            ("a\nb\n", "b\na\n", 99),
            ("a\n", "b\n", 0),
        ] {
            assert_eq!(likeness(a, b), want, "{a:?} {b:?}");
        }
        assert_eq!(likeness(&"x".repeat(1000), &("x".repeat(960) + &"y".repeat(40))), 96);
    }
}
