//! `review`: what the screen looks at, and what its acts do.

mod acts;
mod compare;
mod edit;
pub mod error_lines;
mod lists;
mod pair;
pub mod screen_world;
mod session;
mod snapshot;

pub use screen_world::review;
