//! The phases that change something: prepare and intend, apply, seal, settle; and what several of them need.
//!
//! In: a [`Plan`](super::plan). Out: all of it done and durable, or an error and everything undone. Recovery repeats the same steps.

pub mod apply;
pub mod check;
pub mod copy;
pub mod displaced;
pub mod in_place;
pub mod metadata;
pub mod perform;
pub mod prepare;
pub mod records;
pub mod reserve;
pub mod seal;
pub mod settle;
pub mod sync;
pub mod times;
