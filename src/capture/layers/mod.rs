//! The uppers of a session's steps: sealed, joined once they are many, copied into another session, and made for a person's choice.

pub mod choice;
pub mod choice_terms;
pub mod choice_upper;
pub mod fork;
pub mod merge_many;
pub mod merge_uppers;
pub mod opened_modes;
pub mod rejoin;
pub mod sealed_uppers;
pub mod upper_metadata;
