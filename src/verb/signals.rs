//! Signals that ask a verb to end while it changes something.

use super::desk::Desk;
use super::fact::Fact;
use crate::error::Error;
use crate::fs::{OnSignal, interrupt};

/// Does an act that a signal stops at its next check, and that then undoes what it did. If one comes later, it is told that all is finished.
///
/// # Errors
/// Those of the act.
pub fn finished<T>(desk: &Desk, act: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let noting = interrupt::note(OnSignal::Stops);
    let done = act()?;
    drop(noting);
    if let Some(signal) = interrupt::signal_received() {
        desk.caller.tell(Fact::Finished(signal));
    }
    Ok(done)
}
