//! Signals that ask a verb to end while it changes something.

use std::fs::File;
use std::os::fd::AsFd;

use crate::error::{At, Error};
use crate::face::call::Call;
use crate::face::ended::Ended;
use crate::fs::interrupt::{self, Asked, Input};

/// Runs `act`, then `say` with its result. If a signal comes, `act` stops at its next check and undoes what it did. If it ends first,
/// a note says that all is finished.
pub fn finished<T>(
    call: &Call,
    act: impl FnOnce() -> Result<T, Error>,
    say: impl FnOnce(T) -> Result<Ended, Error>,
) -> Result<Ended, Error> {
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

/// Standard input. Reading stops waiting once a signal comes.
pub fn input() -> Result<Input, Error> {
    let stdin = std::io::stdin().as_fd().try_clone_to_owned().at("read", "standard input")?;
    Ok(Input(File::from(stdin)))
}
