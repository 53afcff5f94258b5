//! The objects on disk: an object's state, identity and fingerprint, the hash of its content, and the walk over a directory. Reads only,
//! except [`sealed_file`]: the store's files with a hash at their end. Used by `session` and most rooms above.

pub mod danger;
pub mod generated;
pub mod git_head;
pub mod git_index;
mod hash;
pub mod json;
mod mention;
pub mod observe;
mod project;
pub mod sealed_file;
mod stand_in;
mod state;
pub mod time;
mod version_control;
mod walk;

pub use danger::Danger;
pub use generated::{Generated, generated};
pub use git_head::{Head, commit};
pub use git_index::may_lie_at;
pub use hash::{Hash, Hasher};
pub use json::{Each, append_line, line, text};
pub use mention::Mention;
pub use observe::{Content, Seen, is_young};
pub use project::{marks_project, project_of};
pub use sealed_file::{Records, Seal, Sealed};
pub use stand_in::{STAND_IN, is_stand_in};
pub use state::{Difference, Fingerprint, Identity, Likeness, Meta, Object, State, What, Xattrs, likeness, printed, sort_word};
pub use time::{day, local, option, since};
pub use version_control::{is_vcs, vcs_above};
pub use walk::Walk;
