//! The blocks between two contents.

use std::time::{Duration, Instant};

use super::align::compare;
use super::block::Block;
use super::lines;

/// Why contents cannot be taken apart: they change, or merge, as a whole or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotByLines {
    /// One of them is binary: [`lines::is_binary`].
    Binary,
    /// They were not compared within the limit.
    TimedOut,
}

/// The lines of two contents, and the blocks from the old one to the new one.
#[derive(Debug)]
pub struct Blocks<'c> {
    old: Vec<&'c [u8]>,
    new: Vec<&'c [u8]>,
    list: Vec<Block>,
}

impl<'c> Blocks<'c> {
    /// Finds the blocks. Equal contents give equal blocks, on every machine and under any load, or [`NotByLines::TimedOut`].
    pub fn between(old: &'c [u8], new: &'c [u8], limit: Duration) -> Result<Self, NotByLines> {
        Self::before(end_of(limit), old, new)
    }

    /// As [`between`](Self::between), up to a moment, so that several comparisons share one limit.
    pub fn before(end: Option<Instant>, old: &'c [u8], new: &'c [u8]) -> Result<Self, NotByLines> {
        if lines::is_binary(old) || lines::is_binary(new) {
            return Err(NotByLines::Binary);
        }
        let blocks = Self::until(end, old, new);
        // Past its deadline `similar` goes on with coarser blocks, and does not tell.
        if end.is_some_and(|end| Instant::now() > end) { Err(NotByLines::TimedOut) } else { Ok(blocks) }
    }

    /// Finds the blocks, and takes what is not compared within the limit for one that changed: right for a patch, but nothing to be
    /// numbered. Does not ask whether the contents are binary.
    pub fn roughly(old: &'c [u8], new: &'c [u8], limit: Duration) -> Self {
        Self::until(end_of(limit), old, new)
    }

    /// As [`roughly`](Self::roughly), with `key` of each line in place of it: lines with equal keys count as the same.
    pub fn roughly_by(old: &'c [u8], new: &'c [u8], limit: Duration, key: impl Fn(&[u8]) -> Vec<u8>) -> Self {
        let (old, new) = (lines::split(old), lines::split(new));
        let [olds, news]: [Vec<Vec<u8>>; 2] = [&old, &new].map(|lines| lines.iter().map(|line| key(line)).collect());
        let [before, after]: [Vec<&[u8]>; 2] = [&olds, &news].map(|keys| keys.iter().map(Vec::as_slice).collect());
        let list = compare(&before, &after, end_of(limit));
        Self { old, new, list }
    }

    fn until(end: Option<Instant>, old: &'c [u8], new: &'c [u8]) -> Self {
        let (old, new) = (lines::split(old), lines::split(new));
        let list = compare(&old, &new, end);
        Self { old, new, list }
    }

    /// The lines of the old content.
    pub fn old_lines(&self) -> &[&'c [u8]] {
        &self.old
    }

    /// The lines of the new content.
    pub fn new_lines(&self) -> &[&'c [u8]] {
        &self.new
    }

    /// The blocks from the first line to the last. The first one has number 1.
    pub fn list(&self) -> &[Block] {
        &self.list
    }

    /// The lines that went with a block.
    pub fn removed(&self, block: &Block) -> &[&'c [u8]] {
        &self.old[block.old.clone()]
    }

    /// The lines that came with a block.
    pub fn added(&self, block: &Block) -> &[&'c [u8]] {
        &self.new[block.new.clone()]
    }
}

/// The moment at which a limit ends; `None` for one that is longer than a clock can tell.
pub fn end_of(limit: Duration) -> Option<Instant> {
    Instant::now().checked_add(limit)
}
