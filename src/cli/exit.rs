//! Exit statuses. No other place knows them.

use std::process::ExitCode;

use super::Ended;
use crate::error::Kind;

/// Carries out the call of this process.
pub fn main() -> ExitCode {
    crate::fs::memory::tell_when_short();
    crate::fs::lease::ignore_what_would_end_it();
    if super::complete::is_answered() {
        return ExitCode::SUCCESS;
    }
    match super::run(std::env::args_os()) {
        Ended::Done => ExitCode::SUCCESS,
        Ended::With(kind) => status(kind).into(),
        Ended::Command(status) => status.into(),
        Ended::Asked(status) => {
            // A shell ends a loop at Ctrl-C only if the program died of it.
            if status == 130 {
                crate::fs::interrupt::end_by(2);
            }
            status.into()
        }
    }
}

/// The exit statuses that `recant help` lists.
#[deny(clippy::wildcard_enum_match_arm)]
pub(super) fn status(kind: Kind) -> u8 {
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
