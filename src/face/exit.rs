//! Exit statuses. No other place knows them.

use crate::error::Kind;

/// The exit statuses that `recant help` lists.
#[deny(clippy::wildcard_enum_match_arm)]
pub fn status(kind: Kind) -> u8 {
    match kind {
        Kind::Refused => 1,
        Kind::Usage => 2,
        Kind::Conflict => 3,
        Kind::LeftOut => 4,
        Kind::Damaged => 5,
        Kind::Busy => 6,
        Kind::Stuck => 7,
        Kind::NoCapture => 125,
        Kind::NotExecutable => 126,
        Kind::NotFound => 127,
    }
}
