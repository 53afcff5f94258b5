//! A change as people read it: its two sides, opened where they lie, and the patch from one to the other.
//!
//! In: a session and its changes. Out: lines of a patch as git has them, and remarks for what a patch cannot say. Reads only. Never prints.

pub mod blocks;
pub mod clash;
pub mod entries;
pub mod html;
mod inline;
mod likeness;
pub mod merge;
pub mod patch;
pub mod picked;
pub mod renames;
pub mod shown;
pub mod sources;
pub mod span;
pub mod steps;
pub mod view;
pub mod visible;
