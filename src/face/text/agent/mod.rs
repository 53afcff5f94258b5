//! Faces of the verbs about agents.

pub mod diff;
pub mod guide;
pub mod hook;
pub mod install;
pub mod run;
pub mod status;
pub mod turns;
pub mod uncovered;
pub mod undo;
