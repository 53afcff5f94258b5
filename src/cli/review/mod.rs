//! `review`: what the screen looks at, and what its acts do.

mod acts;
mod edit;
mod lists;
mod pair;
mod screen;
mod session;
mod snapshot;
mod words;

pub use screen::review;
