//! The uppers of a session's steps: sealed, joined once they are many, copied into another session, and made for a person's choice.

pub mod blocks;
pub mod choice;
pub mod choice_terms;
pub mod choice_upper;
pub mod fork;
pub mod merge;
pub mod opened_modes;
pub mod rejoin;
pub mod sealed;
pub mod upper;
