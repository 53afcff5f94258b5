//! Signals that ask a verb to end while it changes something.

use std::fs::File;
use std::os::fd::AsFd;

use super::problem::Problem;
use super::{Call, Ended};
use crate::error::At;
use crate::fs::interrupt::{self, Asked, Input};

/// Does what changes something, and says what came of it. A signal ends the first where it looks whether one came, with what it did undone; else
/// it is finished, and that is said.
pub fn finished<T>(
    call: &Call,
    act: impl FnOnce() -> Result<T, Problem>,
    say: impl FnOnce(T) -> Result<Ended, Problem>,
) -> Result<Ended, Problem> {
    let noting = interrupt::note(Asked::Stops);
    let done = act();
    drop(noting);
    let came = interrupt::came();
    let ended = say(done?)?;
    if let Some(signal) = came {
        call.out.note(format_args!("{signal} came when all was done: it is finished"));
    }
    Ok(ended)
}

/// Standard input, which is not waited for once a signal came.
pub fn input() -> Result<Input, Problem> {
    let stdin = std::io::stdin().as_fd().try_clone_to_owned().at("read", "standard input")?;
    Ok(Input(File::from(stdin)))
}
