//! A block: adjacent changed lines.

use std::ops::Range;

/// Adjacent changed lines: those in `old` became those in `new`. Lines count from 0, and one of the two ranges may be empty.
/// Between two blocks there is at least one line that both contents have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Lines of the old content that went.
    pub old: Range<usize>,
    /// Lines of the new content that came.
    pub new: Range<usize>,
}

impl Block {
    /// The number of its lines: those that went come first, then those that came. Like blocks they are numbered from 1.
    pub fn lines(&self) -> usize {
        self.old.len() + self.new.len()
    }
}
