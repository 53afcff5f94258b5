//! `discard`: what is held is dropped. Sessions are put aside or freed; what leaves one of them in part is a step of it.

mod parts;
mod whole;

pub use parts::{Discard, Discarded, PartDiscarded, discard};
pub use whole::{ALREADY, Dropped, End, Sessions, Skipped, again, all_pending, free_overdue, is_done, sessions};
