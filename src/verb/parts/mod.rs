//! Parts of a session: the changes and blocks that a call means, and the session of its own that a part becomes.

pub mod picks;
pub mod piece;
pub mod select;
pub mod together;
