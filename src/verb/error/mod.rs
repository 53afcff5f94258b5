//! The errors of this room.

mod acts;
mod agents;
mod doctor;
pub mod hooks;
mod moving;
mod restore;
mod run;
mod sessions;
mod uncovered;

pub use acts::*;
pub use agents::*;
pub use doctor::*;
pub use moving::*;
pub use restore::*;
pub use run::*;
pub use sessions::*;
pub use uncovered::*;
