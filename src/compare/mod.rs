//! A change as people read it: its two sides, opened where they lie, the patch from one to the other, and a summary of many. Used by
//! `agent`, `verb` and the faces.
//!
//! In: a session and its changes, or two states of sessions. Out: lines of a patch as git has them, or a page for a browser, and remarks for
//! what a patch cannot say. Also merges a change
//! onto the tree, and knows which parts of one were picked. Reads only. Never prints.

pub mod blocks;
mod conflict_sides;
mod entries;
pub mod escape_terminal;
pub mod html;
mod likeness;
mod merge_onto_tree;
pub mod patch;
mod path_text;
mod renames;
mod selection;
mod sources;
pub mod span;
mod step_differences;
pub mod summary;
mod view;
mod word_diff;

pub use blocks::block::Block;
pub use blocks::choice::Choice;
pub use blocks::find_blocks::Blocks;
pub use blocks::lines::is_binary;
pub use blocks::words::{Marks, words};
pub use conflict_sides::{Clash, NOW};
pub use entries::{CHANGED, Entries, Taken, Text, part_of};
pub use html::file_part::{Common, Entry};
pub use html::page::About;
pub use merge_onto_tree::{MergeResult, MergedChange, onto, out_of, taken_out};
pub use patch::{Form, Lines, Words, counts, differs_in_space_alone};
pub use path_text::{Names, columns, cut, cut_off, padded, shortened};
pub use renames::Renames;
pub use selection::{Pick, Picked, mark_of};
pub use sources::{Content, End, OnTree, Sources};
pub use span::{Span, pieces};
pub use step_differences::{Differences, Place, States};
pub use summary::{KnownPlaces, Summary};
pub use view::{Half, TEXT_LIMIT, View};
