//! The differences between a snapshot and the tree, or between two snapshots.

mod compare_snapshots;
mod difference;
mod spare_older;
mod with_tree;

pub use compare_snapshots::between;
pub use difference::{Compared, Difference, Shared, root};
pub use spare_older::{OLDER, OLDER_FORCIBLE};
pub use with_tree::{Hashes, Terms, with_tree};
