//! `review`: what the screen looks at, and what its acts do.

mod acts;
mod compare;
mod edit;
pub mod error_lines;
mod lists;
mod pair;
mod session;
mod snapshot;
pub mod world;

pub use world::review;
