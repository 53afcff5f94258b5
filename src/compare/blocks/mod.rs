//! Two contents by lines: the blocks in which they differ, any part of them applied or taken out, three contents merged, changed words.
//!
//! In: bytes. Out: ranges of lines, and bytes. Pure: touches no file, prints nothing, uses no other room.
//! - Every byte is kept, whatever the encoding: a line is what ends with LF or with the content, a CR before LF is a part of it.
//! - Equal contents always have equal blocks, as people name them by number: what takes too long has none.

mod align;
pub mod block;
pub mod choice;
pub mod find_blocks;
pub mod lines;
pub mod numbers;
mod slide;
pub mod three_way;
pub mod words;
