//! The place of a block that may be in several: a line that came after `a b` and made it `a b b` may be either `b`.
//!
//! As in git's xdiff (`xdl_change_compact`), but for a plainer guess by indentation: a block that can meet another one does, and they are
//! one. Else it goes where its first line is indented least, and of such places to the lowest.

use std::ops::Range;

use super::block::Block;

/// Moves the blocks of two lists to their places.
pub fn settled(found: Vec<Block>, old: &[&[u8]], new: &[&[u8]]) -> Vec<Block> {
    let mut settled: Vec<Block> = Vec::with_capacity(found.len());
    let mut coming = found.into_iter().peekable();
    while let Some(mut block) = coming.next() {
        loop {
            let above = settled.last().map_or(0, |above| above.old.end);
            while block.old.start > above && can_rise(&block, old, new) {
                block = shifted(&block, |line| line - 1);
            }
            if let Some(above) = settled.pop_if(|above| above.old.end == block.old.start) {
                block = joined(above, block);
                continue;
            }
            let mut best = block.clone();
            while coming.peek().is_none_or(|below| below.old.start > block.old.end) && can_sink(&block, old, new) {
                block = shifted(&block, |line| line + 1);
                if indentation(&block, old, new) <= indentation(&best, old, new) {
                    best = block.clone();
                }
            }
            match coming.next_if(|below| below.old.start == block.old.end) {
                Some(below) => block = joined(block, below),
                None => break settled.push(best),
            }
        }
    }
    settled
}

/// The one list in which a block has lines, and the lines; `None` for a block with lines in both, which has one place alone.
fn only<'l, 'c>(block: &Block, old: &'l [&'c [u8]], new: &'l [&'c [u8]]) -> Option<(&'l [&'c [u8]], Range<usize>)> {
    match (block.old.is_empty(), block.new.is_empty()) {
        (true, false) => Some((new, block.new.clone())),
        (false, true) => Some((old, block.old.clone())),
        _ => None,
    }
}

fn can_rise(block: &Block, old: &[&[u8]], new: &[&[u8]]) -> bool {
    only(block, old, new).is_some_and(|(lines, at)| lines[at.start - 1] == lines[at.end - 1])
}

fn can_sink(block: &Block, old: &[&[u8]], new: &[&[u8]]) -> bool {
    only(block, old, new).is_some_and(|(lines, at)| lines.get(at.end) == Some(&lines[at.start]))
}

/// The blanks before the first line of a block that can move; a blank line has more than any other.
fn indentation(block: &Block, old: &[&[u8]], new: &[&[u8]]) -> Option<usize> {
    let (lines, at) = only(block, old, new)?;
    let first = lines[at.start];
    Some(if first.trim_ascii().is_empty() { usize::MAX } else { first.len() - first.trim_ascii_start().len() })
}

fn shifted(block: &Block, shift: fn(usize) -> usize) -> Block {
    let both = |range: &Range<usize>| shift(range.start)..shift(range.end);
    Block { old: both(&block.old), new: both(&block.new) }
}

fn joined(above: Block, below: Block) -> Block {
    Block { old: above.old.start..below.old.end, new: above.new.start..below.new.end }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::compare::blocks::find_blocks::Blocks;

    /// The blocks as a person reads them: the lines that went, and those that came.
    fn shown(old: &str, new: &str) -> Vec<String> {
        let blocks = Blocks::between(old.as_bytes(), new.as_bytes(), Duration::MAX).expect("text");
        let signed =
            |sign: char, lines: &[&[u8]]| lines.iter().map(|line| format!("{sign}{}", line.escape_ascii())).collect::<String>();
        blocks.list().iter().map(|block| signed('-', blocks.removed(block)) + &signed('+', blocks.added(block))).collect()
    }

    #[test]
    fn a_block_is_where_a_person_looks_for_it() {
        for (old, new, wanted) in [
            ("a\nb\nc\n", "a\nb\nb\nc\n", &["+b\\n"][..]),
            // The new function begins with its own comment.
            ("/**\n * a\n */\na\n", "/**\n * b\n */\nb\n/**\n * a\n */\na\n", &["+/**\\n+ * b\\n+ */\\n+b\\n"]),
            ("a {\n}\n\nc {\n}\n", "a {\n}\n\nb {\n}\n\nc {\n}\n", &["+b {\\n+}\\n+\\n"]),
            ("x {\n  1\n}\n", "x {\n  1\n}\nx {\n  2\n}\n", &["+x {\\n+  2\\n+}\\n"]),
            // What can meet is one block.
            ("x\n}\n}\nb\n", "}\n}\n}\nb\n", &["-x\\n+}\\n"]),
            ("}\n}\nx\nb\n", "}\n}\n}\nb\n", &["-x\\n+}\\n"]),
        ] {
            assert_eq!(shown(old, new), wanted, "{new:?}");
        }
    }
}
