//! Blocks of a change, printed: each headed by the word that takes it.

use anstyle::Style;

use crate::compare::span::Part;
use crate::compare::{Block, Blocks, Text};
use crate::face::out::Out;
use crate::face::text::patch;
use crate::session::{Change, Sort};
use crate::verb::META;

/// The words for a change that is taken whole; of a modified file with the reason why it has no blocks.
pub fn whole(change: &Change, why: &str) -> String {
    match change.sort() {
        sort @ Sort::Modified => format!("{}, whole: {why}", sort.word()),
        sort => format!("{}, whole", sort.word()),
    }
}

/// Prints what differs in a file's metadata.
pub fn metadata(out: &Out, path: &str, text: &Text) {
    if !text.meta.is_empty() {
        head(out, &format!("{path}:{META}"), &text.meta.join("; "));
    }
}

/// Prints the word that takes something, and what that is.
pub fn head(out: &Out, word: &str, what: &str) {
    out.line(format_args!("{}  {what}", out.paint(Style::new().bold(), word)));
}

/// The place of a block, as in the head of a hunk without context: `@@ -3,2 +3,3 @@`.
pub fn place(block: &Block) -> String {
    let range = |range: &std::ops::Range<usize>| match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        n => format!("{},{n}", range.start + 1),
    };
    format!("@@ -{} +{} @@", range(&block.old), range(&block.new))
}

/// Prints the lines of a block.
pub fn lines(out: &Out, blocks: &Blocks<'_>, block: &Block) {
    blocks.removed(block).iter().for_each(|line| patch::line(out, Part::Old, line));
    blocks.added(block).iter().for_each(|line| patch::line(out, Part::New, line));
}

/// Prints one line of a block, by its number.
pub fn line(out: &Out, blocks: &Blocks<'_>, block: &Block, number: usize) {
    match number.checked_sub(block.old.len() + 1) {
        None => patch::line(out, Part::Old, blocks.removed(block)[number - 1]),
        Some(i) => patch::line(out, Part::New, blocks.added(block)[i]),
    }
}
