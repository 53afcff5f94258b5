//! A change as people read it: its two sides, opened where they lie, and the patch from one to the other.
//!
//! In: a session and its changes. Out: lines of a patch as git has them, and remarks for what a patch cannot say. Reads only. Never prints.

pub mod blocks;
pub mod conflict_sides;
pub mod entries;
pub mod escape_terminal;
pub mod html;
mod likeness;
pub mod merge_onto_tree;
pub mod patch;
pub mod path_text;
pub mod renames;
pub mod selection;
pub mod sources;
pub mod span;
pub mod step_differences;
pub mod view;
mod word_diff;
