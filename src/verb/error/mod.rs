//! The errors of this room.

mod acts;
mod agents;
mod doctor;
pub mod hooks;
mod moving;
mod policy;
mod prunes;
mod run;
mod sessions;
mod snapshots;
mod uncovered;

pub use acts::*;
pub use agents::*;
pub use doctor::*;
pub use moving::*;
pub use policy::*;
pub use prunes::*;
pub use run::*;
pub use sessions::*;
pub use snapshots::*;
pub use uncovered::*;
