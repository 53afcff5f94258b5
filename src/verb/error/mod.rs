//! The errors of this room.

mod acts;
mod sessions;

pub use acts::*;
pub use sessions::*;
