//! `agent diff`.

mod diff;

pub use diff::diff;
