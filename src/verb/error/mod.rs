//! The errors of this room.

mod acts;
mod moving;
mod run;
mod sessions;

pub use acts::*;
pub use moving::*;
pub use run::*;
pub use sessions::*;
