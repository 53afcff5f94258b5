//! The kinds of groups.

use serde::Serialize;

use crate::tree::Generated;

/// The reason why changes are told together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Dependencies,
    Built,
    Caches,
    /// Version control's own.
    Repository,
}

impl From<Generated> for Kind {
    fn from(generated: Generated) -> Self {
        match generated {
            Generated::Dependencies => Self::Dependencies,
            Generated::Built => Self::Built,
            Generated::Caches => Self::Caches,
        }
    }
}
