//! A part of a change, chosen by blocks and lines, and the content that has it.

use std::collections::{BTreeMap, BTreeSet};

use super::find_blocks::Blocks;

/// The chosen part of a block. One that is not chosen has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The whole block.
    All,
    /// Lines, by their numbers in the block: from 1, those that went first.
    Lines(BTreeSet<usize>),
}

/// The chosen part of a change: by the numbers of its blocks, which count from 1. Numbers that a change does not have choose nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice(BTreeMap<usize, Part>);

impl FromIterator<(usize, Part)> for Choice {
    fn from_iter<I: IntoIterator<Item = (usize, Part)>>(parts: I) -> Self {
        Self(parts.into_iter().collect())
    }
}

impl Choice {
    /// Chooses whole blocks.
    pub fn of_blocks(numbers: impl IntoIterator<Item = usize>) -> Self {
        numbers.into_iter().map(|number| (number, Part::All)).collect()
    }

    fn has(&self, block: usize, line: usize) -> bool {
        match self.0.get(&block) {
            None => false,
            Some(Part::All) => true,
            Some(Part::Lines(lines)) => lines.contains(&line),
        }
    }
}

impl Blocks<'_> {
    /// The old content with the chosen part of the change in it.
    ///
    /// Lines count as in a patch that git-add(1) lets a person edit: one that went and was not chosen stays, one that came and was not
    /// chosen is left out, and in a block those that stay come before those that come. In one thing git differs: where a last line
    /// without an end stays before others, git joins it with the next one, and here it gets an end.
    pub fn apply(&self, choice: &Choice) -> Vec<u8> {
        self.content_with(|block, line| choice.has(block, line))
    }

    /// The new content without the chosen part of the change: what [`apply`](Self::apply) gives for all the rest.
    pub fn take_out(&self, choice: &Choice) -> Vec<u8> {
        self.content_with(|block, line| !choice.has(block, line))
    }

    fn content_with(&self, chosen: impl Fn(usize, usize) -> bool) -> Vec<u8> {
        let (mut found, mut at) = (Vec::new(), 0);
        for (number, block) in (1..).zip(self.list()) {
            found.extend_from_slice(&self.old_lines()[at..block.old.start]);
            let removed = (1..).zip(self.removed(block)).filter(|(line, _)| !chosen(number, *line));
            let added = (block.old.len() + 1..).zip(self.added(block)).filter(|(line, _)| chosen(number, *line));
            found.extend(removed.chain(added).map(|(_, line)| line));
            at = block.old.end;
        }
        found.extend_from_slice(&self.old_lines()[at..]);
        joined(&found)
    }
}

/// Joins lines. One without an end that is not the last gets one, of the kind that the first line has.
fn joined(lines: &[&[u8]]) -> Vec<u8> {
    let end: &[u8] = if lines.first().is_some_and(|line| line.ends_with(b"\r\n")) { b"\r\n" } else { b"\n" };
    let mut content = Vec::with_capacity(lines.iter().map(|line| line.len()).sum());
    for line in lines {
        if !content.is_empty() && !content.ends_with(b"\n") {
            content.extend_from_slice(end);
        }
        content.extend_from_slice(line);
    }
    content
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::compare::blocks::choice::*;

    #[test]
    fn what_is_not_chosen_stays_and_a_line_that_is_the_last_no_more_gets_an_end() {
        for (old, new, lines, wanted) in [
            // -b -c +B +C between a and d.
            ("a\nb\nc\nd\n", "a\nB\nC\nd\n", &[][..], "a\nb\nc\nd\n"),
            ("a\nb\nc\nd\n", "a\nB\nC\nd\n", &[1, 3], "a\nc\nB\nd\n"),
            ("a\nb\nc\nd\n", "a\nB\nC\nd\n", &[4], "a\nb\nc\nC\nd\n"),
            // -b, which has no end, +b +c.
            ("a\nb", "a\nb\nc\n", &[3], "a\nb\nc\n"),
            ("a\nb", "a\nb\nc\n", &[1], "a\n"),
            ("a\r\nb", "a\r\nb\r\nc", &[3], "a\r\nb\r\nc"),
            ("b", "b\nc", &[3], "b\nc"),
            // -b +b without its end.
            ("a\nb\n", "a\nb", &[2], "a\nb\nb"),
        ] {
            let blocks = Blocks::between(old.as_bytes(), new.as_bytes(), Duration::MAX).expect("text");
            let chosen = Choice::from_iter([(1, Part::Lines(lines.iter().copied().collect()))]);
            assert_eq!(
                blocks.apply(&chosen).escape_ascii().to_string(),
                wanted.as_bytes().escape_ascii().to_string(),
                "{lines:?}"
            );
        }
    }
}
